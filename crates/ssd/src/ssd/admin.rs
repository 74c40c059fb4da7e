//! Administrative commands: the write cache, and the data placement interfaces. They take no time
//! on the drive.

use writecliff_base::{Bytes, Nanos, StreamId};
use writecliff_flash::geometry::SLOT_BYTES;
use writecliff_ftl::frontier::FrontierId;
use writecliff_host_interface::placement::{
    Answer, BlockLimitsExtension, DataPlacement, Directives, FdpConfiguration, FdpEvent,
    FdpEventType, FdpStatistics, HandleStatus, Refusal, StreamParameters,
};

use writecliff_host_interface::Drive;

use super::Ssd;
use crate::attribution::Recorder;
use crate::data_placement::fdp::Fdp;
use crate::data_placement::time_limit::TimeLimit;
use crate::data_placement::{Interface, InterfaceKind, has_volatile};

/// Defines an accessor for one interface and the routing table; drives with other interfaces reject
/// it.
macro_rules! accessors {
    ($($name:ident = $variant:ident($type:ty) of $kind:expr;)*) => {$(
        pub(crate) fn $name(&mut self) -> Answer<(&mut $type, &mut Vec<u16>)> {
            let has = self.interface_name();
            match &mut self.data_placement.interface {
                Interface::$variant(found) => Ok((found, &mut self.data_placement.route)),
                _ => Err(Refusal::OtherInterface { has, wants: $kind.name() }),
            }
        }
    )*};
}

impl<R: Recorder> Ssd<R> {
    accessors! {
        nvme = Nvme(crate::data_placement::streams::NvmeStreams) of InterfaceKind::NvmeStreams;
        scsi = Scsi(crate::data_placement::scsi::ScsiStreams) of InterfaceKind::ScsiStreams;
        fdp = Fdp(Fdp) of InterfaceKind::NvmeFdp;
    }

    pub(crate) fn status_of_handles(&self) -> Vec<HandleStatus> {
        let Interface::Fdp(fdp) = &self.data_placement.interface else { return Vec::new() };
        fdp.identifiers().map(|identifier| self.handle_status(fdp, identifier)).collect()
    }

    fn handle_status(&self, fdp: &Fdp, (placement_id, stream): (u16, u16)) -> HandleStatus {
        let (slots, _) = self.ftl.host_room(FrontierId(stream));
        let (limit, now) = (fdp.limit.as_ref(), self.backend.now);
        HandleStatus {
            placement_id,
            handle: fdp.reclaim_unit_handle(stream),
            time_remaining_s: limit.map_or(0, |limit| limit.remaining_s(stream, now)),
            available: Bytes(u64::from(slots) * u64::from(SLOT_BYTES)),
        }
    }

    /// Abandons the unit of a handle if it is partly written; returns whether it was.
    pub(crate) fn abandon(&mut self, handle: u16) -> bool {
        let frontier = FrontierId(handle);
        if !self.ftl.host_room(frontier).1 {
            return false;
        }
        let slots = self.ftl.abandon(frontier, &mut self.backend);
        if let Interface::Fdp(fdp) = &mut self.data_placement.interface {
            fdp.abandoned_slots += u64::from(slots);
        }
        true
    }

    /// Closes units that have been open longer than the limit: their handles then reference empty
    /// ones.
    pub(crate) fn end_old_units(&mut self) {
        if !self.data_placement.is_limited {
            return;
        }
        self.note_units();
        let now = self.backend.now;
        while let Some((handle, at)) = self.limit().and_then(|limit| limit.due(now)) {
            self.abandon(handle);
            if let Interface::Fdp(fdp) = &mut self.data_placement.interface {
                let (kind, id) = (FdpEventType::TimeLimitExceeded, fdp.placement_id(handle));
                fdp.events.count(kind, 1);
                fdp.events.about(kind, at, handle, id, None);
            }
            self.note_units();
        }
    }

    /// Updates which units are open and since when.
    #[cold]
    pub(crate) fn note_units(&mut self) {
        let now = self.backend.now;
        for handle in 0..self.config.ftl.streams {
            let unit = self.ftl.host_unit(FrontierId(handle));
            if let Some(limit) = self.limit() {
                limit.note(handle, unit, now);
            }
        }
        self.data_placement.deadline = self.limit().map_or(Nanos::MAX, |limit| limit.deadline());
    }

    fn limit(&mut self) -> Option<&mut TimeLimit> {
        match &mut self.data_placement.interface {
            Interface::Fdp(fdp) => fdp.limit.as_mut(),
            _ => None,
        }
    }

    /// The FDP statistics of any drive.
    pub fn statistics(&self) -> FdpStatistics {
        FdpStatistics {
            host_bytes: self.host_write_bytes(),
            media_bytes: self.nand_write_bytes(),
            erased_bytes: self.ftl.wear().total() * self.data_placement.sizes.reclaim_unit.0,
        }
    }

    /// Generates events from the GC log since the last time.
    pub(crate) fn gather_events(&mut self) {
        self.end_old_units();
        let now = self.backend.now;
        if let Interface::Fdp(fdp) = &mut self.data_placement.interface {
            fdp.gather(self.ftl.gc_log_mut().take(), now, Bytes(u64::from(SLOT_BYTES)));
        }
    }

    /// Format NVM, and any purge, releases all streams (8.1.8.3).
    pub(crate) fn release_all_streams(&mut self) {
        let p = &mut self.data_placement;
        match &mut p.interface {
            Interface::Nvme(nvme) => nvme.resources.close_all(&mut p.route),
            Interface::Scsi(scsi) => scsi.resources.close_all(&mut p.route),
            Interface::None | Interface::Fdp(_) => {}
        }
    }

    /// FTL stream to which a write with stream number `number` would go now.
    pub fn routed(&self, number: u16) -> Option<StreamId> {
        let found = self.data_placement.route.get(usize::from(number)).copied();
        found.filter(|&stream| stream < self.config.ftl.streams).map(StreamId)
    }
}

impl<R: Recorder> DataPlacement for Ssd<R> {
    fn interface_name(&self) -> &'static str {
        self.config.data_placement.as_ref().map_or("none", |p| p.interface.name())
    }

    fn directives(&self) -> Answer<Directives> {
        match &self.data_placement.interface {
            Interface::Nvme(nvme) => Ok(nvme.directives()),
            Interface::Fdp(_) => {
                let all = Directives::IDENTIFY | Directives::DATA_PLACEMENT;
                Ok(Directives { supported: all, enabled: all, persistent: all })
            }
            Interface::None | Interface::Scsi(_) => {
                let has = self.interface_name();
                Err(Refusal::OtherInterface { has, wants: "NVMe directives" })
            }
        }
    }

    fn enable_streams(&mut self, enabled: bool) -> Answer<()> {
        if let Interface::Fdp(_) = self.data_placement.interface {
            let about = "the endurance group has flexible data placement enabled".to_owned();
            return Err(Refusal::InvalidField(about));
        }
        let (nvme, route) = self.nvme()?;
        nvme.set_enabled(route, enabled);
        Ok(())
    }

    fn stream_parameters(&mut self) -> Answer<StreamParameters> {
        let sizes = self.data_placement.sizes;
        let (nvme, _) = self.nvme()?;
        nvme.check_enabled()?;
        Ok(nvme.parameters(&sizes))
    }

    fn stream_status(&mut self) -> Answer<Vec<u16>> {
        let (nvme, _) = self.nvme()?;
        nvme.check_enabled()?;
        Ok(nvme.resources.ids())
    }

    fn allocate_streams(&mut self, wanted: u16) -> Answer<u16> {
        let (nvme, route) = self.nvme()?;
        nvme.allocate(route, wanted)
    }

    fn release_stream(&mut self, id: u16) -> Answer<bool> {
        let (nvme, route) = self.nvme()?;
        nvme.release(route, id)
    }

    fn release_stream_resources(&mut self) -> Answer<()> {
        let (nvme, route) = self.nvme()?;
        nvme.release_resources(route)
    }

    fn scsi_open_stream(&mut self) -> Answer<u16> {
        self.scsi()?;
        let p = &mut self.data_placement;
        let Interface::Scsi(scsi) = &mut p.interface else { unreachable!("checked above") };
        scsi.open(&mut p.route, &mut p.tally)
    }

    fn scsi_close_stream(&mut self, id: u16) -> Answer<()> {
        let (scsi, route) = self.scsi()?;
        scsi.close(route, id)
    }

    fn scsi_stream_status(&mut self, first: u16) -> Answer<Vec<u16>> {
        self.scsi()?.0.status(first)
    }

    fn scsi_block_limits(&mut self) -> Answer<BlockLimitsExtension> {
        let sizes = self.data_placement.sizes;
        Ok(self.scsi()?.0.limits(&sizes))
    }

    fn fdp_configuration(&mut self) -> Answer<FdpConfiguration> {
        let sizes = self.data_placement.sizes;
        let volatile = has_volatile(&self.config);
        Ok(self.fdp()?.0.configuration(&sizes, volatile))
    }

    fn fdp_handle_status(&mut self) -> Answer<Vec<HandleStatus>> {
        self.end_old_units();
        let _ = self.fdp()?;
        Ok(self.status_of_handles())
    }

    fn fdp_update(&mut self, ids: &[u16]) -> Answer<u32> {
        let handles = self.fdp()?.0.checked(ids)?;
        self.end_old_units();
        let mut modified = 0;
        for (&id, &handle) in ids.iter().zip(&handles) {
            if self.abandon(handle) {
                modified += 1;
                let now = self.backend.now;
                let (fdp, _) = self.fdp()?;
                fdp.events.count(FdpEventType::NotFullyWritten, 1);
                fdp.events.about(FdpEventType::NotFullyWritten, now, handle, Some(id), None);
            }
        }
        Ok(modified)
    }

    fn fdp_enable_events(&mut self, id: u16, kinds: &[FdpEventType], enabled: bool) -> Answer<()> {
        let (fdp, _) = self.fdp()?;
        for stream in fdp.streams_of(id)? {
            fdp.events.enable(stream, kinds, enabled);
        }
        Ok(())
    }

    fn fdp_enabled_events(&mut self, id: u16) -> Answer<Vec<FdpEventType>> {
        let (fdp, _) = self.fdp()?;
        let streams = fdp.streams_of(id)?;
        let in_all = |&kind: &FdpEventType| streams.iter().all(|&s| fdp.events.is_enabled(s, kind));
        Ok(FdpEventType::ALL.into_iter().filter(in_all).collect())
    }

    fn fdp_events(&mut self, of_host: bool) -> Answer<Vec<FdpEvent>> {
        self.gather_events();
        Ok(self.fdp()?.0.events.list(of_host))
    }

    fn fdp_statistics(&mut self) -> Answer<FdpStatistics> {
        self.fdp()?;
        Ok(self.statistics())
    }
}
