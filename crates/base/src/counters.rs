//! Counters of a drive. Each counter is declared once, next to the mechanism that it belongs to,
//! with its name, unit, kind (sum or level), and whether it scales with the drive size. All code
//! that shows or stores counters uses these declarations.

use crate::words;

words! {
    /// Unit of a counter, with its symbol; the symbol of a count is empty.
    pub enum Unit {
        /// Bytes.
        Bytes = "B",
        /// Nanoseconds of virtual time.
        Nanoseconds = "ns",
        /// Joules.
        Joules = "J",
        /// Degrees Celsius.
        DegreesCelsius = "°C",
        /// Percent; wear may exceed 100.
        Percent = "%",
        /// Event count.
        Count = "",
    }
}

/// Value of a counter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A count, or a size or time as an integer.
    Integer(u64),
    /// A measured quantity with a fractional part, for example an energy or a temperature.
    Real(f64),
}

/// Function that reads a counter's value from `T`.
#[derive(Clone, Copy, Debug)]
pub enum Read<T> {
    /// Reader of an integer.
    Integer(fn(&T) -> u64),
    /// Reader of a real number.
    Real(fn(&T) -> f64),
}

/// Declared counter of `T`. By default, it is a sum since the drive was new and scales with size.
#[must_use]
#[derive(Clone, Copy, Debug)]
pub struct Counter<T> {
    /// Counter name in snake case, as in results and SQL.
    pub name: &'static str,
    /// Unit of the counter value.
    pub unit: Unit,
    /// One-line description for reference pages.
    pub meaning: &'static str,
    /// Function that reads the counter value.
    pub read: Read<T>,
    /// `true` for a level (a state of the drive), `false` for a sum since the drive was new.
    pub is_level: bool,
    /// `true` if the value doubles when both drive size and workload double.
    pub scales: bool,
}

impl<T> Counter<T> {
    /// Marks the counter as a level: a current state of the drive instead of a sum.
    pub const fn level(self) -> Self {
        Self { is_level: true, ..self }
    }

    /// Marks the counter as independent of the drive size.
    pub const fn of_any_size(self) -> Self {
        Self { scales: false, ..self }
    }
}

/// A type with counters.
pub trait Counted: Sized + 'static {
    /// All counters of the type, in the order of the reference page.
    const COUNTERS: &'static [Counter<Self>];
}

/// Declares the counters of a type. Each declaration has a type (`Integer` or `Real`), a name, a
/// unit, optional modifiers (methods of `Counter`), a value and a description.
#[macro_export]
macro_rules! counters {
    (|$counted:ident: $type:ty| $(
        $read:ident $name:literal $unit:ident $($word:ident)*: $value:expr, $meaning:literal;
    )*) => {
        impl $crate::counters::Counted for $type {
            const COUNTERS: &'static [$crate::counters::Counter<Self>] = &[$(
                $crate::counters::Counter::<Self> {
                    name: $name,
                    unit: $crate::counters::Unit::$unit,
                    meaning: $meaning,
                    read: $crate::counters::Read::$read(|$counted| $value),
                    is_level: false,
                    scales: true,
                }$(.$word())*
            ),*];
        }
    };
}

/// A declared counter and its value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// Counter name in snake case, as in results and SQL.
    pub name: &'static str,
    /// Unit of the counter value.
    pub unit: Unit,
    /// One-line description for reference pages.
    pub meaning: &'static str,
    /// `true` for a level (a state of the drive), `false` for a sum since the drive was new.
    pub is_level: bool,
    /// `true` if the value doubles when both drive size and workload double.
    pub scales: bool,
    /// `true` if the value is a real number, `false` if it is an integer.
    pub is_real: bool,
    /// Current value; `None` if the drive does not have the counter.
    pub value: Option<Value>,
}

/// Returns the counters of `T`, with their values if `counted` is `Some`.
pub fn readings<T: Counted>(counted: Option<&T>) -> impl Iterator<Item = Reading> {
    T::COUNTERS.iter().map(move |counter| {
        let value = counted.map(|counted| match counter.read {
            Read::Integer(read) => Value::Integer(read(counted)),
            Read::Real(read) => Value::Real(read(counted)),
        });
        let is_real = matches!(counter.read, Read::Real(_));
        let Counter { name, unit, meaning, is_level, scales, .. } = *counter;
        Reading { name, unit, meaning, is_level, scales, is_real, value }
    })
}

/// Defines a struct of `u64` counts that are saved with the drive state.
#[macro_export]
macro_rules! counts {
    ($(#[$meta:meta])* pub struct $name:ident { $($(#[$doc:meta])* $field:ident,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[derive(serde::Serialize, serde::Deserialize)]
        #[allow(missing_docs, reason = "`counters!` describes the counts that are reported")]
        pub struct $name { $($(#[$doc])* pub $field: u64,)* }

        impl $name {
            /// Returns the counts in the order of their declaration.
            pub fn to_array(self) -> [u64; [$(stringify!($field)),*].len()] {
                [$(self.$field),*]
            }
        }
    };
}
