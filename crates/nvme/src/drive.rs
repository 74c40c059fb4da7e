//! Drive behind a controller. The owner of the drive implements these traits; I/O is returned as
//! `Work` instead.

use writecliff_base::{Bytes, Nanos};
use writecliff_host_interface::placement::{DataPlacement, FdpConfiguration, Refusal};

use crate::command::{Erase, Failure};
use crate::error_log::{ErrorEntry, ErrorLog};

/// Properties of a drive that do not change while it is served.
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
    /// Supported logical block sizes: powers of two from 512 on.
    pub lba_formats: Vec<Bytes>,
    /// `true` if the drive has a write cache without power-loss protection, so that flushes and FUA
    /// matter.
    pub volatile_cache: bool,
    /// Preferred granularity of writes, and granularity of deallocations.
    pub write_granularity: Bytes,
    /// Size up to which a write is atomic, even in a power failure.
    pub atomic_write: Bytes,
    /// Warning Composite Temperature Threshold in degrees Celsius; `None` if not reported.
    pub warning_temperature: Option<f64>,
    /// Critical Composite Temperature Threshold in degrees Celsius; `None` if not reported.
    pub critical_temperature: Option<f64>,
    /// Largest power consumption in watts.
    pub max_power: Option<f64>,
    /// Rated endurance in bytes written by the host.
    pub rated_writes: Option<Bytes>,
    /// `true` if the drive supports block erase (SANICAP).
    pub block_erase: bool,
    /// `true` if the drive supports crypto erase (SANICAP).
    pub crypto_erase: bool,
    /// Data placement interface.
    pub placement: PlacementInterface,
}

/// Interface by which the host can separate data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlacementInterface {
    /// No interface: the drive has one stream.
    None,
    /// Streams directive.
    Streams,
    /// Flexible Data Placement, enabled.
    Fdp(FdpConfiguration),
}

impl Identity {
    /// Returns the FDP configuration; `None` with another interface.
    pub fn fdp(&self) -> Option<&FdpConfiguration> {
        match &self.placement {
            PlacementInterface::Fdp(configuration) => Some(configuration),
            _ => None,
        }
    }
}

/// Counts since the drive was new, for the SMART and endurance group log pages.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Health {
    /// Degrees Celsius; `None` if the drive does not measure it, and SMART reports 40 °C.
    pub temperature: Option<f64>,
    /// Available Spare in percent.
    pub available_spare: u8,
    /// Available Spare Threshold in percent.
    pub spare_threshold: u8,
    /// Percent of the rated life that is used up; may exceed 100.
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
    /// Errors that the error log has recorded.
    pub error_entries: u64,
    /// Time with commands outstanding.
    pub busy: Nanos,
    /// Power On Hours, as a time.
    pub powered: Nanos,
    /// Power Cycles.
    pub power_cycles: u64,
    /// Unsafe Shutdowns.
    pub unsafe_shutdowns: u64,
    /// Warning Composite Temperature Time.
    pub warning_time: Nanos,
    /// Critical Composite Temperature Time.
    pub critical_time: Nanos,
    /// Number of times that throttling started.
    pub throttle_count: u32,
    /// Total time of throttling.
    pub throttled: Nanos,
    /// `true` if no spare space is left.
    pub is_read_only: bool,
}

/// A drive behind the controller.
pub trait Drive {
    /// Returns the properties of the drive that do not change while it is served.
    fn identity(&self) -> &Identity;

    /// Returns the time on the drive's clock since it was new, on which timestamps and power-on
    /// hours are based.
    fn now(&self) -> Nanos;

    /// Returns the current health counters.
    fn health(&self) -> Health;

    /// Returns the error log of the controller's life.
    fn error_log(&self) -> ErrorLog;

    /// Adds an entry to the error log.
    fn log_error(&mut self, entry: ErrorEntry);

    /// Returns the index of the current logical block size in `Identity::lba_formats`;
    /// `Work::Format` sets it.
    fn lba_format(&self) -> u8;

    /// Returns `true` if the volatile write cache is enabled.
    fn write_cache(&self) -> bool;

    /// Enables or disables the volatile write cache.
    fn set_write_cache(&mut self, enabled: bool);

    /// Starts to erase all data. No I/O is submitted until `sanitize_progress` returns `None`.
    fn start_sanitize(&mut self, erase: Erase) -> Result<(), Failure>;

    /// Returns the share of a sanitize operation that is done, 0 to 1; `None` if none is in
    /// progress.
    fn sanitize_progress(&self) -> Option<f64>;

    /// Announces that a host shuts down: data in a volatile cache must become durable.
    fn shutdown(&mut self);

    /// Handles a Controller Level Reset of the only controller in use.
    fn controller_reset(&mut self);

    /// Calls `ask` with the data placement interface of the drive, if the drive has one.
    fn placement(&mut self, ask: &mut dyn FnMut(&mut dyn DataPlacement));
}

/// Returns the answer of a drive's data placement interface to `command`; `None` if the drive
/// rejects it or has no interface.
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
