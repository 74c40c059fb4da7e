//! Tests arrivals against their definition: exactly for linear arrivals, and statistically for
//! Poisson arrivals.

use proptest::prelude::*;

use super::*;
use crate::spec::BlockSize;

fn paced(change: impl FnOnce(&mut JobSpec)) -> JobSpec {
    let mut job = JobSpec { ios: Some(1), ..JobSpec::default() };
    change(&mut job);
    job
}

fn arrivals(job: &JobSpec, thread: u32, count: usize) -> Vec<u64> {
    let mut pacing = ThreadPacing::new(job, 1, 0, thread);
    (0..count).map(|_| pacing.next_arrival_ns(Operation::Write, 4096).unwrap()).collect()
}

#[test]
fn linear_arrivals_do_not_drift() {
    // At a third of a microsecond per arrival, the sum is still exact after a million arrivals.
    let job = paced(|job| job.rate_iops = Some(3e6));
    let times = arrivals(&job, 0, 1_000_001);
    assert_eq!(times[..4], [0, 333, 666, 1000]);
    assert_eq!(times[1_000_000], 333_333_333);
}

#[test]
fn threads_take_arrivals_round_robin() {
    let job = paced(|job| (job.rate_iops, job.threads) = (Some(1000.0), 4));
    let mut all: Vec<u64> = (0..4).flat_map(|thread| arrivals(&job, thread, 25)).collect();
    all.sort_unstable();
    let expected: Vec<u64> = (0..100).map(|i| i * 1_000_000).collect();
    assert_eq!(all, expected);
}

#[test]
fn byte_rates_space_arrivals_by_io_size() {
    let job = paced(|job| {
        job.rate_bytes_per_s = Some(1e6);
        job.block_sizes = vec![BlockSize { bytes: 512, weight: 1.0, sequential_pct: 0.0 }];
    });
    let mut pacing = ThreadPacing::new(&job, 1, 0, 0);
    let times: Vec<u64> = [512, 1024, 512, 512]
        .map(|length| pacing.next_arrival_ns(Operation::Write, length).unwrap())
        .to_vec();
    assert_eq!(times, [0, 512_000, 1_536_000, 2_048_000]);
}

/// Returns the arrivals of a thread whose I/Os take no time and whose pauses are exactly as long as
/// requested.
fn arrivals_with_pauses(job: &JobSpec, count: usize) -> Vec<u64> {
    let mut pacing = ThreadPacing::new(job, 1, 0, 0);
    let mut next = || {
        let operation = pacing.next_operation(0).unwrap_or(Operation::Write);
        let arrival = pacing.next_arrival_ns(operation, 4096).unwrap();
        if let Some(pause) = pacing.pause_after_completion(operation, true) {
            pacing.idle_until(arrival + pause);
        }
        arrival
    };
    (0..count).map(|_| next()).collect()
}

#[test]
fn a_rate_catches_up_after_a_pause_unless_it_ignores_think_time() {
    let mut job = paced(|job| {
        (job.rate_iops, job.start_delay_ns) = (Some(1e6), 500);
        (job.think_ns, job.think_after_ios) = (2500, 3);
    });
    let caught_up = [500, 1500, 2500, 5000, 5000, 5500, 8000, 8000, 8500];
    assert_eq!(arrivals_with_pauses(&job, 9), caught_up);
    job.rate_ignores_think = true;
    let moved = [500, 1500, 2500, 5000, 6000, 7000, 9500, 10_500, 11_500];
    assert_eq!(arrivals_with_pauses(&job, 9), moved);
}

#[test]
fn reads_and_writes_have_their_own_schedules() {
    let job = paced(|job| {
        (job.rate_bytes_per_s, job.rate_read_pct) = (Some(10.0 * 4096.0), Some(80.0));
        job.read_pct = 50.0;
    });
    let mut pacing = ThreadPacing::new(&job, 1, 0, 0);
    let mut counts = [0, 0];
    loop {
        let operation = pacing.next_operation(0).unwrap();
        if pacing.next_arrival_ns(operation, 4096).unwrap() >= 10_000_000_000 {
            break;
        }
        counts[operation as usize] += 1;
    }
    assert_eq!(counts, [80, 20]);
    let behind = |_| usize::from(pacing.next_operation(u64::MAX) == Some(Operation::Read));
    let reads: usize = (0..10_000).map(behind).sum();
    assert!((4800..5200).contains(&reads), "the mix decides if both are late: {reads}");
}

#[test]
fn a_closed_loop_pauses_after_every_nth_io() {
    let job = paced(|job| (job.think_ns, job.think_after_ios) = (7000, 3));
    let mut pacing = ThreadPacing::new(&job, 1, 0, 0);
    assert!(!pacing.is_open());
    assert_eq!(pacing.next_arrival_ns(Operation::Write, 4096), None);
    let mut pause = |_| {
        assert_eq!(pacing.pause_after_issue(Operation::Write, true), None);
        pacing.pause_after_completion(Operation::Write, true)
    };
    let pauses: Vec<Option<u64>> = (0..6).map(&mut pause).collect();
    assert_eq!(pauses, [None, None, Some(7000), None, None, Some(7000)]);
    let mut unpaced = ThreadPacing::new(&paced(|_| ()), 1, 0, 0);
    assert_eq!((unpaced.pause_after_issue(Operation::Write, true), unpaced.start_ns), (None, 0));
}

#[test]
fn poisson_gaps_are_exponential() {
    let job = paced(|job| (job.rate_iops, job.arrival) = (Some(10_000.0), Arrival::Poisson));
    let times = arrivals(&job, 0, 200_001);
    let mut gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
    let n = gaps.len() as f64;
    let mean = gaps.iter().sum::<f64>() / n;
    // The standard error of the mean is 100 us / sqrt(n).
    assert!((mean / 1e5 - 1.0).abs() < 4.0 / n.sqrt(), "mean {mean}");
    gaps.sort_unstable_by(f64::total_cmp);
    let distance = |(i, gap): (usize, &f64)| (1.0 - (-gap / 1e5).exp() - i as f64 / n).abs();
    let worst = gaps.iter().enumerate().map(distance).fold(0.0, f64::max);
    assert!(worst < 1.63 / n.sqrt(), "Kolmogorov-Smirnov distance {worst}");
}

#[test]
fn poisson_threads_together_have_the_full_rate() {
    let job = paced(|job| {
        (job.rate_iops, job.arrival, job.threads) = (Some(10_000.0), Arrival::Poisson, 8);
    });
    let until = 10_000_000_000;
    let count: usize = (0..8)
        .map(|thread| arrivals(&job, thread, 20_000).into_iter().filter(|&t| t < until).count())
        .sum();
    // The expected count is 100 000, with a standard deviation of 316.
    assert!((98_700..101_300).contains(&count), "{count}");
    assert_ne!(arrivals(&job, 0, 10), arrivals(&job, 1, 10));
}

proptest! {
    #[test]
    fn every_linear_arrival_is_the_exact_one(
        micro_rate in 1_000_u64..10_000_000_000_000,
        threads in 1_u32..64,
        count in 1_usize..300,
    ) {
        let rate = micro_rate as f64 / 1e6;
        let job = paced(|job| (job.rate_iops, job.threads) = (Some(rate), threads));
        let thread = threads - 1;
        for (i, time) in arrivals(&job, thread, count).into_iter().enumerate() {
            let number = i as u128 * u128::from(threads) + u128::from(thread);
            prop_assert_eq!(u128::from(time), number * NUMERATOR / u128::from(micro_rate));
        }
    }
}

#[test]
fn a_log_s_times_are_kept_and_flushes_have_none() {
    let log = crate::IoLog {
        operations: "rfwr".to_owned(),
        offsets: vec![0; 4],
        lengths: vec![512, 0, 512, 512],
        times_ns: vec![5, 6, 20, 100],
    };
    let job = paced(|job| (job.log, job.start_delay_ns) = (Some(log), 1000));
    // The second pass starts when the last I/O of the first pass is due.
    assert_eq!(arrivals(&job, 0, 5), [1005, 1020, 1100, 1105, 1120]);
}

#[test]
fn a_restarted_schedule_is_that_of_the_start() {
    let job = paced(|job| (job.rate_iops, job.threads) = (Some(1000.0), 4));
    let mut pacing = ThreadPacing::new(&job, 1, 0, 3);
    for _ in 0..5 {
        pacing.next_arrival_ns(Operation::Write, 4096);
    }
    pacing.restart(1_000_000_000);
    let next = [(); 3].map(|()| pacing.next_arrival_ns(Operation::Write, 4096).unwrap());
    assert_eq!(next, [1_003_000_000, 1_007_000_000, 1_011_000_000]);
}
