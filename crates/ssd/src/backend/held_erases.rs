//! Erases that wait for programs, on a drive that loses its buffer in a power loss.

use serde::{Deserialize, Serialize};
use writecliff_base::{ReclaimUnitId, saved};
use writecliff_ftl::FrontierId;

use crate::FillId;
use crate::fill::Fills;

/// A held erase of a reclaim unit, or of a block in the front's own flash. It waits until the data
/// that replace the erased data are on flash. If the unit is already erased, only programs wait.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct HeldErase {
    pub unit: ReclaimUnitId,
    pub is_erased: bool,
    awaits: Awaits,
    /// Fill of the frontier's current program unit, which waits for the erase.
    pub fill: FillId,
}

/// Programs that an erase waits for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Awaits {
    /// Programs that may replace data of a reclaim unit freed after this number of other units.
    FreedAt(u64),
    /// Programs of these fills.
    Fills(Vec<FillId>),
}

impl Awaits {
    /// Returns `true` if at least one program is awaited, and all awaited programs are outstanding.
    fn is_due(&self, fills: &Fills) -> bool {
        match self {
            Self::FreedAt(freed_at) => fills.awaited(*freed_at),
            Self::Fills(awaited) => {
                !awaited.is_empty() && awaited.iter().all(|&fill| fills.is_full(fill))
            }
        }
    }

    /// Returns `true` if `programmed`, which is now on flash, was the last awaited program.
    fn is_over(&mut self, fills: &Fills, programmed: FillId) -> bool {
        if let Self::Fills(awaited) = self {
            awaited.retain(|&fill| fill != programmed);
        }
        !self.is_due(fills)
    }
}

/// Held erases. A program unit waits for each of them.
#[derive(Clone, Debug)]
pub(crate) struct HeldErases {
    /// `true` if a power loss discards data that are not on flash; otherwise no erase is held.
    pub is_volatile: bool,
    pub all: Vec<HeldErase>,
}

saved! { HeldErases { all } }

impl HeldErases {
    pub(crate) fn new(is_volatile: bool) -> Self {
        Self { is_volatile, all: Vec::new() }
    }

    /// Holds the erase of `unit` (unless the unit is already erased) and a frontier's programs.
    /// Returns `false` if no awaited program is outstanding.
    pub(crate) fn hold(
        &mut self,
        fills: &mut Fills,
        frontier: FrontierId,
        (unit, is_erased): (ReclaimUnitId, bool),
        awaits: Awaits,
    ) -> bool {
        let holds = self.is_volatile && awaits.is_due(fills);
        if holds {
            let fill = fills.current(frontier);
            fills.get(fill).reads_pending += 1;
            self.all.push(HeldErase { unit, is_erased, awaits, fill });
        }
        holds
    }

    /// Removes and returns the erases that waited only for `programmed`, which is now on flash.
    pub(crate) fn take_ready(&mut self, fills: &Fills, programmed: FillId) -> Vec<HeldErase> {
        self.all.extract_if(.., |held| held.awaits.is_over(fills, programmed)).collect()
    }

    /// Returns `true` if each restored erase waits for full units.
    /// `has` must return `true` for reclaim units of the drive.
    pub(crate) fn is_possible(&self, fills: &Fills, has: impl Fn(ReclaimUnitId) -> bool) -> bool {
        (self.is_volatile || self.all.is_empty())
            && self.all.iter().all(|held| held.awaits.is_due(fills) && has(held.unit))
    }
}

#[cfg(test)]
mod tests {
    use writecliff_base::fields::{from_bytes, to_bytes};
    use writecliff_ftl::ProgramUnit;

    use super::*;

    #[test]
    fn erases_that_can_never_start_are_impossible() {
        let mut fills = Fills::new(2, 8, true);
        let unit = |since| ProgramUnit {
            reclaim_unit: ReclaimUnitId(1),
            unit: 0,
            data_slots: 4,
            moved_slots: 0,
            since,
        };
        let full = fills.filled(FrontierId(0), unit(5)).unwrap();
        let held = |change: fn(&mut HeldErase)| {
            let mut fills = fills.clone();
            let mut erases = HeldErases::new(true);
            let awaits = Awaits::Fills(fills.outstanding().collect());
            assert!(erases.hold(&mut fills, FrontierId(1), (ReclaimUnitId(3), false), awaits));
            change(&mut erases.all[0]);
            let mut restored = HeldErases::new(true);
            from_bytes(&to_bytes(&erases), &mut restored).unwrap();
            restored.is_possible(&fills, |unit| unit.0 < 8)
        };
        assert_eq!(full, 0);
        assert!(held(|_| ()));
        assert!(held(|erase| erase.awaits = Awaits::FreedAt(5)));
        assert!(!held(|erase| erase.awaits = Awaits::FreedAt(4)), "no program since");
        assert!(!held(|erase| erase.awaits = Awaits::Fills(vec![1])), "not full");
        assert!(!held(|erase| erase.awaits = Awaits::Fills(vec![9])), "no fill");
        assert!(!held(|erase| erase.awaits = Awaits::Fills(vec![])), "nothing to wait for");
        assert!(!held(|erase| erase.unit = ReclaimUnitId(8)), "no reclaim unit");
    }
}
