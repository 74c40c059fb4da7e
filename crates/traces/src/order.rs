//! Sorts I/Os by time.
//!
//! Traces are written in completion order, or buffered by several processors, so they are nearly in
//! time order. A window corrects small inversions. I/Os that arrive too late for the window are
//! passed on unchanged and counted.

use std::collections::VecDeque;

use crate::record::Record;

/// Maximum number of I/Os that wait for earlier I/Os.
const WINDOW: usize = 4096;

#[derive(Debug, Default)]
pub(crate) struct Order {
    /// I/Os that wait for earlier I/Os, in time order.
    waiting: VecDeque<Record>,
    /// `true` if the last batch continued in order, as in most traces.
    sorted: bool,
    began_ns: Option<i64>,
    last_ns: i64,
    /// Number of I/Os whose time is before an I/O that was already passed on.
    pub(crate) late: u64,
}

impl Order {
    /// Moves the I/Os of `from` into the window, and appends the I/Os that are ready to `to`.
    pub(crate) fn add(&mut self, from: &mut Vec<Record>, to: &mut Vec<Record>) {
        let Some(first) = from.first() else { return };
        let follows = self.waiting.back().is_none_or(|last| last.time_ns <= first.time_ns);
        if follows && from.is_sorted_by_key(|record| record.time_ns) {
            if !self.sorted || self.waiting.len() >= WINDOW {
                self.finish(to);
            }
            self.sorted = true;
            self.waiting.extend(from.drain(..));
            return;
        }
        self.sorted = false;
        for record in from.drain(..) {
            let at = match self.waiting.back() {
                Some(last) if last.time_ns > record.time_ns => {
                    self.waiting.partition_point(|other| other.time_ns <= record.time_ns)
                }
                _ => self.waiting.len(),
            };
            self.waiting.insert(at, record);
            if self.waiting.len() > WINDOW {
                self.pass(to);
            }
        }
    }

    pub(crate) fn finish(&mut self, to: &mut Vec<Record>) {
        while !self.waiting.is_empty() {
            self.pass(to);
        }
    }

    fn pass(&mut self, to: &mut Vec<Record>) {
        let Some(mut record) = self.waiting.pop_front() else { return };
        let began = *self.began_ns.get_or_insert(record.time_ns);
        record.time_ns = record.time_ns.saturating_sub(began);
        self.late += u64::from(record.time_ns < self.last_ns);
        self.last_ns = self.last_ns.max(record.time_ns);
        to.push(record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Operation;

    fn ordered(times: &[i64]) -> (Vec<i64>, u64) {
        let (mut order, mut from, mut to) = (Order::default(), Vec::new(), Vec::new());
        for &time in times {
            from.push(Record::new(time, Operation::Read, 0, 512));
        }
        order.add(&mut from, &mut to);
        order.finish(&mut to);
        (to.iter().map(|record: &Record| record.time_ns).collect(), order.late)
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
