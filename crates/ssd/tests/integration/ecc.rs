//! Tests read errors and retries against closed-form results, and at the limits of their
//! parameters.

use crate::common::{self, BUS_SLOT, LINK_SLOT, alone, closed_loop, command, precondition, read};
use crate::common::{user_slots, write};
use writecliff_base::{Lpn, Nanos, Prng};
use writecliff_flash::errors::Code;
use writecliff_ssd::{Drive, Operation, Ssd};

const READ: u64 = 2_000 + 5_000 + 1_000 + 50_000 + BUS_SLOT + 3_000 + LINK_SLOT;
const CODE: Code = Code { bits: 8192, correctable: 72 };

fn drive(keys: &str) -> Ssd {
    let section = format!(
        "[ecc]\n{keys}\ncodeword = \"1 KiB\"\ncorrectable = 72\nretry_time = \"60 us\"\n[link]"
    );
    common::drive(&[("[link]", &section)])
}

/// Returns a drive with these keys, every page on flash and an empty buffer.
fn settled(keys: &str) -> Ssd {
    let mut ssd = drive(keys);
    for slot in 0..user_slots(&ssd) {
        ssd.fast_forward(&write(slot, 1));
    }
    ssd.end_fast_forward();
    alone(&mut ssd, command(Operation::Flush, 0, 0, 0));
    ssd.quiesce();
    ssd
}

/// Returns the probability that a read of one slot is retried at this error rate.
fn chance(rate: f64) -> f64 {
    1.0 - (1.0 - CODE.failure(rate)).powi(4)
}

/// Reads fast pages one at a time and returns the number of reads that took longer than without a
/// retry.
fn retried(ssd: &mut Ssd, count: u32) -> u32 {
    let (rows, mut random) = (user_slots(ssd) / 32, Prng::new(6));
    let slow = |ssd: &mut Ssd, slot| alone(ssd, read(slot, 1)) != READ;
    (0..count).map(|_| u32::from(slow(ssd, random.below(rows) * 32))).sum()
}

#[test]
fn each_retry_takes_its_time_until_the_data_are_correct() {
    // A codeword has 164 bit errors on average, and one twentieth of that number after a retry.
    let rates = "rber = 0.02\nrber_at_rated = 0.02";
    let mut once = settled(&format!("{rates}\nretry_gain = 0.05\nretries_max = 5"));
    assert_eq!(alone(&mut once, read(0, 1)), READ + 60_000);
    // The mean bit error counts are 164, 82 and 41.
    let mut twice = settled(&format!("{rates}\nretries_max = 5"));
    assert_eq!(alone(&mut twice, read(0, 1)), READ + 2 * 60_000);
    assert_eq!(twice.counters().ecc.unwrap().uncorrectable_reads, 0);
    let mut never = settled(&format!("{rates}\nretry_gain = 1\nretries_max = 3"));
    assert_eq!(alone(&mut never, read(0, 1)), READ + 3 * 60_000);
    let c = never.counters().ecc.unwrap();
    assert_eq!((c.reads, c.retried_reads, c.retries, c.uncorrectable_reads), (1, 1, 3, 1));
    let mut good = settled("rber = 1e-4\nrber_at_rated = 1e-4\nretries_max = 5");
    assert_eq!(retried(&mut good, 2_000), 0);
}

#[test]
fn a_die_serves_no_other_read_during_retries() {
    let keys = "rber = 0.02\nrber_at_rated = 0.02\nretry_gain = 0.05\nretries_max = 5";
    let mut ssd = settled(keys);
    let from = ssd.now();
    let done = closed_loop(&mut ssd, 2, 2, |_| read(0, 1));
    assert_eq!((done[0].at - from).0, READ + 60_000);
    // The second read starts when the data of the first read have left the die.
    assert_eq!((done[1].at - done[0].at).0, 1_000 + 50_000 + 60_000 + BUS_SLOT);
}

#[test]
fn retries_are_as_frequent_as_the_code_fails() {
    for rate in [5.5e-3, 7e-3, 8.5e-3] {
        let keys = format!("rber = {rate}\nrber_at_rated = {rate}\nretries_max = 5");
        let (count, share) = (20_000, chance(rate));
        let expected = f64::from(count) * share;
        let got = f64::from(retried(&mut settled(&keys), count));
        let deviation = (expected * (1.0 - share)).sqrt() + 0.02 * expected;
        assert!((got - expected).abs() < 4.0 * deviation, "{rate}: {got}, expected {expected}");
    }
}

#[test]
fn worn_units_are_read_more_often_by_either_clock() {
    let mut ssd = drive("rber = 1e-3\nrber_at_rated = 0.3\nretries_max = 5");
    precondition(&mut ssd, 20);
    alone(&mut ssd, command(Operation::Flush, 0, 0, 0));
    let user = user_slots(&ssd);
    let geometry = ssd.config().geometry.clone();
    let rate = |slot: u64| {
        let unit = geometry.reclaim_unit_of(ssd.ftl().lookup(Lpn(slot as u32)));
        1e-3 + (0.3 - 1e-3) * f64::from(ssd.ftl().wear().of(unit)) / 1000.0
    };
    let share = (0..user).map(|slot| chance(rate(slot))).sum::<f64>() / user as f64;
    assert!((0.02..0.5).contains(&share), "{share}: neither rare nor the rule");
    let (count, mut random) = (30_000, Prng::new(4));
    let before = ssd.counters().ecc.unwrap();
    closed_loop(&mut ssd, 8, count, |_| read(random.below(user), 1));
    let after = ssd.counters().ecc.unwrap();
    let (reads, got) = (after.reads - before.reads, after.retried_reads - before.retried_reads);
    assert!(reads >= u64::from(count) * 99 / 100);
    let got = got as f64 / reads as f64;
    assert!((got / share - 1.0).abs() < 0.08, "{got:.4}, expected {share:.4}");
}

#[test]
fn data_that_are_kept_long_are_read_more_often_until_they_are_written_again() {
    let keys = "rber = 4e-3\nrber_at_rated = 4e-3\nretention_factor = 2\nretries_max = 5\n\
                retention_time = \"90 days\"";
    let mut ssd = settled(keys);
    assert!(retried(&mut ssd, 3_000) < 10);
    ssd.idle_until(ssd.now() + Nanos::from_secs(90 * 86_400));
    let old = f64::from(retried(&mut ssd, 5_000)) / 5_000.0;
    assert!((old / chance(8e-3) - 1.0).abs() < 0.08, "{old}, expected {}", chance(8e-3));
    for slot in 0..user_slots(&ssd) {
        ssd.fast_forward(&write(slot, 1));
    }
    ssd.end_fast_forward();
    alone(&mut ssd, command(Operation::Flush, 0, 0, 0));
    assert!(retried(&mut ssd, 3_000) < 10, "fresh again");
}

#[test]
fn gc_reads_have_the_same_errors() {
    let mut ssd = drive("rber = 8e-3\nrber_at_rated = 8e-3\nretries_max = 5");
    precondition(&mut ssd, 2);
    let (user, mut random) = (user_slots(&ssd), Prng::new(5));
    closed_loop(&mut ssd, 8, 20_000, |_| write(random.below(user), 1));
    let c = ssd.counters().ecc.unwrap();
    assert!(c.reads > 5_000 && c.retried_reads > c.reads / 10, "{c:?}");
}

#[test]
fn errors_name_their_line() {
    let good = "rber = 1e-5\nrber_at_rated = 1e-3\ncodeword = \"1 KiB\"\ncorrectable = 72\n\
                retry_time = \"60 us\"\nretries_max = 8";
    let rows = [
        ("rber_at_rated = 1e-3", "rber_at_rated = 1e-6", ":41: ", "below rber"),
        ("correctable = 72", "corectable = 72", "line 43 has", "did you mean 'correctable'"),
        ("codeword = \"1 KiB\"", "codeword = \"3 KiB\"", ":42: ", "whole number of codewords"),
        ("retries_max = 8", "retries_max = 64", ":45: ", "outside 0 to 63"),
        ("correctable = 72", "correctable = 9000", ":43: ", "outside 0 to 8192"),
        ("retries_max = 8", "retries_max = 8\nretry_gian = 0.5", ":46: ", "retry_gain"),
    ];
    for (from, to, location, what) in rows {
        let keys = good.replace(from, to);
        common::assert_section_refused("ecc", &keys, location, what);
    }
}
