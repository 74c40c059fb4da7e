//! Reclaim groups: the dies, and therefore the reclaim units, are divided among several groups.

use std::ops::Range;

use writecliff_base::{ReclaimUnitId, reject};

use super::{ConfigError, Divider, Geometry, Values};

impl Geometry {
    /// Divides the dies among `groups` reclaim groups. A reclaim unit then contains one block from
    /// every plane of its group's dies. The reclaim units of a group have consecutive numbers, and
    /// so do its dies, which spreads the dies of each group over as many channels as possible.
    ///
    /// # Errors
    /// Returns an error unless `groups` divides the number of dies.
    pub fn with_reclaim_groups(self, groups: u32) -> Result<Self, ConfigError> {
        let dies = self.dies;
        reject! { Values,
            "reclaim_groups" if groups == 0 || !dies.is_multiple_of(groups) =>
                "reclaim_groups is {groups}; it must be at least 1 and divide the number of dies \
                 ({dies})";
        }
        assert!(self.stripes.is_none(), "stripes are of all dies");
        let ppas = self.ppas_per_reclaim_unit / groups;
        let grouped = Self {
            program_units_per_reclaim_unit: self.program_units_per_reclaim_unit / groups,
            slots_per_reclaim_unit: self.slots_per_reclaim_unit / groups,
            ppas_per_reclaim_unit: ppas,
            reclaim_units: self.reclaim_units * groups,
            by_reclaim_unit: Divider::new(ppas),
            by_die: Divider::new(self.dies / groups),
            reclaim_groups: groups,
            is_plain: groups == 1,
            ..self
        };
        Ok(grouped.consistent())
    }

    /// Returns the reclaim group that contains a reclaim unit.
    pub fn group_of(&self, unit: ReclaimUnitId) -> u32 {
        debug_assert!(unit.0 < self.reclaim_units, "no reclaim unit of the flash");
        unit.0 / (self.reclaim_units / self.reclaim_groups)
    }

    /// Returns the reclaim units in a reclaim group.
    pub fn units_of_group(&self, group: u32) -> Range<u32> {
        debug_assert!(group < self.reclaim_groups, "no reclaim group of the flash");
        let units = self.reclaim_units / self.reclaim_groups;
        group * units..(group + 1) * units
    }

    /// Returns the dies that a reclaim unit spans.
    pub fn dies_of(&self, unit: ReclaimUnitId) -> Range<u32> {
        // Reclaim units above the FTL's range belong to an SLC cache, which uses all dies.
        if self.reclaim_groups == 1 {
            return 0..self.dies;
        }
        let dies = self.dies / self.reclaim_groups;
        let first = self.group_of(unit) * dies;
        first..first + dies
    }
}

#[cfg(test)]
mod tests {
    use writecliff_base::Ppa;

    use super::super::tests::shape;
    use super::*;

    #[test]
    fn reclaim_groups_divide_the_dies() {
        let plain = Geometry::new(shape()).unwrap();
        assert_eq!(plain.clone().with_reclaim_groups(1).unwrap(), plain);
        let g = plain.clone().with_reclaim_groups(2).unwrap();
        assert_eq!((g.reclaim_units, g.raw_ppas()), (32, plain.raw_ppas()));
        assert_eq!(g.slots_per_reclaim_unit, plain.slots_per_reclaim_unit / 2);
        for (group, dies) in [(0, 0..4), (1, 4..8)] {
            let units = g.units_of_group(group);
            assert_eq!(units, group * 16..(group + 1) * 16);
            let unit = ReclaimUnitId(units.start + 3);
            assert_eq!((g.group_of(unit), g.dies_of(unit)), (group, dies.clone()));
            let mut used: Vec<u32> = g.ppas(unit).map(|ppa| g.locate(Ppa(ppa)).die).collect();
            used.sort_unstable();
            used.dedup();
            assert_eq!(used, dies.collect::<Vec<_>>());
            let last = g.program_units_per_reclaim_unit - 1;
            assert_eq!(g.locate(Ppa(g.ppas(unit).end - 1)).die, g.die_of(unit, last));
        }
        let error = plain.with_reclaim_groups(3).unwrap_err();
        assert_eq!(error.key, "reclaim_groups");
    }
}
