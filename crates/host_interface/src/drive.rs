//! The contract between a host and its drive, in virtual time.

use std::io::{Read, Write};

use writecliff_base::codec::CodecError;
use writecliff_base::saved_state::RestoreError;
use writecliff_base::{Bytes, Nanos, StreamId};

use crate::cause::TimeByCause;
use crate::command::{Command, Completion, Status};
use crate::placement::{DataPlacement, DataPlacementStatus};

/// Readings of a drive at a point in time. Bytes and energy are counted since the drive was new.
#[derive(Clone, Copy, Debug, Default)]
pub struct Meters {
    /// Bytes that the host has written.
    pub host_write_bytes: u64,
    /// Bytes allocated on flash for any reason; `None` without flash.
    pub nand_write_bytes: Option<u64>,
    /// Empty reclaim units; `None` without flash.
    pub free_units: Option<u32>,
    /// Energy consumed; `None` if the device file has no power section.
    pub joules: Option<f64>,
    /// Temperature in degrees Celsius; `None` if the device file has no thermal section.
    pub celsius: Option<f64>,
}

/// A simulated drive of any kind. The default methods suit a drive without flash: it has one
/// stream, loses no data in a power loss, and models neither energy nor temperature.
///
/// A host that issues many commands is generic over the drive instead, to avoid dynamic dispatch
/// per command.
pub trait Drive {
    /// Returns the size that the host can address.
    fn capacity(&self) -> Bytes;

    /// Returns the current virtual time.
    fn now(&self) -> Nanos;

    /// Submits a command at time `at`, which must not be earlier than any completion that `step`
    /// has returned, nor later than the next completion.
    fn submit(&mut self, at: Nanos, command: Command);

    /// Advances to the next completion, but not beyond `limit`.
    fn step(&mut self, limit: Nanos) -> Option<Completion>;

    /// Returns the time of the drive's next event if no command arrives; `None` if no event is
    /// scheduled.
    fn next_event(&self) -> Option<Nanos>;

    /// Leaves the drive idle until `time`. The host must have no outstanding commands.
    fn idle_until(&mut self, time: Nanos);

    /// Completes all internal work in progress. The host must have received all completions and
    /// have no outstanding commands.
    fn quiesce(&mut self);

    /// Applies the effect of a command without its timing (the fast-forward clock). The drive must
    /// be idle. Call `end_fast_forward` after the last command.
    fn fast_forward(&mut self, command: &Command);

    /// Ends a sequence of `fast_forward` calls: finishes work that was deferred between them.
    fn end_fast_forward(&mut self) {}

    /// Returns the outcome of a read on the fast-forward clock.
    fn fast_forward_read(&mut self, _command: &Command) -> Status {
        Status::Success
    }

    /// Announces a command at `offset`: prefetches the memory that it will access. Has no effect on
    /// the state.
    fn announce(&self, _offset: u64) {}

    /// Returns the causes of the latency of the command that completed last, if they are recorded.
    fn time_by_cause(&self) -> Option<&TimeByCause> {
        None
    }

    /// Returns the number of streams that a load may use, including the default one.
    fn streams(&self) -> u16 {
        1
    }

    /// Returns the FTL stream to which a write with stream number `number` would go now; `None`
    /// without flash.
    fn routed(&self, _number: StreamId) -> Option<StreamId> {
        None
    }

    /// Returns the reason why the drive does not support TRIM; `None` if it does.
    fn refuses_trim(&self) -> Option<&'static str> {
        None
    }

    /// Returns `true` if no spare space is left, so that the drive rejects writes.
    fn is_read_only(&self) -> bool {
        false
    }

    /// Returns `true` if the volatile write cache is enabled.
    fn write_cache(&self) -> bool;

    /// Enables or disables the volatile write cache.
    fn set_write_cache(&mut self, enabled: bool);

    /// Returns `true` if a power loss before the next flush may lose data of a completed write.
    fn is_volatile(&self) -> bool {
        self.write_cache()
    }

    /// Returns flash to its fresh state. Other drives complete their work in progress.
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

    /// Returns the meters at `time`, which must not be before [`Self::now`].
    fn meters(&self, time: Nanos) -> Meters;

    /// Returns the administrative commands of the data placement interface; `None` without flash.
    fn data_placement(&mut self) -> Option<Box<dyn DataPlacement + '_>> {
        None
    }

    /// Returns the status of the data placement interface; `None` without one.
    fn data_placement_status(&mut self) -> Option<DataPlacementStatus> {
        self.data_placement()?.status()
    }

    /// Writes the state to `out`. The host must have no outstanding commands.
    fn save_to(&self, out: &mut dyn Write) -> Result<(), CodecError>;

    /// Replaces the state of this drive by the state in `input`. After an error the drive must not
    /// be used.
    fn restore_from(&mut self, input: &mut dyn Read) -> Result<(), RestoreError>;

    /// Writes the state, as [`Self::save_to`] does, and returns the output.
    fn save<W: Write>(&self, mut out: W) -> Result<W, CodecError>
    where
        Self: Sized,
    {
        self.save_to(&mut out)?;
        Ok(out)
    }

    /// Checks the invariants that hold between two host commands.
    ///
    /// # Errors
    /// Returns the first violated invariant.
    fn check_invariants(&self) -> Result<(), String>;
}
