//! File I/O traces: accepts columns, stores requests, runs replays.

use std::ops::ControlFlow;
use std::sync::{Mutex, MutexGuard, OnceLock};
use writecliff_base::SLOT_BYTES;

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use writecliff_filesystem::assign::{Bucketing, Scheme};
use writecliff_filesystem::{
    Allocator, Batch, BlockTrace, Classes, Events, FileSystem, Labels, LayOut, Repeats, TraceError,
    WriteBack, deaths, synthetic,
};
use writecliff_host_interface::placement::DataPlacement;
use writecliff_runner::Counters;
use writecliff_runner::replay::{self, BUCKETS, ReplayOptions, ReplayOutcome, Timed};
use writecliff_ssd::Ssd;

use crate::device::PyDevice;
use crate::dict::{Dict, column, dict};
use crate::histogram::PyHistogram;
use crate::panics::locked;
use crate::step::{Hook, counters_to_dict};
use crate::{data_placement, errors};

fn trace_error(error: &TraceError) -> PyErr {
    errors::config(&error.to_string(), error.hint().as_deref())
}

fn file_system(name: &str) -> PyResult<FileSystem> {
    let write_back =
        WriteBack::named(name).ok_or_else(|| unknown("write-back", name, &writebacks()))?;
    Ok(FileSystem { write_back, ..FileSystem::default() })
}

fn unknown(what: &str, name: &str, choices: &[&str]) -> PyErr {
    errors::config(&format!("unknown {what} '{name}'; known: {}", choices.join(", ")), None)
}

#[pyclass(module = "writecliff._native", frozen)]
pub(crate) struct FileTrace {
    inner: Mutex<Events>,
}

impl FileTrace {
    fn get(&self) -> MutexGuard<'_, Events> {
        locked(&self.inner)
    }
}

#[pymethods]
impl FileTrace {
    #[new]
    fn new() -> Self {
        Self { inner: Mutex::default() }
    }

    #[pyo3(signature = (
        op, file, offset_bytes, length_bytes, row_class, ops, stream, origin, folder = None,
        time_ns = None
    ))]
    fn add(
        &self,
        op: PyReadonlyArray1<'_, i32>,
        file: PyReadonlyArray1<'_, i32>,
        offset_bytes: PyReadonlyArray1<'_, i64>,
        length_bytes: PyReadonlyArray1<'_, i64>,
        row_class: PyReadonlyArray1<'_, u32>,
        ops: PyReadonlyArray1<'_, u8>,
        stream: PyReadonlyArray1<'_, u16>,
        origin: PyReadonlyArray1<'_, u16>,
        folder: Option<PyReadonlyArray1<'_, u16>>,
        time_ns: Option<PyReadonlyArray1<'_, i64>>,
    ) -> PyResult<()> {
        let batch = Batch {
            op: op.as_slice()?,
            file: file.as_slice()?,
            offset: offset_bytes.as_slice()?,
            length: length_bytes.as_slice()?,
            time: time_ns.as_ref().map_or(Ok(&[][..]), |time| time.as_slice())?,
            class: row_class.as_slice()?,
            ops: ops.as_slice()?,
            stream: stream.as_slice()?,
            origin: origin.as_slice()?,
            folder: folder.as_ref().map_or(Ok(&[][..]), |folder| folder.as_slice())?,
        };
        self.get().push(&batch).map_err(|e| trace_error(&e))
    }

    #[pyo3(signature = (writeback, copies = 1, hook = None))]
    fn footprint<'py>(
        &self,
        py: Python<'py>,
        writeback: &str,
        copies: u32,
        hook: Option<Py<PyAny>>,
    ) -> Dict<'py> {
        let system = file_system(writeback)?;
        let mut hook = Hook { callback: hook, raised: None };
        let footprint = py.detach(|| {
            self.get().footprint_watched(&system, copies, &mut |share| hook.share(share))
        });
        let ControlFlow::Continue(footprint) = footprint else { return Err(hook.stopped()) };
        Ok(dict! {
            py,
            "peak_bytes" = footprint.peak_blocks * SLOT_BYTES,
            "end_bytes" = footprint.end_blocks * SLOT_BYTES,
            "written_bytes" = footprint.written_blocks * SLOT_BYTES
        })
    }

    #[pyo3(signature = (
        capacity_bytes, writeback, repeats = None, fills = None, *, allocator = "next-fit",
        trim = true, copies = 1, hook = None
    ))]
    fn lay_out(
        &self,
        py: Python<'_>,
        capacity_bytes: u64,
        writeback: &str,
        repeats: Option<u32>,
        fills: Option<f64>,
        allocator: &str,
        trim: bool,
        copies: u32,
        hook: Option<Py<PyAny>>,
    ) -> PyResult<PyBlockTrace> {
        let allocator = Allocator::named(allocator)
            .ok_or_else(|| unknown("allocator", allocator, &allocators()))?;
        let how = LayOut {
            capacity_blocks: u32::try_from(capacity_bytes / SLOT_BYTES).unwrap_or(u32::MAX),
            file_system: FileSystem { allocator, trim, ..file_system(writeback)? },
            copies,
            repeats: match (repeats, fills) {
                (_, Some(fills)) => Repeats::Fills(fills),
                (times, None) => Repeats::Times(times.unwrap_or(1)),
            },
        };
        let mut hook = Hook { callback: hook, raised: None };
        let laid = py.detach(|| self.get().lay_out(&how, &mut |share| hook.share(share)));
        let inner = laid.map_err(|error| match error {
            TraceError::Stopped => hook.stopped(),
            error => trace_error(&error),
        })?;
        Ok(PyBlockTrace {
            requests: inner.requests.len(),
            written_bytes: inner.written_blocks * SLOT_BYTES,
            peak_bytes: inner.peak_blocks * SLOT_BYTES,
            mean_bytes: inner.mean_blocks * SLOT_BYTES,
            redrawn_bytes: inner.redrawn_blocks * SLOT_BYTES,
            undrawn_bytes: inner.undrawn_blocks * SLOT_BYTES,
            rounds: inner.rounds,
            inner,
            deaths: OnceLock::new(),
        })
    }

    fn __len__(&self) -> usize {
        self.get().all.len()
    }

    fn __repr__(&self) -> String {
        format!("FileTrace(rows={})", self.get().all.len())
    }
}

#[pyclass(name = "BlockTrace", module = "writecliff._native", frozen)]
pub(crate) struct PyBlockTrace {
    inner: BlockTrace,
    #[pyo3(get)]
    requests: usize,
    #[pyo3(get)]
    written_bytes: u64,
    #[pyo3(get)]
    peak_bytes: u64,
    #[pyo3(get)]
    mean_bytes: u64,
    #[pyo3(get)]
    redrawn_bytes: u64,
    #[pyo3(get)]
    undrawn_bytes: u64,
    #[pyo3(get)]
    rounds: u32,
    /// Death times, computed when the oracle first needs them.
    deaths: OnceLock<Vec<u32>>,
}

impl PyBlockTrace {
    fn deaths(&self, scheme: Scheme) -> &[u32] {
        match scheme {
            Scheme::Oracle => self.deaths.get_or_init(|| deaths(&self.inner)),
            _ => &[],
        }
    }
}

#[pymethods]
impl PyBlockTrace {
    #[pyo3(signature = (
        device, scheme, streams, *, mistag = 0.0, seed = 1, timed_bytes = 0,
        queue_depth = 32, readers = 4, command_bytes = 131_072, reads_per_block = None,
        hook = None
    ))]
    fn replay<'py>(
        &self,
        py: Python<'py>,
        device: &PyDevice,
        scheme: &str,
        streams: u16,
        mistag: f64,
        seed: u64,
        timed_bytes: u64,
        queue_depth: u32,
        readers: u32,
        command_bytes: u32,
        reads_per_block: Option<f64>,
        hook: Option<Py<PyAny>>,
    ) -> Dict<'py> {
        let config = device.ssd(seed)?;
        let scheme = self.checked(scheme, streams, &config)?;
        let timed = (timed_bytes > 0).then(|| Timed {
            queue_depth: queue_depth.max(1),
            readers,
            reads_per_block,
            command_blocks: (command_bytes / SLOT_BYTES as u32).max(1),
            written_blocks: timed_bytes / SLOT_BYTES,
        });
        let options = ReplayOptions { scheme, streams, mistag, seed, timed };
        let make = || {
            Ssd::new(config.clone()).map(|mut ssd| {
                ssd.administration().fdp_enable_all_events();
                ssd
            })
        };
        let mut hook = Hook { callback: hook, raised: None };
        let outcome =
            py.detach(|| replay::run(&make, &self.inner, self.deaths(scheme), &options, &mut hook));
        if let Some(raised) = hook.raised {
            return Err(raised);
        }
        let outcome = outcome.map_err(|e| errors::config(&e.to_string(), None))?;
        outcome_to_dict(py, outcome)
    }

    fn __repr__(&self) -> String {
        format!("BlockTrace(requests={}, rounds={})", self.requests, self.rounds)
    }
}

impl PyBlockTrace {
    fn checked(
        &self,
        scheme: &str,
        streams: u16,
        config: &writecliff_ssd::DeviceConfig,
    ) -> PyResult<Scheme> {
        let scheme = Scheme::named(scheme).ok_or_else(|| {
            let names = Scheme::ALL.map(Scheme::name).join(", ");
            errors::config(&format!("unknown scheme '{scheme}'; known: {names}"), None)
        })?;
        if streams == 0 || streams > config.ftl.streams {
            let message = format!(
                "{streams} streams requested, but the drive has only {}",
                config.ftl.streams
            );
            return Err(errors::config(&message, None));
        }
        if config.user_capacity.0 / SLOT_BYTES < u64::from(self.inner.capacity_blocks) {
            let message = "the trace was laid out for a larger drive; lay it out for this drive";
            return Err(errors::config(message, None));
        }
        Ok(scheme)
    }
}

fn outcome_to_dict(py: Python<'_>, outcome: ReplayOutcome) -> Dict<'_> {
    let (begin, end) = &outcome.statistics;
    let both = (data_placement::statistics(py, begin)?, data_placement::statistics(py, end)?);
    let seen = outcome.data_placement.as_ref();
    let oracle = outcome.bucketing.map(|bucketing| match bucketing {
        Bucketing::Lifetimes => "lifetimes".to_owned(),
        Bucketing::Epochs(blocks) => format!("epochs of {}", megabytes(blocks)),
        Bucketing::Powers(blocks) => format!("powers from {}", megabytes(blocks)),
        Bucketing::LeastSpare => "bounds of least spare space".to_owned(),
        Bucketing::Given => "the rules".to_owned(),
    });
    Ok(dict! {
        py,
        "waf" = outcome.write_amplification(),
        "before" = counters_to_dict(py, &Counters::Ssd(outcome.before))?,
        "after" = counters_to_dict(py, &Counters::Ssd(outcome.after))?,
        "statistics" = both,
        "data_placement" = seen.map(|seen| data_placement::status(py, seen)).transpose()?,
        outcome.{overflow},
        "host_bytes" = column(py, &outcome.series, |row| row.0 * SLOT_BYTES),
        "nand_bytes" = column(py, &outcome.series, |row| row.1 * SLOT_BYTES),
        "streams" = outcome.ledger.streams,
        "buckets" = BUCKETS,
        "blocks" = PyArray1::from_slice(py, &outcome.ledger.counts),
        "reads" = PyHistogram::of(outcome.reads),
        "writes" = PyHistogram::of(outcome.writes),
        outcome.{timed_ns, timed_written_bytes},
        "oracle" = oracle
    })
}

fn megabytes(blocks: u32) -> String {
    format!("{:.1} MB", f64::from(blocks) * SLOT_BYTES as f64 / 1e6)
}

type Numbers<'py> = Bound<'py, PyArray1<u32>>;

#[pyfunction]
#[pyo3(signature = (path, thread, process, hint, size = None))]
pub(crate) fn row_classes<'py>(
    py: Python<'py>,
    path: PyReadonlyArray1<'py, i32>,
    thread: PyReadonlyArray1<'py, i32>,
    process: PyReadonlyArray1<'py, i32>,
    hint: PyReadonlyArray1<'py, i8>,
    size: Option<PyReadonlyArray1<'py, u16>>,
) -> PyResult<(Numbers<'py>, Numbers<'py>)> {
    let labels = Labels {
        path: path.as_slice()?,
        thread: thread.as_slice()?,
        process: process.as_slice()?,
        hint: hint.as_slice()?,
        size: size.as_ref().map_or(Ok(&[][..]), |size| size.as_slice())?,
    };
    let classes = Classes::of(&labels).map_err(|e| trace_error(&e))?;
    Ok((PyArray1::from_vec(py, classes.of_row), PyArray1::from_vec(py, classes.first)))
}

#[pyfunction]
pub(crate) fn assign_schemes() -> Vec<&'static str> {
    Scheme::ALL.map(Scheme::name).to_vec()
}

#[pyfunction]
pub(crate) fn allocators() -> Vec<&'static str> {
    Allocator::ALL.map(Allocator::name).to_vec()
}

#[pyfunction]
pub(crate) fn writebacks() -> Vec<&'static str> {
    WriteBack::ALL.map(WriteBack::name).to_vec()
}

#[pyfunction]
pub(crate) fn synthetic_trace(
    py: Python<'_>,
    table_bytes: u64,
    chunk_bytes: u64,
    logged_bytes: u64,
    seed: u64,
) -> Dict<'_> {
    if chunk_bytes == 0 || table_bytes < chunk_bytes {
        return Err(errors::config(
            "the table must have room for a chunk of at least one byte",
            None,
        ));
    }
    let store = synthetic::Store { table_bytes, chunk_bytes, logged_bytes, seed };
    let events = py.detach(|| synthetic::events(&store));
    Ok(dict! {
        py,
        "origins" = synthetic::ORIGINS.to_vec(),
        "op" = column(py, events.all.iter(), |event| event.op as u8),
        "file" = column(py, events.all.iter(), |event| event.file),
        "offset_bytes" = column(py, events.all.iter(), |event| event.offset),
        "length_bytes" = column(py, events.all.iter(), |event| event.length),
        "origin" = column(py, events.all.iter(), |event| event.origin)
    })
}
