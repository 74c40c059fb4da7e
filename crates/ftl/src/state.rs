//! Saves and restores an FTL, copies it, and takes its digest.

use std::io::{Read, Write};
use std::mem::take;

use writecliff_base::codec::{CodecError, StateReader, StateWriter};
use writecliff_base::words::WordReader;
use writecliff_base::{Prng, ReclaimUnitId};
use writecliff_flash::Wear;

use crate::check::check_sections;
use crate::counters::Counters;
use crate::frontier::Frontier;
use crate::ftl::Ftl;
use crate::garbage_collection::Collection;
use crate::gc_destination::GcDestination;
use crate::groups::Group;
use crate::parts::Parts;

pub(crate) fn damaged(section: &str) -> CodecError {
    CodecError::Damaged(section.to_owned())
}

impl Ftl {
    /// Takes the state of an FTL of the same geometry and configuration. The maps keep their
    /// memory, with its huge pages.
    pub fn copy_from(&mut self, other: &Self) {
        let from = &other.parts;
        assert!(self.parts.geometry == from.geometry && self.parts.config == from.config);
        let mut map = take(&mut self.parts.map);
        map.copy_from(&from.map);
        self.groups = other.groups.clone();
        self.parts = Parts {
            geometry: from.geometry.clone(),
            config: from.config.clone(),
            map,
            table: from.table.clone(),
            wear: from.wear.clone(),
            frontiers: from.frontiers.clone(),
            spare: from.spare.clone(),
            counters: from.counters,
            moved_by_stream: from.moved_by_stream.clone(),
            gc_log: from.gc_log.clone(),
            random: from.random.clone(),
            packer: from.packer.clone(),
            bad_blocks: from.bad_blocks.clone(),
            parity: from.parity,
        };
    }

    pub fn save<W: Write>(&self, out: &mut StateWriter<W>) -> Result<(), CodecError> {
        let (parts, group) = (&self.parts, self.groups.current());
        parts.map.save(out)?;
        parts.table.save(out)?;
        out.u32s("ftl.erases", &parts.wear.erases)?;
        let free: Vec<u32> = group.free.iter().map(|u| u.0).collect();
        out.u32s("ftl.free_count", &[free.len() as u32])?;
        out.u32s("ftl.free", &free)?;
        let frontiers = || parts.frontiers.iter();
        let ends = |f: &Frontier| [f.unit.0, f.next, f.fill_end, f.end];
        out.u32s("ftl.frontiers", &frontiers().flat_map(ends).collect::<Vec<u32>>())?;
        if parts.config.gc_destination == GcDestination::HostUnit {
            out.u32s("ftl.moved", &frontiers().map(|f| f.moved).collect::<Vec<u32>>())?;
        }
        if parts.config.volatile_buffer {
            out.u64s("ftl.freed_at", &parts.table.freed_at)?;
            out.u64s("ftl.since", &frontiers().map(|f| f.since).collect::<Vec<u64>>())?;
        }
        let mut collection = group.collection.to_words().to_vec();
        collection.push(group.idle_target as u64);
        out.u64s("ftl.collection", &collection)?;
        self.groups.save(out)?;
        if let Some(spare) = &parts.spare {
            out.u64s("ftl.spare", &spare.to_words())?;
        }
        if let (Some(pieces), Some(packer)) = (&parts.map.pieces, &parts.packer) {
            packer.save(pieces, out)?;
        }
        if let Some(bad) = &parts.bad_blocks {
            bad.save(out)?;
        }
        out.u64s("ftl.counters", &parts.counters.to_array())?;
        out.u64s("ftl.random", &parts.random.state())
    }

    /// Replaces the state; the saved drive must have the same geometry and configuration.
    pub fn restore<R: Read>(&mut self, input: &mut StateReader<R>) -> Result<(), CodecError> {
        let parts = &mut self.parts;
        let units = parts.table.len() as usize;
        let streams = usize::from(parts.config.streams);
        let valid = parts.map.restore(input, &parts.geometry)?;
        parts.table.restore(input)?;
        let erases = input.u32s("ftl.erases", units)?;
        parts.wear = Wear::from_counts(erases, parts.config.rated_cycles);
        let free_count = input.u32s("ftl.free_count", 1)?[0];
        let free = input.u32s("ftl.free", free_count as usize)?;
        let free = free.into_iter().map(ReclaimUnitId).collect();
        let frontiers = input.u32s("ftl.frontiers", 4 * 2 * streams)?;
        for (f, raw) in parts.frontiers.iter_mut().zip(frontiers.chunks_exact(4)) {
            let unit = ReclaimUnitId(raw[0]);
            let (next, fill_end, end) = (raw[1], raw[2], raw[3]);
            *f = Frontier { unit, next, fill_end, end, moved: 0, since: u64::MAX };
        }
        if parts.config.gc_destination == GcDestination::HostUnit {
            let moved = input.u32s("ftl.moved", 2 * streams)?;
            parts.frontiers.iter_mut().zip(moved).for_each(|(f, moved)| f.moved = moved);
        }
        if parts.config.volatile_buffer {
            parts.table.freed_at = input.u64s("ftl.freed_at", units)?;
            let since = input.u64s("ftl.since", 2 * streams)?;
            parts.frontiers.iter_mut().zip(since).for_each(|(f, since)| f.since = since);
        }
        let words = input.u64s("ftl.collection", 7)?;
        let collection = Collection::from_words(&mut WordReader::new(&words))?;
        let current = Group { free, collection, idle_target: words[6] as i64, ..Group::default() };
        self.groups.restore(input, current, parts.frontiers.handles)?;
        if let Some(spare) = &mut parts.spare {
            let words = spare.to_words().len();
            if !spare.set_words(&input.u64s("ftl.spare", words)?) {
                return Err(damaged("ftl.spare"));
            }
        }
        if let Some(packer) = &mut parts.packer {
            packer.restore(&mut parts.map, input)?;
        }
        if let Some(bad) = &mut parts.bad_blocks {
            bad.restore(input)?;
        }
        check_sections(parts, &self.groups, &valid).map_err(damaged)?;
        for group in self.groups.iter_mut() {
            group.idle = group.count_idle(parts);
        }
        let counters = input.u64s("ftl.counters", Counters::FIELDS)?;
        let counters = counters.try_into().map_err(|_| damaged("ftl.counters"))?;
        parts.counters = Counters::from_array(counters);
        let random = input.u64s("ftl.random", 4)?;
        parts.random = Prng::from_state(random.try_into().map_err(|_| damaged("ftl.random"))?);
        Ok(())
    }

    /// Restores the lost die of a saved drive, and the parity units that it had programmed.
    pub fn restore_parity(&mut self, lost_die: Option<u32>, parity_programs: u64) {
        self.parts.parity.restore(lost_die, parity_programs);
    }

    /// A digest of the complete state (maps in canonical form), to compare two drives.
    pub fn digest(&self) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut eat = |value: u64| {
            hash = (hash ^ value).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
        };
        let (parts, group) = (&self.parts, self.groups.current());
        let (table, c) = (&parts.table, &group.collection);
        parts.map.forward.iter().for_each(|p| eat(u64::from(p.0)));
        for index in 0..table.len() as usize {
            eat(table.state[index] as u64);
            eat(u64::from(table.valid[index]));
            eat(u64::from(table.owner[index].stream.0));
            eat(u64::from(table.owner[index].relocated));
            eat(table.closed_at[index]);
            eat(u64::from(table.erased[index]));
            eat(u64::from(parts.wear.erases[index]));
        }
        group.free.iter().for_each(|u| eat(u64::from(u.0)));
        for f in parts.frontiers.iter() {
            eat(u64::from(f.unit.0) << 32 | u64::from(f.next));
            eat(u64::from(f.moved));
        }
        eat(u64::from(c.victim.0) << 32 | u64::from(c.next_position));
        eat(u64::from(c.moved));
        eat(group.idle as u64);
        eat(group.idle_target as u64);
        eat(u64::from(c.valid_at_start) << 1 | u64::from(c.for_wear));
        eat(c.last_wear_move);
        parts.counters.to_array().into_iter().for_each(&mut eat);
        parts.spare.iter().for_each(|spare| spare.to_words().into_iter().for_each(&mut eat));
        self.groups.to_words().into_iter().for_each(&mut eat);
        parts.random.state().into_iter().for_each(&mut eat);
        if let (Some(pieces), Some(packer)) = (&parts.map.pieces, &parts.packer) {
            pieces.sectors.iter().for_each(|&sectors| eat(u64::from(sectors)));
            packer.pack_words().for_each(|word| eat(u64::from(word)));
            pieces.shared_words().for_each(&mut eat);
            packer.counters.to_array().into_iter().for_each(&mut eat);
        }
        parts.bad_blocks.iter().for_each(|bad| bad.words().into_iter().for_each(&mut eat));
        hash
    }
}
