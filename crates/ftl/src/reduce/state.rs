//! Saves and restores the state of data reduction.

use std::io::{Read, Write};

use writecliff_base::codec::{CodecError, StateReader, StateWriter};
use writecliff_base::{Lpn, Ppa};
use writecliff_host_interface::content::SECTORS_PER_SLOT;

use super::pack::Pack;
use super::shared::{Shared, SharedData, entry};
use super::{Reduction, ReductionCounters};
use crate::ftl::Ftl;
use crate::state::damaged;

impl Reduction {
    pub(crate) fn save<W: Write>(&self, out: &mut StateWriter<W>) -> Result<(), CodecError> {
        out.bytes("ftl.sectors", &self.sectors)?;
        let packs: Vec<u32> = self.packs.iter().flat_map(|p| [p.used, p.pieces]).collect();
        out.u32s("ftl.packs", &packs)?;
        let counts = [self.shared.all.len() as u32, self.shared.free.len() as u32];
        out.u32s("ftl.shared_count", &counts)?;
        let data = |d: &SharedData| [d.ppa.0, d.references, u32::from(d.sectors)];
        out.u32s("ftl.shared", &self.shared.all.iter().flat_map(data).collect::<Vec<u32>>())?;
        out.u32s("ftl.shared_free", &self.shared.free)?;
        out.u64s("ftl.reduction", &self.counters.to_array())
    }

    fn restore<R: Read>(&mut self, input: &mut StateReader<R>) -> Result<(), CodecError> {
        let sectors = input.bytes("ftl.sectors")?;
        let possible = |&g: &u8| (1..=SECTORS_PER_SLOT as u8).contains(&g);
        if sectors.len() != self.sectors.len() || !sectors.iter().all(possible) {
            return Err(damaged("ftl.sectors"));
        }
        self.sectors = sectors;
        let packs = input.u32s("ftl.packs", 2 * self.packs.len())?;
        self.packs = packs.chunks_exact(2).map(|p| Pack { used: p[0], pieces: p[1] }).collect();
        let counts = input.u32s("ftl.shared_count", 2)?;
        let data = input.u32s("ftl.shared", 3 * counts[0] as usize)?;
        let data = data.chunks_exact(3).map(|d| SharedData {
            ppa: Ppa(d[0]),
            references: d[1],
            sectors: d[2] as u8,
        });
        let free = input.u32s("ftl.shared_free", counts[1] as usize)?;
        self.shared = Shared { all: data.collect(), free };
        let counters = input.u64s("ftl.reduction", ReductionCounters::FIELDS)?;
        let counters = counters.try_into().map_err(|_| damaged("ftl.reduction"))?;
        self.counters = ReductionCounters::from_array(counters);
        Ok(())
    }

    /// The state as words, for digests.
    pub(crate) fn words(&self) -> impl Iterator<Item = u64> + '_ {
        let sectors = self.sectors.iter().map(|&g| u64::from(g));
        let packs = self.packs.iter().flat_map(|p| [u64::from(p.used), u64::from(p.pieces)]);
        let data = |d: &SharedData| [u64::from(d.ppa.0), u64::from(d.references)];
        let shared = self.shared.all.iter().flat_map(data);
        let free = self.shared.free.iter().map(|&n| u64::from(n));
        sectors.chain(packs).chain(shared).chain(free).chain(self.counters.to_array())
    }
}

impl Ftl {
    /// The forward map is already restored; its entries determine the shared data.
    pub(crate) fn restore_reduction<R: Read>(
        &mut self,
        input: &mut StateReader<R>,
    ) -> Result<(), CodecError> {
        let Some(r) = &mut self.reduction else { return Ok(()) };
        r.restore(input)?;
        for (number, data) in r.shared.all.iter().enumerate() {
            if data.references > 0 {
                let slot = self.reverse.get_mut(data.ppa.index());
                *slot.ok_or_else(|| damaged("ftl.shared"))? = Lpn(entry(number as u32).0);
            }
        }
        let known = r.shared.all.len();
        let unknown = |p: &Ppa| super::shared::number(*p).is_some_and(|n| n >= known);
        if self.forward.iter().any(unknown) {
            return Err(damaged("ftl.forward"));
        }
        Ok(())
    }
}
