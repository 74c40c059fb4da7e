//! Tests planes that read independently: they are as fast as separate dies while the host does not
//! write.

use proptest::prelude::*;
use writecliff_base::{Nanos, Prng};
use writecliff_ssd::{Attribution, Command, Drive, Operation, Ssd};

use crate::common::{
    BUS_SLOT, DRIVE, LINK_SLOT, alone, assert_refused, closed_loop, config, drive, precondition,
    read, user_slots, write,
};

const ONE_CHANNEL: (&str, &str) = ("channels = 2", "channels = 1");
const INDEPENDENT: (&str, &str) =
    ("rated_cycles = 1000", "rated_cycles = 1000\nindependent_plane_reads = true");
/// A drive with one die of four planes.
const PLANES: [(&str, &str); 3] = [
    ONE_CHANNEL,
    ("dies_per_channel = 2", "dies_per_channel = 1"),
    ("planes_per_die = 1", "planes_per_die = 4"),
];
/// A drive with four dies of one plane, on the same channel.
const DIES: [(&str, &str); 2] = [ONE_CHANNEL, ("dies_per_channel = 2", "dies_per_channel = 4")];

fn filled(changes: &[(&str, &str)]) -> Ssd {
    let mut ssd = drive(changes);
    precondition(&mut ssd, 0);
    ssd.quiesce();
    ssd
}

fn independent() -> Vec<(&'static str, &'static str)> {
    [&PLANES[..], &[INDEPENDENT]].concat()
}

/// Returns the time between the completions of two reads that start together.
fn time_between(changes: &[(&str, &str)], slots: [u64; 2]) -> u64 {
    let mut ssd = filled(changes);
    let done = closed_loop(&mut ssd, 2, 2, |n| read(slots[n as usize], 1));
    (done[1].at - done[0].at).0
}

#[test]
fn reads_on_other_planes_do_not_wait_for_each_other() {
    // A page has four slots, so slot 4 is on the plane after the plane of slot 0.
    let (serial, link) = (1_000 + 50_000 + BUS_SLOT, 3_000 + LINK_SLOT);
    assert_eq!(time_between(&PLANES, [0, 4]), serial);
    assert_eq!(time_between(&independent(), [0, 1]), serial);
    // The dies sense both pages in parallel and send them one at a time on the link, which is
    // slower than the bus.
    assert_eq!(time_between(&independent(), [0, 4]), link);
}

#[test]
fn planes_are_as_fast_as_dies() {
    let seconds = |changes: &[(&str, &str)]| {
        let mut ssd = filled(changes);
        let (user, mut random, mut at) =
            (user_slots(&ssd), Prng::new(4), vec![Nanos::ZERO; 20_000]);
        let begun = ssd.now();
        let done = closed_loop(&mut ssd, 32, 20_000, |_| read(random.below(user), 1));
        for done in &done {
            at[done.tag as usize] = done.at - begun;
        }
        (done[19_999].at - begun).as_secs_f64()
    };
    let (planes, dies, together) = (seconds(&independent()), seconds(&DIES), seconds(&PLANES));
    assert!((planes / dies - 1.0).abs() < 0.01, "{planes} s, dies {dies} s");
    // If planes do not read independently, a die serves one read at a time.
    assert!(together > 2.5 * planes, "{planes} s, together {together} s");
}

/// Returns the random slot reads per second on one die of `planes` planes, with a long queue.
fn reads_a_second(planes: u32, changes: &[(&str, &str)]) -> f64 {
    let (of_die, blocks) =
        (format!("planes_per_die = {planes}"), format!("blocks_per_plane = {}", 256 / planes));
    let one_die = [
        ONE_CHANNEL,
        ("dies_per_channel = 2", "dies_per_channel = 1"),
        ("planes_per_die = 1", &of_die),
        ("blocks_per_plane = 64", &blocks),
        ("queue_depth = 32", "queue_depth = 512"),
    ];
    let if_several: &[(&str, &str)] = if planes > 1 { &[INDEPENDENT] } else { &[] };
    let mut ssd = filled(&[&one_die[..], if_several, changes].concat());
    let (user, mut random, begun) = (user_slots(&ssd), Prng::new(5), ssd.now());
    // The last reads are not counted, because the queue must be long throughout the measurement.
    let done = closed_loop(&mut ssd, 512, 8_000, |_| read(random.below(user), 1));
    7_400.0 / (done[7_399].at - begun).as_secs_f64()
}

/// Returns the read rate of `planes` planes that always have work. The channel serves in arrival
/// order, so the commands of a round wait for the transfers of the previous round, and sensing
/// waits for its command.
fn theory(planes: u32, sense: f64, transfer: f64) -> f64 {
    let planes = f64::from(planes);
    planes / (planes * (COMMAND + transfer) + sense)
}

const COMMAND: f64 = 1e-6;

#[test]
fn where_sensing_is_the_limit_reads_go_up_with_the_planes() {
    let (sense, transfer) = (500e-6, BUS_SLOT as f64 * 1e-9);
    let slow = [("read = [\"50 us\", \"70 us\"]", "read = [\"500 us\", \"500 us\"]")];
    for planes in [1, 2, 4] {
        let rate = reads_a_second(planes, &slow);
        let expected = theory(planes, sense, transfer);
        assert!((rate / expected - 1.0).abs() < 0.02, "{planes} planes: {rate}, {expected}");
        let most = f64::from(planes) / (COMMAND + sense + transfer);
        assert!(rate <= most, "{planes} planes: {rate}, at most {most}");
    }
}

#[test]
fn where_the_channel_is_the_limit_planes_gain_what_sensing_took() {
    let changes = [
        ("bus = \"400 MB/s\"", "bus = \"8 MB/s\""),
        ("read = [\"50 us\", \"70 us\"]", "read = [\"50 us\", \"50 us\"]"),
    ];
    let (sense, transfer) = (50e-6, 512e-6);
    for planes in [1, 2, 4] {
        let rate = reads_a_second(planes, &changes);
        let expected = theory(planes, sense, transfer);
        assert!((rate / expected - 1.0).abs() < 0.01, "{planes} planes: {rate}, {expected}");
        assert!(rate < 1.0 / (COMMAND + transfer), "more than the channel carries");
    }
}

#[test]
fn writes_and_a_lone_read_take_as_long_as_without() {
    let run = |changes: &[(&str, &str)]| {
        let mut ssd = drive(changes);
        precondition(&mut ssd, 1);
        let (user, mut random) = (user_slots(&ssd), Prng::new(6));
        let written = closed_loop(&mut ssd, 16, 6_000, |_| write(random.below(user), 1));
        assert!(ssd.counters().gc_moved_bytes > 0, "nothing was relocated");
        ssd.quiesce();
        let lone: Vec<u64> =
            (0..100).map(|_| alone(&mut ssd, read(random.below(user), 1))).collect();
        let written: Vec<(u32, Nanos)> = written.iter().map(|done| (done.tag, done.at)).collect();
        (written, lone)
    };
    assert!(run(&PLANES) == run(&independent()), "not the same times");
}

#[test]
fn a_program_waits_for_all_planes_and_reads_behind_it_for_the_program() {
    let changes = [&independent()[..], &[("reads_in_a_row = 8", "reads_in_a_row = 1")]].concat();
    let mut ssd = filled(&changes);
    let at = ssd.now();
    // The test reads two planes while a unit of 16 slots is written, then reads a third plane.
    ssd.submit(at, Command { tag: 1, ..read(0, 1) });
    ssd.submit(at, Command { tag: 2, ..write(1_000, 16) });
    let first = ssd.step(Nanos::MAX).unwrap();
    let second = ssd.step(Nanos::MAX).unwrap();
    let last = first.at.max(second.at);
    ssd.submit(last, Command { tag: 3, ..read(8, 1) });
    let third = ssd.step(Nanos::MAX).unwrap();
    assert_eq!(third.tag, 3);
    assert!((third.at - last).0 > 400_000, "the read did not wait for tPROG");
}

#[test]
fn a_read_of_several_pages_takes_their_planes() {
    let mut ssd = filled(&independent());
    // 16 slots are one page on each plane. All pages are sensed in parallel and transferred over
    // one bus.
    let at = ssd.now();
    ssd.submit(at, read(0, 16));
    let done = ssd.step(Nanos::MAX).unwrap();
    // The commands for the four planes start one after another. The bus is free when the first page
    // has been read.
    let first_page = 2_000 + 5_000 + 1_000 + 50_000 + 4 * BUS_SLOT;
    assert_eq!((done.at - at).0, first_page + 12 * BUS_SLOT + 3_000 + 4 * LINK_SLOT);
}

#[test]
fn planes_that_cannot_read_alone_are_refused() {
    let on = |text: &str| text.replace(INDEPENDENT.0, INDEPENDENT.1);
    assert_refused(&on(DRIVE), "drive.toml", "2 to 8 planes");
    let planes = DRIVE.replace("planes_per_die = 1", "planes_per_die = 2");
    let alone = planes.replace("multi_plane = true", "multi_plane = false");
    assert_refused(&on(&alone), "drive.toml", "multi_plane");
    let parity = planes.replace("[link]", "[die_parity]\nstripe = 2\n[link]");
    assert_refused(&on(&parity), "drive.toml", "not modelled together");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Tests that, under any mix of reads and writes, every command completes and its latency is
    /// attributed to the nanosecond.
    #[test]
    fn no_command_is_lost(
        seed in any::<u64>(),
        depth in 1..40_u32,
        reads in 0..11_u64,
        largest in 1..40_u64,
    ) {
        let commands = |user: u64| -> Vec<Command> {
            let mut random = Prng::new(seed);
            (0..2000).map(|_| {
                let slots = 1 + random.below(largest);
                let slot = random.below(user - slots);
                let slots = slots as u32;
                if random.below(10) < reads { read(slot, slots) } else { write(slot, slots) }
            }).collect()
        };
        let changes = [
            &independent()[..],
            &[("erase = \"3 ms\"", "erase = \"3 ms\"\nprogram_suspend = \"20 us\"")],
        ].concat();
        let mut ssd: Ssd<Attribution> = Ssd::recording(config(&changes)).unwrap();
        let user = u64::from(ssd.ftl().user_slots());
        (0..user).for_each(|slot| ssd.fast_forward(&write(slot, 1)));
        ssd.end_fast_forward();
        let all = commands(user);
        let mut begun = vec![Nanos::ZERO; all.len()];
        let (mut issued, mut done) = (0, 0);
        while done < all.len() {
            while issued < all.len() && issued - done < depth as usize {
                begun[issued] = ssd.now();
                ssd.submit(ssd.now(), Command { tag: issued as u32, ..all[issued] });
                issued += 1;
            }
            let completion = ssd.step(Nanos::MAX).expect("an outstanding command completes");
            prop_assert_eq!(
                ssd.time_by_cause().unwrap().total(),
                completion.at - begun[completion.tag as usize]
            );
            done += 1;
        }
        ssd.quiesce();
        ssd.check_invariants().unwrap();
        let written = all.iter().filter(|c| c.operation == Operation::Write);
        let written: u64 = written.map(|c| u64::from(c.length)).sum();
        prop_assert_eq!(ssd.counters().host_write_bytes, user * 4096 + written);
    }
}
