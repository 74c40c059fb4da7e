//! Tests the batches of known I/Os, and that no I/O is lost.

use proptest::prelude::*;
use writecliff_base::Prng;

use super::*;

const NOTHING: BytesWritten = BytesWritten { host: 0.0, nand: 0.0 };

/// Totals of one operation that stores only its histogram.
fn totals(histogram: &Histogram) -> impl Iterator<Item = Totals<'_>> + Clone {
    std::iter::once(Totals {
        job: 0,
        operation: 0,
        bytes: 512 * histogram.count(),
        ios: histogram.count(),
        moments: *histogram.moments(),
        service: histogram,
        response: None,
    })
}

/// Runs I/Os that complete at the given times with the given latencies.
fn run(ios: &[(u64, u64)], end_ns: u64) -> BatchColumns {
    let mut batches = Batches::new(0, 1, NOTHING);
    let mut histogram = Histogram::new();
    for &(time_ns, latency_ns) in ios {
        let bytes = 512.0 * histogram.count() as f64;
        let written = BytesWritten { host: bytes, nand: 2.0 * bytes };
        batches.close(time_ns, totals(&histogram), written);
        histogram.record(latency_ns);
    }
    let bytes = 512.0 * histogram.count() as f64;
    batches.finish(end_ns, totals(&histogram), BytesWritten { host: bytes, nand: 2.0 * bytes })
}

#[test]
fn a_batch_has_what_completed_in_it() {
    let columns =
        run(&[(10, 100), (10_000_000, 100), (10_000_001, 200), (25_000_000, 100)], 26_000_000);
    assert_eq!(columns.end_ns, [10_000_000, 20_000_000, 26_000_000]);
    assert_eq!(columns.width_ns, [10_000_000, 10_000_000, 6_000_000]);
    assert_eq!(columns.ios, [2, 1, 1]);
    assert_eq!(columns.bytes, [1024, 512, 512]);
    assert_eq!(columns.latency_sum_ns, [200.0, 200.0, 100.0]);
    assert_eq!(columns.slower[0], [0, 1, 0], "slower than the median, which is 100 ns");
    assert_eq!(columns.nand_write_bytes, [2048.0, 1024.0, 1024.0]);
}

#[test]
fn batches_are_joined_when_there_are_too_many() {
    let ios: Vec<(u64, u64)> = (0..1000).map(|i| (10_000_000 * i + 1, 1000 + i)).collect();
    let columns = run(&ios, 10_000_000_000);
    assert_eq!(columns.width_ns.len(), 125);
    assert!(columns.width_ns.iter().all(|&width| width == 80_000_000));
    assert!(columns.ios.iter().all(|&ios| ios == 8));
    // The last 100 of 1000 I/Os, 8 in a batch, are slower by less than a bucket width.
    let slower = &columns.slower[1];
    assert_eq!(slower[..110], [0; 110]);
    assert_eq!(slower[115..], [8; 10]);
}

#[test]
fn silence_has_batches_without_ios() {
    let columns = run(&[(1, 100), (3_600_000_000_001, 100)], 3_600_000_000_002);
    assert!((MOST / 2..=MOST).contains(&columns.ios.len()), "{}", columns.ios.len());
    assert_eq!(columns.ios.iter().sum::<u64>(), 2);
    assert_eq!(columns.width_ns.iter().sum::<u64>(), 3_600_000_000_002);
}

#[test]
fn a_restart_forgets_what_was_before() {
    let mut batches = Batches::new(0, 1, NOTHING);
    let mut histogram = Histogram::new();
    histogram.record(5);
    batches.close(50_000_000, totals(&histogram), NOTHING);
    // Another job's results continue, so only its results after the restart belong to the first
    // batch.
    for (before, mut after) in [Histogram::new(), histogram].map(|of| (of.clone(), of)) {
        batches.restart(50_000_000, totals(&before), NOTHING);
        after.record(7);
        let columns = batches.clone().finish(55_000_000, totals(&after), NOTHING);
        assert_eq!((columns.end_ns, columns.width_ns), (vec![55_000_000], vec![5_000_000]));
        assert_eq!(columns.ios, [1]);
        assert_eq!(columns.latency_sum_ns, [7.0]);
    }
}

#[test]
fn a_wait_has_no_ios_before_and_after_batches_are_joined() {
    let mut ios: Vec<(u64, u64)> = (0..64).map(|i| (10_000_000 * i + 1, 100)).collect();
    ios.push((3_000_000_000, 200));
    let columns = run(&ios, 3_000_000_000);
    let busy: Vec<u64> = columns.ios.iter().copied().filter(|&ios| ios > 0).collect();
    assert_eq!((busy[0], busy.iter().sum::<u64>(), busy.len()), (4, 65, 17));
    assert_eq!(columns.slower[0].iter().sum::<u64>(), 1);
    assert_eq!(columns.slower[0].last(), Some(&1));
}

#[test]
fn a_step_of_many_jobs_has_fewer_batches() {
    let mut batches = Batches::new(0, MANY_CELLS + 1, NOTHING);
    let histogram = Histogram::new();
    let all = || (0..=MANY_CELLS).flat_map(|_| totals(&histogram));
    batches.close(10_000_000_000, all(), NOTHING);
    assert!((MOST / 4..MOST / 2).contains(&batches.marks.len()), "{}", batches.marks.len());
}

proptest! {
    #[test]
    fn nothing_is_lost_or_counted_twice(seed in 0_u64..1000, count in 1_usize..3000) {
        let mut random = Prng::new(seed);
        let (mut now, mut whole) = (0_u64, Histogram::new());
        let ios: Vec<(u64, u64)> = (0..count).map(|_| {
            now += (-10_000_000.0 * (1.0 - random.unit()).ln()) as u64;
            let latency = (-50_000.0 * (1.0 - random.unit()).ln()) as u64;
            whole.record(latency);
            (now, latency)
        }).collect();
        let columns = run(&ios, now);
        prop_assert!(columns.ios.len() <= MOST);
        prop_assert_eq!(columns.ios.iter().sum::<u64>(), count as u64);
        let sum_ns: u128 = columns.latency_sum_ns.iter().map(|&ns| ns as u128).sum();
        prop_assert_eq!(sum_ns, whole.moments().sum);
        prop_assert_eq!(columns.width_ns.iter().sum::<u64>(), now);
        for (share, slower) in SHARES.into_iter().zip(&columns.slower) {
            let limit = whole.bucket_of_share(share, count as u64);
            let beyond = ios.iter().filter(|(_, latency)| bucket_of(*latency) > limit).count();
            prop_assert_eq!(slower.iter().sum::<u64>(), beyond as u64);
        }
    }
}
