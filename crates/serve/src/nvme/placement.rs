//! Streams and placement handles of a served drive, for its controller.

use writecliff_base::Bytes;
use writecliff_nvme::drive::{
    Fdp, FdpEvent, FdpEventType, FdpStatistics, HandleStatus, StreamParameters, Streams,
};
use writecliff_runner::AnyDrive;
use writecliff_ssd::data_placement::{BLOCK_BYTES, Refusal, events, fdp, streams};

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
        directives.is_some_and(|directives| directives.enabled & streams::STREAMS != 0)
    }

    fn set_enabled(&mut self, enabled: bool) {
        ask!(self.0, ssd => ssd.enable_streams(enabled));
    }

    fn parameters(&self) -> StreamParameters {
        let found = ask!(self.0, ssd => ssd.stream_parameters());
        found.map_or_else(StreamParameters::default, |found| StreamParameters {
            limit: found.msl,
            available: found.nssa,
            open: found.nsso,
            write_size: Bytes(u64::from(found.sws) * u64::from(BLOCK_BYTES)),
            granularity: found.sgs,
            allocated: found.nsa,
            namespace_open: found.nso,
        })
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
        let found = ask!(self.0, ssd => ssd.fdp_handle_status()).unwrap_or_default();
        found.iter().map(handle_status).collect()
    }

    fn update(&mut self, placement_ids: &[u16]) {
        ask!(self.0, ssd => ssd.fdp_update(placement_ids));
    }

    fn statistics(&self) -> FdpStatistics {
        let found = ask!(self.0, ssd => ssd.fdp_statistics()).unwrap_or_default();
        FdpStatistics { host_bytes: found.hbmw, media_bytes: found.mbmw, erased_bytes: found.mbe }
    }

    fn events(&mut self, of_host: bool) -> Vec<FdpEvent> {
        let found = ask!(self.0, ssd => ssd.fdp_events(of_host)).unwrap_or_default();
        found.iter().map(event).collect()
    }

    fn is_event_enabled(&self, placement_handle: u16, kind: FdpEventType) -> bool {
        let found = ask!(self.0, ssd => ssd.fdp_enabled_events(placement_handle));
        found.is_some_and(|enabled| enabled.contains(&of_ssd(kind)))
    }

    fn enable_events(&mut self, placement_handle: u16, kinds: &[FdpEventType], enabled: bool) {
        let kinds: Vec<_> = kinds.iter().map(|&kind| of_ssd(kind)).collect();
        ask!(self.0, ssd => ssd.fdp_enable_events(placement_handle, &kinds, enabled));
    }
}

fn handle_status(of: &fdp::HandleStatus) -> HandleStatus {
    HandleStatus {
        placement_id: of.placement_id,
        handle: of.handle,
        time_remaining_s: of.time_remaining_s,
        available: Bytes(of.available_blocks * u64::from(BLOCK_BYTES)),
    }
}

/// Both number event types as the standard does.
fn of_ssd(kind: FdpEventType) -> events::EventType {
    let found = events::EventType::ALL.into_iter().find(|found| found.code() == kind as u8);
    found.expect("the standard's types")
}

fn event(of: &events::FdpEvent) -> FdpEvent {
    FdpEvent {
        kind: FdpEventType::from_code(of.kind.code()).expect("the standard's types"),
        time: of.time,
        placement_id: of.placement_id,
        handle: of.handle,
        moved: of.blocks_moved.map(|n| Bytes(u64::from(n) * u64::from(BLOCK_BYTES))),
    }
}
