//! Sections of device files, and tables of workload files, as tables of keys.
//!
//! [`section!`](crate::section) declares the keys of a section once: name, whether it is required,
//! kind with bounds, default and meaning. The struct of values, its reader from a [`Table`] and
//! the reference page of keys follow from this declaration:
//!
//! ```
//! use writecliff_base::keys::{Flag, Percent, PositiveTime, Section};
//! use writecliff_base::located::LocatedToml;
//!
//! writecliff_base::section! {
//!     #[derive(Debug)]
//!     pub struct Plan {
//!         throttle: default Flag = true, "`false` disables the section";
//!         life: required PositiveTime, "planned life";
//!         reserve: optional Percent(0.0..=100.0), "lead over the plan";
//!     }
//! }
//!
//! let toml = LocatedToml::parse("life = \"5 years\"\n", "drive.toml").unwrap();
//! let plan = Plan::read_keys(&toml.root()).unwrap();
//! assert!(plan.throttle && plan.reserve.is_none());
//! assert_eq!(Plan::keys()[2].takes, "0 to 100 %");
//! ```
//!
//! Rules between keys are code that runs after the keys are read.

mod kinds;

pub use kinds::{
    Choice, Count, Flag, Inner, Inners, Integer, Integers, Kind, Number, NumberOrList, Numbers,
    OfPhysical, OfPhysicals, Percent, PositivePhysical, PositiveRate, PositiveTime, Size,
    SizeWithin, Text, Time, Times,
};

use crate::located::{LocatedError, Table};

/// A key of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    pub name: &'static str,
    /// Kind and bounds of the values that it accepts, in words.
    pub takes: String,
    pub is_required: bool,
    /// Value in a file without the key, in words; empty if the key does not have a default.
    pub default: String,
    /// One line of Markdown, with links that are relative to the reference pages.
    pub meaning: &'static str,
}

/// The keys of a table of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionKeys {
    /// Empty for the top of the file.
    pub name: &'static str,
    pub is_required: bool,
    pub keys: Vec<Key>,
}

/// Values of a section, declared with [`section!`](crate::section).
pub trait Section: Sized {
    /// Returns the keys, in reading order.
    fn keys() -> Vec<Key>;

    /// Reads all keys.
    ///
    /// # Errors
    /// Fails at the first key that is missing, of another kind, or out of bounds.
    fn read_keys(table: &Table<'_>) -> Result<Self, LocatedError>;

    /// Returns the keys as a table of a file.
    fn documented(name: &'static str, is_required: bool) -> SectionKeys {
        SectionKeys { name, is_required, keys: Self::keys() }
    }
}

/// Returns the keys at the top of a file, from two sections.
pub fn top<A: Section, B: Section>() -> SectionKeys {
    let keys = A::keys().into_iter().chain(B::keys()).collect();
    SectionKeys { name: "", is_required: true, keys }
}

/// Declares a struct of the values of a section and implements [`Section`](crate::keys::Section).
///
/// Each key is `name: need Kind(bounds) = default, "meaning";`. The need is one of
///
/// * `required`;
/// * `optional`: the field is an `Option`; the default is a text that describes the behaviour
///   without a value;
/// * `default`: files with the default and without the key have the same canonical text;
/// * `derived`: like `default`, with the value of an earlier key as the default.
#[macro_export]
macro_rules! section {
    ($(#[$attribute:meta])* $visible:vis struct $name:ident {
        $($key:ident: $need:ident $kind:ident $(<$of:ty>)? $(($($bounds:tt)*))? $(= $default:expr)?,
            $meaning:literal;)*
    }) => {
        $(#[$attribute])*
        $visible struct $name {
            $(#[doc = $meaning] pub $key: $crate::section!(@value $need $kind $(<$of>)?),)*
        }

        impl $crate::keys::Section for $name {
            fn keys() -> Vec<$crate::keys::Key> {
                use $crate::keys::Kind as _;
                vec![$({
                    let kind = $kind $(::<$of>)? $(($($bounds)*))?;
                    $crate::keys::Key {
                        name: stringify!($key),
                        takes: kind.takes(),
                        is_required: stringify!($need) == "required",
                        default: $crate::section!(@shown $need kind $($default)?),
                        meaning: $meaning,
                    }
                }),*]
            }

            fn read_keys(
                table: &$crate::located::Table<'_>,
            ) -> Result<Self, $crate::located::LocatedError> {
                use $crate::keys::Kind as _;
                $(let $key = {
                    let kind = $kind $(::<$of>)? $(($($bounds)*))?;
                    let value = kind.read(table, stringify!($key))?;
                    $crate::section!(@read $need table, stringify!($key), value $(, $default)?)
                };)*
                Ok(Self { $($key),* })
            }
        }
    };
    (@value optional $($kind:tt)*) => { Option<<$($kind)* as $crate::keys::Kind>::Value> };
    (@value $need:ident $($kind:tt)*) => { <$($kind)* as $crate::keys::Kind>::Value };
    (@shown default $kind:ident $default:expr) => { $kind.shown(&$default) };
    (@shown derived $kind:ident $default:expr) => { format!("`{}`", stringify!($default)) };
    (@shown optional $kind:ident $default:literal) => { $default.to_owned() };
    (@shown $need:ident $kind:ident) => { String::new() };
    (@read required $table:ident, $key:expr, $value:ident) => {
        $value.ok_or_else(|| $table.missing($key))?
    };
    (@read optional $table:ident, $key:expr, $value:ident $(, $default:expr)?) => { $value };
    (@read $need:ident $table:ident, $key:expr, $value:ident, $default:expr) => {
        $table.otherwise($key, $value, $default)
    };
}
