//! Tests background firmware work against closed-form results, and at the limits of its parameters.

use crate::common::{
    self, BUS_SLOT, LINK_SLOT, alone, closed_loop, command, read, user_slots, write,
};
use writecliff_base::{Nanos, Prng};
use writecliff_ssd::mechanisms::housekeeping::Housekeeping;
use writecliff_ssd::{Drive, Operation, Ssd};

const CONTROLLER: u64 = 2_000 + 5_000;
const LINK_COMMAND: u64 = 3_000;
const FLASH_COMMAND: u64 = 1_000;
const READ: u64 = CONTROLLER + FLASH_COMMAND + 50_000 + BUS_SLOT + LINK_COMMAND + LINK_SLOT;

fn section(keys: &str) -> Vec<(&'static str, String)> {
    vec![("[link]", format!("[housekeeping]\n{keys}\n[link]"))]
}

/// Returns a drive with these keys in the section, every page on flash and an empty buffer.
fn settled(keys: &str) -> Ssd {
    settled_with(&section(keys))
}

fn settled_with(changes: &[(&'static str, String)]) -> Ssd {
    let changes: Vec<(&str, &str)> = changes.iter().map(|(a, b)| (*a, b.as_str())).collect();
    let mut ssd = common::drive(&changes);
    for slot in 0..user_slots(&ssd) {
        ssd.fast_forward(&write(slot, 1));
    }
    ssd.end_fast_forward();
    alone(&mut ssd, command(Operation::Flush, 0, 0, 0));
    ssd.quiesce();
    ssd
}

/// Returns the latency of a read of one slot (of a fast page) on `die`, submitted at time `at`.
fn read_at(ssd: &mut Ssd, die: u32, at: Nanos) -> u64 {
    ssd.idle_until(at);
    alone(ssd, read(u64::from(die) * 4, 1))
}

#[test]
fn a_read_waits_for_media_work_that_began_in_the_silence() {
    let keys = "media_interval = \"1 s\"\nmedia_time = \"2 ms\"";
    let reaches_die_at_end = |before: u64, after: u64| {
        let mut ssd = settled(keys);
        // The schedule depends only on the device file and the seed.
        let mut schedule = Housekeeping::of(ssd.config()).unwrap();
        let next = schedule.next_media(Nanos::from_secs(100)).unwrap();
        let ends = next.1 + Nanos::from_micros(2_000);
        read_at(&mut ssd, next.0, ends + Nanos(after) - Nanos(CONTROLLER + before))
    };
    assert_eq!(reaches_die_at_end(0, 0), READ, "ready at t");
    assert_eq!(reaches_die_at_end(1, 0), READ + 1, "blocked at t - 1");
    assert_eq!(reaches_die_at_end(900_000, 0), READ + 900_000);
    assert_eq!(reaches_die_at_end(0, 5_000), READ);
}

#[test]
fn media_work_is_suspended_only_where_that_is_allowed() {
    let keys = "media_interval = \"1 s\"\nmedia_time = \"2 ms\"";
    let part = ("rated_cycles = 1000", "rated_cycles = 1000\nprogram_suspend = \"20 us\"".into());
    let half_way = |extra: &str| {
        let mut changes = section(&format!("{keys}\n{extra}"));
        changes.push(part.clone());
        let mut ssd = settled_with(&changes);
        let mut schedule = Housekeeping::of(ssd.config()).unwrap();
        let next = schedule.next_media(Nanos::from_secs(7)).unwrap();
        read_at(&mut ssd, next.0, next.1 + Nanos::from_micros(1_000) - Nanos(CONTROLLER))
    };
    assert_eq!(half_way("media_suspendable = true"), READ + 20_000);
    assert_eq!(half_way(""), READ + 20_000);
    assert_eq!(half_way("media_suspendable = false"), READ + 1_000_000);
}

#[test]
fn media_work_under_load_delays_reads_as_a_queue_of_its_own_would() {
    // Each operation occupies one of 4 dies for 200 us every 1 ms, so each die is busy for 5 % of
    // the time.
    let mut ssd =
        settled("media_interval = \"1 ms\"\nmedia_time = \"200 us\"\nmedia_suspendable = false");
    let (user, mut random) = (user_slots(&ssd), Prng::new(8));
    let (count, mut total, mut unloaded) = (40_000_u64, 0, 0);
    for _ in 0..count {
        let at = ssd.now() + Nanos(100_000 + random.below(900_000));
        let slot = random.below(user);
        ssd.idle_until(at);
        total += alone(&mut ssd, read(slot, 1));
        unloaded += READ + if slot / 16 % 2 == 1 { 20_000 } else { 0 };
    }
    let (share, time) = (0.05, 200_000.0);
    let expected = share * time / 2.0 / (1.0 - share); // M/D/1 (Pollaczek, Khinchine)
    let wait = (total - unloaded) as f64 / count as f64;
    assert!((wait / expected - 1.0).abs() < 0.08, "waited {wait:.0} ns, expected {expected:.0}");
}

#[test]
fn media_work_goes_on_at_its_pace_while_commands_are_in_flight() {
    let mut ssd = settled("media_interval = \"1 ms\"\nmedia_time = \"100 us\"");
    let user = user_slots(&ssd);
    let (start, before) = (ssd.now(), ssd.counters().housekeeping.unwrap().media_operations);
    let mut random = Prng::new(8);
    closed_loop(&mut ssd, 8, 50_000, |_| read(random.below(user), 1));
    let intervals = (ssd.now() - start).0 / 1_000_000;
    let done = ssd.counters().housekeeping.unwrap().media_operations - before;
    assert!(intervals > 500 && done.abs_diff(intervals) <= 1, "{done} in {intervals} ms");
}

#[test]
fn a_silent_drive_comes_to_rest_and_long_silence_costs_nothing() {
    let mut ssd = settled("media_interval = \"10 us\"\nmedia_time = \"20 us\"");
    alone(&mut ssd, read(0, 1));
    ssd.quiesce();
    let rest = ssd.now();
    ssd.quiesce();
    assert_eq!(ssd.now(), rest);
    let before = ssd.counters().housekeeping.unwrap().media_operations;
    // A year: 3e12 intervals.
    ssd.idle_until(rest + Nanos::from_secs(365 * 86_400));
    alone(&mut ssd, read(0, 1));
    assert!(ssd.counters().housekeeping.unwrap().media_operations - before < 100);
}

#[test]
fn a_page_of_the_journal_follows_what_is_written() {
    let rate = |keys: &str| {
        let mut ssd = settled(keys);
        let user = user_slots(&ssd);
        let done = closed_loop(&mut ssd, 32, 600, |n| write(u64::from(n) * 16 % (user - 16), 16));
        let bytes = 300.0 * 65_536.0;
        (bytes / (done[599].at - done[299].at).as_secs_f64(), ssd)
    };
    let (free, _) = rate("hiccup_probability = 0\nhiccup_time = \"1 us\"");
    let (bound, mut ssd) = rate("journal_interval = \"256 KiB\"\njournal_time = \"4 ms\"");
    // A 256 KiB read takes the same time as before, plus 4 ms on one of four dies.
    let interval = 262_144.0;
    let expected = interval / (interval / free + 4e-3 / 4.0);
    assert!((bound / expected - 1.0).abs() < 0.03, "{bound:.0} B/s, expected {expected:.0}");
    ssd.quiesce();
    let programmed = ssd.ftl().counters().programmed_slots * 4096;
    let filled = user_slots(&ssd) * 4096; // Fast-forward has written these slots before.
    let journal = ssd.counters().housekeeping.unwrap().journal_programs;
    assert_eq!(journal, (programmed - filled) / 262_144);
}

#[test]
fn a_checkpoint_stops_the_firmware_for_all_commands_after_it() {
    // A 16 KiB page is a program unit here, and each program ends with a checkpoint.
    let latency = |after_program: i64| {
        let mut ssd = settled("checkpoint_interval = \"16 KiB\"\ncheckpoint_time = \"5 ms\"");
        ssd.idle_until(ssd.now() + Nanos::from_secs(1));
        let written = ssd.now();
        let arrived = written.0 + alone(&mut ssd, write(0, 4));
        let programmed = arrived + FLASH_COMMAND + 4 * BUS_SLOT + 400_000;
        let at = Nanos(programmed.checked_add_signed(after_program).unwrap());
        let checkpoints = ssd.counters().housekeeping.unwrap().checkpoints;
        let latency = read_at(&mut ssd, 3, at);
        assert_eq!(ssd.counters().housekeeping.unwrap().checkpoints, checkpoints + 1);
        latency
    };
    assert_eq!(latency(-1), READ, "decoded before the firmware stops");
    assert_eq!(latency(0), READ + 5_000_000);
    assert_eq!(latency(2_000_000), READ + 3_000_000);
    assert_eq!(latency(4_999_999), READ + 1);
    assert_eq!(latency(5_000_000), READ);
}

#[test]
fn a_checkpoint_that_stops_writes_lets_reads_pass() {
    let section = "[housekeeping]\ncheckpoint_interval = \"16 KiB\"\ncheckpoint_time = \"50 ms\"\n\
                   checkpoint_stops = \"writes\"\n[link]";
    let mut ssd = common::drive(&[common::PLACING[0], ("[link]", section)]);
    let begun = ssd.now();
    (0..4).for_each(|slot| assert!(alone(&mut ssd, write(slot, 1)) < 50_000));
    ssd.idle_until(begun + Nanos(5_000_000));
    assert_eq!(ssd.counters().housekeeping.unwrap().checkpoints, 1);
    assert!(alone(&mut ssd, read(1, 1)) < 200_000);
    // The core has 50 ms of work on top of the 12.8 ms for the requests that fit in the buffer.
    let opens = begun.0 + 50_000_000 - 12_800_000;
    let waited = alone(&mut ssd, write(9, 1));
    assert!(waited > opens - begun.0 - 6_000_000, "{waited} ns");
    assert!(waited < opens - begun.0, "{waited} ns");
}

#[test]
fn hiccups_have_their_probability_and_do_not_delay_other_commands() {
    let mut ssd = settled("hiccup_probability = 0.05\nhiccup_time = \"400 us\"");
    let (count, mut random) = (20_000, Prng::new(2));
    let rows = user_slots(&ssd) / 32;
    let mut long = 0_u32;
    for _ in 0..count {
        match alone(&mut ssd, read(random.below(rows) * 32, 1)) {
            READ => {}
            other => {
                assert_eq!(other, READ + 400_000);
                long += 1;
            }
        }
    }
    let expected = f64::from(count) * 0.05;
    let deviation = (expected * 0.95).sqrt();
    assert!((f64::from(long) - expected).abs() < 4.0 * deviation, "{long} of {count}");
    assert_eq!(
        ssd.counters().housekeeping.unwrap().hiccups,
        u64::from(long) + hiccups_of_the_flush()
    );

    // All commands are submitted together, and each has a hiccup. The last command completes later
    // by one hiccup, not by the sum of all hiccups.
    let last = |probability: &str| {
        let keys = format!("hiccup_probability = {probability}\nhiccup_time = \"400 us\"");
        let mut ssd = settled(&keys);
        let from = ssd.now();
        let done = closed_loop(&mut ssd, 32, 32, |n| write(u64::from(n), 1));
        (done[31].at - from).0
    };
    assert_eq!(last("1"), last("0") + 400_000);
}

/// Returns the number of hiccups of the single flush that settles a drive.
fn hiccups_of_the_flush() -> u64 {
    settled("hiccup_probability = 0.05\nhiccup_time = \"400 us\"")
        .counters()
        .housekeeping
        .unwrap()
        .hiccups
}

#[test]
fn errors_name_their_line() {
    let rows = [
        ("media_intervall = \"5 ms\"", ":40: ", "media_interval"),
        ("media_time = \"5 ms\"", ":40: ", "without media_interval"),
        ("media_interval = \"5 ms\"", ":39: ", "missing key 'media_time'"),
        (
            "media_interval = \"1 ms\"\nmedia_time = \"4 ms\"",
            ":40: ",
            "100 % of the time of 4 dies",
        ),
        (
            "journal_interval = \"4 KiB\"\njournal_time = \"1 ms\"",
            ":40: ",
            "program unit of 16 KiB",
        ),
        ("checkpoint_time = \"1 ms\"", ":40: ", "without checkpoint_interval"),
        ("checkpoint_stops = \"writes\"", ":40: ", "mapping core"),
        ("checkpoint_stops = \"commands\"", ":40: ", "without checkpoint_interval"),
        ("hiccup_probability = 1.5\nhiccup_time = \"1 ms\"", ":40: ", "outside 0 to 1"),
        ("hiccup_probability = 0.5\nhiccup_time = \"5 s\"", ":41: ", "below 4.29 s"),
        ("journal_interval = 64", ":40: ", "16 KiB"),
    ];
    for (keys, location, what) in rows {
        common::assert_section_refused("housekeeping", keys, location, what);
    }
}
