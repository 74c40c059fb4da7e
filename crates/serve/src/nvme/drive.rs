//! A served drive behind an NVMe controller, with the identity from its device file.

use writecliff_base::{Bytes, Nanos, SLOT_BYTES};
use writecliff_host_interface::placement::DataPlacement;
use writecliff_nvme::{Drive, ErrorEntry, ErrorLog, Health, Identity, PlacementInterface, Status};
use writecliff_runner::{AnyConfig, Counters};
use writecliff_ssd::DeviceConfig;
use writecliff_ssd::data_placement::Report;

use crate::served::{LOGICAL_BLOCKS, Served};
use crate::statistics::Snapshot;

/// Available spare of a drive that does not model bad blocks, in percent.
const ALL_SPARE: u8 = 100;
/// Available spare threshold in percent, set to a common value for data-centre drives.
const SPARE_THRESHOLD: u8 = 10;

/// A served drive as seen by its controller.
pub struct SimulatedDrive {
    served: Served,
    identity: Identity,
}

impl SimulatedDrive {
    /// Returns the drive with identifiers derived from `serial`.
    pub fn new(served: &Served, serial: &str) -> Self {
        let identity = identity_of(served.config(), serial);
        Self { served: served.clone(), identity }
    }
}

impl Drive for SimulatedDrive {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn now(&self) -> Nanos {
        self.served.with_drive(|drive| drive.now())
    }

    fn health(&self) -> Health {
        health(&self.served.snapshot())
    }

    fn error_log(&self) -> ErrorLog {
        self.served.error_log()
    }

    fn log_error(&mut self, entry: ErrorEntry) {
        self.served.log_error(entry);
    }

    fn lba_format(&self) -> u8 {
        let size = self.served.logical_block();
        LOGICAL_BLOCKS.iter().position(|&other| other == size).map_or(0, |index| index as u8)
    }

    fn write_cache(&self) -> bool {
        self.served.with_drive(|drive| drive.write_cache())
    }

    fn set_write_cache(&mut self, enabled: bool) {
        self.served.with_drive(|drive| drive.set_write_cache(enabled));
    }

    /// Purges the drive, which takes no time on the simulated drive.
    fn erase(&mut self) -> Result<(), Status> {
        self.served.purge().map_err(|_| Status::INTERNAL_ERROR)
    }

    fn format(&mut self, lba_format: u8) -> Result<(), Status> {
        self.erase()?;
        self.served.set_logical_block(LOGICAL_BLOCKS[usize::from(lba_format)]);
        Ok(())
    }

    fn shutdown(&mut self) {
        self.served.shut_down();
    }

    fn controller_reset(&mut self) {
        self.served.with_drained_drive(|drive| drive.controller_reset());
    }

    fn placement(&mut self, ask: &mut dyn FnMut(&mut dyn DataPlacement)) {
        self.served
            .with_drive(|drive| drive.data_placement().map(|mut commands| ask(&mut *commands)));
    }
}

/// Returns the SMART data accumulated since the drive was new.
fn health(of: &Snapshot) -> Health {
    let life = of.life;
    let mut health = Health {
        temperature: of.celsius,
        available_spare: ALL_SPARE,
        spare_threshold: SPARE_THRESHOLD,
        host_read_bytes: life.read_bytes,
        host_write_bytes: life.write_bytes,
        media_write_bytes: of.counters.nand_write_bytes().unwrap_or(0),
        host_read_commands: life.read_commands,
        host_write_commands: life.write_commands,
        error_entries: of.error_entries,
        busy: life.busy,
        powered: of.drive_time,
        power_cycles: of.power.cycles,
        unsafe_shutdowns: of.power.unsafe_shutdowns,
        ..Health::default()
    };
    if let Counters::Ssd(ssd) = &of.counters {
        health.percentage_used = ssd.wear.percentage_used;
        health.throttled = ssd.thermal.map_or(Nanos::ZERO, |thermal| thermal.throttled);
        if let Some(bad) = ssd.bad_blocks {
            health.available_spare = bad.available_spare_pct.ceil().clamp(0.0, 100.0) as u8;
            health.is_read_only = bad.counts.read_only != 0;
        }
        let unrecovered = match (ssd.die_parity, ssd.ecc) {
            (Some(parity), _) => parity.counts.unrecovered,
            (None, ecc) => ecc.map_or(0, |ecc| ecc.uncorrectable_reads),
        };
        let reported = ssd.integrity.map_or(0, |integrity| integrity.reported_reads);
        health.media_errors = unrecovered + reported;
    }
    if let Counters::Scm(scm) = &of.counters {
        health.media_write_bytes = scm.media.write_bytes;
    }
    health
}

/// Mapping unit of simulated drives, which is always written as a whole.
const MAPPING_UNIT: Bytes = Bytes(SLOT_BYTES);

/// Returns the identity of a drive with the given serial number.
fn identity_of(config: &AnyConfig, serial: &str) -> Identity {
    let described = config.identity();
    let identifier = identifier(&format!("{}\n{serial}", described.model));
    let mut identity = Identity {
        serial: serial.to_owned(),
        model: described.model.clone(),
        firmware: described.firmware.clone(),
        eui64: eui64(&identifier),
        nguid: identifier,
        uuid: uuid(identifier),
        capacity: config.user_capacity(),
        lba_formats: LOGICAL_BLOCKS.to_vec(),
        volatile_cache: true,
        write_granularity: MAPPING_UNIT,
        atomic_write: MAPPING_UNIT,
        warning_temperature: None,
        rated_writes: described.rated_writes,
        block_erase: false,
        crypto_erase: false,
        placement: PlacementInterface::None,
    };
    match config {
        AnyConfig::Ssd(ssd) => of_ssd(&mut identity, ssd),
        AnyConfig::Disk(_) => {}
        AnyConfig::Scm(scm) => {
            // A new key is sufficient, because the simulated drive need not erase any blocks.
            identity.crypto_erase = true;
            identity.volatile_cache = false;
            identity.write_granularity = scm.media.unit;
            identity.atomic_write = scm.media.unit;
        }
    }
    identity
}

fn of_ssd(identity: &mut Identity, ssd: &DeviceConfig) {
    identity.volatile_cache = !ssd.controller.power_loss_protection;
    identity.block_erase = true;
    let throttle = ssd.sections.thermal.as_ref().and_then(|thermal| thermal.stages.first());
    identity.warning_temperature = throttle.map(|throttle| throttle.at);
    identity.placement = match Report::of(ssd) {
        Some(Report::Nvme(_)) => PlacementInterface::Streams,
        Some(Report::Fdp(configuration)) => PlacementInterface::Fdp(configuration),
        Some(Report::Scsi(_)) | None => PlacementInterface::None,
    };
}

/// Returns 16 bytes derived from a text (FNV-1a, 128 bits), so that a drive has the same
/// identifiers whenever it is served.
fn identifier(text: &str) -> [u8; 16] {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let hash = text.bytes().fold(BASIS, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME));
    hash.to_be_bytes()
}

/// Returns a custom UUID: version 8, variant 1 (RFC 9562).
fn uuid(mut bytes: [u8; 16]) -> [u8; 16] {
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    bytes
}

/// Returns a locally administered EUI-64.
fn eui64(bytes: &[u8; 16]) -> [u8; 8] {
    let mut eui = [0; 8];
    eui.copy_from_slice(&bytes[8..]);
    eui[0] = eui[0] & 0xfc | 0x02;
    eui
}

/// Returns the subsystem's qualified name, derived from the namespace's UUID (Base 2.1, 4.7).
pub(super) fn nqn(identity: &Identity) -> String {
    let number = u128::from_be_bytes(identity.uuid);
    let hex = format!("{number:032x}");
    let [a, b, c, d, e] = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    format!("nqn.2014-08.org.nvmexpress:uuid:{a}-{b}-{c}-{d}-{e}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_follow_from_the_drive() {
        assert_eq!(identifier("a"), identifier("a"));
        assert_ne!(identifier("a"), identifier("b"));
        let [uuid, eui] = [uuid(identifier("a")).to_vec(), eui64(&identifier("a")).to_vec()];
        assert_eq!((uuid[6] >> 4, uuid[8] >> 6, eui[0] & 3), (8, 2, 2));
    }
}
