//! Tests the exact energy of single operations, and the energy of workloads against closed-form
//! results.

use crate::common::{
    self, BUS_SLOT, LINK_SLOT, alone, closed_loop, command, drive, read, user_slots, write,
};
use writecliff_base::{Nanos, Prng};
use writecliff_ssd::mechanisms::power::Energy;
use writecliff_ssd::{Drive, Operation, Ssd};

const WATTS: &str = "[power]\nidle = \"1.5 W\"\nactive = \"500 mW\"\nread = \"40 mW\"\n\
                     program = \"60 mW\"\nerase = \"80 mW\"\ntransfer = \"100 mW\"\n\
                     link = \"200 mW\"\n[link]";
const LINK_COMMAND: u64 = 3_000;
const FLASH_COMMAND: u64 = 1_000;

fn settled(changes: &[(&str, &str)]) -> Ssd {
    let mut changes = changes.to_vec();
    changes.push(("[link]", WATTS));
    let mut ssd = common::drive(&changes);
    for slot in 0..user_slots(&ssd) {
        ssd.fast_forward(&write(slot, 1));
    }
    ssd.end_fast_forward();
    alone(&mut ssd, command(Operation::Flush, 0, 0, 0));
    ssd.quiesce();
    ssd
}

fn energy(ssd: &Ssd) -> Energy {
    ssd.counters().energy.unwrap()
}

fn joules(watts: f64, nanos: u64) -> f64 {
    watts * nanos as f64 / 1e9
}

fn close(got: f64, expected: f64) {
    assert!((got - expected).abs() < 1e-12 + 1e-9 * expected, "{got:e} J, expected {expected:e}");
}

#[test]
fn a_silent_drive_takes_idle_power() {
    let mut ssd = settled(&[]);
    let before = energy(&ssd);
    ssd.idle_until(ssd.now() + Nanos::from_secs(3600));
    close(energy(&ssd).total() - before.total(), 1.5 * 3600.0);
    close(energy(&ssd).flash, before.flash);
}

#[test]
fn a_read_takes_its_die_its_channel_the_link_and_the_controller() {
    let mut ssd = settled(&[]);
    let before = energy(&ssd);
    let latency = alone(&mut ssd, read(0, 1));
    let after = energy(&ssd);
    close(after.controller - before.controller, joules(2.0, latency));
    close(after.flash - before.flash, joules(0.04, 50_000));
    let carried = joules(0.1, FLASH_COMMAND + BUS_SLOT) + joules(0.2, LINK_COMMAND + LINK_SLOT);
    close(after.transfer - before.transfer, carried);
}

#[test]
fn a_program_counts_once_however_often_it_is_suspended() {
    let parts: [&[(&str, &str)]; 2] =
        [&[], &[("rated_cycles = 1000", "rated_cycles = 1000\nprogram_suspend = \"20 us\"")]];
    for changes in parts {
        let mut ssd = settled(changes);
        let before = energy(&ssd);
        alone(&mut ssd, write(0, 4));
        // The reads go to the programming die, one at a time.
        for _ in 0..3 {
            alone(&mut ssd, read(128, 1));
        }
        ssd.quiesce();
        let flash = joules(0.06, 400_000) + 3.0 * joules(0.04, 50_000);
        close(energy(&ssd).flash - before.flash, flash);
    }
}

#[test]
fn an_erase_of_everything_takes_all_dies() {
    let mut ssd = settled(&[]);
    let before = energy(&ssd);
    let from = ssd.now();
    ssd.purge();
    close(energy(&ssd).flash - before.flash, joules(0.08, 3_000_000 * 64 * 4));
    close(energy(&ssd).controller - before.controller, joules(1.5, (ssd.now() - from).0));
}

#[test]
fn sustained_writes_take_what_the_work_of_the_dies_takes() {
    let mut ssd = settled(&[]);
    let (user, mut random) = (user_slots(&ssd), Prng::new(3));
    let (from, before, counted) = (ssd.now(), energy(&ssd), *ssd.ftl().counters());
    let erases = ssd.ftl().wear().total();
    closed_loop(&mut ssd, 16, 20_000, |_| write(random.below(user), 1));
    ssd.quiesce();
    let after = energy(&ssd);
    let programs = ssd.ftl().counters().programs - counted.programs;
    // Half of the pages are slow, so a program takes 0.8 ms on average. Every erase occupies four
    // dies.
    let by_dies = joules(0.06, programs * 800_000)
        + joules(0.08, (ssd.ftl().wear().total() - erases) * 4 * 3_000_000);
    let relocation = after.flash - before.flash - by_dies;
    assert!(relocation > 0.0 && relocation < 0.1 * by_dies, "reads by GC take {relocation} J");
    let took = (ssd.now() - from).as_secs_f64();
    let controller = after.controller - before.controller;
    assert!((controller / (2.0 * took) - 1.0).abs() < 0.01, "active all the time");
}

#[test]
fn of_erases_of_portions_one_in_so_many_takes_its_time() {
    let erasing = |portions: &str| {
        let part = format!("rated_cycles = 1000\nerase_portions = {portions}");
        let watts = WATTS.replace("40 mW", "0 W").replace("60 mW", "0 W");
        let changes = [("rated_cycles = 1000", part.as_str()), ("[link]", watts.as_str())];
        let mut ssd = drive(&changes);
        let (user, mut random) = (user_slots(&ssd), Prng::new(3));
        closed_loop(&mut ssd, 16, 60_000, |_| write(random.below(user), 1));
        ssd.quiesce();
        let dies = energy(&ssd).flash / joules(0.08, 3_000_000);
        let erases = 4 * ssd.ftl().wear().total();
        let before = energy(&ssd);
        ssd.purge();
        let purging = (energy(&ssd).flash - before.flash) / joules(0.08, 3_000_000);
        (dies / erases as f64, purging)
    };
    let (all, purging) = erasing("1");
    close(all, 1.0);
    close(purging, 256.0); // Each die performs 64 erases.
    let (some, purging) = erasing("8");
    assert!((8.0 * some - 1.0).abs() < 0.15, "{some}");
    close(purging, 32.0);
}

#[test]
fn writing_without_time_takes_no_energy() {
    let mut ssd = settled(&[]);
    let before = energy(&ssd);
    (0..1000).for_each(|slot| ssd.fast_forward(&write(slot, 1)));
    ssd.end_fast_forward();
    assert_eq!(energy(&ssd), before);
}

#[test]
fn energy_goes_on_in_a_restored_drive() {
    let mut ssd = settled(&[]);
    closed_loop(&mut ssd, 4, 500, |n| write(u64::from(n), 1));
    let saved = ssd.save(Vec::new()).unwrap();
    let mut restored = settled(&[]);
    restored.restore_from(&mut &saved[..]).unwrap();
    assert_eq!(energy(&restored), energy(&ssd));
    for drive in [&mut ssd, &mut restored] {
        closed_loop(drive, 4, 500, |n| write(u64::from(n), 1));
    }
    assert_eq!(energy(&restored), energy(&ssd));
}

#[test]
fn a_drive_without_the_section_has_no_energy() {
    assert!(drive(&[]).counters().energy.is_none());
}

#[test]
fn errors_name_their_line() {
    let rows = [
        ("idle = 1.2", ":40: ", "\"1.5 W\""),
        ("idle = \"1.2 V\"", ":40: ", "W, mW, uW"),
        ("active = \"1 W\"", ":39: ", "missing key 'idle'"),
        ("idle = \"1 W\"\nerases = \"1 W\"", ":41: ", "erase"),
    ];
    for (keys, location, what) in rows {
        common::assert_section_refused("power", keys, location, what);
    }
}
