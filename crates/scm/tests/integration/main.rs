//! Tests a drive with storage-class memory through its host interface: timing, states and device
//! files.
//!
//! All tests are in one program because each additional program would link the whole simulator
//! again.

mod common;
mod device_files;
mod hostile;
#[path = "../../../base/tests/support/mutate.rs"]
mod mutate;
mod state;
mod timing;
