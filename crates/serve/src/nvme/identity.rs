//! Identity of a simulated drive for its controller, derived from the device file.

use writecliff_base::{Bytes, SLOT_BYTES};
use writecliff_nvme::{Identity, PlacementInterface};
use writecliff_runner::AnyConfig;
use writecliff_ssd::DeviceConfig;
use writecliff_ssd::data_placement::Report;

use crate::served::LOGICAL_BLOCKS;

/// Mapping unit of simulated drives, which is always written as a whole.
const MAPPING_UNIT: Bytes = Bytes(SLOT_BYTES);

/// Returns the identity of a drive with the given serial number.
pub(super) fn of(config: &AnyConfig, serial: &str) -> Identity {
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
        critical_temperature: None,
        max_power: None,
        rated_writes: described.rated_writes,
        block_erase: false,
        crypto_erase: false,
        placement: PlacementInterface::None,
    };
    match config {
        AnyConfig::Ssd(ssd) => of_ssd(&mut identity, ssd),
        AnyConfig::Disk(_) => {}
        AnyConfig::Scm(scm) => {
            // The simulated drive does not erase blocks; a new key is sufficient.
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
