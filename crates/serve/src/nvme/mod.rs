//! Served drive behind an NVMe controller, and the NVMe/TCP transport.
//!
//! A [`Target`] is an NVM subsystem with its hosts. Locks are acquired in the order subsystem,
//! drive, outbox. Replies to I/O are built without holding the subsystem's lock, by the thread on
//! which the drive completes the I/O. Failed commands need the lock because the error log records
//! them; the connection's own thread completes these commands.

mod connection;
mod drive;
mod replier;
mod target;

pub use drive::SimulatedDrive;
pub use target::{Target, TargetOptions};
