//! Power cuts, and recovery of the mapping.

use writecliff_base::{Nanos, ReclaimUnitId};
use writecliff_ftl::power_up::{OpenUnit, Undone};
use writecliff_ftl::{FastForward, FrontierId, Unwritten};
use writecliff_host_interface::Drive;

use crate::backend::Unfinished;
use crate::front::SlcCache;
use crate::mechanisms::power_loss::PowerCut;
use crate::mechanisms::power_loss::recovery::{self, Lost};
use crate::mechanisms::{Mechanism, hook};
use crate::{DeviceConfig, Recorder, Ssd, Storage};

impl<R: Recorder> Storage<R> {
    /// Returns the reason why power cuts of the drive are not modelled; `None` if they are.
    pub fn refuses_power_cut(&self, config: &DeviceConfig) -> Option<&'static str> {
        let unrecorded = "the drive does not record which data are not on flash";
        let records = config.controller.power_loss_protection || R::KEEPS_UNWRITTEN;
        config.refuses_power_cut().or((!records).then_some(unrecorded))
    }
}

impl PowerCut {
    /// Cuts the power immediately. Outstanding commands do not complete. With power-loss
    /// protection, all data that have arrived in the buffer are programmed. Without it, these data
    /// are lost, and the mapping refers to the newest data on flash. Deallocations since the last
    /// flush are undone if the journal does not contain them.
    ///
    /// # Panics
    /// Panics if [`Storage::refuses_power_cut`] returns a reason.
    pub fn of<R: Recorder>(drive: &mut Ssd<R>) -> Self {
        let (storage, config) = (&mut drive.storage, &drive.config);
        let refused = storage.refuses_power_cut(config);
        assert!(refused.is_none(), "{}", refused.unwrap_or_default());
        let mut cut = Self::default();
        let is_protected = config.controller.power_loss_protection;
        let unfinished = storage.backend.power_off();
        if is_protected {
            cut.save_buffer(storage, &unfinished, config.timing.program_mean());
        } else {
            cut.lose_buffer(storage, &unfinished);
        }
        let (ftl, log) = (&storage.ftl, storage.front.log());
        let in_log = log.map_or(0, SlcCache::programmed_slots);
        let lost = Lost {
            programmed_slots: ftl.counters().programmed_slots + in_log,
            open_log_units: log.map_or(0, SlcCache::units_in_open_block),
            open_units: ftl.open_units().map(|unit| u64::from(ftl.full_units(unit))).sum(),
            interrupted_erases: cut.interrupted_erases,
            is_protected,
        };
        cut.rebuild = recovery::rebuild(config, &lost);
        cut
    }

    /// Powers the drive up again. Time passes until it accepts commands, and the host's streams are
    /// released. If the cut has used up GC's reserve, the drive restores it first.
    pub fn power_up<R: Recorder>(&self, drive: &mut Ssd<R>) {
        let storage = &mut drive.storage;
        assert!(storage.backend.is_quiet(), "the power was not cut");
        if drive.commands.in_flight() > 0 {
            drive.active.end(storage.backend.now);
        }
        storage.backend.now += self.hold_up + self.rebuild.total();
        let now = storage.backend.now;
        storage.data_placement.release_all_streams();
        storage.data_placement.reset_streams();
        storage.note_units();
        drive.commands.power_up(now);
        hook!(drive, m => m.powered_up());
        drive.idle.restart(now);
        drive.buffer.power_up(&drive.config);
        drive.buffer.resynchronise(drive.storage.filled());
        let Storage { ftl, front, backend, .. } = &mut drive.storage;
        if ftl.restore_reserve(&mut front.sink(backend)) {
            drive.quiesce();
        }
    }

    /// Lets the dies finish their work and program the buffer with capacitor power.
    fn save_buffer<R: Recorder>(
        &mut self,
        storage: &mut Storage<R>,
        unfinished: &Unfinished,
        program_time: Nanos,
    ) {
        let begun = storage.ftl.counters().programs;
        self.repeated_erases.clone_from(&unfinished.erases);
        let full = unfinished.torn.iter().chain(&unfinished.waiting);
        self.saved_slots = full.map(|unit| u64::from(unit.data_slots)).sum();
        for id in 0..2 * storage.ftl.config().streams {
            let frontier = FrontierId(id);
            self.saved_slots += u64::from(storage.ftl.filled(frontier));
            // A piece that crosses into the next unit also occupies a portion of that unit.
            while storage.ftl.pad(frontier, &mut FastForward) {}
        }
        let mut units = storage.ftl.counters().programs - begun;
        let in_front = u64::from(storage.front.take_unsaved());
        self.saved_slots += in_front;
        units += in_front.div_ceil(u64::from(storage.backend.geometry.slots_per_program_unit));
        storage.front.pad(&mut FastForward);
        storage.front.flushed();
        assert!(storage.backend.is_quiet(), "see `Backend::power_off`");
        let rounds = units.div_ceil(u64::from(storage.backend.geometry.dies));
        self.hold_up = unfinished.time + Nanos(rounds * program_time.0);
    }

    fn lose_buffer<R: Recorder>(&mut self, storage: &mut Storage<R>, unfinished: &Unfinished) {
        self.torn = unfinished.torn.iter().map(|unit| (unit.reclaim_unit, unit.unit)).collect();
        self.interrupted_erases = unfinished.erasing;
        let unwritten = storage.backend.recorder.take_unwritten().unwrap_or_default();
        let units: Vec<ReclaimUnitId> = storage.ftl.open_units().collect();
        let open: Vec<OpenUnit> = units
            .into_iter()
            .map(|unit| OpenUnit {
                unit,
                begun: begun(unit, storage.ftl.full_units(unit), unfinished),
                is_unerased: unfinished.erases.iter().any(|&(erased, _)| erased == unit),
            })
            .collect();
        let undone = unfinished.undo(storage, &unwritten);
        storage.ftl.power_up(&open);
        (self.lost_slots, self.undone_trims) = (undone.writes, undone.trims);
        self.undone_relocations = undone.relocations;
        let unerased = unfinished.erases.iter();
        let units = storage.backend.geometry.reclaim_units;
        let continued = |unit: ReclaimUnitId| {
            unit.0 >= units || storage.ftl.open_units().any(|open| open == unit)
        };
        self.repeated_erases = unerased.copied().filter(|&(unit, _)| continued(unit)).collect();
    }
}

impl Unfinished {
    /// Undoes the changes that are not on flash, newest first, unless newer data replace them.
    fn undo<R: Recorder>(&self, storage: &mut Storage<R>, unwritten: &[Unwritten]) -> Undone {
        storage.ftl.power_off();
        if let Some(log) = storage.front.log_mut() {
            log.unerase(self.held_log_erases);
        }
        let mut undone = Undone::default();
        for change in unwritten {
            debug_assert!(change.at != change.before || change.at.is_none(), "no change");
            if storage.location(change.lpn) == change.at {
                storage.front.return_to(change, &mut storage.ftl);
                undone.add(change);
            }
        }
        if let Some(log) = storage.front.log_mut() {
            let in_log = storage.backend.front.unit;
            let waiting = self.waiting.iter().filter(|unit| unit.reclaim_unit == in_log);
            log.continue_behind(waiting.map(|unit| unit.unit).collect());
        }
        undone
    }
}

/// Returns the program units of an open reclaim unit, up to the last whose program was started.
fn begun(unit: ReclaimUnitId, full: u32, unfinished: &Unfinished) -> u32 {
    let waiting = &unfinished.waiting;
    let waits = |n: u32| waiting.iter().any(|w| w.reclaim_unit == unit && w.unit == n);
    (0..full).rev().find(|&index| !waits(index)).map_or(0, |last| last + 1)
}
