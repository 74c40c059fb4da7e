//! The read cache: segments of recently read data, and read-ahead.
//!
//! After a read, the drive continues reading into the read's segment until the segment is full or
//! another access is due. Read-ahead progress is computed on demand from the rotational position.

use serde::{Deserialize, Serialize};
use writecliff_base::{Nanos, SECTOR_BYTES, ensure, saved};

use crate::layout::SectorLayout;
use crate::mechanics::{Extent, Mechanics};

/// A range of cached sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Segment {
    first: u64,
    end: u64,
    /// First sector after the last sector that the host read.
    consumed: u64,
}

/// Read-ahead into the newest segment.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Ahead {
    /// Time when the sector with this passage is under the head.
    since: Nanos,
    passage: u64,
    /// End of the read-ahead range (exclusive).
    limit: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Reads {
    /// Segments, least recently used first.
    segments: Vec<Segment>,
    most: usize,
    segment_sectors: u64,
    /// Disk capacity in sectors.
    sectors: u64,
    ahead: Option<Ahead>,
}

saved! { Reads { segments, ahead } check is_possible }

impl Reads {
    pub(crate) fn new(cache_bytes: u64, segments: u32, capacity_bytes: u64) -> Self {
        Self {
            segments: Vec::with_capacity(segments as usize),
            most: segments as usize,
            segment_sectors: cache_bytes / u64::from(segments) / SECTOR_BYTES,
            sectors: capacity_bytes / SECTOR_BYTES,
            ahead: None,
        }
    }

    /// Updates the newest segment with the read-ahead progress.
    fn update(&mut self, now: Nanos, layout: &SectorLayout) {
        if let (Some(ahead), Some(newest)) = (&self.ahead, self.segments.last_mut()) {
            let passage = ahead.passage + now.saturating_sub(ahead.since).0;
            newest.end = newest.end.max(layout.reached(passage).min(ahead.limit));
            newest.first = newest.first.max(newest.end.saturating_sub(self.segment_sectors));
            debug_assert!(newest.first <= newest.end && newest.end <= self.sectors);
        }
    }

    /// Returns `true` if the range is cached; marks it as consumed, so read-ahead may continue.
    pub(crate) fn hit(&mut self, now: Nanos, first: u64, last: u64, mechanics: &Mechanics) -> bool {
        self.update(now, &mechanics.layout);
        let holds = |s: &Segment| s.first <= first && last < s.end;
        let Some(number) = self.segments.iter().position(holds) else { return false };
        self.segments[number].consumed = last + 1;
        if number + 1 == self.segments.len() && self.ahead.is_some() {
            self.extend_ahead(now, mechanics);
        }
        true
    }

    /// Extends read-ahead once half of the segment has been consumed.
    fn extend_ahead(&mut self, now: Nanos, mechanics: &Mechanics) {
        let (Some(ahead), Some(newest)) = (&mut self.ahead, self.segments.last()) else { return };
        let room = (newest.consumed + self.segment_sectors).min(self.sectors);
        if room < ahead.limit + self.segment_sectors / 2 {
            return;
        }
        if newest.end == ahead.limit {
            // Read-ahead had stopped, so wait until the next sector passes under the head again.
            ahead.passage = mechanics.layout.passage(ahead.limit);
            ahead.since = now + mechanics.until_sector(now, ahead.limit);
        }
        debug_assert!(room >= ahead.limit, "the window of read-ahead shrinks");
        ahead.limit = room;
    }

    /// Returns the time until read-ahead holds all data of a read that starts in the newest segment
    /// or at the read-ahead position; `None` if the read starts elsewhere.
    pub(crate) fn follows(
        &mut self,
        now: Nanos,
        extent: &Extent,
        mechanics: &Mechanics,
    ) -> Option<Nanos> {
        self.update(now, &mechanics.layout);
        let (ahead, newest) = (self.ahead.as_ref()?, self.segments.last()?);
        if extent.first < newest.first || extent.first > newest.end || extent.last < newest.end {
            return None;
        }
        let layout = &mechanics.layout;
        if newest.end == ahead.limit {
            let wait = mechanics.until_sector(now, newest.end);
            return Some(wait + Nanos(layout.passed(extent.last) - layout.passage(newest.end)));
        }
        let end = ahead.since.0 + layout.passed(extent.last) - ahead.passage;
        Some(Nanos(end).saturating_sub(now))
    }

    /// Returns the sector under the head during read-ahead; `None` if read-ahead is not active.
    pub(crate) fn head(&mut self, now: Nanos, layout: &SectorLayout) -> Option<u64> {
        self.update(now, layout);
        self.ahead.as_ref()?;
        self.segments.last().map(|newest| newest.end.max(1) - 1)
    }

    pub(crate) fn stop(&mut self, now: Nanos, layout: &SectorLayout) {
        self.update(now, layout);
        self.ahead = None;
    }

    /// Records that the host has read `first..=last` from the media.
    pub(crate) fn read(&mut self, first: u64, last: u64) {
        debug_assert!(first <= last && last < self.sectors, "beyond the disk");
        let touches = |s: &Segment| s.first <= first && first <= s.end;
        let number = self.segments.iter().position(touches);
        let mut segment = match number {
            Some(number) => self.segments.remove(number),
            None => Segment { first, end: first, consumed: first },
        };
        segment.end = segment.end.max(last + 1);
        segment.consumed = last + 1;
        segment.first = segment.first.max(segment.end.saturating_sub(self.segment_sectors));
        if self.segments.len() == self.most {
            self.segments.remove(0);
        }
        self.segments.push(segment);
        debug_assert!(self.segments.len() <= self.most, "more segments than the cache has");
    }

    /// Starts read-ahead after the newest segment, whose last sector has just passed.
    pub(crate) fn begin_ahead(&mut self, now: Nanos, layout: &SectorLayout) {
        let Some(newest) = self.segments.last() else { return };
        if newest.end < self.sectors {
            let limit = (newest.consumed + self.segment_sectors).min(self.sectors).max(newest.end);
            debug_assert!(newest.end <= limit && limit <= self.sectors);
            let passage = layout.passed(newest.end - 1);
            self.ahead = Some(Ahead { since: now, passage, limit });
        }
    }

    /// Invalidates `first..=last` after a host write. Read-ahead must have been stopped.
    pub(crate) fn written(&mut self, first: u64, last: u64) {
        debug_assert!(self.ahead.is_none());
        self.segments.retain(|s| last < s.first || s.end <= first);
    }

    fn is_possible(&mut self) -> bool {
        self.check().is_ok() && self.ahead.is_none_or(|ahead| ahead.limit <= self.sectors)
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        let fits = |s: &Segment| s.first < s.end && s.end - s.first <= self.segment_sectors;
        if let Some(odd) = self.segments.iter().find(|s| !fits(s) || s.end > self.sectors) {
            return Err(format!("a segment holds the sector range {}..{}", odd.first, odd.end));
        }
        ensure!(self.segments.len() <= self.most, "the read cache has too many segments");
        Ok(())
    }
}
