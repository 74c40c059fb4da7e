//! Validated configuration of an SSD, as read from TOML by `device_file.rs`.

use writecliff_base::keys::{Choice, Count, Flag, Section, Size, Time};
use writecliff_base::located::{Answer, Table};
use writecliff_base::{Bytes, Nanos, SLOT_BYTES, reject, section, words};
use writecliff_flash::{FlashTiming, Geometry};
use writecliff_ftl::{ConfigError, FtlConfig};
use writecliff_host_interface::{Duplex, Identity, LinkConfig};

use crate::data_placement::DataPlacementConfig;
use crate::mechanisms::Sections;

words! {
    /// Order in which commands start.
    pub enum ServiceOrder {
        /// In arrival order, with reads and writes overlapping.
        Overlapped = "overlapped",
        /// In arrival order, with a barrier between reads and writes.
        Barrier = "barrier",
    }
}

section! {
    /// Controller between link and flash, from section `[controller]` of a device file.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ControllerConfig {
        write_buffer: required Size,
            "memory for written data; at least one program unit per stream plus one more";
        power_loss_protection: required Flag,
            "the buffer survives power loss: a write is durable once it is in the buffer";
        write_cache: required Flag, "state of the volatile write cache after power-up";
        command_time: required Time, "firmware time per command; its inverse is an upper limit on \
         IOPS";
        read_command_time: derived Time = command_time, "firmware time of a read, if longer";
        write_command_time: derived Time = command_time,
            "firmware time of a write, if longer; the excess delays the next command only";
        latency: required Time, "adds latency to each command without delaying others";
        mapping_update_time: default Time = Nanos::ZERO,
            "firmware time per slot that the host writes; slots are mapped one at a time";
        relocation_time: default Time = Nanos::ZERO,
            "firmware time per slot that garbage collection relocates";
        lookup_time: default Time = Nanos::ZERO,
            "firmware time per read on the mapping core; reads have priority";
        read_slot_time: default Time = Nanos::ZERO,
            "mapping core time per slot of a read, if read data share the data path of written \
             data";
        suspend_time: default Time = Nanos::ZERO,
            "mapping core time per suspension of a program or erase for reads";
        merge_time: default Time = Nanos::ZERO,
            "mapping core time per slot that a write covers partially";
        service_order: default Choice<ServiceOrder>(ServiceOrder::WORDS) = ServiceOrder::Overlapped,
            "overlapping reads and writes, or a barrier between them, as in simple controllers";
        reads_in_a_row: required Count(0..=1_000_000),
            "number of consecutive reads that a die serves while a program or erase waits";
        suspends_per_operation: required Count(0..=200),
            "maximum number of suspensions of one program or erase for reads";
        idle_delay: required Time,
            "time without commands until background garbage collection starts";
    }
}

impl ControllerConfig {
    pub(crate) fn read(table: &Table<'_>) -> Answer<Self> {
        let mut config = Self::read_keys(table)?;
        for (key, time) in [
            ("read_command_time", config.read_command_time),
            ("write_command_time", config.write_command_time),
        ] {
            reject! { table,
                key if time < config.command_time =>
                    "{key} is below command_time; it must be as long or longer";
            }
        }
        config.reads_in_a_row = config.reads_in_a_row.max(1);
        Ok(config)
    }

    /// Returns `true` if mapping takes firmware time.
    pub fn has_mapping_core(&self) -> bool {
        self.mapping_update_time != Nanos::ZERO || self.relocation_time != Nanos::ZERO
    }
}

/// Configuration of an SSD.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceConfig {
    /// Model name and firmware revision that the drive reports.
    pub identity: Identity,
    /// Capacity that the host can address.
    pub user_capacity: Bytes,
    /// Flash geometry.
    pub geometry: Geometry,
    /// Flash operation times.
    pub timing: FlashTiming,
    /// Mapping, garbage collection and wear levelling.
    pub ftl: FtlConfig,
    /// Controller timing and write buffer.
    pub controller: ControllerConfig,
    /// Host link and submission queues.
    pub link: LinkConfig,
    /// The mechanisms.
    pub sections: Sections,
    /// Current power state, which the host sets; not part of the device's description.
    pub power_state: usize,
    /// Data placement interface; without one, the host's stream numbers are the FTL's.
    pub data_placement: Option<DataPlacementConfig>,
    /// Slots per entry of the map.
    pub indirection_slots: u32,
    /// Maximum number of partly written indirection units that wait in the buffer.
    pub merged_units: u32,
    /// All values that affect the drive's behaviour, one `key = value` per line. Device files with
    /// equal canonical text describe the same drive; the device hash is computed from this text.
    pub canonical: String,
}

impl DeviceConfig {
    /// Returns the limit on active dies in the current power state; `None` without a limit.
    pub fn max_active_dies(&self) -> Option<u32> {
        let limit = *self.sections.power.as_ref()?.max_active_dies.get(self.power_state)?;
        (limit < self.geometry.dies).then_some(limit)
    }

    /// Returns the power states of the file, from 0 on: the number of dies that may be active, and
    /// the maximum power in watts. Empty if the only power state has no limit.
    pub fn power_states(&self) -> Vec<(u32, f64)> {
        let Some(power) = &self.sections.power else { return Vec::new() };
        let directions = if self.link.duplex == Duplex::Full { 2 } else { 1 };
        let channels = self.geometry.shape.channels;
        let states = power.max_active_dies.iter();
        states.map(|&dies| (dies, power.most(dies, channels, directions))).collect()
    }

    /// Returns `true` if a read of a slot takes its whole die, which follows from the address.
    #[inline]
    pub fn reads_slots_alone(&self) -> bool {
        self.sections.die_parity.is_none()
            && self.geometry.is_plain
            && !self.timing.independent_plane_reads
    }

    /// Checks that every flash page has a page number, as an unscaled simulation requires.
    ///
    /// # Errors
    /// Returns an error if the drive can only be simulated scaled down.
    pub fn check_addresses(&self) -> Result<(), ConfigError> {
        self.geometry.check_addresses(self.sections.addresses())
    }

    /// Returns `true` if fast-forwarding has the same effect on both drives.
    pub(crate) fn fast_forwards_like(&self, other: &Self) -> bool {
        self.data_placement.is_none()
            && other.data_placement.is_none()
            && self.sections.place_alike(&other.sections)
            && self.indirection_slots == other.indirection_slots
            && self.merged_units == other.merged_units
            && self.geometry == other.geometry
            && self.ftl == other.ftl
    }

    /// Returns the over-provisioning, (raw − user) / user.
    pub fn overprovisioning(&self) -> f64 {
        let user = self.user_capacity.0 as f64;
        (self.geometry.raw_bytes().0 as f64 - user) / user
    }

    /// Returns the word line size in bytes over all planes of a die.
    pub fn word_line_bytes(&self) -> u64 {
        let shape = &self.geometry.shape;
        shape.page.0 * u64::from(shape.planes_per_die * shape.cell.page_types())
    }

    /// Returns the number of word lines per block.
    pub fn word_lines(&self) -> u32 {
        self.geometry.shape.pages_per_block / self.geometry.shape.cell.page_types()
    }

    /// Returns the most pieces of compressed data in a slot of flash; 1 without compression.
    pub fn pieces_per_slot(&self) -> u64 {
        u64::from(self.geometry.ppas_per_read_group / self.geometry.slots_per_read_group)
    }

    /// Returns the write buffer size that is needed for the open program units of `streams`
    /// streams, one more unit, the mechanisms, and the indirection units that wait for further
    /// data. The buffer stores data as sent by the host, with a slot for each piece of a unit.
    pub fn buffer_needed(&self, streams: u16) -> Bytes {
        let unit = self.geometry.unit_bytes() * self.pieces_per_slot();
        let mechanisms = self.sections.buffer_bytes(&self.geometry);
        Bytes((u64::from(streams) + 1) * unit + mechanisms + self.merged_bytes())
    }

    /// Returns the bytes of the write buffer that incomplete indirection units may occupy.
    pub fn merged_bytes(&self) -> u64 {
        u64::from(self.merged_units * self.indirection_slots) * SLOT_BYTES
    }

    pub(crate) fn buffer_slots(&self) -> u32 {
        (self.controller.write_buffer.0 / SLOT_BYTES) as u32
    }
}
