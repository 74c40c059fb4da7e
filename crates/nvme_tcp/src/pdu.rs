//! PDUs (TCP transport 1.1, 3.6.2): common header, types, digests and the negotiated settings.

use crate::fault::Fault;

pub(crate) const COMMON_BYTES: usize = 8;
pub(crate) const DIGEST_BYTES: usize = 4;
/// Size in bytes of the PDUs that initialize a connection.
pub const INITIALIZE_BYTES: usize = 128;
/// Size of a command capsule without data and digests, in bytes.
pub const CAPSULE_BYTES: usize = 72;
/// Header size of response, R2T and data PDUs in bytes.
pub const HEADER_BYTES: usize = 24;
/// Number of bytes of a faulty PDU that a termination request quotes.
pub(crate) const QUOTED_BYTES: usize = 128;

pub(crate) const IC_REQUEST: u8 = 0x00;
pub(crate) const IC_RESPONSE: u8 = 0x01;
pub(crate) const H2C_TERMINATE: u8 = 0x02;
pub(crate) const C2H_TERMINATE: u8 = 0x03;
pub(crate) const COMMAND: u8 = 0x04;
pub(crate) const RESPONSE: u8 = 0x05;
pub(crate) const H2C_DATA: u8 = 0x06;
pub(crate) const C2H_DATA: u8 = 0x07;
pub(crate) const READY_TO_TRANSFER: u8 = 0x09;

// Flags in the common header.
pub(crate) const HEADER_DIGEST: u8 = 1 << 0;
pub(crate) const DATA_DIGEST: u8 = 1 << 1;
pub(crate) const LAST: u8 = 1 << 2;
/// Flag of a command's last data PDU: the command succeeded, and no response capsule follows.
pub(crate) const SUCCEEDED: u8 = 1 << 3;

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Settings negotiated between host and controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// `true` if PDU headers have a CRC-32C.
    pub header_digest: bool,
    /// `true` if PDU data have a CRC-32C.
    pub data_digest: bool,
    /// Data alignment in PDUs to the host, in bytes.
    pub alignment: u8,
}

impl Settings {
    /// Parses ICReq (TCP transport 1.1, 3.6.2.2) and accepts the requested settings. The host may
    /// permit any number of outstanding R2Ts; the controller uses one R2T per command.
    pub(crate) fn requested(pdu: &[u8]) -> Result<Self, Fault> {
        if u16_at(pdu, 8) != 0 {
            return Err(Fault::Unsupported(8)); // PDU Format Version (PFV).
        }
        if pdu[10] > 31 {
            return Err(Fault::Header(10));
        }
        if pdu[11] > 3 {
            return Err(Fault::Unsupported(11));
        }
        let (header_digest, data_digest) = (pdu[11] & 1 != 0, pdu[11] & 2 != 0);
        Ok(Self { header_digest, data_digest, alignment: (pdu[10] + 1) * 4 })
    }

    /// Returns ICResp (3.6.2.3): host data may start at any multiple of 4 bytes.
    pub(crate) fn response(self, max_data: u32) -> Vec<u8> {
        let mut pdu = vec![0; INITIALIZE_BYTES];
        pdu[0] = IC_RESPONSE;
        pdu[2] = INITIALIZE_BYTES as u8;
        pdu[4..8].copy_from_slice(&(INITIALIZE_BYTES as u32).to_le_bytes());
        pdu[11] = u8::from(self.header_digest) | u8::from(self.data_digest) << 1;
        pdu[12..16].copy_from_slice(&max_data.to_le_bytes());
        pdu
    }
}

/// Appends a PDU's header, the header digest and the padding before the data. `length` is the data
/// length; the caller appends the data and the data digest.
pub(crate) fn begin(out: &mut Vec<u8>, header: &mut [u8], settings: Settings, length: usize) {
    let Settings { header_digest, data_digest, alignment } = settings;
    let mut start = header.len() + if header_digest { DIGEST_BYTES } else { 0 };
    let mut end = start;
    if length > 0 {
        start = start.next_multiple_of(alignment.into());
        end = start + length + if data_digest { DIGEST_BYTES } else { 0 };
        debug_assert!(u8::try_from(start).is_ok(), "data at byte {start} of a PDU");
        header[3] = start as u8;
        header[1] |= if data_digest { DATA_DIGEST } else { 0 };
    }
    header[1] |= if header_digest { HEADER_DIGEST } else { 0 };
    header[2] = header.len() as u8;
    header[4..8].copy_from_slice(&(end as u32).to_le_bytes());
    let base = out.len();
    out.extend_from_slice(header);
    if header_digest {
        out.extend_from_slice(&crc32c::crc32c(header).to_le_bytes());
    }
    if length > 0 {
        out.resize(base + start, 0);
    }
    debug_assert_eq!(out.len() - base, start, "the data do not follow");
}

pub(crate) fn append(out: &mut Vec<u8>, header: &mut [u8], settings: Settings, data: &[u8]) {
    begin(out, header, settings, data.len());
    out.extend_from_slice(data);
    if settings.data_digest && !data.is_empty() {
        out.extend_from_slice(&crc32c::crc32c(data).to_le_bytes());
    }
}
