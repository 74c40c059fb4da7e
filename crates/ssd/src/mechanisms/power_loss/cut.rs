//! Losing power, and finding the mapping again.

use writecliff_base::{Nanos, ReclaimUnitId};
use writecliff_ftl::FastForward;
use writecliff_ftl::frontier::FrontierId;
use writecliff_ftl::power_up::{OpenUnit, Undone, Unwritten};
use writecliff_host_interface::{CommandTable, Drive};

use crate::attribution::Recorder;
use crate::backend::Unfinished;
use crate::front::Front;
use crate::mechanisms::power_loss::PowerCut;
use crate::mechanisms::power_loss::recovery::{self, Lost};
use crate::ssd::Ssd;

impl<R: Recorder> Ssd<R> {
    /// Returns the reason why power cuts of this drive are not modelled; `None` if they are.
    pub fn refuses_power_cut(&self) -> Option<&'static str> {
        let unrecorded = "the drive does not record what is not on flash";
        let records = self.config.controller.power_loss_protection || R::KEEPS_UNWRITTEN;
        self.config.refuses_power_cut().or((!records).then_some(unrecorded))
    }

    pub fn recorder(&self) -> &R {
        &self.backend.recorder
    }

    pub fn recorder_mut(&mut self) -> &mut R {
        &mut self.backend.recorder
    }

    /// Cuts the power now and powers the drive up again.
    ///
    /// # Panics
    /// Panics if [`Self::refuses_power_cut`] has a reason.
    pub fn cut_power(&mut self) -> PowerCut {
        let cut = self.power_off();
        self.power_up(&cut);
        cut
    }

    /// Cuts the power now. Commands that are outstanding do not complete. With power-loss
    /// protection, all data that have arrived in the buffer are programmed. Otherwise they are
    /// lost, and the mapping is that of the newest data on flash; deallocations since the last
    /// flush are undone if the journal does not have them.
    ///
    /// # Panics
    /// Panics if [`Self::refuses_power_cut`] has a reason.
    pub fn power_off(&mut self) -> PowerCut {
        let refused = self.refuses_power_cut();
        assert!(refused.is_none(), "{}", refused.unwrap_or_default());
        let mut cut = PowerCut::default();
        let is_protected = self.config.controller.power_loss_protection;
        let unfinished = self.backend.power_off();
        if is_protected {
            cut.save_buffer(self, &unfinished);
        } else {
            cut.lose_buffer(self, &unfinished);
        }
        let units = self.ftl.open_units();
        let lost = Lost {
            programmed_slots: self.ftl.counters().programmed_slots + self.front.programmed_slots(),
            open_log_units: self.front.units_in_open_block(),
            open_units: units.map(|unit| u64::from(self.ftl.full_units(unit))).sum(),
            interrupted_erases: cut.interrupted_erases,
            is_protected,
        };
        cut.rebuild = recovery::rebuild(&self.config, &lost);
        cut
    }

    /// Powers the drive up again after [`Self::power_off`]: its time passes until it takes
    /// commands. It first makes the room that garbage collection needs, if the cut has taken it.
    pub fn power_up(&mut self, cut: &PowerCut) {
        if self.commands.in_flight() > 0 {
            self.active.end(self.backend.now);
        }
        self.backend.now += cut.hold_up + cut.rebuild.total();
        let now = self.backend.now;
        self.commands = CommandTable::default();
        self.frontend.power_up(now);
        self.barrier = self.barrier.is_some().then(Box::default);
        self.write_waiting.clear();
        self.writes_in_transfer = 0;
        self.mechanisms.powered_up(&self.config);
        self.write_cache = self.config.controller.write_cache;
        self.last_activity = now;
        self.idle_check_scheduled = false;
        self.data_placement.release_all_streams();
        self.data_placement.reset_streams();
        if self.data_placement.is_limited {
            self.data_placement.note_units(&self.ftl, now);
        }
        self.resynchronise_buffer();
        let sink = &mut self.front.sink(&mut self.backend);
        if self.ftl.restore_reserve(sink) {
            self.quiesce();
        }
    }
}

impl PowerCut {
    /// Lets the dies finish their work and program the buffer on the power of the capacitors.
    fn save_buffer<R: Recorder>(&mut self, drive: &mut Ssd<R>, unfinished: &Unfinished) {
        let begun = drive.ftl.counters().programs;
        self.repeated_erases.clone_from(&unfinished.erases);
        let full = unfinished.torn.iter().chain(&unfinished.waiting);
        self.saved_slots = full.map(|unit| u64::from(unit.data_slots)).sum();
        for id in 0..2 * drive.config.ftl.streams {
            let frontier = FrontierId(id);
            self.saved_slots += u64::from(drive.ftl.filled(frontier));
            // A piece that crosses into the next unit leaves something there too.
            while drive.ftl.pad(frontier, &mut FastForward) {}
        }
        let mut units = drive.ftl.counters().programs - begun;
        self.saved_slots += u64::from(drive.front.filled());
        units += u64::from(drive.front.filled() > 0);
        drive.front.pad(&mut FastForward);
        drive.front.flushed();
        let rounds = units.div_ceil(u64::from(drive.config.geometry.dies));
        self.hold_up = unfinished.time + Nanos(rounds * drive.config.timing.program_mean().0);
    }

    fn lose_buffer<R: Recorder>(&mut self, drive: &mut Ssd<R>, unfinished: &Unfinished) {
        self.torn = unfinished.torn.iter().map(|unit| (unit.reclaim_unit, unit.unit)).collect();
        self.interrupted_erases = unfinished.erasing;
        let unwritten = drive.backend.recorder.take_unwritten().unwrap_or_default();
        let units: Vec<ReclaimUnitId> = drive.ftl.open_units().collect();
        let open: Vec<OpenUnit> = units
            .into_iter()
            .map(|unit| OpenUnit {
                unit,
                begun: begun(unit, drive.ftl.full_units(unit), unfinished),
                is_unerased: unfinished.erases.iter().any(|&(erased, _)| erased == unit),
            })
            .collect();
        let undone = unfinished.undo(drive, &unwritten);
        drive.ftl.power_up(&open);
        (self.lost_slots, self.undone_trims) = (undone.writes, undone.trims);
        self.undone_relocations = undone.relocations;
        let unerased = unfinished.erases.iter();
        let units = drive.config.geometry.reclaim_units;
        let continued = |unit: ReclaimUnitId| {
            unit.0 >= units || drive.ftl.open_units().any(|open| open == unit)
        };
        self.repeated_erases = unerased.copied().filter(|&(unit, _)| continued(unit)).collect();
    }
}

impl Unfinished {
    /// Undoes the changes that the flash does not hold, newest first. Changes that newer data on
    /// flash have replaced are not undone.
    fn undo<R: Recorder>(&self, drive: &mut Ssd<R>, unwritten: &[Unwritten]) -> Undone {
        drive.ftl.power_off();
        drive.front.unerase(self.held_log_erases);
        let mut undone = Undone::default();
        for change in unwritten {
            if drive.location(change.lpn) == change.at {
                drive.front.return_to(change, &mut drive.ftl);
                undone.add(change);
            }
        }
        let own = ReclaimUnitId(drive.config.geometry.reclaim_units);
        let waiting = self.waiting.iter().filter(|unit| unit.reclaim_unit == own);
        drive.front.power_up(waiting.map(|unit| unit.unit).collect());
        undone
    }
}

/// Program units of an open reclaim unit, from the first to the last that was started.
fn begun(unit: ReclaimUnitId, full: u32, unfinished: &Unfinished) -> u32 {
    let waits =
        |index: u32| unfinished.waiting.iter().any(|w| w.reclaim_unit == unit && w.unit == index);
    (0..full).rev().find(|&index| !waits(index)).map_or(0, |last| last + 1)
}
