//! Checks all invariants of the FTL's state, for tests. O(drive), so never called during I/O.

use writecliff_base::{Lpn, Ppa, ReclaimUnitId};

use crate::frontier::FrontierId;
use crate::ftl::Ftl;
use crate::table::UnitState;

impl Ftl {
    /// Checks the whole state; returns a description of the first violated invariant.
    pub fn check_invariants(&self) -> Result<(), String> {
        self.check_maps()?;
        self.check_units()?;
        self.check_dropped()?;
        self.check_streams()
    }

    /// Forward and reverse maps agree, and the valid counts are those of the maps.
    fn check_maps(&self) -> Result<(), String> {
        let mut valid = vec![0_u32; self.table.len() as usize];
        let mut mapped = 0;
        for (lpn, &ppa) in self.forward.iter().enumerate() {
            if ppa.is_none() {
                continue;
            }
            mapped += 1;
            let Some(alloc_units) = self.own_alloc_units(Lpn(lpn as u32), ppa) else { continue };
            if self.reverse[ppa.index()] != Lpn(lpn as u32) {
                let back = self.reverse[ppa.index()];
                return Err(format!("lpn {lpn} maps to {ppa:?}, which holds {back:?}"));
            }
            valid[self.geometry.reclaim_unit_of(ppa).index()] += alloc_units;
        }
        if let Some(r) = &self.reduction {
            self.check_shared(r, &mut valid)?;
        }
        if mapped != self.mapped {
            return Err(format!("{mapped} pages are mapped, but {} are counted", self.mapped));
        }
        if let Some(unit) = (0..valid.len()).find(|&u| valid[u] != self.table.valid[u]) {
            let (is, counted) = (valid[unit], self.table.valid[unit]);
            return Err(format!("unit {unit} has {is} valid alloc_units, counts {counted}"));
        }
        Ok(())
    }

    /// Free units hold no valid data; states match the free list, the frontiers and the victim;
    /// written and unwritten allocation units add up to all of them, and no more are valid than
    /// written.
    fn check_units(&self) -> Result<(), String> {
        let (mut free, listed) = (0, self.all_free().collect::<Vec<_>>());
        for index in 0..self.table.len() {
            let unit = ReclaimUnitId(index);
            match self.table.state[unit.index()] {
                UnitState::Free => {
                    free += 1;
                    if self.table.valid[unit.index()] != 0 {
                        return Err(format!("free unit {index} holds valid data"));
                    }
                    if !listed.contains(&unit) {
                        return Err(format!("free unit {index} is not in the free list"));
                    }
                }
                UnitState::Open => {
                    if !self.frontiers.iter().any(|f| f.unit == unit && !f.needs_unit()) {
                        return Err(format!("open unit {index} has no frontier"));
                    }
                }
                UnitState::Closed => {}
                UnitState::Dropped => {
                    if self.table.valid[unit.index()] != 0 {
                        return Err(format!("dropped unit {index} holds valid data"));
                    }
                }
                UnitState::Victim => {
                    if !self.victims().contains(&unit) {
                        return Err(format!(
                            "unit {index} is in the victim state but is not being garbage-collected"
                        ));
                    }
                }
            }
        }
        if free != listed.len() {
            return Err(format!(
                "{free} units are free, but {} are in the free list",
                listed.len()
            ));
        }
        if !self.groups_hold() {
            return Err("a reclaim unit is in another reclaim group than its stream".to_owned());
        }
        let idle = self.check_idle()?;
        let all = i64::from(self.table.len()) * i64::from(self.table.alloc_units_per_reclaim_unit);
        let valid: i64 = self.table.valid.iter().map(|&v| i64::from(v)).sum();
        if valid + idle > all {
            return Err(format!(
                "{valid} allocation units are valid, but only {} are written",
                all - idle
            ));
        }
        Ok(())
    }

    /// The idle allocation units are as many as counted, in each reclaim group; returns their sum.
    fn check_idle(&self) -> Result<i64, String> {
        let in_charge = (self.pool(), self.free.len(), self.idle);
        let others = self.groups.iter().flat_map(|groups| groups.idle());
        let others =
            others.map(|(group, free, idle)| (self.geometry.units_of_group(group), free, idle));
        let mut all = 0;
        for (units, free, counted) in others.chain([in_charge]) {
            let idle = self.idle_in(&units, free);
            if idle != counted {
                return Err(format!("{idle} allocation units are idle, but {counted} are counted"));
            }
            all += idle;
        }
        Ok(all)
    }

    /// Checks owners: an open host unit belongs to its frontier's stream.
    fn check_streams(&self) -> Result<(), String> {
        for (id, f) in self.frontiers.iter().enumerate() {
            if f.needs_unit() {
                continue;
            }
            let owner = self.table.owner[f.unit.index()];
            let (stream, host) =
                (id as u16 % self.config.streams, (id as u16) < self.config.streams);
            if owner.stream.0 != stream || owner.relocated == host {
                return Err(format!("frontier {id} writes to a unit of {owner:?}"));
            }
            let filled = match &self.reduction {
                None => f.filled(self.geometry.ppas_per_program_unit),
                Some(r) => r.pieces(FrontierId(id as u16)),
            };
            if f.moved > filled {
                return Err(format!("frontier {id}: more slots relocated than filled"));
            }
        }
        Ok(())
    }

    /// A digest of the complete state (maps in canonical form), to compare two drives.
    pub fn digest(&self) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut eat = |value: u64| {
            hash = (hash ^ value).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
        };
        self.forward.iter().for_each(|p| eat(u64::from(p.0)));
        for index in 0..self.table.len() as usize {
            eat(self.table.state[index] as u64);
            eat(u64::from(self.table.valid[index]));
            eat(u64::from(self.table.owner[index].stream.0));
            eat(u64::from(self.table.owner[index].relocated));
            eat(self.table.closed_at[index]);
            eat(u64::from(self.table.erased[index]));
            eat(u64::from(self.wear.erases[index]));
        }
        self.free.iter().for_each(|u| eat(u64::from(u.0)));
        for f in &self.frontiers {
            eat(u64::from(f.unit.0) << 32 | u64::from(f.next));
            eat(u64::from(f.moved));
        }
        let c = &self.collection;
        eat(u64::from(c.victim.0) << 32 | u64::from(c.next_position));
        eat(u64::from(c.moved));
        eat(self.idle as u64);
        eat(self.idle_target as u64);
        eat(u64::from(c.valid_at_start) << 1 | u64::from(c.for_wear));
        eat(c.last_wear_move);
        self.counters.to_array().into_iter().for_each(&mut eat);
        self.spare.to_words().into_iter().for_each(&mut eat);
        self.groups.iter().for_each(|groups| groups.to_words().into_iter().for_each(&mut eat));
        self.random.state().into_iter().for_each(&mut eat);
        self.reduction.iter().for_each(|r| r.words().for_each(&mut eat));
        self.bad_blocks.iter().for_each(|bad| bad.words().into_iter().for_each(&mut eat));
        hash
    }

    /// Current logical page of a physical page address, if it holds valid data of exactly one.
    pub fn holder(&self, ppa: Ppa) -> Option<Lpn> {
        let lpn = self.reverse[ppa.index()];
        let own = self.forward.get(lpn.index()).is_some_and(|&mapped| mapped == ppa);
        own.then_some(lpn)
    }
}
