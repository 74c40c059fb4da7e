//! Tests timing against closed-form results.

use crate::common::{
    self, CAPACITY, OVERHEAD, TURN, alone, config, disk, keep, random_blocks, rate,
};
use writecliff_base::{Nanos, Prng};
use writecliff_disk::DiskConfig;
use writecliff_host_interface::Drive;
use writecliff_host_interface::Operation::{Flush, Read, Trim, Write};

/// Returns sequential reads of `length` bytes, starting at `start`.
fn sequence(
    start: u64,
    length: u32,
) -> impl FnMut(usize) -> (writecliff_host_interface::Operation, u64, u32) {
    move |index| (Read, start + index as u64 * u64::from(length), length)
}

/// Returns the sustained transfer rate at a sector.
fn media_rate(config: &DiskConfig, sector: u64) -> f64 {
    let (layout, _) = config.mechanics.geometry(config.user_capacity).unwrap();
    layout.rate(sector)
}

/// Returns the mean seek time between uniformly distributed sectors, by sampling the layout.
fn mean_seek_ns() -> f64 {
    let config = config(&[]);
    let (layout, curve) = config.mechanics.geometry(config.user_capacity).unwrap();
    let mut random = Prng::new(3);
    let mut draw = || layout.cylinder(layout.track(random.below(CAPACITY / 512)));
    let pairs = 2_000_000;
    let total: u64 = (0..pairs).map(|_| curve.time(draw().abs_diff(draw())).0).sum();
    total as f64 / f64::from(pairs)
}

#[test]
fn a_random_access_takes_seek_half_a_turn_transfer_and_overhead() {
    let half_turn = TURN.0 as f64 / 2.0;
    for (operation, settle) in [(Read, 0.0), (Write, 5e5)] {
        let mut disk = disk(&[]);
        let mut next = random_blocks(11, operation);
        let count = 20_000;
        let total: u64 = (0..count)
            .map(|index| {
                let (operation, offset, length) = next(index);
                alone(&mut disk, operation, offset, length).0
            })
            .sum();
        let transfer = 4096.0 / 75e6 * 1e9;
        let expected = mean_seek_ns() + settle + half_turn + transfer + OVERHEAD.0 as f64;
        let mean = total as f64 / count as f64;
        assert!((mean / expected - 1.0).abs() < 0.01, "{operation:?}: {mean} against {expected}");
    }
}

#[test]
fn sequential_reads_reach_the_rate_of_their_zone() {
    for (start, expected) in [(0, 100e6), ((CAPACITY - 1_000_000_000) / 512 * 512, 50e6)] {
        for (depth, length) in [(1, 1 << 20), (4, 1 << 20), (32, 1 << 16)] {
            let mut disk = disk(&[]);
            let zone = media_rate(disk.config(), start / 512);
            assert!((zone / expected - 1.0).abs() < 0.002, "{zone}");
            let done = keep(&mut disk, depth, 800, sequence(start, length));
            let measured = rate(&done) * f64::from(length);
            assert!((measured / zone - 1.0).abs() < 0.02, "QD {depth}: {measured} against {zone}");
        }
    }
}

#[test]
fn small_sequential_reads_are_served_by_read_ahead() {
    // A fast host waits for the platters; a slow host finds all data in the cache.
    let mut quick = disk(&[]);
    let measured = rate(&keep(&mut quick, 1, 20_000, sequence(0, 4096))) * 4096.0;
    let zone = media_rate(quick.config(), 0);
    assert!((measured / zone - 1.0).abs() < 0.02, "{measured} against {zone}");

    let mut slow = disk(&[("command_time = \"10 us\"", "command_time = \"200 us\"")]);
    let done = keep(&mut slow, 1, 20_000, sequence(0, 4096));
    let counters = slow.counters();
    assert!(counters.host.cache_hits > 19_900, "{counters:?}");
    assert_eq!(counters.host.read_bytes, 20_000 * 4096);
    let each = 1e9 / rate(&done);
    assert!((each - 190_000.0 - OVERHEAD.0 as f64).abs() < 1000.0, "{each}");
}

#[test]
fn sequential_writes_stream_if_the_next_one_arrives_in_time() {
    let writes = |index: usize| (Write, index as u64 * 262_144, 262_144);
    let zone = media_rate(&config(&[]), 0);
    let rate_at = |depth: usize, changes: &[(&str, &str)]| {
        rate(&keep(&mut disk(changes), depth, 2000, writes)) * 262_144.0
    };
    assert!((rate_at(4, &[]) / zone - 1.0).abs() < 0.02);
    let cached = rate_at(1, &[("write_cache = false", "write_cache = true")]);
    assert!((cached / zone - 1.0).abs() < 0.05, "{cached}");
    // At queue depth 1, every write has just missed its first sector, so transferring a quarter of
    // a track takes a whole number of revolutions.
    let alone = rate_at(1, &[]);
    assert!(alone < 0.35 * zone, "{alone}");
}

#[test]
fn throughput_rises_with_queue_depth() {
    for operation in [Read, Write] {
        let rates: Vec<f64> = [1, 2, 4, 8, 16, 32, 64]
            .into_iter()
            .map(|depth| rate(&keep(&mut disk(&[]), depth, 6000, random_blocks(5, operation))))
            .collect();
        assert!(rates.is_sorted(), "{rates:?}");
        assert!(rates[5] > 2.0 * rates[0], "{rates:?}");
    }
}

#[test]
fn no_command_waits_much_beyond_the_age_limit() {
    let longest = |limit: &str| {
        let mut disk = disk(&[("10 s", limit)]);
        let mut next = random_blocks(5, Read);
        let mut issued = [Nanos::ZERO; 64];
        let mut longest = Nanos::ZERO;
        for index in 0..4096 {
            if index >= 64 {
                let done = disk.step(Nanos::MAX).unwrap();
                longest = longest.max(done.at - issued[done.tag as usize]);
                issued[done.tag as usize] = done.at;
                let (operation, offset, length) = next(index);
                disk.submit(done.at, common::command(operation, offset, length, done.tag));
            } else {
                let (operation, offset, length) = next(index);
                let tag = index as u32;
                disk.submit(Nanos::ZERO, common::command(operation, offset, length, tag));
            }
        }
        longest
    };
    let (free, bound) = (longest("10 s"), longest("900 ms"));
    // Other commands may be nearly as old as the oldest command.
    assert!(bound < Nanos(1_800_000_000) && bound < free, "{bound} and {free}");
}

#[test]
fn a_cached_write_completes_from_memory_until_the_cache_is_full() {
    let cached = [("write_cache = false", "write_cache = true")];
    let mut quick = disk(&cached);
    let time = alone(&mut quick, Write, 1 << 30, 4096);
    assert!(time < Nanos(100_000), "{time}");
    let through = alone(&mut disk(&[]), Write, 1 << 30, 4096);
    assert!(through > Nanos(1_000_000), "{through}");

    let done = keep(&mut disk(&cached), 1, 4000, random_blocks(9, Write));
    let uncached = keep(&mut disk(&[]), 1, 4000, random_blocks(9, Write));
    let gain = rate(&done) / rate(&uncached);
    assert!(gain > 1.5, "choosing among 64 cached writes gains a factor of {gain}");
}

#[test]
fn a_flush_waits_for_cached_writes_and_a_trim_does_not() {
    let mut disk = disk(&[("write_cache = false", "write_cache = true")]);
    assert!(alone(&mut disk, Flush, 0, 0) < Nanos(100_000));
    for index in 0..20 {
        alone(&mut disk, Write, index << 28, 4096);
    }
    assert!(alone(&mut disk, Trim, 0, 4096) < Nanos(100_000));
    assert!(alone(&mut disk, Flush, 0, 0) > Nanos(20_000_000));
    assert!(disk.check_invariants().is_ok());
    // No cached writes remain to be written back.
    assert!(alone(&mut disk, Flush, 0, 0) < Nanos(100_000));
}

#[test]
fn retries_cost_turns_and_recalibrations_their_measurements() {
    let mean = |changes: &[(&str, &str)]| {
        let mut disk = disk(changes);
        let done = keep(&mut disk, 1, 5000, random_blocks(2, Read));
        (1e9 / rate(&done), disk.counters())
    };
    let (plain, _) = mean(&[]);
    let (shaken, counters) = mean(&[("\"0 %\"", "\"10 %\"")]);
    // With at most three retries, an access takes 0.1 + 0.01 + 0.001 additional revolutions on
    // average.
    let expected = 0.111 * TURN.0 as f64;
    assert!(((shaken - plain) / expected - 1.0).abs() < 0.1, "{shaken} {plain}");
    assert!((counters.arm.retries as f64 / 5000.0 - 0.111).abs() < 0.015, "{counters:?}");

    let text = "retries = 3\nrecalibration_interval = \"5 s\"\nrecalibration_radii = 3";
    let (warm, counters) = mean(&[("retries = 3", text)]);
    let seconds = 5000.0 * warm / 1e9;
    assert!((counters.arm.recalibrations as f64 - seconds / 5.0).abs() < 2.0, "{counters:?}");
    // The expected recalibration time covers three seeks over a third of the stroke, and six
    // measurements of one revolution and one head switch each.
    let each = (warm - plain) * 5000.0 / counters.arm.recalibrations as f64;
    assert!((80e6..110e6).contains(&each), "{each}");
}

#[test]
fn recalibrations_in_idle_time_delay_no_command() {
    let text = "retries = 3\nrecalibration_interval = \"5 s\"\nrecalibration_radii = 3";
    let mut disk = disk(&[("retries = 3", text)]);
    disk.idle_until(Nanos::from_secs(1002));
    let time = alone(&mut disk, Read, 1 << 30, 4096);
    assert!(time < Nanos(30_000_000), "{time}");
    assert_eq!(disk.counters().arm.recalibrations, 200);
}
