//! Tests a mapping table that does not fit into the controller: hit rates and throughput against
//! theory, and latencies that add up.

use proptest::prelude::*;
use writecliff_base::{Nanos, Prng};
use writecliff_host_interface::Cause;
use writecliff_ssd::mechanisms::mapping_cache::MappingCacheCounts;
use writecliff_ssd::{Attribution, Command, Drive, DriveCounters, Operation, Ssd, device_file};

use crate::common::{
    BUS_SLOT, DRIVE, LINK_SLOT, SLC, alone, assert_refused, assert_section_refused, closed_loop,
    command, config, precondition, read, user_slots, write,
};

/// The table has 40 translation pages of 16 KiB with one program each: 640 MiB in 4 KiB slots with
/// 4-byte entries.
const LARGE: [(&str, &str); 2] = [
    ("user_capacity = \"40 MiB\"", "user_capacity = \"640 MiB\""),
    ("pages_per_block = 16", "pages_per_block = 256"),
];
const PAGES: u64 = 40;
const SLOTS_PER_PAGE: u64 = 4096;
const IN_CONTROLLER: u64 = 10;
const IN_HOST_MEMORY: u64 = 26;

const SECTION: &str = "[mapping_cache]\nsize = \"160 KiB\"\npage = \"16 KiB\"\nread = \"30 us\"\n\
                       program = \"200 us\"\n";
const HOST_MEMORY: &str = "host_memory_buffer = \"416 KiB\"\nhost_memory_latency = \"2 us\"\n";

/// Time of a page from flash: a command on the bus, tR, and four slots on the bus.
const FROM_FLASH: u64 = 1_000 + 30_000 + 4 * BUS_SLOT;
/// Time of a page from the host: a command and four slots on the link, and the latency.
const FROM_HOST: u64 = 3_000 + 4 * LINK_SLOT + 2_000;

/// Returns a drive with all slots on flash in order, and with `section` before its link section.
fn filled(section: &str, more: &[(&str, &str)]) -> Ssd {
    let with = format!("{section}[link]");
    let mut changes = LARGE.to_vec();
    changes.push(("[link]", &with));
    changes.extend(more);
    let mut ssd = Ssd::new(config(&changes)).unwrap();
    precondition(&mut ssd, 0);
    alone(&mut ssd, command(Operation::Flush, 0, 0, 0));
    ssd.quiesce();
    ssd
}

/// Returns a drive whose cache has been filled with clean pages by reads.
fn clean(section: &str, more: &[(&str, &str)]) -> Ssd {
    let mut ssd = filled(section, more);
    for page in (0..PAGES).chain(0..PAGES) {
        alone(&mut ssd, read(page * SLOTS_PER_PAGE, 1));
    }
    ssd.quiesce();
    ssd
}

fn counts(ssd: &Ssd) -> MappingCacheCounts {
    ssd.counters().mapping_cache.unwrap()
}

/// Returns the differences in the counts of hits, host hits and misses.
fn since(before: MappingCacheCounts, after: MappingCacheCounts) -> [u64; 3] {
    [after.hits - before.hits, after.host_hits - before.host_hits, after.misses - before.misses]
}

#[test]
fn reads_hit_as_often_as_theory_says_and_latencies_add_up() {
    const COUNT: u64 = 20_000;
    for (section, held) in [
        (SECTION.to_owned(), [IN_CONTROLLER, 0]),
        (format!("{SECTION}{HOST_MEMORY}"), [IN_CONTROLLER, IN_HOST_MEMORY - IN_CONTROLLER]),
    ] {
        let (mut ssd, mut whole) = (clean(&section, &[]), filled("", &[]));
        let (user, mut random) = (user_slots(&ssd), Prng::new(5));
        let before = counts(&ssd);
        let mut costs = [0; 3];
        for _ in 0..COUNT {
            let slot = random.below(user);
            let more = alone(&mut ssd, read(slot, 1)) - alone(&mut whole, read(slot, 1));
            let cost = [0, FROM_HOST, FROM_FLASH].iter().position(|&cost| cost == more);
            costs[cost.unwrap_or_else(|| panic!("a read takes {more} ns longer"))] += 1;
        }
        // Each read takes exactly the time of its counted look-ups.
        assert_eq!(costs, since(before, counts(&ssd)));
        // The hit probability of uniform reads equals the cached fraction of the pages.
        let missed = PAGES - held[0] - held[1];
        for (cost, pages) in costs.into_iter().zip([held[0], held[1], missed]) {
            let share = pages as f64 / PAGES as f64;
            let deviation = (share * (1.0 - share) / COUNT as f64).sqrt();
            let measured = cost as f64 / COUNT as f64;
            assert!(
                (measured - share).abs() <= 4.0 * deviation,
                "{measured} of {share}: {section}"
            );
        }
    }
}

#[test]
fn a_small_range_is_read_at_full_speed() {
    let (mut ssd, mut whole) = (clean(SECTION, &[]), filled("", &[]));
    let range = IN_CONTROLLER * SLOTS_PER_PAGE;
    for page in 0..IN_CONTROLLER {
        alone(&mut ssd, read(page * SLOTS_PER_PAGE, 1));
    }
    let (before, mut random) = (counts(&ssd), Prng::new(6));
    for _ in 0..2000 {
        let slot = random.below(range);
        assert_eq!(alone(&mut ssd, read(slot, 1)), alone(&mut whole, read(slot, 1)));
    }
    assert_eq!(since(before, counts(&ssd)), [2000, 0, 0]);
}

/// Returns the random read rate per second at a queue depth of 32.
fn read_rate(ssd: &mut Ssd) -> f64 {
    let (user, mut random) = (user_slots(ssd), Prng::new(8));
    let done = closed_loop(ssd, 32, 20_000, |_| read(random.below(user), 1));
    15_000.0 / (done[19_999].at - done[4_999].at).as_secs_f64()
}

#[test]
fn dies_that_read_the_table_read_fewer_data() {
    // With a fast link and firmware, the dies are the bottleneck.
    let fast = [
        ("bandwidth = \"500 MB/s\"", "bandwidth = \"20 GB/s\""),
        ("command_time = \"2 us\"", "command_time = \"10 ns\""),
        ("bus = \"400 MB/s\"", "bus = \"20 GB/s\""),
        ("command = \"1 us\"", "command = \"10 ns\""),
        ("command = \"3 us\"", "command = \"10 ns\""),
        ("read = [\"50 us\", \"70 us\"]", "read = [\"60 us\", \"60 us\"]"),
    ];
    let memory = HOST_MEMORY.replace("416 KiB", "640 KiB"); // Whole mapping table.
    let all = read_rate(&mut filled("", &fast));
    let part = read_rate(&mut clean(SECTION, &fast));
    let helped = read_rate(&mut clean(&format!("{SECTION}{memory}"), &fast));
    // A read senses its data in 60 us. On a miss, the read also senses a translation page in 30 us.
    let missed = 1.0 - IN_CONTROLLER as f64 / PAGES as f64;
    let expected = 60.0 / (60.0 + missed * 30.0);
    assert!((part / all / expected - 1.0).abs() < 0.05, "{part} of {all}, expected {expected}");
    assert!((helped / all - 1.0).abs() < 0.05, "with the host's memory {helped} of {all}");
}

#[test]
fn random_writes_write_a_page_back_for_each_that_they_load() {
    const COUNT: u32 = 4000;
    // Each write waits for its translation page, so no write meets a page that is being loaded.
    let mut ssd = filled(SECTION, &[("write_cache = true", "write_cache = false")]);
    let (user, mut random) = (user_slots(&ssd), Prng::new(9));
    closed_loop(&mut ssd, 1, 1000, |_| write(random.below(user), 1));
    ssd.quiesce();
    let before = (counts(&ssd), ssd.counters());
    closed_loop(&mut ssd, 1, COUNT, |_| write(random.below(user), 1));
    ssd.quiesce();
    let (after, drive) = (counts(&ssd), ssd.counters());
    let [_, _, misses] = since(before.0, after);
    let (share, count) = (1.0 - IN_CONTROLLER as f64 / PAGES as f64, f64::from(COUNT));
    let deviation = (share * (1.0 - share) / count).sqrt();
    let measured = misses as f64 / count;
    assert!((measured - share).abs() <= 4.0 * deviation, "{measured} of {share}");
    // All translation pages have changed, so each loaded page evicts a changed page, and each
    // program writes one page.
    let written = after.written_slots - before.0.written_slots;
    assert_eq!(written, misses * 4);
    // The total flash write count includes the mapping writes, and no other counter does.
    let of = |counters: &DriveCounters| {
        counters.host_write_bytes + counters.gc_moved_bytes + counters.padding_bytes
    };
    let flash = drive.nand_write_bytes - before.1.nand_write_bytes;
    assert_eq!(flash, of(&drive) - of(&before.1) + written * 4096);
    ssd.ftl().check_invariants().unwrap();
}

#[test]
fn the_table_does_not_change_where_data_are() {
    for more in [&[][..], &SLC] {
        let section = format!("{SECTION}{HOST_MEMORY}");
        let (mut ssd, mut whole) = (filled(&section, more), filled("", more));
        for drive in [&mut ssd, &mut whole] {
            let (user, mut random) = (user_slots(drive), Prng::new(10));
            closed_loop(drive, 1, 3000, |_| write(random.below(user), 1));
            drive.quiesce();
            drive.check_invariants().unwrap();
        }
        assert_eq!(ssd.ftl().digest(), whole.ftl().digest());
    }
}

#[test]
fn both_clocks_hold_the_same_pages() {
    let section = format!("{SECTION}{HOST_MEMORY}");
    let (mut timed, mut fast) = (filled(&section, &[]), filled(&section, &[]));
    let (user, mut random) = (user_slots(&timed), Prng::new(11));
    for _ in 0..2000 {
        let io = write(random.below(user - 8), 1 + random.below(8) as u32);
        alone(&mut timed, io);
        fast.fast_forward(&io);
    }
    fast.end_fast_forward();
    timed.quiesce();
    assert_eq!(counts(&timed).written_slots, counts(&fast).written_slots);
    // Reads reveal which translation pages are cached.
    let before = [counts(&timed), counts(&fast)];
    let counts = [&mut timed, &mut fast].map(|ssd| {
        let mut random = Prng::new(12);
        (0..50).for_each(|_| {
            alone(ssd, read(random.below(user), 1));
        });
        counts(ssd)
    });
    assert_eq!(since(before[0], counts[0]), since(before[1], counts[1]));
}

#[test]
fn commands_on_one_page_wait_for_one_read_of_it() {
    let mut ssd = clean(SECTION, &[]);
    let before = counts(&ssd);
    let (at, page) = (ssd.now(), 20 * SLOTS_PER_PAGE);
    for n in 0..8 {
        ssd.submit(at, Command { tag: n, ..read(page + u64::from(n), 1) });
    }
    let mut done = 0;
    while ssd.step(Nanos::MAX).is_some() {
        done += 1;
    }
    assert_eq!((done, since(before, counts(&ssd))), (8, [7, 0, 1]));
    // A read across two translation pages waits for both pages.
    let before = counts(&ssd);
    alone(&mut ssd, read(31 * SLOTS_PER_PAGE - 2, 4));
    assert_eq!(since(before, counts(&ssd)), [0, 0, 2]);
}

#[test]
fn where_nothing_was_written_there_is_no_table_to_read() {
    let with = format!("{SECTION}[link]");
    let mut ssd = Ssd::new(config(&[LARGE[0], LARGE[1], ("[link]", &with)])).unwrap();
    let user = user_slots(&ssd);
    for page in 0..PAGES {
        alone(&mut ssd, read(page * SLOTS_PER_PAGE, 1));
        alone(&mut ssd, write(page * SLOTS_PER_PAGE, 1));
    }
    assert_eq!(since(MappingCacheCounts::default(), counts(&ssd)), [2 * PAGES, 0, 0]);
    ssd.quiesce();
    ssd.purge();
    let before = counts(&ssd);
    (0..100).for_each(|n| {
        alone(&mut ssd, read(n * user / 100, 1));
    });
    assert_eq!(since(before, counts(&ssd)), [100, 0, 0]);
}

#[test]
fn after_a_power_cut_the_cache_is_empty() {
    let safe = [("power_loss_protection = false", "power_loss_protection = true")];
    let mut ssd = filled(SECTION, &safe);
    for n in 0..40 {
        let at = ssd.now();
        ssd.submit(at, write(n * SLOTS_PER_PAGE, 1));
        ssd.step(Nanos::MAX).unwrap();
    }
    ssd.cut_power();
    let before = counts(&ssd);
    (0..PAGES).for_each(|page| {
        alone(&mut ssd, read(page * SLOTS_PER_PAGE, 1));
    });
    assert_eq!(since(before, counts(&ssd)), [0, 0, PAGES]);
    ssd.quiesce();
    ssd.check_invariants().unwrap();
}

#[test]
fn the_wait_for_the_table_has_a_cause_of_its_own() {
    let with = format!("{SECTION}[link]");
    let changes = [LARGE[0], LARGE[1], ("[link]", &with[..])];
    let mut ssd: Ssd<Attribution> = Ssd::recording(config(&changes)).unwrap();
    (0..PAGES).for_each(|page| ssd.fast_forward(&write(page * SLOTS_PER_PAGE, 16)));
    ssd.end_fast_forward();
    // Meanwhile, changed pages are written back, and the last pages stay in the controller.
    let all = (0..PAGES).chain(0..PAGES).map(|page| (page, None));
    let then = [(0, Some(FROM_FLASH)), (0, Some(0)), (PAGES - 1, Some(0))];
    for (page, waited) in all.chain(then) {
        let at = ssd.now();
        ssd.submit(at, read(page * SLOTS_PER_PAGE, 1));
        let done = ssd.step(Nanos::MAX).unwrap();
        let spent = ssd.time_by_cause().unwrap();
        assert_eq!(spent.total(), done.at - at);
        if let Some(waited) = waited {
            assert_eq!(spent.of(Cause::MappingTable), Nanos(waited));
        }
        ssd.quiesce();
    }
}

#[test]
fn a_smaller_drive_holds_the_same_share() {
    let with = format!("{SECTION}{HOST_MEMORY}[link]");
    let config = config(&[LARGE[0], LARGE[1], ("[link]", &with)]);
    let changes = device_file::scaled(&config, 2.0, writecliff_base::Bytes(4096));
    let of = |key: &str| {
        let change = changes.iter().find(|change| change.key == format!("mapping_cache.{key}"));
        change.unwrap().value.to_string()
    };
    assert_eq!(of("size"), "\"81920 B\"");
    assert_eq!(of("host_memory_buffer"), "\"212992 B\"");
}

#[test]
fn what_cannot_be_held_is_refused() {
    let refused = |from: &str, to: &str, what: &str| {
        let section = format!("{SECTION}{HOST_MEMORY}");
        assert!(section.contains(from));
        let text = DRIVE.replace("[link]", &format!("{}[link]", section.replace(from, to)));
        assert_refused(&text, "drive.toml", what);
    };
    refused("\"16 KiB\"", "\"12 KiB\"", "power of two");
    refused("\"16 KiB\"", "\"32 KiB\"", "page of every plane");
    refused("\"160 KiB\"", "\"8 KiB\"", "translation page");
    refused("\"416 KiB\"", "\"160 KiB\"", "host_memory_buffer");
    refused("host_memory_buffer = \"416 KiB\"\n", "", "host_memory_buffer");
    refused("read = \"30 us\"\n", "", "read");
    let parity = "[mapping_cache]\nsize = \"160 KiB\"\nread = \"30 us\"\nprogram = \"200 us\"";
    assert_section_refused(
        "die_parity",
        &format!("stripe = 1\n{parity}"),
        "drive.toml",
        "together",
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Tests that, for any workload, every command completes, and that a drive that is saved and
    /// restored between two commands continues unchanged.
    #[test]
    fn a_saved_drive_continues(
        seed in any::<u64>(),
        size in 1..40_u64,
        memory in prop::option::of(1..40_u64),
        page in 0..3_u32,
        count in 1..200_u32,
        depth in 1..20_u32,
    ) {
        let page = 4 << page;
        let memory = memory.map_or(String::new(), |more| format!(
            "host_memory_buffer = \"{} KiB\"\nhost_memory_latency = \"2 us\"\n",
            (size + more) * page
        ));
        let with = format!(
            "[mapping_cache]\nsize = \"{} KiB\"\npage = \"{page} KiB\"\nread = \"30 us\"\n\
             program = \"200 us\"\n{memory}[link]",
            size * page
        );
        let changes = [LARGE[0], LARGE[1], ("[link]", &with[..])];
        let mut ssd = Ssd::new(config(&changes)).unwrap();
        let (user, mut random) = (user_slots(&ssd), Prng::new(seed));
        (0..user / 16).for_each(|n| ssd.fast_forward(&write(n * 16, 16)));
        ssd.end_fast_forward();
        let mut next = |_| {
            let slots = 1 + random.below(32) as u32;
            let slot = random.below(user - u64::from(slots));
            if random.below(2) == 0 { read(slot, slots) } else { write(slot, slots) }
        };
        closed_loop(&mut ssd, depth, count, &mut next);
        let saved = ssd.save(Vec::new()).unwrap();
        let mut restored = Ssd::new(config(&changes)).unwrap();
        restored.restore_from(&mut &saved[..]).unwrap();
        prop_assert_eq!(&restored.save(Vec::new()).unwrap(), &saved);
        let commands: Vec<Command> = (0..count).map(&mut next).collect();
        let done = [&mut ssd, &mut restored].map(|ssd| {
            closed_loop(ssd, depth, count, |n| commands[n as usize])
        });
        prop_assert_eq!(&done[0], &done[1]);
        prop_assert_eq!(ssd.save(Vec::new()).unwrap(), restored.save(Vec::new()).unwrap());
        ssd.quiesce();
        ssd.check_invariants().unwrap();
    }
}
