//! Planes that read independently: as fast as dies of their own, as long as nothing is written.

use proptest::prelude::*;
use writecliff_base::{Nanos, Prng};
use writecliff_ssd::{Attribution, Command, Operation, Ssd};

use crate::common::{
    BUS_SLOT, DRIVE, LINK_SLOT, assert_refused, closed_loop, config, drive, precondition, read,
    user_slots, write,
};

const ONE_CHANNEL: (&str, &str) = ("channels = 2", "channels = 1");
const INDEPENDENT: (&str, &str) =
    ("rated_cycles = 1000", "rated_cycles = 1000\nindependent_plane_reads = true");
/// One die of four planes.
const PLANES: [(&str, &str); 3] = [
    ONE_CHANNEL,
    ("dies_per_channel = 2", "dies_per_channel = 1"),
    ("planes_per_die = 1", "planes_per_die = 4"),
];
/// Four dies of one plane, on the same channel.
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

/// Time between the ends of two reads that begin together.
fn apart(changes: &[(&str, &str)], slots: [u64; 2]) -> u64 {
    let mut ssd = filled(changes);
    let done = closed_loop(&mut ssd, 2, 2, |n| read(slots[n as usize], 1));
    (done[1].at - done[0].at).0
}

#[test]
fn reads_on_other_planes_do_not_wait_for_each_other() {
    // A page has four slots: slot 4 is on the plane after that of slot 0.
    let (serial, link) = (1_000 + 50_000 + BUS_SLOT, 3_000 + LINK_SLOT);
    assert_eq!(apart(&PLANES, [0, 4]), serial);
    assert_eq!(apart(&independent(), [0, 1]), serial);
    // Sensed together, sent one after the other: on the link, which is slower than the bus.
    assert_eq!(apart(&independent(), [0, 4]), link);
}

#[test]
fn planes_are_as_fast_as_dies() {
    let seconds = |changes: &[(&str, &str)]| {
        let mut ssd = filled(changes);
        let (user, mut random, mut at) =
            (user_slots(&ssd), Prng::new(4), vec![Nanos::ZERO; 20_000]);
        let begun = ssd.now();
        let done = closed_loop(&mut ssd, 32, 20_000, |_| read(random.below(user), 1));
        done.iter().for_each(|done| at[done.tag as usize] = done.at - begun);
        (done[19_999].at - begun).as_secs_f64()
    };
    let (planes, dies, together) = (seconds(&independent()), seconds(&DIES), seconds(&PLANES));
    assert!((planes / dies - 1.0).abs() < 0.01, "{planes} s, dies {dies} s");
    // Without independence a die does one read at a time.
    assert!(together > 2.5 * planes, "{planes} s, together {together} s");
}

#[test]
fn a_read_of_several_pages_takes_their_planes() {
    let mut ssd = filled(&independent());
    // 16 slots are a page of all planes; all are sensed together and leave over one bus.
    let at = ssd.now();
    ssd.submit(at, read(0, 16));
    let done = ssd.step(Nanos::MAX).unwrap();
    // Commands of four planes begin one after the other, and the bus is free when the first is read.
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

    /// Under any mix of reads and writes every command completes, its latency has causes to the
    /// nanosecond.
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
        let user = u64::from(ssd.ftl().config().user_slots);
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
            let one = ssd.step(Nanos::MAX).expect("an outstanding command completes");
            prop_assert_eq!(
                ssd.time_by_cause().unwrap().total(),
                one.at - begun[one.tag as usize]
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
