//! Contract between a host and its drive, in virtual time.

use std::io::{Read, Write};

use writecliff_base::codec::CodecError;
use writecliff_base::saved_state::RestoreError;
use writecliff_base::{Bytes, Nanos, StreamId};

use crate::cause::TimeByCause;
use crate::command::{Command, Completion, Status};
use crate::placement::{DataPlacement, DataPlacementStatus};

/// Meter readings of a drive at a point in time. Bytes and energy accumulate from the time the
/// drive was new.
#[derive(Clone, Copy, Debug, Default)]
pub struct Meters {
    /// Bytes written by the host.
    pub host_write_bytes: u64,
    /// Bytes allocated on flash for any reason; `None` for a drive without flash.
    pub nand_write_bytes: Option<u64>,
    /// Number of empty reclaim units; `None` for a drive without flash.
    pub free_units: Option<u32>,
    /// Energy consumed; `None` if the device file has no power section.
    pub joules: Option<f64>,
    /// Temperature in degrees Celsius; `None` if the device file has no thermal section.
    pub celsius: Option<f64>,
}

/// A simulated drive of any kind. The default methods suit a drive without flash. Such a drive has
/// one stream, loses no data in a power loss, and models neither energy nor temperature.
///
/// A host that issues many commands should be generic over the drive instead, to avoid dynamic
/// dispatch per command.
pub trait Drive {
    /// Returns the capacity that the host can address.
    fn capacity(&self) -> Bytes;

    /// Returns the current virtual time.
    fn now(&self) -> Nanos;

    /// Submits a command at time `at`, which must be no earlier than any completion that `step` has
    /// returned, and no later than the next completion.
    fn submit(&mut self, at: Nanos, command: Command);

    /// Advances to the next completion, but not beyond `limit`.
    fn step(&mut self, limit: Nanos) -> Option<Completion>;

    /// Returns the time of the drive's next event if no command arrives before; `None` if no event
    /// is scheduled.
    fn next_event(&self) -> Option<Nanos>;

    /// Leaves the drive idle until `time`. The host must have no outstanding commands.
    fn idle_until(&mut self, time: Nanos);

    /// Completes all internal work in progress. The host must have received all completions and
    /// have no outstanding commands.
    fn quiesce(&mut self);

    /// Applies a command's effect without its timing (fast-forward). The drive must be idle.
    /// `end_fast_forward` must be called after the last command.
    fn fast_forward(&mut self, command: &Command);

    /// Ends a sequence of `fast_forward` calls and finishes the work deferred between the calls.
    fn end_fast_forward(&mut self) {}

    /// Returns the outcome of a read in fast-forward.
    fn fast_forward_read(&mut self, _command: &Command) -> Status {
        Status::Success
    }

    /// Announces a command at `offset`, and prefetches the memory that the command will access.
    /// Prefetching has no effect on the state.
    fn announce(&self, _offset: u64) {}

    /// Returns the latency causes of the most recently completed command, if they are recorded.
    fn time_by_cause(&self) -> Option<&TimeByCause> {
        None
    }

    /// Returns the number of streams that a workload may use, including the default stream.
    fn streams(&self) -> u16 {
        1
    }

    /// Returns the FTL stream that a write with stream number `number` would use now; `None` for a
    /// drive without flash.
    fn routed(&self, _number: StreamId) -> Option<StreamId> {
        None
    }

    /// Returns the reason why the drive does not support TRIM; `None` if the drive supports TRIM.
    fn refuses_trim(&self) -> Option<&'static str> {
        None
    }

    /// Returns `true` if the drive rejects writes because no spare space remains.
    fn is_read_only(&self) -> bool {
        false
    }

    /// Returns `true` if the volatile write cache is enabled.
    fn write_cache(&self) -> bool;

    /// Enables or disables the volatile write cache.
    fn set_write_cache(&mut self, enabled: bool);

    /// Returns `true` if a power loss before the next flush may lose the data of a completed write.
    fn is_volatile(&self) -> bool {
        self.write_cache()
    }

    /// Returns the flash to its initial, erased state. Drives without flash complete their work in
    /// progress.
    fn purge(&mut self) {
        self.quiesce();
    }

    /// Performs a Controller Level Reset (NVMe).
    fn controller_reset(&mut self) {}

    /// Makes a die fail, so that it no longer responds.
    ///
    /// # Errors
    /// Returns the reason why the drive cannot lose that die.
    fn lose_die(&mut self, die: u32) -> Result<(), String>;

    /// Returns the meter readings at `time`, which must not be before [`Self::now`].
    fn meters(&self, time: Nanos) -> Meters;

    /// Returns the administrative commands of the data placement interface; `None` for a drive
    /// without flash.
    fn data_placement(&mut self) -> Option<Box<dyn DataPlacement + '_>> {
        None
    }

    /// Returns the status of the data placement interface; `None` if the drive has no such
    /// interface.
    fn data_placement_status(&mut self) -> Option<DataPlacementStatus> {
        self.data_placement()?.status()
    }

    /// Writes the state to `out`. The host must have no outstanding commands.
    fn save_to(&self, out: &mut dyn Write) -> Result<(), CodecError>;

    /// Replaces the drive state with the state in `input`. After an error, the drive must not be
    /// used.
    fn restore_from(&mut self, input: &mut dyn Read) -> Result<(), RestoreError>;

    /// Writes the state, as [`Self::save_to`] does, and returns the output.
    fn save<W: Write>(&self, mut out: W) -> Result<W, CodecError>
    where
        Self: Sized,
    {
        self.save_to(&mut out)?;
        Ok(out)
    }

    /// Checks the invariants that must be satisfied between two host commands.
    ///
    /// # Errors
    /// Returns the first violated invariant.
    fn check_invariants(&self) -> Result<(), String>;
}
