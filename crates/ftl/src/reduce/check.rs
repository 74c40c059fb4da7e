//! Checks the invariants of shared data and packing, for tests.

use writecliff_base::{Lpn, Ppa};

use super::Reduction;
use super::shared::{SharedData, entry, number};
use crate::ftl::Ftl;

impl Ftl {
    /// Checks that reference counts match the map, reverse entries point back, and free numbers are
    /// free. Adds the sectors of shared data to those `valid` in each unit.
    pub(crate) fn check_shared(&self, r: &Reduction, valid: &mut [u32]) -> Result<(), String> {
        let mut references = vec![0_u32; r.shared.all.len()];
        for n in self.forward.iter().filter_map(|&ppa| number(ppa)) {
            references[n] += 1;
        }
        for (n, data) in r.shared.all.iter().enumerate() {
            let SharedData { ppa, references: counted, sectors } = *data;
            if references[n] != counted {
                return Err(format!("shared {n}: {} references, {counted} counted", references[n]));
            }
            if (counted == 0) != r.shared.free.contains(&(n as u32)) {
                return Err(format!(
                    "shared data {n} with {counted} references are wrongly listed"
                ));
            }
            if counted == 0 {
                continue;
            }
            if self.reverse[ppa.index()] != Lpn(entry(n as u32).0) {
                return Err(format!("shared data {n} are not what {ppa:?} holds"));
            }
            valid[self.geometry.reclaim_unit_of(ppa).index()] += u32::from(sectors);
        }
        Ok(())
    }

    /// Size in sectors of a page's own piece, if it has one.
    pub(crate) fn own_alloc_units(&self, lpn: Lpn, ppa: Ppa) -> Option<u32> {
        match &self.reduction {
            None => Some(1),
            Some(_) if number(ppa).is_some() => None,
            Some(r) => Some(u32::from(r.sectors[lpn.index()])),
        }
    }
}
