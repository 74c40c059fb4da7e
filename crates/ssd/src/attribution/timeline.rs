//! Resource activities over time, stored as long as a command may need them.

use std::collections::VecDeque;

use writecliff_base::Nanos;
use writecliff_host_interface::Cause;

/// Activities by start time; each activity lasts until the next starts.
#[derive(Clone, Debug, Default)]
pub(super) struct Timeline {
    began: VecDeque<(Nanos, Option<Cause>)>,
}

impl Timeline {
    /// Adds an activity in place of those from `from` on; forgets those ended by `horizon`.
    pub(super) fn push(&mut self, from: Nanos, activity: Option<Cause>, horizon: Nanos) {
        while self.began.back().is_some_and(|&(begun, _)| begun >= from) {
            self.began.pop_back();
        }
        // Programs and erases are not merged: a command may need the start of the last one.
        let is_flow = matches!(activity, None | Some(Cause::OtherReads));
        if is_flow && self.began.back().is_some_and(|&(_, before)| before == activity) {
            return;
        }
        self.began.push_back((from, activity));
        while self.began.get(1).is_some_and(|&(begun, _)| begun <= horizon) {
            self.began.pop_front();
        }
    }

    /// Calls `each` with every activity in a range and its end there; `None`: idle or unknown.
    pub(super) fn walk(&self, from: Nanos, to: Nanos, mut each: impl FnMut(Option<Cause>, Nanos)) {
        let next = self.began.partition_point(|&(begun, _)| begun <= from);
        let mut activity = next.checked_sub(1).and_then(|before| self.began[before].1);
        for &(begun, following) in self.began.range(next..) {
            if begun >= to {
                break;
            }
            each(activity, begun);
            activity = following;
        }
        if to > from {
            each(activity, to);
        }
    }

    /// Returns the start of the activity before `time`.
    pub(super) fn start_of_last(&self, time: Nanos) -> Nanos {
        let next = self.began.partition_point(|&(begun, _)| begun < time);
        next.checked_sub(1).map_or(Nanos::ZERO, |last| self.began[last].0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(timeline: &Timeline, from: u64, until: u64) -> Vec<(Option<Cause>, u64)> {
        let mut parts = Vec::new();
        timeline.walk(Nanos(from), Nanos(until), |what, end| parts.push((what, end.0)));
        parts
    }

    #[test]
    fn a_wait_is_cut_where_the_activity_changes() {
        let mut timeline = Timeline::default();
        for (from, activity) in [(10, Some(Cause::Program)), (20, None), (30, Some(Cause::Erase))] {
            timeline.push(Nanos(from), activity, Nanos::ZERO);
        }
        let all = [(None, 10), (Some(Cause::Program), 20), (None, 30), (Some(Cause::Erase), 40)];
        assert_eq!(parts(&timeline, 5, 40), all);
        assert_eq!(parts(&timeline, 12, 15), [(Some(Cause::Program), 15)]);
        assert_eq!(parts(&timeline, 20, 20), []);
        assert_eq!(timeline.start_of_last(Nanos(30)), Nanos(20));
    }

    #[test]
    fn what_was_announced_for_later_is_replaced() {
        let mut timeline = Timeline::default();
        timeline.push(Nanos(0), Some(Cause::OtherReads), Nanos::ZERO);
        timeline.push(Nanos(10), None, Nanos::ZERO);
        timeline.push(Nanos(10), Some(Cause::OtherReads), Nanos::ZERO);
        assert_eq!(parts(&timeline, 0, 20), [(Some(Cause::OtherReads), 20)]);
    }

    #[test]
    fn what_ended_before_the_horizon_is_forgotten() {
        let mut timeline = Timeline::default();
        for from in 0..100 {
            timeline.push(Nanos(from), Some(Cause::Program), Nanos(90));
        }
        assert_eq!(timeline.began.len(), 10);
        assert_eq!(parts(&timeline, 90, 91), [(Some(Cause::Program), 91)]);
    }
}
