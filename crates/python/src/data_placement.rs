//! Data placement interface of a drive: its administrative commands and its status, as plain
//! values.

use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};
use writecliff_base::SECTOR_BYTES;
use writecliff_host_interface::placement::{
    Answer, BlockLimitsExtension, DataPlacement, DataPlacementStatus, FdpConfiguration, FdpEvent,
    FdpEventType, FdpStatistics, HandleStatus, StreamParameters,
};
use writecliff_ssd::data_placement::Report;

use crate::dict::{Dict, Dicts, dict};
use crate::drive::Drive;
use crate::errors;

/// Namespace identifier of the drive's only namespace.
const NAMESPACE: u32 = 1;

fn event_types(names: &[String]) -> PyResult<Vec<FdpEventType>> {
    let find = |name: &String| {
        FdpEventType::named(name).ok_or_else(|| {
            let hint = format!("known: {}", FdpEventType::ALL.map(FdpEventType::name).join(", "));
            errors::config(&format!("unknown event '{name}'"), Some(&hint))
        })
    };
    names.iter().map(find).collect()
}

#[pyclass(module = "writecliff._native", frozen)]
pub(crate) struct DataPlacementCommands {
    pub(crate) drive: Py<Drive>,
}

impl DataPlacementCommands {
    /// Calls `command` with the data placement interface of the drive.
    fn with<T>(&self, command: impl FnOnce(&mut dyn DataPlacement) -> T) -> PyResult<T> {
        let mut drive = self.drive.get().get()?;
        let interface = drive.data_placement().map(|mut commands| command(&mut *commands));
        interface.ok_or_else(|| {
            let what = drive.any_config().without_flash().unwrap_or_default();
            let message = format!("the drive is {what}, which has no data placement interface");
            errors::config(&message, None)
        })
    }

    /// Returns the result of a command that the drive may reject.
    fn ask<T>(&self, command: impl FnOnce(&mut dyn DataPlacement) -> Answer<T>) -> PyResult<T> {
        self.with(command)?.map_err(|refusal| errors::config(&refusal.to_string(), None))
    }
}

#[pymethods]
impl DataPlacementCommands {
    // -- NVMe directives ------------------------------------------------------------------------

    fn directives<'py>(&self, py: Python<'py>) -> Dict<'py> {
        let directives = self.ask(|drive| drive.directives())?;
        Ok(dict! { py, directives.{supported, enabled, persistent} })
    }

    fn enable_streams(&self, enabled: bool) -> PyResult<()> {
        self.ask(|drive| drive.enable_streams(enabled))
    }

    fn stream_parameters<'py>(&self, py: Python<'py>) -> Dict<'py> {
        parameters(py, &self.ask(|drive| drive.stream_parameters())?)
    }

    fn stream_status(&self) -> PyResult<Vec<u16>> {
        self.ask(|drive| drive.stream_status())
    }

    fn allocate_streams(&self, wanted: u16) -> PyResult<u16> {
        self.ask(|drive| drive.allocate_streams(wanted))
    }

    fn release_stream(&self, id: u16) -> PyResult<bool> {
        self.ask(|drive| drive.release_stream(id))
    }

    fn release_stream_resources(&self) -> PyResult<()> {
        self.ask(|drive| drive.release_stream_resources())
    }

    // -- SCSI stream control --------------------------------------------------------------------

    fn scsi_open_stream(&self) -> PyResult<u16> {
        self.ask(|drive| drive.scsi_open_stream())
    }

    fn scsi_close_stream(&self, id: u16) -> PyResult<()> {
        self.ask(|drive| drive.scsi_close_stream(id))
    }

    fn scsi_stream_status(&self, first: u16) -> PyResult<Vec<u16>> {
        self.ask(|drive| drive.scsi_stream_status(first))
    }

    fn scsi_block_limits<'py>(&self, py: Python<'py>) -> Dict<'py> {
        block_limits(py, self.ask(|drive| drive.scsi_block_limits())?)
    }

    // -- FDP ------------------------------------------------------------------------------------

    fn fdp_configuration<'py>(&self, py: Python<'py>) -> Dict<'py> {
        let config = self.ask(|drive| drive.fdp_configuration())?;
        configuration(py, &config)
    }

    fn fdp_usage(&self) -> PyResult<Vec<bool>> {
        let config = self.ask(|drive| drive.fdp_configuration())?;
        Ok((0..config.handles.len()).map(|handle| config.specifies(handle)).collect())
    }

    fn fdp_handle_status<'py>(&self, py: Python<'py>) -> Dicts<'py> {
        handles(py, &self.ask(|drive| drive.fdp_handle_status())?)
    }

    fn fdp_update(&self, ids: Vec<u16>) -> PyResult<u32> {
        self.ask(|drive| drive.fdp_update(&ids))
    }

    fn fdp_enable_events(&self, id: u16, names: Vec<String>, enabled: bool) -> PyResult<()> {
        let kinds = event_types(&names)?;
        self.ask(|drive| drive.fdp_enable_events(id, &kinds, enabled))
    }

    /// Enables all FDP events. A drive without FDP, for example a hard disk, ignores this call.
    fn fdp_enable_all_events(&self) {
        let _ = self.with(|drive| drive.fdp_enable_all_events());
    }

    fn fdp_enabled_events(&self, id: u16) -> PyResult<Vec<&'static str>> {
        let kinds = self.ask(|drive| drive.fdp_enabled_events(id))?;
        Ok(kinds.into_iter().map(FdpEventType::name).collect())
    }

    fn fdp_events<'py>(&self, py: Python<'py>, of_host: bool) -> Dicts<'py> {
        let events = self.ask(|drive| drive.fdp_events(of_host))?;
        event_rows(py, &events)
    }

    fn fdp_statistics<'py>(&self, py: Python<'py>) -> Dict<'py> {
        statistics(py, &self.ask(|drive| drive.fdp_statistics())?)
    }

    // -- any interface --------------------------------------------------------------------------

    fn controller_reset(&self, py: Python<'_>) -> PyResult<()> {
        self.with(|_| ())?;
        let mut drive = self.drive.get().get()?;
        let drive = &mut *drive;
        py.detach(|| drive.controller_reset());
        Ok(())
    }

    fn status<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.with(|_| ())?;
        let seen = self.drive.get().get()?.data_placement_status();
        seen.map(|seen| status(py, &seen)).transpose()
    }

    fn __repr__(&self) -> PyResult<String> {
        let name = self.with(|drive| drive.interface_name())?;
        Ok(format!("DataPlacementCommands({name})"))
    }
}

fn parameters<'py>(py: Python<'py>, p: &StreamParameters) -> Dict<'py> {
    Ok(dict! {
        py,
        "msl" = p.limit,
        "nssa" = p.available,
        "nsso" = p.open,
        "sws" = p.write_size.0 / SECTOR_BYTES,
        "sgs" = p.granularity,
        "nsa" = p.allocated,
        "nso" = p.namespace_open
    })
}

fn block_limits(py: Python<'_>, limits: BlockLimitsExtension) -> Dict<'_> {
    Ok(dict! {
        py,
        limits.{maximum_number_of_streams, optimal_stream_write_size, stream_granularity_size}
    })
}

/// Returns the status that the interface of a new drive reports.
pub(crate) fn report<'py>(py: Python<'py>, report: &Report) -> Dict<'py> {
    match report {
        Report::Nvme(p) => parameters(py, p),
        Report::Scsi(limits) => block_limits(py, *limits),
        Report::Fdp(config) => configuration(py, config),
    }
}

fn configuration<'py>(py: Python<'py>, c: &FdpConfiguration) -> Dict<'py> {
    let kinds: Vec<&str> = c.handles.iter().map(|kind| kind.name()).collect();
    Ok(dict! {
        py,
        c.{rgif},
        "fdpvwc" = c.volatile_cache,
        c.{reclaim_groups},
        "handles" = kinds,
        "max_placement_ids" = c.placement_handles.len(),
        "reclaim_unit_bytes" = c.reclaim_unit.0,
        c.{time_limit_s, placement_handles}
    })
}

fn event_rows<'py>(py: Python<'py>, events: &[FdpEvent]) -> Dicts<'py> {
    let rows = events.iter().map(|event| {
        Ok(dict! {
            py,
            "kind" = event.kind.name(),
            "code" = event.kind.code(),
            "time_ns" = event.time.0,
            event.{placement_id},
            "namespace" = event.placement_id.map(|_| NAMESPACE),
            event.{handle},
            "blocks_moved" = event.moved.map(|moved| moved.0 / SECTOR_BYTES)
        })
    });
    rows.collect()
}

pub(crate) fn statistics<'py>(py: Python<'py>, s: &FdpStatistics) -> Dict<'py> {
    Ok(dict! { py, "hbmw" = s.host_bytes, "mbmw" = s.media_bytes, "mbe" = s.erased_bytes })
}

fn handles<'py>(py: Python<'py>, rows: &[HandleStatus]) -> Dicts<'py> {
    let row = |row: &HandleStatus| {
        let blocks = row.available.0 / SECTOR_BYTES;
        Ok(dict! {
            py, row.{placement_id, handle, time_remaining_s}, "available_blocks" = blocks
        })
    };
    rows.iter().map(row).collect()
}

pub(crate) fn status<'py>(py: Python<'py>, seen: &DataPlacementStatus) -> Dict<'py> {
    let fdp = seen.fdp.as_ref().map(|fdp| {
        let events = FdpEventType::ALL.map(FdpEventType::name).into_iter().zip(fdp.events);
        PyResult::Ok(dict! {
            py,
            "handles" = handles(py, &fdp.handles)?,
            "events" = events.into_py_dict(py)?,
            "log" = event_rows(py, &fdp.log)?,
            fdp.{abandoned_bytes}
        })
    });
    Ok(dict! {
        py,
        seen.{interface, enabled, open_streams, limit, streams_opened, streams_released},
        seen.{overflow_writes, overflow_bytes, overflow_by_number},
        "statistics" = statistics(py, &seen.statistics)?,
        ..fdp.transpose()?.unwrap_or_else(|| PyDict::new(py))
    })
}
