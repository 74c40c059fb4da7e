//! The Streams directive: NVMe Base Specification 2.1, 8.1.8.3, for one host and one namespace.
//!
//! A stream opens with its first write. If all resources are in use, the standard requires the
//! controller to release an arbitrary open stream. This drive releases the stream that has been
//! open longest (`overflow = "release"`). A host that respects the limit, as Linux did, sends such
//! a write without a stream (`overflow = "default"`).

use writecliff_base::{StreamId, saved};
use writecliff_host_interface::placement::{Directives, Refusal, StreamParameters};

use super::config::Overflow;
use super::resources::Resources;
use super::{Sizes, Tally};

#[derive(Clone, Debug)]
pub(crate) struct NvmeStreams {
    pub(crate) resources: Resources,
    pub(crate) enabled: bool,
    /// Namespace Streams Allocated.
    allocated: u16,
    overflow: Overflow,
}

saved! { NvmeStreams { enabled, allocated, resources } }

impl NvmeStreams {
    /// Creates the directive in the enabled state, as after discovery by the host's driver.
    pub(crate) fn new(limit: u16, overflow: Overflow) -> Self {
        Self { resources: Resources::new(limit), enabled: true, allocated: 0, overflow }
    }

    pub(crate) fn directives(&self) -> Directives {
        let streams = if self.enabled { Directives::STREAMS } else { 0 };
        Directives {
            supported: Directives::IDENTIFY | Directives::STREAMS,
            enabled: Directives::IDENTIFY | streams,
            persistent: Directives::IDENTIFY,
        }
    }

    /// Enables or disables the directive; disabling releases all streams and resources.
    pub(crate) fn set_enabled(&mut self, route: &mut [u16], enabled: bool) {
        self.enabled = enabled;
        if !enabled {
            self.allocated = 0;
            self.resources.close_all(route);
        }
    }

    /// Returns the maximum number of streams that the namespace may have open.
    pub(crate) fn most(&self) -> u16 {
        if self.allocated > 0 { self.allocated } else { self.resources.limit() }
    }

    pub(crate) fn parameters(&self, sizes: &Sizes) -> StreamParameters {
        let open = self.resources.count();
        StreamParameters {
            limit: self.resources.limit(),
            available: self.resources.limit() - self.allocated,
            open: if self.allocated > 0 { 0 } else { open },
            write_size: sizes.write_size,
            granularity: u16::try_from(sizes.granularity).unwrap_or(u16::MAX),
            allocated: self.allocated,
            namespace_open: open,
        }
    }

    /// Allocate Resources; returns the number of requested streams that were granted. Open streams
    /// count towards this number; if there are too many, the oldest are released.
    pub(crate) fn allocate(&mut self, route: &mut [u16], wanted: u16) -> Result<u16, Refusal> {
        self.check_enabled()?;
        if self.allocated > 0 {
            let allocated = self.allocated;
            let about = format!("{allocated} streams are allocated; release them first");
            return Err(Refusal::InvalidField(about));
        }
        if self.resources.limit() == 0 {
            return Err(Refusal::AllocationFailed);
        }
        self.allocated = wanted.min(self.resources.limit());
        while self.resources.count() > self.most() {
            self.release_oldest(route);
        }
        Ok(self.allocated)
    }

    /// Release Identifier; releasing an identifier that is not open is not an error.
    pub(crate) fn release(&mut self, route: &mut [u16], id: u16) -> Result<bool, Refusal> {
        self.check_enabled()?;
        if id == 0 {
            let about = "stream identifiers are 1 to 65535".to_owned();
            return Err(Refusal::InvalidField(about));
        }
        Ok(self.resources.close(route, id))
    }

    /// Release Resources; has no effect if no resources are allocated.
    pub(crate) fn release_resources(&mut self, route: &mut [u16]) -> Result<(), Refusal> {
        self.check_enabled()?;
        if self.allocated > 0 {
            self.allocated = 0;
            self.resources.close_all(route);
        }
        Ok(())
    }

    /// Rejects operations of a directive that is not enabled (8.1.8).
    pub(crate) fn check_enabled(&self) -> Result<(), Refusal> {
        let about = || "the Streams directive is not enabled".to_owned();
        if self.enabled { Ok(()) } else { Err(Refusal::InvalidField(about())) }
    }

    fn release_oldest(&mut self, route: &mut [u16]) {
        if let Some(oldest) = self.resources.oldest() {
            self.resources.close(route, oldest);
        }
    }

    /// Handles a write to a stream that is not open.
    pub(crate) fn route(
        &mut self,
        route: &mut [u16],
        id: u16,
        tally: &mut Tally,
    ) -> Option<StreamId> {
        if !self.enabled {
            return None; // The drive ignores the directive type while no directive is enabled.
        }
        if self.resources.count() >= self.most() {
            if self.overflow == Overflow::Default || self.most() == 0 {
                return None;
            }
            self.release_oldest(route);
            tally.released += 1;
        }
        tally.opened += 1;
        self.resources.open(route, id)
    }
}
