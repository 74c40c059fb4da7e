//! Location of a command's data (Base 2.1, 4.3.2; TCP transport 1.1, 3.5): capsule or data PDUs.

use writecliff_nvme::Entry;
use writecliff_nvme::Status;
use writecliff_nvme::command::MAX_TRANSFER;

/// SGL Data Block descriptor with an offset into the capsule.
const IN_CAPSULE: u8 = 0x01;
const BY_TRANSPORT: u8 = 0x5a;
const FABRICS: u8 = 0x7f;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Data {
    None,
    /// Number of bytes at the start of the in-capsule data.
    InCapsule(u32),
    /// Data that are requested with R2T PDUs.
    FromHost(u32),
    ToHost(u32),
}

/// Parses the data pointer of a command whose capsule has `in_capsule` bytes of data.
pub(crate) fn data(entry: Entry<'_>, in_capsule: usize) -> Result<Data, Status> {
    let kind = entry.0[39];
    let (address, length) = (entry.quadword(6), entry.dword(8));
    // Bits 1:0 of the opcode (of the command type in fabrics commands) are the direction.
    let code = if entry.opcode() == FABRICS { entry.0[4] } else { entry.opcode() };
    match (code & 3, kind) {
        (3, _) => Err(Status::INVALID_OPCODE),
        (0, _) => Ok(Data::None),
        (1, IN_CAPSULE) if address != 0 => Err(Status::SGL_OFFSET),
        (1, IN_CAPSULE) if length as usize > in_capsule => Err(Status::DATA_SGL_LENGTH),
        (1, IN_CAPSULE) => Ok(Data::InCapsule(length)),
        (_, _) if length == 0 => Ok(Data::None),
        (1, BY_TRANSPORT) if length > MAX_TRANSFER => Err(Status::INVALID_FIELD),
        (1, BY_TRANSPORT) => Ok(Data::FromHost(length)),
        (_, BY_TRANSPORT) => Ok(Data::ToHost(length)),
        _ => Err(Status::SGL_TYPE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(opcode: u8, kind: u8, address: u64, length: u32) -> Result<Data, Status> {
        let mut entry = [0; 64];
        (entry[0], entry[39]) = (opcode, kind);
        entry[24..32].copy_from_slice(&address.to_le_bytes());
        entry[32..36].copy_from_slice(&length.to_le_bytes());
        data(Entry(&entry), 4096)
    }

    #[test]
    fn descriptors_say_where_data_are() {
        assert_eq!(of(0x01, IN_CAPSULE, 0, 4096), Ok(Data::InCapsule(4096)));
        assert_eq!(of(0x01, BY_TRANSPORT, 0, 1 << 20), Ok(Data::FromHost(1 << 20)));
        assert_eq!(of(0x02, BY_TRANSPORT, 0, 512), Ok(Data::ToHost(512)));
        assert_eq!(of(0x00, BY_TRANSPORT, 0, 0), Ok(Data::None));
        assert_eq!(of(0x02, 0, 0, 0), Ok(Data::None));
        assert_eq!(of(0x01, IN_CAPSULE, 0, 4097), Err(Status::DATA_SGL_LENGTH));
        assert_eq!(of(0x01, IN_CAPSULE, 4, 512), Err(Status::SGL_OFFSET));
        assert_eq!(of(0x02, IN_CAPSULE, 0, 512), Err(Status::SGL_TYPE));
        assert_eq!(of(0x01, BY_TRANSPORT, 0, (1 << 20) + 1), Err(Status::INVALID_FIELD));
        assert_eq!(of(0x01, 0x40, 0, 512), Err(Status::SGL_TYPE));
        assert_eq!(of(0x03, BY_TRANSPORT, 0, 512), Err(Status::INVALID_OPCODE));
    }
}
