//! The event queue: lanes of 16-byte events, each in order of (time, order of scheduling).
//!
//! Events of one kind are scheduled nearly in the order in which they occur: firmware and link
//! serve first come first served, and operations of one kind have similar durations. Each kind
//! therefore has a lane that is sorted by insertion from its end, which rarely moves more than a
//! few entries; the next event is the earliest of the lane heads. The assignment of events to lanes
//! affects only speed: the order is total over all lanes, and the same pushes always give the same
//! pops.

use std::hint::select_unpredictable;

use serde::{Deserialize, Serialize};
use writecliff_base::{Nanos, saved};

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
    /// Work that a mechanism has scheduled is due. Only the mechanism interprets the token.
    Due { mechanism: u8, token: u16 },
    /// The array time of a read on a plane has ended, or the transfer of its data.
    PlaneDone { reader: u16 },
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

/// Number of the first mechanism's events, after the numbers of the other kinds.
const FIRST_MECHANISM: u32 = 7;

impl SsdEvent {
    #[inline]
    fn pack(self) -> u32 {
        match self {
            Self::Sensed { die } => u32::from(die),
            Self::DieDone { die } => 1 << 16 | u32::from(die),
            Self::ReadReady { command } => 2 << 16 | u32::from(command),
            Self::WriteArrived { command } => 3 << 16 | u32::from(command),
            Self::Completed { command } => 4 << 16 | u32::from(command),
            Self::IdleCheck => Packed::IDLE_CHECK.0,
            Self::PlaneDone { reader } => 6 << 16 | u32::from(reader),
            Self::Due { mechanism, token } => {
                (FIRST_MECHANISM + u32::from(mechanism)) << 16 | u32::from(token)
            }
        }
    }
}

/// An event as the queue holds it. The drive asks for mechanisms first, so that the number of an
/// event of its own selects what to do without a detour through [`SsdEvent`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packed(u32);

impl Packed {
    pub(crate) const IDLE_CHECK: Self = Self(5 << 16);

    /// Returns the mechanism whose work is due, and its token; `None` for other events.
    #[inline]
    pub fn due(self) -> Option<(u8, u16)> {
        let mechanism = (self.0 >> 16).checked_sub(FIRST_MECHANISM)?;
        Some((mechanism as u8, self.0 as u16))
    }

    /// Returns an event that is not of a mechanism.
    #[inline]
    pub fn event(self) -> SsdEvent {
        let index = self.0 as u16;
        match self.0 >> 16 {
            0 => SsdEvent::Sensed { die: index },
            1 => SsdEvent::DieDone { die: index },
            2 => SsdEvent::ReadReady { command: index },
            3 => SsdEvent::WriteArrived { command: index },
            4 => SsdEvent::Completed { command: index },
            5 => SsdEvent::IdleCheck,
            _ => SsdEvent::PlaneDone { reader: index },
        }
    }
}

/// `time << 64 | order << 32 | lane << 28 | packed event`: one comparison orders two events, and
/// the least key is all that has to be known of the next one.
type Key = u128;

/// Key of an empty lane: after all events.
const EMPTY: Key = Key::MAX;
const LANE_SHIFT: u32 = 28;
const EVENT_MASK: u32 = (1 << LANE_SHIFT) - 1;
/// At least as many as there are lanes, and a power of two, so that an index needs no bounds check.
const LANES_MAX: usize = 8;
const ROOM_MIN: usize = 64;
/// Events that an insertion moves one by one before it searches for its place.
const NEAR: usize = 4;

#[inline]
fn time_of(key: Key) -> Nanos {
    Nanos((key >> 64) as u64)
}

#[inline]
fn lane_of(key: Key) -> usize {
    (key as u32 >> LANE_SHIFT) as usize % LANES_MAX
}

/// Returns the earlier of two keys, without a branch.
#[inline]
fn first(a: Key, b: Key) -> Key {
    select_unpredictable(b < a, b, a)
}

/// A lane: its events are sorted in `keys[first..=last]`. Neither an insertion nor a removal needs
/// to know whether there are any: [`EMPTY`] is behind them, and before them is a key that is not
/// after any other, the event that was removed last.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "Vec<Key>", into = "Vec<Key>")]
struct SortedLane {
    keys: Vec<Key>,
    // Narrow, so that the compiler knows that a sum with them does not overflow.
    first: u32,
    last: u32,
}

impl Default for SortedLane {
    fn default() -> Self {
        Self::from(Vec::new())
    }
}

impl From<Vec<Key>> for SortedLane {
    /// Creates a lane from events in order of time.
    fn from(mut events: Vec<Key>) -> Self {
        let last = events.len() as u32;
        events.insert(0, 0);
        events.resize(ROOM_MIN.max(2 * events.len() + 4), EMPTY);
        Self { keys: events, first: 1, last }
    }
}

impl From<SortedLane> for Vec<Key> {
    fn from(lane: SortedLane) -> Self {
        lane.events().to_vec()
    }
}

impl SortedLane {
    #[inline]
    fn events(&self) -> &[Key] {
        &self.keys[self.first as usize..=self.last as usize]
    }

    /// Inserts from the end.
    #[expect(clippy::inline_always)]
    #[inline(always)]
    fn insert(&mut self, key: Key) {
        let last = self.last as usize;
        if last + 2 < self.keys.len() && self.keys[last] <= key {
            self.keys[last + 1] = key;
            self.keys[last + 2] = EMPTY;
            self.last += 1;
        } else {
            self.insert_otherwise(key);
        }
    }

    /// Makes room and inserts an event, possibly before other events. These are usually few, but
    /// the end of a resumed operation can precede any number of them.
    #[inline(never)]
    fn insert_otherwise(&mut self, key: Key) {
        if self.keys.len() < self.last as usize + 3 {
            self.make_room();
        }
        self.last += 1;
        let last = self.last as usize;
        self.keys[last + 1] = EMPTY;
        let live = &mut self.keys[self.first as usize..=last];
        let mut hole = live.len() - 1;
        let near = hole.saturating_sub(NEAR);
        while hole > near && live[hole - 1] > key {
            live[hole] = live[hole - 1];
            hole -= 1;
        }
        if hole > 0 && hole == near && live[hole - 1] > key {
            let place = live[..hole].partition_point(|other| *other <= key);
            live.copy_within(place..hole, place + 1);
            hole = place;
        }
        live[hole] = key;
    }

    /// Removes the head; returns the next one.
    #[inline]
    fn advance(&mut self) -> Key {
        debug_assert!(self.first <= self.last, "an empty lane has no head");
        self.first += 1;
        self.keys[self.first as usize]
    }

    #[cold]
    fn make_room(&mut self) {
        self.keys.copy_within(self.first as usize..self.last as usize + 2, 1);
        (self.first, self.last) = (1, self.last + 1 - self.first);
        self.keys[0] = 0;
        // At least half is free then, so this is rare.
        if self.keys.len() < 2 * self.last as usize + 4 {
            self.keys.resize(2 * self.keys.len(), EMPTY);
        }
    }

    fn head(&self) -> Key {
        self.keys[self.first as usize]
    }
}

/// The queue of scheduled events.
#[derive(Clone, Debug)]
pub struct EventQueue {
    /// Earlier head of each pair of lanes.
    earlier: [Key; LANES_MAX / 2],
    lanes: [SortedLane; LANES_MAX],
    scheduled: u32,
}

saved! { EventQueue { scheduled, [lanes] } check find_heads }

impl Default for EventQueue {
    fn default() -> Self {
        let lanes = std::array::from_fn(|_| SortedLane::default());
        Self { earlier: [EMPTY; LANES_MAX / 2], lanes, scheduled: 0 }
    }
}

impl EventQueue {
    // Always inline: with constant lane and event kind, little code remains.
    #[expect(clippy::inline_always)]
    #[inline(always)]
    pub fn push(&mut self, lane: Lane, time: Nanos, event: SsdEvent) {
        let order = self.scheduled;
        self.scheduled = order.wrapping_add(1);
        let low = u64::from(order) << 32 | u64::from((lane as u32) << LANE_SHIFT | event.pack());
        let key = Key::from(time.0) << 64 | Key::from(low);
        self.lanes[lane as usize].insert(key);
        let earlier = &mut self.earlier[lane as usize / 2];
        if key < *earlier {
            *earlier = key;
        }
    }

    /// Removes and returns the next event; `None` if no event is scheduled before `end`.
    #[expect(clippy::inline_always)]
    #[inline(always)]
    pub fn pop_before(&mut self, end: Nanos) -> Option<(Nanos, Packed)> {
        let key = self.earliest();
        let time = time_of(key);
        // An empty queue has the latest of all times, which even the latest end excludes.
        if time >= end {
            return None;
        }
        let lane = lane_of(key);
        let next = self.lanes[lane].advance();
        self.earlier[lane / 2] = first(next, self.lanes[lane ^ 1].head());
        Some((time, Packed(key as u32 & EVENT_MASK)))
    }

    /// The time of the next event; `None` if none is scheduled.
    pub fn next_time(&self) -> Option<Nanos> {
        (!self.is_empty()).then(|| time_of(self.earliest()))
    }

    /// Key of the next event. Branch predictors cannot predict the lane, so the minimum is found by
    /// branch-free selection.
    #[inline]
    fn earliest(&self) -> Key {
        let [a, b, c, ..] = self.earlier;
        first(first(a, b), c)
    }

    /// Updates the earlier head of a lane and its neighbour.
    fn compare_heads(&mut self, lane: usize) {
        self.earlier[lane / 2] = first(self.lanes[lane].head(), self.lanes[lane ^ 1].head());
    }

    /// Cancels an event that was pushed into `lane` for `time`.
    pub fn cancel(&mut self, lane: Lane, time: Nanos, event: SsdEvent) {
        let sorted = &mut self.lanes[lane as usize];
        let before = sorted.events().partition_point(|key| time_of(*key) < time);
        let is_it = |key: &Key| time_of(*key) == time && *key as u32 & EVENT_MASK == event.pack();
        let simultaneous = &sorted.events()[before..];
        let position = simultaneous.iter().position(is_it).expect("the event is scheduled");
        let position = sorted.first as usize + before + position;
        sorted.keys.copy_within(position + 1..sorted.last as usize + 2, position);
        sorted.last -= 1;
        self.compare_heads(lane as usize);
    }

    pub fn len(&self) -> usize {
        self.lanes.iter().map(|lane| lane.events().len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Updates the heads of restored lanes. Returns `false` if an event is out of order or in a
    /// wrong lane.
    fn find_heads(&mut self) -> bool {
        (0..LANES_MAX).step_by(2).for_each(|lane| self.compare_heads(lane));
        self.lanes.iter().enumerate().all(|(number, lane)| {
            let is_own = |&key: &Key| lane_of(key) == number && number < LANES;
            lane.events().is_sorted() && lane.events().iter().all(is_own)
        })
    }

    /// Returns all events, lane by lane.
    pub(crate) fn events(&self) -> impl Iterator<Item = Packed> {
        let keys = self.lanes.iter().flat_map(SortedLane::events);
        keys.map(|&key| Packed(key as u32 & EVENT_MASK))
    }

    /// Returns `true` if the events of dies are exactly `expected`, in any order.
    pub(crate) fn has_die_events(
        &self,
        expected: impl Iterator<Item = (Lane, Nanos, SsdEvent)>,
    ) -> bool {
        let scheduled = self.lanes.iter().flat_map(SortedLane::events);
        let scheduled = scheduled.map(|&key| (lane_of(key), time_of(key), key as u32 & EVENT_MASK));
        let last_die = SsdEvent::DieDone { die: u16::MAX }.pack();
        let mut scheduled: Vec<_> =
            scheduled.filter(|&(_, _, packed)| packed <= last_die).collect();
        let mut expected: Vec<_> =
            expected.map(|(lane, time, event)| (lane as usize, time, event.pack())).collect();
        scheduled.sort_unstable();
        expected.sort_unstable();
        scheduled == expected
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

    fn unpacked(packed: Packed) -> SsdEvent {
        let due = packed.due().map(|(mechanism, token)| SsdEvent::Due { mechanism, token });
        due.unwrap_or_else(|| packed.event())
    }

    fn pop(queue: &mut EventQueue, limit: Nanos) -> Option<(Nanos, SsdEvent)> {
        queue
            .pop_before(Nanos(limit.0.saturating_add(1)))
            .map(|(time, packed)| (time, unpacked(packed)))
    }

    #[test]
    fn events_survive_packing() {
        let events = [
            SsdEvent::Sensed { die: 511 },
            SsdEvent::DieDone { die: 4095 },
            SsdEvent::ReadReady { command: 65_535 },
            SsdEvent::WriteArrived { command: 1 },
            SsdEvent::Completed { command: 0 },
            SsdEvent::IdleCheck,
            SsdEvent::Due { mechanism: 0, token: 3 },
            SsdEvent::Due { mechanism: 255, token: 65_535 },
            SsdEvent::PlaneDone { reader: 65_535 },
        ];
        for event in events {
            assert_eq!(unpacked(Packed(event.pack())), event);
        }
    }

    #[test]
    fn events_wait_for_their_time() {
        let mut queue = EventQueue::default();
        queue.push(Lane::DieLong, Nanos(10), SsdEvent::IdleCheck);
        assert_eq!(pop(&mut queue, Nanos(9)), None);
        assert_eq!(queue.next_time(), Some(Nanos(10)));
        assert_eq!(pop(&mut queue, Nanos(10)), Some((Nanos(10), SsdEvent::IdleCheck)));
        assert_eq!((pop(&mut queue, Nanos::MAX), queue.next_time()), (None, None));
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
                prop_assert_eq!(pop(&mut queue, Nanos::MAX), Some((Nanos(time), event(n))));
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
                    let (time, _) = pop(&mut queue, Nanos::MAX).unwrap();
                    prop_assert!(time.0 >= now);
                    (now, popped) = (time.0, popped + 1);
                }
            }
            prop_assert_eq!(queue.len() + popped, steps.len());
        }
    }
}
