//! Served drive behind an NVMe controller, and the NVMe/TCP transport.
//!
//! A [`Target`] is an NVM subsystem with its hosts. Locks are acquired in the order subsystem,
//! drive, outbox, contents. The thread on which the drive completes an I/O builds the reply,
//! without holding the subsystem's lock. Failed commands need the lock because the error log
//! records them; the connection's own thread completes these commands.

mod connection;
mod drive;
mod replier;
mod target;

pub use drive::SimulatedDrive;
pub use target::{Target, TargetOptions};
