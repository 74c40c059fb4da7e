//! Validation against theory: FTL write amplification under workloads with a known closed form.
//! [`power_cuts`] checks the contents of drives after power cuts.

pub mod data_placement;
pub mod handles;
pub mod power_cuts;
pub mod reduction;

use data_placement::{Lifetimes, PlacementLoad, data_placement};
use writecliff_base::{Bytes, Lpn, Prng, StreamId};
use writecliff_flash::{CellType, Geometry, Shape};
use writecliff_ftl::gc_destination::GcDestination;
use writecliff_ftl::gc_policy::GcPolicy;
use writecliff_ftl::spare::SparePolicy;
use writecliff_ftl::wear_leveling::WearPolicy;
use writecliff_ftl::{ConfigError, FastForward, Ftl, FtlConfig, GcPacing, ReductionConfig, theory};

/// A measurement on a drive of `units` reclaim units with `slots` slots each.
#[derive(Clone, Copy, Debug)]
pub struct WafCase {
    /// GC policy.
    pub policy: GcPolicy,
    /// Over-provisioning, (circulating − user) / user; see `FtlConfig::reserved_units`.
    pub overprovision: f64,
    /// Number of reclaim units in the drive.
    pub units: u32,
    /// Number of slots per reclaim unit.
    pub slots: u32,
    /// Seed of the addresses.
    pub seed: u64,
    /// Number of capacity overwrites before the measurement.
    pub warm_up: u32,
    /// Number of capacity overwrites during the measurement.
    pub measured: u32,
}

/// Measured and theoretical write amplification.
#[derive(Clone, Copy, Debug)]
pub struct WafRow {
    /// Simulated write amplification.
    pub waf_measured: f64,
    /// Write amplification from the closed form; NaN if none is known.
    pub waf_theory: f64,
}

/// Measures uniform random overwrites of a full drive, one slot at a time.
pub fn uniform(case: &WafCase) -> Result<WafRow, ConfigError> {
    let mut ftl = drive(case, 1, PLAIN)?;
    let user = u64::from(ftl.user_slots());
    let mut random = Prng::new(case.seed);
    for lpn in 0..user {
        ftl.write(Lpn(lpn as u32), StreamId::DEFAULT, 4096, &mut FastForward);
    }
    let waf_measured = measure(&mut ftl, case, |ftl| {
        let lpn = Lpn(random.below(user) as u32);
        ftl.write(lpn, StreamId::DEFAULT, 4096, &mut FastForward);
        1
    });
    let alpha = 1.0 / (1.0 + case.overprovision);
    let waf_theory = match case.policy {
        GcPolicy::Greedy => theory::greedy(alpha, case.slots),
        GcPolicy::Fifo => theory::fifo(alpha),
        GcPolicy::DChoices { d: 1 } => theory::random(alpha),
        GcPolicy::DChoices { d } => theory::d_choices(alpha, case.slots, d),
        _ => f64::NAN, // No closed form is known for this policy.
    };
    Ok(WafRow { waf_measured, waf_theory })
}

/// Warms up and measures, with both durations in capacity overwrites; `write` performs a write and
/// returns its number of slots.
fn measure(ftl: &mut Ftl, case: &WafCase, mut write: impl FnMut(&mut Ftl) -> u64) -> f64 {
    let user = u64::from(ftl.user_slots());
    let mut until = |ftl: &mut Ftl, slots: u64| {
        let mut done = 0;
        while done < slots {
            done += write(ftl);
        }
    };
    until(ftl, u64::from(case.warm_up) * user);
    let before = *ftl.counters();
    until(ftl, u64::from(case.measured) * user);
    let waf = ftl.counters().write_amplification_since(&before).unwrap_or(f64::NAN);
    assert!(waf.is_nan() || waf >= 1.0, "less is programmed than written");
    waf
}

/// Measures four sequential writers at equal rates over ranges of different sizes, each with a
/// separate stream. All data of a reclaim unit die together, so no data are relocated and the write
/// amplification is exactly 1.
pub fn streams(case: &WafCase) -> Result<WafRow, ConfigError> {
    let load = PlacementLoad::Sequential { reading: Lifetimes::BySize, request: 1 };
    data_placement(case, load, true, PLAIN)
}

/// FTL policies of a validation drive: GC, spare space and data reduction.
#[derive(Clone, Copy, Debug)]
pub struct Policies {
    /// Amount of relocation between host writes.
    pub gc_pacing: GcPacing,
    /// Frontier that relocated data go to.
    pub gc_destination: GcDestination,
    /// Division of spare space between streams.
    pub spare: SparePolicy,
    /// Data reduction; `None` if every slot of data occupies one slot of flash.
    pub reduction: Option<ReductionConfig>,
}

const PLAIN: Policies = Policies {
    gc_pacing: GcPacing::Incremental,
    gc_destination: GcDestination::PerStream,
    spare: SparePolicy::Global,
    reduction: None,
};

/// Returns a drive with simple policies, whose capacity the caller must set.
fn plain(gc: GcPolicy, streams: u16, seed: u64) -> FtlConfig {
    FtlConfig {
        user_slots: 0,
        streams,
        gc,
        gc_pacing: PLAIN.gc_pacing,
        gc_destination: PLAIN.gc_destination,
        spare: PLAIN.spare,
        wear: WearPolicy::None,
        gc_high_watermark: 4,
        gc_low_watermark: 2,
        gc_idle_watermark: 8,
        rated_cycles: 1,
        volatile_buffer: false,
        seed,
        reduction: PLAIN.reduction,
        bad_blocks: None,
    }
}

/// Returns a drive whose over-provisioning covers only the space that GC circulates through with
/// one stream.
fn drive(case: &WafCase, streams: u16, how: Policies) -> Result<Ftl, ConfigError> {
    let geometry = flat_geometry(case.units, case.slots)?;
    let Policies { gc_pacing, gc_destination, spare, reduction } = how;
    let plain = plain(case.policy, streams, case.seed);
    let mut config = FtlConfig { gc_pacing, gc_destination, spare, reduction, ..plain };
    let units = case.units.saturating_sub(config.reserved_units());
    let circulating = f64::from(units) * f64::from(case.slots);
    config.user_slots = (circulating / (1.0 + case.overprovision)) as u64;
    Ftl::new(geometry, config)
}

/// Returns a single-die geometry, so that a reclaim unit is a block of `slots` pages.
fn flat_geometry(units: u32, slots: u32) -> Result<Geometry, ConfigError> {
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
    Geometry::new(shape).map_err(|e| ConfigError { key: "geometry", message: e.to_string() })
}
