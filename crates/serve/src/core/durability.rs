//! Durability: data that become durable, are lost in a power cut, or outlive the server. Contents
//! and mapping lose the same pages.
//!
//! In real time, the drive reports programmed and journaled data, and a power cut undoes all other
//! changes. If timing is disabled, no data are ever in flight. In this case, a seed determines the
//! lost contents, and the mapping returns to the previous data addresses. The previous data stay on
//! flash until a reclaim unit is erased, and all earlier data are programmed before that.

use std::collections::{BTreeMap, VecDeque};

use writecliff_base::{Bytes, Lpn, Nanos, Ppa, SLOT_BYTES};
use writecliff_contents::{Contents, ContentsError, Loses, Lost, LostPage};
use writecliff_host_interface::{Command, Operation};
use writecliff_runner::AnyDrive;
use writecliff_ssd::{Drive, Ssd, Unwritten, Volatile};

use super::Core;
use crate::journal::Record;
use crate::request::{Failure, Request, Tag};
use crate::served::Timing;
use crate::served::power::{Durable, Recovery};

impl Core {
    /// Adds a change of the drive to the journal, if the drive has one.
    pub(crate) fn note(&mut self, record: Record) {
        if let Some(journal) = &mut self.journal {
            journal.add(record);
        }
    }

    /// Writes the journal before the completion of any recorded change is reported. If writing the
    /// journal fails, all changes completed since the last successful write also fail.
    pub(crate) fn write_journal(&mut self, wall: Nanos) {
        let Some(journal) = &mut self.journal else { return };
        journal.write(self.life, wall);
        if journal.has_failed {
            let changes =
                self.done.iter_mut().filter(|(_, done)| Record::of(&done.request).is_some());
            changes.for_each(|(_, done)| done.failure = Some(Failure::NoSpace));
        }
    }

    /// Records the changes below `change` that a completing request has made durable.
    pub(super) fn note_durable(&mut self, request: &Request, change: u64) {
        let is_volatile = self.drive.is_volatile();
        self.durability.note_completed(request, is_volatile, change, &mut self.durable);
    }

    /// Returns the changes that have become durable since the last call.
    pub(crate) fn take_durable(&mut self) -> std::vec::Drain<'_, Durable> {
        if let Durability::ByDrive = self.durability
            && let Some(ssd) = self.drive.volatile()
        {
            self.durable.extend(durable_ranges(ssd));
        }
        self.durable.drain(..)
    }

    /// Flushes the drive after it has completed its requests, as for a host shutdown.
    pub(crate) fn flush_all(&mut self) {
        self.drain();
        let flush = Request::new(Tag::NONE, Operation::Flush, 0, 0);
        if self.timing != Timing::Fast && self.drive.is_volatile() {
            let at = self.at.max(self.drive.now());
            self.drive.submit(at, flush.command(0, 0, 0));
            let done = self.drive.step(Nanos::MAX).expect("a flush completes");
            self.at = self.at.max(done.at);
        }
        self.note_durable(&flush, self.next_change());
    }

    pub(crate) fn durable_all(&mut self, contents: &mut Contents) {
        self.take_durable();
        contents.durable_until(u64::MAX);
    }

    /// Cuts the power, which drops outstanding requests without replies, and changes that are not
    /// durable. The drive then powers up and rebuilds its mapping. A drive without a power cut
    /// model completes its commands and is immediately ready.
    pub(crate) fn power_cut(
        &mut self,
        contents: &mut Contents,
        seed: u64,
    ) -> Result<(Lost, Option<Recovery>), ContentsError> {
        self.settle();
        self.take_durable().for_each(|durable| durable.note(contents));
        let undone = contents.power_cut(self.durability.loses(seed));
        let pages = undone.as_ref().map_or(&[][..], |(_, pages)| pages);
        if let Durability::Untimed(untimed) = &mut self.durability
            && let Some(ssd) = self.drive.volatile()
        {
            let lost = untimed.lost(ssd, pages);
            ssd.recorder_mut().lose_untimed(lost);
        }
        let cut = self.drive.cut_power();
        while cut.is_none() && self.in_drive > 0 {
            self.drive.step(Nanos::MAX).expect("commands complete");
            self.in_drive -= 1;
        }
        self.note(Record::PowerUp);
        self.in_drive = 0;
        self.requests.clear();
        self.free.clear();
        self.waiting.clear();
        self.done.clear();
        self.catch_up();
        let recovery = cut.map(|cut| Recovery { hold_up: cut.hold_up, rebuild: cut.rebuild });
        undone.map(|(lost, _)| (lost, recovery))
    }
}

/// Source of information about the data that a power cut loses.
pub(super) enum Durability {
    /// Flushes and completions determine durability, and the mapping loses nothing.
    ByCommands,
    /// The drive reports durable data.
    ByDrive,
    /// Commands determine durability, and the mapping loses the same pages as the contents.
    Untimed(Untimed),
}

impl Durability {
    pub(super) fn of(drive: &mut AnyDrive, timing: Timing, undo_bytes: Bytes) -> Self {
        match (drive.volatile(), timing) {
            (None, _) => Self::ByCommands,
            (Some(_), Timing::Real { .. }) => Self::ByDrive,
            (Some(_), Timing::Fast) => Self::Untimed(Untimed::new(undo_bytes)),
        }
    }

    fn loses(&self, seed: u64) -> Loses {
        match self {
            Self::ByDrive => Loses::All,
            Self::ByCommands | Self::Untimed(_) => Loses::Some(seed),
        }
    }

    /// Records the changes below `below` that a completing request has made durable.
    fn note_completed(
        &mut self,
        request: &Request,
        is_volatile: bool,
        below: u64,
        durable: &mut Vec<Durable>,
    ) {
        let Request { operation, offset, length, .. } = *request;
        if let Self::ByDrive = self {
            if operation == Operation::Trim {
                durable.extend(edges(offset, length, below));
            }
            return;
        }
        if operation == Operation::Flush || (request.durable && is_volatile) {
            durable.push(Durable::All { below });
            if let Self::Untimed(untimed) = self {
                untimed.changes.clear();
            }
        } else if operation != Operation::Read && !is_volatile {
            durable.push(Durable::Range { offset, length, below });
        }
    }
}

/// Returns the pages that a trim covers partially, which the drive ignores and never reports.
fn edges(offset: u64, length: u64, below: u64) -> impl Iterator<Item = Durable> {
    let ends = [offset, offset + length].into_iter().filter(|end| !end.is_multiple_of(SLOT_BYTES));
    ends.map(move |end| Durable::Range {
        offset: end / SLOT_BYTES * SLOT_BYTES,
        length: SLOT_BYTES,
        below,
    })
}

/// Returns the ranges that the drive reports as durable.
fn durable_ranges(ssd: &mut Ssd<Volatile>) -> impl Iterator<Item = Durable> {
    ssd.recorder_mut().take_durable().map(|range| Durable::Range {
        offset: u64::from(range.first.0) * SLOT_BYTES,
        length: u64::from(range.slots) * SLOT_BYTES,
        below: range.below,
    })
}

struct Change {
    lpn: Lpn,
    before: Ppa,
    below: u64,
}

/// Mapping changes that a power cut may undo, oldest first.
pub(super) struct Untimed {
    changes: VecDeque<Change>,
    changes_max: usize,
    /// Previous addresses of a command's slots.
    before: Vec<Ppa>,
    /// Number of erases at the time of the first change.
    erases: u64,
}

impl Untimed {
    fn new(undo_bytes: Bytes) -> Self {
        // A page may contain data from two requests, each with a separate change number.
        let changes_max = 2 * (undo_bytes.0 / SLOT_BYTES).max(1) as usize;
        Self { changes: VecDeque::new(), changes_max, before: Vec::new(), erases: 0 }
    }

    /// Applies a command that includes the host changes below `below`. Returns `true` if all these
    /// changes are now durable.
    pub(super) fn fast_forward(
        &mut self,
        ssd: &mut Ssd<Volatile>,
        command: &Command,
        below: u64,
    ) -> bool {
        debug_assert!(
            self.changes.back().is_none_or(|last| last.below <= below),
            "the changes are out of order"
        );
        let slots = slots_of(command);
        let many = slots.len() > self.changes_max;
        self.before.clear();
        if !many {
            self.before.extend(slots.clone().map(|slot| ssd.storage().location(Lpn(slot))));
        }
        ssd.fast_forward(command);
        let has_erased = self.has_erased(ssd);
        if has_erased || many {
            return has_erased;
        }
        for (slot, &before) in slots.zip(&self.before) {
            let lpn = Lpn(slot);
            if ssd.storage().location(lpn) != before {
                self.changes.push_back(Change { lpn, before, below });
            }
        }
        let over = self.changes.len().saturating_sub(self.changes_max);
        self.changes.drain(..over);
        false
    }

    /// Returns `true` if a reclaim unit was erased since the last call, because earlier changes can
    /// then no longer be undone.
    fn has_erased(&mut self, ssd: &Ssd<Volatile>) -> bool {
        let erases = ssd.storage().erases();
        let has_erased = erases != self.erases;
        if has_erased {
            self.erases = erases;
            self.changes.clear();
        }
        has_erased
    }

    /// Returns the mapping changes that are lost with the content changes.
    fn lost(&mut self, ssd: &Ssd<Volatile>, pages: &[LostPage]) -> Vec<Unwritten> {
        self.has_erased(ssd);
        let mut first_of: BTreeMap<_, _> =
            pages.iter().map(|lost| (lost.page, lost.first)).collect();
        let mut lost = Vec::new();
        for Change { lpn, before, below } in self.changes.drain(..) {
            // Oldest lost change of each page.
            let page = u64::from(lpn.0);
            if first_of.get(&page).is_some_and(|&first| first < below) {
                first_of.remove(&page);
                let at = ssd.storage().location(lpn);
                lost.push(Unwritten { lpn, at, before, is_relocation: false });
            }
        }
        lost
    }
}

fn slots_of(command: &Command) -> std::ops::Range<u32> {
    let end = command.offset + u64::from(command.length);
    match command.operation {
        Operation::Write => (command.offset / SLOT_BYTES) as u32..end.div_ceil(SLOT_BYTES) as u32,
        Operation::Trim => {
            let first = command.offset.div_ceil(SLOT_BYTES) as u32;
            first..((end / SLOT_BYTES) as u32).max(first)
        }
        Operation::Read | Operation::Flush => 0..0,
    }
}
