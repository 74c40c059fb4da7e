//! The event queue: lanes of 16-byte events, each in order of (time, order of scheduling).
//!
//! Events of one kind are scheduled nearly in the order in which they happen: firmware and link serve
//! first come first served, and operations of one kind take about as long. So each kind has a lane,
//! sorted by insertion from its end, which rarely moves more than a few entries; the next event is
//! the least of the lanes' heads. Which lane an event is in is a matter of speed only: the order is
//! total over all, and the same pushes give the same pops, always.

use std::hint::select_unpredictable;

use writecliff_base::Nanos;
use writecliff_base::codec::CodecError;

use crate::words::{WordReader, WordWriter, damaged};

/// What happens. The number is an index of a die or a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The array time (tR) of the read on a die is over; its data wait for the channel.
    Sensed { die: u16 },
    /// The operation on a die is over, or its bus transfer, or a suspension.
    DieDone { die: u16 },
    /// Firmware has decoded a read.
    ReadReady { command: u16 },
    /// A write's data are in the buffer.
    WriteArrived { command: u16 },
    /// The host sees the completion.
    Completed { command: u16 },
    /// Time to look whether the drive is idle.
    IdleCheck,
}

/// Events that take about as long from being scheduled to happening.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Lane {
    Ready,
    Arrived,
    Completed,
    Sensed,
    /// Transfers and suspensions: microseconds.
    DieShort,
    /// Programs, erases, and whatever is rare.
    DieLong,
}

const LANES: usize = 6;

impl Event {
    #[inline]
    fn pack(self) -> u32 {
        match self {
            Self::Sensed { die } => u32::from(die),
            Self::DieDone { die } => 1 << 16 | u32::from(die),
            Self::ReadReady { command } => 2 << 16 | u32::from(command),
            Self::WriteArrived { command } => 3 << 16 | u32::from(command),
            Self::Completed { command } => 4 << 16 | u32::from(command),
            Self::IdleCheck => 5 << 16,
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
            _ => Self::IdleCheck,
        }
    }
}

/// time << 64 | order << 32 | packed event: one comparison orders two events.
type Key = u128;

/// The head of an empty lane: after all events.
const NEVER: Key = Key::MAX;

#[inline]
fn time_of(key: Key) -> Nanos {
    Nanos((key >> 64) as u64)
}

/// Events in ascending order in `keys[first..end]`.
#[derive(Clone, Debug, Default)]
struct SortedLane {
    keys: Vec<Key>,
    first: usize,
    end: usize,
}

impl SortedLane {
    /// Insert from the end; returns the head.
    #[inline]
    fn insert(&mut self, key: Key) -> Key {
        if self.end == self.keys.len() {
            self.make_room();
        }
        let live = &mut self.keys[self.first..=self.end];
        let mut hole = live.len() - 1;
        while hole > 0 && live[hole - 1] > key {
            live[hole] = live[hole - 1];
            hole -= 1;
        }
        live[hole] = key;
        self.end += 1;
        live[0]
    }

    /// Remove the head; returns the next one.
    #[inline]
    fn advance(&mut self) -> Key {
        self.first += 1;
        if self.first == self.end {
            (self.first, self.end) = (0, 0);
            return NEVER;
        }
        self.keys[self.first]
    }

    #[cold]
    fn make_room(&mut self) {
        self.keys.copy_within(self.first..self.end, 0);
        self.end -= self.first;
        self.first = 0;
        // At least half is free now, so that making room is rare.
        self.keys.resize(self.keys.len().max(64).max(2 * self.end), NEVER);
    }

    fn head(&self) -> Key {
        if self.first == self.end { NEVER } else { self.keys[self.first] }
    }
}

/// Events to come.
#[derive(Clone, Debug)]
pub struct EventQueue {
    heads: [Key; LANES],
    lanes: [SortedLane; LANES],
    scheduled: u32,
}

impl Default for EventQueue {
    fn default() -> Self {
        let lanes = std::array::from_fn(|_| SortedLane::default());
        Self { heads: [NEVER; LANES], lanes, scheduled: 0 }
    }
}

impl EventQueue {
    #[inline]
    pub fn push(&mut self, lane: Lane, time: Nanos, event: Event) {
        let order = self.scheduled;
        self.scheduled = order.wrapping_add(1);
        let key = Key::from(time.0) << 64 | Key::from(order) << 32 | Key::from(event.pack());
        self.heads[lane as usize] = self.lanes[lane as usize].insert(key);
    }

    /// The next event, unless it is after `limit`.
    #[inline]
    pub fn pop_until(&mut self, limit: Nanos) -> Option<(Nanos, Event)> {
        // Which lane is next is a coin toss that no branch predictor wins: a knock-out by selection.
        let h = &self.heads;
        let less = |a: (Key, usize), b: (Key, usize)| {
            let first = a.0 < b.0;
            (select_unpredictable(first, a.0, b.0), select_unpredictable(first, a.1, b.1))
        };
        let (ab, cd, ef) =
            (less((h[0], 0), (h[1], 1)), less((h[2], 2), (h[3], 3)), less((h[4], 4), (h[5], 5)));
        let (key, lane) = less(less(ab, cd), ef);
        if time_of(key) > limit || key == NEVER {
            return None;
        }
        self.heads[lane] = self.lanes[lane].advance();
        Some((time_of(key), Event::unpack(key as u32)))
    }

    /// Take back an event that was pushed into `lane` for `time`.
    pub fn cancel(&mut self, lane: Lane, time: Nanos, event: Event) {
        let sorted = &mut self.lanes[lane as usize];
        let live = &mut sorted.keys[sorted.first..sorted.end];
        let is_it = |key: &Key| time_of(*key) == time && *key as u32 == event.pack();
        let position = live.iter().position(is_it).expect("an event that is scheduled");
        live.copy_within(position + 1.., position);
        sorted.end -= 1;
        self.heads[lane as usize] = sorted.head();
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
        for (head, lane) in self.heads.iter_mut().zip(&mut self.lanes) {
            let key = |input: &mut WordReader<'_>| {
                Ok(Key::from(input.get()?) << 64 | Key::from(input.get()?))
            };
            lane.keys = input.list(key)?;
            (lane.first, lane.end) = (0, lane.keys.len());
            if !lane.keys.is_sorted() {
                return Err(damaged());
            }
            *head = lane.head();
        }
        Ok(())
    }

    /// Forget everything scheduled and start counting anew.
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
            Event::Sensed { die: 511 },
            Event::DieDone { die: 4095 },
            Event::ReadReady { command: 65_535 },
            Event::WriteArrived { command: 1 },
            Event::Completed { command: 0 },
            Event::IdleCheck,
        ];
        for event in events {
            assert_eq!(Event::unpack(event.pack()), event);
        }
    }

    #[test]
    fn events_wait_for_their_time() {
        let mut queue = EventQueue::default();
        queue.push(Lane::DieLong, Nanos(10), Event::IdleCheck);
        assert_eq!(queue.pop_until(Nanos(9)), None);
        assert_eq!(queue.pop_until(Nanos(10)), Some((Nanos(10), Event::IdleCheck)));
        assert_eq!(queue.pop_until(Nanos::MAX), None);
    }

    proptest! {
        /// Pops are a stable sort of what was pushed and not cancelled, by time, whatever the lanes.
        #[test]
        fn pops_in_time_then_scheduling_order(
            pushes in prop::collection::vec((0_u64..50, 0..LANES, 0..4), 0..300),
        ) {
            let mut queue = EventQueue::default();
            let event = |n: usize| Event::Completed { command: n as u16 };
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

        /// Interleaved pushes and pops never go back in time, and lose nothing.
        #[test]
        fn lanes_are_reused(steps in prop::collection::vec((0_u64..40, 0..LANES), 1..500)) {
            let mut queue = EventQueue::default();
            let (mut now, mut popped) = (0, 0);
            for (n, &(delay, lane)) in steps.iter().enumerate() {
                queue.push(ALL[lane], Nanos(now + delay), Event::Sensed { die: n as u16 });
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
