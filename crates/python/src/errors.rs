//! Conversion of all errors to one Python exception with `(message, hint)`.

use std::path::Path;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use writecliff_base::located::LocatedError;
use writecliff_workload::SpecError;

pyo3::create_exception!(_native, NativeConfigError, PyValueError);

pub(crate) fn config(message: &str, hint: Option<&str>) -> PyErr {
    NativeConfigError::new_err((message.to_owned(), hint.map(str::to_owned)))
}

pub(crate) fn located(error: &LocatedError) -> PyErr {
    config(&error.to_string(), error.hint.as_deref())
}

pub(crate) fn spec(error: &SpecError) -> PyErr {
    config(&error.to_string(), error.hint())
}

pub(crate) fn state(path: impl AsRef<Path>, error: &dyn std::error::Error) -> PyErr {
    pyo3::exceptions::PyOSError::new_err(format!("{}: {error}", path.as_ref().display()))
}
