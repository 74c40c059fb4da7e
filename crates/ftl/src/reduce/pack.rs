//! Packs pieces of different sizes into program units.
//!
//! A piece gets the first free address of the read group in which it starts, so that its address
//! determines the die and page to read. Addresses at which no piece starts stay unused.

use writecliff_base::{Lpn, Ppa, StreamId};
use writecliff_host_interface::Content;
use writecliff_host_interface::content::SECTORS_PER_SLOT;

use super::shared::is_shared;
use crate::frontier::{Frontier, FrontierId};
use crate::ftl::{Ftl, WRITE_AHEAD, prefetch};
use crate::garbage_collection::LiveSlots;
use crate::sink::FlashSink;

/// Fill level of a frontier's program unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pack {
    /// Used sectors, including those of a piece that crossed over from the previous unit.
    pub used: u32,
    /// Pieces that start in the unit.
    pub pieces: u32,
}

impl Ftl {
    /// Sectors of a program unit.
    pub(super) fn sectors_per_program_unit(&self) -> u32 {
        self.geometry.slots_per_program_unit * SECTORS_PER_SLOT
    }

    /// Sectors left in a frontier's reclaim unit, of whose current program unit `used` are filled.
    pub(crate) fn unpacked(&self, f: &Frontier, used: u32) -> i64 {
        if f.needs_unit() {
            return 0;
        }
        let ppas = self.geometry.ppas_per_program_unit;
        let units = (f.end - f.fill_end) / ppas + 1;
        i64::from(units * self.sectors_per_program_unit()) - i64::from(used)
    }

    /// Appends a piece of `sectors` to `frontier`; `holder` is its reverse entry. The caller
    /// updates the map.
    pub(super) fn allocate_packed<S: FlashSink>(
        &mut self,
        frontier: FrontierId,
        holder: Lpn,
        sectors: u32,
        sink: &mut S,
    ) -> Ppa {
        self.close_if_short(frontier, sectors, sink);
        if self.frontiers[frontier.index()].needs_unit() {
            self.open_for_host(frontier, sink);
        }
        self.append(frontier, holder, sectors, sink)
    }

    /// Closes the host's open unit if data that the host is about to write do not fit into it.
    pub fn make_fit<S: FlashSink>(&mut self, stream: StreamId, content: Content, sink: &mut S) {
        let Some(r) = &self.reduction else { return };
        let sectors = r.stored(content);
        self.close_if_short(self.host_frontier(stream), sectors, sink);
    }

    /// Closes a reclaim unit that has less space left than `sectors`.
    fn close_if_short<S: FlashSink>(&mut self, frontier: FrontierId, sectors: u32, sink: &mut S) {
        let sectors_per_program_unit = self.sectors_per_program_unit();
        let f = self.frontiers[frontier.index()];
        let used = self.reduction.as_ref().map_or(0, |r| r.packs[frontier.index()].used);
        if !f.needs_unit() && f.fill_end == f.end && used + sectors > sectors_per_program_unit {
            self.close_packed(frontier, sink);
        }
    }

    /// Closes the partly filled program unit of a frontier.
    fn close_packed<S: FlashSink>(&mut self, frontier: FrontierId, sink: &mut S) {
        let sectors_per_program_unit = self.sectors_per_program_unit();
        let Some(r) = &mut self.reduction else { return };
        let pack = &mut r.packs[frontier.index()];
        // Sectors beyond the unit's end have crossed over into the next one.
        let empty = sectors_per_program_unit.saturating_sub(pack.used);
        let crossed = pack.used.saturating_sub(sectors_per_program_unit);
        let pieces = pack.pieces;
        *pack = Pack { used: crossed, pieces: 0 };
        r.counters.padding_sectors += u64::from(empty);
        self.idle -= i64::from(empty);
        let f = &mut self.frontiers[frontier.index()];
        f.next = f.fill_end;
        self.program_filled(frontier, pieces, sink);
    }

    /// [`Ftl::pad`] on a drive that reduces data.
    pub(crate) fn pad_packed<S: FlashSink>(&mut self, frontier: FrontierId, sink: &mut S) -> bool {
        let filled = self.reduction.as_ref().is_some_and(|r| r.packs[frontier.index()].used > 0);
        if filled {
            self.close_packed(frontier, sink);
        }
        filled
    }

    /// Appends a piece to a frontier whose reclaim unit has space for it.
    fn append<S: FlashSink>(
        &mut self,
        frontier: FrontierId,
        holder: Lpn,
        sectors: u32,
        sink: &mut S,
    ) -> Ppa {
        let sectors_per_program_unit = self.sectors_per_program_unit();
        let sectors_per_read_group = self.geometry.slots_per_read_group * SECTORS_PER_SLOT;
        let (per_group, per_unit) =
            (self.geometry.ppas_per_read_group, self.geometry.ppas_per_program_unit);
        let r = self.reduction.as_mut().expect("a drive that reduces data");
        let pack = &mut r.packs[frontier.index()];
        let f = &mut self.frontiers[frontier.index()];
        let group = pack.used / sectors_per_read_group;
        let ppa = f.next.max(f.fill_end - per_unit + group * per_group);
        debug_assert!(ppa < f.fill_end, "more pieces than addresses");
        f.next = ppa + 1;
        pack.used += sectors;
        pack.pieces += 1;
        let full = pack.used >= sectors_per_program_unit;
        self.idle -= i64::from(sectors);
        self.table.valid[f.unit.index()] += sectors;
        self.reverse[ppa as usize] = holder;
        prefetch(&self.reverse, ppa as usize + WRITE_AHEAD);
        if full {
            self.close_packed(frontier, sink);
        }
        Ppa(ppa)
    }

    /// Finds the valid pieces that start in `first..first + group` by their reverse entries;
    /// returns their number.
    pub(crate) fn live_pieces(&self, first: u32, group: u32, live: &mut LiveSlots) -> usize {
        let Some(r) = &self.reduction else { return 0 };
        let (begin, group) = (first as usize, group as usize);
        let mut count = 0;
        for (ppa, &holder) in (first..).zip(&self.reverse[begin..begin + group]) {
            let current = if is_shared(holder.0) {
                r.shared.is_at(holder.0, Ppa(ppa))
            } else {
                self.forward[holder.index()] == Ppa(ppa)
            };
            live[count].write(holder);
            count += usize::from(current);
        }
        count
    }

    /// Reads the pieces that start in the read group at `first` and relocates them to `frontier`.
    /// Returns the number of sectors that they occupy.
    #[cold]
    pub(crate) fn relocate_group_packed<S: FlashSink>(
        &mut self,
        frontier: FrontierId,
        first: Ppa,
        live: &[Lpn],
        sink: &mut S,
    ) -> u32 {
        let sectors = live.iter().map(|&holder| self.sectors_of_piece(holder)).sum();
        sink.read_for(frontier, first, self.config.slots_of(sectors));
        self.relocate_packed(frontier, live, sink);
        self.count_moved(sectors);
        sectors
    }

    /// Sectors of the piece with this reverse entry.
    fn sectors_of_piece(&self, holder: Lpn) -> u32 {
        self.reduction.as_ref().map_or(1, |r| r.size(holder))
    }

    fn relocate_packed<S: FlashSink>(&mut self, frontier: FrontierId, live: &[Lpn], sink: &mut S) {
        for &holder in live {
            let sectors = self.sectors_of_piece(holder);
            self.close_if_short(frontier, sectors, sink);
            if self.frontiers[frontier.index()].needs_unit() {
                self.open(frontier, sink);
            }
            // Count before appending, because a full unit is programmed with its count.
            if self.is_host_frontier(frontier) {
                self.frontiers[frontier.index()].moved += 1;
            }
            let ppa = self.append(frontier, holder, sectors, sink);
            let r = self.reduction.as_mut().expect("a drive that reduces data");
            if is_shared(holder.0) {
                r.shared.moved(Ppa(holder.0), ppa);
            } else {
                self.forward[holder.index()] = ppa;
            }
        }
    }
}
