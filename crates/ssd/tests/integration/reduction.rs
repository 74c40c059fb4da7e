//! Tests the timing of drives with data reduction.

use crate::common::{
    self, alone, assert_section_refused, closed_loop, drive, precondition, read, user_slots, write,
};
use writecliff_base::{Lpn, Prng};
use writecliff_host_interface::Content;
use writecliff_ssd::{Command, Drive, Ssd};

const WITHOUT_CACHE: (&str, &str) = ("write_cache = true", "write_cache = false");

fn data(sectors: u32) -> Content {
    Content { sectors, ..Content::INCOMPRESSIBLE }
}

fn repeat(of: u64) -> Content {
    Content { same_as: Lpn(of as u32), ..Content::INCOMPRESSIBLE }
}

/// Returns the time per command in ns of `count` sequential writes of 8 slots, each of which
/// compresses to `sectors`.
fn sequential(ssd: &mut Ssd, sectors: u32, count: u32) -> u64 {
    let start = ssd.now();
    let done = closed_loop(ssd, 8, count, |n| Command {
        content: data(sectors),
        ..write(u64::from(n) * 8, 8)
    });
    (done.last().unwrap().at - start).0 / u64::from(count)
}

#[test]
fn what_compression_leaves_bounds_the_flash_not_the_link() {
    let fresh = || drive(&common::REDUCTION);
    let full = sequential(&mut fresh(), 8, 1000);
    let half = sequential(&mut fresh(), 4, 1000);
    let ratio = full as f64 / half as f64;
    assert!((1.85..2.05).contains(&ratio), "half the data, {ratio} times as fast");
    // At a compression ratio of one eighth, the flash could absorb 640 MB/s. The link sends 8 slots
    // with an overhead of 3 us.
    let eighth = sequential(&mut fresh(), 1, 1000);
    let link = 8 * common::LINK_SLOT + 3_000;
    assert!((link..link + link / 20).contains(&eighth), "{eighth} ns on a link of {link}");
}

#[test]
fn a_controller_reset_closes_units_with_pieces() {
    let coarse = common::REDUCTION[0].1.replace("512 B", "1 KiB");
    let mut ssd = drive(&[(common::REDUCTION[0].0, &coarse)]);
    for count in 1..60 {
        sequential(&mut ssd, 3, count);
        ssd.controller_reset();
        assert_eq!(ssd.check_invariants(), Ok(()));
    }
}

#[test]
fn incompressible_data_take_the_time_that_they_take_elsewhere() {
    // Without power-loss protection, erases on plain drives wait for the data that replace other
    // data.
    let protected = ("power_loss_protection = false", "power_loss_protection = true");
    let mut plain = drive(&[protected]);
    let mut reducing = drive(&[common::REDUCTION[0], protected]);
    let run = |ssd: &mut Ssd| {
        precondition(ssd, 2);
        let user = user_slots(ssd);
        let mut random = Prng::new(9);
        closed_loop(ssd, 16, 20_000, |n| {
            let slot = random.below(user - 4);
            if n % 3 == 0 { read(slot, 4) } else { write(slot, 1 + n % 4) }
        })
    };
    // The times are equal because both drives use the same amount of buffer space.
    assert_eq!(run(&mut plain), run(&mut reducing));
}

#[test]
fn spare_space_grows_by_what_is_saved() {
    let waf = |sectors| {
        let mut ssd = drive(&common::REDUCTION);
        let user = user_slots(&ssd);
        let mut random = Prng::new(5);
        let mut pass = |ssd: &mut Ssd, ordered: bool| {
            for n in 0..user {
                let slot = if ordered { n } else { random.below(user) };
                ssd.fast_forward(&Command { content: data(sectors), ..write(slot, 1) });
            }
        };
        pass(&mut ssd, true);
        (0..3).for_each(|_| pass(&mut ssd, false));
        let before = ssd.counters();
        pass(&mut ssd, false);
        let after = ssd.counters();
        let bytes = after.nand_write_bytes - before.nand_write_bytes;
        bytes as f64 / (after.host_write_bytes - before.host_write_bytes) as f64
    };
    let (whole, half) = (waf(8), waf(4));
    assert!(whole > 1.3, "GC has too little work: {whole}");
    assert!((0.5..0.54).contains(&half), "half the data, and next to nothing to move: {half}");
}

#[test]
fn a_read_of_compressed_data_fetches_less() {
    let filled = |sectors| {
        let mut ssd = drive(&common::REDUCTION);
        for n in 0..64 {
            ssd.fast_forward(&Command { content: data(sectors), ..write(n * 8, 8) });
        }
        ssd.end_fast_forward();
        ssd
    };
    // A slot is transferred as a whole slot, regardless of its compressed size.
    let (mut whole, mut eighth) = (filled(8), filled(1));
    assert_eq!(alone(&mut whole, read(0, 1)), alone(&mut eighth, read(0, 1)));
    // 8 slots are two adjacent pages of 4 slots each, or an eighth of that if compressed.
    let (slow, fast) = (alone(&mut whole, read(0, 8)), alone(&mut eighth, read(0, 8)));
    let saved = 3 * common::BUS_SLOT;
    assert!((saved - 1..=saved + 1).contains(&(slow - fast)), "{fast} and {slow} ns");
}

#[test]
fn duplicates_leave_the_buffer_without_a_program() {
    let mut ssd = drive(&common::REDUCTION);
    for n in 0..64 {
        alone(&mut ssd, write(n * 8, 8));
    }
    ssd.quiesce();
    let before = ssd.counters();
    // The writes amount to twenty times the buffer size, and each write takes only the link time.
    let start = ssd.now();
    let done = closed_loop(&mut ssd, 16, 640, |n| Command {
        content: repeat(u64::from(n % 64) * 8),
        ..write(1000 + u64::from(n) * 8, 8)
    });
    let each = (done.last().unwrap().at - start).0 / 640;
    let link = 8 * common::LINK_SLOT + 3_000;
    assert!((link..link + link / 20).contains(&each), "{each} ns on a link of {link}");
    let after = ssd.counters();
    assert_eq!(after.nand_write_bytes, before.nand_write_bytes);
    assert_eq!(after.reduction.unwrap().duplicate_slots, 640 * 8);
    // The originals may be deallocated, but their data are retained for the duplicates.
    ssd.submit(ssd.now(), common::command(writecliff_ssd::Operation::Trim, 0, 512, 0));
    ssd.step(writecliff_base::Nanos::MAX).unwrap();
    ssd.ftl().check_invariants().unwrap();
    assert!(!ssd.ftl().lookup(Lpn(1000)).is_none());
    assert_eq!(ssd.ftl().table().valid.iter().sum::<u32>(), 512 * 8, "of 512 different slots");
}

#[test]
fn without_a_cache_only_data_that_need_flash_wait_for_it() {
    let mut ssd = drive(&[common::REDUCTION[0], WITHOUT_CACHE]);
    let new = alone(&mut ssd, Command { content: data(3), ..write(8, 8) });
    assert!(new > 400_000, "a program takes 400 us: {new} ns");
    let latency = alone(&mut ssd, Command { content: repeat(8), ..write(80, 8) });
    assert!(latency < 100_000, "nothing to program: {latency} ns");
    let gone = alone(&mut ssd, Command { content: repeat(800), ..write(160, 8) });
    assert!(gone > 400_000, "nothing there that it repeats: {gone} ns");
}

#[test]
fn a_repetition_is_durable_when_what_it_repeats_is() {
    let mut ssd = drive(&[common::REDUCTION[0], WITHOUT_CACHE]);
    let start = ssd.now();
    let done = closed_loop(&mut ssd, 2, 2, |n| match n {
        0 => write(8, 8),
        _ => Command { content: repeat(8), ..write(80, 8) },
    });
    assert_eq!(done.len(), 2);
    assert!(done.iter().all(|c| (c.at - start).0 > 400_000), "both wait for a program: {done:?}");
}

#[test]
fn invalid_sections_are_rejected_with_their_line() {
    let both = "compression = true\nduplicates = true\n";
    let small = format!("{both}min_stored_size = \"1 KiB\"\n");
    let cases = [
        (
            "compression = false\nduplicates = false",
            "drive.toml:40: compression",
            "remove the section",
        ),
        ("compression = true", "duplicates", "duplicates"),
        (both, "min_stored_size", "min_stored_size"),
        (
            &format!("{both}min_stored_size = \"3 KiB\""),
            "min_stored_size is 3 KiB",
            "512 B, 1 KiB or 2 KiB",
        ),
        (
            "compression = false\nduplicates = true\nmin_stored_size = \"1 KiB\"",
            "min_stored_size",
            "requires compression",
        ),
        (&format!("{small}leest = 1"), "leest", "unknown"),
        (&format!("{small}[slc_cache]\nsize = \"4 MiB\""), "slc_cache", "modelled together"),
        (
            &format!("{small}[data_placement]\ninterface = \"nvme-fdp\""),
            "data_placement",
            "together",
        ),
    ];
    for (keys, location, what) in cases {
        assert_section_refused("reduction", keys, location, what);
    }
}

#[test]
fn flash_with_too_many_pieces_is_refused() {
    let wide = common::DRIVE.replace("planes_per_die = 1", "planes_per_die = 4").replace(
        "[link]",
        "[reduction]\ncompression = true\nduplicates = false\nmin_stored_size = \"512 B\"\n[link]",
    );
    common::assert_refused(&wide, "min_stored_size", "64 pieces");
}
