//! Packing: pieces of different sizes into program units, one behind the other.
//!
//! A piece gets the first free address of the read group in which it begins, so that an address
//! leads to the die and page to read. Addresses that no piece begins at stay unused.

use writecliff_base::content::SECTORS_PER_SLOT;
use writecliff_base::{Content, Lpn, Ppn, StreamId};

use super::shared::is_shared;
use crate::collect::GROUP_MAX;
use crate::frontier::{Frontier, FrontierId};
use crate::ftl::{Ftl, WRITE_AHEAD, prefetch};
use crate::sink::FlashSink;

/// How far a frontier's program unit is filled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pack {
    /// Grains taken, what has crossed from the unit before included.
    pub used: u32,
    /// Pieces that begin in the unit.
    pub pieces: u32,
}

impl Ftl {
    /// Grains of a program unit.
    pub(super) fn unit_grains(&self) -> u32 {
        self.geometry.slots_per_unit * SECTORS_PER_SLOT
    }

    /// Grains that a frontier has not filled of its reclaim unit, of whose program unit `used` are.
    pub(crate) fn unpacked(&self, f: &Frontier, used: u32) -> i64 {
        if f.needs_unit() {
            return 0;
        }
        let places = self.geometry.places_per_unit;
        let units = (f.end - f.fill_end) / places + 1;
        i64::from(units * self.unit_grains()) - i64::from(used)
    }

    /// Put a piece of `grains` behind what `frontier` has; `holder` is its reverse entry. The
    /// caller maps it.
    pub(super) fn place_packed<S: FlashSink>(
        &mut self,
        frontier: FrontierId,
        holder: Lpn,
        grains: u32,
        sink: &mut S,
    ) -> Ppn {
        self.close_if_short(frontier, grains, sink);
        if self.frontiers[frontier.index()].needs_unit() {
            self.open_for_host(frontier, sink);
        }
        self.append(frontier, holder, grains, sink)
    }

    /// Before the host writes data that it will wait for: close the unit that they do not fit into.
    pub fn make_fit<S: FlashSink>(&mut self, stream: StreamId, content: Content, sink: &mut S) {
        let Some(r) = &self.reduction else { return };
        let grains = r.stored(content);
        self.close_if_short(self.host_frontier(stream), grains, sink);
    }

    /// At the end of a reclaim unit with less room than `grains`: close it.
    fn close_if_short<S: FlashSink>(&mut self, frontier: FrontierId, grains: u32, sink: &mut S) {
        let unit_grains = self.unit_grains();
        let f = self.frontiers[frontier.index()];
        let used = self.reduction.as_ref().map_or(0, |r| r.packs[frontier.index()].used);
        if !f.needs_unit() && f.fill_end == f.end && used + grains > unit_grains {
            self.close_packed(frontier, sink);
        }
    }

    /// Close the program unit that a frontier is filling with what it has.
    fn close_packed<S: FlashSink>(&mut self, frontier: FrontierId, sink: &mut S) {
        let unit_grains = self.unit_grains();
        let Some(r) = &mut self.reduction else { return };
        let pack = &mut r.packs[frontier.index()];
        // What is beyond the unit's end has crossed into the next one.
        let empty = unit_grains.saturating_sub(pack.used);
        let crossed = pack.used.saturating_sub(unit_grains);
        let pieces = pack.pieces;
        *pack = Pack { used: crossed, pieces: 0 };
        r.counters.padding_grains += u64::from(empty);
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
        grains: u32,
        sink: &mut S,
    ) -> Ppn {
        let unit_grains = self.unit_grains();
        let group_grains = self.geometry.slots_per_group * SECTORS_PER_SLOT;
        let (per_group, per_unit) = (self.geometry.places_per_group, self.geometry.places_per_unit);
        let r = self.reduction.as_mut().expect("a drive that reduces data");
        let pack = &mut r.packs[frontier.index()];
        let f = &mut self.frontiers[frontier.index()];
        let group = pack.used / group_grains;
        let place = f.next.max(f.fill_end - per_unit + group * per_group);
        debug_assert!(place < f.fill_end, "more pieces than addresses");
        f.next = place + 1;
        pack.used += grains;
        pack.pieces += 1;
        let full = pack.used >= unit_grains;
        self.idle -= i64::from(grains);
        self.table.valid[f.unit.index()] += grains;
        self.reverse[place as usize] = holder;
        prefetch(&self.reverse, place as usize + WRITE_AHEAD);
        if full {
            self.close_packed(frontier, sink);
        }
        Ppn(place)
    }

    /// The pieces that begin in `first..first + group` and are current, by their reverse entries;
    /// returns how many.
    pub(crate) fn live_pieces(&self, first: u32, group: u32, live: &mut [Lpn; GROUP_MAX]) -> usize {
        let Some(r) = &self.reduction else { return 0 };
        let (begin, group) = (first as usize, group as usize);
        let mut count = 0;
        for (place, &holder) in (first..).zip(&self.reverse[begin..begin + group]) {
            let current = if is_shared(holder.0) {
                r.shared.is_at(holder.0, Ppn(place))
            } else {
                self.forward[holder.index()] == Ppn(place)
            };
            live[count] = holder;
            count += usize::from(current);
        }
        count
    }

    /// Grains of the pieces with these reverse entries; slots where nothing is reduced.
    #[inline]
    pub(crate) fn grains_of_live(&self, live: &[Lpn]) -> u32 {
        match &self.reduction {
            None => live.len() as u32,
            Some(r) => live.iter().map(|&holder| r.size(holder)).sum(),
        }
    }

    /// Move pieces behind what `frontier` has, for collection.
    pub(crate) fn relocate_packed<S: FlashSink>(
        &mut self,
        frontier: FrontierId,
        live: &[Lpn],
        sink: &mut S,
    ) {
        for &holder in live {
            let grains = self.grains_of_live(&[holder]);
            self.close_if_short(frontier, grains, sink);
            if self.frontiers[frontier.index()].needs_unit() {
                self.open(frontier, sink);
            }
            // Before the piece may fill the unit, with which the count goes out.
            if self.is_host_frontier(frontier) {
                self.frontiers[frontier.index()].moved += 1;
            }
            let place = self.append(frontier, holder, grains, sink);
            let r = self.reduction.as_mut().expect("a drive that reduces data");
            if is_shared(holder.0) {
                r.shared.moved(Ppn(holder.0), place);
            } else {
                self.forward[holder.index()] = place;
            }
        }
    }
}
