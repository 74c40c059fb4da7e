//! Jobs whose I/Os are issued in proportion, as with fio's `flow`.
//!
//! A thread is held while its fraction of the group's I/Os exceeds its fraction of the weights. The
//! I/Os of a group therefore stay close to the weights on any drive. At least one thread of a group
//! can always continue because not all fractions can be too large. A thread that has ended is no
//! longer counted.

use std::collections::BTreeMap;

use writecliff_workload::JobSpec;

/// Weights and I/O counts of a workload's threads; inactive if no job has a weight.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    groups: BTreeMap<u64, Group>,
    /// State of each thread; empty if no job has a weight.
    members: Vec<Option<Member>>,
}

#[derive(Debug, Default)]
struct Group {
    weight: u64,
    ios: u64,
    /// Threads that wait until other threads have issued I/Os.
    held: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    group: u64,
    weight: u64,
    ios: u64,
}

impl Flows {
    /// Creates the state; `threads` yields the job of each thread.
    pub(crate) fn new(jobs: &[JobSpec], threads: impl Iterator<Item = usize>) -> Self {
        let mut flows = Self::default();
        if jobs.iter().all(|job| job.flow_weight == 0) {
            return flows;
        }
        for job in threads.map(|job| &jobs[job]) {
            let member = Member { group: job.flow_group, weight: job.flow_weight, ios: 0 };
            flows.members.push((job.flow_weight > 0).then_some(member));
            if job.flow_weight > 0 {
                flows.groups.entry(job.flow_group).or_default().weight += job.flow_weight;
            }
        }
        flows
    }

    #[inline]
    pub(crate) fn is_used(&self) -> bool {
        !self.members.is_empty()
    }

    /// Returns `true` if the thread must wait until [`Self::released`] returns it.
    #[inline]
    pub(crate) fn holds(&mut self, thread: usize) -> bool {
        self.is_used() && self.holds_member(thread)
    }

    #[cold]
    fn holds_member(&mut self, thread: usize) -> bool {
        let Some(member) = self.members[thread] else { return false };
        let Some(group) = self.groups.get_mut(&member.group) else { return false };
        debug_assert!(group.weight >= member.weight, "a member that has left is held");
        let ahead = group.is_behind(&member);
        if ahead && !group.held.contains(&thread) {
            group.held.push(thread);
        }
        ahead
    }

    /// Counts an I/O of the thread.
    #[inline]
    pub(crate) fn count(&mut self, thread: usize) {
        let Some(Some(member)) = self.members.get_mut(thread) else { return };
        member.ios += 1;
        if let Some(group) = self.groups.get_mut(&member.group) {
            group.ios += 1;
            debug_assert!(group.ios >= member.ios, "a thread has more I/Os than its group");
        }
    }

    /// Excludes the thread from now on because its job has ended.
    pub(crate) fn leave(&mut self, thread: usize) {
        let Some(member) = self.members.get_mut(thread).and_then(Option::take) else { return };
        if let Some(group) = self.groups.get_mut(&member.group) {
            debug_assert!(group.weight >= member.weight && group.ios >= member.ios);
            group.weight -= member.weight;
            group.ios -= member.ios;
            group.held.retain(|held| *held != thread);
        }
    }

    /// Returns a held thread that may continue; threads are released in the order in which they
    /// were held.
    pub(crate) fn released(&mut self) -> Option<usize> {
        let members = &self.members;
        self.groups.values_mut().find_map(|group| {
            let may_go_on =
                |thread: &usize| members[*thread].is_none_or(|member| !group.is_behind(&member));
            let at = group.held.iter().position(may_go_on)?;
            Some(group.held.remove(at))
        })
    }
}

impl Group {
    /// Returns `true` if the group's I/Os are behind the I/Os of `member`.
    fn is_behind(&self, member: &Member) -> bool {
        // The limit is one I/O more than the group has, as in fio, so that the first I/O of a
        // thread is never held.
        let share = u128::from(member.ios) * u128::from(self.weight);
        share > u128::from(member.weight) * u128::from(self.ios + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flows(weights: &[(u64, u64)]) -> Flows {
        let job = |&(flow_group, flow_weight): &(u64, u64)| JobSpec {
            flow_group,
            flow_weight,
            ..JobSpec::default()
        };
        let jobs: Vec<JobSpec> = weights.iter().map(job).collect();
        Flows::new(&jobs, 0..jobs.len())
    }

    /// Returns the I/O count of each thread after `rounds` rounds; in each round, every thread
    /// issues up to 10 I/Os unless it is held.
    fn issued(flows: &mut Flows, threads: usize, rounds: usize) -> Vec<u64> {
        let mut ios = vec![0; threads];
        for thread in (0..rounds).flat_map(|_| 0..threads) {
            for _ in 0..10 {
                if flows.holds(thread) {
                    break;
                }
                flows.count(thread);
                ios[thread] += 1;
            }
        }
        ios
    }

    #[test]
    fn threads_keep_to_their_weights_within_their_group() {
        let mut flows = flows(&[(0, 1), (0, 3), (0, 6), (5, 1), (5, 1), (0, 0)]);
        let ios = issued(&mut flows, 6, 1000);
        let share = |thread: usize| ios[thread] as f64 / ios[2] as f64;
        assert!((share(0) - 1.0 / 6.0).abs() < 0.01 && (share(1) - 0.5).abs() < 0.01, "{ios:?}");
        assert!(ios[3].abs_diff(ios[4]) <= 2 && ios[5] == 10_000, "{ios:?}");
    }

    #[test]
    fn who_is_held_is_released_by_an_io_or_the_end_of_another() {
        let mut flows = flows(&[(0, 1), (0, 1)]);
        flows.count(0);
        flows.count(0);
        flows.count(0);
        assert!(flows.holds(0) && !flows.holds(1));
        assert_eq!(flows.released(), None);
        flows.count(1);
        flows.count(1);
        assert_eq!(flows.released(), Some(0));
        flows.count(0);
        flows.count(0);
        assert!(flows.holds(0));
        flows.leave(1);
        assert_eq!((flows.released(), flows.released()), (Some(0), None));
    }

    #[test]
    fn without_weights_nothing_is_held() {
        let mut flows = flows(&[(0, 0), (0, 0)]);
        flows.count(0);
        assert!(!flows.is_used() && !flows.holds(0));
    }
}
