//! Packing: pieces of different sizes into program units, one behind the other.
//!
//! A piece gets the first free address of the read group in which it begins, so that an address
//! leads to the die and page to read. Addresses that no piece begins at stay unused.

use writecliff_base::{Lpn, Ppa, StreamId};
use writecliff_host_interface::Content;
use writecliff_host_interface::content::SECTORS_PER_SLOT;

use super::shared::is_shared;
use crate::frontier::{Frontier, FrontierId};
use crate::ftl::{Ftl, WRITE_AHEAD, prefetch};
use crate::garbage_collection::LiveSlots;
use crate::sink::FlashSink;

/// How far a frontier's program unit is filled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pack {
    /// Sectors taken, what has crossed from the unit before included.
    pub used: u32,
    /// Pieces that begin in the unit.
    pub pieces: u32,
}

impl Ftl {
    /// Sectors of a program unit.
    pub(super) fn sectors_per_program_unit(&self) -> u32 {
        self.geometry.slots_per_program_unit * SECTORS_PER_SLOT
    }

    /// Sectors that a frontier has not filled of its reclaim unit; `used` are filled of its current
    /// program unit.
    pub(crate) fn unpacked(&self, f: &Frontier, used: u32) -> i64 {
        if f.needs_unit() {
            return 0;
        }
        let ppas = self.geometry.ppas_per_program_unit;
        let units = (f.end - f.fill_end) / ppas + 1;
        i64::from(units * self.sectors_per_program_unit()) - i64::from(used)
    }

    /// Put a piece of `sectors` behind what `frontier` has; `holder` is its reverse entry. The
    /// caller maps it.
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

    /// Before the host writes data that it will wait for: close the unit that they do not fit into.
    pub fn make_fit<S: FlashSink>(&mut self, stream: StreamId, content: Content, sink: &mut S) {
        let Some(r) = &self.reduction else { return };
        let sectors = r.stored(content);
        self.close_if_short(self.host_frontier(stream), sectors, sink);
    }

    /// At the end of a reclaim unit with less room than `sectors`: close it.
    fn close_if_short<S: FlashSink>(&mut self, frontier: FrontierId, sectors: u32, sink: &mut S) {
        let sectors_per_program_unit = self.sectors_per_program_unit();
        let f = self.frontiers[frontier.index()];
        let used = self.reduction.as_ref().map_or(0, |r| r.packs[frontier.index()].used);
        if !f.needs_unit() && f.fill_end == f.end && used + sectors > sectors_per_program_unit {
            self.close_packed(frontier, sink);
        }
    }

    /// Close the program unit that a frontier is filling with what it has.
    fn close_packed<S: FlashSink>(&mut self, frontier: FrontierId, sink: &mut S) {
        let sectors_per_program_unit = self.sectors_per_program_unit();
        let Some(r) = &mut self.reduction else { return };
        let pack = &mut r.packs[frontier.index()];
        // What is beyond the unit's end has crossed into the next one.
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

    /// [`Ftl::pad`] on a drive that packs.
    pub(crate) fn pad_packed<S: FlashSink>(&mut self, frontier: FrontierId, sink: &mut S) -> bool {
        let filled = self.reduction.as_ref().is_some_and(|r| r.packs[frontier.index()].used > 0);
        if filled {
            self.close_packed(frontier, sink);
        }
        filled
    }

    /// The frontier has a reclaim unit with room for the piece.
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

    /// The pieces that begin in `first..first + group` and are current, by their reverse entries;
    /// returns how many.
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

    /// Read the pieces that begin in the read group at `first` and relocate them to `frontier`.
    /// Returns how many sectors they take.
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
            // Before the piece may fill the unit, with which the count goes out.
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
