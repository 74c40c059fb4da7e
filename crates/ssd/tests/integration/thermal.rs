//! Tests temperature against the closed-form solution for a body with a heat capacity and a thermal
//! resistance, and throttling at its thresholds.

use crate::common::{self, alone, closed_loop, command, drive, read, user_slots, write};
use writecliff_base::{Nanos, Prng};
use writecliff_ssd::mechanisms::thermal::{Thermal, ThermalConfig, Throttle};
use writecliff_ssd::{Drive, Operation, Ssd, device_file};

fn settled(thermal: &str) -> Ssd {
    let section = format!(
        "[power]\nidle = \"2 W\"\nactive = \"1 W\"\nread = \"500 mW\"\n\
         [thermal]\nambient = \"25 C\"\nresistance = \"10 C/W\"\n{thermal}\n[link]"
    );
    let mut ssd = common::drive(&[("[link]", &section)]);
    for slot in 0..user_slots(&ssd) {
        ssd.fast_forward(&write(slot, 1));
    }
    ssd.end_fast_forward();
    alone(&mut ssd, command(Operation::Flush, 0, 0, 0));
    ssd.quiesce();
    ssd
}

fn celsius(ssd: &Ssd) -> f64 {
    ssd.counters().thermal.unwrap().celsius
}

/// Runs random reads at queue depth 8 and returns the IOPS.
fn load(ssd: &mut Ssd, count: u32, seed: u64) -> f64 {
    let (user, mut random, from) = (user_slots(ssd), Prng::new(seed), ssd.now());
    closed_loop(ssd, 8, count, |_| read(random.below(user), 1));
    f64::from(count) / (ssd.now() - from).as_secs_f64()
}

#[test]
fn a_silent_drive_warms_up_exponentially() {
    // 2 W through 10 C/W heat the drive to 20 C above ambient, and the time constant is 10 C/W
    // times 20 J/C = 200 s.
    let mut ssd = settled("capacity = \"20 J/C\"");
    for seconds in [1_u64, 50, 200, 2000] {
        ssd.idle_until(Nanos::from_secs(seconds));
        let expected = 25.0 + 20.0 * (1.0 - (-(seconds as f64) / 200.0).exp());
        assert!((celsius(&ssd) - expected).abs() < 1e-3, "{seconds} s: {}", celsius(&ssd));
    }
}

#[test]
fn under_load_it_is_as_warm_as_its_power_makes_it() {
    let mut ssd = settled("capacity = \"0.01 J/C\""); // 0.1 s
    load(&mut ssd, 40_000, 1);
    let (from, before) = (ssd.now(), ssd.counters().energy.unwrap().total());
    load(&mut ssd, 40_000, 2);
    let seconds = (ssd.now() - from).as_secs_f64();
    assert!(seconds > 0.5, "{seconds} s: long enough to settle");
    let watts = (ssd.counters().energy.unwrap().total() - before) / seconds;
    assert!((celsius(&ssd) - 25.0 - 10.0 * watts).abs() < 0.3, "{} at {watts} W", celsius(&ssd));
}

#[test]
fn throttled_work_takes_its_factor_and_cools_the_drive() {
    let keys = "capacity = \"0.01 J/C\"\nthrottle_at = \"58 C\"\nrecover_at = \"1 C\"\n\
                throttle_factor = 4\nperiod = \"10 ms\"";
    let mut unlimited = settled("capacity = \"0.01 J/C\"");
    let free = load(&mut unlimited, 40_000, 1);
    let mut ssd = settled(keys);
    load(&mut ssd, 40_000, 1);
    let before = (ssd.now(), ssd.counters().thermal.unwrap().throttled);
    let bound = load(&mut ssd, 10_000, 2);
    assert!((free / bound / 4.0 - 1.0).abs() < 0.05, "{free:.0} and {bound:.0} IOPS");
    let throttled = ssd.counters().thermal.unwrap().throttled.0 - before.1.0;
    assert!(throttled.abs_diff((ssd.now() - before.0).0) < 20_000_000, "all the time");
    // The controller heats the drive by 30 C, and the throttled dies add a quarter of their heat at
    // full speed.
    let expected = 55.0 + (celsius(&unlimited) - 55.0) / 4.0;
    assert!((celsius(&ssd) - expected).abs() < 0.5, "{}, expected {expected}", celsius(&ssd));
}

#[test]
fn a_drive_that_throttles_stays_at_its_limit_and_recovers_in_silence() {
    let keys = "capacity = \"0.01 J/C\"\nthrottle_at = \"58 C\"\nrecover_at = \"56 C\"\n\
                throttle_factor = 8\nperiod = \"5 ms\"";
    let free = load(&mut settled("capacity = \"0.01 J/C\""), 20_000, 1);
    let mut ssd = settled(keys);
    load(&mut ssd, 20_000, 1);
    let bound = load(&mut ssd, 20_000, 2);
    assert!(bound < 0.98 * free && bound > free / 8.0, "{bound:.0} of {free:.0} IOPS");
    assert!((55.0..60.0).contains(&celsius(&ssd)), "{}", celsius(&ssd));
    ssd.idle_until(ssd.now() + Nanos::from_secs(60));
    assert!((celsius(&ssd) - 45.0).abs() < 0.1, "idle power alone");
    let throttled = ssd.counters().thermal.unwrap().throttled;
    alone(&mut ssd, read(0, 1));
    assert_eq!(ssd.counters().thermal.unwrap().throttled, throttled);
}

#[test]
fn throttling_begins_above_its_limit_and_ends_at_the_other() {
    let throttle = Throttle { at: 70.0, recover_at: 60.0, factor: 2.0 };
    let section = ThermalConfig {
        ambient: 20.0,
        resistance: 1.0,
        capacity: 1e-6, // The temperature follows immediately.
        stages: vec![throttle],
        period: Nanos(100_000_000),
    };
    let mut thermal = Thermal::new(section);
    let (mut now, mut joules) = (Nanos::ZERO, 0.0);
    let mut stops_at = |celsius: f64| {
        now += Nanos::from_secs(1);
        joules += celsius - 20.0; // One watt flows per degree, for one second.
        thermal.look(now, joules);
        thermal.stop_for(now, now + Nanos(1000)).0
    };
    assert_eq!(stops_at(69.99), 0);
    assert_eq!(stops_at(70.01), 500, "half of the time");
    assert_eq!(stops_at(60.01), 500);
    assert_eq!(stops_at(59.99), 0);
    assert_eq!(stops_at(69.99), 0);
}

#[test]
fn stages_follow_one_another_up_and_down() {
    let light = Throttle { at: 70.0, recover_at: 66.0, factor: 2.0 };
    let heavy = Throttle { at: 80.0, recover_at: 75.0, factor: 10.0 };
    let section = ThermalConfig {
        ambient: 20.0,
        resistance: 1.0,
        capacity: 1e-6, // The temperature follows immediately.
        stages: vec![light, heavy],
        period: Nanos(100_000_000),
    };
    let mut thermal = Thermal::new(section);
    let (mut now, mut joules) = (Nanos::ZERO, 0.0);
    let mut stops_at = |celsius: f64| {
        now += Nanos::from_secs(1);
        joules += celsius - 20.0;
        thermal.look(now, joules);
        let stop = thermal.stop_for(now, now + Nanos(1000)).0;
        (stop, thermal.counters(now, joules))
    };
    let stops: Vec<u64> = [69.0, 71.0, 81.0, 76.0, 74.0, 79.0, 65.0, 90.0, 60.0]
        .map(|celsius| stops_at(celsius).0)
        .to_vec();
    assert_eq!(stops, [0, 500, 900, 900, 500, 500, 0, 900, 0]);
    let (_, counted) = stops_at(60.0);
    assert_eq!((counted.throttled.0, counted.throttled_most.0), (6000, 3000));
}

#[test]
fn a_second_stage_holds_a_drive_that_the_first_one_does_not() {
    let single = "capacity = \"0.01 J/C\"\nperiod = \"5 ms\"\nthrottle_at = \"50 C\"\n\
               recover_at = \"48 C\"\nthrottle_factor = 2";
    let two = single
        .replace("\"50 C\"", "[\"50 C\", \"58 C\"]")
        .replace("\"48 C\"", "[\"48 C\", \"57 C\"]")
        .replace("factor = 2", "factor = [2, 8]");
    let (mut light, mut both) = (settled(single), settled(&two));
    for drive in [&mut light, &mut both] {
        load(drive, 40_000, 1);
    }
    assert!(celsius(&light) > 59.0, "{}", celsius(&light));
    assert!(celsius(&both) < 59.0, "{}", celsius(&both));
    let counted = both.counters().thermal.unwrap();
    assert!(counted.throttled_most.0 > 0 && counted.throttled_most < counted.throttled);
}

#[test]
fn a_drive_without_the_section_has_no_temperature() {
    let power = "[power]\nidle = \"2 W\"\n[link]";
    assert!(drive(&[("[link]", power)]).counters().thermal.is_none());
}

#[test]
fn errors_name_their_line() {
    let good = "ambient = \"35 C\"\nresistance = \"10 C/W\"\ncapacity = \"20 J/C\"\n\
                throttle_at = \"70 C\"\nrecover_at = \"65 C\"\nthrottle_factor = 2";
    let rows = [
        ("recover_at = \"65 C\"", "recover_at = \"70 C\"", ":46: ", "not below throttle_at"),
        ("throttle_at = \"70 C\"\n", "", ":45: ", "without throttle_at"),
        ("resistance = \"10 C/W\"", "resistance = \"0 C/W\"", ":43: ", "above zero"),
        ("ambient = \"35 C\"", "ambient = 35", ":42: ", "\"70 C\""),
        ("throttle_factor = 2", "throttle_factor = 0.5", ":47: ", "outside 1"),
        ("throttle_factor = 2", "throttle_factor = [2, 4]", ":47: ", "one for each stage"),
        ("at = \"70 C\"", "at = [\"70 C\", 80]", ":45: ", "\"70 C\""),
    ];
    for (from, to, location, what) in rows {
        let keys = good.replace(from, to);
        let sections = format!("[power]\nidle = \"1 W\"\n[thermal]\n{keys}\n[link]");
        let text = common::DRIVE.replace("[link]", &sections);
        common::assert_refused(&text, location, what);
    }
    let alone = common::DRIVE.replace("[link]", &format!("[thermal]\n{good}\n[link]"));
    let error = device_file::read(&alone, "drive.toml", 1).unwrap_err().to_string();
    assert!(error.contains("requires section [power]"), "{error}");
}
