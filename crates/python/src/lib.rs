//! The module `writecliff._native`. `_native.pyi` documents it with types; the public API is pure
//! Python. This crate only converts values between Python and Rust and releases the interpreter
//! lock while the simulator runs.

mod bench;
mod data_placement;
mod device;
mod drive;
mod errors;
mod histogram;
mod issuer;
mod limits;
mod panics;
mod power_cuts;
mod serve;
mod step;
mod trace;
mod tracefs;
mod traces;
mod units;
mod validation;
mod workload;

use pyo3::prelude::*;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    panics::record();
    module.add("PanicException", module.py().get_type::<pyo3::panic::PanicException>())?;
    module.add("NativeConfigError", module.py().get_type::<errors::NativeConfigError>())?;
    module.add_class::<bench::SimBench>()?;
    module.add_class::<device::PyDevice>()?;
    module.add_class::<drive::Drive>()?;
    module.add_class::<data_placement::DataPlacementCommands>()?;
    module.add_class::<trace::FileTrace>()?;
    module.add_class::<trace::PyBlockTrace>()?;
    module.add_class::<tracefs::KernelTrace>()?;
    module.add_class::<traces::TraceReader>()?;
    module.add_class::<traces::TraceWriter>()?;
    module.add_class::<traces::TraceMeasures>()?;
    module.add_class::<serve::Server>()?;
    module.add_class::<issuer::Issuer>()?;
    module.add_class::<issuer::TraceFit>()?;
    module.add_class::<histogram::PyHistogram>()?;
    module.add_class::<histogram::PyQuantile>()?;
    module.add_function(wrap_pyfunction!(serve::served_load, module)?)?;
    module.add_function(wrap_pyfunction!(bench::bench_cases, module)?)?;
    module.add_function(wrap_pyfunction!(trace::assign_schemes, module)?)?;
    module.add_function(wrap_pyfunction!(trace::allocators, module)?)?;
    module.add_function(wrap_pyfunction!(trace::writebacks, module)?)?;
    module.add_function(wrap_pyfunction!(trace::row_classes, module)?)?;
    module.add_function(wrap_pyfunction!(trace::synthetic_trace, module)?)?;
    module.add_function(wrap_pyfunction!(traces::trace_formats, module)?)?;
    module.add_function(wrap_pyfunction!(traces::trace_formats_written, module)?)?;
    module.add_function(wrap_pyfunction!(traces::trace_columns, module)?)?;
    module.add_function(wrap_pyfunction!(traces::trace_column_words, module)?)?;
    module.add_function(wrap_pyfunction!(traces::trace_operation, module)?)?;
    module.add_function(wrap_pyfunction!(traces::trace_runs, module)?)?;
    module.add_function(wrap_pyfunction!(device::device_keys, module)?)?;
    module.add_function(wrap_pyfunction!(device::not_modelled_together, module)?)?;
    module.add_function(wrap_pyfunction!(device::toml_rows, module)?)?;
    module.add_function(wrap_pyfunction!(device::toml_changed, module)?)?;
    module.add_function(wrap_pyfunction!(limits::limits, module)?)?;
    module.add_function(wrap_pyfunction!(panics::recorded_panics, module)?)?;
    module.add_function(wrap_pyfunction!(panics::panic_for_test, module)?)?;
    module.add_function(wrap_pyfunction!(step::latency_causes, module)?)?;
    module.add_function(wrap_pyfunction!(step::counter_declarations, module)?)?;
    module.add_function(wrap_pyfunction!(units::parse_size, module)?)?;
    module.add_function(wrap_pyfunction!(units::parse_time, module)?)?;
    module.add_function(wrap_pyfunction!(workload::parse_workload_toml, module)?)?;
    module.add_function(wrap_pyfunction!(workload::check_workload, module)?)?;
    module.add_function(wrap_pyfunction!(workload::model_ios, module)?)?;
    module.add_function(wrap_pyfunction!(validation::validate_waf, module)?)?;
    module.add_function(wrap_pyfunction!(validation::validate_data_placement, module)?)?;
    module.add_function(wrap_pyfunction!(validation::validate_handles, module)?)?;
    module.add_function(wrap_pyfunction!(validation::validate_reduction, module)?)?;
    module.add_function(wrap_pyfunction!(power_cuts::validate_power_cuts, module)?)?;
    module.add_function(wrap_pyfunction!(power_cuts::power_losses, module)?)?;
    // The stub defines what is public.
    module.delattr("__all__")
}
