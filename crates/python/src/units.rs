//! Quantities with units, as text.

use pyo3::prelude::*;
use writecliff_base::units;

use crate::errors;

#[pyfunction]
pub(crate) fn parse_size(text: &str) -> PyResult<u64> {
    units::parse_size(text)
        .map(|size| size.0)
        .map_err(|e| errors::config(&e.to_string(), e.hint().as_deref()))
}

#[pyfunction]
pub(crate) fn parse_time(text: &str) -> PyResult<u64> {
    units::parse_time(text)
        .map(|time| time.0)
        .map_err(|e| errors::config(&e.to_string(), e.hint().as_deref()))
}
