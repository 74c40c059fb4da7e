//! Device files, described for people and reports.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use writecliff_base::located::LocatedToml;
use writecliff_runner::AnyConfig;
use writecliff_ssd::placement::Report;

use crate::errors;
use crate::placement;

/// Read and check a device file; returns what reports and listings show of it.
#[pyfunction]
pub(crate) fn describe_device<'py>(
    py: Python<'py>,
    text: &str,
    file_name: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let config = AnyConfig::read(text, file_name, 1).map_err(|e| errors::located(&e))?;
    let toml = LocatedToml::parse(text, file_name).map_err(|e| errors::located(&e))?;
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
    let (ssd, disk) = match &config {
        AnyConfig::Ssd(ssd) => (Some(ssd), None),
        AnyConfig::Disk(disk) => (None, Some(disk)),
    };
    result.set_item("kind", if disk.is_some() { "disk" } else { "ssd" })?;
    result.set_item("rpm", disk.map(|d| d.mechanics.rpm))?;
    result.set_item("raw_bytes", ssd.map(|s| s.raw_capacity().0))?;
    result.set_item("overprovisioning", ssd.map(|s| s.overprovisioning()))?;
    result.set_item("nand_type", ssd.map(|s| s.geometry.shape.cell.name()))?;
    result.set_item("streams", ssd.map_or(1, |s| s.ftl.streams))?;
    let protected = ssd.is_some_and(|s| s.controller.power_loss_protection);
    result.set_item("power_loss_protection", protected)?;
    let face = ssd.and_then(|s| s.placement.as_ref());
    result.set_item("placement_interface", face.map_or("none", |p| p.interface.name()))?;
    let report = ssd.and_then(|s| Report::of(s));
    let report = report.map(|report| placement::report(py, &report)).transpose()?;
    result.set_item("placement_reports", report)?;
    result.set_item("canonical", config.canonical())?;
    let rows = PyList::empty(py);
    for row in toml.documented() {
        rows.append((row.key, row.value, row.comment, row.line))?;
    }
    result.set_item("rows", rows)?;
    Ok(result)
}
