//! Tests bad blocks against closed forms, and until the spare space is exhausted.

use writecliff_base::codec::{StateReader, StateWriter};
use writecliff_base::{Bytes, Lpn, Prng, StreamId};
use writecliff_flash::{BlockLife, CellType, Geometry, Shape};
use writecliff_ftl::gc_destination::GcDestination;
use writecliff_ftl::gc_policy::GcPolicy;
use writecliff_ftl::spare::SparePolicy;
use writecliff_ftl::wear_leveling::WearPolicy;
use writecliff_ftl::{BadBlocksConfig, FastForward, Ftl, FtlConfig, GcPacing};

const UNITS: u32 = 100;
const POSITIONS: u32 = 16;
const RATED: u32 = 200;

fn geometry() -> Geometry {
    let shape = Shape {
        channels: 4,
        dies_per_channel: 2,
        planes_per_die: 2,
        blocks_per_plane: UNITS,
        pages_per_block: 4,
        page: Bytes(4096),
        cell: CellType::Mlc,
        multi_plane: true,
        one_shot: false,
    };
    Geometry::new(shape).unwrap()
}

fn bad(factory: f64, failed_at_rated: f64, replaces: bool) -> BadBlocksConfig {
    let life = BlockLife { rated_cycles: RATED, failed_at_rated, shape: 3.0 };
    BadBlocksConfig { factory, life, found_by_erase: 0.5, replaces }
}

/// Returns a drive with a user capacity of `user` reclaim units.
fn drive(bad_blocks: BadBlocksConfig, user: u32, seed: u64) -> Ftl {
    let geometry = geometry();
    let config = FtlConfig {
        user_slots: u64::from(user * geometry.slots_per_reclaim_unit),
        streams: 1,
        gc: GcPolicy::Greedy,
        gc_pacing: GcPacing::Incremental,
        gc_destination: GcDestination::PerStream,
        spare: SparePolicy::Global,
        wear: WearPolicy::Dynamic,
        gc_high_watermark: 4,
        gc_low_watermark: 3,
        gc_idle_watermark: 6,
        rated_cycles: RATED,
        volatile_buffer: false,
        seed,
        reduction: None,
        bad_blocks: Some(bad_blocks),
    };
    Ftl::new(geometry, config).unwrap()
}

/// Writes randomly until the mean erase count is `cycles` or the drive is read-only.
fn wear_out(ftl: &mut Ftl, cycles: f64, random: &mut Prng) {
    let user = u64::from(ftl.user_slots());
    while ftl.wear().summary().mean < cycles && !ftl.is_read_only() {
        for _ in 0..user {
            let lpn = Lpn(random.below(user) as u32);
            ftl.write(lpn, StreamId::DEFAULT, 4096, &mut FastForward);
        }
        ftl.check_invariants().unwrap();
    }
}

fn near(got: f64, expected: f64, deviation: f64) {
    assert!((got - expected).abs() <= 4.0 * deviation, "{got}, expected {expected}");
}

fn value(ftl: &Ftl, name: &str) -> f64 {
    use writecliff_base::counters::{Value, readings};
    let counters = ftl.bad_blocks().unwrap().counters();
    let all: Vec<_> = readings(Some(&counters)).collect();
    match all.iter().find(|reading| reading.name == name).unwrap().value.unwrap() {
        Value::Integer(value) => value as f64,
        Value::Real(value) => value,
    }
}

#[test]
fn factory_bad_blocks_are_as_many_as_said_and_cost_what_the_worst_position_has() {
    let (share, blocks) = (0.02, f64::from(UNITS * POSITIONS));
    let mut without = 0.0;
    for seed in 0..20 {
        let ftl = drive(bad(share, 0.0, true), 40, seed);
        ftl.check_invariants().unwrap();
        near(value(&ftl, "factory_bad_blocks"), blocks * share, (blocks * share).sqrt());
        // Only the worst block in each unit counts, so the drive drops far fewer units than it has
        // bad blocks.
        assert!(value(&ftl, "dropped_units") <= 9.0);
        let alone = drive(bad(share, 0.0, false), 40, seed);
        alone.check_invariants().unwrap();
        without += value(&alone, "dropped_units");
    }
    // A unit of 16 blocks has no bad block with probability (1 - p)^16.
    let hit = 1.0 - (1.0 - share).powi(POSITIONS as i32);
    let expected = 20.0 * f64::from(UNITS) * hit;
    near(without, expected, (expected * (1.0 - hit)).sqrt());
}

#[test]
fn blocks_fail_as_their_life_says_and_some_are_found_by_programs() {
    let (mut failed, mut erase) = (0.0, 0.0);
    for seed in 0..5 {
        let mut ftl = drive(bad(0.0, 0.03, true), 70, seed);
        wear_out(&mut ftl, f64::from(RATED), &mut Prng::new(seed));
        assert!(!ftl.is_read_only());
        failed += value(&ftl, "erase_failures") + value(&ftl, "program_failures");
        erase += value(&ftl, "erase_failures");
        assert!(value(&ftl, "bad_block_moved_bytes") > 0.0);
    }
    let expected = 5.0 * f64::from(UNITS * POSITIONS) * 0.03;
    near(failed, expected, expected.sqrt());
    near(erase, failed / 2.0, (failed / 4.0).sqrt());
}

#[test]
fn the_drive_becomes_read_only_when_the_spare_is_used_up_and_not_before() {
    let life = |replaces| {
        let mut ftl = drive(bad(0.01, 0.05, replaces), 70, 3);
        let when_new = value(&ftl, "available_spare_pct");
        assert!((when_new - 100.0).abs() < 1e-9);
        wear_out(&mut ftl, 100.0 * f64::from(RATED), &mut Prng::new(1));
        assert!(ftl.is_read_only());
        assert!(value(&ftl, "available_spare_pct").abs() < 1e-9);
        // Internal writes after the switch to read-only mode keep the state consistent.
        let user = ftl.user_slots();
        for n in 0..4 * user {
            ftl.write(Lpn(n % user), StreamId::DEFAULT, 4096, &mut FastForward);
        }
        ftl.check_invariants().unwrap();
        ftl.counters().host_slots
    };
    let (with, without) = (life(true), life(false));
    assert!(
        with as f64 > 1.5 * without as f64,
        "{with} slots with spare blocks, {without} without"
    );
}

#[test]
fn a_drive_that_is_too_small_for_its_bad_blocks_is_refused() {
    let geometry = geometry();
    let mut config = drive(bad(0.0, 0.0, true), 80, 1).config().clone();
    config.bad_blocks = Some(bad(0.3, 0.0, true));
    let error = Ftl::new(geometry, config).unwrap_err();
    assert_eq!(error.key, "user_capacity");
    assert!(error.to_string().contains("factory bad blocks leave"), "{error}");
}

#[test]
fn a_restored_drive_and_one_that_was_not_saved_fail_alike() {
    let mut drive_a = drive(bad(0.01, 0.05, true), 70, 9);
    wear_out(&mut drive_a, 150.0, &mut Prng::new(1));
    let saved = drive_a.save_to_bytes();
    let mut other = drive(bad(0.01, 0.05, true), 70, 9);
    other.restore(&mut StateReader::new(saved.as_slice()).unwrap()).unwrap();
    assert_eq!(drive_a.digest(), other.digest());
    for ftl in [&mut drive_a, &mut other] {
        wear_out(ftl, 220.0, &mut Prng::new(2));
        ftl.purge();
        ftl.check_invariants().unwrap();
        wear_out(ftl, 240.0, &mut Prng::new(4));
    }
    assert_eq!(drive_a.digest(), other.digest());
    assert!(value(&drive_a, "erase_failures") > 0.0);
}

trait Saved {
    fn save_to_bytes(&self) -> Vec<u8>;
}

impl Saved for Ftl {
    fn save_to_bytes(&self) -> Vec<u8> {
        let mut out = StateWriter::new(Vec::new()).unwrap();
        self.save(&mut out).unwrap();
        out.finish().unwrap()
    }
}
