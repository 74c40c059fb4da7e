//! Tests which faults the protection detects, and which faults reach the host.

use crate::common::{self, alone, assert_section_refused, closed_loop, command, precondition};
use crate::common::{read, user_slots, write};
use writecliff_ssd::mechanisms::integrity::IntegrityCounts;
use writecliff_ssd::{Drive, Operation, Ssd};

fn drive(keys: &str) -> Ssd {
    common::drive(&[("[link]", &format!("[integrity]\n{keys}\n[link]"))])
}

/// Writes every slot once, then reads the slots one at a time.
fn written_and_read(keys: &str) -> IntegrityCounts {
    let mut ssd = drive(keys);
    precondition(&mut ssd, 0);
    let slots = user_slots(&ssd) as u32;
    closed_loop(&mut ssd, 8, slots, |n| read(u64::from(n), 1));
    ssd.counters().integrity.unwrap()
}

#[test]
fn without_protection_every_fault_is_served() {
    let c = written_and_read("buffer_flips = 0.01");
    assert!(c.buffer_flips > 60, "{c:?}");
    assert_eq!((c.silent_reads, c.reported_reads), (c.buffer_flips, 0));
    let c = written_and_read("bus_flips = 0.01");
    // Most bit flips affect different slots, both in writes and in reads.
    assert!(c.silent_reads > c.bus_flips * 98 / 100 && c.silent_reads <= c.bus_flips, "{c:?}");
    let c = written_and_read("misplaced_writes = 0.01");
    // Each misplaced write leaves two wrong slots unless later writes overwrite them.
    assert!(c.silent_reads > c.misplaced_writes && c.silent_reads == c.wrong_slots, "{c:?}");
}

#[test]
fn each_layer_finds_what_it_is_for() {
    let c = written_and_read("buffer_flips = 0.01\nbuffer_ecc = true");
    assert_eq!((c.silent_reads, c.reported_reads, c.corrected), (0, 0, c.buffer_flips));
    let c = written_and_read("buffer_flips = 0.01\nguard = true");
    assert_eq!((c.silent_reads, c.reported_reads), (0, c.buffer_flips));
    let c = written_and_read("bus_flips = 0.01\nguard = true");
    assert_eq!((c.silent_reads, c.reported_reads, c.corrected), (0, 0, c.bus_flips));
    let c = written_and_read("bus_flips = 0.01\nreference_tag = true");
    assert!(c.silent_reads > 0 && c.reported_reads == 0);
    let c = written_and_read("misplaced_writes = 0.01\nguard = true\nreference_tag = true");
    // The drive reports misplaced data, but it does not report old data that were not overwritten.
    assert!(c.reported_reads > 0 && c.silent_reads > 0);
    assert_eq!(c.reported_reads + c.silent_reads, c.wrong_slots);
}

#[test]
fn an_overwrite_and_a_deallocation_end_a_fault() {
    let mut ssd = drive("buffer_flips = 0.5");
    precondition(&mut ssd, 0);
    let wrong = |ssd: &Ssd| ssd.counters().integrity.unwrap().wrong_slots;
    let begun = wrong(&ssd);
    let half = user_slots(&ssd) as u32 / 2;
    alone(&mut ssd, command(Operation::Trim, 0, half, 0));
    let left = wrong(&ssd);
    assert!(left < begun * 6 / 10 && left > begun * 4 / 10, "{left} of {begun}");
    ssd.purge();
    assert_eq!(wrong(&ssd), 0);
}

#[test]
fn both_clocks_and_a_restored_drive_have_the_same_faults() {
    let keys = "buffer_flips = 0.01\nmisplaced_writes = 0.01\nbus_flips = 0.01";
    let (mut timed, mut fast) = (drive(keys), drive(keys));
    let load = |n: u32| write(u64::from(n * 37 % 5000), 1);
    closed_loop(&mut timed, 1, 3000, load);
    timed.quiesce();
    (0..3000).for_each(|n| fast.fast_forward(&load(n)));
    fast.end_fast_forward();
    assert_eq!(timed.counters().integrity, fast.counters().integrity);
    let mut restored = drive(keys);
    restored.restore_from(&mut timed.save(Vec::new()).unwrap().as_slice()).unwrap();
    for ssd in [&mut timed, &mut restored] {
        closed_loop(ssd, 4, 1000, |n| read(u64::from(n), 2));
    }
    assert_eq!(timed.counters(), restored.counters());
}

#[test]
fn faults_and_protection_take_no_time() {
    let elapsed = |keys: &str| {
        let mut ssd = drive(keys);
        closed_loop(&mut ssd, 4, 500, |n| write(u64::from(n) * 3, 1));
        ssd.now()
    };
    assert_eq!(elapsed("buffer_flips = 0.1\nguard = true"), elapsed("guard = false"));
}

#[test]
fn mistakes_in_the_section_are_refused_at_their_line() {
    assert_section_refused("integrity", "buffer_flips = 2", "buffer_flips", "0");
    assert_section_refused("integrity", "gaurd = true", "gaurd", "guard");
}
