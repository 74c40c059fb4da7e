//! I/O counts by size, operation and access pattern, which are the I/O streams of a workload.

use std::collections::BTreeMap;

use writecliff_base::SECTOR_BYTES;

/// Size of the table that counts whole-sector sizes up to 2 MiB; other sizes are counted in a map.
const TABLE: usize = 4097;
const OTHERS_MAX: usize = 4096;

/// I/Os of one size: random reads, sequential reads, random writes, sequential writes.
pub(crate) type Kinds = [u64; 4];

/// Returns the index of an I/O's type in `Kinds`.
#[inline]
pub(crate) fn kind(write: bool, sequential: bool) -> usize {
    usize::from(write) * 2 + usize::from(sequential)
}

#[derive(Clone, Debug)]
pub(crate) struct Sizes {
    table: Vec<Kinds>,
    others: BTreeMap<u64, Kinds>,
    /// I/Os whose sizes did not fit into the map.
    pub(crate) rest: Kinds,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { table: vec![[0; 4]; TABLE], others: BTreeMap::new(), rest: [0; 4] }
    }
}

impl Sizes {
    #[inline]
    pub(crate) fn add(&mut self, length: u64, kind: usize) {
        let sectors = (length / SECTOR_BYTES) as usize;
        if length.is_multiple_of(SECTOR_BYTES) && sectors < TABLE {
            self.table[sectors][kind] += 1;
        } else {
            self.add_other(length, kind);
        }
    }

    #[cold]
    fn add_other(&mut self, length: u64, kind: usize) {
        if self.others.len() >= OTHERS_MAX && !self.others.contains_key(&length) {
            self.rest[kind] += 1;
            return;
        }
        self.others.entry(length).or_default()[kind] += 1;
    }

    /// Returns all sizes that occur, with their I/O counts.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, Kinds)> + '_ {
        let table = (0_u64..).zip(&self.table).map(|(n, kinds)| (n * SECTOR_BYTES, *kinds));
        let others = self.others.iter().map(|(size, kinds)| (*size, *kinds));
        table.chain(others).filter(|(_, kinds)| kinds.iter().sum::<u64>() > 0)
    }
}
