//! What a restored state must hold so that no I/O can come upon a contradiction: a file may be
//! right by its checksums and still have been written by nobody's drive. O(reclaim units).

use writecliff_base::{Ppa, ReclaimUnitId};

use crate::frontier::Frontier;
use crate::ftl::Ftl;
use crate::table::{Owner, UnitState};

impl Ftl {
    /// Checks a state against the valid pages of each unit by the maps; returns the name of the
    /// section that is damaged.
    pub(crate) fn check_restored(&self, valid: &[u32]) -> Result<(), &'static str> {
        // With reduction pages are of any size, and shared.
        if self.reduction.is_none() && valid != self.table.valid {
            return Err("ftl.valid");
        }
        let is_unknown = |owner: &Owner| owner.stream.0 >= self.config.streams;
        if self.table.owner.iter().any(is_unknown) || !self.groups_hold() {
            return Err("ftl.owners");
        }
        self.check_free()?;
        if !self.frontiers_hold() {
            return Err("ftl.frontiers");
        }
        if self.victim_holds() { Ok(()) } else { Err("ftl.collection") }
    }

    /// The free list has each free unit once, and what is free or dropped holds no data.
    fn check_free(&self) -> Result<(), &'static str> {
        let mut listed = vec![false; self.table.state.len()];
        for unit in self.all_free() {
            match listed.get_mut(unit.index()) {
                Some(seen) if !*seen => *seen = true,
                _ => return Err("ftl.free"),
            }
        }
        let is_free = |state: &UnitState| *state == UnitState::Free;
        if !self.table.state.iter().map(is_free).eq(listed) {
            return Err("ftl.free");
        }
        let empty = |state| matches!(state, UnitState::Free | UnitState::Dropped);
        let mut units = self.table.state.iter().zip(&self.table.valid);
        if units.any(|(&state, &valid)| empty(state) && valid != 0) {
            return Err("ftl.valid");
        }
        Ok(())
    }

    /// Each open unit has one frontier, in that unit, before which everything is written and behind
    /// which nothing is.
    fn frontiers_hold(&self) -> bool {
        let mut open = self.units_in(UnitState::Open);
        for frontier in self.frontiers.iter().filter(|f| !f.needs_unit()) {
            let Some(at) = open.iter().position(|&unit| unit == frontier.unit) else {
                return false;
            };
            open.swap_remove(at);
            if !self.frontier_holds(frontier) {
                return false;
            }
        }
        open.is_empty()
    }

    fn frontier_holds(&self, f: &Frontier) -> bool {
        let first = self.geometry.first_ppa(f.unit);
        let per_program = self.geometry.ppas_per_program_unit;
        first <= f.next
            && f.next <= f.fill_end
            && f.fill_end <= f.end
            && f.end == first + self.geometry.ppas_per_reclaim_unit
            && f.fill_end - f.next <= per_program
            && (f.fill_end - first).is_multiple_of(per_program)
            && (self.reduction.is_some()
                || f.moved <= f.filled(per_program)
                    && (f.next..f.end).all(|ppa| !self.is_mapped(Ppa(ppa))))
    }

    fn is_mapped(&self, ppa: Ppa) -> bool {
        self.forward.get(self.reverse[ppa.index()].index()) == Some(&ppa)
    }

    fn victim_holds(&self) -> bool {
        let mut victims = self.victims();
        victims.sort_unstable_by_key(|victim| victim.0);
        self.collection.next_position <= self.geometry.ppas_per_reclaim_unit
            && self.units_in(UnitState::Victim) == victims
    }

    fn units_in(&self, state: UnitState) -> Vec<ReclaimUnitId> {
        let units = 0..self.table.len();
        units.filter(|&u| self.table.state[u as usize] == state).map(ReclaimUnitId).collect()
    }
}

#[cfg(test)]
mod tests {
    use writecliff_base::codec::{StateReader, StateWriter};
    use writecliff_base::{Bytes, Lpn, ReclaimUnitId, StreamId};
    use writecliff_flash::{CellType, Geometry, Shape};

    use crate::gc::GcPolicy;
    use crate::gc_destination::GcDestination;
    use crate::spare::SparePolicy;
    use crate::table::UnitState;
    use crate::wear_leveling::WearPolicy;
    use crate::{FastForward, Ftl, FtlConfig, GcPacing};

    fn drive() -> Ftl {
        let shape = Shape {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks_per_plane: 64,
            pages_per_block: 16,
            page: Bytes(4096),
            cell: CellType::Slc,
            multi_plane: false,
            one_shot: false,
        };
        let config = FtlConfig {
            user_slots: 800,
            streams: 1,
            gc: GcPolicy::Greedy,
            gc_pacing: GcPacing::Incremental,
            gc_destination: GcDestination::PerStream,
            spare: SparePolicy::Global,
            wear: WearPolicy::None,
            gc_high_watermark: 4,
            gc_low_watermark: 2,
            gc_idle_watermark: 8,
            rated_cycles: 1000,
            volatile_buffer: false,
            seed: 1,
            reduction: None,
            bad_blocks: None,
        };
        Ftl::new(Geometry::new(shape).unwrap(), config).unwrap()
    }

    /// What restoring says of the state of a used drive that `change` has made.
    fn restored(change: impl FnOnce(&mut Ftl)) -> Result<(), String> {
        let mut ftl = drive();
        for n in 0..5000 {
            ftl.write(Lpn(n * 37 % 800), StreamId(0), 4096, &mut FastForward);
        }
        change(&mut ftl);
        let mut out = StateWriter::new(Vec::new()).unwrap();
        ftl.save(&mut out).unwrap();
        let saved = out.finish().unwrap();
        let input = &mut StateReader::new(&saved[..]).unwrap();
        drive().restore(input).map_err(|error| error.to_string())
    }

    type Change = fn(&mut Ftl);

    fn unit_in(ftl: &Ftl, state: UnitState) -> usize {
        ftl.table.state.iter().position(|&one| one == state).unwrap()
    }

    #[test]
    fn contradictions_are_refused() {
        assert_eq!(restored(|_| ()), Ok(()));
        let cases: [(&str, Change); 10] = [
            ("valid", |ftl| {
                let free = unit_in(ftl, UnitState::Free);
                ftl.table.valid[free] = 16;
            }),
            ("valid", |ftl| {
                let closed = unit_in(ftl, UnitState::Closed);
                ftl.table.valid[closed] += 1;
            }),
            ("forward", |ftl| ftl.forward[700] = ftl.forward[7]),
            ("owners", |ftl| ftl.table.owner[3].stream = StreamId(9)),
            ("free", |ftl| ftl.free.push_back(ReclaimUnitId(64))),
            ("free", |ftl| ftl.free.push_back(ftl.free[0])),
            ("free", |ftl| {
                let closed = unit_in(ftl, UnitState::Closed);
                ftl.table.state[closed] = UnitState::Free;
            }),
            ("frontiers", |ftl| ftl.frontiers[0].end += 16),
            ("frontiers", |ftl| ftl.frontiers[0].unit = ReclaimUnitId(70)),
            ("collection", |ftl| ftl.collection.victim = ReclaimUnitId(99)),
        ];
        for (section, change) in cases {
            let said = restored(change).unwrap_err();
            assert!(said.contains(&format!("'ftl.{section}'")), "{section}: {said}");
        }
    }
}
