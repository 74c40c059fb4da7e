//! Zones that the host maintains on a conventional drive: writes within a zone are sequential, and
//! a full zone is reset before it is written again.
//!
//! The behaviour follows fio 3.42 with `zonemode=zbd` on a drive without zones (zbd.c). An address
//! is first generated as usual, and the I/O is then moved to an address that its zone permits.
//! Writes go to the write pointer of their zone, or of an open zone when the limit of open zones is
//! reached. Reads are moved to written data in their zone, or to the nearest zone with data. A
//! reset only moves the write pointer back. The drive receives no command, as in fio on drives
//! without zones. A trim resets its zone and is sent to the drive, unlike in fio, because it would
//! otherwise take no time.
//!
//! All jobs of a workload share the zones, so a thread's I/Os depend on the timing of other
//! threads.
//!
//! Known deviations: A zone is full, and no longer open, when its last write is issued, not when it
//! completes. A reset does not wait for outstanding writes. A job without data to read or trim does
//! not end. Such a job writes if it has writes, and otherwise uses the generated address. If zones
//! in other ranges account for all open zones, the zone opened first is closed; in fio, the job
//! ends.

use std::cell::RefCell;
use std::rc::Rc;

use serde::{Deserialize, Serialize};
use writecliff_base::keys::{Count, Flag, Integer, Percent, Size};
use writecliff_base::{Bytes, section};
use writecliff_host_interface::Operation;

use crate::generator::IoRequest;
use crate::spec::{JobSpec, Pattern, TOP};

section! {
    /// Zones of a job.
    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct HostZones {
        size_bytes as size: required Size -> u64, "size of a zone";
        #[serde(default)]
        capacity_bytes as capacity: optional Size -> u64 = "`size`", "writable size of each zone";
        /// The limit applies to all jobs together.
        #[serde(default)]
        max_open: default Count(0..=4096) = 0,
            "maximum number of zones being written at the same time; 0: any number";
        #[serde(default)]
        max_open_per_thread: default Count(0..=4096) = 0,
            "maximum number of zones that each thread writes at the same time; 0: any number";
        #[serde(default)]
        begin_full: default Flag = false, "zones are initially full, not empty";
        #[serde(default)]
        read_unwritten: default Flag = false,
            "reads access any address; if `false`, they are moved to written data";
        /// If this is `false`, the remainder of a zone stays empty if it is smaller than the
        /// smallest block.
        #[serde(default)]
        short_writes: default Flag = false, "the last write of a zone may be shorter than a block";
        #[serde(default)]
        reset_above_pct as reset_above: default Percent(0.0..=100.0) = 0.0,
            "while more than this percentage of the range is written, every \
             `reset_every_writes`th write first resets its zone";
        #[serde(default)]
        reset_every_writes: default Integer(0..=TOP) = 0,
            "interval between these resets, in writes; 0: never";
    }
}

impl HostZones {
    pub(crate) fn capacity(&self) -> u64 {
        self.capacity_bytes.unwrap_or(self.size_bytes)
    }
}

/// Zones of a drive, shared by the threads of a workload.
#[derive(Debug)]
pub struct Zones {
    size: u64,
    capacity: u64,
    /// Write pointers, relative to the start of their zones.
    written: Vec<u64>,
    /// Zones that are being written and the threads that opened them, if the number of open zones
    /// is limited.
    open: Vec<(usize, u64)>,
    /// Number of writes above the threshold since the last reset that the threshold caused.
    writes_since_reset: u64,
}

/// A thread's use of the zones.
#[derive(Clone, Debug)]
pub(crate) struct ZoneUser {
    zones: Rc<RefCell<Zones>>,
    spec: HostZones,
    /// Zones in the range.
    first: usize,
    end: usize,
    /// Thread number among all threads.
    thread: u64,
    /// Smallest block size of each operation.
    least: [u64; 3],
    /// Next position of each operation in a sequential job.
    positions: Option<[u64; 3]>,
    /// `true` if reads become writes until the thread has written data.
    begins_with_write: bool,
    mixes: bool,
}

impl ZoneUser {
    /// Returns the state of a thread of a validated and resolved job, with unshared zones.
    pub(crate) fn new(job: &JobSpec, device: Bytes, range: Bytes, thread: u64) -> Option<Self> {
        let spec = job.host_zones?;
        let first = job.offset_bytes / spec.size_bytes;
        let end = first + range.0 / spec.size_bytes;
        assert!(first < end, "the range has whole zones");
        let least = [Operation::Read, Operation::Write, Operation::Trim].map(|operation| {
            job.block_sizes_of(operation).iter().map(|size| size.bytes).min().unwrap_or(1)
        });
        let mixes = job.read_pct > 0.0 && job.read_pct < 100.0;
        Some(Self {
            zones: Rc::new(RefCell::new(Zones::new(&spec, device))),
            spec,
            first: first as usize,
            end: end as usize,
            thread,
            least,
            positions: (job.pattern == Pattern::Sequential).then_some([job.offset_bytes; 3]),
            begins_with_write: mixes && !spec.read_unwritten,
            mixes,
        })
    }

    /// Uses the zones of the workload's other threads; `shared` contains the zones of the first
    /// thread.
    pub(crate) fn share(&mut self, shared: &mut Option<Rc<RefCell<Zones>>>) {
        self.zones = Rc::clone(shared.get_or_insert_with(|| Rc::clone(&self.zones)));
    }

    /// Moves an I/O to an address that the zones permit.
    pub(crate) fn place(&mut self, io: &mut IoRequest) {
        let zones = Rc::clone(&self.zones);
        let mut zones = zones.borrow_mut();
        if io.op == Operation::Read && self.begins_with_write {
            io.op = Operation::Write;
        }
        self.take_position(io);
        if io.op == Operation::Read
            && !self.spec.read_unwritten
            && !zones.read(self, io)
            && self.mixes
        {
            io.op = Operation::Write;
            self.take_position(io);
        }
        match io.op {
            Operation::Write => {
                self.begins_with_write = false;
                zones.write(self, io);
            }
            Operation::Trim => zones.trim(self, io),
            Operation::Read | Operation::Flush => {}
        }
        debug_assert!(self.has(zones.of(io.offset)), "an I/O leaves the zones of the job");
        if let Some(positions) = &mut self.positions {
            let mut next = io.offset + u64::from(io.length);
            if io.op == Operation::Write && zones.rest(zones.of(io.offset)) == 0 {
                next = next.next_multiple_of(zones.size);
            }
            let end = self.end as u64 * zones.size;
            let least = self.least[io.op as usize];
            let begin = self.first as u64 * zones.size;
            positions[io.op as usize] = if next + least > end { begin } else { next };
        }
    }

    fn take_position(&self, io: &mut IoRequest) {
        if let Some(positions) = &self.positions {
            io.offset = positions[io.op as usize];
        }
    }

    fn after(&self, zone: usize) -> usize {
        if zone + 1 < self.end { zone + 1 } else { self.first }
    }

    fn has(&self, zone: usize) -> bool {
        (self.first..self.end).contains(&zone)
    }

    /// Returns `true` if no further data fit into a zone with this much space left.
    fn is_full(&self, rest: u64) -> bool {
        if self.spec.short_writes { rest == 0 } else { rest < self.least[1] }
    }
}

impl Zones {
    fn new(spec: &HostZones, device: Bytes) -> Self {
        let at_first = if spec.begin_full { spec.capacity() } else { 0 };
        Self {
            size: spec.size_bytes,
            capacity: spec.capacity(),
            written: vec![at_first; (device.0 / spec.size_bytes) as usize],
            open: Vec::new(),
            writes_since_reset: 0,
        }
    }

    fn of(&self, offset: u64) -> usize {
        (offset / self.size) as usize
    }

    fn start(&self, zone: usize) -> u64 {
        zone as u64 * self.size
    }

    /// Returns the number of bytes that can still be written to a zone.
    fn rest(&self, zone: usize) -> u64 {
        self.capacity.saturating_sub(self.written[zone])
    }

    fn close(&mut self, zone: usize) {
        self.open.retain(|&(open, _)| open != zone);
    }

    /// Finishes a zone, whose remainder stays unwritten.
    fn finish(&mut self, zone: usize) {
        self.written[zone] = self.size;
        self.close(zone);
    }

    /// Moves a read to written data; returns `false` if no data are written.
    fn read(&self, user: &ZoneUser, io: &mut IoRequest) -> bool {
        let (least, length) = (user.least[0], u64::from(io.length));
        let random = user.positions.is_none();
        let drawn = self.of(io.offset);
        let inner = io.offset - self.start(drawn);
        let mut zone = drawn;
        let short = self.written[zone] < least;
        if short || (!random && inner + least > self.written[zone]) {
            let Some(next) = self.next_with(user, drawn, least) else { return false };
            zone = next;
            if !random {
                io.offset = self.start(zone);
            }
        }
        let written = self.written[zone];
        if written <= length {
            io.offset = self.start(zone);
        } else if random {
            io.offset = self.start(zone) + inner % (written - length) / least * least;
        }
        let room = self.start(zone) + written - io.offset;
        io.length = (length.min(room) / least * least) as u32;
        debug_assert!(io.length > 0, "zone {zone} holds no block");
        true
    }

    /// Returns the nearest other zone in the range with at least `least` bytes of data; for
    /// sequential jobs, returns the next such zone.
    fn next_with(&self, user: &ZoneUser, zone: usize, least: u64) -> Option<usize> {
        let holds = |at: &usize| self.written[*at] >= least;
        if user.positions.is_some() {
            return (zone + 1..user.end).chain(user.first..=zone).find(holds);
        }
        let up = (zone + 1..user.end).find(holds);
        let down = (user.first..zone).rev().find(holds);
        match (up, down) {
            (Some(up), Some(down)) => Some(if up - zone <= zone - down { up } else { down }),
            (up, down) => up.or(down),
        }
    }

    /// Moves a write to the write pointer of a zone with enough space.
    fn write(&mut self, user: &ZoneUser, io: &mut IoRequest) {
        let zone = self.zone_for_write(user, self.of(io.offset), io.offset);
        if self.is_due(user) || user.is_full(self.rest(zone)) {
            self.written[zone] = 0;
        }
        io.offset = self.start(zone) + self.written[zone];
        let (rest, least) = (self.rest(zone), user.least[1]);
        let mut length = u64::from(io.length).max(least).min(rest);
        if !user.spec.short_writes || length > least {
            length = length / least * least;
        }
        io.length = length as u32;
        self.written[zone] += length;
        debug_assert!(
            length > 0 && self.written[zone] <= self.capacity,
            "{length} B in zone {zone}"
        );
        let max_open = user.spec.max_open as usize;
        debug_assert!(max_open == 0 || self.open.len() <= max_open, "too many open zones");
        if self.rest(zone) == 0 {
            self.close(zone);
        }
    }

    /// Returns the zone for a write to `offset` in `zone`.
    fn zone_for_write(&mut self, user: &ZoneUser, zone: usize, offset: u64) -> usize {
        let mut zone = zone;
        // Each iteration closes a zone, so the loop is short.
        loop {
            let rest = self.rest(zone);
            if rest > 0 && user.is_full(rest) {
                self.finish(zone);
                zone = user.after(zone);
                continue;
            }
            if self.opens(user, zone) {
                return zone;
            }
            match self.one_of_open(user, offset) {
                Some(open) if !user.is_full(self.rest(open)) => return open,
                Some(open) => self.finish(open),
                None => drop(self.open.remove(0)),
            }
        }
    }

    /// Opens a zone if the limits allow it; returns `true` if the zone is open.
    fn opens(&mut self, user: &ZoneUser, zone: usize) -> bool {
        let HostZones { max_open, max_open_per_thread: own_max, .. } = user.spec;
        if max_open == 0 || self.open.iter().any(|&(open, _)| open == zone) {
            return true;
        }
        let opened = self.open.iter().filter(|&&(_, thread)| thread == user.thread).count();
        if self.open.len() >= max_open as usize || (own_max > 0 && opened >= own_max as usize) {
            return false;
        }
        self.open.push((zone, user.thread));
        true
    }

    /// Returns the open zone in the range whose rank corresponds to the relative position of
    /// `offset` in the range.
    fn one_of_open(&self, user: &ZoneUser, offset: u64) -> Option<usize> {
        let count = self.open.len() as u128;
        let place = u128::from(offset - self.start(user.first)) * count;
        let first = (place / u128::from((user.end - user.first) as u64 * self.size)) as usize;
        let turn = self.open[first..].iter().chain(&self.open[..first]);
        turn.map(|&(zone, _)| zone).find(|&zone| user.has(zone))
    }

    /// Returns `true` if a write resets its zone because enough of the range is written.
    fn is_due(&mut self, user: &ZoneUser) -> bool {
        let every = user.spec.reset_every_writes;
        if every == 0 {
            return false;
        }
        let range = &self.written[user.first..user.end];
        let size = range.len() as f64 * self.size as f64;
        let written: u64 = range.iter().map(|&written| written.min(self.capacity)).sum();
        if (written as f64) < size * user.spec.reset_above_pct / 100.0 {
            return false;
        }
        self.writes_since_reset += 1;
        let due = self.writes_since_reset >= every;
        if due {
            self.writes_since_reset = 0;
        }
        due
    }

    /// Moves a trim to a zone with data, and resets the zone.
    fn trim(&mut self, user: &ZoneUser, io: &mut IoRequest) {
        let mut zone = self.of(io.offset);
        if user.positions.is_none() && self.written[zone] == 0 {
            zone = self.next_with(user, zone, 1).unwrap_or(zone);
        }
        io.offset = self.start(zone);
        self.written[zone] = 0;
        self.close(zone);
    }
}

#[cfg(test)]
mod tests;
