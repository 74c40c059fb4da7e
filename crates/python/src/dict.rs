//! Conversion of results to Python dicts. The result structs are in crates that do not depend on
//! Python, so they cannot derive `PyO3` traits. `dict!` lists the fields to convert by name.

use numpy::{Element, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;

pub(crate) type Dict<'py> = PyResult<Bound<'py, PyDict>>;
pub(crate) type Dicts<'py> = PyResult<Vec<Bound<'py, PyDict>>>;

/// Creates a dict with entries in clause order:
///
/// * `"key" = value` adds one entry,
/// * `from.{field, field}` adds fields under their own names,
/// * `from.[field, field]` adds vectors as `NumPy` arrays,
/// * `..dict` adds the entries of another dict.
macro_rules! dict {
    (@ $py:expr, $to:ident,) => {};
    (@ $py:expr, $to:ident, $name:literal = $value:expr $(, $($rest:tt)*)?) => {
        $to.set_item($name, $value)?;
        $crate::dict::dict!(@ $py, $to, $($($rest)*)?);
    };
    (@ $py:expr, $to:ident, $from:ident.{$($field:ident),*} $(, $($rest:tt)*)?) => {
        $($to.set_item(stringify!($field), &$from.$field)?;)*
        $crate::dict::dict!(@ $py, $to, $($($rest)*)?);
    };
    (@ $py:expr, $to:ident, $from:ident.[$($field:ident),*] $(, $($rest:tt)*)?) => {
        $($to.set_item(stringify!($field), numpy::PyArray1::from_vec($py, $from.$field))?;)*
        $crate::dict::dict!(@ $py, $to, $($($rest)*)?);
    };
    (@ $py:expr, $to:ident, ..$more:expr $(, $($rest:tt)*)?) => {
        $to.update($more.as_mapping())?;
        $crate::dict::dict!(@ $py, $to, $($($rest)*)?);
    };
    ($py:expr, $($clauses:tt)*) => {{
        let to = pyo3::types::PyDict::new($py);
        $crate::dict::dict!(@ $py, to, $($clauses)*);
        to
    }};
}
pub(crate) use dict;

/// Returns a `NumPy` array with one value per row.
pub(crate) fn column<R: IntoIterator, T: Element>(
    py: Python<'_>,
    rows: R,
    value: impl Fn(R::Item) -> T,
) -> Bound<'_, PyArray1<T>> {
    PyArray1::from_iter(py, rows.into_iter().map(value))
}
