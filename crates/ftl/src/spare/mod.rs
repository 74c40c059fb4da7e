//! Spare policies: division of spare space between streams.
//!
//! A GC policy (`gc/`) selects the cheapest unit, but it does not select the stream that can manage
//! with less spare space. The spare policies select the stream first and let the GC policy select
//! the unit within the stream. Spare policies are the only policies that measure the workload.
//! Measurements of spare policies belong to the drive state and are saved with it.

mod self_tuned;

pub(crate) use self_tuned::SelfTuned;
pub use self_tuned::StreamSpare;
use writecliff_base::words;

words! {
    /// Spare policies, as named in device files.
    pub enum SparePolicy {
        /// The GC policy selects from all units, which implicitly divides the spare space. With
        /// greedy GC, the victims of all streams end up with the same valid fraction, so separating
        /// random hot and cold data gains almost nothing by itself.
        Global = "global",
        /// Divides spare space such that no other division would reduce writes, as far as the drive
        /// can estimate from its measurements. Requires separate streams
        /// (`GcDestination::PerStream`).
        SelfTuned = "self-tuned",
    }
}

impl SparePolicy {
    /// Returns the policy's measurements; `None` if the policy takes no measurements.
    pub(crate) fn measurements(self, streams: u16, units: u32) -> Option<SelfTuned> {
        (self == Self::SelfTuned).then(|| SelfTuned::new(streams, units))
    }
}
