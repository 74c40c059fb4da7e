//! The event queue: lanes of 16-byte events, each in order of (time, order of scheduling).
//!
//! Events of one kind are scheduled nearly in the order in which they occur: firmware and link
//! serve first come first served, and operations of one kind have similar durations. Each kind
//! therefore has a lane that is sorted by insertion from its end, which rarely moves more than a
//! few entries; the next event is the earliest of the lane heads. The assignment of events to lanes
//! affects only speed: the order is total over all lanes, and the same pushes always give the same
//! pops.

use std::hint::select_unpredictable;

use writecliff_base::Nanos;
use writecliff_base::codec::CodecError;

use writecliff_base::words::{WordReader, WordWriter, damaged};

/// Events. The number is the index of a die or a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SsdEvent {
    /// The array time (tR) of the read on a die has ended; its data wait for the channel.
    Sensed { die: u16 },
    /// The operation on a die, its bus transfer, or a suspension has ended.
    DieDone { die: u16 },
    /// Firmware has decoded a read.
    ReadReady { command: u16 },
    /// A write's data are in the buffer.
    WriteArrived { command: u16 },
    /// The host receives the completion.
    Completed { command: u16 },
    /// Check whether the drive is idle.
    IdleCheck,
    /// The mapping core admits writes again.
    CoreCaughtUp,
    /// The next media work of the firmware is due.
    MediaWork,
    /// Update the temperature.
    ThermalPeriod,
    /// Endurance throttling admits writes again.
    ThrottleExpired,
}

/// Groups of events with similar delays between scheduling and occurrence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Lane {
    Ready,
    Arrived,
    Completed,
    Sensed,
    /// Transfers and suspensions, which take microseconds.
    DieShort,
    /// Programs, erases and rare events.
    DieLong,
}

const LANES: usize = 6;

impl SsdEvent {
    #[inline]
    fn pack(self) -> u32 {
        match self {
            Self::Sensed { die } => u32::from(die),
            Self::DieDone { die } => 1 << 16 | u32::from(die),
            Self::ReadReady { command } => 2 << 16 | u32::from(command),
            Self::WriteArrived { command } => 3 << 16 | u32::from(command),
            Self::Completed { command } => 4 << 16 | u32::from(command),
            Self::IdleCheck => 5 << 16,
            Self::CoreCaughtUp => 6 << 16,
            Self::MediaWork => 7 << 16,
            Self::ThermalPeriod => 8 << 16,
            Self::ThrottleExpired => 9 << 16,
        }
    }

    #[inline]
    fn unpack(packed: u32) -> Self {
        let index = packed as u16;
        match packed >> 16 {
            0 => Self::Sensed { die: index },
            1 => Self::DieDone { die: index },
            2 => Self::ReadReady { command: index },
            3 => Self::WriteArrived { command: index },
            4 => Self::Completed { command: index },
            6 => Self::CoreCaughtUp,
            7 => Self::MediaWork,
            8 => Self::ThermalPeriod,
            9 => Self::ThrottleExpired,
            _ => Self::IdleCheck,
        }
    }
}

/// `time << 64 | order << 32 | packed event`, so that one comparison orders two events.
type Key = u128;

/// Time of an empty lane: after all events, and distinct for each lane.
#[inline]
const fn never(lane: usize) -> u64 {
    u64::MAX - lane as u64
}

#[inline]
fn time_of(key: Key) -> Nanos {
    Nanos((key >> 64) as u64)
}

/// Inserts `key` into a slice that is sorted except for its last element, which is free.
fn move_up(live: &mut [Key], key: Key) {
    let mut hole = live.len() - 1;
    while hole > 0 && live[hole - 1] > key {
        live[hole] = live[hole - 1];
        hole -= 1;
    }
    live[hole] = key;
}

/// A lane: its events are sorted in `keys[first..end]`.
#[derive(Clone, Debug, Default)]
struct SortedLane {
    keys: Vec<Key>,
    first: usize,
    end: usize,
}

impl SortedLane {
    /// Inserts from the end; returns the time of the head.
    #[expect(clippy::inline_always)]
    #[inline(always)]
    fn insert(&mut self, key: Key) -> u64 {
        if self.end == self.keys.len() {
            self.make_room();
        }
        let live = &mut self.keys[self.first..=self.end];
        self.end += 1;
        match live {
            [only] => *only = key,
            [.., last, new] if *last <= key => *new = key,
            _ => move_up(live, key),
        }
        time_of(live[0]).0
    }

    /// Removes the head; returns the time of the next one.
    #[inline]
    fn advance(&mut self, lane: usize) -> u64 {
        self.first += 1;
        if self.first == self.end {
            (self.first, self.end) = (0, 0);
            return never(lane);
        }
        time_of(self.keys[self.first]).0
    }

    #[cold]
    fn make_room(&mut self) {
        self.keys.copy_within(self.first..self.end, 0);
        self.end -= self.first;
        self.first = 0;
        // At least half is now free, so compaction is rare.
        self.keys.resize(self.keys.len().max(64).max(2 * self.end), 0);
    }

    fn head(&self, lane: usize) -> u64 {
        if self.first == self.end { never(lane) } else { time_of(self.keys[self.first]).0 }
    }
}

/// The queue of scheduled events.
#[derive(Clone, Debug)]
pub struct EventQueue {
    /// Times of the lane heads.
    times: [u64; LANES],
    lanes: [SortedLane; LANES],
    scheduled: u32,
}

impl Default for EventQueue {
    fn default() -> Self {
        let lanes = std::array::from_fn(|_| SortedLane::default());
        Self { times: std::array::from_fn(never), lanes, scheduled: 0 }
    }
}

impl EventQueue {
    // Always inline: with constant lane and event kind, little code remains.
    #[expect(clippy::inline_always)]
    #[inline(always)]
    pub fn push(&mut self, lane: Lane, time: Nanos, event: SsdEvent) {
        let order = self.scheduled;
        self.scheduled = order.wrapping_add(1);
        let key = Key::from(time.0) << 64 | Key::from(order) << 32 | Key::from(event.pack());
        self.times[lane as usize] = self.lanes[lane as usize].insert(key);
    }

    /// The next event, unless it is after `limit`.
    #[inline]
    pub fn pop_until(&mut self, limit: Nanos) -> Option<(Nanos, SsdEvent)> {
        let (time, lane) = self.earliest();
        if time > limit.0 {
            return None;
        }
        let sorted = &mut self.lanes[lane];
        // The queue is empty if the limit lies beyond the times of empty lanes.
        let key = *sorted.keys[..sorted.end].get(sorted.first)?;
        self.times[lane] = sorted.advance(lane);
        Some((Nanos(time), SsdEvent::unpack(key as u32)))
    }

    /// The time of the next event; `None` if none is scheduled.
    pub fn next_time(&self) -> Option<Nanos> {
        (!self.is_empty()).then(|| Nanos(self.earliest().0))
    }

    /// Time and lane of the next event. Branch predictors cannot predict the lane, so the minimum
    /// is found by branch-free selection.
    #[inline]
    fn earliest(&self) -> (u64, usize) {
        let t = &self.times;
        let mut tie = false;
        let mut first = |a: (u64, usize), b: (u64, usize)| {
            tie |= a.0 == b.0;
            let second = b.0 < a.0;
            (select_unpredictable(second, b.0, a.0), select_unpredictable(second, b.1, a.1))
        };
        let ab = first((t[0], 0), (t[1], 1));
        let cd = first((t[2], 2), (t[3], 3));
        let ef = first((t[4], 4), (t[5], 5));
        let abcd = first(ab, cd);
        let winner = first(abcd, ef);
        if tie { self.earliest_of_equals() } else { winner }
    }

    /// The same when times may be equal.
    #[cold]
    fn earliest_of_equals(&self) -> (u64, usize) {
        let head = |lane: usize| {
            self.lanes[lane].keys[..self.lanes[lane].end].get(self.lanes[lane].first).copied()
        };
        let lane = (0..LANES).min_by_key(|&lane| head(lane).unwrap_or(Key::MAX)).unwrap_or(0);
        (self.times[lane], lane)
    }

    /// Cancels an event that was pushed into `lane` for `time`.
    pub fn cancel(&mut self, lane: Lane, time: Nanos, event: SsdEvent) {
        let sorted = &mut self.lanes[lane as usize];
        let live = &mut sorted.keys[sorted.first..sorted.end];
        let is_it = |key: &Key| time_of(*key) == time && *key as u32 == event.pack();
        let position = live.iter().position(is_it).expect("the event is scheduled");
        live.copy_within(position + 1.., position);
        sorted.end -= 1;
        self.times[lane as usize] = sorted.head(lane as usize);
    }

    pub fn len(&self) -> usize {
        self.lanes.iter().map(|lane| lane.end - lane.first).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn save(&self, out: &mut WordWriter) {
        out.put(self.scheduled);
        for lane in &self.lanes {
            out.list(lane.keys[lane.first..lane.end].iter(), |out, key| {
                out.put((key >> 64) as u64);
                out.put(*key as u64);
            });
        }
    }

    pub(crate) fn restore(&mut self, input: &mut WordReader<'_>) -> Result<(), CodecError> {
        self.scheduled = input.narrow()?;
        for (number, lane) in self.lanes.iter_mut().enumerate() {
            let key = |input: &mut WordReader<'_>| {
                Ok(Key::from(input.get()?) << 64 | Key::from(input.get()?))
            };
            lane.keys = input.list(key)?;
            (lane.first, lane.end) = (0, lane.keys.len());
            if !lane.keys.is_sorted() {
                return Err(damaged());
            }
            self.times[number] = lane.head(number);
        }
        Ok(())
    }

    /// Removes all events and resets the order counter.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [Lane; LANES] =
        [Lane::Ready, Lane::Arrived, Lane::Completed, Lane::Sensed, Lane::DieShort, Lane::DieLong];

    #[test]
    fn events_survive_packing() {
        let events = [
            SsdEvent::Sensed { die: 511 },
            SsdEvent::DieDone { die: 4095 },
            SsdEvent::ReadReady { command: 65_535 },
            SsdEvent::WriteArrived { command: 1 },
            SsdEvent::Completed { command: 0 },
            SsdEvent::IdleCheck,
            SsdEvent::CoreCaughtUp,
            SsdEvent::MediaWork,
            SsdEvent::ThermalPeriod,
            SsdEvent::ThrottleExpired,
        ];
        for event in events {
            assert_eq!(SsdEvent::unpack(event.pack()), event);
        }
    }

    #[test]
    fn events_wait_for_their_time() {
        let mut queue = EventQueue::default();
        queue.push(Lane::DieLong, Nanos(10), SsdEvent::IdleCheck);
        assert_eq!(queue.pop_until(Nanos(9)), None);
        assert_eq!(queue.next_time(), Some(Nanos(10)));
        assert_eq!(queue.pop_until(Nanos(10)), Some((Nanos(10), SsdEvent::IdleCheck)));
        assert_eq!((queue.pop_until(Nanos::MAX), queue.next_time()), (None, None));
    }

    proptest! {
        /// Pops are a stable sort by time of the events that were pushed and not cancelled,
        /// whatever their lanes.
        #[test]
        fn pops_in_time_then_scheduling_order(
            pushes in prop::collection::vec((0_u64..50, 0..LANES, 0..4), 0..300),
        ) {
            let mut queue = EventQueue::default();
            let event = |n: usize| SsdEvent::Completed { command: n as u16 };
            for (n, &(time, lane, _)) in pushes.iter().enumerate() {
                queue.push(ALL[lane], Nanos(time), event(n));
            }
            let mut expected = Vec::new();
            for (n, &(time, lane, fate)) in pushes.iter().enumerate() {
                if fate == 0 {
                    queue.cancel(ALL[lane], Nanos(time), event(n));
                } else {
                    expected.push((time, n));
                }
            }
            prop_assert_eq!(queue.len(), expected.len());
            expected.sort_unstable();
            for (time, n) in expected {
                prop_assert_eq!(queue.pop_until(Nanos::MAX), Some((Nanos(time), event(n))));
            }
            prop_assert!(queue.is_empty());
        }

        /// Interleaved pushes and pops never go back in time and lose no event.
        #[test]
        fn lanes_are_reused(steps in prop::collection::vec((0_u64..40, 0..LANES), 1..500)) {
            let mut queue = EventQueue::default();
            let (mut now, mut popped) = (0, 0);
            for (n, &(delay, lane)) in steps.iter().enumerate() {
                queue.push(ALL[lane], Nanos(now + delay), SsdEvent::Sensed { die: n as u16 });
                if n % 3 == 2 {
                    let (time, _) = queue.pop_until(Nanos::MAX).unwrap();
                    prop_assert!(time.0 >= now);
                    (now, popped) = (time.0, popped + 1);
                }
            }
            prop_assert_eq!(queue.len() + popped, steps.len());
        }
    }
}
