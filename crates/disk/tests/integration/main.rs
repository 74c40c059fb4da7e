//! Tests of a disk through its host interface: timing, states and device files.
//!
//! All tests are one program, because each further program would link the whole simulator again.

mod common;
mod device_files;
mod hostile;
#[path = "../../../base/tests/support/mutate.rs"]
mod mutate;
mod state;
mod timing;
