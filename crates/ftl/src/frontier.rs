//! Write frontiers: the open reclaim units. The host has one for each stream. GC has its own, so
//! that relocated (older) data are not mixed with newly written data.

use writecliff_base::{Ppa, ReclaimUnitId};

/// Index of a frontier: `0..streams` belong to the host, `streams..2*streams` to GC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrontierId(pub u16);

impl FrontierId {
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Write position of a frontier. A frontier without a unit has `next == end`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frontier {
    pub unit: ReclaimUnitId,
    /// Physical page addresses: the next one, the end of the program unit being filled,
    /// the end of the reclaim unit.
    pub next: u32,
    pub fill_end: u32,
    pub end: u32,
    /// Slots of the program unit being filled that hold relocated data, if the host fills it.
    pub moved: u32,
    /// Number of the first reclaim unit that was freed while the program unit being filled held
    /// data; `u64::MAX` if there was none. See `UnitTable::freed_at`.
    pub since: u64,
}

impl Frontier {
    pub const CLOSED: Self =
        Self { unit: ReclaimUnitId::NONE, next: 0, fill_end: 0, end: 0, moved: 0, since: u64::MAX };

    #[inline]
    pub fn needs_unit(&self) -> bool {
        self.next == self.end
    }

    /// Used addresses of the program unit being filled.
    #[inline]
    pub fn filled(&self, ppas_per_program_unit: u32) -> u32 {
        if self.needs_unit() { 0 } else { ppas_per_program_unit - (self.fill_end - self.next) }
    }

    #[inline]
    pub fn next_ppa(&self) -> Ppa {
        Ppa(self.next)
    }
}
