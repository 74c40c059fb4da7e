//! Contents of a drive's flash, page by page, derived from the operations that finish on its dies.

use std::collections::BTreeMap;
use std::ops::Range;

use writecliff_base::{Lpn, Ppa, ReclaimUnitId};
use writecliff_flash::Geometry;
use writecliff_ftl::power_up::Unwritten;
use writecliff_ssd::attribution::Recorder;
use writecliff_ssd::{OnTheWay, PowerCut, Ssd, Volatile};

use super::promises::{AGED, NOTHING};

/// Metadata programmed together with the data, and the write that the data belong to.
#[derive(Clone, Copy, Debug)]
struct Page {
    lpn: Lpn,
    /// Sequence number of the placement.
    sequence: u64,
    version: u32,
}

#[derive(Clone, Copy, Debug)]
enum Slot {
    Erased,
    Holds(Page),
    /// Programmed without data, or with data that are no longer needed.
    Programmed,
    Torn,
}

/// Latest deallocation of a logical page.
#[derive(Clone, Copy, Debug)]
struct Trim {
    sequence: u64,
    is_durable: bool,
}

/// Flash of an SLC cache: its addresses, the number of slots per unit and the number of units per
/// block.
#[derive(Clone, Debug)]
struct Log {
    ppas: Range<u32>,
    unit_slots: u32,
    block_units: u32,
}

impl Log {
    fn unit_ppas(&self, unit: u32) -> Range<u32> {
        let first = self.ppas.start + unit * self.unit_slots;
        first..first + self.unit_slots
    }
}

/// The flash, the buffer, and the drive's own record of them.
#[derive(Clone, Debug, Default)]
pub(super) struct FlashImage {
    drive: Volatile,
    geometry: Option<Geometry>,
    log: Option<Log>,
    is_protected: bool,
    slots: Vec<Slot>,
    /// Data that are not yet programmed.
    buffer: OnTheWay<Page>,
    /// Newest version of each page, which the drive moves.
    versions: Vec<u32>,
    trims: BTreeMap<u32, Trim>,
    sequence: u64,
    writing: u32,
    fault: Option<String>,
}

impl Recorder for FlashImage {
    const KEEPS_UNWRITTEN: bool = true;

    fn writing(&mut self, tag: u32) {
        self.writing = tag;
    }

    fn placed(&mut self, lpn: Lpn, at: Ppa, before: Ppa) {
        self.drive.placed(lpn, at, before);
        if self.geometry.is_some() {
            self.versions[lpn.index()] = self.writing;
            self.buffered(lpn, at);
        }
    }

    fn moved(&mut self, lpn: Lpn, at: Ppa, before: Ppa) {
        self.drive.moved(lpn, at, before);
        if self.geometry.is_some() {
            self.buffered(lpn, at);
        }
    }

    fn trimmed(&mut self, lpn: Lpn, before: Ppa) {
        self.drive.trimmed(lpn, before);
        self.sequence += 1;
        self.trims.insert(lpn.0, Trim { sequence: self.sequence, is_durable: false });
    }

    fn journaled(&mut self) {
        self.drive.journaled();
        self.trims.values_mut().for_each(|trim| trim.is_durable = true);
    }

    fn held(&mut self, ppas: Range<u32>) {
        self.drive.held(ppas.clone());
        self.buffer.held(ppas, self.sequence + 1);
    }

    fn released(&mut self, ppas: Range<u32>) {
        self.drive.released(ppas.clone());
        self.buffer.released(&ppas);
    }

    fn unit_programmed(&mut self, ppas: Range<u32>) {
        self.drive.unit_programmed(ppas.clone());
        if self.geometry.is_none() {
            return;
        }
        for ppa in ppas {
            let page = self.buffer.take(ppa);
            let slot = &mut self.slots[ppa as usize];
            // With capacitors, the order of operations on different dies is irrelevant.
            if !self.is_protected && !matches!(slot, Slot::Erased) {
                let was = format!("address {ppa} is programmed but not erased: {slot:?}");
                self.fault.get_or_insert(was);
            }
            *slot = page.map_or(Slot::Programmed, Slot::Holds);
        }
    }

    fn erased(&mut self, unit: ReclaimUnitId, die: u32) {
        let Some(geometry) = &self.geometry else { return };
        let on_die = |&index: &u32| geometry.die_of_unit(index) == die;
        if let Some(block) = unit.0.checked_sub(geometry.reclaim_units) {
            let Some(log) = &self.log else { return };
            let first = block * log.block_units;
            for index in (first..first + log.block_units).filter(on_die) {
                log.unit_ppas(index).for_each(|p| self.slots[p as usize] = Slot::Erased);
            }
            return;
        }
        for index in (0..units_per_reclaim_unit(geometry)).filter(on_die) {
            geometry.unit_ppas(unit, index).for_each(|p| self.slots[p as usize] = Slot::Erased);
        }
    }

    fn take_unwritten(&mut self) -> Option<Vec<Unwritten>> {
        self.drive.take_unwritten()
    }

    fn settled(&mut self) {}
}

fn units_per_reclaim_unit(geometry: &Geometry) -> u32 {
    geometry.slots_per_reclaim_unit / geometry.slots_per_program_unit
}

impl FlashImage {
    /// Starts to observe a fast-forwarded drive: powers the drive up, so that its buffer is empty,
    /// and uses its contents as the initial state.
    pub(super) fn begin(ssd: &mut Ssd<Self>) {
        let cut = PowerCut::of(ssd);
        let is_protected = ssd.config().controller.power_loss_protection;
        let geometry = ssd.ftl().geometry().clone();
        let (ftl, table) = (ssd.ftl(), ssd.ftl().table());
        let log = ssd.storage().log().map(|slc| {
            let (unit_slots, block_units) = slc.shape();
            Log { ppas: slc.addresses(), unit_slots, block_units }
        });
        let ppas = log.as_ref().map_or(geometry.raw_ppas(), |log| u64::from(log.ppas.end));
        let mut slots = vec![Slot::Programmed; ppas as usize];
        if let Some(slc) = ssd.storage().log() {
            slc.erased().for_each(|ppa| slots[ppa.index()] = Slot::Erased);
        }
        for unit in (0..table.len()).map(ReclaimUnitId) {
            let full = ftl.open_units().any(|open| open == unit).then(|| ftl.full_units(unit));
            let first = if table.erased[unit.index()] { 0 } else { full.unwrap_or(u32::MAX) };
            for index in first..units_per_reclaim_unit(&geometry) {
                geometry.unit_ppas(unit, index).for_each(|p| slots[p as usize] = Slot::Erased);
            }
        }
        let user = ftl.user_slots();
        for lpn in (0..user).map(Lpn) {
            let ppa = ssd.storage().location(lpn);
            if !ppa.is_none() {
                slots[ppa.index()] = Slot::Holds(Page { lpn, sequence: 0, version: AGED });
            }
        }
        let versions = vec![AGED; user as usize];
        *ssd.recorder_mut() = Self {
            geometry: Some(geometry),
            log,
            is_protected,
            slots,
            versions,
            ..Self::default()
        };
        cut.power_up(ssd);
    }

    /// Returns the first invalid flash operation; `None` if all were valid.
    pub(super) fn fault(&self) -> Result<(), String> {
        self.fault.clone().map_or(Ok(()), Err)
    }

    fn buffered(&mut self, lpn: Lpn, at: Ppa) {
        self.sequence += 1;
        let (sequence, version) = (self.sequence, self.versions[lpn.index()]);
        self.buffer.add(at, sequence, Page { lpn, sequence, version });
    }

    /// Makes the drive treat all deallocations as lost.
    pub(super) fn forget_journal(&mut self) {
        for (&lpn, trim) in &mut self.trims {
            let newest = self.slots.iter().enumerate().filter_map(|(ppa, slot)| match slot {
                Slot::Holds(page) if page.lpn.0 == lpn => Some((page.sequence, ppa)),
                _ => None,
            });
            if let Some((sequence, ppa)) = newest.max()
                && sequence < trim.sequence
            {
                self.drive.trimmed(Lpn(lpn), Ppa(ppa as u32));
            }
        }
    }

    /// Handles a power failure: the buffer is lost unless capacitors let the drive program it.
    pub(super) fn power_failed(&mut self, cut: &PowerCut) {
        cut.repeated_erases.iter().for_each(|&(unit, die)| self.erased(unit, die));
        if self.is_protected {
            for (ppa, _, page) in self.buffer.take_all() {
                self.slots[ppa as usize] = Slot::Holds(page);
            }
        }
        self.buffer = OnTheWay::default();
        let Some(geometry) = &self.geometry else { return };
        for &(unit, index) in &cut.torn {
            let ppas = match &self.log {
                Some(log) if unit.0 >= geometry.reclaim_units => log.unit_ppas(index),
                _ => geometry.unit_ppas(unit, index),
            };
            ppas.for_each(|p| self.slots[p as usize] = Slot::Torn);
        }
    }

    /// Compares the mapping with the newest copies on flash, and returns the version of each page.
    /// If `is_oldest`, assumes that the mapping refers to the oldest copies.
    pub(super) fn check_rebuilt(ssd: &mut Ssd<Self>, is_oldest: bool) -> Result<Vec<u32>, String> {
        let user = ssd.ftl().user_slots() as usize;
        let mapping: Vec<Ppa> =
            (0..user).map(|lpn| ssd.storage().location(Lpn(lpn as u32))).collect();
        let image = ssd.recorder_mut();
        let mut newest: Vec<Option<(u64, u32)>> = vec![None; user];
        let mut oldest = newest.clone();
        for (ppa, slot) in image.slots.iter().enumerate() {
            if let Slot::Holds(page) = slot {
                let copy = Some((page.sequence, ppa as u32));
                let (new, old) = (&mut newest[page.lpn.index()], &mut oldest[page.lpn.index()]);
                *new = copy.max(*new);
                *old = if old.is_none() { copy } else { copy.min(*old) };
            }
        }
        let mut versions = Vec::with_capacity(user);
        for (lpn, &ppa) in mapping.iter().enumerate() {
            let ppa = if is_oldest { oldest[lpn].map_or(ppa, |(_, ppa)| Ppa(ppa)) } else { ppa };
            let version = image.version(lpn, ppa)?;
            if !is_oldest {
                image.check_page(lpn, ppa, newest[lpn])?;
            }
            versions.push(version);
        }
        image.versions.clone_from(&versions);
        Ok(versions)
    }

    fn version(&self, lpn: usize, ppa: Ppa) -> Result<u32, String> {
        if ppa.is_none() {
            return Ok(NOTHING);
        }
        match self.slots[ppa.index()] {
            Slot::Holds(page) if page.lpn.index() == lpn => Ok(page.version),
            other => Err(format!(
                "page {lpn} is mapped to {ppa:?}, but the flash contains {other:?} there"
            )),
        }
    }

    /// Checks that the mapping refers to the newest copy, or to none if a newer deallocation
    /// survives.
    fn check_page(
        &mut self,
        lpn: usize,
        ppa: Ppa,
        newest: Option<(u64, u32)>,
    ) -> Result<(), String> {
        let trim = self.trims.get(&(lpn as u32)).copied();
        let trim = trim.filter(|trim| newest.is_none_or(|(sequence, _)| sequence < trim.sequence));
        let Some(trim) = trim else {
            return match newest {
                None if ppa.is_none() => Ok(()),
                Some((_, at)) if ppa == Ppa(at) => Ok(()),
                _ => Err(format!(
                    "page {lpn} is mapped to {ppa:?}, but its newest copy is {newest:?}"
                )),
            };
        };
        if ppa.is_none() {
            self.trims.insert(lpn as u32, Trim { is_durable: true, ..trim });
            return Ok(());
        }
        let is_newest = newest.is_some_and(|(_, at)| ppa == Ppa(at));
        if trim.is_durable || !is_newest {
            return Err(format!("page {lpn} was deallocated but is mapped to {ppa:?} again"));
        }
        self.trims.remove(&(lpn as u32));
        Ok(())
    }
}
