//! Event queue: lanes of 16-byte events, each in order of (time, scheduling order).
//!
//! Events of one type are scheduled nearly in the order in which they occur, because firmware and
//! link serve in arrival order and operations of one type have similar durations. Each type
//! therefore has a lane that is sorted by insertion from its end, which rarely moves more than a
//! few entries. The next event is the earliest of the lane heads. The assignment of events to lanes
//! affects only speed. The order is total over all lanes, so equal pushes give equal pops.

use std::hint::select_unpredictable;

use serde::{Deserialize, Serialize};
use writecliff_base::{Nanos, saved};

/// Events. Event whose number is the index of a die or a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "fields are numbers of dies, planes, commands and mechanisms")]
pub(crate) enum SsdEvent {
    /// The array time (tR) of a die's read has ended; its data wait for the channel.
    Sensed { die: u16 },
    /// An operation on a die, its bus transfer, or a suspension has ended.
    DieDone { die: u16 },
    /// Firmware has decoded a read.
    ReadReady { command: u16 },
    /// Write data are in the buffer.
    WriteArrived { command: u16 },
    /// The host receives a completion.
    Completed { command: u16 },
    /// Time to check whether the drive is idle.
    IdleCheck,
    /// Work scheduled by a mechanism is due. Only the mechanism interprets the token.
    Due { mechanism: u8, token: u16 },
    /// The array time of a plane's read, or the transfer of its data, has ended.
    PlaneDone { reader: u16 },
}

/// Groups of events with similar delays between scheduling and occurrence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub(crate) enum Lane {
    /// `ReadReady` events, after the firmware time.
    Ready,
    /// `WriteArrived` events, after the transfer from the host.
    Arrived,
    /// `Completed` events, after the transfer to the host.
    Completed,
    /// `Sensed` and `PlaneDone` events, after tR.
    Sensed,
    /// Transfers and suspensions, which take microseconds.
    DieShort,
    /// Programs, erases and rare events.
    DieLong,
}

const LANES: usize = 6;

/// Number of the first mechanism's events, after the numbers of the other types.
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

/// Packed representation of an event in the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Packed(u32);

impl Packed {
    pub(crate) const IDLE_CHECK: Self = Self(5 << 16);

    #[inline(always)]
    pub(crate) fn event(self) -> SsdEvent {
        let index = self.0 as u16;
        match self.0 >> 16 {
            0 => SsdEvent::Sensed { die: index },
            1 => SsdEvent::DieDone { die: index },
            2 => SsdEvent::ReadReady { command: index },
            3 => SsdEvent::WriteArrived { command: index },
            4 => SsdEvent::Completed { command: index },
            5 => SsdEvent::IdleCheck,
            6 => SsdEvent::PlaneDone { reader: index },
            kind => SsdEvent::Due { mechanism: (kind - FIRST_MECHANISM) as u8, token: index },
        }
    }
}

/// A time and a lane. `time << 3 | lane`. One 64-bit comparison finds the lane with the next event,
/// unless events of two lanes are simultaneous. In that case, the scheduling order decides.
type When = u64;

/// Time of the next event of an empty lane, which is after all events.
const NEVER: When = When::MAX;
const LANE_BITS: u32 = 3;
/// At least the number of lanes; a power of two, so that an index needs no bounds check.
const LANES_MAX: usize = 1 << LANE_BITS;
/// The end of simulated time, after 73 years.
pub(crate) const END: Nanos = Nanos(NEVER >> LANE_BITS);
const ROOM_MIN: usize = 64;
/// Number of events that an insertion moves one at a time before it searches for the position.
const NEAR: usize = 4;

#[inline]
fn time_of(when: When) -> Nanos {
    Nanos(when >> LANE_BITS)
}

#[inline]
fn lane_of(when: When) -> usize {
    when as usize % LANES_MAX
}

#[inline]
fn are_simultaneous(a: When, b: When) -> bool {
    a ^ b < LANES_MAX as When
}

/// Returns the earlier time without a branch.
#[inline]
fn first(a: When, b: When) -> When {
    select_unpredictable(b < a, b, a)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Scheduled {
    when: When,
    /// Number of events scheduled before this event.
    order: u32,
    event: Packed,
}

/// A scheduled event in saved states: `time << 64 | order << 32 | lane << 28 | event`.
type Key = u128;
const KEY_LANE_SHIFT: u32 = 28;

impl Scheduled {
    const NEVER: Self = Self { when: NEVER, order: 0, event: Packed(0) };

    fn key(self) -> Key {
        let event = (lane_of(self.when) as u32) << KEY_LANE_SHIFT | self.event.0;
        Key::from(time_of(self.when).0) << 64 | Key::from(self.order) << 32 | Key::from(event)
    }

    /// Returns the event that a key represents. An invalid time becomes the end of time.
    fn of(key: Key) -> Self {
        let (time, event) = (((key >> 64) as u64).min(END.0), key as u32);
        let lane = When::from(event >> KEY_LANE_SHIFT) % LANES_MAX as When;
        let when = time << LANE_BITS | lane;
        let event = Packed(event & ((1 << KEY_LANE_SHIFT) - 1));
        Self { when, order: (key >> 32) as u32, event }
    }
}

/// A lane of events, sorted in `events[first..=last]`; simultaneous events are in scheduling order.
/// Neither insertions nor removals need to check whether the lane is empty: [`Scheduled::NEVER`]
/// follows the events; the last removed event, which is not after any other, precedes them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[expect(clippy::unsafe_derive_deserialize, reason = "`From` adds the end of a restored lane")]
#[serde(from = "Vec<Key>", into = "Vec<Key>")]
struct SortedLane {
    events: Vec<Scheduled>,
    // The narrow types let the compiler prove that the sums do not overflow.
    first: u32,
    last: u32,
}

impl Default for SortedLane {
    fn default() -> Self {
        Self::from(Vec::new())
    }
}

impl From<Vec<Key>> for SortedLane {
    /// Creates a lane from events in time order.
    fn from(keys: Vec<Key>) -> Self {
        let last = keys.len() as u32;
        let mut events = vec![Scheduled::NEVER; ROOM_MIN.max(2 * keys.len() + 5)];
        events[0].when = 0;
        for (event, key) in events[1..].iter_mut().zip(keys) {
            *event = Scheduled::of(key);
        }
        Self { events, first: 1, last }
    }
}

impl From<SortedLane> for Vec<Key> {
    fn from(lane: SortedLane) -> Self {
        lane.scheduled().iter().map(|event| event.key()).collect()
    }
}

impl SortedLane {
    #[inline]
    fn scheduled(&self) -> &[Scheduled] {
        &self.events[self.first as usize..=self.last as usize]
    }

    /// Inserts an event that was scheduled after all others at the end, if there is room and the
    /// event is not before any other event. Returns `false` otherwise.
    #[inline(always)]
    fn append(&mut self, event: Scheduled) -> bool {
        let last = self.last as usize;
        let appends = last + 2 < self.events.len() && self.events[last].when <= event.when;
        if appends {
            // The fields are written one by one because the compiler would copy a whole event.
            let place = &mut self.events[last + 1];
            (place.when, place.order, place.event) = (event.when, event.order, event.event);
            self.events[last + 2].when = NEVER;
            self.last += 1;
        }
        appends
    }

    /// Makes room and inserts an event, possibly before other events. Few events usually follow the
    /// inserted event, but the end of a resumed operation can precede any number of events.
    fn insert(&mut self, Scheduled { when, order, event }: Scheduled) {
        if self.events.len() < self.last as usize + 3 {
            self.make_room();
        }
        self.last += 1;
        let last = self.last as usize;
        self.events[last + 1].when = NEVER;
        let live = &mut self.events[self.first as usize..=last];
        let mut hole = live.len() - 1;
        let near = hole.saturating_sub(NEAR);
        for place in (near..hole).rev() {
            if live[place].when <= when {
                break;
            }
            live[place + 1] = live[place];
            hole = place;
        }
        if hole == near && hole > 0 && live[hole - 1].when > when {
            let place = live[..hole].partition_point(|other| other.when <= when);
            live.copy_within(place..hole, place + 1);
            hole = place;
        }
        live[hole] = Scheduled { when, order, event };
    }

    /// Removes the head and returns its event and the time of the new head.
    #[inline]
    fn advance(&mut self) -> (Packed, When) {
        debug_assert!(self.first <= self.last, "an empty lane has no head");
        debug_assert!((self.last as usize) + 1 < self.events.len(), "the lane has no end");
        let head = self.first as usize;
        self.first += 1;
        // SAFETY: `head` is at most `last`, and `NEVER` follows the last event.
        let [head, next] = unsafe { &*self.events.as_ptr().add(head).cast::<[Scheduled; 2]>() };
        (head.event, next.when)
    }

    fn take_back(&mut self) {
        self.first -= 1;
    }

    #[cold]
    fn make_room(&mut self) {
        self.events.copy_within(self.first as usize..self.last as usize + 2, 1);
        (self.first, self.last) = (1, self.last + 1 - self.first);
        self.events[0].when = 0;
        // This case is rare because at least half of the memory is free after each growth.
        if self.events.len() < 2 * self.last as usize + 4 {
            self.events.resize(2 * self.events.len(), Scheduled::NEVER);
        }
    }

    fn head(&self) -> &Scheduled {
        &self.events[self.first as usize]
    }
}

#[derive(Clone, Debug)]
pub(crate) struct EventQueue {
    heads: [When; LANES_MAX],
    /// Time of the earlier head of each pair of lanes.
    earlier: [When; LANES_MAX / 2],
    next: When,
    lanes: [SortedLane; LANES_MAX],
    scheduled: u32,
}

saved! { EventQueue { scheduled, [lanes] } check find_heads }

impl Default for EventQueue {
    fn default() -> Self {
        let lanes = std::array::from_fn(|_| SortedLane::default());
        let (heads, earlier) = ([NEVER; LANES_MAX], [NEVER; LANES_MAX / 2]);
        Self { heads, earlier, next: NEVER, lanes, scheduled: 0 }
    }
}

impl EventQueue {
    // Always inlined because little code remains if lane and event type are constant.
    #[inline(always)]
    pub(crate) fn push(&mut self, lane: Lane, time: Nanos, event: SsdEvent) {
        debug_assert!(time < END, "an event after the end of time");
        let order = self.scheduled;
        self.scheduled = order.wrapping_add(1);
        let when = time.0 << LANE_BITS | lane as When;
        let event = Packed(event.pack());
        if !self.lanes[lane as usize].append(Scheduled { when, order, event }) {
            self.insert(lane, when, order, event);
        }
        let head = &mut self.heads[lane as usize];
        if when < *head {
            *head = when;
            let earlier = &mut self.earlier[lane as usize / 2];
            *earlier = first(*earlier, when);
            self.next = first(self.next, when);
        }
    }

    // Not a lane method, so that the event loop need not hold the address of each lane.
    #[inline(never)]
    fn insert(&mut self, lane: Lane, when: When, order: u32, event: Packed) {
        self.lanes[lane as usize].insert(Scheduled { when, order, event });
    }

    /// Removes and returns the next event; returns `None` if no event is scheduled until `limit`.
    #[inline(always)]
    pub(crate) fn pop_until(&mut self, limit: Nanos) -> Option<(Nanos, Packed)> {
        let when = self.next;
        // No event is ever scheduled at the end of time, but an empty queue reports that time.
        if when >= (limit.0.min(END.0 - 1) + 1) << LANE_BITS {
            return None;
        }
        let mut event = self.remove(when);
        if are_simultaneous(self.next, when) {
            event = self.earliest_with(when);
        }
        Some((time_of(when), event))
    }

    #[inline(always)]
    fn remove(&mut self, when: When) -> Packed {
        let lane = lane_of(when);
        let (event, next) = self.lanes[lane].advance();
        self.set_head(lane, next);
        event
    }

    /// Puts the removed event back, and removes the first scheduled of all events at that time.
    #[inline(never)]
    fn earliest_with(&mut self, removed: When) -> Packed {
        let lane = &mut self.lanes[lane_of(removed)];
        lane.take_back();
        let mut earliest = *lane.head();
        // The order numbers may have wrapped around.
        let age = |event: &Scheduled| self.scheduled.wrapping_sub(event.order);
        for head in self.lanes[..LANES].iter().map(SortedLane::head) {
            if are_simultaneous(head.when, removed) && age(head) > age(&earliest) {
                earliest = *head;
            }
        }
        self.set_head(lane_of(removed), removed);
        self.remove(earliest.when)
    }

    /// Returns the time of the next event; `None` if no event is scheduled.
    pub(crate) fn next_time(&self) -> Option<Nanos> {
        (!self.is_empty()).then(|| time_of(self.next))
    }

    /// Sets the time of a lane's head. The lane of the next event is unpredictable for branch
    /// predictors, so the minimum is found by branch-free selection.
    #[inline(always)]
    fn set_head(&mut self, lane: usize, when: When) {
        self.heads[lane] = when;
        self.earlier[lane / 2] = first(when, self.heads[lane ^ 1]);
        let [a, b, c, ..] = self.earlier;
        self.next = first(first(a, b), c);
    }

    /// Cancels an event that was pushed into `lane` for `time`.
    pub(crate) fn cancel(&mut self, lane: Lane, time: Nanos, event: SsdEvent) {
        let sorted = &mut self.lanes[lane as usize];
        let (when, event) = (time.0 << LANE_BITS | lane as When, event.pack());
        let before = sorted.scheduled().partition_point(|other| other.when < when);
        let mut position = sorted.first as usize + before;
        while sorted.events[position].event.0 != event {
            position += 1;
        }
        assert!(sorted.events[position].when == when, "the event is scheduled");
        sorted.events.copy_within(position + 1..sorted.last as usize + 2, position);
        sorted.last -= 1;
        let head = sorted.head().when;
        self.set_head(lane as usize, head);
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.lanes.iter().map(|lane| lane.scheduled().len()).sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.next == NEVER
    }

    /// Updates the heads of restored lanes. Returns `false` if an event is not in its place.
    fn find_heads(&mut self) -> bool {
        (0..LANES_MAX).for_each(|lane| self.set_head(lane, self.lanes[lane].head().when));
        self.lanes.iter().enumerate().all(|(number, lane)| {
            let is_own = |event: &Scheduled| {
                lane_of(event.when) == number && number < LANES && time_of(event.when) < END
            };
            let events = lane.scheduled();
            events.iter().all(is_own) && events.is_sorted_by_key(|event| event.key())
        })
    }

    pub(crate) fn events(&self) -> impl Iterator<Item = Packed> {
        self.lanes.iter().flat_map(SortedLane::scheduled).map(|scheduled| scheduled.event)
    }

    /// Returns `true` if the events of dies are exactly `dies`, in any order.
    pub(crate) fn has_events(&self, dies: impl Iterator<Item = (Lane, Nanos, SsdEvent)>) -> bool {
        let all = self.lanes.iter().flat_map(SortedLane::scheduled);
        let all = all.map(|event| (lane_of(event.when), time_of(event.when), event.event.0));
        let last_die = SsdEvent::DieDone { die: u16::MAX }.pack();
        let mut scheduled: Vec<_> = all.filter(|&(_, _, packed)| packed <= last_die).collect();
        let mut expected: Vec<_> =
            dies.map(|(lane, time, event)| (lane as usize, time, event.pack())).collect();
        scheduled.sort_unstable();
        expected.sort_unstable();
        scheduled == expected
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [Lane; LANES] =
        [Lane::Ready, Lane::Arrived, Lane::Completed, Lane::Sensed, Lane::DieShort, Lane::DieLong];

    fn pop(queue: &mut EventQueue, limit: Nanos) -> Option<(Nanos, SsdEvent)> {
        queue.pop_until(limit).map(|(time, packed)| (time, packed.event()))
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
            assert_eq!(Packed(event.pack()).event(), event);
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
        /// Tests that pops are a stable sort by time of the events that were pushed and not
        /// cancelled, regardless of their lanes.
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

        /// Tests that interleaved pushes and pops never go back in time and lose no event.
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
