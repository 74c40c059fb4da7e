//! `Server`, a simulated drive that is served in real time, and a workload for measuring servers.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::IntoPyDict;
use writecliff_base::{Bytes, Nanos, Prng};
use writecliff_bench::LoadRequest;
use writecliff_contents::{Contents, ContentsError, MemoryOptions};
use writecliff_host_interface::Operation;
use writecliff_runner::AnyDrive;
use writecliff_serve::listener::InvalidAddress;
use writecliff_serve::nvme::{Target, TargetOptions};
use writecliff_serve::state::{self, StateError};
use writecliff_serve::statistics::{OPERATION_NAMES, Operations, Snapshot};
use writecliff_serve::{
    Address, CutPlan, CutWhen, Listener, PowerCut, Served, ServedParts, Timing, Trace, nbd,
};
use writecliff_ssd::Rebuild;

use crate::device::PyDevice;
use crate::dict::{Dict, Dicts, column, dict};
use crate::drive::Drive;
use crate::histogram::PyHistogram;
use crate::panics::{Watch, locked};
use crate::step::counters_to_dict;
use crate::{data_placement, errors};

struct Running {
    served: Served,
    listeners: Vec<Listener>,
}

#[pyclass(module = "writecliff._native", frozen)]
pub(crate) struct Server {
    running: Mutex<Option<Running>>,
    panics: Watch,
    /// `true` if the previous server that used this state file was killed.
    recovered: bool,
    /// Buffer for the next trace requests.
    spare: Mutex<Trace>,
}

fn ended() -> PyErr {
    PyRuntimeError::new_err("the server has stopped")
}

fn parsed(address: &str) -> PyResult<Address> {
    address.parse().map_err(|error: InvalidAddress| errors::config(&error.to_string(), None))
}

impl Server {
    fn slot(&self) -> MutexGuard<'_, Option<Running>> {
        locked(&self.running)
    }

    /// Returns the served drive. Raises `PanicException` if a thread has panicked because the drive
    /// state is then invalid.
    fn served(&self) -> PyResult<Served> {
        self.panics.check()?;
        Ok(self.slot().as_ref().ok_or_else(ended)?.served.clone())
    }

    /// Keeps listeners open until the server stops.
    fn keep(&self, listeners: impl IntoIterator<Item = Listener>) -> PyResult<()> {
        self.slot().as_mut().ok_or_else(ended)?.listeners.extend(listeners);
        Ok(())
    }

    /// Calls `ask` without holding the interpreter lock. If any thread panics during the call,
    /// raises `PanicException` with the first panic.
    fn asked<T: Send>(&self, py: Python<'_>, ask: impl FnOnce(&Served) -> T + Send) -> PyResult<T> {
        let served = self.served()?;
        let answer = py.detach(|| catch_unwind(AssertUnwindSafe(|| ask(&served))));
        answer.or_else(|panic| {
            self.panics.check()?;
            resume_unwind(panic)
        })
    }
}

#[pymethods]
impl Server {
    fn __repr__(&self) -> String {
        match &*self.slot() {
            Some(running) => format!(
                "Server({} of {}, {} listeners)",
                running.served.config().identity().name,
                running.served.capacity(),
                running.listeners.len()
            ),
            None => "Server(ended)".to_owned(),
        }
    }

    #[new]
    #[pyo3(signature = (
        device, seed, *, slow_down = None, like = None, state = None, contents_file = None,
        compress = false, memory_limit_bytes = None
    ))]
    fn new(
        py: Python<'_>,
        device: &PyDevice,
        seed: u64,
        slow_down: Option<f64>,
        like: Option<&Drive>,
        state: Option<PathBuf>,
        contents_file: Option<PathBuf>,
        compress: bool,
        memory_limit_bytes: Option<u64>,
    ) -> PyResult<Self> {
        let config = device.inner.with_seed(seed);
        let capacity = config.user_capacity();
        let timing = slow_down.map_or(Timing::Fast, |slow_down| Timing::Real { slow_down });
        let mut drive = AnyDrive::losing_power(config).map_err(|e| device.not_made(&e))?;
        if let Some(like) = like {
            let other = like.get()?;
            let (drive, other) = (&mut drive, &*other);
            let copied = py.detach(|| drive.copy_from(&**other));
            copied.map_err(|e| errors::config(&e.to_string(), None))?;
        }
        let limit = memory_limit_bytes.map(Bytes);
        let contents = match contents_file {
            Some(path) => Contents::in_file(capacity, &path).map_err(|e| match e {
                ContentsError::Io(e) if e.raw_os_error().is_none() => {
                    errors::config(&e.to_string(), None)
                }
                other => errors::state(&path, &other),
            })?,
            None => Contents::in_memory(capacity, MemoryOptions { compress, limit }),
        };
        let mut parts = ServedParts::new(drive, contents);
        let mut recovered = false;
        if let Some(path) = state {
            let opened = py.detach(|| state::open(&mut parts, &path));
            recovered = opened.map_err(|e| state_error(&path, &e))?;
        }
        let panics = Watch::new();
        let served = py.detach(|| Served::new(parts, timing));
        let running = Running { served, listeners: Vec::new() };
        Ok(Self { running: Mutex::new(Some(running)), recovered, panics, spare: Mutex::default() })
    }

    #[getter]
    fn recovered(&self) -> bool {
        self.recovered
    }

    fn listen_nbd(&self, address: &str) -> PyResult<String> {
        let listener = Listener::new(&self.served()?, &parsed(address)?, nbd::connection);
        let listener = listener.map_err(|e| errors::state(address, &e))?;
        let real = listener.address.to_string();
        self.keep([listener])?;
        Ok(real)
    }

    #[pyo3(signature = (addresses, *, serial, hosts = None))]
    fn listen_nvme(
        &self,
        addresses: Vec<String>,
        serial: String,
        hosts: Option<Vec<String>>,
    ) -> PyResult<(Vec<String>, String)> {
        let served = self.served()?;
        let target = Target::new(&served, TargetOptions { serial, hosts });
        let mut listeners = Vec::new();
        for address in addresses {
            let of = target.clone();
            let listener = Listener::new(&served, &parsed(&address)?, move |outbox, served| {
                of.connection(&outbox, &served);
            });
            listeners.push(listener.map_err(|e| errors::state(&address, &e))?);
        }
        // The discovery service reports the ports, so they must be determined first.
        target.advertise(listeners.iter().map(|listener| &listener.address));
        let real = listeners.iter().map(|listener| listener.address.to_string()).collect();
        self.keep(listeners)?;
        Ok((real, target.nqn()))
    }

    fn seed_cuts(&self, py: Python<'_>, seed: u64) -> PyResult<()> {
        self.asked(py, |served| served.seed_cuts(seed))
    }

    fn power_cut<'py>(&self, py: Python<'py>) -> Dict<'py> {
        let cut = self.asked(py, Served::power_cut)?;
        power_cut(py, &cut.map_err(|e| errors::state("the contents", &e))?)
    }

    #[pyo3(signature = (*, write = None, after_ns = None, cuts = 1))]
    fn plan_cuts(
        &self,
        py: Python<'_>,
        write: Option<u64>,
        after_ns: Option<(u64, u64)>,
        cuts: u32,
    ) -> PyResult<()> {
        let when = match (write, after_ns) {
            (Some(write), None) => CutWhen::AtWrite(write),
            (None, Some((from, to))) => CutWhen::After(Nanos(from), Nanos(to)),
            _ => return Err(errors::config("a power cut plan requires a write or a time", None)),
        };
        self.asked(py, |served| served.plan_cuts(CutPlan { when, cuts }))
    }

    fn power_cuts<'py>(&self, py: Python<'py>) -> Dicts<'py> {
        let cuts = self.asked(py, Served::power_cuts)?;
        cuts.iter().map(|cut| power_cut(py, cut)).collect()
    }

    fn snapshot<'py>(&self, py: Python<'py>) -> Dict<'py> {
        let (snapshot, recent) = self.asked(py, |served| (served.snapshot(), served.recent()))?;
        let placement = snapshot.data_placement.as_ref();
        Ok(dict! {
            py,
            "streams" = streams(py, &snapshot)?,
            "wall_ns" = snapshot.wall.0,
            "drive_time_ns" = snapshot.drive_time.0,
            "operations" = operations(py, snapshot.operations.clone())?,
            "recent" = operations(py, recent.operations)?,
            "lateness_share" = snapshot.lateness_share(),
            "is_late" = snapshot.is_late(),
            "lateness" = PyHistogram::of(snapshot.lateness),
            "recent_lateness" = PyHistogram::of(recent.lateness),
            "counters" = counters_to_dict(py, &snapshot.counters)?,
            snapshot.{free_units},
            "temperature_c" = snapshot.celsius,
            "connections" = snapshot.sessions,
            snapshot.{outstanding},
            "contents_bytes" = snapshot.used.0,
            "data_placement" = placement.map(|seen| data_placement::status(py, seen)).transpose()?,
            "mixed_moved_bytes" = snapshot.moved.map(|moved| moved.mixed_bytes),
            "power_cycles" = snapshot.power.cycles
        })
    }

    fn keep_trace(&self, py: Python<'_>) -> PyResult<()> {
        self.asked(py, Served::keep_trace)
    }

    fn take_trace<'py>(&self, py: Python<'py>) -> Dict<'py> {
        let mut spare = locked(&self.spare);
        let empty = std::mem::take(&mut *spare);
        let mut trace = self.asked(py, |served| served.take_trace(empty))?.unwrap_or_default();
        let requests = &trace.requests;
        let result = dict! {
            py,
            "time_ns" = column(py, requests, |request| request.time.0),
            "offset_bytes" = column(py, requests, |request| request.offset),
            "length_bytes" = column(py, requests, |request| request.length),
            "session" = column(py, requests, |request| u64::from(request.session)),
            "stream" = column(py, requests, |request| u64::from(request.stream.0)),
            "operation" = column(py, requests, |request| request.operation as u64),
            trace.{lost}
        };
        trace.requests.clear();
        *spare = Trace { lost: 0, ..trace };
        Ok(result)
    }

    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        let listeners = self.slot().as_mut().map(|running| std::mem::take(&mut running.listeners));
        self.asked(py, |served| {
            served.stop();
            drop(listeners);
        })
    }

    #[pyo3(signature = (state = None))]
    fn end(&self, py: Python<'_>, state: Option<PathBuf>) -> PyResult<()> {
        self.panics.check()?;
        if self.slot().is_none() {
            return Ok(());
        }
        self.stop(py)?;
        let Some(Running { served, .. }) = self.slot().take() else { return Ok(()) };
        py.detach(|| {
            let parts = match served.into_parts() {
                Ok(parts) => parts,
                Err(_) if state.is_none() => return Ok(()), // There is no state file to save.
                Err(_) => return Err(PyRuntimeError::new_err("the drive is still in use")),
            };
            let path = state.as_deref();
            state::close(parts, path).map_err(|e| state_error(path.unwrap_or(Path::new("")), &e))
        })
    }
}

fn power_cut<'py>(py: Python<'py>, cut: &PowerCut) -> Dict<'py> {
    let lost = &cut.lost;
    let parts = cut.recovery.map(|of| rebuild_parts(py, &of.rebuild));
    Ok(dict! {
        py,
        "wall_ns" = cut.wall.0,
        cut.{seed, writes, outstanding},
        lost.{pages_open, pages_lost},
        "hold_up_ns" = cut.recovery.map(|of| of.hold_up.0),
        "rebuild_ns" = cut.recovery.map(|of| of.rebuild.total().0),
        "rebuild_parts_ns" = parts.transpose()?
    })
}

/// Returns the time to rebuild the mapping, by phase.
fn rebuild_parts<'py>(py: Python<'py>, rebuild: &Rebuild) -> Dict<'py> {
    let Rebuild { start, checkpoint, journal, scan, erase } = *rebuild;
    let names = ["start", "checkpoint", "journal", "scan", "erase"];
    let times = [start, checkpoint, journal, scan, erase].map(|time| time.0);
    names.into_iter().zip(times).into_py_dict(py)
}

fn operations(py: Python<'_>, all: Operations) -> Dict<'_> {
    let rows = OPERATION_NAMES.into_iter().zip(all.0).map(|(name, row)| {
        let latency = PyHistogram::of(row.latency);
        Ok((name, dict! { py, row.{requests, bytes}, "latency" = latency }))
    });
    rows.collect::<PyResult<Vec<_>>>()?.into_py_dict(py)
}

/// Returns the client writes by stream number, and the bytes moved for each stream, since serving
/// started.
fn streams<'py>(py: Python<'py>, of: &Snapshot) -> Dicts<'py> {
    let rows = of.streams.iter().map(|(&(number, drive_stream), &(requests, bytes))| {
        let moved = of.moved.as_ref().zip(drive_stream);
        Ok(dict! {
            py,
            "number" = number.0,
            "requests" = requests,
            "bytes" = bytes,
            "drive_stream" = moved.map(|(_, stream)| stream.0),
            "moved_bytes" = moved.map(|(moved, stream)| moved.bytes[stream.index()])
        })
    });
    rows.collect()
}

fn state_error(path: &Path, error: &StateError) -> PyErr {
    match error {
        StateError::Io(error) => errors::state(path, error),
        other => errors::config(&format!("{}: {other}", path.display()), None),
    }
}

#[pyfunction]
#[pyo3(signature = (
    address, *, protocol, write, block_bytes, range_bytes, queue_depth, requests, seed
))]
pub(crate) fn served_load<'py>(
    py: Python<'py>,
    address: &str,
    protocol: &str,
    write: bool,
    block_bytes: u32,
    range_bytes: u64,
    queue_depth: u32,
    requests: u64,
    seed: u64,
) -> Dict<'py> {
    let at = parsed(address)?;
    let operation = if write { Operation::Write } else { Operation::Read };
    let blocks = range_bytes / u64::from(block_bytes).max(1);
    if blocks == 0 || queue_depth == 0 || !block_bytes.is_multiple_of(4096) {
        let what = "a load needs blocks of a multiple of 4096 bytes, a range and a queue depth";
        return Err(errors::config(what, None));
    }
    let (mut random, mut left) = (Prng::new(seed), requests);
    let next = || {
        left = left.checked_sub(1)?;
        let offset = random.below(blocks) * u64::from(block_bytes);
        Some(LoadRequest { operation, offset, length: block_bytes })
    };
    let outcome = match protocol {
        "nbd" => py.detach(|| writecliff_bench::nbd::Client::connect(&at)?.run(queue_depth, next)),
        "nvme-tcp" => {
            py.detach(|| writecliff_bench::nvme::Client::connect(&at)?.run(queue_depth, next))
        }
        other => {
            let what = format!("unknown protocol '{other}'");
            return Err(errors::config(&what, Some("use nbd or nvme-tcp")));
        }
    };
    let outcome = outcome.map_err(|e| errors::state(address, &e))?;
    Ok(dict! { py, "latency" = PyHistogram::of(outcome.latency), outcome.{elapsed_ns} })
}
