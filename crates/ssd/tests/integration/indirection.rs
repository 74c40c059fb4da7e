//! Tests indirection units above 4 KiB: whole units are written, and partial writes are merged.

use crate::common::{
    BUS_SLOT, DRIVE, alone, assert_refused, command, drive, read, user_slots, write,
};
use writecliff_base::fields::{Impossible, from_bytes, to_bytes};
use writecliff_base::located::LocatedToml;
use writecliff_base::{Bytes, Lpn, Nanos, Prng};
use writecliff_ssd::{Command, Drive, Operation, Ssd, device_file};

const UNITS: [(&str, &str); 2] = [
    ("power_loss_protection = false", "power_loss_protection = true"),
    ("streams = 4", "streams = 4\nindirection_unit = \"16 KiB\""),
];

/// Returns the bytes that the host and the drive have written since the drive was new.
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
    // A 48 KiB command that starts and ends in the middle of a unit covers four units.
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
        let io = command(Operation::Write, slot, slots, n);
        fast.fast_forward(&io);
        let at = timed.now();
        timed.submit(at, io);
        while timed.step(Nanos::MAX).is_none() {}
    }
    timed.quiesce();
    assert_eq!(bytes(&timed), bytes(&fast));
    for lpn in 0..user as u32 {
        assert_eq!(timed.ftl().lookup(Lpn(lpn)), fast.ftl().lookup(Lpn(lpn)));
    }
    timed.ftl().check_invariants().unwrap();
    // Random 4 KiB writes cost four times their size even before garbage collection starts.
    let (host, flash) = bytes(&timed);
    assert!(flash > host);
}

/// Returns a drive where up to `units` units of 16 KiB wait in the buffer for their remaining data.
fn merging(units: u32) -> Ssd {
    let keys = format!("streams = 4\nindirection_unit = \"16 KiB\"\nmerged_units = {units}");
    drive(&[UNITS[0], ("streams = 4", keys.as_str())])
}

#[test]
fn sequential_small_writes_are_merged_and_random_writes_cost_a_unit() {
    // With four interleaved sequences of 4 KiB writes, every unit is complete when it reaches the
    // FTL.
    let mut ssd = merging(4);
    for n in 0..256 {
        (0..4).for_each(|sequence| ssd.fast_forward(&write(sequence * 2048 + n, 1)));
    }
    assert_eq!(bytes(&ssd), (4 << 20, 4 << 20));
    // With five sequences and four waiting units, each write displaces the unit that the next write
    // needs.
    let mut ssd = merging(4);
    for n in 0..256 {
        (0..5).for_each(|sequence| ssd.fast_forward(&write(sequence * 1024 + n, 1)));
    }
    let (host, flash) = bytes(&ssd);
    assert_eq!((host, flash), (5 << 20, 4 * ((5 << 20) - 4 * 4096)), "four slots wait");
    // The random writes cover 8 MiB (512 units), so few of them find their unit waiting.
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
        alone(&mut timed, request);
    }
    assert_eq!(bytes(&timed), bytes(&fast));
    for lpn in 0..user as u32 {
        assert_eq!(timed.ftl().lookup(Lpn(lpn)), fast.ftl().lookup(Lpn(lpn)));
    }
    // A read of a half-written unit comes from the buffer and is as fast as a read of unmapped
    // data.
    let mut ssd = merging(8);
    let unmapped = alone(&mut ssd, read(0, 2));
    alone(&mut ssd, write(0, 2));
    ssd.quiesce();
    assert_eq!(ssd.ftl().mapped_slots(), 0, "the unit waits in the buffer");
    assert_eq!(alone(&mut ssd, read(0, 2)), unmapped);
    // The restored unit is still waiting, and the second half completes it.
    let state = ssd.save(Vec::new()).unwrap();
    let mut ssd = merging(8);
    ssd.restore_from(&mut &state[..]).unwrap();
    alone(&mut ssd, write(2, 2));
    assert_eq!((bytes(&ssd), ssd.ftl().mapped_slots()), ((16_384, 16_384), 4));
    // A unit with deallocated data stays incomplete.
    alone(&mut ssd, write(4, 3));
    alone(&mut ssd, command(Operation::Trim, 5, 1, 0));
    alone(&mut ssd, write(7, 1));
    assert_eq!(bytes(&ssd), (32_768, 16_384));
    alone(&mut ssd, write(5, 1));
    assert_eq!(bytes(&ssd), (36_864, 32_768));
}

#[test]
fn writes_below_a_slot_complete_a_unit_and_are_read_from_the_buffer() {
    let sectors = |first: u64, sectors: u64| {
        let (offset, length) = (first * 512, sectors as u32 * 512);
        Command { offset, length, ..write(0, 1) }
    };
    let mut ssd = merging(8);
    (0..31).for_each(|sector| ssd.fast_forward(&sectors(sector, 1)));
    assert_eq!((bytes(&ssd), ssd.ftl().mapped_slots()), ((31 * 512, 0), 0));
    ssd.fast_forward(&sectors(31, 1));
    assert_eq!((bytes(&ssd), ssd.ftl().mapped_slots()), ((16_384, 16_384), 4));
    // A slot is in the buffer if all its sectors were written, even by several commands.
    ssd.fast_forward(&write(4, 4));
    ssd.fast_forward(&sectors(4 * 8 + 3, 12));
    ssd.fast_forward(&sectors(4 * 8 + 1, 2));
    ssd.end_fast_forward();
    ssd.quiesce();
    let flash = alone(&mut ssd, read(4, 1));
    ssd.fast_forward(&sectors(4 * 8, 1));
    let buffered = alone(&mut ssd, read(4, 1));
    assert_eq!(flash - buffered, 1_000 + 50_000 + BUS_SLOT);
    ssd.check_invariants().unwrap();
}

#[test]
fn deallocated_units_leave_the_buffer_and_stay_unmapped() {
    let mut ssd = merging(8);
    alone(&mut ssd, write(0, 2));
    alone(&mut ssd, write(4, 3));
    alone(&mut ssd, command(Operation::Trim, 1, 5, 0));
    // Each unit still lacks one slot.
    alone(&mut ssd, command(Operation::Trim, 6, 1, 0));
    ssd.check_invariants().unwrap();
    assert_eq!((bytes(&ssd), ssd.ftl().mapped_slots()), ((5 * 4096, 0), 0));
    // Seven more units wait together with the first unit, so nothing is written to flash.
    for n in 0..7 {
        alone(&mut ssd, write(8 + 4 * n, 1));
    }
    assert_eq!((bytes(&ssd), ssd.ftl().mapped_slots()), ((12 * 4096, 0), 0));
    ssd.purge();
    assert_eq!(bytes(&ssd), (12 * 4096, 0));
    ssd.check_invariants().unwrap();
}

#[test]
fn units_leave_an_idle_drive_after_the_idle_delay() {
    let mut ssd = merging(8);
    for n in 0..3 {
        alone(&mut ssd, write(4 * n, 1 + n as u32));
    }
    let idle_since = ssd.now();
    ssd.idle_until(idle_since + Nanos(9_999_999));
    assert_eq!((bytes(&ssd), ssd.ftl().mapped_slots()), ((6 * 4096, 0), 0));
    ssd.idle_until(idle_since + Nanos(10_000_000));
    assert_eq!((bytes(&ssd), ssd.ftl().mapped_slots()), ((6 * 4096, 12 * 4096), 12));
    ssd.quiesce();
    ssd.check_invariants().unwrap();
}

#[test]
fn a_power_cut_programs_waiting_units_once() {
    let mut ssd = merging(8);
    for n in 0..3 {
        alone(&mut ssd, write(4 * n, 1 + n as u32));
    }
    let cut = ssd.cut_power();
    // Six slots fill two single-page program units on two dies.
    assert_eq!((cut.saved_slots, cut.hold_up), (6, Nanos(800_000)));
    let again = ssd.cut_power();
    assert_eq!((again.saved_slots, again.hold_up), (0, Nanos::ZERO));
    alone(&mut ssd, write(5, 1));
    assert_eq!(ssd.cut_power().saved_slots, 2);
}

#[test]
fn merged_units_need_space_in_the_buffer_at_any_scale() {
    let keys = "streams = 4\nindirection_unit = \"16 KiB\"\nmerged_units = 32";
    let text = DRIVE.replace(UNITS[0].0, UNITS[0].1).replace("streams = 4", keys);
    // The buffer holds four open program units, a fifth unit and four waiting units.
    let small = text.replace("merged_units = 32", "merged_units = 4");
    let buffer = |kib: u32| small.replace("\"1 MiB\"", &format!("\"{kib} KiB\""));
    assert_refused(&buffer(143), "write_buffer", "need 144 KiB");
    let mut ssd = Ssd::new(device_file::read(&buffer(144), "drive.toml", 1).unwrap()).unwrap();
    // A write as large as the buffer does not wait for the buffer to become empty.
    for n in 0..8 {
        alone(&mut ssd, write(64 * n, 1));
    }
    alone(&mut ssd, write(0, 36));
    assert_eq!(smallest_buffer(&text), Bytes(1 << 20));
    // The size is that of two word lines on each of 256 dies.
    let shipped = include_str!("../../../../python/writecliff/devices/families/d5-p5336.toml");
    let (shipped, _) = shipped.split_once("[variants]").expect("variants");
    assert_eq!(smallest_buffer(shipped), Bytes(128 << 20));
}

/// Returns the smallest write buffer of the drive at any scale.
fn smallest_buffer(text: &str) -> Bytes {
    let toml = LocatedToml::parse(text, "drive.toml").unwrap();
    let config = device_file::read(text, "drive.toml", 1).unwrap();
    let scaled = device_file::scales(&config).into_iter().map(|scale| {
        let changes = device_file::scaled(&config, scale, Bytes(4096));
        let smaller = device_file::read(&toml.changed(&changes).unwrap(), "drive.toml", 1);
        smaller.unwrap().controller.write_buffer
    });
    scaled.min().expect("a scale")
}

#[test]
fn impossible_units_are_not_restored() {
    // A saved unit consists of `unit`, `stream`, the slot count, the sectors of each slot, `bytes`
    // and `is_saved`.
    let unit = |number: u8, sectors: [u8; 4]| {
        let written: u32 = sectors.iter().map(|slot| slot.count_ones()).sum();
        let mut bytes = vec![number, 0, 4];
        bytes.extend(sectors);
        bytes.extend(to_bytes(&(u64::from(written) * 512)));
        bytes.push(0);
        bytes
    };
    let waiting = unit(1, [0xff, 0x0f, 0, 0]);
    let mut ssd = merging(8);
    ssd.fast_forward(&Command { length: 6144, ..write(4, 2) });
    ssd.end_fast_forward();
    let good = to_bytes(&ssd);
    let at = good.windows(waiting.len()).position(|bytes| bytes == waiting).expect("the unit");
    let restored = |units: &[Vec<u8>]| {
        let mut bad = good[..at - 1].to_vec();
        bad.push(units.len() as u8);
        bad.extend(units.concat());
        bad.extend(&good[at + waiting.len()..]);
        from_bytes(&bad, &mut merging(8))
    };
    assert_eq!(restored(std::slice::from_ref(&waiting)), Ok(()));
    let changed = |index: usize, value: u8| {
        let mut bytes = waiting.clone();
        bytes[index] = value;
        restored(&[bytes])
    };
    assert_eq!(changed(1, 4), Err(Impossible), "a stream that the drive does not have");
    assert_eq!(changed(8, 0x10), Err(Impossible), "fewer bytes than sectors");
    assert_eq!(restored(&[waiting.clone(), waiting.clone()]), Err(Impossible), "a unit twice");
    assert_eq!(restored(&[unit(1, [0; 4])]), Err(Impossible), "no data");
    assert_eq!(restored(&[unit(1, [0xff; 4])]), Err(Impossible), "a complete unit");
    assert_eq!(restored(&[unit(1, [1, 1, 1, 0])]), Err(Impossible), "more than the buffer holds");
    let beyond = [&[0x80, 0x14][..], &waiting[1..]].concat();
    assert_eq!(restored(&[beyond]), Err(Impossible), "unit 2560 of 2560");
    let longer = [&waiting[..2], &[5, 0xff, 0x0f, 0, 0, 0], &waiting[7..]].concat();
    assert_eq!(restored(&[longer]), Err(Impossible), "a slot beyond the unit");
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
        while ssd.step(Nanos::MAX).is_none() {}
        ssd.quiesce();
        (ssd.now() - at).0
    };
    let (merged, new) = (time(true), time(false));
    // The time consists of one command on the bus, tR of a lower page, and four slots on the bus.
    assert_eq!(merged - new, 1_000 + 50_000 + 4 * BUS_SLOT);
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
