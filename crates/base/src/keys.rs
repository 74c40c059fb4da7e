//! Key tables of device file sections and workload file tables.
//!
//! [`section!`](crate::section) declares the keys of a section once, each with its name, whether it
//! is required, kind with bounds, default and meaning. The declaration generates the struct of
//! values, its reader from a [`Table`] and the reference page of the keys:
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
//! Rules that involve several keys are code that runs after the keys are read.

mod kinds;

pub use kinds::{
    Choice, Count, Flag, Inner, Inners, Integer, Integers, Kind, Number, NumberOrList, Numbers,
    OfPhysical, OfPhysicals, Percent, PositivePhysical, PositiveRate, PositiveTime, Rate, Reader,
    Short, Size, SizeWithin, Text, Time, Times,
};

use crate::located::{Answer, Table};

/// Key of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Key name without the name of its table.
    pub name: &'static str,
    /// Description of the accepted values: kind and bounds.
    pub takes: String,
    /// `true` if a file without the key is rejected.
    pub is_required: bool,
    /// Description of the default value; empty if the key has no default.
    pub default: String,
    /// One line of Markdown, with links relative to the reference pages.
    pub meaning: &'static str,
}

/// Keys of a table in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionKeys {
    /// Table name; empty for the top of the file.
    pub name: &'static str,
    /// `true` if a file without the table is rejected.
    pub is_required: bool,
    /// Keys in declaration order.
    pub keys: Vec<Key>,
}

/// Values of a section, declared with [`section!`](crate::section).
pub trait Section: Sized {
    /// Returns the keys, in reading order.
    fn keys() -> Vec<Key>;

    /// Reads all keys.
    ///
    /// # Errors
    /// Returns an error at the first key that is missing, has the wrong kind, or is out of bounds.
    fn read_keys(table: &Table<'_>) -> Answer<Self>;

    /// Reads all keys of a table and rejects any other key.
    ///
    /// # Errors
    /// Returns an error at the first key that is missing, unknown, of the wrong kind, or out of
    /// bounds.
    fn read_whole(table: Table<'_>) -> Answer<Self> {
        let section = Self::read_keys(&table)?;
        table.finish().map(|()| section)
    }

    /// Returns the keys as a table of a file.
    fn documented(name: &'static str, is_required: bool) -> SectionKeys {
        SectionKeys { name, is_required, keys: Self::keys() }
    }
}

/// Returns the keys at the top level of a file, which two sections declare.
pub fn top<A: Section, B: Section>() -> SectionKeys {
    let keys = A::keys().into_iter().chain(B::keys()).collect();
    SectionKeys { name: "", is_required: true, keys }
}

/// Returns the error of the first condition that is true, at the line of its key:
/// `reject! { table, KEY if CONDITION => "message" ["hint"], arguments; }`.
#[macro_export]
macro_rules! reject {
    ($table:expr, $(
        $key:tt if $wrong:expr => $message:literal $([$hint:expr])? $(, $argument:expr)*;
    )*) => {$(
        if $wrong {
            let hint: Option<&str> = None$(.or(Some($hint)))?;
            let message = format!($message $(, $argument)*);
            return Err($table.error($key, message, hint.map(str::to_owned)));
        }
    )*};
}

/// Declares a struct for the values of a section and implements [`Section`](crate::keys::Section).
///
/// Each key is `name: need Kind(bounds) = default, "meaning";`. The need is one of
///
/// * `required`;
/// * `optional`: the field is an `Option`; the default is a text that describes the behaviour
///   without a value;
/// * `or_default`: like `optional`, but without a value the field has its type's default;
/// * `default`: files with the default and without the key have the same canonical text;
/// * `derived`: like `default`, with the value of an earlier key as the default;
/// * `hidden`: `optional` and undocumented, for a key that another field documents;
/// * `unread`: no key; a type replaces the kind.
///
/// `field as key` names the field of a key, `Kind -> Type` converts its value.
/// `+ key: Kind, "meaning";` documents a key that the program reads by itself.
/// `struct Name: Default` implements `Default` by the defaults of the keys.
#[macro_export]
macro_rules! section {
    ($(#[$attribute:meta])* $visible:vis struct $name:ident $(: $trait:ident)? {$(
        $(+ $extra:ident: $extra_kind:ident $(($($extra_bounds:tt)*))? $(= $extra_default:expr)?,
            $extra_meaning:literal;)*
        $(#[$field_attribute:meta])*
        $field:ident $(as $key:ident)?: $need:ident $kind:ident $(<$of:ty>)? $(($($bounds:tt)*))?
            $(-> $type:ty)? $(= $default:expr)?, $meaning:literal;
    )*}) => {
        $(#[$attribute])*
        $visible struct $name {$(
            #[doc = $meaning]
            #[doc = ""]
            $(#[$field_attribute])*
            pub $field: $crate::section!(@type $need [$($type)?] $kind $(<$of>)?),
        )*}

        impl $crate::keys::Section for $name {
            fn keys() -> Vec<$crate::keys::Key> {
                let mut keys = Vec::new();
                $(
                    $($crate::section!(@document keys optional [$extra]
                        [$extra_kind $(($($extra_bounds)*))?] [$($extra_default)?]
                        $extra_meaning);)*
                    $crate::section!(@document keys $need [$field $($key)?]
                        [$kind $(::<$of>)? $(($($bounds)*))?] [$($default)?] $meaning);
                )*
                keys
            }

            fn read_keys(
                table: &$crate::located::Table<'_>,
            ) -> $crate::located::Answer<Self> {
                $(
                    $(table.has(stringify!($extra));)*
                    let $field = $crate::section!(@read $need table, [$field $($key)?]
                        [$kind $(::<$of>)? $(($($bounds)*))?] [$($type)?] $($default)?);
                )*
                Ok(Self { $($field),* })
            }
        }

        $crate::section!(@new [$($trait)?] $name { $($field $need [$($type)?] [$($default)?];)* });
    };
    (@type optional [] $($kind:tt)*) => { Option<<$($kind)* as $crate::keys::Kind>::Value> };
    (@type optional [$type:ty] $($kind:tt)*) => { Option<$type> };
    (@type hidden $($rest:tt)*) => { $crate::section!(@type optional $($rest)*) };
    (@type unread [] $($type:tt)*) => { $($type)* };
    (@type $need:ident [] $($kind:tt)*) => { <$($kind)* as $crate::keys::Kind>::Value };
    (@type $need:ident [$type:ty] $($kind:tt)*) => { $type };
    (@name [$field:ident]) => { stringify!($field) };
    (@name [$field:ident $key:ident]) => { stringify!($key) };
    (@document $keys:ident hidden $($rest:tt)*) => {};
    (@document $keys:ident unread $($rest:tt)*) => {};
    (@document $keys:ident $need:ident $name:tt [$($kind:tt)*] [$($default:expr)?]
        $meaning:literal) => {{
        let kind = $($kind)*;
        $keys.push($crate::keys::Key {
            name: $crate::section!(@name $name),
            takes: $crate::keys::Kind::takes(&kind),
            is_required: stringify!($need) == "required",
            default: $crate::section!(@shown $need kind $($default)?),
            meaning: $meaning,
        });
    }};
    (@shown default $kind:ident $default:expr) => { $crate::keys::Kind::shown(&$kind, &$default) };
    (@shown derived $kind:ident $default:expr) => { format!("`{}`", stringify!($default)) };
    (@shown $need:ident $kind:ident $default:literal) => { $default.to_owned() };
    (@shown $need:ident $kind:ident) => { String::new() };
    (@read unread $table:ident, $($rest:tt)*) => { Default::default() };
    (@read $need:ident $table:ident, $name:tt [$($kind:tt)*] [$($type:ty)?] $($default:expr)?) => {{
        let key = $crate::section!(@name $name);
        let value = $crate::keys::Kind::read(&$($kind)*, $table, key)?;
        $crate::section!(@into $need [$($type)?]
            $crate::section!(@needed $need $table, key, value $(, $default)?))
    }};
    (@needed required $table:ident, $key:ident, $value:ident) => {
        $value.ok_or_else(|| $table.missing($key))?
    };
    (@needed default $table:ident, $key:ident, $value:ident, $default:expr) => {
        $table.otherwise($key, $value, $default)
    };
    (@needed derived $table:ident, $key:ident, $value:ident, $default:expr) => {
        $table.otherwise($key, $value, $default)
    };
    (@needed or_default $table:ident, $key:ident, $value:ident $(, $default:expr)?) => {
        $value.unwrap_or_default()
    };
    (@needed $need:ident $table:ident, $key:ident, $value:ident $(, $default:expr)?) => { $value };
    (@into $need:ident [] $value:expr) => { $value };
    (@into optional [$type:ty] $value:expr) => { $value.map(<$type>::from) };
    (@into $need:ident [$type:ty] $value:expr) => { <$type>::from($value) };
    (@new [] $($rest:tt)*) => {};
    (@new [Default] $name:ident {
        $($field:ident $need:ident [$($type:ty)?] [$($default:expr)?];)*
    }) => {
        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $crate::section!(@fresh $need [$($type)?] $($default)?)),* }
            }
        }
    };
    (@fresh default [$($type:ty)?] $default:expr) => {
        $crate::section!(@into default [$($type)?] $default)
    };
    (@fresh $($rest:tt)*) => { Default::default() };
}
