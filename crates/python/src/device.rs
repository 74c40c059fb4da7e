//! `Device`: a parsed device file and device files derived from it.

use pyo3::prelude::*;
use writecliff_base::Bytes;
use writecliff_base::keys::SectionKeys;
use writecliff_base::located::{Change, LocatedToml};
use writecliff_runner::{AnyConfig, Device};
use writecliff_ssd::DeviceConfig;
use writecliff_ssd::data_placement::Report;
use writecliff_ssd::device_file::DeriveError;
use writecliff_ssd::mechanisms::NOT_TOGETHER;
use writecliff_ssd::mechanisms::power_loss::recovery;

use crate::data_placement;
use crate::dict::{Dict, dict};
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

    fn describe<'py>(&self, py: Python<'py>) -> Dict<'py> {
        let config = self.inner.config();
        let identity = config.identity();
        let (kind, ssd, disk) = match config {
            AnyConfig::Ssd(ssd) => ("ssd", Some(ssd), None),
            AnyConfig::Disk(disk) => ("disk", None, Some(disk)),
            AnyConfig::Scm(_) => ("scm", None, None),
        };
        let raw_bytes = ssd.map(|s| s.geometry.raw_bytes().0);
        let pieces = ssd.map_or(1, |s| s.pieces_per_slot());
        let rebuild = ssd.filter(|s| s.refuses_power_cut().is_none());
        let interface = ssd.and_then(|s| s.data_placement.as_ref());
        let report = ssd.and_then(|s| Report::of(s));
        Ok(dict! {
            py,
            identity.{name, description, vendor, model, firmware},
            "rated_tbw_bytes" = identity.rated_writes.map(|b| b.0),
            "capacity_bytes" = config.user_capacity().0,
            "interface" = &config.link().interface,
            "write_cache" = config.write_cache(),
            "kind" = kind,
            "rpm" = disk.map(|d| d.mechanics.rpm),
            "raw_bytes" = raw_bytes,
            "mapped_bytes" = raw_bytes.unwrap_or(0) * pieces,
            "least_scale" = self.inner.least_scale(),
            "reclaim_units" = ssd.map(|s| s.geometry.reclaim_units),
            "rated_cycles" = ssd.map(|s| s.ftl.rated_cycles),
            "overprovisioning" = ssd.map(|s| s.overprovisioning()),
            "nand_type" = ssd.map(|s| s.geometry.shape.cell.name()),
            "streams" = ssd.map_or(1, |s| s.ftl.streams),
            "power_loss_protection" = ssd.is_some_and(|s| s.controller.power_loss_protection),
            "rebuild_ns" = rebuild.map(|s| recovery::bounds(s).map(|bound| bound.total().0)),
            "power_states" = ssd.map_or_else(Vec::new, |s| s.power_states()),
            "data_placement_interface" = interface.map_or("none", |p| p.interface.name()),
            "data_placement_reports" =
                report.map(|report| data_placement::report(py, &report)).transpose()?,
            "canonical" = config.canonical(),
            "rows" = rows(self.inner.toml())
        })
    }

    fn __repr__(&self) -> String {
        format!("Device({})", self.inner.config().identity().name)
    }
}

impl PyDevice {
    /// Returns the error for a drive that cannot be created. If the drive has too many pages, the
    /// hint lists the possible scales.
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

    /// Returns an SSD configuration with `seed` for its random choices.
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

type DocumentedRow = (String, String, String, usize);

fn rows(toml: &LocatedToml) -> Vec<DocumentedRow> {
    let rows = toml.documented().into_iter();
    rows.map(|row| (row.key, row.value, row.comment, row.line)).collect()
}

#[pyfunction]
pub(crate) fn toml_rows(text: &str, file_name: &str) -> PyResult<Vec<DocumentedRow>> {
    let toml = LocatedToml::parse(text, file_name).map_err(|e| errors::located(&e))?;
    Ok(rows(&toml))
}

type KeyRow = (&'static str, String, bool, String, &'static str);
type SectionRow = (&'static str, bool, Vec<KeyRow>);

fn section_rows(sections: impl IntoIterator<Item = SectionKeys>) -> Vec<SectionRow> {
    let rows = |section: SectionKeys| {
        let keys = section.keys.into_iter();
        let keys = keys.map(|key| (key.name, key.takes, key.is_required, key.default, key.meaning));
        (section.name, section.is_required, keys.collect())
    };
    sections.into_iter().map(rows).collect()
}

#[pyfunction]
pub(crate) fn device_keys() -> Vec<(&'static str, Vec<SectionRow>)> {
    let kinds = writecliff_runner::device::device_keys().into_iter();
    kinds.map(|(kind, sections)| (kind, section_rows(sections))).collect()
}

#[pyfunction]
pub(crate) fn workload_keys() -> Vec<SectionRow> {
    section_rows(writecliff_workload::workload_keys())
}

#[pyfunction]
pub(crate) fn not_modelled_together() -> Vec<(&'static str, &'static [&'static str])> {
    NOT_TOGETHER.to_vec()
}

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
    errors::config(&error.message, error.hint.as_deref())
}
