//! A device description, checked: what `device_file.rs` makes of a TOML file.

use writecliff_base::{Bytes, Nanos};
use writecliff_flash::geometry::SLOT_BYTES;
use writecliff_flash::{FlashTiming, Geometry};
use writecliff_ftl::FtlConfig;
use writecliff_host_interface::{Identity, LinkConfig};

use crate::data_placement::DataPlacementConfig;
use crate::ecc::EccConfig;
use crate::endurance::EnduranceConfig;
use crate::housekeeping::HousekeepingConfig;
use crate::power::PowerConfig;
use crate::slc_cache::SlcCacheConfig;
use crate::thermal::ThermalConfig;

/// The controller between link and flash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerConfig {
    /// DRAM (or SRAM) that holds written data until they are on flash.
    pub write_buffer: Bytes,
    /// The buffer survives power loss: a write is durable once it is in the buffer.
    pub power_loss_protection: bool,
    /// State of the volatile write cache after power-up.
    pub write_cache: bool,
    /// Firmware time that a command occupies; its inverse bounds the IOPS.
    pub command_time: Nanos,
    /// The same for a read, where it is longer: cached writes need no look-up before they complete.
    pub read_command_time: Nanos,
    /// Latency that the controller adds to each command without delaying others.
    pub latency: Nanos,
    /// Firmware time to map a slot of host data, one slot after the other: mapping,
    /// parity, scheduling. Writes wait when a buffer full of slots is owed. Zero: free.
    pub mapping_update_time: Nanos,
    /// The same for a slot that GC moves, during the write that made it necessary.
    pub relocation_time: Nanos,
    /// What a read takes of the same firmware core. Reads do not wait for it: they go first.
    pub lookup_time: Nanos,
    /// Host reads that a die serves in a row while a program or erase waits.
    pub reads_in_a_row: u32,
    /// Times that one program or erase may be suspended for reads.
    pub suspends_per_operation: u32,
    /// Without host commands for this long, the drive collects in the background.
    pub idle_delay: Nanos,
}

/// A whole drive.
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
    pub power: Option<PowerConfig>,
    /// The interface for data placement; without one, the host's stream numbers are the FTL's.
    pub data_placement: Option<DataPlacementConfig>,
    pub thermal: Option<ThermalConfig>,
    pub endurance: Option<EnduranceConfig>,
    pub slc_cache: Option<SlcCacheConfig>,
    /// Every value that changes how the drive behaves, one `key = value` a line. Two device files
    /// with the same text describe the same drive; the device hash is taken over it.
    pub canonical: String,
}

impl DeviceConfig {
    pub fn raw_capacity(&self) -> Bytes {
        self.geometry.raw_bytes()
    }

    /// (raw − user) / user.
    pub fn overprovisioning(&self) -> f64 {
        let user = self.user_capacity.0 as f64;
        (self.raw_capacity().0 as f64 - user) / user
    }

    /// What one program operation writes on one die.
    pub fn program_unit_bytes(&self) -> u64 {
        self.geometry.unit_bytes()
    }

    /// What the SLC cache programs at once on one die; 0 without one.
    pub fn slc_unit_bytes(&self) -> u64 {
        let unit = u64::from(self.geometry.slots_per_read_group * SLOT_BYTES);
        if self.slc_cache.is_some() { unit } else { 0 }
    }

    /// A word line over all planes of a die.
    pub fn word_line_bytes(&self) -> u64 {
        let shape = &self.geometry.shape;
        shape.page.0 * u64::from(shape.planes_per_die * shape.cell.page_types())
    }

    /// Word lines of a block.
    pub fn word_lines(&self) -> u32 {
        self.geometry.shape.pages_per_block / self.geometry.shape.cell.page_types()
    }

    /// Pieces of compressed data that one slot of flash may hold; 1 without compression.
    pub fn pieces_per_slot(&self) -> u64 {
        u64::from(self.geometry.ppas_per_read_group / self.geometry.slots_per_read_group)
    }

    /// Write buffer that `streams` open program units and one more need, with a program of the SLC
    /// cache. Data are in the buffer as the host sent them: a slot for each piece of a unit.
    pub fn buffer_needed(&self, streams: u16) -> Bytes {
        let unit = self.program_unit_bytes() * self.pieces_per_slot();
        Bytes((u64::from(streams) + 1) * unit + self.slc_unit_bytes())
    }

    pub fn buffer_slots(&self) -> u32 {
        (self.controller.write_buffer.0 / u64::from(SLOT_BYTES)) as u32
    }
}
