//! The module `writecliff._native`. `_native.pyi` documents this module with types; the public API
//! is pure Python. This crate only converts values between Python and Rust, and releases the
//! interpreter lock while the simulator runs.

#![allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]

mod data_placement;
mod device;
mod dict;
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

#[pyo3::pymodule]
mod _native {
    use pyo3::panic::PanicException;
    use pyo3::prelude::*;

    use crate::errors::NativeConfigError;
    use crate::panics;
    #[pymodule_export]
    use crate::{
        data_placement::DataPlacementCommands,
        device::{
            PyDevice, device_keys, not_modelled_together, toml_changed, toml_rows, workload_keys,
        },
        drive::Drive,
        histogram::{PyHistogram, PyQuantile},
        issuer::{Issuer, TraceFit},
        limits::limits,
        panics::{panic_for_test, recorded_panics},
        power_cuts::{power_losses, validate_power_cuts},
        serve::{Server, served_load},
        step::{counter_declarations, latency_causes},
        trace::{
            FileTrace, PyBlockTrace, allocators, assign_schemes, row_classes, synthetic_trace,
            writebacks,
        },
        tracefs::KernelTrace,
        traces::{
            TraceMeasures, TraceReader, TraceWriter, trace_column_words, trace_columns,
            trace_formats, trace_formats_written, trace_operation, trace_runs,
        },
        units::{parse_size, parse_time},
        validation::{
            ftl_limit, validate_data_placement, validate_handles, validate_reduction, validate_waf,
        },
        workload::{check_workload, model_ios, parse_workload_toml},
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        panics::record();
        module.add("PanicException", module.py().get_type::<PanicException>())?;
        module.add("NativeConfigError", module.py().get_type::<NativeConfigError>())?;
        // The stub file defines the public interface.
        module.delattr("__all__")
    }
}
