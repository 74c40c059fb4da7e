//! `Device`: a parsed device file and device files derived from it.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use writecliff_base::Bytes;
use writecliff_base::keys::SectionKeys;
use writecliff_base::located::{Change, LocatedToml};
use writecliff_runner::{AnyConfig, DeriveError, Device};
use writecliff_ssd::DeviceConfig;
use writecliff_ssd::data_placement::Report;
use writecliff_ssd::mechanisms::NOT_TOGETHER;
use writecliff_ssd::mechanisms::power_loss::recovery;

use crate::data_placement;
use crate::errors;

#[pyclass(module = "writecliff._native", frozen, name = "Device")]
pub(crate) struct PyDevice {
    pub(crate) inner: Device,
}

#[pymethods]
impl PyDevice {
    #[new]
    fn new(text: &str, file_name: &str) -> PyResult<Self> {
        let inner = Device::read(text, file_name).map_err(|e| errors::located(&e))?;
        Ok(Self { inner })
    }

    #[getter]
    fn text(&self) -> &str {
        self.inner.toml().text()
    }

    #[getter]
    fn file_name(&self) -> &str {
        self.inner.toml().file_name()
    }

    fn scales(&self) -> Vec<f64> {
        self.inner.scales()
    }

    fn nearest_scale(&self, scale: f64) -> f64 {
        self.inner.nearest_scale(scale)
    }

    fn scaled(&self, scale: f64, largest_io_bytes: u64) -> PyResult<Self> {
        let inner = self.inner.scaled(scale, Bytes(largest_io_bytes));
        Ok(Self { inner: inner.map_err(|error| derived(&error))? })
    }

    #[pyo3(signature = (streams, capacity_bytes = None, units = None))]
    fn for_streams(
        &self,
        streams: u16,
        capacity_bytes: Option<u64>,
        units: Option<u64>,
    ) -> PyResult<Self> {
        let inner = self.inner.for_streams(streams, capacity_bytes.map(Bytes), units);
        Ok(Self { inner: inner.map_err(|error| derived(&error))? })
    }

    /// Properties of the drive for reports and listings.
    fn describe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let config = self.inner.config();
        let result = PyDict::new(py);
        let identity = config.identity();
        result.set_item("name", &identity.name)?;
        result.set_item("description", &identity.description)?;
        result.set_item("vendor", &identity.vendor)?;
        result.set_item("model", &identity.model)?;
        result.set_item("firmware", &identity.firmware)?;
        result.set_item("rated_tbw_bytes", identity.rated_writes.map(|b| b.0))?;
        result.set_item("capacity_bytes", config.user_capacity().0)?;
        result.set_item("interface", &config.link().interface)?;
        result.set_item("write_cache", config.write_cache())?;
        let (kind, ssd, disk) = match config {
            AnyConfig::Ssd(ssd) => ("ssd", Some(ssd), None),
            AnyConfig::Disk(disk) => ("disk", None, Some(disk)),
            AnyConfig::Scm(_) => ("scm", None, None),
        };
        result.set_item("kind", kind)?;
        result.set_item("rpm", disk.map(|d| d.mechanics.rpm))?;
        let raw_bytes = ssd.map(|s| s.raw_capacity().0);
        result.set_item("raw_bytes", raw_bytes)?;
        let pieces = ssd.map_or(1, |s| s.pieces_per_slot());
        result.set_item("mapped_bytes", raw_bytes.unwrap_or(0) * pieces)?;
        result.set_item("least_scale", self.inner.least_scale())?;
        result.set_item("reclaim_units", ssd.map(|s| s.geometry.reclaim_units))?;
        result.set_item("rated_cycles", ssd.map(|s| s.ftl.rated_cycles))?;
        result.set_item("overprovisioning", ssd.map(|s| s.overprovisioning()))?;
        result.set_item("nand_type", ssd.map(|s| s.geometry.shape.cell.name()))?;
        result.set_item("streams", ssd.map_or(1, |s| s.ftl.streams))?;
        let protected = ssd.is_some_and(|s| s.controller.power_loss_protection);
        result.set_item("power_loss_protection", protected)?;
        let rebuild = ssd.filter(|s| s.refuses_power_cut().is_none());
        let rebuild = rebuild.map(|s| recovery::bounds(s).map(|one| one.total().0));
        result.set_item("rebuild_ns", rebuild)?;
        result.set_item("power_states", ssd.map_or_else(Vec::new, |s| s.power_states()))?;
        let interface = ssd.and_then(|s| s.data_placement.as_ref());
        let interface = interface.map_or("none", |p| p.interface.name());
        result.set_item("data_placement_interface", interface)?;
        let report = ssd.and_then(|s| Report::of(s));
        let report = report.map(|report| data_placement::report(py, &report)).transpose()?;
        result.set_item("data_placement_reports", report)?;
        result.set_item("canonical", config.canonical())?;
        result.set_item("rows", rows(py, self.inner.toml())?)?;
        Ok(result)
    }

    fn __repr__(&self) -> String {
        format!("Device({})", self.inner.config().identity().name)
    }
}

impl PyDevice {
    /// Why no drive of this description was made, and, if it is beyond page numbers, what can be.
    pub(crate) fn not_made(&self, why: &str) -> PyErr {
        let scale = self.inner.least_scale();
        if scale <= 1.0 {
            return errors::config(why, None);
        }
        let hint = format!(
            "`writecliff run` and `test` simulate it at 1/{scale} of its capacity; so does \
             `engine.scaled({scale}, largest_io_bytes=...)` in Python"
        );
        errors::config(&format!("{}: {why}", self.inner.config().identity().name), Some(&hint))
    }

    /// The description of an SSD whose random choices follow from `seed`.
    pub(crate) fn ssd(&self, seed: u64) -> PyResult<DeviceConfig> {
        match self.inner.with_seed(seed) {
            AnyConfig::Ssd(config) => Ok(*config),
            other => {
                let (name, what) = (&other.identity().name, other.without_flash());
                let message = format!("{name} is {} and has no flash", what.unwrap_or_default());
                Err(errors::config(&message, None))
            }
        }
    }
}

fn rows<'py>(py: Python<'py>, toml: &LocatedToml) -> PyResult<Bound<'py, PyList>> {
    let rows = toml.documented().into_iter();
    PyList::new(py, rows.map(|row| (row.key, row.value, row.comment, row.line)))
}

/// Keys of a TOML text with their values as written, comments and lines.
#[pyfunction]
pub(crate) fn toml_rows<'py>(
    py: Python<'py>,
    text: &str,
    file_name: &str,
) -> PyResult<Bound<'py, PyList>> {
    let toml = LocatedToml::parse(text, file_name).map_err(|e| errors::located(&e))?;
    rows(py, &toml)
}

type KeyRow = (&'static str, String, bool, String, &'static str);
type SectionRow = (&'static str, bool, Vec<KeyRow>);

/// Returns the sections and keys of device files, by kind of drive.
#[pyfunction]
pub(crate) fn device_keys() -> Vec<(&'static str, Vec<SectionRow>)> {
    let rows = |section: SectionKeys| {
        let keys = section.keys.into_iter();
        let keys = keys.map(|key| (key.name, key.takes, key.is_required, key.default, key.meaning));
        (section.name, section.is_required, keys.collect())
    };
    let kinds = writecliff_runner::device::device_keys().into_iter();
    kinds.map(|(kind, sections)| (kind, sections.into_iter().map(rows).collect())).collect()
}

/// Returns sections and features of SSDs, each with the sections that are not modelled with it.
#[pyfunction]
pub(crate) fn not_modelled_together() -> Vec<(&'static str, &'static [&'static str])> {
    NOT_TOGETHER.to_vec()
}

/// The text with changed values; everything else, including comments, is preserved.
#[pyfunction]
pub(crate) fn toml_changed(
    text: &str,
    file_name: &str,
    changes: Vec<(String, String, Option<String>)>,
) -> PyResult<String> {
    let toml = LocatedToml::parse(text, file_name).map_err(|e| errors::located(&e))?;
    let changes = changes.into_iter().map(|(key, value, source)| match value.parse() {
        Ok(value) => Ok(Change { key, value, source }),
        Err(_) => Err(errors::config(&format!("{key} = {value}: not a TOML value"), None)),
    });
    let changes = changes.collect::<PyResult<Vec<_>>>()?;
    let no_table = |key| errors::config(&format!("the device file has no table for {key}"), None);
    toml.changed(&changes).map_err(no_table)
}

fn derived(error: &DeriveError) -> PyErr {
    match error {
        DeriveError::Located(error) => errors::located(error),
        DeriveError::Resize(error) => errors::config(&error.message, Some(&error.hint)),
        DeriveError::NotFlash(message) | DeriveError::Scale(message) => {
            errors::config(message, None)
        }
    }
}
