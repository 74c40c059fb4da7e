//! Helper functions shared by the tests.

use writecliff_ftl::gc_destination::GcDestination;
use writecliff_ftl::gc_policy::GcPolicy;
use writecliff_ftl::spare::SparePolicy;
use writecliff_ftl::wear_leveling::WearPolicy;
use writecliff_ftl::{FtlConfig, GcPacing};

/// Returns a configuration with greedy garbage collection in small steps and without wear
/// levelling, as assumed in theory.
pub(crate) fn plain(user_slots: u32, streams: u16) -> FtlConfig {
    FtlConfig {
        user_slots: user_slots.into(),
        streams,
        gc: GcPolicy::Greedy,
        gc_pacing: GcPacing::Incremental,
        gc_destination: GcDestination::PerStream,
        spare: SparePolicy::Global,
        wear: WearPolicy::None,
        gc_high_watermark: 4,
        gc_low_watermark: 2,
        gc_idle_watermark: 8,
        rated_cycles: 1000,
        volatile_buffer: false,
        seed: 1,
        reduction: None,
        bad_blocks: None,
    }
}
