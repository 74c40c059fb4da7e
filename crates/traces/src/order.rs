//! Sorts I/Os by time.
//!
//! Traces are written in completion order, or buffered by several processors, so they are nearly in
//! time order. A window corrects small inversions. I/Os that arrive too late for the window are
//! passed on unchanged and counted.

use std::collections::VecDeque;

use crate::record::{Batch, Record};

/// Maximum number of I/Os that wait for earlier I/Os.
const WINDOW: usize = 4096;

#[derive(Debug, Default)]
pub(crate) struct Order {
    /// Waiting I/Os that are already in order, as in most traces.
    ready: Batch,
    /// Waiting I/Os that are not in order.
    waiting: VecDeque<Record>,
    began_ns: Option<i64>,
    last_ns: i64,
    /// Number of I/Os whose time is before an I/O that was already passed on.
    pub(crate) late: u64,
}

impl Order {
    /// Moves the I/Os of `from` into the window, and appends the I/Os that are ready to `to`.
    pub(crate) fn add(&mut self, from: &mut Batch, to: &mut Batch) {
        if from.is_empty() {
            return;
        }
        let last =
            self.waiting.back().map(|last| last.time_ns).or(self.ready.time_ns.last().copied());
        let behind = last.is_none_or(|last| last <= from.time_ns[0]);
        if behind && from.time_ns.is_sorted() {
            while !self.waiting.is_empty() {
                self.pass(to);
            }
            if self.ready.len() >= WINDOW {
                self.pass_ready(to);
            }
            debug_assert!(self.ready.time_ns.last() <= from.time_ns.first(), "not in order");
            self.ready.append(from);
            return;
        }
        self.waiting.extend(self.ready.iter());
        self.ready.clear();
        for record in from.iter() {
            let behind = self.waiting.back().is_none_or(|last| last.time_ns <= record.time_ns);
            if behind {
                self.waiting.push_back(record);
            } else {
                let at = self.waiting.partition_point(|other| other.time_ns <= record.time_ns);
                self.waiting.insert(at, record);
            }
            if self.waiting.len() > WINDOW {
                self.pass(to);
            }
        }
        from.clear();
    }

    pub(crate) fn finish(&mut self, to: &mut Batch) {
        while !self.waiting.is_empty() {
            self.pass(to);
        }
        self.pass_ready(to);
        assert!(self.ready.is_empty() && self.waiting.is_empty(), "I/Os are left at the end");
    }

    /// Sorts the times of the I/Os that are ready and passes the I/Os on.
    fn pass_ready(&mut self, to: &mut Batch) {
        let Some(&first) = self.ready.time_ns.first() else { return };
        let began = *self.began_ns.get_or_insert(first);
        for time in &mut self.ready.time_ns {
            *time = time.saturating_sub(began);
            self.late += u64::from(*time < self.last_ns);
            self.last_ns = self.last_ns.max(*time);
        }
        debug_assert!(self.waiting.is_empty(), "I/Os that wait would come later");
        to.append(&mut self.ready);
    }

    fn pass(&mut self, to: &mut Batch) {
        let Some(mut record) = self.waiting.pop_front() else { return };
        let began = *self.began_ns.get_or_insert(record.time_ns);
        record.time_ns = record.time_ns.saturating_sub(began);
        if record.time_ns < self.last_ns {
            self.late += 1;
        } else {
            self.last_ns = record.time_ns;
        }
        to.push(&record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Operation;

    fn ordered(times: &[i64]) -> (Vec<i64>, u64) {
        let (mut order, mut from, mut to) = (Order::default(), Batch::default(), Batch::default());
        for &time in times {
            from.push(&Record::new(time, Operation::Read, 0, 512));
        }
        order.add(&mut from, &mut to);
        order.finish(&mut to);
        (to.time_ns, order.late)
    }

    #[test]
    fn times_count_from_the_earliest_of_the_first_ones() {
        assert_eq!(ordered(&[10, 30, 5, 20]), (vec![0, 5, 15, 25], 0));
    }

    #[test]
    fn what_comes_later_than_the_window_is_counted() {
        let mut times: Vec<i64> = (0..2 * WINDOW as i64).collect();
        times.push(7);
        let (times_read, late) = ordered(&times);
        assert_eq!((times_read.len(), late), (2 * WINDOW + 1, 1));
        assert_eq!(times_read.iter().filter(|&&time| time == 7).count(), 2);
    }
}
