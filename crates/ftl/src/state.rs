//! Saves, restores and copies an FTL, and computes its digest.
//!
//! Nearly all of a saved state consists of the forward map and the arrays with one element per
//! reclaim unit or piece of data. The codec packs such arrays as number sections. All other state
//! is saved as fields.

use std::io::{Read, Write};
use std::mem::take;

use writecliff_base::codec::{CodecError, StateReader, StateWriter};
use writecliff_base::saved;
use writecliff_flash::Wear;

use crate::check::check_sections;
use crate::{Ftl, Parts};

pub(crate) fn damaged(section: &str) -> CodecError {
    CodecError::Impossible(section.to_owned())
}

saved! { Ftl { groups, parts } }

impl Ftl {
    /// Copies an FTL of the same configuration into the memory of this one, with its huge pages.
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

    /// Writes the state as sections `ftl.*`.
    pub fn save<W: Write>(&self, out: &mut StateWriter<W>) -> Result<(), CodecError> {
        let parts = &self.parts;
        // The reverse map follows: entries matter only where the forward map points back.
        out.u32s("ftl.forward", &parts.map.forward)?;
        parts.table.save(out)?;
        out.u32s("ftl.erases", &parts.wear.erases)?;
        if parts.config.volatile_buffer {
            out.u64s("ftl.freed_at", &parts.table.freed_at)?;
        }
        if let Some(pieces) = &parts.map.pieces {
            pieces.save(out)?;
        }
        if let Some(bad) = &parts.bad_blocks {
            out.u32s("ftl.fails_at", &bad.fails_at)?;
        }
        out.fields("ftl", self)
    }

    /// Replaces the state; the saved drive must have the same geometry and configuration.
    pub fn restore<R: Read>(&mut self, input: &mut StateReader<R>) -> Result<(), CodecError> {
        let parts = &mut self.parts;
        let units = parts.table.len() as usize;
        let valid = parts.map.restore(input, &parts.geometry)?;
        parts.table.restore(input)?;
        let erases = input.u32s("ftl.erases", units)?;
        parts.wear = Wear::from_counts(erases, parts.config.rated_cycles);
        if parts.config.volatile_buffer {
            parts.table.freed_at = input.u64s("ftl.freed_at", units)?;
        }
        if let Some(pieces) = &mut parts.map.pieces {
            pieces.restore(input, &parts.map.forward, &mut parts.map.reverse)?;
        }
        if let Some(bad) = &mut parts.bad_blocks {
            bad.fails_at = input.u32s("ftl.fails_at", bad.fails_at.len())?;
        }
        input.fields("ftl", self)?;
        let Self { parts, groups, .. } = self;
        check_sections(parts, groups, &valid).map_err(damaged)?;
        for group in &mut groups.all {
            group.idle = group.count_idle(parts);
            group.collection.resume(parts);
        }
        Ok(())
    }

    /// Returns a digest of the complete state (maps in canonical form) for comparing two drives.
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
        for f in &parts.frontiers.all {
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
            packer.packs.iter().flat_map(|p| [p.used, p.pieces]).for_each(|n| eat(u64::from(n)));
            pieces.shared_words().for_each(&mut eat);
            packer.counters.to_array().into_iter().for_each(&mut eat);
        }
        parts.bad_blocks.iter().for_each(|bad| bad.words().into_iter().for_each(&mut eat));
        hash
    }
}
