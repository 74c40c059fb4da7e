//! Durability: data that become durable, are lost in a power cut, or outlive the server.

use writecliff_base::Nanos;
use writecliff_contents::{Contents, ContentsError, Lost};
use writecliff_host_interface::Operation;

use super::Core;
use crate::journal::Record;
use crate::power::{Durable, Recovery};
use crate::request::{Failure, Request, Tag};
use crate::served::Timing;
use crate::volatile::{Durability, durable_ranges};

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
        if journal.has_failed() {
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

    /// Records that all content changes so far are durable.
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
