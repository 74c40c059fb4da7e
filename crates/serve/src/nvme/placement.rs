//! Streams and placement handles of a served drive, for its controller.

use writecliff_host_interface::placement::{
    Directives, FdpEvent, FdpEventType, FdpStatistics, HandleStatus, Refusal, StreamParameters,
};
use writecliff_nvme::{Fdp, Streams};
use writecliff_runner::AnyDrive;

use crate::served::Served;

/// The answer of the SSD to an administrative command; `None` if it refuses it or is
/// none.
macro_rules! ask {
    ($served:expr, $ssd:ident => $do:expr) => {{
        type Answer<T> = Result<T, Refusal>;
        $served.with_drive(|drive| match drive {
            AnyDrive::Ssd($ssd) => Answer::ok($do),
            AnyDrive::AttributedSsd($ssd) => Answer::ok($do),
            AnyDrive::VolatileSsd($ssd) => Answer::ok($do),
            AnyDrive::Disk(_) | AnyDrive::Scm(_) => None,
        })
    }};
}

/// The streams of a served drive.
pub(super) struct ServedStreams(pub(super) Served);

impl Streams for ServedStreams {
    fn is_enabled(&self) -> bool {
        let directives = ask!(self.0, ssd => ssd.directives());
        directives.is_some_and(|directives| directives.enabled & Directives::STREAMS != 0)
    }

    fn set_enabled(&mut self, enabled: bool) {
        ask!(self.0, ssd => ssd.enable_streams(enabled));
    }

    fn parameters(&self) -> StreamParameters {
        ask!(self.0, ssd => ssd.stream_parameters()).unwrap_or_default()
    }

    fn open(&self) -> Vec<u16> {
        ask!(self.0, ssd => ssd.stream_status()).unwrap_or_default()
    }

    fn allocate(&mut self, wanted: u16) -> Option<u16> {
        ask!(self.0, ssd => ssd.allocate_streams(wanted))
    }

    fn release(&mut self, identifier: u16) {
        ask!(self.0, ssd => ssd.release_stream(identifier));
    }

    fn release_resources(&mut self) {
        ask!(self.0, ssd => ssd.release_stream_resources());
    }
}

/// The placement handles of a served drive.
pub(super) struct ServedFdp(pub(super) Served);

impl Fdp for ServedFdp {
    fn handle_status(&mut self) -> Vec<HandleStatus> {
        ask!(self.0, ssd => ssd.fdp_handle_status()).unwrap_or_default()
    }

    fn update(&mut self, placement_ids: &[u16]) {
        ask!(self.0, ssd => ssd.fdp_update(placement_ids));
    }

    fn statistics(&self) -> FdpStatistics {
        ask!(self.0, ssd => ssd.fdp_statistics()).unwrap_or_default()
    }

    fn events(&mut self, of_host: bool) -> Vec<FdpEvent> {
        ask!(self.0, ssd => ssd.fdp_events(of_host)).unwrap_or_default()
    }

    fn is_event_enabled(&self, placement_handle: u16, kind: FdpEventType) -> bool {
        let found = ask!(self.0, ssd => ssd.fdp_enabled_events(placement_handle));
        found.is_some_and(|enabled| enabled.contains(&kind))
    }

    fn enable_events(&mut self, placement_handle: u16, kinds: &[FdpEventType], enabled: bool) {
        ask!(self.0, ssd => ssd.fdp_enable_events(placement_handle, kinds, enabled));
    }
}
