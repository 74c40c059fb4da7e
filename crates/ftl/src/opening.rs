//! Opening reclaim units.

use writecliff_base::{ReclaimUnitId, StreamId};

use crate::frontier::{Frontier, FrontierId};
use crate::ftl::Ftl;
use crate::sink::FlashSink;
use crate::table::{Owner, UnitState};

impl Ftl {
    /// Opens a unit for a host frontier that needs one, as the next write to it would: garbage
    /// collection may fill the frontier's program unit before that.
    pub fn prepare<S: FlashSink>(&mut self, frontier: FrontierId, sink: &mut S) {
        if self.frontiers[frontier.index()].needs_unit() {
            self.enter_for(frontier);
            self.open_for_host(frontier, sink);
        }
    }

    /// Opens the next unit of a host frontier, after reserving space for GC.
    #[cold]
    pub(crate) fn open_for_host<S: FlashSink>(&mut self, frontier: FrontierId, sink: &mut S) {
        self.make_room(sink);
        // Making room may already have opened the unit, if relocated data go to the host's unit.
        if self.frontiers[frontier.index()].needs_unit() {
            self.open(frontier, sink);
        }
    }

    #[cold]
    pub(crate) fn open<S: FlashSink>(&mut self, frontier: FrontierId, sink: &mut S) {
        let host = self.is_host_frontier(frontier);
        let cold = !host && self.collection.is_for_wear();
        let unit = loop {
            let unit = self.config.wear.take(&mut self.free, &self.wear, cold);
            // `FtlConfig::check` ensures spare space for every frontier, and `make_room` keeps the
            // reserve.
            let unit = unit.expect("a free reclaim unit is always reserved for garbage collection");
            if self.make_ready(unit, frontier, sink) {
                break unit;
            }
        };
        let index = unit.index();
        self.table.erased[index] = false;
        self.table.state[index] = UnitState::Open;
        let stream = StreamId(frontier.0 % self.config.streams);
        if host {
            self.spare.host_opened(stream);
        }
        self.table.owner[index] = Owner { stream, relocated: !host };
        let first = self.geometry.first_ppa(unit);
        self.frontiers[frontier.index()] = Frontier {
            unit,
            next: first,
            fill_end: first + self.geometry.ppas_per_program_unit,
            end: first + self.geometry.ppas_per_reclaim_unit,
            moved: 0,
            since: u64::MAX,
        };
        if self.lost_die.is_some() {
            self.skip_lost(frontier);
        }
        self.update_idle_target();
    }

    /// Erases a free unit before it is opened. False: its blocks have failed, and it is dropped.
    fn make_ready<S: FlashSink>(
        &mut self,
        unit: ReclaimUnitId,
        frontier: FrontierId,
        sink: &mut S,
    ) -> bool {
        let index = unit.index();
        assert_eq!(self.table.state[index], UnitState::Free);
        assert_eq!(self.table.valid[index], 0, "a unit with valid data must not be erased");
        let is_erased = self.table.erased[index];
        // Whose data must be replaced on flash first: those of the unit, and of the reserve.
        let mut freed_at = (!is_erased).then_some(self.table.freed_at[index]);
        if self.config.volatile_buffer {
            if self.is_host_frontier(frontier) {
                freed_at = freed_at.max(self.reserve_freed_at());
            }
            if let Some(freed_at) = freed_at {
                self.pad_filled_since(freed_at, sink);
            }
        }
        if !is_erased {
            self.wear.record_erase(unit);
        }
        if self.bad_blocks.is_some() && !self.blocks_hold(unit, sink) {
            return false;
        }
        match freed_at {
            Some(freed_at) if is_erased => sink.hold(frontier, unit, freed_at),
            Some(freed_at) => sink.erase(frontier, unit, freed_at),
            None => {}
        }
        true
    }
}
