//! Tests endurance throttling.

use crate::common::{self, alone, closed_loop, config, drive, read, user_slots, write};
use writecliff_base::{Nanos, Prng};
use writecliff_ssd::mechanisms::endurance::Endurance;
use writecliff_ssd::mechanisms::endurance::ThrottleTime;
use writecliff_ssd::{Drive, Ssd};

/// Rated bytes of the test drive: 64 MiB of flash that may be erased 1000 times.
const RATED: f64 = 64.0 * 1_048_576.0 * 1000.0;

fn planned(keys: &str) -> Ssd {
    drive(&[("[link]", &format!("[endurance]\n{keys}\n[link]"))])
}

#[test]
fn writes_beyond_the_reserve_go_on_at_the_rate_of_the_plan() {
    // 67.1 GB in 10,000 s is a rate of 6.7 MB/s, and the reserve is 16 MiB.
    let mut ssd = planned("life = \"10000 s\"\nreserve = \"0.025 %\"");
    let (user, mut random) = (user_slots(&ssd), Prng::new(1));
    let reserve = 0.00025 * RATED;
    let count = 20_000;
    closed_loop(&mut ssd, 16, count, |_| write(random.below(user), 1));
    let expected = (ssd.counters().nand_write_bytes as f64 - reserve) / (RATED / 10_000.0);
    let took = ssd.now().as_secs_f64();
    assert!((took / expected - 1.0).abs() < 0.005, "{took:.2} s, expected {expected:.2}");
    assert!(ssd.counters().throttle_time.unwrap().0.as_secs_f64() > 0.5 * took);
    // Endurance throttling does not delay reads.
    let waits = ssd.now();
    ssd.submit(waits, write(0, 1));
    ssd.submit(waits, read(64, 1));
    let first = ssd.step(Nanos::MAX).unwrap();
    assert_eq!(first.operation, writecliff_ssd::Operation::Read);
    ssd.step(Nanos::MAX).unwrap();
}

#[test]
fn the_gate_opens_when_the_plan_has_caught_up() {
    let plan = config(&[("[link]", "[endurance]\nlife = \"1000 s\"\nreserve = \"10 %\"\n[link]")]);
    let plan = Endurance::of(&plan).unwrap();
    let reserve = (RATED / 10.0) as u64;
    assert_eq!(plan.opens_at(Nanos::ZERO, reserve), None);
    // One thousandth of the rated writes corresponds to one second of the planned life.
    let ahead = reserve + (RATED / 1000.0) as u64;
    let opens = plan.opens_at(Nanos::ZERO, ahead).unwrap();
    assert!(opens.0.abs_diff(1_000_000_000) < 100, "{opens}");
    assert_eq!(plan.opens_at(opens - Nanos(1), ahead), Some(opens), "blocked at t - 1");
    assert_eq!(plan.opens_at(opens, ahead), None, "open at t");
}

#[test]
fn idle_time_restores_credit_and_fast_forward_writes_use_it_up() {
    let mut ssd = planned("life = \"10000 s\"\nreserve = \"0 %\"");
    ssd.idle_until(Nanos::from_secs(100));
    let free = alone(&mut ssd, write(0, 1));
    assert_eq!(ssd.counters().throttle_time, Some(ThrottleTime(Nanos::ZERO)));
    for _ in 0..20 {
        (0..user_slots(&ssd)).for_each(|slot| ssd.fast_forward(&write(slot, 1)));
    }
    ssd.end_fast_forward();
    // 20 fills of 40 MiB correspond to 125 s of the planned life.
    let due = ssd.counters().nand_write_bytes as f64 / (RATED / 10_000.0);
    let waited = alone(&mut ssd, write(0, 1)) as f64 / 1e9;
    assert!((waited - (due - 100.0)).abs() < 0.1, "{waited:.1} s until {due:.1} s");
    assert!(free < 20_000);
}

#[test]
fn without_throttling_the_section_changes_nothing() {
    let off = "[endurance]\nthrottle = false\nlife = \"5 years\"\n[link]";
    assert_eq!(config(&[("[link]", off)]).sections.endurance, None);
}

#[test]
fn errors_name_their_line() {
    let rows = [
        ("life = \"0 s\"", ":40: ", "above zero"),
        ("life = 5", ":40: ", "unit"),
        ("reserve = \"10 %\"", ":39: ", "missing key 'life'"),
        ("life = \"5 years\"\nreserves = \"1 %\"", ":41: ", "reserve"),
    ];
    for (keys, location, what) in rows {
        common::assert_section_refused("endurance", keys, location, what);
    }
}
