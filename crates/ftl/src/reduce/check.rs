//! The invariants of shared data and packing, for tests.

use writecliff_base::{Lpn, Ppn};

use super::Reduction;
use super::shared::{SharedData, entry, number};
use crate::ftl::Ftl;

impl Ftl {
    /// References are those of the map, the reverse map leads back, free numbers are free.
    /// Adds the grains of the shared data to those `valid` in each unit.
    pub(crate) fn check_shared(&self, r: &Reduction, valid: &mut [u32]) -> Result<(), String> {
        let mut references = vec![0_u32; r.shared.all.len()];
        for n in self.forward.iter().filter_map(|&place| number(place)) {
            references[n] += 1;
        }
        for (n, data) in r.shared.all.iter().enumerate() {
            let SharedData { place, references: counted, grains } = *data;
            if references[n] != counted {
                return Err(format!("shared {n}: {} references, {counted} counted", references[n]));
            }
            if (counted == 0) != r.shared.free.contains(&(n as u32)) {
                return Err(format!("shared {n} with {counted} references is wrongly listed"));
            }
            if counted == 0 {
                continue;
            }
            if self.reverse[place.index()] != Lpn(entry(n as u32).0) {
                return Err(format!("shared {n} is not what {place:?} holds"));
            }
            valid[self.geometry.reclaim_unit_of(place).index()] += u32::from(grains);
        }
        Ok(())
    }

    /// A page's own piece, in grains, if it has one of its own.
    pub(crate) fn own_grains(&self, lpn: Lpn, place: Ppn) -> Option<u32> {
        match &self.reduction {
            None => Some(1),
            Some(_) if number(place).is_some() => None,
            Some(r) => Some(u32::from(r.grains[lpn.index()])),
        }
    }
}
