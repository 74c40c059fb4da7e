//! The checked configuration of an SSD, as `device_file.rs` reads it from TOML.

use writecliff_base::{Bytes, Nanos};
use writecliff_flash::geometry::SLOT_BYTES;
use writecliff_flash::{FlashTiming, Geometry};
use writecliff_ftl::{ConfigError, FtlConfig};
use writecliff_host_interface::{Duplex, Identity, LinkConfig};

use crate::data_placement::DataPlacementConfig;
use crate::mechanisms::cell_care::CellCareConfig;
use crate::mechanisms::die_parity::DieParityConfig;
use crate::mechanisms::ecc::EccConfig;
use crate::mechanisms::endurance::EnduranceConfig;
use crate::mechanisms::housekeeping::HousekeepingConfig;
use crate::mechanisms::integrity::IntegrityConfig;
use crate::mechanisms::mapping_cache::MappingCacheConfig;
use crate::mechanisms::power::PowerConfig;
use crate::mechanisms::power_loss::recovery::RecoveryConfig;
use crate::mechanisms::slc_cache::SlcCacheConfig;
use crate::mechanisms::thermal::ThermalConfig;

/// In which order commands begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServiceOrder {
    /// As they arrive, reads and writes side by side.
    Overlapped,
    /// As they arrive, with a barrier between reads and writes.
    Barrier,
}

/// The controller between link and flash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerConfig {
    /// DRAM (or SRAM) that holds written data until they are on flash.
    pub write_buffer: Bytes,
    /// Whether the buffer survives power loss, so that a write is durable once it is in the buffer.
    pub power_loss_protection: bool,
    /// State of the volatile write cache after power-up.
    pub write_cache: bool,
    /// Firmware time per command, during which no other command is processed; its inverse bounds
    /// the IOPS.
    pub command_time: Nanos,
    /// Firmware time of a read, if longer: cached writes need no look-up before they complete.
    pub read_command_time: Nanos,
    /// Firmware time of a write, if longer: the rest passes while its data are transferred.
    pub write_command_time: Nanos,
    /// Controller latency per command that does not delay others.
    pub latency: Nanos,
    /// Firmware time to map one slot of host data (mapping, parity, scheduling), one slot after the
    /// other. Writes wait when a buffer's worth of slots is pending. Zero disables it.
    pub mapping_update_time: Nanos,
    /// Firmware time for one relocated slot, spent during the write that triggered the relocation.
    pub relocation_time: Nanos,
    /// Time of the same firmware core per read. Reads have priority and do not wait for it.
    pub lookup_time: Nanos,
    /// The same per slot of a read.
    pub read_slot_time: Nanos,
    /// Time of the same core per slot that is written in part and merged with its old data.
    pub merge_time: Nanos,
    pub service_order: ServiceOrder,
    /// Host reads that a die serves consecutively while a program or erase waits.
    pub reads_in_a_row: u32,
    /// Number of times that one program or erase may be suspended for reads.
    pub suspends_per_operation: u32,
    /// Idle time after the last host command before background garbage collection starts.
    pub idle_delay: Nanos,
}

impl ControllerConfig {
    /// Whether mapping takes firmware time.
    pub fn has_mapping_core(&self) -> bool {
        self.mapping_update_time != Nanos::ZERO || self.relocation_time != Nanos::ZERO
    }
}

/// Configuration of an SSD.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceConfig {
    pub identity: Identity,
    pub user_capacity: Bytes,
    pub geometry: Geometry,
    pub timing: FlashTiming,
    pub ftl: FtlConfig,
    pub controller: ControllerConfig,
    pub link: LinkConfig,
    pub housekeeping: Option<HousekeepingConfig>,
    pub ecc: Option<EccConfig>,
    pub cell_care: Option<CellCareConfig>,
    pub power: Option<PowerConfig>,
    /// The power state in force, of those that `power` describes. Like the one that a host sets on
    /// a real drive, it is no part of the device's description.
    pub power_state: usize,
    /// The data placement interface; without one, the host's stream numbers are the FTL's.
    pub data_placement: Option<DataPlacementConfig>,
    pub thermal: Option<ThermalConfig>,
    pub endurance: Option<EnduranceConfig>,
    pub slc_cache: Option<SlcCacheConfig>,
    /// Slots that the map has one entry for.
    pub indirection_slots: u32,
    /// What the controller holds of a mapping table that does not fit; `None`: all of it.
    pub mapping_cache: Option<MappingCacheConfig>,
    pub integrity: Option<IntegrityConfig>,
    pub die_parity: Option<DieParityConfig>,
    pub recovery: RecoveryConfig,
    /// Every value that affects the behaviour of the drive, one `key = value` per line. Device
    /// files with equal text describe the same drive; the device hash is computed from it.
    pub canonical: String,
}

impl DeviceConfig {
    /// The limit on active dies in the power state in force; `None`: all may be active.
    pub fn max_active_dies(&self) -> Option<u32> {
        let limit = *self.power.as_ref()?.max_active_dies.get(self.power_state)?;
        (limit < self.geometry.dies).then_some(limit)
    }

    /// The power states that the file describes, from 0 on: dies that may be active, and the most
    /// power in watts that the modelled drive draws. Empty: it has one, which limits nothing.
    pub fn power_states(&self) -> Vec<(u32, f64)> {
        let Some(power) = &self.power else { return Vec::new() };
        let directions = if self.link.duplex == Duplex::Full { 2 } else { 1 };
        let channels = self.geometry.shape.channels;
        let states = power.max_active_dies.iter();
        states.map(|&dies| (dies, power.most(dies, channels, directions))).collect()
    }

    /// Whether a read of a slot takes its die, which follows from its place alone.
    #[inline]
    pub fn reads_slots_alone(&self) -> bool {
        self.die_parity.is_none()
            && self.geometry.is_plain()
            && !self.timing.independent_plane_reads
    }

    /// Checks that page numbers reach all flash, as they must of a drive that is simulated whole.
    ///
    /// # Errors
    /// Fails if the drive can only be simulated scaled down.
    pub fn check_addresses(&self) -> Result<(), ConfigError> {
        let log = self.slc_cache.as_ref().map_or(0, SlcCacheConfig::addresses);
        Ok(self.geometry.check_addresses(log)?)
    }

    pub fn raw_capacity(&self) -> Bytes {
        self.geometry.raw_bytes()
    }

    /// (raw − user) / user.
    pub fn overprovisioning(&self) -> f64 {
        let user = self.user_capacity.0 as f64;
        (self.raw_capacity().0 as f64 - user) / user
    }

    /// Bytes that one program operation writes on one die.
    pub fn program_unit_bytes(&self) -> u64 {
        self.geometry.unit_bytes()
    }

    /// Bytes that one program operation of the SLC cache writes on one die; 0 without SLC cache.
    pub fn slc_unit_bytes(&self) -> u64 {
        let unit = u64::from(self.geometry.slots_per_read_group * SLOT_BYTES);
        if self.slc_cache.is_some() { unit } else { 0 }
    }

    /// Bytes of a word line over all planes of a die.
    pub fn word_line_bytes(&self) -> u64 {
        let shape = &self.geometry.shape;
        shape.page.0 * u64::from(shape.planes_per_die * shape.cell.page_types())
    }

    /// Word lines per block.
    pub fn word_lines(&self) -> u32 {
        self.geometry.shape.pages_per_block / self.geometry.shape.cell.page_types()
    }

    /// Pieces of compressed data that one slot of flash may hold; 1 without compression.
    pub fn pieces_per_slot(&self) -> u64 {
        u64::from(self.geometry.ppas_per_read_group / self.geometry.slots_per_read_group)
    }

    /// Write buffer needed for the open program units of `streams` streams, one more, and a program
    /// of the SLC cache. Data are in the buffer as the host sent them, with a slot for each piece
    /// of a unit.
    pub fn buffer_needed(&self, streams: u16) -> Bytes {
        let unit = self.program_unit_bytes() * self.pieces_per_slot();
        Bytes((u64::from(streams) + 1) * unit + self.slc_unit_bytes())
    }

    pub fn buffer_slots(&self) -> u32 {
        (self.controller.write_buffer.0 / u64::from(SLOT_BYTES)) as u32
    }
}
