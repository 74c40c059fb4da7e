//! Checks of the whole FTL state, for restored states and for tests. A state file with correct
//! checksums may still be inconsistent, and this must be detected before any I/O.

use writecliff_base::{Ppa, ensure};

use crate::Parts;
use crate::frontier::Frontier;
use crate::groups::{Group, Groups};
use crate::table::{Owner, UnitState};

impl Parts {
    /// Returns `true` if each open unit has one frontier, and is written exactly up to it.
    fn frontiers_hold(&self) -> bool {
        let mut open: Vec<_> = self.table.in_state(UnitState::Open).collect();
        self.frontiers.open().all(|(_, frontier)| {
            let at = open.iter().position(|&unit| unit == frontier.unit);
            at.map(|at| open.swap_remove(at)).is_some() && self.frontier_holds(frontier)
        }) && open.is_empty()
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
            && (self.packer.is_some()
                || f.next < f.fill_end
                    && f.moved <= f.filled(per_program)
                    && (f.next..f.end).all(|ppa| self.map.holder(Ppa(ppa)).is_none()))
    }

    /// Checks owners: the open unit of a frontier must belong to the frontier's stream.
    fn check_owners(&self) -> Result<(), String> {
        for (id, f) in self.frontiers.open() {
            let owner = self.table.owner[f.unit.index()];
            let is_relocated = !self.frontiers.is_of_host(id);
            if owner != (Owner { stream: self.frontiers.stream_of(id), relocated: is_relocated }) {
                return Err(format!("{id:?} writes to a unit that belongs to {owner:?}"));
            }
            ensure!(f.moved <= self.filled(id), "{id:?}: more slots relocated than filled");
        }
        Ok(())
    }
}

impl Groups {
    /// Returns `true` if each unit in use is in its stream's group.
    fn hold_units(&self, parts: &Parts) -> bool {
        (0..).zip(&parts.table.owner).all(|(index, owner)| {
            let is_free = parts.table.state[index as usize] == UnitState::Free;
            let group = usize::from(owner.stream.0 / parts.frontiers.handles);
            is_free || self.all.get(group).is_some_and(|group| group.units.contains(&index))
        })
    }

    /// Returns `true` if each victim is scanned within its group, no other unit is a victim, and
    /// the garbage collection counts are within the limits of a unit and the drive.
    fn hold_victims(&self, parts: &Parts) -> bool {
        let read_group = parts.geometry.ppas_per_read_group;
        let size = parts.geometry.ppas_per_reclaim_unit;
        let per_unit = parts.table.unit_size;
        let all = i64::from(parts.table.len()) * i64::from(per_unit);
        let is_own = |group: &Group| {
            let collection = &group.collection;
            collection.next_position <= size
                && collection.next_position.is_multiple_of(read_group)
                && collection.valid_at_start <= per_unit
                && collection.is_possible()
                && (0..=all).contains(&group.idle_target)
                && (collection.victim.is_none() || group.units.contains(&collection.victim.0))
        };
        let mut victims: Vec<_> = self.victims().collect();
        victims.sort_unstable_by_key(|victim| victim.0);
        self.all.iter().all(is_own) && parts.table.in_state(UnitState::Victim).eq(victims)
    }

    /// Checks that free lists hold each free unit once, and free and dropped units no data.
    fn check_free(&self, parts: &Parts) -> Result<(), &'static str> {
        let table = &parts.table;
        let mut listed = vec![false; table.state.len()];
        for group in &self.all {
            for unit in &group.free {
                match listed.get_mut(unit.index()) {
                    Some(seen) if !*seen && group.units.contains(&unit.0) => *seen = true,
                    _ => return Err("ftl.free"),
                }
            }
        }
        let is_free = |state: &UnitState| *state == UnitState::Free;
        if !table.state.iter().map(is_free).eq(listed) {
            return Err("ftl.free");
        }
        let is_empty = |state| matches!(state, UnitState::Free | UnitState::Dropped);
        let mut units = table.state.iter().zip(&table.valid);
        if units.any(|(&state, &valid)| is_empty(state) && valid != 0) {
            return Err("ftl.valid");
        }
        Ok(())
    }

    /// Checks the counts of idle allocation units and returns the total over all groups.
    fn check_idle(&self, parts: &Parts) -> Result<i64, String> {
        for group in &self.all {
            let (idle, counted) = (group.count_idle(parts), group.idle);
            ensure!(
                idle == counted,
                "{idle} allocation units are idle, but the counter shows {counted}"
            );
        }
        Ok(self.all.iter().map(|group| group.idle).sum())
    }
}

/// Checks the state, including the valid counts against the counts `valid` from the maps unless
/// data are reduced. Returns the name of the damaged section. O(reclaim units).
pub(crate) fn check_sections(
    parts: &Parts,
    groups: &Groups,
    valid: &[u32],
) -> Result<(), &'static str> {
    if parts.packer.is_none() && valid != parts.table.valid {
        return Err("ftl.valid");
    }
    let is_unknown = |owner: &Owner| owner.stream.0 >= parts.config.streams;
    if parts.table.owner.iter().any(is_unknown) || !groups.hold_units(parts) {
        return Err("ftl.owners");
    }
    groups.check_free(parts)?;
    if !parts.frontiers_hold() {
        return Err("ftl.frontiers");
    }
    if groups.hold_victims(parts) { Ok(()) } else { Err("ftl.collection") }
}

/// Checks the whole state; returns a description of the first violated invariant. O(drive).
pub(crate) fn check_all(parts: &Parts, groups: &Groups) -> Result<(), String> {
    let table = &parts.table;
    let valid = parts.map.check(&parts.geometry)?;
    if let Some(unit) = (0..valid.len()).find(|&u| valid[u] != table.valid[u]) {
        let (is, counted) = (valid[unit], table.valid[unit]);
        return Err(format!(
            "unit {unit} has {is} valid allocation units, but its counter shows {counted}"
        ));
    }
    let damaged = |section| format!("{section} is inconsistent with the rest of the state");
    check_sections(parts, groups, &valid).map_err(damaged)?;
    let idle = groups.check_idle(parts)?;
    let all = i64::from(table.len()) * i64::from(table.unit_size);
    let valid: i64 = valid.iter().map(|&v| i64::from(v)).sum();
    if valid + idle > all {
        let written = all - idle;
        return Err(format!("{valid} allocation units are valid, but only {written} are written"));
    }
    let dropped = table.in_state(UnitState::Dropped).count() as u64;
    match &parts.bad_blocks {
        Some(bad) => bad.check(dropped)?,
        None if dropped > 0 => return Err(format!("{dropped} units are dropped")),
        None => {}
    }
    parts.check_owners()
}

#[cfg(test)]
mod tests {
    use writecliff_base::codec::{StateReader, StateWriter};
    use writecliff_base::{Bytes, Lpn, ReclaimUnitId, StreamId};
    use writecliff_flash::{CellType, Geometry, Shape};

    use crate::frontier::FrontierId;
    use crate::gc_destination::GcDestination;
    use crate::gc_policy::GcPolicy;
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

    /// Returns the error from restoring the state of a used drive after `change` was applied.
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
        ftl.parts.table.state.iter().position(|&other| other == state).unwrap()
    }

    #[test]
    fn contradictions_are_refused() {
        assert_eq!(restored(|_| ()), Ok(()));
        let cases: [(&str, Change); 13] = [
            ("valid", |ftl| {
                let free = unit_in(ftl, UnitState::Free);
                ftl.parts.table.valid[free] = 16;
            }),
            ("valid", |ftl| {
                let closed = unit_in(ftl, UnitState::Closed);
                ftl.parts.table.valid[closed] += 1;
            }),
            ("forward", |ftl| ftl.parts.map.forward[700] = ftl.parts.map.forward[7]),
            ("owners", |ftl| ftl.parts.table.owner[3].stream = StreamId(9)),
            ("free", |ftl| ftl.groups.current_mut().free.push_back(ReclaimUnitId(64))),
            ("free", |ftl| {
                let free = &mut ftl.groups.current_mut().free;
                free.push_back(free[0]);
            }),
            ("free", |ftl| {
                let closed = unit_in(ftl, UnitState::Closed);
                ftl.parts.table.state[closed] = UnitState::Free;
            }),
            ("frontiers", |ftl| ftl.parts.frontiers[FrontierId(0)].end += 16),
            ("frontiers", |ftl| ftl.parts.frontiers[FrontierId(0)].unit = ReclaimUnitId(70)),
            ("collection", |ftl| ftl.groups.current_mut().collection.victim = ReclaimUnitId(99)),
            ("collection", |ftl| ftl.groups.current_mut().collection.moved = u32::MAX),
            ("collection", |ftl| ftl.groups.current_mut().collection.valid_at_start = u32::MAX),
            ("collection", |ftl| ftl.groups.current_mut().idle_target = i64::MAX),
        ];
        for (section, change) in cases {
            let message = restored(change).unwrap_err();
            assert!(message.contains(&format!("'ftl.{section}'")), "{section}: {message}");
        }
    }
}
