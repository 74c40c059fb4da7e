//! Spare policies: division of spare space between streams.
//!
//! A GC policy (`gc/`) selects the cheapest unit, but not the stream that can do with less spare
//! space. The policies here select the stream first and let the GC policy select the unit within
//! it. This is the only kind of policy that measures the workload; its measurements are part of the
//! drive's state and are saved with it.

mod self_tuned;

pub(crate) use self_tuned::SelfTuned;
pub use self_tuned::StreamSpare;

/// The policies, as named in device files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SparePolicy {
    /// The GC policy selects from all units, and the division of spare space follows from that.
    /// With greedy GC, the victims of all streams end up with the same valid share, so separating
    /// random hot and cold data gains almost nothing by itself.
    Global,
    /// Divides spare space so that no other division would reduce writes, as far as the drive can
    /// estimate from its own measurements. Requires separate streams (`GcDestination::PerStream`).
    SelfTuned,
}

impl SparePolicy {
    /// Returns the policy's measurements; `None` if it measures nothing.
    pub(crate) fn measurements(self, streams: u16, units: u32) -> Option<SelfTuned> {
        (self == Self::SelfTuned).then(|| SelfTuned::new(streams, units))
    }

    /// Returns the name of the policy in device files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::SelfTuned => "self-tuned",
        }
    }
}
