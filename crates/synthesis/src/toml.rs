//! The model in a workload file: a table with a table of columns for each part.

use writecliff_base::keys::{Integer, Integers, Kind, Size, Text};
use writecliff_base::located::{LocatedError, Table};

use crate::mixes::Mixes;
use crate::sweeps::{Demand, Sweeps};
use crate::{Gaps, IoModel, Periods, Places, States, Streams, Transitions};

type Read<T> = Result<T, LocatedError>;

const ANY: std::ops::RangeInclusive<u64> = 0..=i64::MAX as u64;

/// A value of a table, from its key.
trait Value: Sized {
    fn read(table: &Table<'_>, key: &str) -> Read<Self>;
}

impl Value for u64 {
    fn read(table: &Table<'_>, key: &str) -> Read<Self> {
        table.required(key, &Integer(ANY))
    }
}

impl Value for String {
    fn read(table: &Table<'_>, key: &str) -> Read<Self> {
        table.required(key, &Text)
    }
}

/// A column, of numbers that may be smaller.
impl<T: TryFrom<u64>> Value for Vec<T> {
    fn read(table: &Table<'_>, key: &str) -> Read<Self> {
        let column = table.required(key, &Integers(ANY))?;
        let too_large = |number| table.error(key, format!("{number} is too large"), None);
        let numbers = column.into_iter();
        let numbers = numbers.map(|number| T::try_from(number).map_err(|_| too_large(number)));
        numbers.collect()
    }
}

/// A part of the model.
impl<T: Part> Value for T {
    fn read(table: &Table<'_>, key: &str) -> Read<Self> {
        optional(table, key)?.ok_or_else(|| table.missing(key))
    }
}

fn optional<T: Part>(table: &Table<'_>, key: &str) -> Read<Option<T>> {
    table.optional_table(key)?.map(T::read_table).transpose()
}

trait Part: Sized {
    fn read_table(table: Table<'_>) -> Read<Self>;
}

/// Parts whose tables have the names of their fields as keys, in reading order.
macro_rules! parts {
    ($($part:ident { $($key:ident),* })*) => {$(
        impl Part for $part {
            fn read_table(table: Table<'_>) -> Read<Self> {
                let part = Self { $($key: Value::read(&table, stringify!($key))?),* };
                table.finish()?;
                Ok(part)
            }
        }
    )*};
}

parts! {
    Streams { operations, lengths, several }
    Gaps { idle_ns, values_ns }
    States { stream, continues, back, gap }
    Transitions { phase, before, after, count }
    Periods { phase, ios, length_ns, longest_ns }
    Places { stream, begin, within, life, shape, count, uses, run_bytes, offset, stride }
    Sweeps { begin, end, offset, ios, mix, span, steps, left_out, read_weights, write_weights }
    Mixes { sizes, stream, back, count, begins, first, last, groups }
    Demand { ios, length_ns, shape }
}

/// Reads the model of a job from its table.
pub fn read(table: Table<'_>) -> Read<IoModel> {
    let mut model = IoModel {
        seed: Integer(ANY).read(&table, "seed")?.unwrap_or(1),
        range_bytes: table.required("range", &Size)?.0,
        streams: Value::read(&table, "streams")?,
        sweeps: optional(&table, "sweeps")?,
        mixes: optional(&table, "mixes")?,
        demand: optional(&table, "demand")?,
        read_ranks: Integers(ANY).read(&table, "read_ranks")?.unwrap_or_default(),
        write_ranks: Integers(ANY).read(&table, "write_ranks")?.unwrap_or_default(),
        ..IoModel::default()
    };
    if model.sweeps.is_none() && model.mixes.is_none() && model.demand.is_none() {
        model.gaps = Value::read(&table, "gaps")?;
        model.states = Value::read(&table, "states")?;
        model.transitions = Value::read(&table, "transitions")?;
        model.periods = Value::read(&table, "periods")?;
        model.places = Value::read(&table, "places")?;
    }
    table.finish()?;
    Ok(model)
}
