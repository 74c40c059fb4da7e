//! A device description, checked: what `device_file.rs` makes of a TOML file.

use writecliff_base::{Bytes, Nanos};
use writecliff_flash::{FlashTiming, Geometry};
use writecliff_ftl::spare::SparePolicy;
use writecliff_ftl::{FtlConfig, Pacing};
use writecliff_port::{Identity, LinkConfig};

use crate::ecc::EccConfig;
use crate::endurance::EnduranceConfig;
use crate::housekeeping::HousekeepingConfig;
use crate::placement::PlacementConfig;
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
    /// Time that a command spends in the controller besides, without holding others up.
    pub latency: Nanos,
    /// Firmware time that placing a slot of host data takes, one slot after the other: mapping,
    /// parity, scheduling. Writes wait when a buffer full of slots is owed. Zero: free.
    pub place_time: Nanos,
    /// The same for a slot that collection moves, during the write that made it necessary.
    pub collect_time: Nanos,
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
    /// Through which the host places its writes; without one its stream numbers are the FTL's.
    pub placement: Option<PlacementConfig>,
    pub thermal: Option<ThermalConfig>,
    pub endurance: Option<EnduranceConfig>,
    pub slc_cache: Option<SlcCacheConfig>,
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

    pub fn buffer_slots(&self) -> u32 {
        (self.controller.write_buffer.0 / u64::from(writecliff_flash::geometry::SLOT_BYTES)) as u32
    }

    /// Every value that changes how the drive behaves, one `key = value` a line: the text that the
    /// device hash is taken over. Names and descriptions are not in it.
    pub fn canonical(&self) -> String {
        let (shape, f, c, l) = (&self.geometry.shape, &self.ftl, &self.controller, &self.link);
        let times = |t: &[Nanos]| t.iter().map(|n| n.0.to_string()).collect::<Vec<_>>().join(",");
        let suspend = |t: Option<Nanos>| t.map_or("no".to_owned(), |n| n.0.to_string());
        let mut lines = vec![
            format!("user_capacity_bytes = {}", self.user_capacity.0),
            format!("channels = {}", shape.channels),
            format!("dies_per_channel = {}", shape.dies_per_channel),
            format!("planes_per_die = {}", shape.planes_per_die),
            format!("blocks_per_plane = {}", shape.blocks_per_plane),
            format!("pages_per_block = {}", shape.pages_per_block),
            format!("page_bytes = {}", shape.page.0),
            format!("cell = {}", shape.cell.name()),
            format!("multi_plane = {}", shape.multi_plane),
            format!("one_shot = {}", shape.one_shot),
            format!("read_ns = {}", times(&self.timing.read)),
            format!("program_ns = {}", times(&self.timing.program)),
            format!("erase_ns = {}", self.timing.erase.0),
            format!("bus_bytes_per_s = {}", self.timing.bus.0),
            format!("flash_command_ns = {}", self.timing.command.0),
            format!("program_suspend_ns = {}", suspend(self.timing.program_suspend)),
            format!("erase_suspend_ns = {}", suspend(self.timing.erase_suspend)),
            format!("rated_cycles = {}", f.rated_cycles),
            format!("streams = {}", f.streams),
            format!("gc = {}", f.gc.name()),
            format!("placement = {}", f.placement.name()),
            format!("wear_leveling = {}", f.wear.name()),
            format!("gc_start = {}", f.gc_start),
            format!("gc_floor = {}", f.gc_floor),
            format!("gc_idle_target = {}", f.gc_idle_target),
            format!("write_buffer_bytes = {}", c.write_buffer.0),
            format!("power_loss_protection = {}", c.power_loss_protection),
            format!("write_cache = {}", c.write_cache),
            format!("command_time_ns = {}", c.command_time.0),
            format!("latency_ns = {}", c.latency.0),
            format!("reads_in_a_row = {}", c.reads_in_a_row),
            format!("suspends_per_operation = {}", c.suspends_per_operation),
            format!("idle_delay_ns = {}", c.idle_delay.0),
            format!("link_bytes_per_s = {}", l.bandwidth.0),
            format!("link_duplex = {:?}", l.duplex),
            format!("link_command_ns = {}", l.command.0),
            format!("queues = {}", l.queues),
            format!("queue_depth = {}", l.queue_depth),
        ];
        self.canonical_choices(&mut lines);
        lines.join("\n")
    }

    /// What a drive may leave out; one that says nothing keeps the hash that it had before there
    /// was a choice.
    fn canonical_choices(&self, lines: &mut Vec<String>) {
        let (f, c) = (&self.ftl, &self.controller);
        if f.spare != SparePolicy::Global {
            lines.push(format!("spare = {}", f.spare.name()));
        }
        if f.pacing != Pacing::Even {
            lines.push(format!("gc_pacing = {}", f.pacing.name()));
        }
        let core = [
            ("place_time", c.place_time),
            ("collect_time", c.collect_time),
            ("lookup_time", c.lookup_time),
            ("read_command_time", c.read_command_time.saturating_sub(c.command_time)),
        ];
        for (key, time) in core {
            if time > Nanos::ZERO {
                lines.push(format!("{key}_ns = {}", time.0));
            }
        }
        if let Some(housekeeping) = &self.housekeeping {
            housekeeping.canonical(lines);
        }
        if let Some(ecc) = &self.ecc {
            ecc.canonical(lines);
        }
        if let Some(power) = &self.power {
            power.canonical(lines);
        }
        if let Some(thermal) = &self.thermal {
            thermal.canonical(lines);
        }
        if let Some(endurance) = &self.endurance {
            endurance.canonical(lines);
        }
        if let Some(reduction) = &f.reduction {
            crate::reduction::canonical(reduction, lines);
        }
        if let Some(slc_cache) = &self.slc_cache {
            slc_cache.canonical(lines);
        }
        lines.extend(self.placement.iter().flat_map(PlacementConfig::canonical));
    }
}
