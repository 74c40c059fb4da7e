//! Tests read-ahead: sequential reads are as fast as the link, random reads are unchanged, and no
//! data are stale.

use writecliff_base::{Nanos, Prng};
use writecliff_ssd::mechanisms::read_ahead::ReadAheadCounts;
use writecliff_ssd::{Attribution, Command, Completion, Drive as _, Operation, Ssd};

use crate::common::{
    LINK_SLOT, alone, assert_section_refused, closed_loop, command, config, precondition, read,
    user_slots, write,
};

const SECTION: &str = "[read_ahead]\nwindow = \"256 KiB\"\n[link]";
/// Number of slots in the window.
const WINDOW: u64 = 64;
/// Firmware time, firmware latency, and a command on the link.
const FIXED: u64 = 2_000 + 5_000 + 3_000;

/// A die with two planes of half the page size that read independently.
const PLANES: [(&str, &str); 3] = [
    ("planes_per_die = 1", "planes_per_die = 2"),
    ("page = \"16 KiB\"", "page = \"8 KiB\""),
    ("rated_cycles = 1000", "rated_cycles = 1000\nindependent_plane_reads = true"),
];

/// Returns a drive with all slots on flash in order.
fn filled(more: &[(&str, &str)]) -> Ssd {
    let mut ssd = Ssd::new(config(more)).unwrap();
    precondition(&mut ssd, 0);
    alone(&mut ssd, command(Operation::Flush, 0, 0, 0));
    ssd.quiesce();
    ssd
}

fn ahead(more: &[(&str, &str)]) -> Ssd {
    let mut changes = vec![("[link]", SECTION)];
    changes.extend(more);
    filled(&changes)
}

fn counts(ssd: &Ssd) -> ReadAheadCounts {
    ssd.counters().read_ahead.unwrap()
}

/// Returns the mean latency of sequential 16 KiB reads, issued one at a time.
fn sequential(ssd: &mut Ssd) -> f64 {
    let first = ssd.now();
    let done = closed_loop(ssd, 1, 2000, |n| read(u64::from(n) * 4, 4));
    (done[1999].at - first).0 as f64 / 2000.0
}

#[test]
fn sequential_reads_take_the_time_of_the_link() {
    let fast = [
        ("bandwidth = \"500 MB/s\"", "bandwidth = \"1 GB/s\""),
        ("bus = \"400 MB/s\"", "bus = \"800 MB/s\""),
    ];
    for more in [&[][..], &PLANES] {
        let more = &[&fast, more].concat()[..];
        let (mut with, mut without) = (ahead(more), filled(more));
        let (mean, alone) = (sequential(&mut with), sequential(&mut without));
        let expected = (FIXED + 4 * LINK_SLOT / 2) as f64;
        assert!((mean / expected - 1.0).abs() < 0.03, "{mean} ns, expected {expected} ns");
        assert!(alone >= 3.0 * mean, "{alone} ns without, {mean} ns with");
        // All reads except the first two hit the read-ahead data, and each page is read once.
        assert_eq!(counts(&with).hits, 4 * 1998);
        assert_eq!((counts(&with).fetched, counts(&with).unused), (4 * 1998 + WINDOW, 0));
    }
}

#[test]
fn random_reads_do_not_change() {
    let (mut with, mut without) = (ahead(&[]), filled(&[]));
    let half = user_slots(&with) / 2;
    let run = |ssd: &mut Ssd| {
        let mut random = Prng::new(4);
        // No read starts at the end of another read.
        closed_loop(ssd, 8, 3000, |_| read(random.below(half) * 2, 1))
    };
    assert_eq!(run(&mut with), run(&mut without));
    assert_eq!(counts(&with), ReadAheadCounts::default());
}

#[test]
fn what_is_written_or_deallocated_after_it_was_read_ahead_is_dropped() {
    for operation in [Operation::Write, Operation::Trim] {
        for is_timed in [true, false] {
            let mut ssd = ahead(&[]);
            (0..4).for_each(|n| {
                alone(&mut ssd, read(n * 4, 4));
            });
            ssd.quiesce();
            let before = counts(&ssd);
            assert_eq!(before.hits, 8);
            let change = command(operation, 18, 1, 0);
            if is_timed {
                alone(&mut ssd, change);
            } else {
                ssd.fast_forward(&change);
                ssd.end_fast_forward();
            }
            assert_eq!(counts(&ssd).unused, 1);
            // The first read of the stream is not a hit, but the next read is.
            alone(&mut ssd, read(16, 4));
            assert_eq!(counts(&ssd).hits, before.hits);
            alone(&mut ssd, read(20, 4));
            assert_eq!(counts(&ssd).hits, before.hits + 4);
        }
    }
}

#[test]
fn a_purge_and_a_loss_of_power_empty_it() {
    let safe = [("power_loss_protection = false", "power_loss_protection = true")];
    for cuts in [true, false] {
        let mut ssd = ahead(&safe);
        for n in 0..4 {
            alone(&mut ssd, read(n * 4, 4));
        }
        let before = counts(&ssd);
        if cuts {
            ssd.cut_power();
        } else {
            ssd.purge();
        }
        alone(&mut ssd, read(16, 4));
        assert_eq!(counts(&ssd).hits, before.hits);
        ssd.quiesce();
        ssd.check_invariants().unwrap();
    }
}

#[test]
fn the_least_recently_used_stream_is_replaced() {
    let section = "[read_ahead]\nwindow = \"256 KiB\"\nstreams = 2\n[link]";
    let mut ssd = filled(&[("[link]", section)]);
    let hits = |ssd: &mut Ssd, slots: &[u64]| {
        let before = counts(ssd).hits;
        for &slot in slots {
            alone(ssd, read(slot, 4));
        }
        counts(ssd).hits - before
    };
    assert_eq!(hits(&mut ssd, &[0, 4, 1000, 1004]), 0);
    assert_eq!(hits(&mut ssd, &[8, 1008]), 8);
    // A third stream replaces the oldest stream.
    assert_eq!(hits(&mut ssd, &[2000, 1012, 12]), 4);
}

/// Runs sequential reads among random reads and writes, starting at `from`.
fn mixed(ssd: &mut Ssd, from: u32) -> Vec<Completion> {
    let mut random = Prng::new(u64::from(from) + 1);
    let half = user_slots(ssd) / 2;
    closed_loop(ssd, 4, 400, |n| {
        let slot = u64::from(from + n / 2) * 4;
        match n % 8 {
            1 => write(random.below(2 * half), 1),
            3 => read(random.below(half) * 2, 1),
            5 => write(slot % half + 20, 2),
            _ => read(slot % half, 4),
        }
    })
}

#[test]
fn a_restored_drive_goes_on_alike() {
    let suspends = [("rated_cycles = 1000", "rated_cycles = 1000\nprogram_suspend = \"20 us\"")];
    for more in [&[][..], &PLANES, &suspends] {
        let mut changes = vec![("[link]", SECTION)];
        changes.extend(more);
        let mut ssd = ahead(more);
        for round in 0..6 {
            mixed(&mut ssd, round * 200);
            // Start a read-ahead window so that reads wait at the dies.
            for n in 0..2 {
                alone(&mut ssd, read(8000 + u64::from(round) * 200 + n * 4, 4));
            }
            let image = ssd.save(Vec::new()).unwrap();
            let mut other = Ssd::new(config(&changes)).unwrap();
            other.restore_from(&mut &image[..]).unwrap();
            assert_eq!(other.save(Vec::new()).unwrap(), image);
            let next = (round + 1) * 200;
            assert_eq!(mixed(&mut ssd, next), mixed(&mut other, next));
            assert_eq!(ssd.counters(), other.counters());
        }
        ssd.quiesce();
        ssd.check_invariants().unwrap();
        assert!(counts(&ssd).hits > 0);
    }
}

#[test]
fn causes_add_up_to_the_latency() {
    for more in [&[][..], &PLANES] {
        let mut changes = vec![("[link]", SECTION)];
        changes.extend(more);
        let mut ssd: Ssd<Attribution> = Ssd::recording(config(&changes)).unwrap();
        (0..10_000).for_each(|slot| ssd.fast_forward(&write(slot, 1)));
        ssd.end_fast_forward();
        let mut submitted = vec![Nanos::ZERO; 2000];
        let (mut issued, mut done) = (0, 0);
        while done < 2000 {
            while issued < 2000 && issued < done + 6 {
                submitted[issued] = ssd.now();
                let slot = issued as u64 * 4;
                let io = if issued % 5 == 4 { write(slot, 1) } else { read(slot, 4) };
                ssd.submit(submitted[issued], Command { tag: issued as u32, ..io });
                issued += 1;
            }
            let completion = ssd.step(Nanos::MAX).unwrap();
            let spent: u64 = ssd.time_by_cause().unwrap().0.iter().map(|time| time.0).sum();
            assert_eq!(spent, (completion.at - submitted[completion.tag as usize]).0);
            done += 1;
        }
        assert!(ssd.counters().read_ahead.unwrap().hits > 0);
    }
}

#[test]
fn impossible_sections_are_refused() {
    for (keys, what) in [
        ("after = 2", "window"),
        ("window = \"1 KiB\"", "it must be 4 KiB to 16 MiB"),
        ("window = \"32 MiB\"", "it must be 4 KiB to 16 MiB"),
        ("window = \"1 MiB\"\nstreams = 0", "streams"),
    ] {
        assert_section_refused("read_ahead", keys, "", what);
    }
    let others = "window = \"1 MiB\"\n[slc_cache]\nsize = \"4 MiB\"\nprogram = \"200 us\"\n\
                  read = \"25 us\"";
    assert_section_refused("read_ahead", others, "", "slc_cache");
}
