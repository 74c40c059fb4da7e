//! Model in a workload file: a table with one table of columns per component.

use writecliff_base::keys::{Integer, Integers, Kind, Size, Text};
use writecliff_base::located::{Answer, Table};

use crate::IoModel;

const ANY: std::ops::RangeInclusive<u64> = 0..=i64::MAX as u64;

/// Table value, read from its key.
pub(crate) trait Value: Sized {
    fn read(table: &Table<'_>, key: &str) -> Answer<Self>;

    /// Returns the length of a column.
    fn length(&self) -> Option<usize> {
        None
    }
}

impl Value for u64 {
    fn read(table: &Table<'_>, key: &str) -> Answer<Self> {
        table.required(key, &Integer(ANY))
    }
}

impl Value for String {
    fn read(table: &Table<'_>, key: &str) -> Answer<Self> {
        table.required(key, &Text)
    }

    fn length(&self) -> Option<usize> {
        Some(self.len())
    }
}

/// A column of numbers, whose type may be smaller than the type in the file.
impl<T: TryFrom<u64>> Value for Vec<T> {
    fn read(table: &Table<'_>, key: &str) -> Answer<Self> {
        let column = table.required(key, &Integers(ANY))?;
        let too_large = |number| table.error(key, format!("{number} is too large"), None);
        let numbers = column.into_iter();
        let numbers = numbers.map(|number| T::try_from(number).map_err(|_| too_large(number)));
        numbers.collect()
    }

    fn length(&self) -> Option<usize> {
        Some(self.len())
    }
}

/// Component of the model.
impl<T: Part> Value for T {
    fn read(table: &Table<'_>, key: &str) -> Answer<Self> {
        optional(table, key)?.ok_or_else(|| table.missing(key))
    }
}

fn optional<T: Part>(table: &Table<'_>, key: &str) -> Answer<Option<T>> {
    table.optional_table(key)?.map(T::read_table).transpose()
}

pub(crate) trait Part: Sized {
    fn read_table(table: Table<'_>) -> Answer<Self>;

    /// Returns the lengths of the columns.
    fn lengths(&self) -> Vec<usize>;
}

/// Declares a component of the model. The keys of the component's table are the names of its
/// fields.
macro_rules! model_table {
    ($(#[$attribute:meta])* $name:ident {
        $($(#[$of_field:meta])* $field:ident: $type:ty,)*
    }) => {
        $(#[$attribute])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name {
            $($(#[$of_field])* pub(crate) $field: $type,)*
        }

        impl $crate::toml::Part for $name {
            fn read_table(
                table: writecliff_base::located::Table<'_>,
            ) -> writecliff_base::located::Answer<Self> {
                use $crate::toml::Value;
                let part = Self { $($field: Value::read(&table, stringify!($field))?),* };
                table.finish().map(|()| part)
            }

            fn lengths(&self) -> Vec<usize> {
                [$($crate::toml::Value::length(&self.$field)),*].into_iter().flatten().collect()
            }
        }
    };
}

/// Reads a job's model from its table.
pub fn read(table: Table<'_>) -> Answer<IoModel> {
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
