//! Indirection units above 4 KiB: whole units are written, parts are merged.

use crate::common::{DRIVE, assert_refused, command, drive, user_slots, write};
use writecliff_base::{Lpn, Prng};
use writecliff_ssd::{Drive, Operation, Ssd};

const UNITS: [(&str, &str); 2] = [
    ("power_loss_protection = false", "power_loss_protection = true"),
    ("streams = 4", "streams = 4\nindirection_unit = \"16 KiB\""),
];

/// Bytes of the host and bytes of flash for them, since the drive was new.
fn bytes(ssd: &Ssd) -> (u64, u64) {
    (ssd.counters().host_write_bytes, ssd.counters().nand_write_bytes)
}

#[test]
fn whole_units_cost_what_they_are() {
    let mut ssd = drive(&UNITS);
    ssd.fast_forward(&write(0, 16));
    assert_eq!(bytes(&ssd), (65_536, 65_536));
    assert_eq!(ssd.ftl().mapped_slots(), 16);
}

#[test]
fn a_part_of_a_unit_costs_all_of_it() {
    let mut ssd = drive(&UNITS);
    ssd.fast_forward(&write(0, 16));
    ssd.fast_forward(&write(5, 1));
    assert_eq!(bytes(&ssd), (65_536 + 4096, 65_536 + 4 * 4096));
    // 48 KiB from the middle of one unit to the middle of another: four units.
    ssd.fast_forward(&write(2, 12));
    assert_eq!(bytes(&ssd), (65_536 + 4096 + 49_152, 65_536 + 20 * 4096));
    ssd.ftl().check_invariants().unwrap();
}

#[test]
fn the_slots_of_a_unit_stay_side_by_side() {
    let mut ssd = drive(&UNITS);
    ssd.fast_forward(&write(0, 16));
    for slot in [5, 10, 7, 0] {
        ssd.fast_forward(&write(slot, 1));
        let first = slot as u32 / 4 * 4;
        let at = |n| ssd.ftl().lookup(Lpn(first + n)).0;
        assert_eq!([at(1), at(2), at(3)], [at(0) + 1, at(0) + 2, at(0) + 3]);
    }
}

#[test]
fn both_clocks_write_the_same_and_the_timed_one_reads_first() {
    let (mut timed, mut fast) = (drive(&UNITS), drive(&UNITS));
    let user = user_slots(&timed);
    let mut prng = Prng::new(7);
    for n in 0..3000u32 {
        let slots = 1 + prng.below(9) as u32;
        let slot = prng.below(user - u64::from(slots));
        let one = command(Operation::Write, slot, slots, n);
        fast.fast_forward(&one);
        let at = timed.now();
        timed.submit(at, one);
        while timed.step(writecliff_base::Nanos::MAX).is_none() {}
    }
    timed.quiesce();
    assert_eq!(bytes(&timed), bytes(&fast));
    for lpn in 0..user as u32 {
        assert_eq!(timed.ftl().lookup(Lpn(lpn)), fast.ftl().lookup(Lpn(lpn)));
    }
    timed.ftl().check_invariants().unwrap();
    // 4 KiB at random cost four times their size before garbage collection.
    let (host, flash) = bytes(&timed);
    assert!(flash > host);
}

/// Returns a drive in which up to `units` units of 16 KiB wait in the buffer for the rest of their
/// data.
fn merging(units: u32) -> Ssd {
    let keys = format!("streams = 4\nindirection_unit = \"16 KiB\"\nmerged_units = {units}");
    drive(&[UNITS[0], ("streams = 4", keys.as_str())])
}

#[test]
fn sequential_small_writes_are_merged_and_random_writes_cost_a_unit() {
    // Four interleaved sequences of 4 KiB writes: every unit is complete when it reaches the FTL.
    let mut ssd = merging(4);
    for n in 0..256 {
        (0..4).for_each(|sequence| ssd.fast_forward(&write(sequence * 2048 + n, 1)));
    }
    assert_eq!(bytes(&ssd), (4 << 20, 4 << 20));
    // Five sequences and four waiting units: each write displaces the unit of the next write.
    let mut ssd = merging(4);
    for n in 0..256 {
        (0..5).for_each(|sequence| ssd.fast_forward(&write(sequence * 1024 + n, 1)));
    }
    let (host, flash) = bytes(&ssd);
    assert_eq!((host, flash), (5 << 20, 4 * ((5 << 20) - 4 * 4096)), "four slots wait");
    // Random writes over 8 MiB, which is 512 units: few of them find their unit waiting.
    let mut ssd = merging(4);
    let mut random = Prng::new(3);
    (0..20_000).for_each(|_| ssd.fast_forward(&write(random.below(2048), 1)));
    let moved = ssd.ftl().counters().moved_slots() * 4096;
    let (host, flash) = bytes(&ssd);
    let amplification = (flash - moved) as f64 / host as f64;
    // About 4 of 512 writes find their unit waiting, with one to three written slots.
    assert!((3.94..4.0).contains(&amplification), "{amplification}");
    ssd.ftl().check_invariants().unwrap();
}

#[test]
fn units_that_wait_are_read_from_the_buffer_and_counted_in_it() {
    let (mut timed, mut fast) = (merging(8), merging(8));
    let user = user_slots(&timed);
    let mut random = Prng::new(7);
    for n in 0..3000u32 {
        let slots = 1 + random.below(9) as u32;
        let slot = random.below(user - u64::from(slots));
        let request = command(Operation::Write, slot, slots, n);
        fast.fast_forward(&request);
        crate::common::alone(&mut timed, request);
    }
    assert_eq!(bytes(&timed), bytes(&fast));
    for lpn in 0..user as u32 {
        assert_eq!(timed.ftl().lookup(Lpn(lpn)), fast.ftl().lookup(Lpn(lpn)));
    }
    // A read of a half-written unit comes from the buffer, as fast as a read of unmapped data.
    let mut ssd = merging(8);
    let unmapped = crate::common::alone(&mut ssd, crate::common::read(0, 2));
    crate::common::alone(&mut ssd, write(0, 2));
    ssd.quiesce();
    assert_eq!(ssd.ftl().mapped_slots(), 0, "the unit waits in the buffer");
    assert_eq!(crate::common::alone(&mut ssd, crate::common::read(0, 2)), unmapped);
    // The restored unit still waits, and the other half completes it.
    let state = ssd.save(Vec::new()).unwrap();
    let mut ssd = merging(8);
    ssd.restore_from(&mut &state[..]).unwrap();
    crate::common::alone(&mut ssd, write(2, 2));
    assert_eq!((bytes(&ssd), ssd.ftl().mapped_slots()), ((16_384, 16_384), 4));
    // Deallocated data leave the unit incomplete.
    crate::common::alone(&mut ssd, write(4, 3));
    crate::common::alone(&mut ssd, command(Operation::Trim, 5, 1, 0));
    crate::common::alone(&mut ssd, write(7, 1));
    assert_eq!(bytes(&ssd), (32_768, 16_384));
    crate::common::alone(&mut ssd, write(5, 1));
    assert_eq!(bytes(&ssd), (36_864, 32_768));
}

#[test]
fn a_merge_delays_the_program_by_its_read() {
    let time = |mapped: bool| {
        let mut ssd = drive(&UNITS);
        if mapped {
            ssd.fast_forward(&write(0, 4));
            ssd.end_fast_forward();
        }
        let at = ssd.now();
        ssd.submit(at, write(1, 1));
        while ssd.step(writecliff_base::Nanos::MAX).is_none() {}
        ssd.quiesce();
        (ssd.now() - at).0
    };
    let (merged, new) = (time(true), time(false));
    // A command on the bus, tR of a low page, four slots on the bus.
    assert_eq!(merged - new, 1_000 + 50_000 + 4 * crate::common::BUS_SLOT);
}

#[test]
fn what_is_no_unit_is_refused() {
    let with = |value: &str, more: &str| {
        DRIVE
            .replace("streams = 4", &format!("streams = 4\nindirection_unit = \"{value}\""))
            .replace("[link]", &format!("{more}[link]"))
    };
    assert_refused(&with("12 KiB", ""), "drive.toml", "power of two");
    assert_refused(&with("1 MiB", ""), "drive.toml", "program unit");
    let merged = |size: &str, units: u32| {
        with(size, "")
            .replace("gc = ", &format!("merged_units = {units}\ngc = "))
            .replace("power_loss_protection = false", "power_loss_protection = true")
    };
    assert_refused(&merged("4 KiB", 1), "drive.toml", "above 4 KiB");
    assert_refused(&merged("16 KiB", 33), "drive.toml", "at most half");
    assert_refused(&with("16 KiB", ""), "drive.toml", "power-loss protection");
    let cache = "[slc_cache]\nsize = \"4 MiB\"\nprogram = \"200 us\"\nread = \"25 us\"\n";
    assert_refused(&with("16 KiB", cache), "drive.toml", "[slc_cache]");
}
