//! The event queue: a 4-ary heap of 16-byte events in order of (time, order of scheduling).
//!
//! Events are few at a time (a die has at most one, a command at most one), so the heap stays in the
//! first cache level, and four children a node halve its depth. The scheduling order makes the order
//! total: the same pushes give the same pops, always.

use writecliff_base::Nanos;

/// What happens. The number is an index of a die or a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The array time (tR) of the read on a die is over; its data wait for the channel.
    Sensed { die: u16 },
    /// The operation on a die is over. Stale if the die's epoch has moved on (suspension).
    DieDone { die: u16, epoch: u8 },
    /// Firmware has decoded a read.
    ReadReady { command: u16 },
    /// A write's data are in the buffer.
    WriteArrived { command: u16 },
    /// The host sees the completion.
    Completed { command: u16 },
    /// Time to look whether the drive is idle.
    IdleCheck,
}

impl Event {
    #[inline]
    fn pack(self) -> u32 {
        match self {
            Self::Sensed { die } => u32::from(die),
            Self::DieDone { die, epoch } => 1 << 28 | u32::from(epoch) << 16 | u32::from(die),
            Self::ReadReady { command } => 2 << 28 | u32::from(command),
            Self::WriteArrived { command } => 3 << 28 | u32::from(command),
            Self::Completed { command } => 4 << 28 | u32::from(command),
            Self::IdleCheck => 5 << 28,
        }
    }

    #[inline]
    fn unpack(packed: u32) -> Self {
        let index = packed as u16;
        match packed >> 28 {
            0 => Self::Sensed { die: index },
            1 => Self::DieDone { die: index, epoch: (packed >> 16) as u8 },
            2 => Self::ReadReady { command: index },
            3 => Self::WriteArrived { command: index },
            4 => Self::Completed { command: index },
            _ => Self::IdleCheck,
        }
    }
}

/// Events to come.
#[derive(Clone, Debug, Default)]
pub struct EventQueue {
    /// time << 64 | order << 32 | packed event: one comparison orders two events.
    heap: Vec<u128>,
    scheduled: u32,
}

const CHILDREN: usize = 4;

impl EventQueue {
    #[inline]
    pub fn push(&mut self, time: Nanos, event: Event) {
        let order = self.scheduled;
        self.scheduled = order.wrapping_add(1);
        let key = u128::from(time.0) << 64 | u128::from(order) << 32 | u128::from(event.pack());
        let mut hole = self.heap.len();
        self.heap.push(key);
        while hole > 0 {
            let parent = (hole - 1) / CHILDREN;
            if self.heap[parent] <= key {
                break;
            }
            self.heap[hole] = self.heap[parent];
            hole = parent;
        }
        self.heap[hole] = key;
    }

    #[inline]
    pub fn next_time(&self) -> Option<Nanos> {
        self.heap.first().map(|&key| Nanos((key >> 64) as u64))
    }

    #[inline]
    pub fn pop(&mut self) -> Option<(Nanos, Event)> {
        let top = *self.heap.first()?;
        let last = self.heap.pop()?;
        if !self.heap.is_empty() {
            self.sift_down(last);
        }
        Some((Nanos((top >> 64) as u64), Event::unpack(top as u32)))
    }

    #[inline]
    fn sift_down(&mut self, key: u128) {
        let length = self.heap.len();
        let mut hole = 0;
        loop {
            let first = hole * CHILDREN + 1;
            if first >= length {
                break;
            }
            let mut least = first;
            for child in first + 1..(first + CHILDREN).min(length) {
                if self.heap[child] < self.heap[least] {
                    least = child;
                }
            }
            if key <= self.heap[least] {
                break;
            }
            self.heap[hole] = self.heap[least];
            hole = least;
        }
        self.heap[hole] = key;
    }

    pub fn len(&self) -> usize {
        self.heap.len()
    }

    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Forget everything scheduled and start counting anew.
    pub fn clear(&mut self) {
        self.heap.clear();
        self.scheduled = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn events_survive_packing() {
        let events = [
            Event::Sensed { die: 511 },
            Event::DieDone { die: 4095, epoch: 255 },
            Event::ReadReady { command: 65_535 },
            Event::WriteArrived { command: 1 },
            Event::Completed { command: 0 },
            Event::IdleCheck,
        ];
        for event in events {
            assert_eq!(Event::unpack(event.pack()), event);
        }
    }

    proptest! {
        /// Pops are a stable sort of the pushes by time.
        #[test]
        fn pops_in_time_then_scheduling_order(times in prop::collection::vec(0_u64..50, 0..300)) {
            let mut queue = EventQueue::default();
            for (n, &time) in times.iter().enumerate() {
                queue.push(Nanos(time), Event::Completed { command: n as u16 });
            }
            let mut expected: Vec<(u64, usize)> = times.iter().copied().zip(0..).collect();
            expected.sort();
            for (time, n) in expected {
                let popped = queue.pop();
                prop_assert_eq!(popped, Some((Nanos(time), Event::Completed { command: n as u16 })));
            }
            prop_assert!(queue.is_empty());
        }
    }
}
