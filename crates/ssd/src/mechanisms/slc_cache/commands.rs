//! Commands on a drive with an SLC cache, and folding in idle time.

use writecliff_base::{Lpn, Ppa, StreamId};
use writecliff_flash::geometry::FlashLocation;
use writecliff_ftl::FastForward;
use writecliff_ftl::frontier::FrontierId;
use writecliff_host_interface::Command;

use crate::attribution::Recorder;
use crate::mechanisms::slc_cache::{InFront, SlcCache};
use crate::ssd::Ssd;
use crate::ssd::io::slot_overlap;

/// Program units per die in one burst of folding: enough to keep the die busy until the next check,
/// but few enough that a command does not wait long.
const BURST_UNITS: u32 = 4;

/// Location of slots that one flash read fetches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// With the plane.
    Main(FlashLocation, u32),
    Slc(u32),
}

impl<R: Recorder> Ssd<R> {
    pub fn slc_cache(&self) -> Option<&SlcCache> {
        self.slc.as_deref()
    }

    /// Writes to the cache as far as it has space. Returns whether the command may complete.
    pub(crate) fn write_to_cache(
        &mut self,
        number: u16,
        command: &Command,
        first: Lpn,
        slots: u32,
    ) -> bool {
        let Some(mut slc) = self.slc.take() else { return true };
        self.backend.recorder.writing(command.tag);
        let durable = self.write_cache || self.config.controller.power_loss_protection;
        let end = command.offset + u64::from(command.length);
        let stream = self.data_placement.route(command.stream, command.length, self.backend.now);
        let folds = slc.folds();
        for n in 0..slots {
            let lpn = Lpn(first.0 + n);
            let bytes = slot_overlap(lpn, command.offset, end);
            let cached = slc.admit(&mut self.ftl, &mut self.backend);
            if !durable {
                let mut frontier = slc.frontier();
                if !cached {
                    frontier = self.ftl.host_frontier(stream);
                    self.ftl.prepare(frontier, &mut InFront::new(&mut slc, &mut self.backend));
                }
                self.wait_for_current_unit(number, frontier);
            }
            if cached {
                slc.write(lpn, stream, bytes, &mut self.ftl, &mut self.backend);
            } else {
                slc.write_past(lpn, stream, bytes, &mut self.ftl, &mut self.backend);
            }
        }
        // Folded data pass through the buffer like other data.
        self.buffer_free -= (slc.folds() - folds) as i64;
        self.slc = Some(slc);
        if !durable && self.writes_in_transfer == 0 {
            self.close_units(true);
        }
        durable
    }

    /// The same on the fast-forward clock.
    pub(crate) fn fast_forward_to_cache(&mut self, command: &Command, stream: StreamId) {
        let Some(slc) = &mut self.slc else { return };
        let slot = u64::from(writecliff_flash::geometry::SLOT_BYTES);
        let end = command.offset + u64::from(command.length);
        for lpn in command.offset / slot..end.div_ceil(slot) {
            let lpn = Lpn(lpn as u32);
            let bytes = slot_overlap(lpn, command.offset, end);
            if slc.admit(&mut self.ftl, &mut FastForward) {
                slc.write(lpn, stream, bytes, &mut self.ftl, &mut FastForward);
            } else {
                slc.write_past(lpn, stream, bytes, &mut self.ftl, &mut FastForward);
            }
        }
    }

    /// Starts the flash reads of a command; returns their number.
    pub(crate) fn read_among_cached(&mut self, number: u16, first: Lpn, slots: u32) -> u32 {
        let mut run: Option<(Source, u32)> = None;
        let mut reads = 0;
        for n in 0..slots {
            let Some(source) = self.source(Lpn(first.0 + n)) else { continue };
            match &mut run {
                Some((start, count)) if *start == source => {
                    *count = (*count + 1).min(self.config.geometry.slots_per_read_group);
                }
                _ => {
                    reads += self.read_run(number, run);
                    run = Some((source, 1));
                }
            }
        }
        reads + self.read_run(number, run)
    }

    fn read_run(&mut self, number: u16, run: Option<(Source, u32)>) -> u32 {
        match run {
            None => return 0,
            Some((Source::Main(location, plane), slots)) => {
                self.backend.host_read_page(number, (location, plane), slots);
            }
            Some((Source::Slc(unit), slots)) => self.backend.host_read_slc(number, unit, slots),
        }
        1
    }

    /// The location from which a slot must be read; `None` if it is not on flash.
    fn source(&mut self, lpn: Lpn) -> Option<Source> {
        if let Some((unit, filling)) = self.slc.as_ref()?.find(lpn) {
            let buffered = filling || self.backend.is_slc_in_flight(unit);
            return (!buffered).then_some(Source::Slc(unit));
        }
        let ppa = self.ftl.lookup(lpn);
        if ppa.is_none() {
            self.unmapped_read_slots += 1;
            return None;
        }
        let location = self.config.geometry.locate(ppa);
        let plane = self.backend.plane_of(ppa);
        (!self.is_buffered(ppa, &location)).then_some(Source::Main(location, plane))
    }

    /// Idle work: folds a burst, or erases when all data are folded. Returns false if there was
    /// nothing to do.
    pub(crate) fn fold_burst(&mut self) -> bool {
        let Some(slc) = &mut self.slc else { return false };
        let geometry = &self.config.geometry;
        let burst = i64::from(BURST_UNITS * geometry.dies * geometry.slots_per_program_unit);
        let mut folded = 0;
        while folded < burst.min(self.buffer_free) && slc.fold(&mut self.ftl, &mut self.backend) {
            folded += 1;
        }
        self.buffer_free -= folded;
        folded > 0 || self.erase_ahead()
    }

    /// Erases a block of the empty cache, so that the next writes need not wait for it. Its data
    /// must already be on the main flash.
    fn erase_ahead(&mut self) -> bool {
        let Some(slc) = &mut self.slc else { return false };
        if !slc.wants_erase() {
            return false;
        }
        let mut has_closed = false;
        for stream in 0..self.config.ftl.streams {
            has_closed |= self.ftl.pad(FrontierId(stream), &mut self.backend);
        }
        // What a loss of power could bring back is not erased before all of it is on flash.
        if !(has_closed && self.config.ftl.volatile_buffer) {
            slc.erase_next(&mut self.ftl, &mut self.backend);
        }
        true
    }

    /// Where the newest data of a logical page are or are going: addresses of the main flash, and
    /// behind them those of the SLC cache.
    pub fn location(&self, lpn: Lpn) -> Ppa {
        let cached = self.slc.as_ref().map_or(Ppa::NONE, |slc| slc.location(lpn));
        if cached.is_none() { self.ftl.lookup(lpn) } else { cached }
    }

    /// Checks the mapping and the log of the cache.
    ///
    /// # Errors
    /// Says which invariant does not hold.
    pub fn check_invariants(&self) -> Result<(), String> {
        self.ftl.check_invariants()?;
        self.slc.as_ref().map_or(Ok(()), |slc| slc.check_invariants(&self.ftl))
    }

    /// Erases of reclaim units and of blocks of the SLC cache so far.
    pub fn erases(&self) -> u64 {
        self.ftl.wear().total() + self.slc.as_ref().map_or(0, |slc| slc.erases())
    }

    /// Slots programmed in the cache.
    pub(crate) fn log_slots(&self) -> u64 {
        self.slc.as_ref().map_or(0, |slc| slc.allocated_slots())
    }

    /// Slots folded so far, which the core has mapped like host slots.
    pub(crate) fn folds(&self) -> u64 {
        self.slc.as_ref().map_or(0, |slc| slc.folds())
    }

    /// Whether there is work to do in idle time.
    #[inline]
    pub(crate) fn wants_idle_time(&self) -> bool {
        self.ftl.needs_background_gc() || self.slc.as_ref().is_some_and(|slc| slc.wants_idle_time())
    }
}
