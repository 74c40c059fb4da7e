//! Compares latencies and rates with theory: the latency of single commands, the bottleneck of each
//! workload, and independence from earlier writes.

use crate::common::{CAPACITY, alone, command, keep, random, rate, scm, sequential};
use writecliff_base::Nanos;
use writecliff_host_interface::Drive;
use writecliff_host_interface::Operation::{Flush, Read, Trim, Write};

/// Link time of 4 KiB at 8,192 MB/s.
const BLOCK: u64 = 500;

#[test]
fn commands_alone_take_the_sum_of_their_parts() {
    let mut scm = scm(&[]);
    // The service time consists of latency, controller time, 8 consecutive accesses to a bank, data
    // transfer and completion.
    let issue = 100 + 50;
    assert_eq!(alone(&mut scm, Read, 0, 4096), Nanos(2000 + issue + 8 * 400 + BLOCK + 100));
    // The service time consists of command and data transfer, latency, controller time, accesses
    // and completion.
    let write = 2000 + BLOCK + 100 + issue + 8 * 600 + 100;
    assert_eq!(alone(&mut scm, Write, 4096, 4096), Nanos(write));
    // A 512-byte command takes one access and 63 ns on the link.
    assert_eq!(alone(&mut scm, Read, 512, 512), Nanos(2000 + issue + 400 + 63 + 100));
    for operation in [Trim, Flush] {
        assert_eq!(alone(&mut scm, operation, 0, 4096), Nanos(2000 + 100 + 100 + 100));
    }
}

#[test]
fn parts_in_several_banks_are_served_at_once() {
    let mut scm = scm(&[]);
    // The accesses to the last of 8 banks are issued after 56 accesses to the other banks.
    let last = 100 + 57 * 50 + 8 * 400;
    let expected = 2000 + last + BLOCK + 100;
    let latency = alone(&mut scm, Read, 0, 32_768);
    assert_eq!(latency, Nanos(expected.max(2000 + 100 + 50 + 8 * 400 + 8 * BLOCK + 100)));
    // Half of the data are in one bank and half in the next.
    let halves = 2000 + (100 + 5 * 50 + 4 * 400) + BLOCK + 100;
    assert_eq!(alone(&mut scm, Read, 2048, 4096), Nanos(halves));
}

#[test]
fn the_slowest_part_limits_the_rate() {
    let many = |changes: &[(&str, &str)], operation, size: u32| {
        let seed = u64::from(size);
        let read_pct = if operation == Read { 100.0 } else { 0.0 };
        rate(&keep(&mut scm(changes), 512, 40_000, random(seed, read_pct, size)))
    };
    let near = |rate: f64, expected: f64| {
        assert!((rate / expected - 1.0).abs() < 0.03, "{rate} instead of {expected}");
    };
    // The controller is the bottleneck: its time per command plus its time for the accesses.
    let link = [("8192 MB/s", "65536 MB/s"), ("command = \"100 ns\"", "command = \"10 ns\"")];
    near(many(&link, Read, 512), 1e9 / 150.0);
    near(many(&link, Read, 4096), 1e9 / 500.0);
    // The banks are the bottleneck: 8 banks write 512 bytes in 600 ns each, or 2 banks read 512
    // bytes in 400 ns each.
    near(many(&link, Write, 4096), 8e9 / (8.0 * 600.0));
    let few = [link[0], link[1], ("banks = 8", "banks = 2")];
    near(many(&few, Read, 4096), 2e9 / (8.0 * 400.0));
    // The link is the bottleneck: it transfers 4 KiB and the command.
    let slow = [("8192 MB/s", "1024 MB/s")];
    near(many(&slow, Read, 4096), 1e9 / 4100.0);
    near(many(&slow, Write, 4096), 1e9 / 4100.0);
    let large = rate(&keep(&mut scm(&slow), 16, 4000, sequential(Read, 131_072)));
    near(large * 131_072.0, 131_072.0 * 1e9 / 128_100.0);
}

#[test]
fn the_past_changes_nothing() {
    let run = |history: &[(f64, u32, usize)]| {
        let mut scm = scm(&[]);
        for &(read_pct, size, count) in history {
            keep(&mut scm, 64, count, random(7, read_pct, size));
        }
        scm.idle_until(Nanos(10_000_000_000));
        let begin = scm.now();
        let done = keep(&mut scm, 32, 20_000, random(3, 30.0, 4096));
        done.iter().map(|completion| (completion.at - begin, completion.tag)).collect::<Vec<_>>()
    };
    let new = run(&[]);
    // Write twice the drive capacity at random, then write the same volume in small pieces.
    let written = (2 * CAPACITY / 65_536) as usize;
    assert_eq!(run(&[(0.0, 65_536, written), (0.0, 512, 100_000)]), new);
    assert_eq!(run(&[(50.0, 4096, 100_000)]), new);
}

/// Returns the longest read latency of a mix with two outstanding commands.
fn longest_read(read_pct: f64) -> Nanos {
    const COUNT: u32 = 20_000;
    let mut scm = scm(&[]);
    let mut next = random(5, read_pct, 4096);
    let mut begun = Vec::new();
    let mut longest = Nanos::ZERO;
    for completed in 0..COUNT {
        while (begun.len() as u32) < (completed + 2).min(COUNT) {
            let tag = begun.len() as u32;
            let (operation, offset, length) = next(begun.len());
            begun.push(scm.now());
            scm.submit(scm.now(), command(operation, offset, length, tag));
        }
        let done = scm.step(Nanos::MAX).unwrap();
        if done.operation == Read {
            longest = longest.max(done.at - begun[done.tag as usize]);
        }
    }
    longest
}

#[test]
fn a_read_of_a_mix_waits_for_no_more_than_the_accesses_before_it() {
    let alone = Nanos(2000 + 150 + 8 * 400 + BLOCK + 100);
    let beside = Nanos(500 + BLOCK + 100); // Controller and link time.
    assert!(longest_read(100.0) <= alone + Nanos(8 * 400) + beside);
    let mixed = longest_read(50.0);
    assert!(mixed > alone + Nanos(4 * 600), "no read waited: {mixed}");
    assert!(mixed <= alone + Nanos(8 * 600) + beside, "{mixed}");
}

#[test]
fn accesses_of_one_place_are_served_in_order() {
    let mut scm = scm(&[]);
    for tag in 0..50 {
        let operation = if tag % 3 == 0 { Read } else { Write };
        scm.submit(scm.now(), command(operation, 8192, 4096, tag));
    }
    // Reads precede the writes because reads need not wait for data. Reads and writes each complete
    // in order.
    let mut last = [None, None];
    for _ in 0..50 {
        let done = scm.step(Nanos::MAX).unwrap();
        let of = &mut last[usize::from(done.operation == Write)];
        assert!(of.is_none_or(|(tag, _)| tag < done.tag), "{} after {of:?}", done.tag);
        if let Some((_, at)) = *of
            && done.operation == Write
        {
            // All commands access one bank, so each command waits for the accesses of the previous
            // command.
            assert!(done.at >= at + Nanos(8 * 600), "{} after {at}", done.at);
        }
        *of = Some((done.tag, done.at));
    }
}

#[test]
fn a_part_of_a_unit_is_read_before_it_is_written() {
    let changes = [("unit = \"512 B\"", "unit = \"4 KiB\"")];
    let mut scm = scm(&changes);
    let whole = alone(&mut scm, Write, 0, 4096);
    let before = scm.counters();
    assert_eq!((before.media.write_bytes, before.media.partial_units), (4096, 0));
    let part = alone(&mut scm, Write, 512, 512);
    assert_eq!(part + Nanos(BLOCK - 63), whole + Nanos(400));
    let after = scm.counters();
    assert_eq!(after.host.write_bytes, 4608);
    assert_eq!((after.media.write_bytes, after.media.read_bytes), (8192, 4096));
    // The range starts in the middle of a unit, covers a whole unit, and ends in the middle of a
    // third unit.
    alone(&mut scm, Write, 2048, 8192);
    let last = scm.counters().media;
    assert_eq!((last.partial_units, last.write_bytes), (3, 8192 + 3 * 4096));
    assert!(!scm.write_cache());
}
