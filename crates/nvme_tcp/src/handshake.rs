//! Connection initialization (TCP transport 1.1, 3.6.2.2 and 3.6.2.3): ICReq and ICResp.

use crate::fault::Fault;
use crate::pdu::{IC_RESPONSE, INITIALIZE_BYTES, u16_at};

/// Settings negotiated between host and controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `true` if PDU headers have a CRC-32C.
    pub header_digest: bool,
    /// `true` if PDU data have a CRC-32C.
    pub data_digest: bool,
    /// Data alignment in PDUs to the host, in bytes.
    pub alignment: u8,
}

impl Settings {
    pub(crate) fn digests(self) -> (bool, bool) {
        (self.header_digest, self.data_digest)
    }
}

/// Parses ICReq and accepts the requested settings. The host may permit any number of outstanding
/// R2Ts; the controller uses one R2T per command.
pub(crate) fn requested(pdu: &[u8]) -> Result<Settings, Fault> {
    if u16_at(pdu, 8) != 0 {
        return Err(Fault::Unsupported(8)); // PDU Format Version (PFV)
    }
    if pdu[10] > 31 {
        return Err(Fault::Header(10));
    }
    if pdu[11] > 3 {
        return Err(Fault::Unsupported(11));
    }
    Ok(Settings {
        header_digest: pdu[11] & 1 != 0,
        data_digest: pdu[11] & 2 != 0,
        alignment: (pdu[10] + 1) * 4,
    })
}

/// Returns ICResp, which states that data from the host may start at any multiple of 4 bytes.
pub(crate) fn response(settings: Settings, max_data: u32) -> Vec<u8> {
    let mut pdu = vec![0; INITIALIZE_BYTES];
    pdu[0] = IC_RESPONSE;
    pdu[2] = INITIALIZE_BYTES as u8;
    pdu[4..8].copy_from_slice(&(INITIALIZE_BYTES as u32).to_le_bytes());
    pdu[11] = u8::from(settings.header_digest) | u8::from(settings.data_digest) << 1;
    pdu[12..16].copy_from_slice(&max_data.to_le_bytes());
    pdu
}
