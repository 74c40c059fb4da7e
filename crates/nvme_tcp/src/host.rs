//! Host side of the protocol as bytes, for measuring clients and for tests.

use writecliff_nvme::command::{ENTRY_BYTES, NSID};

use crate::pdu::{self, Settings, u16_at, u32_at};

pub use crate::pdu::{CAPSULE_BYTES, HEADER_BYTES, INITIALIZE_BYTES};
pub use writecliff_nvme::DISCOVERY_NQN;

const FABRICS: u8 = 0x7f;
const PROPERTY_SET: u32 = 0;
const CONNECT: u32 = 1;
const CONFIGURATION: u32 = 0x14;
/// Controller Configuration: enabled, all command sets in CAP, entries of 64 and 16 bytes.
pub const ENABLED: u32 = 1 | 6 << 4 | 6 << 16 | 4 << 20;
/// Controller Identifier that a host uses to accept any controller (Base 2.1, 6.3).
pub const ANY_CONTROLLER: u16 = u16::MAX;
// Data pointer types (Base 2.1, 4.3.2): an offset in the capsule, or a transport descriptor.
const IN_CAPSULE: u8 = 0x01;
const BY_TRANSPORT: u8 = 0x5a;
const BY_SGL: u8 = 1 << 6;

/// Data transfer of a command.
#[derive(Clone, Copy, Debug)]
pub enum Data<'a> {
    /// The command transfers no data.
    None,
    /// Data in the capsule, or sent after an R2T if the data are too long.
    Capsule(&'a [u8]),
    /// Data that the host sends only after a Ready to Transfer PDU.
    Asked(&'a [u8]),
    /// Number of bytes that the controller sends to the host.
    Read(u32),
}

/// Builder of a submission queue entry.
#[derive(Clone, Copy, Debug)]
pub struct HostEntry(pub [u8; ENTRY_BYTES]);

impl HostEntry {
    /// Returns a command for the drive's namespace.
    pub fn new(opcode: u8) -> Self {
        let mut entry = [0; ENTRY_BYTES];
        (entry[0], entry[1]) = (opcode, BY_SGL);
        Self(entry).dword(1, NSID)
    }

    /// Sets command dword `number` (0 to 15).
    #[must_use]
    pub fn dword(mut self, number: usize, value: u32) -> Self {
        self.0[number * 4..number * 4 + 4].copy_from_slice(&value.to_le_bytes());
        self
    }

    /// Returns a command for `count` blocks; `count` must be at least 1.
    pub fn blocks(opcode: u8, lba: u64, count: u32) -> Self {
        assert!((1..=1 << 16).contains(&count), "a command of {count} blocks");
        let entry = Self::new(opcode).dword(10, lba as u32).dword(11, (lba >> 32) as u32);
        entry.dword(12, count - 1)
    }

    /// Returns a command that sets Controller Configuration: enable, reset or shut down.
    pub fn configure(value: u32) -> Self {
        let entry = Self::new(FABRICS).dword(1, PROPERTY_SET);
        entry.dword(11, CONFIGURATION).dword(12, value)
    }
}

/// Queue parameters for a connection.
#[derive(Clone, Copy, Debug)]
pub struct Queue<'a> {
    /// Subsystem NQN (SUBNQN).
    pub subsystem: &'a str,
    /// Host NQN (HOSTNQN).
    pub host: &'a str,
    /// Host Identifier (HOSTID).
    pub host_id: [u8; 16],
    /// Controller Identifier (CNTLID), or [`ANY_CONTROLLER`].
    pub controller: u16,
    /// Queue Identifier (QID); 0 for the admin queue.
    pub queue: u16,
    /// Submission queue size in entries, at least 2.
    pub entries: u16,
    /// Keep Alive Timeout (KATO) in milliseconds; 0 disables it.
    pub keep_alive_ms: u32,
}

impl Queue<'_> {
    /// Returns the Connect command and its in-capsule data.
    pub fn connect(&self) -> (HostEntry, Vec<u8>) {
        let mut entry = HostEntry::new(FABRICS).dword(1, CONNECT).dword(12, self.keep_alive_ms);
        entry.0[42..44].copy_from_slice(&self.queue.to_le_bytes());
        entry.0[44..46].copy_from_slice(&(self.entries - 1).to_le_bytes());
        let mut data = self.host_id.to_vec();
        data.extend(self.controller.to_le_bytes());
        data.resize(1024, 0);
        data[256..256 + self.subsystem.len()].copy_from_slice(self.subsystem.as_bytes());
        data[512..512 + self.host.len()].copy_from_slice(self.host.as_bytes());
        (entry, data)
    }
}

/// A completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Command Identifier.
    pub id: u16,
    /// Dwords 0 and 1 of the completion queue entry.
    pub result: u64,
    /// Status code type and status code.
    pub status: u16,
}

/// A Ready to Transfer (R2T) request for command data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadyToTransfer {
    /// Command Capsule Identifier (CCCID).
    pub id: u16,
    pub(crate) tag: u16,
    /// Requested Data Offset (R2TO).
    pub offset: u32,
    /// Requested Data Length (R2TL).
    pub length: u32,
}

/// Header of a PDU received from the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FromController {
    /// Capsule response.
    Completion(Completion),
    /// Ready to Transfer.
    ReadyToTransfer(ReadyToTransfer),
    /// Header of read data, followed by `bytes` bytes of data.
    Data {
        /// Data length in bytes.
        bytes: u32,
    },
}

impl FromController {
    /// Parses a header; returns `None` for other PDUs.
    pub fn read(header: &[u8; HEADER_BYTES]) -> Option<Self> {
        let id = u16_at(header, 8);
        Some(match header[0] {
            pdu::RESPONSE => Self::Completion(Completion {
                id: u16_at(header, 20),
                result: u64::from(u32_at(header, 8)) | u64::from(u32_at(header, 12)) << 32,
                status: u16_at(header, 22) >> 1 & 0x7ff,
            }),
            pdu::READY_TO_TRANSFER => Self::ReadyToTransfer(ReadyToTransfer {
                id,
                tag: u16_at(header, 10),
                offset: u32_at(header, 12),
                length: u32_at(header, 16),
            }),
            pdu::C2H_DATA => {
                Self::Data { bytes: u32_at(header, 4).checked_sub(HEADER_BYTES as u32)? }
            }
            _ => return None,
        })
    }
}

/// Encodes host PDUs, with or without digests.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostWriter {
    /// `true` to append a CRC-32C to headers.
    pub header_digest: bool,
    /// `true` to append a CRC-32C to data.
    pub data_digest: bool,
}

impl HostWriter {
    /// Returns the PDU that starts the connection (ICReq).
    pub fn initialize(self) -> [u8; INITIALIZE_BYTES] {
        let mut request = [0; INITIALIZE_BYTES];
        (request[2], request[4]) = (INITIALIZE_BYTES as u8, INITIALIZE_BYTES as u8);
        request[11] = u8::from(self.header_digest) | u8::from(self.data_digest) << 1;
        request
    }

    /// Appends a command capsule.
    pub fn capsule(self, entry: HostEntry, id: u16, data: Data<'_>, out: &mut Vec<u8>) {
        let mut header = [0; pdu::CAPSULE_BYTES];
        header[0] = pdu::COMMAND;
        let (length, kind, in_capsule): (usize, u8, &[u8]) = match data {
            Data::None => (0, BY_TRANSPORT, &[]),
            Data::Capsule(data) => (data.len(), IN_CAPSULE, data),
            Data::Asked(data) => (data.len(), BY_TRANSPORT, &[]),
            Data::Read(length) => (length as usize, BY_TRANSPORT, &[]),
        };
        let body = &mut header[pdu::COMMON_BYTES..];
        body.copy_from_slice(&entry.0);
        body[2..4].copy_from_slice(&id.to_le_bytes());
        body[32..36].copy_from_slice(&(length as u32).to_le_bytes());
        body[39] = kind;
        self.append(&mut header, in_capsule, out);
    }

    /// Appends the requested data of `whole`, in PDUs of up to `most` bytes.
    pub fn data(self, asked: ReadyToTransfer, whole: &[u8], most: usize, out: &mut Vec<u8>) {
        assert!(most > 0, "PDUs without data");
        let (offset, length) = (asked.offset as usize, asked.length as usize);
        for (n, part) in whole[offset..offset + length].chunks(most).enumerate() {
            let done = n * most;
            let mut header = [0; pdu::HEADER_BYTES];
            header[0] = pdu::H2C_DATA;
            header[1] = if done + part.len() == length { pdu::LAST } else { 0 };
            header[8..10].copy_from_slice(&asked.id.to_le_bytes());
            header[10..12].copy_from_slice(&asked.tag.to_le_bytes());
            header[12..16].copy_from_slice(&((offset + done) as u32).to_le_bytes());
            header[16..20].copy_from_slice(&(part.len() as u32).to_le_bytes());
            self.append(&mut header, part, out);
        }
    }

    fn append(self, header: &mut [u8], data: &[u8], out: &mut Vec<u8>) {
        let Self { header_digest, data_digest } = self;
        let settings = Settings { header_digest, data_digest, alignment: 4 };
        pdu::append(out, header, settings, data);
    }
}
