//! Saves and restores an FTL. Only the forward map is stored. The reverse map is rebuilt from it,
//! because its entries matter only where the forward map points back; stale entries are not
//! restored.

use std::io::{Read, Write};
use std::mem::{replace, take};
use std::ops::Range;

use writecliff_base::codec::{CodecError, StateReader, StateWriter};
use writecliff_base::{Lpn, Ppa, Prng, ReclaimUnitId, StreamId};
use writecliff_flash::Wear;

use crate::counters::Counters;
use crate::frontier::{Frontier, FrontierId};
use crate::ftl::{Ftl, prefetch};
use crate::garbage_collection::Collection;
use crate::gc_destination::GcDestination;
use crate::reduce::is_shared;
use crate::table::{Owner, UnitState};

/// Distance in map entries at which the slots that they point to are prefetched.
const AHEAD: usize = 32;

pub(crate) fn damaged(section: &str) -> CodecError {
    CodecError::Damaged(section.to_owned())
}

impl Ftl {
    /// Takes the state of an FTL of the same geometry and configuration. The maps keep their
    /// memory, with its huge pages.
    pub fn copy_from(&mut self, other: &Self) {
        assert!(self.geometry == other.geometry && self.config == other.config);
        let (mut forward, mut reverse) = (take(&mut self.forward), take(&mut self.reverse));
        forward.copy_from_slice(&other.forward);
        reverse.copy_from_slice(&other.reverse);
        *self = Self {
            geometry: other.geometry.clone(),
            config: other.config.clone(),
            forward,
            reverse,
            table: other.table.clone(),
            wear: other.wear.clone(),
            free: other.free.clone(),
            frontiers: other.frontiers.clone(),
            collection: other.collection.clone(),
            spare: other.spare.clone(),
            counters: other.counters,
            moved_by_stream: other.moved_by_stream.clone(),
            gc_log: other.gc_log.clone(),
            random: other.random.clone(),
            mapped: other.mapped,
            idle: other.idle,
            idle_target: other.idle_target,
            reduction: other.reduction.clone(),
            bad_blocks: other.bad_blocks.clone(),
            lost_die: other.lost_die,
            has_stripes: other.has_stripes,
            parity_programs: other.parity_programs,
            groups: other.groups.clone(),
        };
    }

    pub fn save<W: Write>(&self, out: &mut StateWriter<W>) -> Result<(), CodecError> {
        out.u32s("ftl.forward", &self.forward)?;
        let t = &self.table;
        let states: Vec<u8> = t.state.iter().map(|&s| s as u8).collect();
        out.bytes("ftl.states", &states)?;
        out.u32s("ftl.valid", &t.valid)?;
        let owner = |o: &Owner| u32::from(o.stream.0) << 1 | u32::from(o.relocated);
        out.u32s("ftl.owners", &t.owner.iter().map(owner).collect::<Vec<u32>>())?;
        out.u64s("ftl.closed_at", &t.closed_at)?;
        out.bytes("ftl.erased", &t.erased.iter().map(|&e| u8::from(e)).collect::<Vec<u8>>())?;
        out.u32s("ftl.erases", &self.wear.erases)?;
        let free: Vec<u32> = self.free.iter().map(|u| u.0).collect();
        out.u32s("ftl.free_count", &[free.len() as u32])?;
        out.u32s("ftl.free", &free)?;
        let frontiers: Vec<u32> =
            self.frontiers.iter().flat_map(|f| [f.unit.0, f.next, f.fill_end, f.end]).collect();
        out.u32s("ftl.frontiers", &frontiers)?;
        if self.config.gc_destination == GcDestination::HostUnit {
            out.u32s("ftl.moved", &self.frontiers.iter().map(|f| f.moved).collect::<Vec<u32>>())?;
        }
        if self.config.volatile_buffer {
            out.u64s("ftl.freed_at", &t.freed_at)?;
            out.u64s("ftl.since", &self.frontiers.iter().map(|f| f.since).collect::<Vec<u64>>())?;
        }
        let c = &self.collection;
        let collection = [
            u64::from(c.victim.0),
            u64::from(c.next_position),
            u64::from(c.valid_at_start),
            u64::from(c.moved),
            u64::from(c.for_wear),
            c.last_wear_move,
            self.idle_target as u64,
        ];
        out.u64s("ftl.collection", &collection)?;
        if let Some(groups) = &self.groups {
            let words = groups.to_words();
            out.u32s("ftl.groups_length", &[words.len() as u32])?;
            out.u64s("ftl.groups", &words)?;
        }
        let spare = self.spare.to_words();
        if !spare.is_empty() {
            out.u64s("ftl.spare", &spare)?;
        }
        if let Some(reduction) = &self.reduction {
            reduction.save(out)?;
        }
        if let Some(bad) = &self.bad_blocks {
            bad.save(out)?;
        }
        out.u64s("ftl.counters", &self.counters.to_array())?;
        out.u64s("ftl.random", &self.random.state())
    }

    /// Replaces the state; the saved drive must have the same geometry and configuration.
    pub fn restore<R: Read>(&mut self, input: &mut StateReader<R>) -> Result<(), CodecError> {
        let units = self.table.len() as usize;
        self.mapped = 0;
        let mut valid = vec![0; units];
        input.u32s_each("ftl.forward", self.forward.len(), |first, ppas| {
            self.restore_maps(first, ppas, &mut valid)
        })?;
        let states = input.bytes("ftl.states")?;
        if states.len() != units {
            return Err(damaged("ftl.states"));
        }
        let states: Option<Vec<_>> = states.into_iter().map(UnitState::from_u8).collect();
        self.table.state = states.ok_or_else(|| damaged("ftl.states"))?;
        self.table.valid = input.u32s("ftl.valid", units)?;
        let owner = |o: u32| Owner { stream: StreamId((o >> 1) as u16), relocated: o & 1 == 1 };
        self.table.owner = input.u32s("ftl.owners", units)?.into_iter().map(owner).collect();
        self.table.closed_at = input.u64s("ftl.closed_at", units)?;
        self.table.erased = input.bytes("ftl.erased")?.into_iter().map(|e| e == 1).collect();
        if self.table.erased.len() != units {
            return Err(damaged("ftl.erased"));
        }
        let erases = input.u32s("ftl.erases", units)?;
        self.wear = Wear::from_counts(erases, self.config.rated_cycles);
        let free_count = input.u32s("ftl.free_count", 1)?[0];
        let free = input.u32s("ftl.free", free_count as usize)?;
        self.free = free.into_iter().map(ReclaimUnitId).collect();
        let frontiers = input.u32s("ftl.frontiers", 4 * self.frontiers.len())?;
        for (f, raw) in self.frontiers.iter_mut().zip(frontiers.chunks_exact(4)) {
            let unit = ReclaimUnitId(raw[0]);
            let (next, fill_end, end) = (raw[1], raw[2], raw[3]);
            *f = Frontier { unit, next, fill_end, end, moved: 0, since: u64::MAX };
        }
        if self.config.gc_destination == GcDestination::HostUnit {
            let moved = input.u32s("ftl.moved", self.frontiers.len())?;
            self.frontiers.iter_mut().zip(moved).for_each(|(f, moved)| f.moved = moved);
        }
        if self.config.volatile_buffer {
            self.table.freed_at = input.u64s("ftl.freed_at", units)?;
            let since = input.u64s("ftl.since", self.frontiers.len())?;
            self.frontiers.iter_mut().zip(since).for_each(|(f, since)| f.since = since);
        }
        let c = input.u64s("ftl.collection", 7)?;
        self.idle_target = c[6] as i64;
        self.collection = Collection {
            victim: ReclaimUnitId(c[0] as u32),
            next_position: c[1] as u32,
            valid_at_start: c[2] as u32,
            moved: c[3] as u32,
            for_wear: c[4] == 1,
            last_wear_move: c[5],
        };
        self.restore_groups(input)?;
        let words = self.spare.to_words().len();
        if words > 0 && !self.spare.set_words(&input.u64s("ftl.spare", words)?) {
            return Err(damaged("ftl.spare"));
        }
        self.restore_reduction(input)?;
        if let Some(bad) = &mut self.bad_blocks {
            bad.restore(input)?;
        }
        self.check_restored(&valid).map_err(damaged)?;
        self.count_idle_of_each();
        let counters = input.u64s("ftl.counters", Counters::FIELDS)?;
        let counters = counters.try_into().map_err(|_| damaged("ftl.counters"))?;
        self.counters = Counters::from_array(counters);
        let random = input.u64s("ftl.random", 4)?;
        self.random = Prng::from_state(random.try_into().map_err(|_| damaged("ftl.random"))?);
        Ok(())
    }

    /// Allocation units that can be written without garbage collection: those of free reclaim
    /// units and the unwritten rest of open ones.
    pub(crate) fn count_idle(&self) -> i64 {
        self.idle_in(&self.pool(), self.free.len())
    }

    /// The same of a reclaim group with these units, so many of which are free.
    pub(crate) fn idle_in(&self, units: &Range<u32>, free: usize) -> i64 {
        let unwritten = |(id, f): (usize, &Frontier)| match &self.reduction {
            None => i64::from(f.end - f.next),
            Some(r) => self.unpacked(f, r.used(FrontierId(id as u16))),
        };
        let here = |(_, f): &(usize, &Frontier)| units.contains(&f.unit.0);
        let in_open: i64 = self.frontiers.iter().enumerate().filter(here).map(unwritten).sum();
        free as i64 * i64::from(self.table.alloc_units_per_reclaim_unit) + in_open
    }

    /// Maps the logical pages from `first` on to `ppas`, and counts them in `valid`.
    fn restore_maps(
        &mut self,
        first: usize,
        ppas: &[u32],
        valid: &mut [u32],
    ) -> Result<(), CodecError> {
        for (i, &ppa) in ppas.iter().enumerate() {
            let lpn = first + i;
            self.forward[lpn] = Ppa(ppa);
            if let Some(&soon) = ppas.get(i + AHEAD) {
                prefetch(&self.reverse, soon as usize);
            }
            if ppa == Ppa::NONE.0 {
                continue;
            }
            self.mapped += 1;
            if self.reduction.is_some() && is_shared(ppa) {
                continue;
            }
            let slot = self.reverse.get_mut(ppa as usize);
            let slot = slot.ok_or_else(|| damaged("ftl.forward"))?;
            // What the drive held before may still be there; pages before this one are restored.
            let before = replace(slot, Lpn(lpn as u32)).index();
            if before < lpn && self.forward[before] == Ppa(ppa) {
                return Err(damaged("ftl.forward"));
            }
            valid[self.geometry.reclaim_unit_of(Ppa(ppa)).index()] += 1;
        }
        Ok(())
    }
}
