//! Tests parity across dies: its costs, the latency of reads from the stripe, and the loss of a
//! die.

use crate::common::{BUS_SLOT, alone, assert_section_refused, drive, read, user_slots, write};
use writecliff_base::{Lpn, Nanos};
use writecliff_ssd::mechanisms::die_parity::DieParityCounters;
use writecliff_ssd::{Drive, Ssd};

const SMALL: (&str, &str) = ("\"40 MiB\"", "\"24 MiB\"");
/// Lost die, one of four.
const LOST: u32 = 0;

fn striped(stripe: u32, more: &str) -> Vec<(String, String)> {
    let section = format!("[die_parity]\nstripe = {stripe}\n{more}[link]");
    vec![(SMALL.0.to_owned(), SMALL.1.to_owned()), ("[link]".to_owned(), section)]
}

fn drive_of(changes: &[(String, String)]) -> Ssd {
    let changes: Vec<_> = changes.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    drive(&changes)
}

/// Returns a drive with stripes of `stripe` dies, filled in order.
fn filled(stripe: u32, more: &str) -> Ssd {
    let mut ssd = drive_of(&striped(stripe, more));
    let user = user_slots(&ssd);
    (0..user).step_by(16).for_each(|slot| ssd.fast_forward(&write(slot, 16)));
    ssd.end_fast_forward();
    ssd
}

fn parity(ssd: &Ssd) -> DieParityCounters {
    ssd.counters().die_parity.expect("the drive has parity")
}

fn die_of(ssd: &Ssd, slot: u64) -> u32 {
    ssd.ftl().geometry().locate(ssd.ftl().lookup(Lpn(slot as u32))).die
}

fn read_latency(ssd: &mut Ssd, slot: u64) -> u64 {
    alone(ssd, read(slot, 1))
}

#[test]
fn parity_takes_one_die_s_share_of_space_and_programs() {
    for stripe in [2, 4] {
        let mut ssd = drive_of(&striped(stripe, ""));
        let plain = drive(&[SMALL]);
        let share = |ssd: &Ssd| ssd.ftl().geometry().raw_slots();
        let n = u64::from(stripe);
        assert_eq!(share(&ssd) * n, share(&plain) * (n - 1), "1/{n} of the space");
        let user = user_slots(&ssd);
        for slot in (0..user).step_by(16) {
            alone(&mut ssd, write(slot, 16));
        }
        ssd.quiesce();
        let programs = ssd.ftl().counters().programs;
        assert_eq!(programs, user / 4, "of a page");
        let counters = parity(&ssd);
        assert_eq!(
            counters.counts.programs * (n - 1),
            programs,
            "one for the others of each stripe"
        );
        assert_eq!(counters.parity_slots, counters.counts.programs * 4);
        assert_eq!(ssd.counters().nand_write_bytes * (n - 1), user * 4096 * n);
        ssd.ftl().check_invariants().unwrap();
    }
}

/// The three other dies sense in parallel. Two of these dies share a channel and transfer one at a
/// time, so a read takes longer by one slot transfer.
#[test]
fn a_rebuilt_read_takes_as_long_as_reads_of_the_other_dies() {
    let mut ssd = filled(4, "");
    let slot = (0..100).find(|&slot| die_of(&ssd, slot) == LOST).unwrap();
    let other = (0..100).find(|&slot| die_of(&ssd, slot) != LOST).unwrap();
    let (before, untouched) = (read_latency(&mut ssd, slot), read_latency(&mut ssd, other));
    ssd.lose_die(LOST).unwrap();
    assert_eq!(read_latency(&mut ssd, slot), before + BUS_SLOT);
    assert_eq!(read_latency(&mut ssd, other), untouched);
    assert_eq!((parity(&ssd).counts.rebuilt, parity(&ssd).counts.unrecovered), (1, 0));
}

#[test]
fn what_a_lost_die_held_is_relocated_and_nothing_is_written_there() {
    let mut ssd = filled(4, "relocate_interval = \"2 ms\"\n");
    let user = user_slots(&ssd);
    let held = (0..user).filter(|&slot| die_of(&ssd, slot) == LOST).count() as u64;
    assert_eq!(held, user / 4, "parity rotates");
    ssd.lose_die(LOST).unwrap();
    assert!(ssd.storage().is_relocating());
    // The relocation takes more than 64 intervals because the dies are still busy at some interval
    // ends.
    let until = ssd.now() + Nanos::from_micros(2_000_000);
    ssd.idle_until(until);
    assert!(!ssd.storage().is_relocating());
    assert_eq!(parity(&ssd).counts.relocated, held);
    for n in 0..3 * user {
        ssd.fast_forward(&write(n * 7919 % user, 1));
    }
    ssd.end_fast_forward();
    assert!((0..user).all(|slot| die_of(&ssd, slot) != LOST));
    ssd.ftl().check_invariants().unwrap();
    let before = parity(&ssd).counts.rebuilt;
    (0..user).step_by(97).for_each(|slot| {
        read_latency(&mut ssd, slot);
    });
    assert_eq!(parity(&ssd).counts.rebuilt, before);
}

#[test]
fn a_drive_that_is_saved_while_it_relocates_goes_on() {
    let mut ssd = filled(4, "relocate_interval = \"2 ms\"\n");
    ssd.lose_die(LOST).unwrap();
    let until = ssd.now() + Nanos::from_micros(20_000);
    ssd.idle_until(until);
    ssd.quiesce();
    let mut restored = drive_of(&striped(4, "relocate_interval = \"2 ms\"\n"));
    restored.restore_from(&mut ssd.save(Vec::new()).unwrap().as_slice()).unwrap();
    let counts = [&mut ssd, &mut restored].map(|ssd| {
        assert!(ssd.storage().is_relocating());
        let until = ssd.now() + Nanos::from_micros(200_000);
        ssd.idle_until(until);
        let latency = read_latency(ssd, 77);
        (parity(ssd), ssd.counters().nand_write_bytes, latency, ssd.ftl().digest())
    });
    assert_eq!(counts[0], counts[1]);
}

#[test]
fn without_parity_what_a_lost_die_held_is_gone() {
    let mut ssd = filled(1, "");
    ssd.lose_die(LOST).unwrap();
    assert!(!ssd.storage().is_relocating());
    let lost: Vec<u64> = (0..64).filter(|&slot| die_of(&ssd, slot) == LOST).collect();
    for &slot in &lost {
        read_latency(&mut ssd, slot);
    }
    assert_eq!(lost.len(), 16);
    assert_eq!((parity(&ssd).counts.rebuilt, parity(&ssd).counts.unrecovered), (0, 16));
    alone(&mut ssd, write(lost[0], 1));
    ssd.quiesce();
    read_latency(&mut ssd, lost[0]);
    assert_eq!(parity(&ssd).counts.unrecovered, 16, "new data are elsewhere");
}

/// At an error rate where every read fails, all reads of a stripe also fail. At an error rate where
/// few reads fail, the stripe can nearly always rebuild the data.
#[test]
fn reads_that_no_retry_corrects_are_rebuilt() {
    let reads = 2000;
    let outcomes = |rber: &str| {
        let mut changes = striped(4, "");
        let ecc = format!(
            "[ecc]\nrber = {rber}\nrber_at_rated = {rber}\ncodeword = \"4 KiB\"\n\
             correctable = 100\nretry_time = \"60 us\"\nretries_max = 0\n[link]"
        );
        changes[1].1 = changes[1].1.replace("[link]", &ecc);
        let mut ssd = drive_of(&changes);
        let user = user_slots(&ssd);
        (0..user).step_by(16).for_each(|slot| ssd.fast_forward(&write(slot, 16)));
        ssd.end_fast_forward();
        for n in 0..reads {
            read_latency(&mut ssd, n * 7919 % user);
        }
        let counts = parity(&ssd).counts;
        (counts.rebuilt as f64, counts.unrecovered as f64)
    };
    let (rebuilt, unrecovered) = outcomes("0.1");
    assert_eq!((rebuilt, unrecovered), (0.0, reads as f64));
    // A codeword of 32,768 bits has 90 errors on average, and more than 100 errors in about one of
    // eight cases.
    let (rebuilt, unrecovered) = outcomes("2.75e-3");
    let failed = (rebuilt + unrecovered) / reads as f64;
    let expected = 1.0 - (1.0 - failed).powi(3);
    assert!((0.05..0.25).contains(&failed), "{failed}");
    assert!((unrecovered / (rebuilt + unrecovered) - expected).abs() < 0.08, "{unrecovered}");
}

#[test]
fn a_die_is_lost_once_and_only_where_the_others_have_the_space() {
    let mut ssd = drive_of(&striped(4, ""));
    assert!(ssd.lose_die(4).unwrap_err().contains("0 to 3"));
    ssd.lose_die(3).unwrap();
    assert!(ssd.lose_die(1).unwrap_err().contains("already lost die 3"));
    assert!(drive(&[]).lose_die(0).unwrap_err().contains("no section"));
    let full = ("\"40 MiB\"", "\"36 MiB\"");
    let mut full = drive(&[full, ("[link]", "[die_parity]\nstripe = 4\n[link]")]);
    assert!(full.lose_die(0).unwrap_err().contains("without die 0, user_capacity"));
}

#[test]
fn the_section_is_checked() {
    let refused =
        |keys: &str, what: &str| assert_section_refused("die_parity", keys, "drive.toml", what);
    refused("stripe = 3", "divide the number of dies (4)");
    refused("stripe = 8", "divide the number of dies (4)");
    refused("stripe = 2\nrelocate_interval = \"0 s\"", "above zero");
    refused("stripes = 2", "stripe");
}
