//! Tests service with a barrier between reads and writes against times computed by hand.

use crate::common::{self, closed_loop, drive, read, write};
use writecliff_base::Nanos;
use writecliff_ssd::{Command, Drive, Ssd};

const BARRIER: (&str, &str) =
    ("latency = \"5 us\"", "latency = \"5 us\"\nservice_order = \"barrier\"");

/// Returns a drive with all slots on flash.
fn filled(changes: &[(&str, &str)]) -> Ssd {
    let mut ssd = drive(changes);
    (0..common::user_slots(&ssd)).for_each(|slot| ssd.fast_forward(&write(slot, 1)));
    ssd.end_fast_forward();
    ssd.quiesce();
    ssd
}

/// Returns the mean I/O time at queue depth 16 with 50 % reads, in runs of `run`.
fn mix(changes: &[(&str, &str)], run: u32) -> f64 {
    let mut ssd = filled(changes);
    let begun = ssd.now();
    let done = closed_loop(&mut ssd, 16, 4000, |n| match n / run % 2 {
        0 => read(u64::from(n) * 37 % 9000, 1),
        _ => write(u64::from(n) * 41 % 9000, 1),
    });
    (done[3999].at - begun).as_secs_f64() / 4000.0
}

#[test]
fn a_change_of_direction_costs_a_latency_that_nothing_covers() {
    // Programs are so short that reads hardly ever wait for a program.
    let quick = [("\"400 us\", \"1200 us\"", "\"9 us\", \"9 us\""), ("3 ms", "100 us")];
    let barrier = [BARRIER, quick[0], quick[1]];
    let (alternating, runs_of_four) = (mix(&barrier, 1), mix(&barrier, 4));
    // A single read takes 81 or 101 us, and a buffered write is decoded in the meantime.
    assert!((41e-6..55e-6).contains(&alternating), "{alternating}");
    assert!(runs_of_four < 0.5 * alternating, "{runs_of_four} in runs of four, {alternating}");
    assert!(mix(&quick, 1) < 0.5 * alternating, "without a barrier they overlap");
}

#[test]
fn one_direction_alone_is_as_fast_as_without() {
    for next in [read as fn(u64, u32) -> Command, write] {
        let time = |changes: &[(&str, &str)]| {
            let mut ssd = filled(changes);
            closed_loop(&mut ssd, 16, 1000, |n| next(u64::from(n) * 37 % 9000, 1))[999].at
        };
        assert_eq!(time(&[BARRIER]), time(&[]));
    }
}

#[test]
fn nothing_passes_the_barrier() {
    let mut ssd = filled(&[BARRIER]);
    let at = ssd.now();
    let commands = [read(0, 1), write(1, 1), read(2, 1), write(3, 1)];
    for (tag, next) in (0..).zip(commands) {
        ssd.submit(at, Command { tag, ..next });
    }
    let done: Vec<_> = (0..4).map(|_| ssd.step(Nanos::MAX).unwrap()).collect();
    assert_eq!(done.iter().map(|c| c.tag).collect::<Vec<_>>(), [0, 1, 2, 3]);
    for (read, write) in [(0, 1), (2, 3)] {
        // The write was decoded earlier and is transferred now: 4 KiB at 500 MB/s, plus 3 us.
        assert_eq!((done[write].at - done[read].at).0, 3_000 + 8_192);
    }
    assert!(ssd.step(Nanos::MAX).is_none());
}
