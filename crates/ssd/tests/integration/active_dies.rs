//! Tests a limit on active dies: performance and power decrease with the limit, and nothing else
//! changes.

use writecliff_base::{Nanos, Prng};
use writecliff_ssd::attribution::Recorder;
use writecliff_ssd::{
    Attribution, Command, Completion, DeviceConfig, Drive, Operation, Ssd, Volatile,
};

use crate::common::{self, BUS_SLOT, assert_section_refused, command, read, write};

const DIES: u32 = 4;
const SUSPENDS: (&str, &str) = (
    "rated_cycles = 1000",
    "rated_cycles = 1000\nprogram_suspend = \"20 us\"\nerase_suspend = \"20 us\"",
);

/// Returns the drive with round numbers plus a power section with these limits and this power
/// state.
fn config(limits: &str, state: usize) -> DeviceConfig {
    let section = format!(
        "[power]\nidle = \"1 W\"\nread = \"500 mW\"\nprogram = \"1 W\"\nerase = \"1 W\"\n{limits}\n\
         [link]"
    );
    let mut config = common::config(&[SUSPENDS, ("[link]", &section)]);
    config.power_state = state;
    config
}

fn limited(dies: u32) -> Ssd<Attribution> {
    settled(Ssd::recording(config(&format!("max_active_dies = {dies}"), 0)).unwrap())
}

fn settled<R: Recorder>(mut ssd: Ssd<R>) -> Ssd<R> {
    let user = u64::from(ssd.ftl().user_slots());
    let mut random = Prng::new(3);
    (0..user).for_each(|slot| ssd.fast_forward(&write(slot, 1)));
    (0..2 * user).for_each(|_| ssd.fast_forward(&write(random.below(user), 1)));
    ssd.end_fast_forward();
    ssd
}

fn run<R: Recorder>(
    ssd: &mut Ssd<R>,
    count: u32,
    mut next: impl FnMut(&mut Prng) -> Command,
) -> Vec<Completion> {
    let (mut done, mut random) = (Vec::new(), Prng::new(7));
    for tag in 0..32 {
        let at = ssd.now();
        ssd.submit(at, Command { tag, ..next(&mut random) });
    }
    while done.len() < count as usize {
        let completion = ssd.step(Nanos::MAX).expect("every command completes");
        done.push(completion);
        let tag = 31 + done.len() as u32;
        if tag < count {
            ssd.submit(completion.at, Command { tag, ..next(&mut random) });
        }
    }
    done
}

fn any(random: &mut Prng) -> Command {
    let slot = random.below(8_000);
    if random.below(2) == 0 { read(slot, 1) } else { write(slot, 1) }
}

/// Runs a workload; returns its duration in seconds and its mean power in watts.
fn measured<R: Recorder>(ssd: &mut Ssd<R>, next: impl FnMut(&mut Prng) -> Command) -> (f64, f64) {
    let joules = |ssd: &Ssd<R>| ssd.meters(ssd.now()).joules.unwrap();
    let (from, before) = (ssd.now(), joules(ssd));
    run(ssd, 6_000, next);
    let seconds = (ssd.now() - from).as_secs_f64();
    (seconds, (joules(ssd) - before) / seconds)
}

#[test]
fn one_active_die_serves_one_read_after_the_other() {
    let (seconds, watts) = measured(&mut limited(1), |random| read(random.below(8_000), 1));
    // Command time plus a mean tR of 60 us. The next die is one of the other three dies. The die on
    // the same channel waits until the data have been transferred.
    let each = 61e-6 + BUS_SLOT as f64 / 3.0 * 1e-9;
    let expected = 6_000.0 * each;
    assert!((seconds / expected - 1.0).abs() < 0.02, "{seconds} s, expected {expected}");
    assert!((watts - 1.0 - 0.5 * 60e-6 / each).abs() < 0.02, "{watts} W");
}

#[test]
fn speed_and_power_fall_with_the_limit_and_power_stays_below_the_bound() {
    for load in [any, |random: &mut Prng| write(random.below(8_000), 1)] {
        let measured: Vec<(f64, f64)> =
            (1..=DIES).map(|dies| measured(&mut limited(dies), load)).collect();
        for pair in measured.windows(2) {
            assert!(pair[0].0 > 1.1 * pair[1].0, "slower with fewer dies: {measured:?}");
            assert!(pair[0].1 < pair[1].1, "less power with fewer dies: {measured:?}");
        }
        for (dies, (_, watts)) in (1..).zip(measured) {
            let bound = limited(dies).config().power_states()[0];
            assert_eq!(bound, (dies, 1.0 + f64::from(dies)));
            assert!(watts < bound.1, "{watts} W with {dies} dies");
        }
    }
}

#[test]
fn a_limit_of_all_dies_changes_nothing() {
    let mut all = limited(DIES);
    let mut none = settled(Ssd::new(config("", 0)).unwrap());
    assert_eq!(run(&mut all, 8_000, any), run(&mut none, 8_000, any));
    assert_eq!(all.counters(), none.counters());
}

#[test]
fn a_power_state_chooses_the_limit_and_is_no_part_of_the_device() {
    let limits = "max_active_dies = [4, 2, 1]";
    assert_eq!(config(limits, 0).canonical, config(limits, 2).canonical);
    let mut chosen = settled(Ssd::<Attribution>::recording(config(limits, 1)).unwrap());
    assert_eq!(run(&mut chosen, 2_000, any), run(&mut limited(2), 2_000, any));
    // Power state 0 has no limit, so a drive without limits has only this state.
    assert!(Ssd::new(config(limits, 0)).is_ok());
    let refused = Ssd::new(config(limits, 1)).err().unwrap();
    assert_eq!(refused.key, "max_active_dies");
}

/// Returns a drive where some dies are programming and others wait to program.
fn working(limits: &str, state: usize) -> Ssd<Attribution> {
    let mut ssd = settled(Ssd::recording(config(limits, state)).unwrap());
    run(&mut ssd, 300, |random| write(random.below(8_000), 1));
    assert!(ssd.next_event().is_some(), "programs are in progress");
    ssd
}

#[test]
fn a_saved_drive_goes_on_as_if_it_had_not_been_saved() {
    let limits = "max_active_dies = [4, 2, 1]";
    let saved = working(limits, 2).save(Vec::new()).unwrap();
    let restored = |state| {
        let mut ssd = Ssd::<Attribution>::recording(config(limits, state)).unwrap();
        ssd.restore_from(&mut &*saved).unwrap();
        ssd
    };
    let mut copy = Ssd::<Attribution>::recording(config(limits, 2)).unwrap();
    copy.copy_from(&working(limits, 2)).unwrap();
    let expected = run(&mut working(limits, 2), 3_000, any);
    assert_eq!(run(&mut restored(2), 3_000, any), expected);
    assert_eq!(run(&mut copy, 3_000, any), expected);
    // In a state with a higher limit or no limit, waiting operations start immediately.
    assert!(run(&mut restored(1), 3_000, any).last().unwrap().at < expected.last().unwrap().at);
    let mut free = Ssd::new(config(limits, 0)).unwrap();
    free.restore_from(&mut &*saved).unwrap();
    free.quiesce();
}

#[test]
fn the_wait_for_other_dies_is_a_cause_of_latency() {
    let mut ssd = limited(1);
    let mut throttled = Nanos::ZERO;
    for tag in 0..8 {
        let at = ssd.now();
        ssd.submit(at, Command { tag, ..read(u64::from(tag) * 100, 1) });
    }
    while ssd.step(Nanos::MAX).is_some() {
        let spent = ssd.time_by_cause().unwrap();
        throttled += spent.of(writecliff_host_interface::Cause::Throttling);
    }
    assert!(throttled > Nanos(100_000), "{throttled:?}");
}

#[test]
fn power_cuts_and_purges_leave_no_die_active() {
    let limits = "max_active_dies = 1";
    let mut ssd = settled(Ssd::<Volatile>::recording(config(limits, 0)).unwrap());
    for _ in 0..5 {
        run(&mut ssd, 200, |random| write(random.below(8_000), 1));
        ssd.cut_power();
    }
    ssd.purge();
    run(&mut ssd, 2_000, any);
    ssd.submit(ssd.now(), command(Operation::Flush, 0, 0, 0));
    assert!(ssd.step(Nanos::MAX).is_some());
    ssd.check_invariants().unwrap();
}

#[test]
fn limits_that_are_none_are_refused_at_their_key() {
    let refused = |value: &str, what: &str| {
        let keys = format!("idle = \"1 W\"\nmax_active_dies = {value}");
        assert_section_refused("power", &keys, "max_active_dies", what);
    };
    refused("0", "1 to 4");
    refused("5", "1 to 4");
    refused("[4, 4]", "fewer active dies than the one before");
    refused("[1, 2]", "fewer active dies than the one before");
    refused("2.5", "whole numbers");
    refused("\"2\"", "number");
}
