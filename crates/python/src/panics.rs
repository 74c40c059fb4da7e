//! Records panics in any thread of this module instead of printing the default report to stderr.
//!
//! A panic during a call from Python becomes a `PanicException` there. A panic in a server or
//! issuer thread has no caller, so servers and issuers check for panics since their creation
//! ([`Watch`]).

use std::backtrace::Backtrace;
use std::panic::PanicHookInfo;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::panic::PanicException;
use pyo3::prelude::*;

/// A panic: its message, its source location, and the stack trace.
struct Panic {
    message: String,
    place: String,
    stack: String,
}

/// The first panics of the process; later panics are mostly consequences of these.
static PANICS: Mutex<Vec<Panic>> = Mutex::new(Vec::new());
const PANICS_MAX: usize = 64;

/// Locks `mutex`, even after a panic in a thread that held the lock.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts recording panics.
pub(crate) fn record() {
    std::panic::set_hook(Box::new(add));
}

fn add(info: &PanicHookInfo<'_>) {
    let payload = info.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let message = text.unwrap_or("no panic message").to_owned();
    let place = info.location().map_or_else(String::new, ToString::to_string);
    let stack = Backtrace::force_capture().to_string();
    let mut panics = locked(&PANICS);
    if panics.len() < PANICS_MAX {
        panics.push(Panic { message, place, stack });
    }
}

/// Detector of panics in other threads.
pub(crate) struct Watch {
    before: usize,
}

impl Watch {
    pub(crate) fn new() -> Self {
        Self { before: locked(&PANICS).len() }
    }

    /// Raises `PanicException` if a thread has panicked since the creation of this value.
    pub(crate) fn check(&self) -> PyResult<()> {
        match locked(&PANICS).get(self.before) {
            Some(panic) => Err(PanicException::new_err((panic.message.clone(),))),
            None => Ok(()),
        }
    }
}

#[pyfunction]
pub(crate) fn recorded_panics() -> Vec<(String, String, String)> {
    let panics = locked(&PANICS);
    panics.iter().map(|p| (p.message.clone(), p.place.clone(), p.stack.clone())).collect()
}

#[pyfunction]
#[pyo3(signature = (message, *, in_thread = false))]
pub(crate) fn panic_for_test(py: Python<'_>, message: String, in_thread: bool) {
    if in_thread {
        let ended = py.detach(|| std::thread::spawn(move || panic!("{message}")).join());
        debug_assert!(ended.is_err());
    } else {
        panic!("{message}");
    }
}
