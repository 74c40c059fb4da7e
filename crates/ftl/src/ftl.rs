//! Flash translation layer: host operations and accessors. Power loss and saved states are
//! implemented in other files.

use std::ops::Range;

use writecliff_base::{Lpn, Ppa, ReclaimUnitId, StreamId};
use writecliff_flash::{Geometry, SLOT_BYTES, Wear};
use writecliff_host_interface::Content;
use writecliff_host_interface::content::SECTORS_PER_SLOT;

use crate::check::check_all;
use crate::gc_log::GcLog;
use crate::groups::{Group, Groups};
use crate::map::{prefetch, prefetch_far};
use crate::spare::{SparePolicy, StreamSpare};
use crate::table::UnitState;
use crate::{
    Allocated, BadBlocks, ConfigError, Counters, FlashSink, FrontierId, FtlConfig, Parts,
    ReductionCounters, UnitTable,
};

/// Flash translation layer and its state. The crate documentation describes the contract of this
/// type.
///
/// A `Group` allocates, opens, programs and collects reclaim units in one reclaim group. `Ftl`
/// selects the group for each operation.
#[derive(Clone, Debug)]
pub struct Ftl {
    pub(crate) parts: Parts,
    pub(crate) groups: Groups,
}

impl Ftl {
    /// Returns the FTL of a new drive, with factory bad blocks.
    pub fn new(geometry: Geometry, config: FtlConfig) -> Result<Self, ConfigError> {
        config.check(&geometry)?;
        let geometry = match config.reduction {
            Some(reduction) => reduction.addresses(geometry)?,
            None => geometry,
        };
        geometry.check_addresses(0)?;
        let has_others = config.volatile_buffer
            || config.reduction.is_some()
            || config.bad_blocks.is_some()
            || config.spare == SparePolicy::SelfTuned;
        assert!(geometry.reclaim_groups == 1 || !has_others, "groups exclude other mechanisms");
        let parts = Parts::new(geometry, config);
        let groups = Groups::new(&parts);
        let reserve = parts.config.reserved_units() as usize;
        assert!(groups.all.iter().all(|group| group.free.len() > reserve), "only GC has units");
        Ok(Self { parts, groups })
    }

    /// Returns the geometry of the flash.
    pub fn geometry(&self) -> &Geometry {
        &self.parts.geometry
    }

    /// Returns the configuration of the FTL.
    pub fn config(&self) -> &FtlConfig {
        &self.parts.config
    }

    /// Returns the user capacity in slots, which is at most the number of page addresses.
    #[inline]
    pub fn user_slots(&self) -> u32 {
        self.parts.config.user_slots as u32
    }

    /// Returns the counters since the drive was new.
    pub fn counters(&self) -> &Counters {
        &self.parts.counters
    }

    /// Returns the erase counts of all reclaim units.
    pub fn wear(&self) -> &Wear {
        &self.parts.wear
    }

    /// Returns the state and valid data of all reclaim units.
    pub fn table(&self) -> &UnitTable {
        &self.parts.table
    }

    /// Returns the log of GC actions on host units, for data placement events.
    pub fn gc_log_mut(&mut self) -> &mut GcLog {
        &mut self.parts.gc_log
    }

    /// Returns the allocation units moved since the FTL was made or restored, by the stream of
    /// their unit; the last element counts units with relocated data of several streams.
    pub fn moved_by_stream(&self) -> &[u64] {
        &self.parts.moved_by_stream
    }

    /// Returns the measurements for each stream; empty unless `spare = "self-tuned"`.
    pub fn stream_spare(&self) -> &[StreamSpare] {
        self.parts.spare.as_ref().map_or(&[], |spare| &spare.streams)
    }

    /// Returns the drive's blocks; `None` if blocks never fail.
    pub fn bad_blocks(&self) -> Option<&BadBlocks> {
        self.parts.bad_blocks.as_deref()
    }

    /// Returns `true` if no spare space remains and host writes must be rejected.
    pub fn is_read_only(&self) -> bool {
        self.bad_blocks().is_some_and(|bad| bad.counts.read_only != 0)
    }

    /// Returns `true` if the drive is read-only and rejects a host write, which it counts.
    pub fn refuses_write(&mut self) -> bool {
        let is_refused = self.is_read_only();
        if let Some(bad) = self.parts.bad_blocks.as_mut().filter(|_| is_refused) {
            bad.counts.refused_writes += 1;
        }
        is_refused
    }

    /// Returns the number of free reclaim units in the group that the host writes to.
    pub fn free_units(&self) -> u32 {
        self.groups.current().free.len() as u32
    }

    /// Returns the number of logical pages that hold data.
    pub fn mapped_slots(&self) -> u64 {
        self.parts.map.mapped
    }

    /// Returns the data reduction counters; `None` if the drive does not reduce data.
    #[inline]
    pub fn reduction(&self) -> Option<&ReductionCounters> {
        self.parts.packer.as_ref().map(|packer| &packer.counters)
    }

    /// Returns the bytes allocated since the drive was new, by cause, programmed or not.
    #[inline]
    pub fn allocated(&self) -> Allocated {
        match self.reduction() {
            None => {
                let c = &self.parts.counters;
                let slots = [c.host_slots, c.gc_slots, c.wear_slots, c.padding_slots];
                Allocated::in_units(SLOT_BYTES, slots)
            }
            Some(c) => {
                let sectors = [c.host_sectors, c.gc_sectors, c.wear_sectors, c.padding_sectors];
                Allocated::in_units(SLOT_BYTES / SECTORS_PER_SLOT, sectors)
            }
        }
    }

    /// Returns the number of parity units programmed since the drive was new.
    pub fn parity_programs(&self) -> u64 {
        self.parts.parity.programs
    }

    /// Returns the physical address of a logical page; `Ppa::NONE` if the page holds no data.
    #[inline]
    pub fn lookup(&self, lpn: Lpn) -> Ppa {
        self.parts.map.lookup(lpn)
    }

    /// Returns the logical page at a physical address with valid data of exactly one page.
    pub fn holder(&self, ppa: Ppa) -> Option<Lpn> {
        self.parts.map.holder(ppa)
    }

    /// Returns the size of a logical page's data in sectors; 1 slot without data reduction.
    #[inline]
    pub fn alloc_units_of(&self, lpn: Lpn) -> u32 {
        self.parts.map.alloc_units_of(lpn)
    }

    /// Returns `true` if writing a slot takes space: its data are not stored already.
    pub fn takes_space(&self, content: Content, bytes: u32) -> bool {
        let Some(packer) = &self.parts.packer else { return true };
        let original = self.parts.map.forward.get(content.same_as.index());
        let is_stored = original.is_some_and(|ppa| !ppa.is_none());
        !(packer.config.duplicates && bytes == SLOT_BYTES && is_stored)
    }

    /// Returns the frontier that host writes of `stream` go to.
    #[inline]
    pub fn host_frontier(&self, stream: StreamId) -> FrontierId {
        self.parts.frontiers.of_host(stream)
    }

    /// Returns `true` for the frontier of a host stream, `false` for a GC frontier.
    pub fn is_host_frontier(&self, frontier: FrontierId) -> bool {
        self.parts.frontiers.is_of_host(frontier)
    }

    /// Returns the number of slots that the host has written in the open unit of its frontier.
    pub fn filled(&self, frontier: FrontierId) -> u32 {
        let (filled, moved) = (self.parts.filled(frontier), self.parts.frontiers[frontier].moved);
        debug_assert!(moved <= filled, "more slots are relocated than filled");
        filled - moved
    }

    /// Returns `true` if a slot of `unit` is in a program unit that is not full yet.
    #[inline]
    pub fn is_filling(&self, ppa: Ppa, unit: ReclaimUnitId) -> bool {
        let Parts { table, frontiers, geometry, .. } = &self.parts;
        table.state[unit.index()] == UnitState::Open
            && frontiers.is_filling(ppa, unit, geometry.ppas_per_program_unit)
    }

    /// Returns the number of slots that can still be written to the open unit of a host frontier,
    /// and `true` if part of it has been written. A frontier without a unit will open an empty one.
    pub fn host_room(&self, frontier: FrontierId) -> (u32, bool) {
        debug_assert!(self.is_host_frontier(frontier), "only the host asks for room");
        let f = &self.parts.frontiers[frontier];
        let size = self.parts.geometry.slots_per_reclaim_unit;
        if f.needs_unit() {
            return (size, false);
        }
        let (unwritten, config) = (self.parts.unwritten(frontier, f) as u32, &self.parts.config);
        (unwritten / config.alloc_units(1), unwritten < config.alloc_units(size))
    }

    /// Returns the partly written unit of a host frontier.
    pub fn host_unit(&self, frontier: FrontierId) -> Option<ReclaimUnitId> {
        self.host_room(frontier).1.then(|| self.parts.frontiers[frontier].unit)
    }

    /// Returns the open reclaim units.
    pub fn open_units(&self) -> impl Iterator<Item = ReclaimUnitId> + '_ {
        self.parts.frontiers.open().map(|(_, f)| f.unit)
    }

    /// Returns the number of full program units in an open reclaim unit.
    pub fn full_units(&self, unit: ReclaimUnitId) -> u32 {
        self.parts.full_units(unit)
    }

    /// Prefetches the memory that a later `write(lpn)` will access. The prefetch has no effect on
    /// the state. (The per-unit counters are few and always cached.)
    #[inline]
    pub fn prefetch(&self, lpn: Lpn) {
        prefetch_far(&self.parts.map.forward, lpn.index());
    }

    /// Prefetches the map entry for an access that follows immediately.
    #[inline]
    pub fn prefetch_now(&self, lpn: Lpn) {
        prefetch(&self.parts.map.forward, lpn.index());
    }

    /// Makes the group of a frontier the current group. Returns the group with the shared state.
    fn enter_for(&mut self, frontier: FrontierId) -> (&mut Group, &mut Parts) {
        let group = self.parts.frontiers.group_of(frontier);
        (self.groups.enter(group), &mut self.parts)
    }

    /// Chooses the reclaim group for the host's next slot of `stream`. Returns the stream there:
    /// `stream` itself or, while its group is full, the same handle in another group.
    pub fn choose_stream(&mut self, stream: StreamId) -> StreamId {
        self.groups.choose_stream(&self.parts, stream)
    }

    /// Writes `bytes` bytes of a slot. A partial write may read the slot's old data from flash.
    #[inline]
    pub fn write<S: FlashSink>(&mut self, lpn: Lpn, stream: StreamId, bytes: u32, sink: &mut S) {
        self.write_inlined(lpn, stream, bytes, sink);
    }

    /// Writes a slot like `write`, inlined for a loop that only writes.
    #[inline(always)]
    pub fn write_inlined<S: FlashSink>(
        &mut self,
        lpn: Lpn,
        stream: StreamId,
        bytes: u32,
        sink: &mut S,
    ) {
        let Self { parts, groups } = self;
        debug_assert!(bytes <= SLOT_BYTES, "a slot is written at a time");
        debug_assert!(parts.packer.is_none(), "see write_reduced");
        let frontier = parts.frontiers.of_host(stream);
        debug_assert!(groups.current == parts.frontiers.group_of(frontier), "see choose_stream");
        let group = groups.current_mut();
        if bytes < SLOT_BYTES {
            parts.merge(frontier, lpn, sink);
        }
        let ppa = group.allocate(parts, frontier, lpn, sink);
        // Update the map only now: making room for the new slot may have relocated the old one.
        let old = parts.map.place(lpn, ppa);
        if !old.is_none() {
            parts.table.invalidate(parts.geometry.reclaim_unit_of(old), 1);
        }
        sink.placed(lpn, ppa, old);
        parts.counters.host_slots += 1;
        parts.counters.host_bytes += u64::from(bytes);
        group.pace(parts, sink);
    }

    /// Writes a slot like [`Ftl::write`] on a drive that reduces data; `content` describes it.
    pub fn write_reduced<S: FlashSink>(
        &mut self,
        lpn: Lpn,
        stream: StreamId,
        bytes: u32,
        content: Content,
        sink: &mut S,
    ) {
        debug_assert!(bytes <= SLOT_BYTES, "a slot is written at a time");
        let takes_space = self.takes_space(content, bytes);
        let (parts, group) = (&mut self.parts, self.groups.current_mut());
        let frontier = parts.frontiers.of_host(stream);
        if bytes < SLOT_BYTES {
            parts.merge(frontier, lpn, sink);
        }
        let released = if takes_space {
            let sectors = parts.packer.as_ref().map_or(0, |packer| packer.stored(content));
            assert!(sectors > 0, "a drive that reduces data");
            group.close_if_short(parts, frontier, sectors, sink);
            if parts.frontiers[frontier].needs_unit() {
                group.open_for_host(parts, frontier, sink);
            }
            let ppa = group.append(parts, frontier, lpn, sectors, sink);
            parts.stored(|c| c.host_sectors += u64::from(sectors));
            parts.map.place_piece(lpn, ppa, sectors)
        } else {
            parts.stored(|c| c.duplicate_slots += 1);
            parts.map.refer(lpn, content.same_as)
        };
        parts.invalidate(released);
        parts.counters.host_slots += 1;
        parts.counters.host_bytes += u64::from(bytes);
        group.pace(parts, sink);
    }

    /// Writes all slots of an indirection unit, for which the host has written `bytes` bytes.
    /// Unless these are the whole unit (`is_whole`), the FTL first reads the unit's old data.
    pub fn write_unit<S: FlashSink>(
        &mut self,
        unit: Range<u32>,
        stream: StreamId,
        is_whole: bool,
        bytes: u64,
        sink: &mut S,
    ) {
        let whole = unit.len() as u64 * u64::from(SLOT_BYTES);
        debug_assert!(unit.start < unit.end && unit.end <= self.user_slots());
        debug_assert!(!is_whole || bytes >= whole, "less was written than the whole unit");
        if !is_whole {
            let frontier = self.host_frontier(stream);
            let group = self.parts.geometry.ppas_per_read_group;
            let read = |first, count| sink.read_for(frontier, first, count);
            self.parts.map.read_runs(unit.clone(), group, read);
        }
        for lpn in unit {
            self.write(Lpn(lpn), stream, SLOT_BYTES, sink);
        }
        let counters = &mut self.parts.counters;
        counters.host_bytes = counters.host_bytes + bytes - whole;
    }

    /// Unmaps a logical page (TRIM, deallocate).
    pub fn trim(&mut self, lpn: Lpn) {
        if self.supersede(lpn) {
            self.parts.counters.trimmed_slots += 1;
        }
    }

    /// Invalidates a logical page's flash data because newer data are stored elsewhere. Returns
    /// `true` if the page held data.
    #[inline]
    pub fn supersede(&mut self, lpn: Lpn) -> bool {
        let released = self.parts.map.remove(lpn);
        self.parts.invalidate(released);
        released.is_some()
    }

    /// Closes the host's open unit if the next host data do not fit.
    pub fn make_fit<S: FlashSink>(&mut self, stream: StreamId, content: Content, sink: &mut S) {
        let (parts, group) = (&mut self.parts, self.groups.current_mut());
        if let Some(packer) = &parts.packer {
            let sectors = packer.stored(content);
            group.close_if_short(parts, parts.frontiers.of_host(stream), sectors, sink);
        }
    }

    /// Pads the program unit that a host frontier is filling; returns `false` without one.
    pub fn pad<S: FlashSink>(&mut self, frontier: FrontierId, sink: &mut S) -> bool {
        let (group, parts) = self.enter_for(frontier);
        group.pad(parts, frontier, sink)
    }

    /// Opens a unit for a host frontier that needs one, as the frontier's next write would: garbage
    /// collection may fill the frontier's program unit before that write.
    pub fn prepare<S: FlashSink>(&mut self, frontier: FrontierId, sink: &mut S) {
        if self.parts.frontiers[frontier].needs_unit() {
            let (group, parts) = self.enter_for(frontier);
            group.open_for_host(parts, frontier, sink);
        }
    }

    /// Closes the open unit of a host frontier early, so that the frontier's next write opens an
    /// empty unit. Returns the number of slots that remain unwritten; 0 if no unit was open.
    pub fn abandon<S: FlashSink>(&mut self, frontier: FrontierId, sink: &mut S) -> u32 {
        debug_assert!(self.is_host_frontier(frontier), "garbage collection closes its own units");
        let (group, parts) = self.enter_for(frontier);
        group.abandon(parts, frontier, sink)
    }

    /// Returns the FTL to its fresh state, with all blocks erased. Keeps counters and wear.
    pub fn purge(&mut self) {
        self.parts.purge();
        self.groups = Groups::new(&self.parts);
        assert_eq!(self.mapped_slots(), 0, "a purged drive holds data");
        assert_eq!(self.open_units().count(), 0, "a purged drive has no open units");
    }

    /// Returns `true` if `gc_in_background` has work to do.
    pub fn needs_background_gc(&self) -> bool {
        self.groups.all.iter().any(|group| group.needs_background_gc(&self.parts))
    }

    /// Runs a step of background GC, a read group. Returns `false` if nothing is left to do.
    pub fn gc_in_background<S: FlashSink>(&mut self, sink: &mut S) -> bool {
        self.groups.enter_any(|group| group.step_when_idle(&mut self.parts, sink))
    }

    /// Relocates one whole victim if at most the fraction `valid_max` of it is valid. Returns
    /// `false` if the next victim has more valid data, no victim exists, or GC is in progress.
    pub fn gc_early<S: FlashSink>(&mut self, valid_max: f64, sink: &mut S) -> bool {
        self.groups.enter_any(|group| group.relocate_early(&mut self.parts, valid_max, sink))
    }

    /// Relocates a closed unit after the current victim; returns `false` if it is not closed then.
    pub fn relocate_unit<S: FlashSink>(&mut self, unit: ReclaimUnitId, sink: &mut S) -> bool {
        let group = self.parts.geometry.group_of(unit) as usize;
        self.groups.enter(group).relocate_unit(&mut self.parts, unit, sink)
    }

    /// Stops writing to a die, whose program units then remain unwritten.
    ///
    /// # Errors
    /// Returns an error if the other dies cannot hold the user capacity and the garbage collection
    /// reserve.
    pub fn lose_die(&mut self, die: u32) -> Result<(), String> {
        let Parts { geometry, config, .. } = &self.parts;
        assert!(die < geometry.dies, "the caller checks the number of the die");
        let units = geometry.program_units_per_reclaim_unit;
        let lost = (0..units).filter(|&unit| geometry.die_of_unit(unit) == die).count() as u32;
        let left = geometry.slots_per_program_unit * (units - lost);
        config.check_capacity(geometry, left).map_err(|e| format!("without die {die}, {e}"))?;
        self.parts.parity.lose_die(die);
        for group in &mut self.groups.all {
            group.skip_all_lost(&mut self.parts);
        }
        Ok(())
    }

    /// Relocates the data of a reclaim unit that are on a die; returns the number of slots.
    pub fn evacuate<S: FlashSink>(&mut self, unit: ReclaimUnitId, die: u32, sink: &mut S) -> u64 {
        self.groups.of_unit(unit).evacuate(&mut self.parts, unit, die, sink)
    }

    /// Checks the whole state, in O(drive); returns the first violated invariant.
    pub fn check_invariants(&self) -> Result<(), String> {
        check_all(&self.parts, &self.groups)
    }
}
