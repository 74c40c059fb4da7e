//! The drive as its host sees it.

use writecliff_base::{Bytes, Lpn, Nanos, StreamId};
use writecliff_flash::geometry::SLOT_BYTES;
use writecliff_ftl::FastForward;
use writecliff_host_interface::placement::{DataPlacement, DataPlacementStatus};
use writecliff_host_interface::{Command, Completion, Drive, Operation, Status, TimeByCause};

use super::Ssd;
use crate::attribution::Recorder;
use crate::front::{Direct, Front};
use crate::mechanisms::{Access, Mechanisms};

impl<R: Recorder> Drive for Ssd<R> {
    fn capacity(&self) -> Bytes {
        self.config.user_capacity
    }

    #[inline]
    fn now(&self) -> Nanos {
        self.now()
    }

    #[inline]
    fn submit(&mut self, at: Nanos, command: Command) {
        debug_assert!(at >= self.backend.now);
        debug_assert!(command.offset.is_multiple_of(512) && command.length.is_multiple_of(512));
        debug_assert!(command.offset + u64::from(command.length) <= self.config.user_capacity.0);
        self.backend.now = at;
        if self.frontend.enter(&command, at) {
            self.begin(command, at);
        }
    }

    // Always inlined, as is what it calls for an event: idle time has a copy of it, and the
    // compiler would otherwise make functions of what both share.
    #[expect(clippy::inline_always)]
    #[inline(always)]
    fn step(&mut self, limit: Nanos) -> Option<Completion> {
        while let Some((time, event)) = self.backend.queue.pop_until(limit) {
            self.backend.now = time;
            if let Some(completion) = self.handle(event) {
                return Some(completion);
            }
        }
        None
    }

    fn next_event(&self) -> Option<Nanos> {
        self.backend.queue.next_time()
    }

    /// Leaves the drive idle until `time`; it may garbage-collect in the background meanwhile. The
    /// host must have nothing outstanding.
    ///
    /// If the drive has not completed a command since it was opened, filled on the fast-forward
    /// clock or quiesced, its idle delay counts from then.
    fn idle_until(&mut self, time: Nanos) {
        let due = self.last_activity + self.config.controller.idle_delay;
        self.schedule_idle_check(due.max(self.backend.now));
        while let Some(at) = Mechanisms::next_work(self, time) {
            self.work_until(at);
            self.backend.now = self.backend.now.max(at);
            let has_worked = Mechanisms::work(self, at);
            assert!(has_worked, "a mechanism has no work at the time that it has named");
        }
        self.work_until(time);
        self.backend.now = self.backend.now.max(time);
    }

    fn quiesce(&mut self) {
        assert_eq!(self.commands.in_flight() + self.frontend.waiting(), 0);
        self.quiescing = true;
        self.work_until(Nanos::MAX);
        self.quiescing = false;
        self.idle_check_scheduled = false;
        self.backend.settle();
        self.last_activity = self.backend.now;
        if let Some(ecc) = &mut self.backend.ecc {
            ecc.before_untimed(self.ftl.counters().host_slots);
        }
    }

    /// The fast-forward clock: applies the effect of a write or TRIM without its timing. Reads and
    /// flushes change nothing. The drive must be idle; call `end_fast_forward` after the last
    /// command.
    #[inline]
    fn fast_forward(&mut self, command: &Command) {
        match command.operation {
            Operation::Write => {
                if self.steps.writes {
                    return self.fast_forward_otherwise(command);
                }
                let write = self.routed_write(command);
                Direct.place(write, &mut self.ftl, &mut FastForward);
            }
            Operation::Trim => {
                self.trim(command);
                self.backend.recorder.journaled();
            }
            Operation::Read | Operation::Flush => {}
        }
    }

    fn end_fast_forward(&mut self) {
        self.resynchronise_buffer();
        self.resynchronise_errors();
    }

    fn fast_forward_read(&mut self, command: &Command) -> Status {
        self.mechanisms.read(&Access::untimed(command), Status::Success)
    }

    #[inline]
    fn announce(&self, offset: u64) {
        self.ftl.prefetch(Lpn((offset / u64::from(SLOT_BYTES)) as u32));
    }

    #[inline]
    fn time_by_cause(&self) -> Option<&TimeByCause> {
        self.reports_causes.then(|| self.backend.recorder.last()).flatten()
    }

    /// The limit of the interface, or the FTL's streams.
    fn streams(&self) -> u16 {
        match self.config.data_placement {
            Some(_) => u16::MAX,
            None => self.config.ftl.streams,
        }
    }

    fn routed(&self, number: StreamId) -> Option<StreamId> {
        Some(self.routed(number.0).unwrap_or_default())
    }

    fn is_read_only(&self) -> bool {
        self.ftl.is_read_only()
    }

    fn write_cache(&self) -> bool {
        self.write_cache
    }

    /// When the cache is disabled and there is no power-loss protection, a write completes once it
    /// is on flash.
    fn set_write_cache(&mut self, enabled: bool) {
        self.write_cache = enabled;
    }

    fn is_volatile(&self) -> bool {
        self.write_cache && !self.config.controller.power_loss_protection
    }

    /// Returns the drive to the state of "no writes": erases every block. Takes the time of one
    /// erase of every block in turn, on all dies at once.
    fn purge(&mut self) {
        self.quiesce();
        self.ftl.purge();
        let blocks = u64::from(self.config.geometry.reclaim_units) + self.front.purge();
        self.mechanisms.purged();
        self.data_placement.release_all_streams();
        self.resynchronise_buffer();
        self.resynchronise_errors();
        self.backend.erased_all(blocks);
    }

    /// A Controller Level Reset disables the Streams directive. Without power-loss protection, the
    /// drive also abandons its open units: reclaim unit handles then reference empty ones.
    fn controller_reset(&mut self) {
        self.quiesce();
        let now = self.backend.now;
        self.data_placement.reset_streams();
        if self.config.controller.power_loss_protection {
            return;
        }
        let modified = self.data_placement.abandon_all(&mut self.ftl, &mut self.backend);
        self.quiesce();
        if modified {
            self.data_placement.reset_modified_handles(now);
        }
    }

    /// Fails a die, which answers no further reads. Its current operation still ends.
    ///
    /// # Errors
    /// Fails without a section `[die_parity]`, if the drive does not have the die or has already
    /// lost a die, and if the other dies cannot hold the user capacity.
    fn lose_die(&mut self, die: u32) -> Result<(), String> {
        let now = self.backend.now;
        let Some(parity) = &mut self.backend.die_parity else {
            return Err("the drive has no section [die_parity]".to_owned());
        };
        if let Some(lost) = parity.lost {
            return Err(format!("the drive has already lost die {lost}"));
        }
        let dies = self.config.geometry.dies;
        if die >= dies {
            return Err(format!("die is {die}; it must be 0 to {}", dies - 1));
        }
        self.ftl.lose_die(die)?;
        parity.lose(die, now);
        Ok(())
    }

    #[inline]
    fn host_write_bytes(&self) -> u64 {
        self.front.host_bytes(self.ftl.counters().host_bytes)
    }

    #[inline]
    fn nand_write_bytes(&self) -> Option<u64> {
        Some(self.nand_write_bytes())
    }

    fn free_units(&self) -> Option<u32> {
        Some(self.ftl.free_units())
    }

    fn joules_until(&self, time: Nanos) -> Option<f64> {
        self.energy_until(time).map(|energy| energy.total())
    }

    fn celsius_at(&self, time: Nanos) -> Option<f64> {
        self.thermal_at(time).map(|thermal| thermal.celsius)
    }

    fn data_placement(&mut self) -> Option<Box<dyn DataPlacement + '_>> {
        Some(Box::new(self.administration()))
    }

    /// `None` for a drive without an interface.
    fn data_placement_status(&mut self) -> Option<DataPlacementStatus> {
        self.data_placement.gather_events(&mut self.ftl, &mut self.backend);
        self.data_placement.status(&self.ftl, self.backend.now, self.statistics())
    }

    fn check_invariants(&self) -> Result<(), String> {
        self.ftl.check_invariants()?;
        self.front.check(&self.ftl)
    }
}
