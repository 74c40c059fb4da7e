//! Interface of the drive behind a controller, which its owner implements; I/O is `Work` instead.

use writecliff_base::{Bytes, Nanos};
use writecliff_host_interface::placement::{DataPlacement, FdpConfiguration, Refusal};

use crate::error_log::{ErrorEntry, ErrorLog};
use crate::status::Status;

/// Drive properties that do not change while the drive is served.
#[derive(Clone, Debug, PartialEq)]
pub struct Identity {
    /// Serial number, at most 20 characters.
    pub serial: String,
    /// Model number, at most 40 characters.
    pub model: String,
    /// Firmware revision, at most 8 characters.
    pub firmware: String,
    /// IEEE Extended Unique Identifier of the namespace.
    pub eui64: [u8; 8],
    /// Namespace Globally Unique Identifier.
    pub nguid: [u8; 16],
    /// Namespace UUID.
    pub uuid: [u8; 16],
    /// Capacity that the host can address.
    pub capacity: Bytes,
    /// Supported logical block sizes: powers of two, at least 512.
    pub lba_formats: Vec<Bytes>,
    /// `true` if a write cache without power-loss protection makes flushes and FUA effective.
    pub volatile_cache: bool,
    /// Preferred write granularity, and deallocation granularity.
    pub write_granularity: Bytes,
    /// Maximum size of an atomic write, including during a power failure.
    pub atomic_write: Bytes,
    /// Warning Composite Temperature Threshold in degrees Celsius; `None` if not reported.
    pub warning_temperature: Option<f64>,
    /// Rated endurance in bytes written by the host.
    pub rated_writes: Option<Bytes>,
    /// `true` if the drive supports block erase (SANICAP).
    pub block_erase: bool,
    /// `true` if the drive supports crypto erase (SANICAP).
    pub crypto_erase: bool,
    /// Data placement interface.
    pub placement: PlacementInterface,
}

/// Interface that allows the host to separate data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlacementInterface {
    /// No interface: the drive has a single stream.
    None,
    /// Streams directive.
    Streams,
    /// Flexible Data Placement, which is enabled.
    Fdp(FdpConfiguration),
}

impl Identity {
    /// Returns the FDP configuration; `None` for any other interface.
    pub fn fdp(&self) -> Option<&FdpConfiguration> {
        match &self.placement {
            PlacementInterface::Fdp(configuration) => Some(configuration),
            _ => None,
        }
    }
}

/// Counters since the drive was new, for the SMART and endurance group log pages.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Health {
    /// Temperature in degrees Celsius; `None` if it is not measured (SMART reports 40 °C).
    pub temperature: Option<f64>,
    /// Available Spare in percent.
    pub available_spare: u8,
    /// Available Spare Threshold in percent.
    pub spare_threshold: u8,
    /// Percentage of the rated life that is used; may exceed 100.
    pub percentage_used: f64,
    /// Data Units Read, in bytes.
    pub host_read_bytes: u64,
    /// Data Units Written, in bytes.
    pub host_write_bytes: u64,
    /// Host Read Commands.
    pub host_read_commands: u64,
    /// Host Write Commands.
    pub host_write_commands: u64,
    /// Bytes programmed on flash for any reason.
    pub media_write_bytes: u64,
    /// Media and Data Integrity Errors.
    pub media_errors: u64,
    /// Number of errors recorded in the error log.
    pub error_entries: u64,
    /// Time with commands outstanding.
    pub busy: Nanos,
    /// Power On Hours, as a time.
    pub powered: Nanos,
    /// Power Cycles.
    pub power_cycles: u64,
    /// Unsafe Shutdowns.
    pub unsafe_shutdowns: u64,
    /// Total throttling time.
    pub throttled: Nanos,
    /// `true` if no spare space remains.
    pub is_read_only: bool,
}

/// A drive behind the controller.
pub trait Drive {
    /// Returns the drive properties that do not change while the drive is served.
    fn identity(&self) -> &Identity;

    /// Returns the time since the drive was new, the base of timestamps and power-on hours.
    fn now(&self) -> Nanos;

    /// Returns the current health counters.
    fn health(&self) -> Health;

    /// Returns the error log over the controller's lifetime.
    fn error_log(&self) -> ErrorLog;

    /// Adds an entry to the error log.
    fn log_error(&mut self, entry: ErrorEntry);

    /// Returns the index of the current logical block size in `Identity::lba_formats`.
    fn lba_format(&self) -> u8;

    /// Returns `true` if the volatile write cache is enabled.
    fn write_cache(&self) -> bool;

    /// Enables or disables the volatile write cache.
    fn set_write_cache(&mut self, enabled: bool);

    /// Erases all data.
    fn erase(&mut self) -> Result<(), Status>;

    /// Erases all data, and sets the logical block size to the one with index `lba_format`.
    fn format(&mut self, lba_format: u8) -> Result<(), Status>;

    /// Announces that a host is shutting down, so data in a volatile cache must become durable.
    fn shutdown(&mut self);

    /// Handles a Controller Level Reset of the only controller in use.
    fn controller_reset(&mut self);

    /// Calls `ask` with the drive's data placement interface, if the drive has one.
    fn placement(&mut self, ask: &mut dyn FnMut(&mut dyn DataPlacement));
}

/// Returns the result of `command` on the drive's data placement interface; `None` if the drive
/// rejects the command or has no such interface.
pub(crate) fn ask<T>(
    drive: &mut dyn Drive,
    command: impl FnOnce(&mut dyn DataPlacement) -> Result<T, Refusal>,
) -> Option<T> {
    let (mut command, mut answer) = (Some(command), None);
    drive.placement(&mut |interface| {
        answer = command.take().and_then(|command| command(interface).ok());
    });
    answer
}
