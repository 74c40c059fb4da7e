//! A drive of storage-class memory as a host sees it: times, states, and valid device files.
//!
//! One program, because each would compile the whole simulator again.

mod common;
mod device_files;
mod hostile;
#[path = "../../../base/tests/support/mutate.rs"]
mod mutate;
mod state;
mod timing;
