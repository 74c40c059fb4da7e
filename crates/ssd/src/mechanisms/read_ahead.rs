//! Controller read-ahead: section `[read_ahead]` of a device file.
//!
//! A read that starts where an earlier read ended continues the stream of that read. Once enough
//! reads have continued a stream, the controller holds up to `window` of the next addresses in its
//! memory. The controller reads them from flash in whole pages if possible. A host read whose slots
//! are all in this memory needs no flash read, but it waits for slots whose flash reads are in
//! progress. When the host advances in a stream, the slots before its position are freed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use writecliff_base::keys::{Count, SizeWithin};
use writecliff_base::located::Table;
use writecliff_base::{Bytes, Lpn, SLOT_BYTES, counters, counts, saved, section};
use writecliff_flash::FlashLocation;
use writecliff_host_interface::{Cause, Status};

use crate::mechanisms::{Access, Checked, Described, Mechanism, MechanismSection, Numbered, steps};
use crate::{DeviceConfig, FlashOperation, Recorder, Ssd};

const WINDOW_MAX: Bytes = Bytes(16 << 20);

section! {
    /// Detection of sequential reads, and the window that is read ahead.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct ReadAheadConfig {
        window: required SizeWithin(Bytes(SLOT_BYTES)..=WINDOW_MAX),
            "distance that the controller reads ahead of the host in a sequential stream";
        after: default Count(1..=1000) = 2,
            "number of consecutive sequential reads that start read-ahead";
        streams: default Count(1..=64) = 8,
            "number of streams followed at the same time; a new stream replaces the least \
             recently used";
    }
}

impl MechanismSection for ReadAheadConfig {
    type Keys = Self;

    fn check(config: Self::Keys, _: &Table<'_>, _: &mut Described<'_>) -> Checked<Self> {
        Ok(Some(config))
    }
}

counts! {
    /// Counters of read-ahead since the drive was new, in slots.
    pub struct ReadAheadCounts {
        hits,
        fetched,
        unused,
    }
}

counters! { |c: ReadAheadCounts|
    Integer "read_ahead_hit_bytes" Bytes: c.hits * SLOT_BYTES,
        "host reads served from data that were read ahead, in whole slots (`[read_ahead]`)";
    Integer "read_ahead_bytes" Bytes: c.fetched * SLOT_BYTES,
        "bytes read from flash ahead of the host (`[read_ahead]`)";
    Integer "read_ahead_unused_bytes" Bytes: c.unused * SLOT_BYTES,
        "bytes read ahead and dropped before the host read them (`[read_ahead]`)";
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Stream {
    /// Byte address of the read that would continue the stream.
    next: u64,
    reads: u32,
    /// Slot after the slots read ahead, or after the host's last slot if none were read ahead.
    end: u32,
    /// Value of `ReadAhead::reads` when the stream was last used.
    used: u64,
}

impl Stream {
    /// Returns the slot that the host needs next.
    fn slot(&self) -> u32 {
        (self.next / SLOT_BYTES) as u32
    }
}

/// A slot in the controller's memory, with the token of its fetch while it is being read.
type Slot = Option<u16>;

/// A flash read in progress, of `slots` slots from `first` on, and the commands that wait for it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Fetch {
    first: u32,
    slots: u32,
    #[serde(skip)]
    commands: Vec<u16>,
}

/// Slots of one flash page.
#[derive(Clone, Copy)]
struct Run {
    first: u32,
    slots: u32,
    location: FlashLocation,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct ReadAhead {
    config: ReadAheadConfig,
    user_slots: u32,
    reads: u64,
    streams: Vec<Stream>,
    held: BTreeMap<u32, Slot>,
    /// Flash reads in progress, by token.
    fetches: Vec<Option<Fetch>>,
    pub counts: ReadAheadCounts,
}

saved! { ReadAhead { reads, streams, held, fetches, counts } check is_possible }

impl ReadAhead {
    fn is_possible(&mut self) -> bool {
        let has = |token: u16| matches!(self.fetches.get(usize::from(token)), Some(Some(_)));
        let within = u64::from(self.user_slots);
        let (mut streams, mut fetches) = (self.streams.iter(), self.fetches.iter().flatten());
        self.streams.len() <= self.config.streams as usize
            && streams
                .all(|stream| u64::from(stream.end) <= within && stream.next <= within * SLOT_BYTES)
            && self.held.iter().all(|(&lpn, slot)| lpn < self.user_slots && slot.is_none_or(has))
            && fetches.all(|fetch| u64::from(fetch.first) + u64::from(fetch.slots) <= within)
    }

    /// Frees a slot that the host has not read.
    fn drop_slot(&mut self, lpn: u32) {
        if self.held.remove(&lpn).is_some() {
            self.counts.unused += 1;
        }
    }

    fn drop_slots(&mut self, first: u32, end: u32) {
        if !self.held.is_empty() {
            (first..end).for_each(|lpn| self.drop_slot(lpn));
        }
    }

    /// Updates and returns the stream that a read continues or starts.
    fn follow(&mut self, offset: u64, end: u64) -> usize {
        self.reads += 1;
        let (next, used) = (end, self.reads);
        let behind = end.div_ceil(SLOT_BYTES) as u32;
        if let Some(index) = self.streams.iter().position(|stream| stream.next == offset) {
            let stream = &mut self.streams[index];
            let before = stream.slot();
            stream.reads = stream.reads.saturating_add(1);
            (stream.next, stream.used, stream.end) = (next, used, stream.end.max(behind));
            let now = stream.slot();
            self.drop_slots(before, now);
            return index;
        }
        let stream = Stream { next, reads: 1, end: behind, used };
        if self.streams.len() < self.config.streams as usize {
            self.streams.push(stream);
            return self.streams.len() - 1;
        }
        let oldest = self.streams.iter().enumerate().min_by_key(|(_, stream)| stream.used);
        let index = oldest.map_or(0, |(index, _)| index);
        let old = std::mem::replace(&mut self.streams[index], stream);
        debug_assert!(self.streams.len() <= self.config.streams as usize);
        self.drop_slots(old.slot(), old.end);
        index
    }

    /// Reads the missing data of a stream's window, up to the last whole page.
    fn extend<R: Recorder>(&mut self, drive: &mut Ssd<R>, index: usize) {
        let stream = self.streams[index];
        if stream.reads < self.config.after {
            return;
        }
        let window = (self.config.window.0 / SLOT_BYTES) as u32;
        let behind = stream.next.div_ceil(SLOT_BYTES) as u32;
        debug_assert!(behind <= self.user_slots, "a stream leaves the drive");
        let until = (behind + window).min(self.user_slots);
        let mut run: Option<Run> = None;
        for lpn in stream.end..until {
            let location = self.location_to_read(drive, lpn);
            match (&mut run, location) {
                (Some(run), Some(location)) if run.location == location => run.slots += 1,
                _ => {
                    if let Some(run) = run.take() {
                        self.fetch(drive, run);
                    }
                    run = location.map(|location| Run { first: lpn, slots: 1, location });
                }
            }
            if location.is_none() {
                self.held.entry(lpn).or_insert(None);
            }
        }
        self.streams[index].end = stream.end.max(until);
        let Some(run) = run else { return };
        let continues =
            until < self.user_slots && self.location_to_read(drive, until) == Some(run.location);
        if continues && run.first > behind {
            // A later read fetches the remaining data of the page along with the page.
            self.streams[index].end = run.first;
        } else {
            self.fetch(drive, run);
        }
    }

    /// Returns the flash location of a slot; `None` if the slot need not be read.
    fn location_to_read<R: Recorder>(&self, drive: &Ssd<R>, lpn: u32) -> Option<FlashLocation> {
        let ppa = drive.storage.ftl.lookup(Lpn(lpn));
        if ppa.is_none() || self.held.contains_key(&lpn) {
            return None;
        }
        let location = drive.storage.backend.geometry.locate(ppa);
        (!drive.storage.is_buffered(ppa, &location)).then_some(location)
    }

    /// Reads slots of one page from flash, with the timing of a host read.
    fn fetch<R: Recorder>(&mut self, drive: &mut Ssd<R>, run: Run) {
        let Run { first, slots, location } = run;
        debug_assert!((1..=u32::from(u8::MAX)).contains(&slots), "a run is of one page");
        debug_assert!(first + slots <= self.user_slots, "a window leaves the drive");
        let free = self.fetches.iter().position(Option::is_none);
        let place = free.unwrap_or(self.fetches.len());
        let Ok(token) = u16::try_from(place) else { return };
        if free.is_none() {
            self.fetches.push(None);
        }
        let (sense, is_lost) = drive.storage.backend.sense(&location, slots);
        self.fetches[place] = Some(Fetch { first, slots, commands: Vec::new() });
        self.counts.fetched += u64::from(slots);
        if !is_lost {
            (first..first + slots).for_each(|lpn| {
                self.held.insert(lpn, Some(token));
            });
        }
        let purpose = Self::request(token);
        let operation = FlashOperation::Read { sense, slots: slots as u8, purpose };
        drive.storage.backend.queue_read(location.die as usize, operation);
    }

    /// Serves a read if all its slots are held; returns `true` if they are.
    fn serve<R: Recorder>(&mut self, drive: &mut Ssd<R>, number: u16, read: &Access<'_>) -> bool {
        let slots = read.first.0..read.first.0 + read.slots;
        if self.held.is_empty() || !slots.clone().all(|lpn| self.held.contains_key(&lpn)) {
            return false;
        }
        let is_unmapped = |&lpn: &u32| drive.storage.ftl.lookup(Lpn(lpn)).is_none();
        drive.storage.unmapped_read_slots += slots.clone().filter(is_unmapped).count() as u64;
        self.counts.hits += u64::from(read.slots);
        drive.commands.get(number).status = drive.mechanisms.read(read, Status::Success);
        let mut tokens: Vec<u16> = slots.filter_map(|lpn| self.held[&lpn]).collect();
        tokens.dedup();
        debug_assert!(tokens.len() <= read.slots as usize, "more reads than slots");
        drive.commands.get(number).pending = tokens.len() as u32;
        for &token in &tokens {
            let fetch = self.fetches[usize::from(token)].as_mut();
            fetch.expect("a slot on its way has a read").commands.push(number);
        }
        if tokens.is_empty() {
            drive.commands.send_all(number, &mut drive.storage.backend);
        }
        true
    }
}

impl Mechanism for ReadAhead {
    const STEPS: u8 = steps::READS | steps::WRITES;

    fn of(config: &DeviceConfig) -> Option<Box<Self>> {
        let section = config.sections.read_ahead?;
        let user_slots = config.ftl.user_slots as u32;
        Some(Box::new(Self { config: section, user_slots, ..Self::default() }))
    }

    /// Serves a read if all its data were read ahead, and reads further ahead.
    fn holds_read<R: Recorder>(&mut self, drive: &mut Ssd<R>, read: &Access<'_>) -> bool {
        let Some(number) = read.number else { return false };
        let is_served = self.serve(drive, number, read);
        let (offset, length) = (read.command.offset, read.command.length);
        if is_served && self.streams.iter().any(|stream| stream.next == offset) {
            // These slots do not count as unused because the stream skips them.
            let passed = ((offset + u64::from(length)) / SLOT_BYTES) as u32;
            (read.first.0..passed).for_each(|lpn| {
                self.held.remove(&lpn);
            });
        }
        let index = self.follow(offset, offset + u64::from(length));
        if !is_served {
            // The drive queues the host's own flash reads first.
            drive.read_held(number);
        }
        self.extend(drive, index);
        true
    }

    fn before_write<R: Recorder>(&mut self, _: &mut Ssd<R>, write: &Access<'_>) {
        self.drop_slots(write.first.0, write.first.0 + write.slots);
    }

    fn trimmed(&mut self, lpn: Lpn) {
        self.drop_slot(lpn.0);
    }

    /// Handles the arrival of a page in the controller.
    fn due<R: Recorder>(&mut self, drive: &mut Ssd<R>, token: u16) -> bool {
        let Some(fetch) = self.fetches.get_mut(usize::from(token)).and_then(Option::take) else {
            return false;
        };
        for lpn in fetch.first..fetch.first + fetch.slots {
            if let Some(slot) = self.held.get_mut(&lpn)
                && *slot == Some(token)
            {
                *slot = None;
            }
        }
        for number in fetch.commands {
            if drive.commands.arrived(number, Cause::Flash, &mut drive.storage.backend) {
                drive.commands.send_all(number, &mut drive.storage.backend);
            }
        }
        false
    }

    fn purged(&mut self) {
        self.counts.unused += self.held.len() as u64;
        self.held.clear();
        self.streams.clear();
    }

    fn powered_up(&mut self) {
        self.purged();
        self.fetches.clear();
    }
}
