//! Tests power cuts: surviving data, data saved by the capacitors, and the time to rebuild the
//! mapping.

use crate::common::{REDUCTION, SLC, alone, assert_section_refused, command, config, drive, write};
use writecliff_base::{Lpn, Nanos};
use writecliff_ssd::mechanisms::power_loss::recovery;
use writecliff_ssd::{Command, Drive, Operation, Ssd, Volatile};

const PROTECTED: (&str, &str) = ("power_loss_protection = false", "power_loss_protection = true");

fn volatile(changes: &[(&str, &str)]) -> Ssd<Volatile> {
    Ssd::recording(config(changes)).unwrap()
}

fn done(ssd: &mut Ssd<Volatile>, command: Command) {
    let now = ssd.now();
    ssd.submit(now, command);
    ssd.step(Nanos::MAX).expect("the command completes");
}

/// Fast-forwards the drive: fills it in order, then overwrites a portion of it.
fn fill(ssd: &mut Ssd<Volatile>, times: u64) {
    let user = u64::from(ssd.ftl().user_slots());
    (0..user).for_each(|slot| ssd.fast_forward(&write(slot, 1)));
    (0..times * user).for_each(|n| ssd.fast_forward(&write(n * 7919 % user, 1)));
    ssd.end_fast_forward();
}

fn flush() -> Command {
    command(Operation::Flush, 0, 0, 0)
}

#[test]
fn a_write_that_was_not_flushed_gives_way_to_the_flushed_one_before_it() {
    let mut ssd = volatile(&[]);
    done(&mut ssd, write(5, 1));
    done(&mut ssd, flush());
    let flushed = ssd.ftl().lookup(Lpn(5));
    done(&mut ssd, write(5, 2));
    assert_ne!(ssd.ftl().lookup(Lpn(5)), flushed);
    let cut = ssd.cut_power();
    assert_eq!((cut.lost_slots, cut.undone_trims, cut.saved_slots), (2, 0, 0));
    assert_eq!(ssd.ftl().lookup(Lpn(5)), flushed);
    assert!(ssd.ftl().lookup(Lpn(6)).is_none());
    ssd.ftl().check_invariants().unwrap();
}

/// Tests that, after a power cut, folded data that are not yet on the main flash are in the cache
/// again, even if they were the last data of a block that the cache was about to erase.
#[test]
fn data_that_were_being_folded_are_in_the_cache() {
    let mut ssd = volatile(&SLC);
    for slot in (0..1024).step_by(16) {
        done(&mut ssd, write(slot, 16));
    }
    done(&mut ssd, flush());
    let held = |ssd: &Ssd<Volatile>| ssd.counters().slc_cache.unwrap().held;
    assert_eq!(held(&ssd), 1024);
    let idle_delay = ssd.config().controller.idle_delay;
    let mut cuts = 0;
    while held(&ssd) > 0 {
        let until = ssd.now() + idle_delay + Nanos::from_micros(100);
        ssd.idle_until(until);
        let (before, folded) = (held(&ssd), 1024 - held(&ssd));
        let cut = ssd.cut_power();
        assert_eq!((cut.lost_slots, cut.undone_relocations), (0, held(&ssd) - before));
        assert!(held(&ssd) > before && folded > 0, "the first programs are under way");
        assert!((0..1024).all(|slot| !ssd.storage().location(Lpn(slot)).is_none()));
        ssd.storage().log().unwrap().check_invariants(ssd.ftl()).unwrap();
        // Folded data stay folded after the power cut.
        let until = ssd.now() + idle_delay + Nanos::from_micros(5_000 * (cuts + 1));
        ssd.idle_until(until);
        cuts += 1;
        assert!(cuts < 100, "folding comes to an end");
    }
}

#[test]
fn a_deallocation_survives_from_the_next_flush_on() {
    for is_flushed in [false, true] {
        let mut ssd = volatile(&[]);
        done(&mut ssd, write(5, 1));
        done(&mut ssd, flush());
        done(&mut ssd, command(Operation::Trim, 5, 1, 0));
        if is_flushed {
            done(&mut ssd, flush());
        }
        assert_eq!(ssd.cut_power().undone_trims, u64::from(!is_flushed));
        assert_eq!(ssd.ftl().lookup(Lpn(5)).is_none(), is_flushed);
    }
}

#[test]
fn capacitors_save_the_buffer() {
    let mut ssd = drive(&[PROTECTED]);
    alone(&mut ssd, write(5, 3));
    let (before, placed) = (ssd.now(), ssd.ftl().lookup(Lpn(7)));
    let cut = ssd.cut_power();
    assert_eq!((cut.lost_slots, cut.saved_slots), (0, 3));
    // A program unit with one page per plane takes the mean tPROG.
    assert_eq!(cut.hold_up, Nanos::from_micros(800));
    assert_eq!(ssd.now(), before + cut.hold_up + cut.rebuild.total());
    assert_eq!(ssd.ftl().lookup(Lpn(7)), placed);
    ssd.ftl().check_invariants().unwrap();
}

#[test]
fn outstanding_commands_do_not_complete_and_the_drive_takes_new_ones() {
    for changes in [&[][..], &[PROTECTED]] {
        let mut ssd = volatile(changes);
        for n in 0..40 {
            let now = ssd.now();
            ssd.submit(now, command(Operation::Write, 16 * n, 16, n as u32));
        }
        let first = ssd.step(Nanos::MAX).expect("a write completes");
        let cut = ssd.cut_power();
        assert!(ssd.now() >= first.at + cut.rebuild.total());
        assert_eq!(ssd.step(Nanos::MAX).map(|done| done.tag), None);
        let now = ssd.now();
        ssd.submit(now, command(Operation::Read, 0, 1, 99));
        assert_eq!(ssd.step(Nanos::MAX).map(|done| done.tag), Some(99));
    }
}

#[test]
fn drives_of_which_cuts_are_not_modelled_say_why() {
    let reason = |ssd: &Ssd<Volatile>| ssd.storage().refuses_power_cut(ssd.config());
    assert_eq!(reason(&volatile(&[])), None);
    assert_eq!(reason(&volatile(&SLC)), None);
    assert!(reason(&volatile(&REDUCTION)).unwrap().contains("data reduction"));
    assert_eq!(reason(&volatile(&[REDUCTION[0], PROTECTED])), None);
    let unrecorded = drive(&[]);
    let refusal = unrecorded.storage().refuses_power_cut(unrecorded.config()).unwrap();
    assert!(refusal.contains("does not record"));
}

/// The drive with round numbers has 2 channels of 2 dies and pages of 16 KiB (50 and 70 us). A page
/// takes 40.96 us on the bus and a flash command 1 us.
#[test]
fn the_mapping_is_found_by_checkpoint_journal_and_scan() {
    let fields = "start_time = \"3 ms\"\ncheckpoint_interval = \"1 MiB\"\njournal_entry = \"64 B\"";
    let journal = format!("[recovery]\n{fields}\n[link]");
    let scan = "[recovery]\nmethod = \"scan\"\ncheckpoint_interval = \"1 MiB\"\n[link]";
    let times = |section: &str, more: &[(&str, &str)]| {
        let changes: Vec<_> =
            [("[link]", section)].into_iter().chain(more.iter().copied()).collect();
        let mut ssd = volatile(&changes);
        fill(&mut ssd, 0);
        // The host writes 0.5 MiB beyond a checkpoint, less the data in the buffer.
        for n in 0..8 {
            done(&mut ssd, write(16 * n, 16));
        }
        done(&mut ssd, flush());
        ssd.cut_power().rebuild
    };
    let page = 16_384.0 / 400.0 + 1.0;
    let us = |nanos: Nanos| nanos.0 as f64 / 1000.0;
    let rebuild = times(&journal, &[]);
    assert_eq!(rebuild.start, Nanos::from_micros(3000));
    // 10,240 entries of 4 bytes fill 3 pages on 4 dies, two of which share a channel.
    assert!((us(rebuild.checkpoint) - (60.0 + 2.0 * page)).abs() < 0.1, "{rebuild:?}");
    // 128 entries of 64 bytes fill half a page.
    assert!((us(rebuild.journal) - (60.0 + page)).abs() < 0.1, "{rebuild:?}");
    assert!(rebuild.scan > Nanos::ZERO && rebuild.erase == Nanos::ZERO, "{rebuild:?}");
    let scanned = times(scan, &[]);
    assert_eq!((scanned.start, scanned.journal), (Nanos::ZERO, Nanos::ZERO));
    // The scan reads 32 pages on 4 dies, but not their data.
    assert!((us(scanned.scan) - 8.0 * 61.0).abs() < 0.1, "{scanned:?}");
    let protected = times(&journal, &[PROTECTED]);
    assert_eq!((protected.journal, protected.scan), (Nanos::ZERO, Nanos::ZERO));
    assert_eq!(protected.checkpoint, rebuild.checkpoint);
}

/// The times are computed from the device file alone. 960 GB are 234,421,248 slots of 4 KiB, whose
/// 4-byte entries fill 57,232 pages of 16 KiB. A journal for 60 GB has 8 bytes per slot.
#[test]
fn a_large_drive_reads_its_map_in_the_time_that_its_flash_takes() {
    let text = include_str!("../../../../python/writecliff/devices/nvme-tlc-960.toml");
    let [shortest, longest] = [PROTECTED.1, PROTECTED.0].map(|line| {
        let text = text.replace(PROTECTED.1, line);
        let config = writecliff_ssd::device_file::read(&text, "large.toml", 1).unwrap();
        let read = |pages: u64, bytes: u64| {
            let (geometry, timing) = (&config.geometry, &config.timing);
            let sense = timing.read.iter().map(|read| read.0).sum::<u64>() / 3;
            let transfer = (timing.command + timing.bus.time_for(bytes)).0;
            let by_dies = pages.div_ceil(u64::from(geometry.dies)) * (sense + transfer);
            let channels = u64::from(geometry.shape.channels);
            Nanos(by_dies.max(sense + pages.div_ceil(channels) * transfer))
        };
        let slots = config.ftl.user_slots;
        let group = u64::from(config.geometry.slots_per_read_group) * 4096;
        let checkpoint = read((slots * 4).div_ceil(group), group);
        let per_checkpoint = (config.user_capacity.0 / 16 - 1) / 4096;
        let journal = read((per_checkpoint * 8).div_ceil(group), group);
        let open = 2 * u64::from(config.ftl.streams);
        let pages = u64::from(config.geometry.slots_per_reclaim_unit) * 4096 / group;
        let scan = read(open * pages, 0);
        let [shortest, longest] = recovery::bounds(&config);
        assert_eq!((shortest.checkpoint, longest.checkpoint), (checkpoint, checkpoint));
        if line == PROTECTED.1 {
            assert_eq!(shortest, longest);
        } else {
            assert_eq!((shortest.journal, shortest.scan), (Nanos::ZERO, Nanos::ZERO));
            assert_eq!((longest.journal, longest.scan), (journal, scan));
            assert!(longest.erase > config.timing.erase);
        }
        longest.total()
    });
    // The checkpoint takes 177 ms. Without capacitors, the drive also reads the journal and all
    // open units.
    assert!((170_000_000..185_000_000).contains(&shortest.0), "{shortest:?}");
    assert!(longest.0 > 2 * shortest.0, "{longest:?}");
}

/// Tests that no power cut of a drive takes longer or shorter than the bounds.
#[test]
fn cuts_take_as_long_as_the_bounds_say() {
    for changes in [&[][..], &[PROTECTED]] {
        let mut ssd = volatile(changes);
        fill(&mut ssd, 2);
        let [shortest, longest] = recovery::bounds(ssd.config()).map(|bound| bound.total());
        for n in 0..60 {
            for slot in 0..16 {
                done(&mut ssd, write((n * 331 + slot * 7919) % 10_000, 1 + n as u32 % 16));
            }
            let total = ssd.cut_power().rebuild.total();
            assert!((shortest..=longest).contains(&total), "{total:?}");
        }
    }
}

#[test]
fn the_section_is_checked() {
    let refused =
        |keys: &str, what: &str| assert_section_refused("recovery", keys, "drive.toml", what);
    refused("method = \"guess\"", "guess");
    refused("journal_entry = \"8 KiB\"", "1 B to 4 KiB");
    refused("method = \"scan\"\njournal_entry = \"8 B\"", "keeps no journal");
    refused("checkpoint_interval = \"4 KiB\"", "less than a program unit");
    refused("checkpoints = 3", "checkpoints");
}

#[test]
fn an_erase_that_was_cut_is_repeated() {
    let mut ssd = volatile(&[]);
    fill(&mut ssd, 2);
    let mut cuts = 0;
    let erases = |ssd: &Ssd<Volatile>| ssd.ftl().wear().total();
    let before = erases(&ssd);
    while cuts == 0 {
        let user = u64::from(ssd.ftl().user_slots());
        let count = erases(&ssd);
        let mut next = 0;
        while erases(&ssd) == count {
            next = (next + 7919) % (user - 16);
            done(&mut ssd, write(next, 16));
        }
        cuts += ssd.cut_power().interrupted_erases;
        ssd.ftl().check_invariants().unwrap();
        assert!(erases(&ssd) < before + 2000, "no erase was cut");
    }
}
