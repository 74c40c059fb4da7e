//! The drive as its host sees it.

use writecliff_base::{Bytes, Nanos, StreamId};
use writecliff_host_interface::placement::{DataPlacement, DataPlacementStatus};
use writecliff_host_interface::{Command, Completion, Drive, Status, TimeByCause};

use super::Ssd;
use crate::attribution::Recorder;

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
        self.submit(at, command);
    }

    #[expect(clippy::inline_always)]
    #[inline(always)]
    fn step(&mut self, limit: Nanos) -> Option<Completion> {
        self.step(limit)
    }

    fn next_event(&self) -> Option<Nanos> {
        self.next_event()
    }

    fn idle_until(&mut self, time: Nanos) {
        self.idle_until(time);
    }

    fn quiesce(&mut self) {
        self.quiesce();
    }

    #[inline]
    fn fast_forward(&mut self, command: &Command) {
        self.fast_forward(command);
    }

    fn end_fast_forward(&mut self) {
        self.end_fast_forward();
    }

    fn fast_forward_read(&mut self, command: &Command) -> Status {
        self.fast_forward_read(command)
    }

    #[inline]
    fn announce(&self, offset: u64) {
        self.announce(offset);
    }

    #[inline]
    fn time_by_cause(&self) -> Option<&TimeByCause> {
        self.time_by_cause()
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

    fn purge(&mut self) {
        self.purge();
    }

    fn controller_reset(&mut self) {
        self.controller_reset();
    }

    fn lose_die(&mut self, die: u32) -> Result<(), String> {
        self.lose_die(die)
    }

    #[inline]
    fn host_write_bytes(&self) -> u64 {
        self.host_write_bytes()
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

    fn data_placement(&mut self) -> Option<&mut dyn DataPlacement> {
        Some(self)
    }

    fn data_placement_status(&mut self) -> Option<DataPlacementStatus> {
        self.data_placement_status()
    }

    fn check_invariants(&self) -> Result<(), String> {
        self.check_invariants()
    }
}
