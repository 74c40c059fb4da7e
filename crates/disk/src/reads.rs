//! The read cache: what was read lately, in segments, and reading ahead while nothing else is to
//! do.
//!
//! After a read the drive goes on reading behind it into the segment of that read, until the
//! segment is full or there is work. How far it has come is computed when somebody asks: the
//! platters turn the same whether or not anyone looks.

use writecliff_base::Nanos;
use writecliff_base::codec::CodecError;
use writecliff_base::words::{WordReader, WordWriter};

use crate::layout::{Layout, SECTOR_BYTES};
use crate::mechanics::{Extent, Mechanics};

/// Sectors that are in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    first: u64,
    end: u64,
    /// Behind the last sector that the host read.
    consumed: u64,
}

/// Reading ahead into the newest segment.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    /// At this time the sector of that passage is under the head.
    since: Nanos,
    passage: u64,
    /// The first sector that will not be read.
    limit: u64,
}

#[derive(Clone, Debug)]
pub struct Reads {
    /// Newest last.
    segments: Vec<Segment>,
    most: usize,
    segment_sectors: u64,
    /// Sectors of the disk.
    sectors: u64,
    ahead: Option<Ahead>,
}

impl Reads {
    pub fn new(cache_bytes: u64, segments: u32, capacity_bytes: u64) -> Self {
        Self {
            segments: Vec::with_capacity(segments as usize),
            most: segments as usize,
            segment_sectors: cache_bytes / u64::from(segments) / SECTOR_BYTES,
            sectors: capacity_bytes / SECTOR_BYTES,
            ahead: None,
        }
    }

    /// Take note of how far reading ahead has come.
    fn look(&mut self, now: Nanos, layout: &Layout) {
        if let (Some(ahead), Some(newest)) = (&self.ahead, self.segments.last_mut()) {
            let passage = ahead.passage + now.saturating_sub(ahead.since).0;
            newest.end = newest.end.max(layout.reached(passage).min(ahead.limit));
            newest.first = newest.first.max(newest.end.saturating_sub(self.segment_sectors));
        }
    }

    /// Whether all of `first..=last` is there. If it is, the host has it, and reading ahead may
    /// have room again.
    pub fn hit(&mut self, now: Nanos, first: u64, last: u64, mechanics: &Mechanics) -> bool {
        self.look(now, &mechanics.layout);
        let holds = |s: &Segment| s.first <= first && last < s.end;
        let Some(found) = self.segments.iter().position(holds) else { return false };
        self.segments[found].consumed = last + 1;
        if found + 1 == self.segments.len() && self.ahead.is_some() {
            self.go_on(now, mechanics);
        }
        true
    }

    /// Read further ahead once half of the segment is free.
    fn go_on(&mut self, now: Nanos, mechanics: &Mechanics) {
        let (Some(ahead), Some(newest)) = (&mut self.ahead, self.segments.last()) else { return };
        let room = (newest.consumed + self.segment_sectors).min(self.sectors);
        if room < ahead.limit + self.segment_sectors / 2 {
            return;
        }
        if newest.end == ahead.limit {
            // It had stopped: the next sector has to come round again.
            ahead.passage = mechanics.layout.passage(ahead.limit);
            ahead.since = now + mechanics.until_sector(now, ahead.limit);
        }
        ahead.limit = room;
    }

    /// How long until a read that begins in what is there, or where reading ahead is, has all of
    /// its data; `None` if it does not.
    pub fn follows(&mut self, now: Nanos, extent: &Extent, mechanics: &Mechanics) -> Option<Nanos> {
        self.look(now, &mechanics.layout);
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

    /// The sector that the head is at, while the drive reads ahead.
    pub fn head(&mut self, now: Nanos, layout: &Layout) -> Option<u64> {
        self.look(now, layout);
        self.ahead.as_ref()?;
        self.segments.last().map(|newest| newest.end.max(1) - 1)
    }

    /// Stop reading ahead.
    pub fn stop(&mut self, now: Nanos, layout: &Layout) {
        self.look(now, layout);
        self.ahead = None;
    }

    /// The host has read `first..=last` from the media.
    pub fn read(&mut self, first: u64, last: u64) {
        let touches = |s: &Segment| s.first <= first && first <= s.end;
        let found = self.segments.iter().position(touches);
        let mut segment = match found {
            Some(found) => self.segments.remove(found),
            None => Segment { first, end: first, consumed: first },
        };
        segment.end = segment.end.max(last + 1);
        segment.consumed = last + 1;
        segment.first = segment.first.max(segment.end.saturating_sub(self.segment_sectors));
        if self.segments.len() == self.most {
            self.segments.remove(0);
        }
        self.segments.push(segment);
    }

    /// Begin to read ahead behind the newest segment, whose last sector has just passed.
    pub fn begin_ahead(&mut self, now: Nanos, layout: &Layout) {
        let Some(newest) = self.segments.last() else { return };
        if newest.end < self.sectors {
            let limit = (newest.consumed + self.segment_sectors).min(self.sectors).max(newest.end);
            let passage = layout.passed(newest.end - 1);
            self.ahead = Some(Ahead { since: now, passage, limit });
        }
    }

    /// The host writes `first..=last`: what the cache has of it is old. The drive does not read
    /// ahead.
    pub fn written(&mut self, first: u64, last: u64) {
        debug_assert!(self.ahead.is_none());
        self.segments.retain(|s| last < s.first || s.end <= first);
    }

    pub fn check(&self) -> Result<(), String> {
        let fits = |s: &Segment| s.first < s.end && s.end - s.first <= self.segment_sectors;
        match self.segments.iter().find(|s| !fits(s) || s.end > self.sectors) {
            Some(odd) => Err(format!("a segment holds {}..{}", odd.first, odd.end)),
            None if self.segments.len() > self.most => Err("too many segments".to_owned()),
            None => Ok(()),
        }
    }

    pub fn save(&self, out: &mut WordWriter) {
        out.list(self.segments.iter(), |out, s| {
            out.put(s.first);
            out.put(s.end);
            out.put(s.consumed);
        });
        out.list(self.ahead.iter(), |out, ahead| {
            out.put(ahead.since.0);
            out.put(ahead.passage);
            out.put(ahead.limit);
        });
    }

    pub fn restore(&mut self, input: &mut WordReader<'_>) -> Result<(), CodecError> {
        self.segments = input.list(|input| {
            Ok(Segment { first: input.get()?, end: input.get()?, consumed: input.get()? })
        })?;
        let ahead = input.list(|input| {
            Ok(Ahead { since: Nanos(input.get()?), passage: input.get()?, limit: input.get()? })
        })?;
        self.ahead = ahead.into_iter().next();
        Ok(())
    }
}
