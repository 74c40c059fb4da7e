//! State of a die and its queues.
//!
//! Host reads have a separate queue and take precedence, but only `reads_in_a_row` times while
//! other work waits. All other operations (GC reads, programs, erases) are served in order, as the
//! flash requires: units of a block in order, and an erase after the reads before it.

use serde::{Deserialize, Serialize};
use writecliff_base::{Nanos, ReclaimUnitId};

use writecliff_host_interface::Cause;

use crate::event::{Lane, SsdEvent};
use crate::fill::{FillId, Fills, NO_FILL};

/// Destination of read data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum ReadFor {
    Host {
        command: u16,
    },
    /// Relocation within the drive.
    Fill {
        fill: FillId,
    },
    /// A mechanism, with the token that it uses to identify the read.
    Mechanism {
        /// Mechanism in the upper 16 bits, token in the lower 16 bits.
        request: u32,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum FlashOperation {
    /// Reads a page on the planes of its read group.
    Read {
        sense: u16,
        slots: u8,
        purpose: ReadFor,
    },
    /// Programs a unit; with `NO_FILL`, programs parity across dies.
    Program {
        fill: FillId,
        /// Page type, which determines the program time.
        page_type: u8,
    },
    Erase {
        unit: ReclaimUnitId,
    },
    /// Internal firmware work that nothing depends on.
    Upkeep {
        nanos: u32,
        suspendable: bool,
    },
}

/// Maximum number of page types; a power of two, so that an index needs no bounds check.
pub(crate) const PAGE_TYPES: usize = 4;

/// Encodes how a read senses: page type in the lower two bits, number of retries above them.
#[inline]
pub(crate) fn sense(page_type: u32, retries: u8) -> u16 {
    debug_assert!((page_type as usize) < PAGE_TYPES, "no page type of the flash");
    debug_assert!(usize::from(retries) < 256 / PAGE_TYPES, "more retries than the bits hold");
    u16::from(page_type as u8 + retries * PAGE_TYPES as u8)
}

/// Returns `true` for a read of the FTL's flash without retries and marks.
#[inline]
pub(crate) const fn is_plain(sense: u16) -> bool {
    (sense as usize) < PAGE_TYPES
}

/// Marks a read of flash other than the FTL's; distinct from all page types and retries. The medium
/// number is in the bits from `PLANE_SHIFT` on.
pub(crate) const SENSE_MEDIUM: u16 = 1 << 8;

/// Marks a host read that no retry corrects, so that its stripe must be read.
pub(crate) const SENSE_FAILING: u16 = 1 << 9;
/// Marks a read of a stripe, for a host command whose data the read rebuilds.
pub(crate) const SENSE_STRIPE: u16 = 1 << 10;
/// Marks a host read of one independent plane; the plane is in the bits from `PLANE_SHIFT` on.
pub(crate) const SENSE_PLANE: u16 = 1 << 12;
pub(crate) const PLANE_SHIFT: u32 = 13;
/// Mask for the page type and retries of a read, without the marks.
pub(crate) const SENSE_MASK: u16 = SENSE_MEDIUM - 1;

/// Number of media besides the FTL's flash: one for its front, the others for mechanisms.
pub(crate) const MEDIA: usize = 1 << (u16::BITS - PLANE_SHIFT);
/// Medium of the FTL's front.
pub(crate) const FRONT_MEDIUM: u8 = 0;

/// Returns the medium of a mechanism.
///
/// # Panics
/// Panics if `mechanism` is too large to have a medium.
pub(crate) const fn medium_of(mechanism: u8) -> u8 {
    let medium = FRONT_MEDIUM + 1 + mechanism;
    assert!((medium as usize) < MEDIA, "only the first mechanisms in the list can own flash");
    medium
}

/// Encodes a read of a medium.
pub(crate) const fn sense_medium(medium: u8) -> u16 {
    debug_assert!((medium as usize) < MEDIA);
    SENSE_MEDIUM | (medium as u16) << PLANE_SHIFT
}

/// Returns the medium that a read encoded by [`sense_medium`] senses.
pub(crate) const fn medium_of_sense(sense: u16) -> usize {
    (sense >> PLANE_SHIFT) as usize
}

/// Number of program types: page types and media, rounded up to a power of two.
pub(crate) const PROGRAM_TYPES: usize = (PAGE_TYPES + MEDIA).next_power_of_two();

/// Encodes a program of a medium.
pub(crate) const fn program_medium(medium: u8) -> u8 {
    debug_assert!((medium as usize) < MEDIA);
    PAGE_TYPES as u8 + medium
}

impl FlashOperation {
    /// Returns internal firmware work with duration `time`, which must be below 2^32 ns (4.3 s).
    pub(crate) fn upkeep(time: Nanos, suspendable: bool) -> Self {
        debug_assert!(u32::try_from(time.0).is_ok());
        Self::Upkeep { nanos: time.0 as u32, suspendable }
    }

    pub(crate) fn is_read(self) -> bool {
        matches!(self, Self::Read { .. })
    }

    /// Returns the latency cause of commands that wait for the operation.
    pub(crate) fn cause(self, fills: &Fills) -> Cause {
        match self {
            Self::Read { purpose: ReadFor::Host { .. } | ReadFor::Mechanism { .. }, .. } => {
                Cause::OtherReads
            }
            Self::Read { .. } => Cause::Collection,
            Self::Program { fill, .. } if fill != NO_FILL && fills.is_moved(fill) => {
                Cause::Collection
            }
            Self::Program { .. } => Cause::Program,
            Self::Erase { .. } => Cause::Erase,
            Self::Upkeep { .. } => Cause::Housekeeping,
        }
    }
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum DieState {
    /// Neither an operation nor a transfer is in progress.
    #[default]
    Idle,
    /// Array time (tR) of a read, which ends with a `Sensed` event.
    Sensing(FlashOperation),
    /// Host reads on some planes of a die whose planes read independently.
    Reading,
    /// The data of a host read are sent until `busy_until`, an event only if work waits for it.
    Sending,
    /// A program, an erase, upkeep, or the transfer of a GC read; ends with a `DieDone` event.
    Busy(FlashOperation),
}

/// Suspension of a program or erase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Suspension {
    /// Time for which the operation continues.
    pub after: Nanos,
    /// Suspend latency: time from the end of `after` until the die can read.
    pub cost: Nanos,
}

impl Suspension {
    /// Returns the time until the die can read.
    pub(crate) fn time(self) -> Nanos {
        self.after + self.cost
    }
}

/// A program or erase suspended for a host read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Suspended {
    pub operation: FlashOperation,
    pub(crate) remaining: Nanos,
}

/// A queue of waiting items. Whenever the queue is full, or empty (which is often), it restarts at
/// the front of its memory. This method takes fewer instructions than a ring buffer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "Vec<T>", into = "Vec<T>")]
pub(crate) struct Queue<T: Copy> {
    items: Vec<T>,
    first: usize,
}

impl<T: Copy> Default for Queue<T> {
    fn default() -> Self {
        Self::from(Vec::new())
    }
}

impl<T: Copy> From<Vec<T>> for Queue<T> {
    fn from(items: Vec<T>) -> Self {
        Self { items, first: 0 }
    }
}

impl<T: Copy> From<Queue<T>> for Vec<T> {
    fn from(queue: Queue<T>) -> Self {
        queue.iter().copied().collect()
    }
}

impl<T: Copy> Queue<T> {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, T> {
        self.items[self.first..].iter()
    }

    /// Returns the item that has waited longest.
    #[inline]
    pub(crate) fn front(&self) -> Option<T> {
        self.items.get(self.first).copied()
    }

    #[inline]
    pub(crate) fn push(&mut self, item: T) {
        if self.items.len() == self.items.capacity() {
            self.make_room();
        }
        self.items.push(item);
    }

    #[cold]
    fn make_room(&mut self) {
        self.items.drain(..self.first);
        self.first = 0;
        // This case is rare because at least half of the memory is free after each growth.
        self.items.reserve(self.items.len().max(4));
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        let item = self.front()?;
        self.remove_front();
        Some(item)
    }

    /// Removes the item that has waited longest; the queue must not be empty.
    #[inline]
    pub(crate) fn remove_front(&mut self) {
        debug_assert!(self.first < self.items.len(), "no item waits");
        self.first += 1;
        self.restart_if_empty();
    }

    /// Removes and returns an item before its turn.
    pub(crate) fn remove(&mut self, position: usize) -> T {
        let item = self.items.remove(self.first + position);
        self.restart_if_empty();
        item
    }

    #[inline]
    fn restart_if_empty(&mut self) {
        if self.first == self.items.len() {
            self.clear();
        }
    }

    #[inline]
    pub(crate) fn clear(&mut self) {
        self.items.clear();
        self.first = 0;
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Die {
    pub(crate) state: DieState,
    pub(crate) busy_until: Nanos,
    pub(crate) reads: Queue<FlashOperation>,
    pub(crate) work: Queue<FlashOperation>,
    pub(crate) suspended: Option<Suspended>,
    /// Number of suspensions of the current operation.
    pub suspends: u32,
    /// Number of consecutive reads served since other work last ran.
    pub reads_in_a_row: u32,
    /// `true` if a `DieDone` event is scheduled for the end of `Sending`.
    pub wake_scheduled: bool,
}

/// Next action of a free die.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    Start(FlashOperation),
    Resume(Suspended),
    Nothing,
}

impl Die {
    /// Returns `true` if a host read is next, by the rule in the module documentation.
    #[inline]
    pub(crate) fn is_read_next(&self, reads_in_a_row_max: u32) -> bool {
        let is_turn = self.reads_in_a_row < reads_in_a_row_max;
        !self.reads.is_empty() && (is_turn || !self.has_other_work())
    }

    #[inline]
    pub(crate) fn next_read(&mut self) -> FlashOperation {
        self.reads_in_a_row += 1;
        self.reads.pop().expect("a read is next")
    }

    /// Removes and returns the next operation other than a host read.
    #[inline]
    pub(crate) fn next_other(&mut self) -> Next {
        self.reads_in_a_row = 0;
        if self.suspended.is_some()
            && let Some(suspended) = self.suspended.take()
        {
            return Next::Resume(suspended);
        }
        self.suspends = 0;
        self.work.pop().map_or(Next::Nothing, Next::Start)
    }

    /// Returns the operations that are in progress, suspended or queued.
    pub(crate) fn operations(&self) -> impl Iterator<Item = &FlashOperation> {
        let current = match &self.state {
            DieState::Sensing(operation) | DieState::Busy(operation) => Some(operation),
            DieState::Idle | DieState::Reading | DieState::Sending => None,
        };
        let suspended = self.suspended.as_ref().map(|suspended| &suspended.operation);
        current.into_iter().chain(suspended).chain(self.reads.iter()).chain(self.work.iter())
    }

    /// Returns `true` if a restored die, without host commands, can be in this state.
    pub(crate) fn is_possible(&self) -> bool {
        let marks = SENSE_FAILING | SENSE_STRIPE | SENSE_PLANE;
        let can_be = |operation: &FlashOperation| match *operation {
            FlashOperation::Read { purpose: ReadFor::Host { .. }, .. } => false,
            FlashOperation::Read { sense, .. } => sense & marks == 0,
            _ => true,
        };
        let can_have = match self.state {
            // The queued operations may have to wait until other dies become inactive.
            DieState::Idle => true,
            DieState::Sensing(operation) => operation.is_read(),
            DieState::Reading => false,
            DieState::Sending => self.wake_scheduled || !self.has_operations(),
            DieState::Busy(operation) => operation.is_read() || self.suspended.is_none(),
        };
        can_have
            && self.reads.iter().all(|operation| operation.is_read())
            && self.suspended.is_none_or(|suspended| !suspended.operation.is_read())
            && self.operations().all(can_be)
    }

    /// Returns the event at `busy_until` and the event's lane, if the state has an event.
    pub(crate) fn scheduled(&self, index: u16) -> Option<(Lane, SsdEvent)> {
        let done = SsdEvent::DieDone { die: index };
        match self.state {
            DieState::Sensing(_) => Some((Lane::Sensed, SsdEvent::Sensed { die: index })),
            DieState::Sending => self.wake_scheduled.then_some((Lane::DieShort, done)),
            DieState::Busy(operation) if operation.is_read() => Some((Lane::DieShort, done)),
            DieState::Busy(_) => Some((Lane::DieLong, done)),
            DieState::Idle | DieState::Reading => None,
        }
    }

    /// Starts sensing, which ends at `until`.
    #[inline]
    pub(crate) fn sense(&mut self, operation: FlashOperation, until: Nanos) {
        debug_assert!(matches!(self.state, DieState::Idle | DieState::Sending));
        debug_assert!(!self.wake_scheduled, "a die with waiting operations takes no shortcut");
        debug_assert!(operation.is_read(), "only reads are sensed");
        self.state = DieState::Sensing(operation);
        self.busy_until = until;
    }

    /// Starts or resumes an operation, or transfers the data of an internal read.
    #[inline]
    pub(crate) fn begin(&mut self, operation: FlashOperation, until: Nanos) {
        debug_assert!(matches!(self.state, DieState::Idle | DieState::Sensing(_)));
        debug_assert!(operation.is_read() || self.suspended.is_none(), "it resumes first");
        self.state = DieState::Busy(operation);
        self.busy_until = until;
    }

    pub(crate) fn read_planes(&mut self) {
        debug_assert!(matches!(self.state, DieState::Idle | DieState::Sending));
        self.state = DieState::Reading;
    }

    /// Transfers the data of a host read. Returns `true` if an operation waits for the end.
    #[inline]
    pub(crate) fn send(&mut self, until: Nanos) -> bool {
        debug_assert!(matches!(self.state, DieState::Sensing(_)));
        self.state = DieState::Sending;
        self.busy_until = until;
        self.wake_scheduled = self.has_operations();
        self.wake_scheduled
    }

    /// Suspends the operation in progress, unless it ends earlier or was already suspended
    /// `suspends_max` times. Returns the time for which the operation's end was scheduled; `None`
    /// if the operation is not suspended.
    pub(crate) fn suspend(
        &mut self,
        now: Nanos,
        suspension: Suspension,
        suspends_max: u32,
    ) -> Option<Nanos> {
        let Suspension { after, cost } = suspension;
        let DieState::Busy(operation) = self.state else { return None };
        let end = self.busy_until;
        let remaining = end.saturating_sub(now + after);
        if remaining <= cost || self.suspends >= suspends_max {
            return None;
        }
        assert!(self.suspended.is_none(), "a die suspends one operation at a time");
        assert!(!operation.is_read(), "reads are not suspended");
        self.suspends += 1;
        self.suspended = Some(Suspended { operation, remaining });
        // `Sending` models the suspend latency: the die is busy, and nothing depends on its end.
        self.state = DieState::Sending;
        self.busy_until = now + suspension.time();
        self.wake_scheduled = true;
        Some(end)
    }

    /// Makes the die idle and returns its previous state.
    #[inline]
    pub(crate) fn end(&mut self) -> DieState {
        self.wake_scheduled = false;
        std::mem::replace(&mut self.state, DieState::Idle)
    }

    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.state == DieState::Idle
    }

    /// Returns `true` if work other than host reads is waiting.
    #[inline]
    pub(crate) fn has_other_work(&self) -> bool {
        self.suspended.is_some() || !self.work.is_empty()
    }

    /// Returns `true` if further work only queues behind an operation that no read may suspend.
    #[inline]
    pub(crate) fn is_undisturbed(&self) -> bool {
        matches!(self.state, DieState::Sensing(_) | DieState::Busy(_)) && self.reads.is_empty()
    }

    #[inline]
    pub(crate) fn has_operations(&self) -> bool {
        !self.reads.is_empty() || self.has_other_work()
    }

    /// Returns `true` if an operation other than a transfer by all planes is in progress.
    pub(crate) fn is_active(&self) -> bool {
        let is_running = match self.state {
            DieState::Sensing(_) | DieState::Reading => true,
            DieState::Busy(operation) => !matches!(operation, FlashOperation::Read { .. }),
            DieState::Idle | DieState::Sending => false,
        };
        is_running || self.suspended.is_some()
    }

    #[inline]
    pub(crate) fn is_quiet(&self, now: Nanos) -> bool {
        let still = match self.state {
            DieState::Idle => true,
            DieState::Sending => self.busy_until <= now,
            _ => false,
        };
        still && !self.has_operations()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(command: u16) -> FlashOperation {
        FlashOperation::Read { sense: 0, slots: 1, purpose: ReadFor::Host { command } }
    }

    fn next(die: &mut Die, reads_in_a_row_max: u32) -> Next {
        let is_read = die.is_read_next(reads_in_a_row_max);
        if is_read { Next::Start(die.next_read()) } else { die.next_other() }
    }

    #[test]
    fn reads_pass_other_work_but_not_for_ever() {
        let mut die = Die::default();
        let program = FlashOperation::Program { fill: 0, page_type: 0 };
        die.work.push(program);
        (0..5).for_each(|n| die.reads.push(read(n)));
        let order: Vec<Next> = (0..6).map(|_| next(&mut die, 2)).collect();
        let expected = [
            Next::Start(read(0)),
            Next::Start(read(1)),
            Next::Start(program),
            Next::Start(read(2)),
            Next::Start(read(3)),
            Next::Start(read(4)),
        ];
        assert_eq!(order, expected);
        assert_eq!(next(&mut die, 2), Next::Nothing);
    }

    #[test]
    fn a_queue_keeps_its_order_while_it_grows_and_shrinks() {
        let (mut queue, mut model) = (Queue::default(), std::collections::VecDeque::new());
        for n in 0..1000_u16 {
            // The test grows, shrinks and sometimes empties the queue.
            if n % 100 < 50 || n % 3 == 0 {
                queue.push(read(n));
                model.push_back(read(n));
            } else {
                assert_eq!(queue.pop(), model.pop_front());
                assert_eq!(queue.pop(), model.pop_front());
            }
            if n % 10 == 0 && model.len() > 2 {
                assert_eq!(Some(queue.remove(2)), model.remove(2));
            }
            assert_eq!(queue.is_empty(), model.is_empty());
            assert!(queue.iter().eq(&model));
        }
    }

    #[test]
    fn a_suspended_operation_comes_before_queued_work() {
        let mut die = Die::default();
        let erase = FlashOperation::Erase { unit: ReclaimUnitId(1) };
        let suspended = Suspended { operation: erase, remaining: Nanos(10) };
        die.suspended = Some(suspended);
        die.work.push(FlashOperation::Program { fill: 0, page_type: 0 });
        die.reads.push(read(0));
        assert_eq!(next(&mut die, 4), Next::Start(read(0)));
        assert_eq!(next(&mut die, 4), Next::Resume(suspended));
    }
}
