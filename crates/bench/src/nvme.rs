//! NVMe/TCP host for measurements, with one I/O queue to a target's subsystem.

use std::io;

use writecliff_host_interface::Operation;
use writecliff_nvme_tcp::host::{
    ANY_CONTROLLER, Completion, DISCOVERY_NQN, Data, ENABLED, FromController, HEADER_BYTES,
    HostEntry, HostWriter, INITIALIZE_BYTES, Queue, ReadyToTransfer,
};
use writecliff_serve::Address;

use crate::{Channel, LoadOutcome, LoadRequest, Protocol, malformed};

const HOST_NQN: &str = "nqn.2014-08.org.nvmexpress:uuid:4d3a0e7c-8f52-4b61-9c0e-2a71b5d8e390";
const HOST_ID: [u8; 16] = [5; 16];
/// Queue size in entries, which limits the number of outstanding commands.
const QUEUE_ENTRIES: u16 = 1024;
/// Maximum data size in a capsule, and in other PDUs, that all supported servers accept.
const CAPSULE_DATA_BYTES: usize = 8192;
const PDU_DATA_BYTES: usize = 128 << 10;

const FLUSH: u8 = 0x00;
const WRITE: u8 = 0x01;
const READ: u8 = 0x02;
const DATASET_MANAGEMENT: u8 = 0x09;
const GET_LOG_PAGE: u8 = 0x02;
const IDENTIFY: u8 = 0x06;
const PLAIN: HostWriter = HostWriter { header_digest: false, data_digest: false };

/// A host with its queues.
pub struct Client {
    /// Admin queue, which must stay connected because its loss ends the controller.
    _admin: Channel,
    io: Channel,
    /// Size of the namespace in bytes.
    pub size: u64,
    block_bytes: u32,
}

impl Client {
    /// Connects to the first subsystem that the discovery service at `address` lists; the subsystem
    /// must have the same address.
    pub fn connect(address: &Address) -> io::Result<Self> {
        let subsystem = discover(address)?;
        let (mut admin, controller) = begin(address, &subsystem, ANY_CONTROLLER, 0)?;
        run(&mut admin, HostEntry::configure(ENABLED), Data::None)?;
        let (_, page) = run(&mut admin, HostEntry::new(IDENTIFY), Data::Read(4096))?;
        if page.len() != 4096 {
            return Err(malformed("does not describe its namespace"));
        }
        // Identify Namespace (NVM Command Set 1.1, 4.1.5.1): NSZE, FLBAS, and LBADS of the format.
        let blocks = u64::from_le_bytes(*page.first_chunk().expect("4096 bytes"));
        let format = 128 + 4 * usize::from(page[26] & 0xf);
        let shift = page[format + 2];
        if !(9..=16).contains(&shift) {
            return Err(malformed("has an unsupported block size"));
        }
        let (io, _) = begin(address, &subsystem, controller, 1)?;
        Ok(Self { _admin: admin, io, size: blocks << shift, block_bytes: 1 << shift })
    }

    /// Keeps `queue_depth` requests outstanding until `next` returns `None`. Request offsets and
    /// lengths must be multiples of the namespace's block size.
    pub fn run(
        &mut self,
        queue_depth: u32,
        next: impl FnMut() -> Option<LoadRequest>,
    ) -> io::Result<LoadOutcome> {
        if queue_depth >= u32::from(QUEUE_ENTRIES) {
            let what = format!("a queue accepts at most {} commands", QUEUE_ENTRIES - 1);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let lengths = vec![0; queue_depth as usize];
        let mut commands = Commands { block_bytes: self.block_bytes, lengths, data: Vec::new() };
        crate::run(&mut self.io, &mut commands, queue_depth, next)
    }
}

/// Connects a queue and returns the controller ID.
fn begin(
    address: &Address,
    subsystem: &str,
    controller: u16,
    queue: u16,
) -> io::Result<(Channel, u16)> {
    let mut channel = Channel::connect(address)?;
    channel.send(&PLAIN.initialize())?;
    let response: [u8; INITIALIZE_BYTES] = channel.head()?;
    if response[0] != 1 || response[11] != 0 {
        return Err(malformed("started with an unexpected PDU"));
    }
    let entries = if queue == 0 { 32 } else { QUEUE_ENTRIES };
    let (host, host_id, keep_alive_ms) = (HOST_NQN, HOST_ID, 0);
    let queue = Queue { subsystem, host, host_id, controller, queue, entries, keep_alive_ms };
    let (entry, data) = queue.connect();
    let (completion, _) = run(&mut channel, entry, Data::Capsule(&data))?;
    Ok((channel, completion.result as u16))
}

/// Returns the name of the first subsystem that a discovery service lists.
fn discover(address: &Address) -> io::Result<String> {
    const LOG: u32 = 0x70;
    const ENTRY_BYTES: usize = 1024; // The log page header has the same size.
    const LOG_BYTES: u32 = 8 * ENTRY_BYTES as u32;
    // Skip the discovery services, which Linux lists as well.
    const NVM_SUBSYSTEM: u8 = 2;
    let (mut service, _) = begin(address, DISCOVERY_NQN, ANY_CONTROLLER, 0)?;
    run(&mut service, HostEntry::configure(ENABLED), Data::None)?;
    let log = HostEntry::new(GET_LOG_PAGE).dword(10, LOG | (LOG_BYTES / 4 - 1) << 16);
    let (_, page) = run(&mut service, log, Data::Read(LOG_BYTES))?;
    let mut entries = page.chunks_exact(ENTRY_BYTES).skip(1);
    let entry = entries.find(|entry| entry[2] == NVM_SUBSYSTEM);
    let name = &entry.ok_or_else(|| malformed("offers no subsystem"))?[256..512];
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    String::from_utf8(name[..end].to_vec()).map_err(|_| malformed("has no name"))
}

/// Runs one command on an idle queue until it completes; an error status is returned as an error.
fn run(
    channel: &mut Channel,
    entry: HostEntry,
    data: Data<'_>,
) -> io::Result<(Completion, Vec<u8>)> {
    let mut capsule = Vec::new();
    PLAIN.capsule(entry, 0, data, &mut capsule);
    channel.send(&capsule)?;
    let mut read = Vec::new();
    loop {
        match received(channel)? {
            FromController::Data { bytes } => read.extend(channel.take(bytes as usize)?),
            FromController::Completion(completion) => return Ok((completion, read)),
            FromController::ReadyToTransfer(_) => return Err(malformed("requested no data")),
        }
    }
}

/// Returns the next PDU from the server, without its data; a failed command is an error.
fn received(channel: &mut Channel) -> io::Result<FromController> {
    let header: [u8; HEADER_BYTES] = channel.head()?;
    let pdu = FromController::read(&header);
    match pdu.ok_or_else(|| malformed("sends an unexpected PDU"))? {
        FromController::Completion(Completion { status, .. }) if status != 0 => {
            Err(malformed(&format!("rejected a command with status {status:03x}h")))
        }
        other => Ok(other),
    }
}

/// Outstanding commands by identifier, with the data of each write.
struct Commands {
    block_bytes: u32,
    lengths: Vec<u32>,
    /// Shared write payload, sized for the largest write.
    data: Vec<u8>,
}

impl Commands {
    fn answer(&self, channel: &Channel, asked: ReadyToTransfer) -> io::Result<()> {
        let length = self.lengths.get(usize::from(asked.id)).copied().unwrap_or(0);
        let end = asked.offset.checked_add(asked.length);
        if end.is_none_or(|end| end > length) {
            return Err(malformed("requested data for a command without data"));
        }
        let mut out = Vec::new();
        PLAIN.data(asked, &self.data[..length as usize], PDU_DATA_BYTES, &mut out);
        channel.send(&out)
    }
}

impl Protocol for Commands {
    const REPLY_BYTES: usize = HEADER_BYTES;

    fn append(&mut self, requests: &mut Vec<u8>, request: &LoadRequest, slot: u32) {
        let &LoadRequest { operation, offset, length } = request;
        let (lba, count) = (offset / u64::from(self.block_bytes), length / self.block_bytes);
        let bytes = length as usize;
        if self.data.len() < bytes && operation == Operation::Write {
            self.data.resize(bytes, 0x5a);
        }
        self.lengths[slot as usize] = if operation == Operation::Write { length } else { 0 };
        let mut range = [0; 16];
        let (entry, data) = match operation {
            Operation::Read => (HostEntry::blocks(READ, lba, count), Data::Read(length)),
            Operation::Write if bytes <= CAPSULE_DATA_BYTES => {
                (HostEntry::blocks(WRITE, lba, count), Data::Capsule(&self.data[..bytes]))
            }
            Operation::Write => {
                (HostEntry::blocks(WRITE, lba, count), Data::Asked(&self.data[..bytes]))
            }
            Operation::Trim => {
                range[4..8].copy_from_slice(&count.to_le_bytes());
                range[8..].copy_from_slice(&lba.to_le_bytes());
                let deallocate = HostEntry::new(DATASET_MANAGEMENT).dword(11, 1 << 2);
                (deallocate, Data::Capsule(&range[..]))
            }
            Operation::Flush => (HostEntry::new(FLUSH), Data::None),
        };
        PLAIN.capsule(entry, slot as u16, data, requests);
    }

    fn reply(&mut self, channel: &mut Channel) -> io::Result<u32> {
        loop {
            match received(channel)? {
                FromController::Data { bytes } => channel.skip(bytes as usize)?,
                FromController::ReadyToTransfer(asked) => self.answer(channel, asked)?,
                FromController::Completion(completion) => return Ok(u32::from(completion.id)),
            }
        }
    }
}
