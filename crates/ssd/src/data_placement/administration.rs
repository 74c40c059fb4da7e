//! Administrative commands of the data placement interfaces. They take no time on the drive.

use writecliff_base::{Bytes, Nanos, StreamId};
use writecliff_flash::geometry::SLOT_BYTES;
use writecliff_ftl::Ftl;
use writecliff_ftl::frontier::FrontierId;
use writecliff_host_interface::Drive;
use writecliff_host_interface::placement::{
    self, Answer, BlockLimitsExtension, DataPlacementStatus, Directives, FdpConfiguration,
    FdpEvent, FdpEventType, FdpStatistics, FdpStatus, HandleStatus, Refusal, StreamParameters,
};

use super::fdp::Fdp;
use super::scsi::ScsiStreams;
use super::streams::NvmeStreams;
use super::time_limit::TimeLimit;
use super::{DataPlacement, Interface, InterfaceKind, has_volatile};
use crate::attribution::Recorder;
use crate::backend::Backend;
use crate::ssd::Ssd;

/// Defines an accessor for one interface and the routing table; drives with other interfaces reject
/// it.
macro_rules! accessors {
    ($($name:ident = $variant:ident($type:ty) of $kind:expr;)*) => {$(
        fn $name(&mut self) -> Answer<(&mut $type, &mut Vec<u16>)> {
            let has = self.interface.name();
            match &mut self.interface {
                Interface::$variant(interface) => Ok((interface, &mut self.route)),
                _ => Err(Refusal::OtherInterface { has, wants: $kind.name() }),
            }
        }
    )*};
}

impl Interface {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Nvme(_) => InterfaceKind::NvmeStreams.name(),
            Self::Scsi(_) => InterfaceKind::ScsiStreams.name(),
            Self::Fdp(_) => InterfaceKind::NvmeFdp.name(),
        }
    }
}

impl DataPlacement {
    accessors! {
        nvme = Nvme(NvmeStreams) of InterfaceKind::NvmeStreams;
        scsi = Scsi(ScsiStreams) of InterfaceKind::ScsiStreams;
        fdp = Fdp(Fdp) of InterfaceKind::NvmeFdp;
    }

    fn status_of_handles(&self, ftl: &Ftl, now: Nanos) -> Vec<HandleStatus> {
        let Interface::Fdp(fdp) = &self.interface else { return Vec::new() };
        let status = |(placement_id, stream)| {
            let (slots, _) = ftl.host_room(FrontierId(stream));
            let limit = fdp.limit.as_ref();
            HandleStatus {
                placement_id,
                handle: fdp.reclaim_unit_handle(stream),
                time_remaining_s: limit.map_or(0, |limit| limit.remaining_s(stream, now)),
                available: Bytes(u64::from(slots) * u64::from(SLOT_BYTES)),
            }
        };
        fdp.identifiers().map(status).collect()
    }

    /// Abandons the unit of a handle if it is partly written; returns whether it was.
    fn abandon<R: Recorder>(
        &mut self,
        handle: u16,
        ftl: &mut Ftl,
        backend: &mut Backend<R>,
    ) -> bool {
        let frontier = FrontierId(handle);
        if !ftl.host_room(frontier).1 {
            return false;
        }
        let slots = ftl.abandon(frontier, backend);
        if let Interface::Fdp(fdp) = &mut self.interface {
            fdp.abandoned_slots += u64::from(slots);
        }
        true
    }

    /// Closes units that have been open longer than the limit: their handles then reference empty
    /// ones.
    pub(crate) fn end_old_units<R: Recorder>(&mut self, ftl: &mut Ftl, backend: &mut Backend<R>) {
        if !self.is_limited {
            return;
        }
        let now = backend.now;
        self.note_units(ftl, now);
        while let Some((handle, at)) = self.limit().and_then(|limit| limit.due(now)) {
            self.abandon(handle, ftl, backend);
            if let Interface::Fdp(fdp) = &mut self.interface {
                let (kind, id) = (FdpEventType::TimeLimitExceeded, fdp.placement_id(handle));
                fdp.events.count(kind, 1);
                fdp.events.about(kind, at, handle, id, None);
            }
            self.note_units(ftl, now);
        }
    }

    /// Updates which units are open and since when.
    #[cold]
    pub(crate) fn note_units(&mut self, ftl: &Ftl, now: Nanos) {
        for handle in 0..ftl.config().streams {
            let unit = ftl.host_unit(FrontierId(handle));
            if let Some(limit) = self.limit() {
                limit.note(handle, unit, now);
            }
        }
        self.deadline = self.limit().map_or(Nanos::MAX, |limit| limit.deadline());
    }

    fn limit(&mut self) -> Option<&mut TimeLimit> {
        match &mut self.interface {
            Interface::Fdp(fdp) => fdp.limit.as_mut(),
            _ => None,
        }
    }

    /// Generates events from the GC log since the last time.
    pub(crate) fn gather_events<R: Recorder>(&mut self, ftl: &mut Ftl, backend: &mut Backend<R>) {
        self.end_old_units(ftl, backend);
        if let Interface::Fdp(fdp) = &mut self.interface {
            fdp.gather(ftl.gc_log_mut().take(), backend.now, Bytes(u64::from(SLOT_BYTES)));
        }
    }

    /// Disables the Streams directive.
    pub(crate) fn reset_streams(&mut self) {
        if let Ok((nvme, route)) = self.nvme() {
            nvme.reset(route);
        }
    }

    /// Abandons the open units of all handles; returns `true` if there were any.
    pub(crate) fn abandon_all<R: Recorder>(
        &mut self,
        ftl: &mut Ftl,
        backend: &mut Backend<R>,
    ) -> bool {
        let mut modified = false;
        for handle in 0..ftl.config().streams {
            modified |= self.abandon(handle, ftl, backend);
        }
        modified
    }

    /// Reports that a controller reset at `at` has abandoned units.
    pub(crate) fn reset_modified_handles(&mut self, at: Nanos) {
        if let Ok((fdp, _)) = self.fdp() {
            fdp.events.count(FdpEventType::ResetModifiedHandles, 1);
            fdp.events.about_all(FdpEventType::ResetModifiedHandles, at);
        }
    }

    /// Format NVM, and any purge, releases all streams (8.1.8.3).
    pub(crate) fn release_all_streams(&mut self) {
        match &mut self.interface {
            Interface::Nvme(nvme) => nvme.resources.close_all(&mut self.route),
            Interface::Scsi(scsi) => scsi.resources.close_all(&mut self.route),
            Interface::None | Interface::Fdp(_) => {}
        }
    }

    /// Returns the status of the interface; `None` for a drive without one.
    pub(crate) fn status(
        &self,
        ftl: &Ftl,
        now: Nanos,
        statistics: FdpStatistics,
    ) -> Option<DataPlacementStatus> {
        let (open_streams, limit, fdp) = match &self.interface {
            Interface::None => return None,
            Interface::Nvme(nvme) => (nvme.resources.ids(), nvme.most(), None),
            Interface::Scsi(scsi) => (scsi.resources.ids(), scsi.resources.limit(), None),
            Interface::Fdp(fdp) => {
                let status = FdpStatus {
                    handles: self.status_of_handles(ftl, now),
                    events: fdp.events.happened,
                    log: [fdp.events.list(true), fdp.events.list(false)].concat(),
                    abandoned_bytes: fdp.abandoned_slots * u64::from(SLOT_BYTES),
                };
                (Vec::new(), status.handles.len() as u16, Some(status))
            }
        };
        let tally = &self.tally;
        let by_number = tally.overflow_by_number.iter();
        Some(DataPlacementStatus {
            interface: self.interface.name(),
            enabled: !matches!(&self.interface, Interface::Nvme(nvme) if !nvme.is_enabled()),
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

    /// Returns the FTL stream to which a write with stream number `number` would go now; `None` if
    /// the number is not in the table.
    pub(crate) fn routed(&self, number: u16, streams: u16) -> Option<StreamId> {
        let stream = self.route.get(usize::from(number)).copied();
        stream.filter(|&stream| stream < streams).map(StreamId)
    }
}

/// The administrative commands of a drive.
pub struct Administration<'a, R>(pub(crate) &'a mut Ssd<R>);

impl<R: Recorder> Administration<'_, R> {
    fn end_old_units(&mut self) {
        self.0
            .storage
            .data_placement
            .end_old_units(&mut self.0.storage.ftl, &mut self.0.storage.backend);
    }

    /// Returns the FDP statistics, which a drive without FDP also counts.
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
        self.0.storage.data_placement.interface.name()
    }

    fn status(&mut self) -> Option<DataPlacementStatus> {
        let storage = &mut self.0.storage;
        storage.data_placement.gather_events(&mut storage.ftl, &mut storage.backend);
        let (statistics, storage) = (self.statistics(), &self.0.storage);
        storage.data_placement.status(&storage.ftl, storage.backend.now, statistics)
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
        scsi.open(&mut p.route, &mut p.tally)
    }

    fn scsi_close_stream(&mut self, id: u16) -> Answer<()> {
        let (scsi, route) = self.0.storage.data_placement.scsi()?;
        scsi.close(route, id)
    }

    fn scsi_stream_status(&mut self, first: u16) -> Answer<Vec<u16>> {
        self.0.storage.data_placement.scsi()?.0.status(first)
    }

    fn scsi_block_limits(&mut self) -> Answer<BlockLimitsExtension> {
        let sizes = self.0.storage.data_placement.sizes;
        Ok(self.0.storage.data_placement.scsi()?.0.limits(&sizes))
    }

    fn fdp_configuration(&mut self) -> Answer<FdpConfiguration> {
        let sizes = self.0.storage.data_placement.sizes;
        let volatile = has_volatile(&self.0.config);
        Ok(self.0.storage.data_placement.fdp()?.0.configuration(&sizes, volatile))
    }

    fn fdp_handle_status(&mut self) -> Answer<Vec<HandleStatus>> {
        self.end_old_units();
        let _ = self.0.storage.data_placement.fdp()?;
        Ok(self
            .0
            .storage
            .data_placement
            .status_of_handles(&self.0.storage.ftl, self.0.storage.backend.now))
    }

    fn fdp_update(&mut self, ids: &[u16]) -> Answer<u32> {
        let handles = self.0.storage.data_placement.fdp()?.0.checked(ids)?;
        self.end_old_units();
        let mut modified = 0;
        for (&id, &handle) in ids.iter().zip(&handles) {
            if self.0.storage.data_placement.abandon(
                handle,
                &mut self.0.storage.ftl,
                &mut self.0.storage.backend,
            ) {
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
        self.0
            .storage
            .data_placement
            .gather_events(&mut self.0.storage.ftl, &mut self.0.storage.backend);
        Ok(self.0.storage.data_placement.fdp()?.0.events.list(of_host))
    }

    fn fdp_statistics(&mut self) -> Answer<FdpStatistics> {
        self.0.storage.data_placement.fdp()?;
        Ok(self.statistics())
    }
}
