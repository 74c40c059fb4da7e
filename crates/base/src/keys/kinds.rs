//! Kinds of values, each with its reader, description and notation.

use std::ops::RangeInclusive;

use toml_edit::Item;

use crate::located::{LocatedError, Table, number};
use crate::units::{self, Bytes, BytesPerSecond, Nanos, Physical};

type Answer<T> = Result<Option<T>, LocatedError>;
/// Reads the value of a key by its kind.
pub type Reader<K, T> = fn(&K, &Table<'_>, &str) -> Answer<T>;

/// Kind of value, with its bounds.
pub trait Kind {
    /// Type of the value after its bounds are checked.
    type Value;

    /// Reads the value of `key`; `None` if the key is absent.
    fn read(&self, table: &Table<'_>, key: &str) -> Answer<Self::Value>;

    /// Describes the values that a key of this kind accepts.
    fn takes(&self) -> String;

    /// Returns the value in file notation; empty for kinds without defaults.
    fn shown(&self, _value: &Self::Value) -> String {
        String::new()
    }
}

/// Implements kinds of values from their look-up, description and notation.
#[macro_export]
macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident $(<$of:ident>)? $(($bounds:ty))? -> $value:ty {
        $read:expr, $takes:expr $(, $shown:expr)? $(,)?
    })*) => {$(
        $(#[$doc])*
        #[allow(missing_docs, reason = "the field is the bounds of the kind")]
        pub struct $name $(<$of: 'static>)? $((pub $bounds))?;

        impl $(<$of: Clone + PartialEq + 'static>)? $crate::keys::Kind for $name $(<$of>)? {
            type Value = $value;

            fn read(
                &self,
                table: &$crate::located::Table<'_>,
                key: &str,
            ) -> Result<Option<$value>, $crate::located::LocatedError> {
                let read: $crate::keys::Reader<Self, $value> = $read;
                read(self, table, key)
            }

            fn takes(&self) -> String {
                let takes: fn(&Self) -> String = $takes;
                takes(self)
            }

            $(fn shown(&self, value: &$value) -> String {
                let shown: fn(&Self, &$value) -> String = $shown;
                shown(self, value)
            })?
        }
    )*};
}

kinds! {
    Text -> String {
        |_, table, key| Ok(table.text(key)?.map(str::to_owned)),
        |_| "text".to_owned(),
        |_, text| format!("`\"{text}\"`"),
    }
    Flag -> bool {
        |_, table, key| table.value(key, "true or false", Item::as_bool),
        |_| "flag".to_owned(),
        |_, flag| flag.to_string(),
    }
    /// A 16-bit integer.
    Short -> u16 {
        |_, table, key| {
            let number = table.integer(key, &(0..=u64::from(u16::MAX)))?;
            Ok(number.map(|number| number as u16))
        },
        |_| format!("whole number, {}", bounds(0, u16::MAX)),
        |_, number| number.to_string(),
    }
    /// An integer in the range.
    Count(RangeInclusive<u32>) -> u32 {
        |kind, table, key| {
            let range = u64::from(*kind.0.start())..=u64::from(*kind.0.end());
            Ok(table.integer(key, &range)?.map(|count| count as u32))
        },
        |kind| format!("whole number, {}", bounds(*kind.0.start(), *kind.0.end())),
        |_, count| count.to_string(),
    }
    /// An integer in the range, which may be large.
    Integer(RangeInclusive<u64>) -> u64 {
        |kind, table, key| table.integer(key, &kind.0),
        |kind| format!("whole number, {}", bounds(*kind.0.start() as f64, *kind.0.end() as f64)),
        |_, number| number.to_string(),
    }
    /// A list of integers in the range.
    Integers(RangeInclusive<u64>) -> Vec<u64> {
        |kind, table, key| table.integers(key, &kind.0),
        |kind| {
            let (least, most) = (*kind.0.start() as f64, *kind.0.end() as f64);
            format!("list of whole numbers, {}", bounds(least, most))
        },
        |_, numbers| format!("{numbers:?}"),
    }
    /// A number in the range.
    Number(RangeInclusive<f64>) -> f64 {
        |kind, table, key| {
            let value = table.value(key, "a number", number)?;
            value.map(|value| table.in_range(key, value, &kind.0, "")).transpose()
        },
        |kind| format!("number, {}", bounds(*kind.0.start(), *kind.0.end())),
        |_, number| number.to_string(),
    }
    /// A list of numbers in the range.
    Numbers(RangeInclusive<f64>) -> Vec<f64> {
        |kind, table, key| table.numbers(key, &kind.0),
        |kind| format!("list of numbers, {}", bounds(*kind.0.start(), *kind.0.end())),
        |_, numbers| format!("{numbers:?}"),
    }
    /// A number in the range, or a list of such numbers.
    NumberOrList(RangeInclusive<f64>) -> Vec<f64> {
        |kind, table, key| {
            if table.is_list(key) {
                return table.numbers(key, &kind.0);
            }
            Ok(Number(kind.0.clone()).read(table, key)?.map(|number| vec![number]))
        },
        |kind| format!("number or list, {}", bounds(*kind.0.start(), *kind.0.end())),
        |_, numbers| format!("{numbers:?}"),
    }
    /// A percentage in the range.
    Percent(RangeInclusive<f64>) -> f64 {
        |kind, table, key| {
            let share = table.percent(key)?;
            share.map(|share| table.in_range(key, share, &kind.0, " %")).transpose()
        },
        |kind| format!("{} %", bounds(*kind.0.start(), *kind.0.end())),
        |_, share| format!("{share} %"),
    }
    /// A size, for example `"16 KiB"`.
    Size -> Bytes {
        |_, table, key| table.quantity(key, "\"16 KiB\"", units::parse_size),
        |_| "size".to_owned(),
        |_, size| size.to_string(),
    }
    /// A size in the range.
    SizeWithin(RangeInclusive<Bytes>) -> Bytes {
        |kind, table, key| {
            let size = Size.read(table, key)?;
            let Some(wrong) = size.filter(|size| !kind.0.contains(size)) else { return Ok(size) };
            let (least, most) = (kind.0.start(), kind.0.end());
            let message = format!("{key} is {wrong}; it must be {least} to {most}");
            Err(table.error(key, message, None))
        },
        |kind| format!("size, {} to {}", kind.0.start(), kind.0.end()),
        |_, size| size.to_string(),
    }
    /// A time, for example `"75 us"`.
    Time -> Nanos {
        |_, table, key| table.quantity(key, "\"75 us\"", units::parse_time),
        |_| "time".to_owned(),
        |_, time| time.to_string(),
    }
    PositiveTime -> Nanos {
        |_, table, key| {
            let time = Time.read(table, key)?;
            above_zero(table, key, time, |time| time.0 > 0)
        },
        |_| "time above zero".to_owned(),
        |_, time| time.to_string(),
    }
    Times -> Vec<Nanos> {
        |_, table, key| table.quantities(key, "\"75 us\"", units::parse_time),
        |_| "list of times".to_owned(),
        |_, times| format!("{times:?}"),
    }
    /// A rate, for example `"550 MB/s"`.
    Rate -> BytesPerSecond {
        |_, table, key| table.quantity(key, "\"550 MB/s\"", units::parse_rate),
        |_| "rate".to_owned(),
        |_, rate| rate.to_string(),
    }
    PositiveRate -> BytesPerSecond {
        |_, table, key| {
            let rate = Rate.read(table, key)?;
            above_zero(table, key, rate, |rate| rate.0 > 0)
        },
        |_| "rate above zero".to_owned(),
        |_, rate| rate.to_string(),
    }
    OfPhysical(Physical) -> f64 {
        |kind, table, key| {
            table.quantity(key, kind.0.example(), |text| units::parse_physical(text, kind.0))
        },
        |kind| kind.0.name().to_owned(),
        |kind, value| format!("{value} {}", kind.0.unit()),
    }
    PositivePhysical(Physical) -> f64 {
        |kind, table, key| {
            let value = OfPhysical(kind.0).read(table, key)?;
            above_zero(table, key, value, |&value| value > 0.0)
        },
        |kind| format!("{} above zero", kind.0.name()),
        |kind, value| format!("{value} {}", kind.0.unit()),
    }
    /// A physical quantity, or a list of physical quantities.
    OfPhysicals(Physical) -> Vec<f64> {
        |kind, table, key| {
            if !table.is_list(key) {
                return Ok(OfPhysical(kind.0).read(table, key)?.map(|value| vec![value]));
            }
            table.quantities(key, kind.0.example(), |text| units::parse_physical(text, kind.0))
        },
        |kind| format!("{} or list", kind.0.name()),
        |_, values| format!("{values:?}"),
    }
    /// A table with its reader function.
    Inner<T>(fn(Table<'_>) -> Result<T, LocatedError>) -> T {
        |kind, table, key| table.optional_table(key)?.map(kind.0).transpose(),
        |_| "table".to_owned(),
    }
    /// An array of tables with their reader function.
    Inners<T>(fn(Table<'_>) -> Result<T, LocatedError>) -> Vec<T> {
        |kind, table, key| {
            let tables = table.has(key).then(|| table.array_of_tables(key)).transpose()?;
            tables.map(|tables| tables.into_iter().map(kind.0).collect()).transpose()
        },
        |_| "tables".to_owned(),
    }
    /// One of a set of words, each mapped to a value.
    Choice<T>(&'static [(&'static str, T)]) -> T {
        |kind, table, key| table.choice(key, kind.0),
        |kind| {
            let words = kind.0.iter().map(|(word, _)| format!("`\"{word}\"`"));
            words.collect::<Vec<_>>().join(", ")
        },
        |kind, value| {
            let mut choices = kind.0.iter();
            let word = choices.find(|(_, choice)| choice == value);
            word.map_or(String::new(), |(word, _)| format!("`\"{word}\"`"))
        },
    }
}

fn above_zero<T>(
    table: &Table<'_>,
    key: &str,
    value: Option<T>,
    is_positive: fn(&T) -> bool,
) -> Answer<T> {
    if value.as_ref().is_none_or(is_positive) {
        return Ok(value);
    }
    Err(table.error(key, format!("{key} must be above zero"), None))
}

/// Formats a range with thousands separators. Omits a maximum that no file value can exceed.
fn bounds(least: impl Into<f64>, most: impl Into<f64>) -> String {
    let (least, most) = (least.into(), most.into());
    assert!(least <= most, "no value is in {least} to {most}");
    let least = grouped(least);
    if most < i64::MAX as f64 {
        format!("{least} to {}", grouped(most))
    } else {
        format!("from {least}")
    }
}

fn grouped(value: f64) -> String {
    if value.fract() != 0.0 {
        return if value < 1e-4 { format!("{value:e}") } else { value.to_string() };
    }
    let digits = value.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    groups.map(String::from_utf8_lossy).collect::<Vec<_>>().join(",")
}
