//! `Issuer`, which issues the I/Os of a trace or workload to a real drive at their due times, and
//! `TraceFit`, which reports how a trace fits a drive.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};
use writecliff_base::Bytes;
use writecliff_issuer::generated::{Generated, lanes, times};
use writecliff_issuer::traced::{Fit, Fitting, Outside};
use writecliff_issuer::{
    Done, Feed, Feeder, Issue, JobTime, Lane, Measured, Shared, Target, feed, issue,
};
use writecliff_runner::outcome::JobOutcome;
use writecliff_traces::Record;
use writecliff_workload::WorkloadSpec;

use crate::dict::{Dict, column, dict};
use crate::errors;
use crate::histogram::PyHistogram;
use crate::panics::{Watch, locked};
use crate::step::{columns_to_dict, job_to_dict};
use crate::traces::{TraceReader, batch_of};

const OPERATION_NAMES: [&str; 4] = ["read", "write", "trim", "flush"];

#[pyclass(module = "writecliff._native", frozen)]
pub(crate) struct TraceFit {
    fit: Fit,
    fitting: Mutex<Fitting>,
}

#[pymethods]
impl TraceFit {
    #[new]
    #[pyo3(signature = (capacity_bytes, sector_bytes, *, wrap = false, volume = None, speed = 1.0))]
    fn new(
        capacity_bytes: u64,
        sector_bytes: u64,
        wrap: bool,
        volume: Option<u32>,
        speed: f64,
    ) -> PyResult<Self> {
        if sector_bytes == 0 || capacity_bytes < sector_bytes {
            return Err(errors::config(
                "the drive has no sectors: its capacity must be at least one sector",
                None,
            ));
        }
        if !(speed.is_finite() && speed > 0.0) {
            return Err(errors::config("the speed must be above 0", None));
        }
        let outside = if wrap { Outside::Wrap } else { Outside::Skip };
        let fit = Fit { capacity_bytes, sector_bytes, outside, volume, speed };
        Ok(Self { fit, fitting: Mutex::new(Fitting::new(fit)) })
    }

    fn __repr__(&self) -> String {
        format!("TraceFit({} bytes)", self.fit.capacity_bytes)
    }

    fn take(&self, py: Python<'_>, reader: &TraceReader) -> PyResult<bool> {
        py.detach(|| {
            let mut fitting = locked(&self.fitting);
            reader.each_batch(|batch, _| {
                fitting.take(batch, |_| true);
                Ok(())
            })
        })
    }

    fn add(
        &self,
        py: Python<'_>,
        columns: &Bound<'_, PyDict>,
        volumes: Vec<String>,
        processes: Vec<String>,
    ) -> PyResult<()> {
        drop((volumes, processes));
        let batch = batch_of(columns)?;
        py.detach(|| locked(&self.fitting).take(&batch, |_| true));
        Ok(())
    }

    fn totals<'py>(&self, py: Python<'py>) -> Dict<'py> {
        let fitted = locked(&self.fitting).fitted;
        Ok(dict! {
            py,
            "ios" = OPERATION_NAMES.into_iter().zip(fitted.ios).into_py_dict(py)?,
            "bytes" = OPERATION_NAMES.into_iter().zip(fitted.bytes).into_py_dict(py)?,
            fitted.{due_ns, end_bytes, other_volumes, outside, first_outside},
            fitted.{widened, too_long, moved}
        })
    }
}

/// Issuer arguments, stored until the issuer starts.
struct Prepared {
    fd: OwnedFd,
    feed: Feed,
    is_file: bool,
    lanes: Vec<Lane>,
    jobs: Vec<String>,
    times: Vec<JobTime>,
    interval_ns: u64,
    seed: u64,
    /// A workload for a drive with this capacity, and the feeder for its I/Os.
    generated: Option<(WorkloadSpec, Bytes, Feeder)>,
}

enum State {
    Prepared(Box<Prepared>),
    Running(JoinHandle<std::io::Result<Measured>>),
    Ended,
}

#[pyclass(module = "writecliff._native", frozen)]
pub(crate) struct Issuer {
    state: Mutex<State>,
    shared: Arc<Shared>,
    /// Feeder that supplies the I/Os of a trace; `None` once the trace has ended.
    feeder: Mutex<Option<(Feeder, Fitting)>>,
    jobs: Vec<String>,
    panics: Watch,
}

impl Issuer {
    fn of(prepared: Prepared, records: bool, feeder: Option<(Feeder, Fitting)>) -> Self {
        Self {
            jobs: prepared.jobs.clone(),
            state: Mutex::new(State::Prepared(Box::new(prepared))),
            shared: Arc::new(Shared::new(records)),
            feeder: Mutex::new(feeder),
            panics: Watch::new(),
        }
    }

    /// Feeds a batch; returns `false` once the issuer has stopped.
    fn give(&self, batch: &[Record]) -> bool {
        let mut feeder = locked(&self.feeder);
        let Some((to, fitting)) = &mut *feeder else { return false };
        fitting.take(batch, |io| to.add(io)) && to.hand_over()
    }
}

/// Duplicates the descriptor of a file that Python has opened.
fn duplicate(fd: RawFd) -> PyResult<OwnedFd> {
    // SAFETY: the caller's descriptor is open during the call.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    borrowed.try_clone_to_owned().map_err(PyOSError::new_err)
}

#[pymethods]
impl Issuer {
    fn __repr__(&self) -> String {
        format!("Issuer({})", self.jobs.join(", "))
    }

    #[staticmethod]
    #[pyo3(signature = (
        fd, fit, *, is_file, in_flight, seed, interval_ns, compressible_pct = 0.0, records = false
    ))]
    fn of_trace(
        fd: RawFd,
        fit: &TraceFit,
        is_file: bool,
        in_flight: u32,
        seed: u64,
        interval_ns: u64,
        compressible_pct: f64,
        records: bool,
    ) -> PyResult<Self> {
        let (feeder, feed) = feed();
        let prepared = Prepared {
            fd: duplicate(fd)?,
            feed,
            is_file,
            lanes: vec![Lane::of_trace(in_flight.max(1), compressible_pct)],
            jobs: vec!["trace".to_owned()],
            times: vec![JobTime::default()],
            interval_ns: interval_ns.max(1),
            seed,
            generated: None,
        };
        Ok(Self::of(prepared, records, Some((feeder, Fitting::new(fit.fit)))))
    }

    #[staticmethod]
    #[pyo3(signature = (fd, workload, *, is_file, capacity_bytes, records = false))]
    fn of_workload(
        fd: RawFd,
        workload: &str,
        is_file: bool,
        capacity_bytes: u64,
        records: bool,
    ) -> PyResult<Self> {
        let spec = WorkloadSpec::from_json(workload).map_err(|e| errors::spec(&e))?;
        let capacity = Bytes(capacity_bytes);
        Generated::new(&spec, capacity).map_err(|e| errors::spec(&e))?;
        let (feeder, feed) = feed();
        let prepared = Prepared {
            fd: duplicate(fd)?,
            feed,
            is_file,
            lanes: lanes(&spec.resolved(capacity)),
            times: times(&spec.resolved(capacity)),
            jobs: spec.jobs.iter().map(|job| job.name.clone()).collect(),
            interval_ns: spec.interval_ns.max(1),
            seed: spec.seed,
            generated: Some((spec, capacity, feeder)),
        };
        Ok(Self::of(prepared, records, None))
    }

    fn begin(&self) -> PyResult<()> {
        let mut state = locked(&self.state);
        let State::Prepared(mut prepared) = std::mem::replace(&mut *state, State::Ended) else {
            return Err(PyRuntimeError::new_err("the issuer has already started"));
        };
        if let Some((spec, capacity, feeder)) = prepared.generated.take() {
            std::thread::spawn(move || {
                // The validation step has already created this generator once.
                if let Ok(generated) = Generated::new(&spec, capacity) {
                    generated.feed(feeder);
                }
            });
        }
        let shared = Arc::clone(&self.shared);
        *state = State::Running(std::thread::spawn(move || {
            let Prepared { fd, feed, is_file, lanes, times, interval_ns, seed, .. } = *prepared;
            let target = Target { fd: fd.as_fd(), is_file };
            issue(&Issue { target, lanes, jobs: times, interval_ns, seed }, feed, &shared)
        }));
        Ok(())
    }

    fn take(&self, py: Python<'_>, reader: &TraceReader) -> PyResult<bool> {
        py.detach(|| {
            let mut taken = true;
            let more = reader.each_batch(|batch, _| {
                taken = taken && self.give(batch);
                Ok(())
            })?;
            Ok(more && taken)
        })
    }

    fn add(
        &self,
        py: Python<'_>,
        columns: &Bound<'_, PyDict>,
        volumes: Vec<String>,
        processes: Vec<String>,
    ) -> PyResult<()> {
        drop((volumes, processes));
        let batch = batch_of(columns)?;
        py.detach(|| self.give(&batch));
        Ok(())
    }

    fn end(&self, py: Python<'_>) {
        py.detach(|| *locked(&self.feeder) = None);
    }

    fn stop(&self) {
        self.shared.stop();
    }

    fn abandon(&self) {
        self.shared.abandon();
    }

    fn is_done(&self) -> bool {
        match &*locked(&self.state) {
            State::Running(thread) => thread.is_finished(),
            State::Prepared(_) => false,
            State::Ended => true,
        }
    }

    fn live<'py>(&self, py: Python<'py>) -> Dict<'py> {
        self.panics.check()?;
        let live = self.shared.live();
        Ok(dict! { py, live.{elapsed_ns, ios, bytes, due_ns, in_flight} })
    }

    fn done<'py>(&self, py: Python<'py>) -> Dict<'py> {
        done_columns(py, &self.shared.take())
    }

    fn finish<'py>(&self, py: Python<'py>) -> Dict<'py> {
        let state = std::mem::replace(&mut *locked(&self.state), State::Ended);
        let State::Running(thread) = state else {
            return Err(PyRuntimeError::new_err("the issuer is not running"));
        };
        let ended = py.detach(|| thread.join());
        self.panics.check()?;
        let measured = ended.map_err(|_| PyRuntimeError::new_err("the issuing thread panicked"))?;
        results(py, measured.map_err(PyOSError::new_err)?, &self.jobs)
    }
}

fn done_columns<'py>(py: Python<'py>, done: &[Done]) -> Dict<'py> {
    Ok(dict! {
        py,
        "intended_ns" = column(py, done, |record| record.io.due_ns),
        "issue_ns" = column(py, done, |record| record.issue_ns),
        "complete_ns" = column(py, done, |record| record.complete_ns),
        "offset_bytes" = column(py, done, |record| record.io.offset),
        "length_bytes" = column(py, done, |record| record.io.length),
        "operation" = column(py, done, |record| record.io.operation as u8),
        "result" = column(py, done, |record| record.result)
    })
}

fn results<'py>(py: Python<'py>, measured: Measured, names: &[String]) -> Dict<'py> {
    let jobs = names.iter().zip(measured.jobs).map(|(name, job)| {
        let (schedule, flush) = (job.schedule, job.flush);
        let operations = job.operations.map(|operation| (operation.ios > 0).then_some(operation));
        let job = JobOutcome {
            name: name.clone(),
            began_ns: job.began_ns,
            elapsed_ns: job.elapsed_ns,
            operations,
            flush: (flush.ios > 0).then_some(flush),
            thread_ios: Vec::new(),
            ended_by: None,
            queue_depth: 0,
            adherence: schedule.adherence(),
        };
        job_to_dict(py, job)
    });
    let lateness = measured.lateness;
    let failure = measured.failure.map(|failure| {
        let name = OPERATION_NAMES[failure.io.operation as usize];
        (name, failure.io.offset, failure.io.length, failure.errno, failure.moved)
    });
    Ok(dict! {
        py,
        measured.{started_ns, elapsed_ns},
        "jobs" = jobs.collect::<PyResult<Vec<_>>>()?,
        "intervals" = columns_to_dict(py, measured.intervals)?,
        "lateness" = PyHistogram::of(lateness.each),
        lateness.{waited, left, intended_ns, length_ns},
        "failure" = failure,
        measured.{failures, abandoned, in_flight_max, is_pinned}
    })
}
