//! Tests write amplification against theory, on drives small enough for every test run.
//! `writecliff lab validate waf` produces the full table.

use writecliff_base::{Bytes, Lpn, Prng, StreamId};
use writecliff_flash::{CellType, Geometry, Shape};
use writecliff_ftl::gc_policy::GcPolicy;
use writecliff_ftl::{FastForward, Ftl, FtlConfig, GcPacing, theory};

use crate::support::plain;

const OP: f64 = 0.127;
const UNITS: u32 = 2048;
const SLOTS: u32 = 64;

fn flat(units: u32, slots: u32) -> Geometry {
    let shape = Shape {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: units,
        pages_per_block: slots,
        page: Bytes(4096),
        cell: CellType::Slc,
        multi_plane: false,
        one_shot: false,
    };
    Geometry::new(shape).unwrap()
}

fn ftl(gc: GcPolicy, gc_pacing: GcPacing, streams: u16) -> Ftl {
    let mut config = FtlConfig { gc, gc_pacing, ..plain(0, streams) };
    let circulating = (f64::from(UNITS - config.reserved_units())) * f64::from(SLOTS);
    config.user_slots = (circulating / (1.0 + OP)) as u64;
    Ftl::new(flat(UNITS, SLOTS), config).unwrap()
}

fn steady_waf(gc: GcPolicy, gc_pacing: GcPacing) -> f64 {
    waf_of(gc, gc_pacing, 10)
}

/// Overwrites the drive twice `overwrites` times and returns the write amplification over the
/// second half.
fn waf_of(gc: GcPolicy, gc_pacing: GcPacing, overwrites: u64) -> f64 {
    let mut ftl = ftl(gc, gc_pacing, 1);
    let user = ftl.user_slots();
    let mut random = Prng::new(11);
    let mut sink = FastForward;
    for lpn in 0..user {
        ftl.write(Lpn(lpn), StreamId::DEFAULT, 4096, &mut sink);
    }
    let mut write = |n: u64, ftl: &mut Ftl| {
        for _ in 0..n {
            let lpn = Lpn(random.below(u64::from(user)) as u32);
            ftl.write(lpn, StreamId::DEFAULT, 4096, &mut sink);
        }
    };
    write(overwrites * u64::from(user), &mut ftl);
    let before = *ftl.counters();
    write(overwrites * u64::from(user), &mut ftl);
    ftl.check_invariants().unwrap();
    ftl.counters().write_amplification_since(&before).unwrap()
}

#[test]
fn uniform_random_agrees_with_theory() {
    let alpha = 1.0 / (1.0 + OP);
    let rows = [
        (GcPolicy::Greedy, theory::greedy(alpha, SLOTS)),
        (GcPolicy::Fifo, theory::fifo(alpha)),
        (GcPolicy::DChoices { d: 10 }, theory::d_choices(alpha, SLOTS, 10)),
        (GcPolicy::DChoices { d: 1 }, theory::random(alpha)),
    ];
    for (policy, expected) in rows {
        let measured = steady_waf(policy, GcPacing::Incremental);
        let error = 100.0 * (measured / expected - 1.0);
        assert!(error.abs() < 0.5, "{policy:?}: {measured} v {expected}: {error} %");
    }
}

#[test]
fn relocating_much_at_once_does_not_change_random_write_amplification() {
    let expected = theory::greedy(1.0 / (1.0 + OP), SLOTS);
    let quanta = [48, 500].map(|slots| GcPacing::Quanta { slots });
    for gc_pacing in quanta.into_iter().chain([GcPacing::PerVictim, GcPacing::OnDemand]) {
        let measured = steady_waf(GcPolicy::Greedy, gc_pacing);
        assert!(
            (measured / expected - 1.0).abs() < 0.005,
            "{gc_pacing:?}: {measured} v {expected}"
        );
    }
}

/// Returns the maximum number of slots that one host write relocates in steady state.
fn largest_burst(gc_pacing: GcPacing) -> u64 {
    let mut ftl = ftl(GcPolicy::Greedy, gc_pacing, 1);
    let user = ftl.user_slots();
    let mut random = Prng::new(11);
    let mut bursts = (0..4 * user).map(|n| {
        let before = ftl.counters().gc_slots;
        let lpn = if n < user { n } else { random.below(u64::from(user)) as u32 };
        ftl.write(Lpn(lpn), StreamId::DEFAULT, 4096, &mut FastForward);
        ftl.counters().gc_slots - before
    });
    assert_eq!(bursts.by_ref().take(user as usize).max(), Some(0), "the first fill moves nothing");
    bursts.max().unwrap()
}

#[test]
fn a_quantum_bounds_what_one_write_waits_for() {
    let of = |slots| largest_burst(GcPacing::Quanta { slots });
    let smooth = largest_burst(GcPacing::Incremental);
    assert!(smooth <= 8, "{smooth}");
    assert_eq!(of(1), smooth);
    assert_eq!((of(16), of(32)), (16, 32));
    assert!(of(500) <= u64::from(SLOTS), "a victim that is empty ends a quantum");
}

#[test]
fn cost_benefit_lies_between_greedy_and_random() {
    let alpha = 1.0 / (1.0 + OP);
    let waf = steady_waf(GcPolicy::CostBenefit, GcPacing::Incremental);
    assert!(waf > 0.995 * theory::greedy(alpha, SLOTS), "{waf}");
    assert!(waf < theory::random(alpha), "{waf}");
}

#[test]
fn windowed_greedy_lies_between_fifo_and_greedy() {
    let waf_of = |policy| waf_of(policy, GcPacing::Incremental, 2);
    let of = |window| waf_of(GcPolicy::WindowedGreedy { window });
    let (fifo, greedy) = (waf_of(GcPolicy::Fifo), waf_of(GcPolicy::Greedy));
    assert_eq!(of(1).to_bits(), fifo.to_bits());
    assert_eq!(of(1 << 20).to_bits(), greedy.to_bits());
    let waf = of(32);
    assert!(greedy < waf && waf < fifo, "{greedy} {waf} {fifo}");
}

#[test]
fn one_stream_per_sequential_writer_gives_no_amplification() {
    let mut ftl = ftl(GcPolicy::Greedy, GcPacing::Incremental, 4);
    let user = u64::from(ftl.user_slots());
    let mut sink = FastForward;
    // The workload has four writers, each cycling through a separate range; their lifetimes are in
    // the proportion 1 : 10 : 33 : 55.
    let ranges: Vec<(u64, u64)> = {
        let total = 99;
        let mut start = 0;
        [1, 10, 33, 55]
            .iter()
            .map(|share| {
                let length = user * share / total;
                let range = (start, length);
                start += length;
                range
            })
            .collect()
    };
    for round in 0..5 * user {
        for (stream, (start, length)) in ranges.iter().enumerate() {
            let lpn = Lpn((start + round % length) as u32);
            ftl.write(lpn, StreamId(stream as u16), 4096, &mut sink);
        }
    }
    ftl.check_invariants().unwrap();
    assert_eq!(ftl.counters().gc_slots, 0);
    assert!(ftl.wear().total() > u64::from(UNITS), "the drive was overwritten many times");
}
