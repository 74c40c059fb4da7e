//! Scheduling of media accesses.
//!
//! The command with the shortest access time (seek plus rotation) is served first, unless the
//! oldest command has waited longer than the age limit. Cached writes are written back when the
//! host has no pending commands, when the cache is full, or when a flush waits for them.

use serde::{Deserialize, Serialize};
use writecliff_base::{Nanos, SECTOR_BYTES};
use writecliff_host_interface::Drive;

use super::{BURST_BYTES, Disk, DiskEvent};
use crate::mechanics::Extent;

/// A command waiting for a media access.
#[derive(Clone, Copy)]
pub(super) struct Task {
    number: u16,
    extent: Extent,
    is_write: bool,
    since: Nanos,
}

/// A media access in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Work {
    Read {
        number: u16,
        extent: Extent,
        began: Nanos,
    },
    Write {
        number: u16,
        extent: Extent,
    },
    /// Write-back of a cached write.
    Destage {
        extent: Extent,
        sequence: u64,
    },
    Recalibrate,
}

/// A candidate for the next access, with the estimated time until its data pass under the head.
#[derive(Clone, Copy)]
struct Candidate {
    is_cached: bool,
    index: usize,
    wait: Nanos,
    /// Time until the access ends, if read-ahead is already approaching the data.
    follows: Option<Nanos>,
}

impl Disk {
    pub(super) fn enqueue(&mut self, number: u16, extent: Extent, is_write: bool) {
        self.queue.push(Task { number, extent, is_write, since: self.core.now });
        self.start_next();
    }

    /// Starts the next media access if the arm is free and an access is pending.
    pub(super) fn start_next(&mut self) {
        if self.work.is_some() || (self.queue.is_empty() && !self.must_destage()) {
            return;
        }
        let layout = &self.mechanics.layout;
        if let Some(head) = self.reads.head(self.core.now, layout) {
            self.mechanics.move_to(head);
        }
        if let Some(end) = self.mechanics.recalibrated(self.idle_since, self.core.now) {
            self.reads.stop(self.core.now, &self.mechanics.layout);
            self.start(Work::Recalibrate, end);
            return;
        }
        debug_assert!(
            !self.queue.is_empty() || self.must_destage(),
            "the arm starts without an access"
        );
        let chosen = self.choose();
        let (work, extent) = if chosen.is_cached {
            let dirty = self.dirty.take(chosen.index);
            (Work::Destage { extent: dirty.extent, sequence: dirty.sequence }, dirty.extent)
        } else {
            let Task { number, extent, is_write, .. } = self.queue.remove(chosen.index);
            let read = Work::Read { number, extent, began: self.core.now };
            (if is_write { Work::Write { number, extent } } else { read }, extent)
        };
        self.reads.stop(self.core.now, &self.mechanics.layout);
        let needs = chosen.follows.unwrap_or_else(|| {
            let is_write = !matches!(work, Work::Read { .. });
            self.mechanics.positioning(self.core.now, &extent, is_write)
                + self.mechanics.transfer(&extent)
        });
        let again = self.mechanics.repeat();
        self.start(work, self.core.now + needs + again);
    }

    fn start(&mut self, work: Work, end: Nanos) {
        assert!(self.work.is_none(), "the arm does one thing at a time");
        self.work = Some((work, end));
        self.core.schedule(end, DiskEvent::WorkDone);
    }

    fn must_destage(&self) -> bool {
        let is_pressed = !self.write_waiting.is_empty() || !self.flushes.is_empty();
        !self.dirty.writes.is_empty() && (is_pressed || self.queue.is_empty())
    }

    fn choose(&mut self) -> Candidate {
        let oldest = self.queue.first().map_or(Nanos::MAX, |task| task.since);
        if self.core.now.saturating_sub(oldest) > self.config.controller.age_limit {
            return self.candidate(0);
        }
        let mut best: Option<Candidate> = None;
        let mut offer = |candidate: Candidate| {
            if best.is_none_or(|best| candidate.wait < best.wait) {
                best = Some(candidate);
            }
        };
        for index in 0..self.queue.len() {
            offer(self.candidate(index));
        }
        if self.must_destage() {
            for (index, dirty) in self.dirty.writes.iter().enumerate() {
                let wait = self.mechanics.expected(self.core.now, &dirty.extent, true);
                offer(Candidate { is_cached: true, index, wait, follows: None });
            }
        }
        best.expect("an access is pending")
    }

    fn candidate(&mut self, index: usize) -> Candidate {
        let task = &self.queue[index];
        let (extent, is_write) = (&task.extent, task.is_write);
        let reads = Some(&mut self.reads).filter(|_| !is_write);
        let follows = reads.and_then(|reads| reads.follows(self.core.now, extent, &self.mechanics));
        let wait = match follows {
            Some(_) => Nanos::ZERO,
            None => self.mechanics.expected(self.core.now, extent, is_write),
        };
        Candidate { is_cached: false, index, wait, follows }
    }

    /// Finishes the media access in progress. Returns `None`: completions travel over the link.
    pub(super) fn work_done(&mut self) -> Option<u16> {
        debug_assert!(
            self.work.is_some_and(|(_, end)| end == self.core.now),
            "the arm was not at work until now"
        );
        let (work, _) = self.work.take()?;
        self.idle_since = self.core.now;
        match work {
            Work::Read { number, extent, began } => {
                self.mechanics.move_to(extent.last);
                self.reads.read(extent.first, extent.last);
                if let Some(flash) = &mut self.flash {
                    flash.seen(extent.first, extent.last);
                }
                self.send(number, began);
            }
            Work::Write { number, extent } => {
                self.mechanics.move_to(extent.last);
                let at = self.core.frontend.send(self.core.now, 0, true);
                self.core.schedule(at, DiskEvent::Completed(number));
            }
            Work::Destage { extent, .. } => {
                self.mechanics.move_to(extent.last);
                self.dirty.written(extent.sectors());
                self.end_flushes();
                self.admit_writes();
            }
            Work::Recalibrate => {}
        }
        self.start_next();
        if self.work.is_none() && matches!(work, Work::Read { .. }) {
            self.reads.begin_ahead(self.core.now, &self.mechanics.layout);
        }
        None
    }

    /// Sends the read data that were not already sent during the media access.
    fn send(&mut self, number: u16, began: Nanos) {
        let length = self.core.in_flight(number).0.length;
        let early = u64::from(length).saturating_sub(BURST_BYTES);
        let head_start = self.config.link.bandwidth.time_for(early);
        let from = self.core.now.saturating_sub(head_start).max(began);
        let at = self.core.frontend.send(from, length, true).max(self.core.now);
        self.core.schedule(at, DiskEvent::Completed(number));
    }

    /// Returns `true` if all writes before `barrier` are on the media.
    pub(super) fn is_written(&self, barrier: u64) -> bool {
        let waits = self.dirty.writes.first().is_some_and(|dirty| dirty.sequence < barrier);
        let moves = matches!(
            self.work, Some((Work::Destage { sequence, .. }, _)) if sequence < barrier
        );
        !waits && !moves
    }

    /// Resumes the access in progress when the disk was saved; `false` if the state is invalid.
    pub(crate) fn resume(&mut self) -> bool {
        let work = self.work.take();
        let in_progress = match work {
            Some((Work::Destage { extent, .. }, _)) => Some(extent),
            Some((Work::Recalibrate, _)) | None => None,
            // A saved disk has no outstanding host commands.
            Some((Work::Read { .. } | Work::Write { .. }, _)) => return false,
        };
        let sectors = self.config.user_capacity.0 / SECTOR_BYTES;
        let is_on_media = |extent: Extent| {
            let Extent { first, last, .. } = extent;
            first <= last && last < sectors && extent == self.mechanics.extent(first, last)
        };
        let cached = self.dirty.writes.iter().map(|dirty| dirty.extent);
        if !cached.chain(in_progress).all(is_on_media) {
            return false;
        }
        if let Some((work, end)) = work {
            self.start(work, end);
        }
        self.check_invariants().is_ok()
    }

    fn end_flushes(&mut self) {
        let flushes = std::mem::take(&mut self.flushes).into_iter();
        let (ended, waiting): (Vec<_>, _) = flushes.partition(|flush| self.is_written(flush.1));
        self.flushes = waiting;
        for (number, _) in ended {
            self.core.schedule(self.core.now, DiskEvent::Completed(number));
        }
    }
}
