//! Served drive behind an NVMe controller, and the NVMe/TCP transport.
//!
//! A [`Target`] is an NVM subsystem with its hosts. Locks are acquired in the order subsystem,
//! drive, outbox. Replies to I/O are built without holding the subsystem's lock, by the thread on
//! which the drive completes the I/O. Failed commands need the lock because the error log records
//! them; the connection's own thread completes these commands.
//!
//! | file | content |
//! |---|---|
//! | `identity.rs` | identity of the drive, for Identify commands |
//! | `drive.rs` | the served drive behind the controller |
//! | `target.rs` | the subsystem, the connections of its admin queues |
//! | `connection.rs` | one connection: its commands become work for the drive |
//! | `replier.rs` | its sending half: completions and data |

mod connection;
mod drive;
mod identity;
mod replier;
mod target;

pub use drive::SimulatedDrive;
pub use target::{Target, TargetOptions};
