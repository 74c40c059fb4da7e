//! Tests retention at a temperature, read disturb and refresh against closed forms.

use crate::common::{self, assert_section_refused, closed_loop, precondition, read, user_slots};
use writecliff_base::{Nanos, Prng};
use writecliff_flash::acceleration::acceleration;
use writecliff_flash::errors::{BitErrors, Code};
use writecliff_ssd::mechanisms::cell_care::CellCareCounters;
use writecliff_ssd::{Drive, Ssd};

const DAY: u64 = 86_400_000_000_000;
const ERRORS: BitErrors = BitErrors {
    fresh: 1e-3,
    at_rated: 1e-3,
    wear_exponent: 1.0,
    retention_factor: 4.0,
    retention_time: Nanos(90 * DAY),
};

fn drive(keys: &str) -> Ssd {
    let section = format!(
        "[ecc]\nrber = 1e-3\nrber_at_rated = 1e-3\nretention_factor = 4\ncodeword = \"1 KiB\"\n\
         correctable = 40\nretry_time = \"60 us\"\nretry_gain = 1\nretries_max = 0\n\
         [cell_care]\n{keys}\n[link]"
    );
    let mut ssd = common::drive(&[("[link]", &section)]);
    precondition(&mut ssd, 1);
    ssd
}

fn after(ssd: &mut Ssd, days: u64) -> CellCareCounters {
    let until = ssd.now() + Nanos(days * DAY);
    ssd.idle_until(until);
    ssd.counters().cell_care.unwrap()
}

fn close(got: f64, expected: f64, tolerance: f64) {
    assert!((got / expected - 1.0).abs() < tolerance, "{got:e}, expected {expected:e}");
}

#[test]
fn warm_data_age_by_the_arrhenius_factor() {
    for (celsius, days) in [(40.0, 90), (55.0, 30), (25.0, 300)] {
        let mut ssd = drive(&format!("temperature = \"{celsius} C\""));
        let counters = after(&mut ssd, days);
        let aged = acceleration(1.1, celsius, 40.0) * (days * DAY) as f64;
        let expected = ERRORS.rate(0.0, Nanos(aged as u64));
        close(counters.rber_mean, expected, 1e-9);
        let uber = Code { bits: 8192, correctable: 40 }.failure(expected) / 8192.0;
        close(counters.uber, uber, 0.05);
    }
}

#[test]
fn reads_disturb_in_proportion_and_only_their_own_blocks() {
    let mut ssd = drive("read_disturb = 1e-6");
    let before = ssd.counters().cell_care.unwrap();
    let count = 500;
    closed_loop(&mut ssd, 1, count, |_| read(7, 1));
    let after = ssd.counters().cell_care.unwrap();
    // Data ageing adds a few bit errors.
    close(after.rber_max - before.rber_max, f64::from(count) * 1e-6, 1e-2);
    assert!(after.rber_mean - before.rber_mean < 0.2 * f64::from(count) * 1e-6);
}

#[test]
fn refresh_keeps_error_rates_below_its_limit() {
    let aged = |keys: &str| {
        let mut ssd = drive(&format!("temperature = \"55 C\"\n{keys}"));
        let before = ssd.counters();
        let counters = after(&mut ssd, 200);
        ssd.quiesce();
        ssd.ftl().check_invariants().unwrap();
        (counters, ssd.counters().nand_write_bytes - before.nand_write_bytes)
    };
    let (left, none) = aged("");
    let (cared, moved) = aged("refresh_rber = 3.5e-3\nrefresh_interval = \"1 h\"");
    assert!(left.rber_max > 4e-3 && left.refreshed_units == 0, "{left:?}");
    // The unit that the host left open is also refreshed.
    assert!(cared.rber_max <= 3.6e-3, "{cared:?}");
    assert!(cared.refreshed_units > 0 && moved > none);
    assert!(left.uber > 3.0 * cared.uber, "{:e} {:e}", left.uber, cared.uber);
}

#[test]
fn a_drive_in_use_refreshes_what_reads_disturb() {
    let used = |keys: &str| {
        let mut ssd = drive(&format!("read_disturb = 2e-6\n{keys}"));
        let (hot, mut random) = (user_slots(&ssd) / 50, Prng::new(1));
        for _ in 0..200 {
            closed_loop(&mut ssd, 4, 200, |_| read(random.below(hot), 1));
            let later = ssd.now() + Nanos(60_000_000_000);
            ssd.idle_until(later);
        }
        (ssd.counters().ecc.unwrap().uncorrectable_reads, ssd.counters().cell_care.unwrap())
    };
    let (bad, left) = used("");
    let (good, cared) = used("refresh_rber = 2e-3\nrefresh_interval = \"10 s\"");
    assert!(left.rber_max > 3e-3 && cared.rber_max < 2.5e-3, "{left:?} {cared:?}");
    assert!(bad > 50 && good < bad / 10, "{bad} uncorrectable without, {good} with");
}

#[test]
fn a_saved_drive_goes_on_as_it_would_have() {
    let keys = "read_disturb = 1e-6\nrefresh_rber = 2e-3\nrefresh_interval = \"1 h\"";
    let (mut drive_a, mut other) = (drive(keys), drive(keys));
    closed_loop(&mut drive_a, 4, 300, |n| read(u64::from(n % 9), 1));
    after(&mut drive_a, 3);
    let saved = drive_a.save(Vec::new()).unwrap();
    other.restore_from(&mut saved.as_slice()).unwrap();
    for ssd in [&mut drive_a, &mut other] {
        closed_loop(ssd, 4, 300, |n| read(u64::from(n % 9), 1));
        after(ssd, 40);
    }
    assert_eq!(drive_a.counters(), other.counters());
    assert_eq!(drive_a.ftl().digest(), other.ftl().digest());
}

#[test]
fn mistakes_in_the_section_are_refused_at_their_line() {
    assert_section_refused("cell_care", "temperature = \"40 C\"", "cell_care", "[ecc]");
    let ecc = "[ecc]\nrber = 1e-3\nrber_at_rated = 1e-3\ncodeword = \"1 KiB\"\ncorrectable = 40\n\
               retry_time = \"60 us\"\nretries_max = 0";
    for (keys, what) in [
        ("refresh_rber = 1e-3", "refresh_interval"),
        ("refresh_interval = \"1 s\"", "no effect"),
        ("refresh_rber = 1e-3\nrefresh_interval = \"1 ms\"", "1 s or more"),
        ("activation_energy = 9", "activation_energy"),
    ] {
        let text = common::DRIVE.replace("[link]", &format!("{ecc}\n[cell_care]\n{keys}\n[link]"));
        common::assert_refused(&text, "drive.toml", what);
    }
}
