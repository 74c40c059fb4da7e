//! Pieces of data on a drive that reduces data: each logical page consists of one piece. Data that
//! several pages share are stored once, with a reference count. The map entries of these pages
//! contain the number of the shared data instead of an address, so relocating the data changes one
//! entry.

use std::io::{Read, Write};

use writecliff_base::codec::{CodecError, StateReader, StateWriter};
use writecliff_base::{Lpn, Ppa, ensure, memory};
use writecliff_host_interface::content::SECTORS_PER_SLOT;

use crate::state::damaged;

/// Map entry bit that marks a shared-data number instead of an address.
const SHARED: u32 = 1 << 31;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SharedData {
    pub ppa: Ppa,
    /// Number of logical pages that refer to the data; 0 if the shared-data number is free.
    pub references: u32,
    pub sectors: u8,
}

#[derive(Clone, Debug)]
pub(crate) struct Pieces {
    /// Number of sectors in a logical page's own piece; undefined if the page has none.
    pub sectors: Vec<u8>,
    /// Shared data by number; freed numbers are reused, last freed first.
    pub shared: Vec<SharedData>,
    pub free: Vec<u32>,
}

/// Returns the shared-data number in a map entry.
#[inline]
fn number(entry: Ppa) -> Option<usize> {
    (entry.0 & SHARED != 0 && !entry.is_none()).then_some((entry.0 & !SHARED) as usize)
}

/// Returns the map entry of shared data.
fn entry(number: usize) -> Ppa {
    // The value is never all ones because there are fewer than 2^31 - 1 logical pages.
    debug_assert!(number < (SHARED - 1) as usize);
    Ppa(SHARED | number as u32)
}

/// Returns `true` if a forward or reverse map entry refers to shared data.
#[inline]
pub(crate) fn is_shared(entry: u32) -> bool {
    number(Ppa(entry)).is_some()
}

impl Pieces {
    pub(crate) fn new(pages: usize) -> Self {
        let sectors = memory::filled(SECTORS_PER_SLOT as u8, pages);
        Self { sectors, shared: Vec::new(), free: Vec::new() }
    }

    /// Returns `true` if `ppa` holds the shared data of a reverse entry, which may be stale.
    #[inline]
    pub(crate) fn is_at(&self, entry: Lpn, ppa: Ppa) -> bool {
        number(Ppa(entry.0)).and_then(|n| self.shared.get(n)).is_some_and(|data| data.ppa == ppa)
    }

    /// Returns the shared data of a map entry; `None` if the entry contains an address.
    #[inline]
    pub(crate) fn get(&self, entry: Ppa) -> Option<&SharedData> {
        number(entry).map(|n| &self.shared[n])
    }

    /// Returns the sectors of the piece that an entry for `lpn`, or a reverse entry, refers to.
    #[inline]
    pub(crate) fn size(&self, lpn: Lpn, entry: Ppa) -> u32 {
        u32::from(self.get(entry).map_or_else(|| self.sectors[lpn.index()], |data| data.sectors))
    }

    /// Makes one logical page's piece at `ppa` shared, and returns its new map entry.
    pub(crate) fn share(&mut self, lpn: Lpn, ppa: Ppa) -> Ppa {
        debug_assert!(number(ppa).is_none() && !ppa.is_none(), "data are shared once");
        let data = SharedData { ppa, references: 1, sectors: self.sectors[lpn.index()] };
        let number = self.free.pop().map_or(self.shared.len(), |number| number as usize);
        if number == self.shared.len() {
            self.shared.push(data);
        } else {
            debug_assert_eq!(self.shared[number].references, 0, "a free number is in use");
            self.shared[number] = data;
        }
        entry(number)
    }

    /// Removes a reference; returns `true` if it was the last reference.
    pub(crate) fn drop_reference(&mut self, entry: Ppa) -> bool {
        let data = self.of(entry);
        debug_assert!(data.references > 0);
        data.references -= 1;
        let is_last = data.references == 0;
        if is_last {
            data.ppa = Ppa::NONE;
            self.free.push(entry.0 & !SHARED);
        }
        is_last
    }

    /// Returns the shared data of a map entry that does not contain an address.
    pub(crate) fn of(&mut self, entry: Ppa) -> &mut SharedData {
        &mut self.shared[number(entry).expect("an entry of shared data")]
    }

    /// Checks that reference counts match the map, that reverse entries point back, and that free
    /// numbers are free. Adds the sectors of shared data to the count `valid` of each unit.
    pub(crate) fn check(
        &self,
        forward: &[Ppa],
        reverse: &[Lpn],
        mut add_valid: impl FnMut(Ppa, u32),
    ) -> Result<(), String> {
        let mut references = vec![0_u32; self.shared.len()];
        forward.iter().filter_map(|&ppa| number(ppa)).for_each(|n| references[n] += 1);
        for (n, data) in self.shared.iter().enumerate() {
            let SharedData { ppa, references: counted, sectors } = *data;
            let (is, is_free) = (references[n], self.free.contains(&(n as u32)));
            ensure!(is == counted, "shared {n} has {is} references, but {counted} were counted");
            ensure!(
                is_free == (counted == 0),
                "shared {n} ({counted} references) is wrongly listed"
            );
            if counted == 0 {
                continue;
            }
            let is_held = reverse[ppa.index()].0 == entry(n).0;
            ensure!(is_held, "shared data {n} do not match the contents of {ppa:?}");
            add_valid(ppa, u32::from(sectors));
        }
        Ok(())
    }

    pub(crate) fn save<W: Write>(&self, out: &mut StateWriter<W>) -> Result<(), CodecError> {
        out.bytes("ftl.sectors", &self.sectors)?;
        out.u32s("ftl.shared_count", &[self.shared.len() as u32, self.free.len() as u32])?;
        let data = |d: &SharedData| [d.ppa.0, d.references, u32::from(d.sectors)];
        out.u32s("ftl.shared", &self.shared.iter().flat_map(data).collect::<Vec<u32>>())?;
        out.u32s("ftl.shared_free", &self.free)
    }

    /// Restores the pieces, the shared data that `forward` refers to, and their reverse entries.
    pub(crate) fn restore<R: Read>(
        &mut self,
        input: &mut StateReader<R>,
        forward: &[Ppa],
        reverse: &mut [Lpn],
    ) -> Result<(), CodecError> {
        let sectors = input.bytes("ftl.sectors")?;
        let possible = |&g: &u8| (1..=SECTORS_PER_SLOT as u8).contains(&g);
        if sectors.len() != self.sectors.len() || !sectors.iter().all(possible) {
            return Err(damaged("ftl.sectors"));
        }
        self.sectors = sectors;
        let counts = input.u32s("ftl.shared_count", 2)?;
        let data = input.u32s("ftl.shared", 3 * counts[0] as usize)?;
        let data = data.chunks_exact(3).map(|d| SharedData {
            ppa: Ppa(d[0]),
            references: d[1],
            sectors: d[2] as u8,
        });
        self.shared = data.collect();
        self.free = input.u32s("ftl.shared_free", counts[1] as usize)?;
        for (number, data) in self.shared.iter().enumerate().filter(|(_, d)| d.references > 0) {
            let slot = reverse.get_mut(data.ppa.index()).ok_or_else(|| damaged("ftl.shared"))?;
            *slot = Lpn(entry(number).0);
        }
        let is_unknown = |&ppa: &Ppa| number(ppa).is_some_and(|n| n >= self.shared.len());
        if forward.iter().any(is_unknown) { Err(damaged("ftl.forward")) } else { Ok(()) }
    }

    /// Returns the shared data as words, for digests.
    pub(crate) fn shared_words(&self) -> impl Iterator<Item = u64> + '_ {
        let data = |d: &SharedData| [u64::from(d.ppa.0), u64::from(d.references)];
        let free = self.free.iter().map(|&n| u64::from(n));
        self.shared.iter().flat_map(data).chain(free)
    }
}
