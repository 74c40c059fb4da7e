//! What a drive counts. A counter is declared once, beside the mechanism that counts: its name, its
//! unit, what becomes of it over a step, and whether it grows with the size of the drive. All that
//! shows or stores counters goes through the declarations.

/// The unit of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Bytes,
    Nanoseconds,
    Joules,
    DegreesCelsius,
    Percent,
    /// Events of a kind.
    Count,
}

impl Unit {
    pub fn name(self) -> &'static str {
        match self {
            Self::Bytes => "B",
            Self::Nanoseconds => "ns",
            Self::Joules => "J",
            Self::DegreesCelsius => "°C",
            Self::Percent => "%",
            Self::Count => "",
        }
    }
}

/// The value of a counter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    Integer(u64),
    Real(f64),
}

/// How the value of a counter is read from what `T` counts.
#[derive(Clone, Copy, Debug)]
pub enum Read<T> {
    Integer(fn(&T) -> u64),
    Real(fn(&T) -> f64),
}

/// A declared counter of `T`, by default a sum since the drive was new that grows with its size.
#[must_use]
#[derive(Clone, Copy, Debug)]
pub struct Counter<T> {
    pub name: &'static str,
    pub unit: Unit,
    pub meaning: &'static str,
    pub read: Read<T>,
    pub is_level: bool,
    pub scales: bool,
}

impl<T> Counter<T> {
    /// A state of the drive and not a sum.
    pub const fn level(self) -> Self {
        Self { is_level: true, ..self }
    }

    /// The same on a drive of any size.
    pub const fn of_any_size(self) -> Self {
        Self { scales: false, ..self }
    }
}

/// Something that counts.
pub trait Counted: Sized + 'static {
    const COUNTERS: &'static [Counter<Self>];
}

/// Declares the counters of a type, each by whether it is `Integer` or `Real`, its name, its unit,
/// words that change what it is (methods of `Counter`), its value, and its meaning.
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

/// A declared counter and its value, `None` where the drive does not have it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    pub name: &'static str,
    pub unit: Unit,
    pub meaning: &'static str,
    /// A state of the drive; else a sum since the drive was new.
    pub is_level: bool,
    /// A drive of twice the size that does twice the work has twice the value.
    pub scales: bool,
    pub is_real: bool,
    pub value: Option<Value>,
}

/// The counters of `T`, with their values where there is a `T`.
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

/// Defines a struct of `u64` counts that saved states hold as an array.
#[macro_export]
macro_rules! counts {
    ($(#[$meta:meta])* pub struct $name:ident { $($(#[$doc:meta])* $field:ident,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name { $($(#[$doc])* pub $field: u64,)* }

        impl $name {
            pub const FIELDS: usize = [$(stringify!($field)),*].len();

            pub fn to_array(self) -> [u64; Self::FIELDS] {
                [$(self.$field),*]
            }

            pub fn from_array([$($field),*]: [u64; Self::FIELDS]) -> Self {
                Self { $($field),* }
            }
        }
    };
}
