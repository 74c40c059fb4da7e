//! Data shared by several logical pages: stored once, with a reference count. The map entries of
//! these pages contain a number of the shared data instead of an address, so relocating the data
//! changes one entry.

use writecliff_base::Ppa;

/// Bit of a map entry that marks a shared-data number instead of an address.
const SHARED: u32 = 1 << 31;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SharedData {
    pub ppa: Ppa,
    /// Number of logical pages that refer to the data; 0 if the number is free.
    pub references: u32,
    pub sectors: u8,
}

/// All shared data by number; numbers are reused, last freed first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shared {
    pub(super) all: Vec<SharedData>,
    pub(super) free: Vec<u32>,
}

/// The shared-data number in a map entry.
#[inline]
pub(super) fn number(entry: Ppa) -> Option<usize> {
    (entry.0 & SHARED != 0 && !entry.is_none()).then_some((entry.0 & !SHARED) as usize)
}

/// The map entry of shared data.
pub(super) fn entry(number: u32) -> Ppa {
    // Never all ones, because there are fewer than 2^31 - 1 logical pages.
    Ppa(SHARED | number)
}

/// Whether a map entry, forward or reverse, is one of shared data.
pub(crate) fn is_shared(entry: u32) -> bool {
    number(Ppa(entry)).is_some()
}

impl Shared {
    /// Whether `ppa` holds the shared data of a reverse entry. The entry may be older than the data
    /// that now use its number.
    #[inline]
    pub(super) fn is_at(&self, entry: u32, ppa: Ppa) -> bool {
        number(Ppa(entry)).and_then(|n| self.all.get(n)).is_some_and(|data| data.ppa == ppa)
    }

    /// The shared data of a map entry, if it does not contain an address.
    #[inline]
    pub(crate) fn get(&self, entry: Ppa) -> Option<&SharedData> {
        number(entry).map(|n| &self.all[n])
    }

    /// The physical address of a map entry.
    #[inline]
    pub(crate) fn resolve(&self, entry: Ppa) -> Ppa {
        self.get(entry).map_or(entry, |data| data.ppa)
    }

    /// Makes the data of one logical page at `ppa` shared; returns its new map entry.
    pub(super) fn share(&mut self, ppa: Ppa, sectors: u8) -> Ppa {
        let data = SharedData { ppa, references: 1, sectors };
        let number = self.free.pop().unwrap_or_else(|| {
            self.all.push(data);
            (self.all.len() - 1) as u32
        });
        self.all[number as usize] = data;
        entry(number)
    }

    pub(super) fn add_reference(&mut self, of: Ppa) {
        let n = number(of).expect("an entry of shared data");
        self.all[n].references += 1;
    }

    /// Removes a reference; returns whether it was the last one.
    pub(super) fn drop_reference(&mut self, entry: Ppa) -> bool {
        let n = number(entry).expect("an entry of shared data");
        let data = &mut self.all[n];
        debug_assert!(data.references > 0);
        data.references -= 1;
        if data.references > 0 {
            return false;
        }
        data.ppa = Ppa::NONE;
        self.free.push(n as u32);
        true
    }

    pub(super) fn moved(&mut self, entry: Ppa, to: Ppa) {
        let n = number(entry).expect("an entry of shared data");
        self.all[n].ppa = to;
    }
}
