//! Administrative commands of the data placement interfaces, which take no time on the drive.

use writecliff_base::{Bytes, Nanos, SLOT_BYTES};
use writecliff_ftl::FrontierId;
use writecliff_host_interface::Drive;
use writecliff_host_interface::placement::{
    self, Answer, BlockLimitsExtension, DataPlacementStatus, Directives, FdpConfiguration,
    FdpEvent, FdpEventType, FdpStatistics, FdpStatus, HandleStatus, Refusal, StreamParameters,
};

use super::fdp::Fdp;
use super::resources::Resources;
use super::streams::NvmeStreams;
use super::time_limit::TimeLimit;
use super::{DataPlacement, Interface, InterfaceKind};
use crate::{Recorder, Ssd, Storage};

/// Defines an accessor for one interface and the routing table; other interfaces reject it.
macro_rules! accessors {
    ($($name:ident = $variant:ident($type:ty) of $kind:expr;)*) => {$(
        fn $name(&mut self) -> Answer<(&mut $type, &mut Vec<u16>)> {
            match &mut self.interface {
                Interface::$variant(interface) => Ok((interface, &mut self.route)),
                _ => Err(Refusal::OtherInterface { has: self.name, wants: $kind.name() }),
            }
        }
    )*};
}

impl DataPlacement {
    accessors! {
        nvme = Nvme(NvmeStreams) of InterfaceKind::NvmeStreams;
        scsi = Scsi(Resources) of InterfaceKind::ScsiStreams;
        fdp = Fdp(Fdp) of InterfaceKind::NvmeFdp;
    }

    fn fdp_mut(&mut self) -> Option<&mut Fdp> {
        if let Interface::Fdp(fdp) = &mut self.interface { Some(fdp) } else { None }
    }

    fn limit(&mut self) -> Option<&mut TimeLimit> {
        self.fdp_mut()?.limit.as_mut()
    }

    pub(crate) fn reset_streams(&mut self) {
        if let Ok((nvme, route)) = self.nvme() {
            nvme.set_enabled(route, false);
        }
    }

    /// Format NVM, and any purge, releases all streams (8.1.8.3).
    pub(crate) fn release_all_streams(&mut self) {
        match &mut self.interface {
            Interface::Nvme(nvme) => nvme.resources.close_all(&mut self.route),
            Interface::Scsi(scsi) => scsi.close_all(&mut self.route),
            Interface::None | Interface::Fdp(_) => {}
        }
    }
}

impl<R: Recorder> Storage<R> {
    fn status_of_handles(&self) -> Vec<HandleStatus> {
        let Interface::Fdp(fdp) = &self.data_placement.interface else { return Vec::new() };
        let now = self.backend.now;
        let status = |(placement_id, stream)| {
            let (slots, _) = self.ftl.host_room(FrontierId(stream));
            let limit = fdp.limit.as_ref();
            HandleStatus {
                placement_id,
                handle: stream % fdp.reclaim_unit_handles,
                time_remaining_s: limit.map_or(0, |limit| limit.remaining_s(stream, now)),
                available: Bytes(u64::from(slots) * SLOT_BYTES),
            }
        };
        fdp.identifiers().map(status).collect()
    }

    /// Abandons the unit of a handle if the unit is partly written; returns `true` if it was.
    fn abandon(&mut self, handle: u16) -> bool {
        let frontier = FrontierId(handle);
        let is_open = self.ftl.host_room(frontier).1;
        if is_open {
            let slots = self.ftl.abandon(frontier, &mut self.backend);
            if let Some(fdp) = self.data_placement.fdp_mut() {
                fdp.abandoned_slots += u64::from(slots);
            }
        }
        is_open
    }

    /// Closes units that have been open for too long: their handles then reference empty ones.
    pub(crate) fn end_old_units(&mut self) {
        let now = self.backend.now;
        self.note_units();
        while let Some((handle, at)) = self.data_placement.limit().and_then(|limit| limit.due(now))
        {
            self.abandon(handle);
            if let Some(fdp) = self.data_placement.fdp_mut() {
                let (kind, id) = (FdpEventType::TimeLimitExceeded, fdp.placement_id(handle));
                fdp.events.count(kind, 1);
                fdp.events.about(kind, at, handle, id, None);
            }
            self.note_units();
        }
    }

    /// Updates which units are open and since when, if the time is limited.
    #[cold]
    pub(crate) fn note_units(&mut self) {
        let Some(limit) = self.data_placement.limit() else { return };
        for handle in 0..self.ftl.config().streams {
            limit.note(handle, self.ftl.host_unit(FrontierId(handle)), self.backend.now);
        }
        self.data_placement.deadline = limit.deadline();
    }

    /// Generates events from the GC log entries since the last call.
    pub(crate) fn gather_events(&mut self) {
        self.end_old_units();
        if let Some(fdp) = self.data_placement.fdp_mut() {
            let log = self.ftl.gc_log_mut().take();
            fdp.gather(log, self.backend.now, Bytes(SLOT_BYTES));
        }
    }

    /// Abandons the open units of all handles in a reset at `at`, and reports this if any were.
    pub(crate) fn abandon_all(&mut self, at: Nanos) {
        let mut modified = false;
        for handle in 0..self.ftl.config().streams {
            modified |= self.abandon(handle);
        }
        if let Some(fdp) = self.data_placement.fdp_mut().filter(|_| modified) {
            fdp.events.count(FdpEventType::ResetModifiedHandles, 1);
            fdp.events.about_all(FdpEventType::ResetModifiedHandles, at);
        }
    }

    fn data_placement_status(&self, statistics: FdpStatistics) -> Option<DataPlacementStatus> {
        let DataPlacement { name, interface, tally, .. } = &self.data_placement;
        let (open_streams, limit, fdp) = match interface {
            Interface::None => return None,
            Interface::Nvme(nvme) => (nvme.resources.ids(), nvme.most(), None),
            Interface::Scsi(scsi) => (scsi.ids(), scsi.limit(), None),
            Interface::Fdp(fdp) => {
                let status = FdpStatus {
                    handles: self.status_of_handles(),
                    events: fdp.events.happened,
                    log: [fdp.events.list(true), fdp.events.list(false)].concat(),
                    abandoned_bytes: fdp.abandoned_slots * SLOT_BYTES,
                };
                (Vec::new(), status.handles.len() as u16, Some(status))
            }
        };
        let by_number = tally.overflow_by_number.iter();
        Some(DataPlacementStatus {
            interface: name,
            enabled: !matches!(interface, Interface::Nvme(nvme) if !nvme.enabled),
            open_streams,
            limit,
            streams_opened: tally.opened,
            streams_released: tally.released,
            overflow_writes: tally.overflow_writes,
            overflow_bytes: tally.overflow_bytes,
            overflow_by_number: by_number.map(|(&number, &bytes)| (number, bytes)).collect(),
            statistics,
            fdp,
        })
    }
}

/// Administrative commands of a drive.
pub struct Administration<'a, R>(pub(crate) &'a mut Ssd<R>);

impl<R: Recorder> Administration<'_, R> {
    /// Returns the FDP statistics, which are also counted by drives without FDP.
    pub fn statistics(&self) -> FdpStatistics {
        let (storage, meters) = (&self.0.storage, self.0.meters(self.0.now()));
        let erases = storage.ftl.wear().total();
        FdpStatistics {
            host_bytes: meters.host_write_bytes,
            media_bytes: meters.nand_write_bytes.unwrap_or_default(),
            erased_bytes: erases * storage.data_placement.sizes.reclaim_unit.0,
        }
    }
}

impl<R: Recorder> placement::DataPlacement for Administration<'_, R> {
    fn interface_name(&self) -> &'static str {
        self.0.storage.data_placement.name
    }

    fn status(&mut self) -> Option<DataPlacementStatus> {
        self.0.storage.gather_events();
        self.0.storage.data_placement_status(self.statistics())
    }

    fn directives(&self) -> Answer<Directives> {
        match &self.0.storage.data_placement.interface {
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
        if let Interface::Fdp(_) = self.0.storage.data_placement.interface {
            let about = "the endurance group has flexible data placement enabled".to_owned();
            return Err(Refusal::InvalidField(about));
        }
        let (nvme, route) = self.0.storage.data_placement.nvme()?;
        nvme.set_enabled(route, enabled);
        Ok(())
    }

    fn stream_parameters(&mut self) -> Answer<StreamParameters> {
        let sizes = self.0.storage.data_placement.sizes;
        let (nvme, _) = self.0.storage.data_placement.nvme()?;
        nvme.check_enabled()?;
        Ok(nvme.parameters(&sizes))
    }

    fn stream_status(&mut self) -> Answer<Vec<u16>> {
        let (nvme, _) = self.0.storage.data_placement.nvme()?;
        nvme.check_enabled()?;
        Ok(nvme.resources.ids())
    }

    fn allocate_streams(&mut self, wanted: u16) -> Answer<u16> {
        let (nvme, route) = self.0.storage.data_placement.nvme()?;
        nvme.allocate(route, wanted)
    }

    fn release_stream(&mut self, id: u16) -> Answer<bool> {
        let (nvme, route) = self.0.storage.data_placement.nvme()?;
        nvme.release(route, id)
    }

    fn release_stream_resources(&mut self) -> Answer<()> {
        let (nvme, route) = self.0.storage.data_placement.nvme()?;
        nvme.release_resources(route)
    }

    fn scsi_open_stream(&mut self) -> Answer<u16> {
        self.0.storage.data_placement.scsi()?;
        let p = &mut self.0.storage.data_placement;
        let Interface::Scsi(scsi) = &mut p.interface else { unreachable!("checked above") };
        scsi.scsi_open(&mut p.route, &mut p.tally)
    }

    fn scsi_close_stream(&mut self, id: u16) -> Answer<()> {
        let (scsi, route) = self.0.storage.data_placement.scsi()?;
        scsi.scsi_close(route, id)
    }

    fn scsi_stream_status(&mut self, first: u16) -> Answer<Vec<u16>> {
        self.0.storage.data_placement.scsi()?.0.scsi_status(first)
    }

    fn scsi_block_limits(&mut self) -> Answer<BlockLimitsExtension> {
        let sizes = self.0.storage.data_placement.sizes;
        Ok(self.0.storage.data_placement.scsi()?.0.scsi_limits(&sizes))
    }

    fn fdp_configuration(&mut self) -> Answer<FdpConfiguration> {
        let sizes = self.0.storage.data_placement.sizes;
        let is_volatile = !self.0.config.controller.power_loss_protection;
        Ok(self.0.storage.data_placement.fdp()?.0.configuration(&sizes, is_volatile))
    }

    fn fdp_handle_status(&mut self) -> Answer<Vec<HandleStatus>> {
        self.0.storage.end_old_units();
        self.0.storage.data_placement.fdp()?;
        Ok(self.0.storage.status_of_handles())
    }

    fn fdp_update(&mut self, ids: &[u16]) -> Answer<u32> {
        let handles = self.0.storage.data_placement.fdp()?.0.checked(ids)?;
        self.0.storage.end_old_units();
        let mut modified = 0;
        for (&id, &handle) in ids.iter().zip(&handles) {
            if self.0.storage.abandon(handle) {
                modified += 1;
                let now = self.0.storage.backend.now;
                let (fdp, _) = self.0.storage.data_placement.fdp()?;
                fdp.events.count(FdpEventType::NotFullyWritten, 1);
                fdp.events.about(FdpEventType::NotFullyWritten, now, handle, Some(id), None);
            }
        }
        Ok(modified)
    }

    fn fdp_enable_events(&mut self, id: u16, kinds: &[FdpEventType], enabled: bool) -> Answer<()> {
        let (fdp, _) = self.0.storage.data_placement.fdp()?;
        for stream in fdp.streams_of(id)? {
            fdp.events.enable(stream, kinds, enabled);
        }
        Ok(())
    }

    fn fdp_enabled_events(&mut self, id: u16) -> Answer<Vec<FdpEventType>> {
        let (fdp, _) = self.0.storage.data_placement.fdp()?;
        let streams = fdp.streams_of(id)?;
        let in_all = |&kind: &FdpEventType| streams.iter().all(|&s| fdp.events.is_enabled(s, kind));
        Ok(FdpEventType::ALL.into_iter().filter(in_all).collect())
    }

    fn fdp_events(&mut self, of_host: bool) -> Answer<Vec<FdpEvent>> {
        self.0.storage.gather_events();
        Ok(self.0.storage.data_placement.fdp()?.0.events.list(of_host))
    }

    fn fdp_statistics(&mut self) -> Answer<FdpStatistics> {
        self.0.storage.data_placement.fdp()?;
        Ok(self.statistics())
    }
}
