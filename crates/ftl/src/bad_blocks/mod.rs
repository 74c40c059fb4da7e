//! Factory bad blocks, blocks that fail in use, and the spare blocks that replace them.
//!
//! A reclaim unit has one block at each *position*, which is a plane of a die. A failed block is
//! replaced by a spare block at the same position, so a reclaim unit retains its size and its
//! parallelism. When a position has no spare block, a reclaim unit is dissolved, and its other
//! blocks become spare blocks. The number of dropped reclaim units therefore equals the number of
//! bad blocks at the position with the most. If blocks are not replaced, a unit is dropped at its
//! first bad block.
//!
//! Units that are needed for host data and garbage collection are never dissolved. When no other
//! units remain, the drive becomes read-only (`handling.rs`).
//!
//! The lifetime of each block is a numbered random draw, made once. A block fails during the erase
//! or a program of its last cycle. The unit table counts erases per unit; a spare block has its own
//! count of remaining cycles.

mod handling;

use serde::{Deserialize, Serialize};
use writecliff_base::random::nth;
use writecliff_base::{Prng, ReclaimUnitId, counters, counts, saved};
use writecliff_flash::{BlockLife, Geometry, SLOT_BYTES};

/// Labels of the random generators for lifetimes, factory bad blocks and failure types.
const LIVES: u64 = 0x004c_4956_4553;
const FACTORY: u64 = 0x0046_4143_5459;
const FAILURES: u64 = 0x0046_4149_4c53;

/// Distribution of bad blocks, and the method of replacement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BadBlocksConfig {
    /// Probability that a block is bad when the drive leaves the factory.
    pub factory: f64,
    /// Distribution of the erase counts at which blocks fail.
    pub life: BlockLife,
    /// Fraction of failures that an erase detects; a program operation detects the others.
    pub found_by_erase: f64,
    /// `true` if spare blocks replace bad blocks; `false` if reclaim units with bad blocks are
    /// dropped.
    pub replaces: bool,
}

counts! {
    /// Counters of bad blocks since the drive was new.
    pub struct BadBlockCounts {
        factory,
        erase_failures,
        program_failures,
        dropped_units,
        moved_slots,
        refused_writes,
        read_only,
    }
}

/// A pending program failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Due {
    unit: ReclaimUnitId,
    /// Program unit within the reclaim unit.
    program: u32,
    position: u32,
}

/// Blocks of a drive and their condition.
#[derive(Clone, Debug, PartialEq)]
pub struct BadBlocks {
    config: BadBlocksConfig,
    failures_salt: u64,
    planes: u32,
    dies: u32,
    positions: u32,
    units: u32,
    programs_per_unit: u32,
    slots_per_program_unit: u32,
    /// Minimum number of reclaim units of a writable drive.
    least_units: u32,
    /// Number of reclaim units in the new drive.
    units_when_new: u32,
    /// Erase count of the reclaim unit at which its block fails, by unit and position.
    pub(crate) fails_at: Vec<u32>,
    /// Minimum of `fails_at` over the positions of each unit.
    first: Vec<u32>,
    /// Remaining cycles of the spare blocks at each position.
    spare: Vec<Vec<u32>>,
    pub(crate) due: Vec<Due>,
    /// Counters since the drive was new.
    pub counts: BadBlockCounts,
    /// Units dropped because of factory bad blocks.
    pub(crate) dropped_when_new: Vec<ReclaimUnitId>,
}

/// Counters of bad blocks and spare space.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BadBlockCounters {
    /// Counters since the drive was new.
    pub counts: BadBlockCounts,
    pub(crate) spare_blocks: u64,
    /// Spare reclaim units left, in percent of the new drive's (NVMe SMART "available spare").
    pub available_spare_pct: f64,
}

counters! { |c: BadBlockCounters|
    Integer "factory_bad_blocks" Count level of_any_size: c.counts.factory,
        "blocks that were bad when the drive was new (`[bad_blocks]`)";
    Integer "erase_failures" Count of_any_size: c.counts.erase_failures,
        "blocks that failed during an erase (`[bad_blocks]`)";
    Integer "program_failures" Count of_any_size: c.counts.program_failures,
        "blocks that failed during a program (`[bad_blocks]`)";
    Integer "spare_blocks" Count level of_any_size: c.spare_blocks,
        "good blocks available to replace bad blocks (`[bad_blocks]`)";
    Integer "dropped_units" Count level of_any_size: c.counts.dropped_units,
        "reclaim units lost to bad blocks (`[bad_blocks]`)";
    Real "available_spare_pct" Percent level of_any_size: c.available_spare_pct,
        "spare reclaim units left, relative to the new drive, as in NVMe SMART (`[bad_blocks]`)";
    Integer "bad_block_moved_bytes" Bytes:
        c.counts.moved_slots * u64::from(SLOT_BYTES),
        "portion of `nand_write_bytes` moved from failed blocks to spare blocks (`[bad_blocks]`)";
    Integer "refused_writes" Count: c.counts.refused_writes,
        "writes rejected because the drive is read-only (`[bad_blocks]`)";
    Integer "read_only" Count level of_any_size: c.counts.read_only,
        "1 once no spare space is left and the drive rejects writes (`[bad_blocks]`)";
}

/// Returns random draw number `n`, uniform in `[0, 1)`.
fn uniform(salt: u64, n: u64) -> f64 {
    (nth(salt, n) >> 11) as f64 / (1_u64 << 53) as f64
}

saved! { BadBlocks { counts, [spare], due } check is_possible }

impl BadBlocks {
    /// Returns the blocks of a new drive, with factory bad blocks replaced.
    pub fn new(config: BadBlocksConfig, geometry: &Geometry, seed: u64, least_units: u32) -> Self {
        let salt = |label| Prng::derive(seed, label).next_u64();
        let (planes, dies) = (geometry.shape.planes_per_die, geometry.dies);
        let (units, positions) = (geometry.reclaim_units, planes * dies);
        let blocks = u64::from(units) * u64::from(positions);
        let (lives, factory) = (salt(LIVES), salt(FACTORY));
        let fails_at: Vec<u32> = (0..blocks)
            .map(|n| {
                // A block with a lifetime of 0 is bad from the start.
                let is_bad = uniform(factory, n) < config.factory;
                if is_bad { 0 } else { config.life.cycles(uniform(lives, n)) }
            })
            .collect();
        let counts = BadBlockCounts {
            factory: fails_at.iter().filter(|&&life| life == 0).count() as u64,
            ..BadBlockCounts::default()
        };
        let mut new = Self {
            config,
            failures_salt: salt(FAILURES),
            planes,
            dies,
            positions,
            units,
            programs_per_unit: geometry.program_units_per_reclaim_unit,
            slots_per_program_unit: geometry.slots_per_program_unit,
            least_units,
            units_when_new: units,
            first: vec![0; units as usize],
            fails_at,
            spare: vec![Vec::new(); positions as usize],
            due: Vec::new(),
            counts,
            dropped_when_new: Vec::new(),
        };
        new.replace_factory_bad();
        new.units_when_new = new.usable_units();
        new
    }

    /// Replaces factory bad blocks. Dissolves the units with the highest numbers.
    fn replace_factory_bad(&mut self) {
        let mut last = self.units;
        let mut unit = 0;
        while unit < last {
            let id = ReclaimUnitId(unit);
            for position in 0..self.positions {
                while self.has_failed(id, position, 0) && unit < last {
                    if self.config.replaces && self.take_spare(id, position, 0) {
                        continue;
                    }
                    last = if self.config.replaces { last - 1 } else { last };
                    let given_up = if self.config.replaces { ReclaimUnitId(last) } else { id };
                    self.dissolve(given_up, 0);
                    self.dropped_when_new.push(given_up);
                    if !self.config.replaces {
                        break;
                    }
                }
                if self.dropped_when_new.last() == Some(&id) {
                    break;
                }
            }
            self.find_first(id);
            unit += 1;
        }
    }

    /// Returns the number of reclaim units in use.
    pub fn usable_units(&self) -> u32 {
        debug_assert!(self.counts.dropped_units <= u64::from(self.units));
        self.units - self.counts.dropped_units as u32
    }

    /// Returns the counters, and the remaining numbers of spare blocks and units.
    pub fn counters(&self) -> BadBlockCounters {
        debug_assert!(self.units_when_new >= self.least_units, "see FtlConfig::check_capacity");
        let spare = f64::from(self.usable_units() - self.least_units.min(self.usable_units()));
        let when_new = f64::from(self.units_when_new - self.least_units);
        BadBlockCounters {
            counts: self.counts,
            spare_blocks: self.spare.iter().map(|spare| spare.len() as u64).sum(),
            available_spare_pct: 100.0 * spare / when_new.max(1.0),
        }
    }

    fn index(&self, unit: ReclaimUnitId, position: u32) -> usize {
        debug_assert!(unit.0 < self.units && position < self.positions, "no block of the drive");
        unit.index() * self.positions as usize + position as usize
    }

    /// Returns `true` if the unit's block at `position` fails by the unit's `erases`-th erase.
    fn has_failed(&self, unit: ReclaimUnitId, position: u32, erases: u32) -> bool {
        self.fails_at[self.index(unit, position)] <= erases
    }

    /// Replaces a block with a spare block; returns `false` if the position has no spare block.
    fn take_spare(&mut self, unit: ReclaimUnitId, position: u32, erases: u32) -> bool {
        let Some(cycles) = self.spare[position as usize].pop() else { return false };
        let index = self.index(unit, position);
        self.fails_at[index] = erases.saturating_add(cycles);
        true
    }

    /// Dissolves a unit; the unit's good blocks become spare blocks.
    fn dissolve(&mut self, unit: ReclaimUnitId, erases: u32) {
        for position in 0..self.positions {
            let left = self.fails_at[self.index(unit, position)].saturating_sub(erases);
            // The factory bad blocks have already been counted.
            self.counts.erase_failures += u64::from(left == 0 && erases > 0);
            if left > 0 && self.config.replaces {
                self.spare[position as usize].push(left);
            }
        }
        self.counts.dropped_units += 1;
        assert!(self.counts.dropped_units <= u64::from(self.units), "a unit is dropped twice");
    }

    fn find_first(&mut self, unit: ReclaimUnitId) {
        let begin = self.index(unit, 0);
        let of_unit = &self.fails_at[begin..begin + self.positions as usize];
        self.first[unit.index()] = of_unit.iter().copied().min().unwrap_or(u32::MAX);
    }

    /// Finds the first failure of each unit. Returns `false` if the restored state is impossible.
    fn is_possible(&mut self) -> bool {
        (0..self.units).for_each(|unit| self.find_first(ReclaimUnitId(unit)));
        self.counts.dropped_units <= u64::from(self.units)
            && self.due.iter().all(|due| due.unit.0 < self.units && due.position < self.positions)
    }

    /// Returns the state that can differ from a new drive's state, as words for digests.
    pub(crate) fn words(&self) -> Vec<u64> {
        let mut words: Vec<u64> = self.counts.to_array().to_vec();
        for spare in &self.spare {
            words.push(spare.len() as u64);
            words.extend(spare.iter().map(|&cycles| u64::from(cycles)));
        }
        for due in &self.due {
            words.push(u64::from(due.unit.0) << 32 | u64::from(due.program));
            words.push(u64::from(due.position));
        }
        words
    }
}
