//! `KernelTrace`, which reads a tracing instance of the kernel and returns requests and events as
//! columns.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};
use writecliff_base::SECTOR_BYTES;

use numpy::PyArray1;
use pyo3::prelude::*;
use writecliff_tracefs::{
    Buffers, Capture, EventFormat, FormatError, Operation, PageLayout, Request, Requests,
};

use crate::dict::{Dict, column, dict};
use crate::errors;
use crate::panics::locked;

struct Parts {
    buffers: Buffers,
    capture: Capture,
}

#[pyclass(module = "writecliff._native", frozen)]
pub(crate) struct KernelTrace {
    instance: PathBuf,
    first_sector: u64,
    parts: Mutex<Parts>,
}

impl KernelTrace {
    fn parts(&self) -> MutexGuard<'_, Parts> {
        locked(&self.parts)
    }
}

#[pymethods]
impl KernelTrace {
    fn __repr__(&self) -> String {
        format!("KernelTrace({})", self.instance.display())
    }

    /// Opens the buffers of `instance`; the `formats` files describe its events.
    #[new]
    fn new(
        instance: &str,
        header_page: &str,
        formats: Vec<String>,
        others: Vec<(String, Vec<String>)>,
        sectors: (u64, u64),
    ) -> PyResult<Self> {
        let instance = PathBuf::from(instance);
        let capture = capture_of(&formats, &others, sectors).map_err(|e| config(&e))?;
        let layout = PageLayout::parse(header_page).map_err(|e| config(&e))?;
        let buffers = Buffers::open(&instance, layout).map_err(|e| errors::state(&instance, &e))?;
        Ok(Self {
            instance,
            first_sector: sectors.0,
            parts: Mutex::new(Parts { buffers, capture }),
        })
    }

    fn drain<'py>(&self, py: Python<'py>, began_ns: u64, until_ns: u64, last: bool) -> Dict<'py> {
        let mut guard = self.parts();
        let Parts { buffers, capture } = &mut *guard;
        let requests: Vec<Request> = py
            .detach(|| {
                buffers.drain(|time_ns, event| capture.record(time_ns, event))?;
                capture.settle(if last { u64::MAX } else { until_ns });
                if last {
                    capture.requests.finish();
                }
                let moved = |request: &Request| {
                    request.event.operation == Operation::Flush || request.event.sectors > 0
                };
                Ok::<_, std::io::Error>(capture.requests.take().filter(moved).collect())
            })
            .map_err(|e| errors::state(&self.instance, &e))?;
        let events = guard.capture.rows.take();
        Ok(dict! {
            py,
            ..request_columns(py, &requests, began_ns, self.first_sector)?,
            "event_time_ns" = PyArray1::from_vec(py, events.time_ns),
            "event_kind" = PyArray1::from_vec(py, events.kind),
            "event_thread_id" = PyArray1::from_vec(py, events.thread_id),
            "event_values" = PyArray1::from_vec(py, events.values)
        })
    }

    fn close(&self) {
        self.parts().buffers.close();
    }

    #[getter]
    fn names(&self) -> Vec<String> {
        self.parts().capture.names.words.clone()
    }

    fn counts<'py>(&self, py: Python<'py>) -> Dict<'py> {
        let parts = self.parts();
        let Parts { buffers, capture } = &*parts;
        let anomalies = capture.requests.anomalies;
        Ok(dict! {
            py,
            capture.{events},
            buffers.{read_bytes, lost},
            anomalies.{unknown_completions, unissued, open, requeued, merged, other}
        })
    }
}

fn capture_of(
    formats: &[String],
    others: &[(String, Vec<String>)],
    sectors: (u64, u64),
) -> Result<Capture, FormatError> {
    let parsed = formats.iter().map(|text| EventFormat::parse(text));
    let parsed = parsed.collect::<Result<Vec<_>, _>>()?;
    let mut capture = Capture::new(&parsed, Requests::new(sectors.0, sectors.1))?;
    for (text, fields) in others {
        capture.rows.add_format(&EventFormat::parse(text)?, fields)?;
    }
    Ok(capture)
}

/// Returns the columns of a trace, with times since `began_ns`, or -1 for unknown times.
fn request_columns<'py>(
    py: Python<'py>,
    of: &[Request],
    began_ns: u64,
    first_sector: u64,
) -> Dict<'py> {
    let since = |time_ns: u64| match time_ns {
        0 => -1,
        time => time.saturating_sub(began_ns).cast_signed(),
    };
    let offset = |request: &Request| match request.event.operation {
        Operation::Flush => 0,
        _ => {
            SECTOR_BYTES.cast_signed()
                * request.event.sector.saturating_sub(first_sector).cast_signed()
        }
    };
    Ok(dict! {
        py,
        "time_ns" = column(py, of, |request| since(request.event.time_ns)),
        "issue_ns" = column(py, of, |request| since(request.issue_ns)),
        "complete_ns" = column(py, of, |request| since(request.complete_ns)),
        "offset_bytes" = column(py, of, offset),
        "length_bytes" =
            column(py, of, |request| SECTOR_BYTES.cast_signed() * i64::from(request.event.sectors)),
        "name" = column(py, of, |request| request.event.name.cast_signed()),
        "operation" = column(py, of, |request| request.event.operation as i32),
        "flags" = column(py, of, |request| i32::from(request.event.flags.0)),
        "thread_id" = column(py, of, |request| request.event.thread_id),
        "errno" = column(py, of, |request| request.event.errno.cast_signed())
    })
}

fn config(error: &FormatError) -> PyErr {
    errors::config(&format!("cannot parse the kernel's event description: {error}"), None)
}
