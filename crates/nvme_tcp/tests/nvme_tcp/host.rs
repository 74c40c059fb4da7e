//! Host side of a connection, which encodes PDUs and parses the replies.

use writecliff_nvme::{Association, Reply, Status};
use writecliff_nvme_tcp::{Command, Fatal, Limits, Received, Receiver, Sender, Settings};

pub(crate) const QUEUE: Association =
    Association { controller: 1, queue: 1, entries: 128, flow_control: true };

/// A parsed PDU from the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pdu {
    pub(crate) kind: u8,
    pub(crate) header: Vec<u8>,
    pub(crate) data: Vec<u8>,
    /// Data offset within the PDU.
    pub(crate) start: usize,
}

impl Pdu {
    pub(crate) fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.header[at], self.header[at + 1]])
    }

    pub(crate) fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.header[at..at + 4].try_into().unwrap())
    }
}

/// Settings requested by the host.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wishes {
    pub(crate) header_digest: bool,
    pub(crate) data_digest: bool,
    /// HPDA in dwords, 0's based.
    pub(crate) alignment: u8,
}

pub(crate) fn initialize(wishes: Wishes) -> Vec<u8> {
    let mut pdu = vec![0; 128];
    pdu[2] = 128;
    pdu[4] = 128;
    pdu[10] = wishes.alignment;
    pdu[11] = u8::from(wishes.header_digest) | u8::from(wishes.data_digest) << 1;
    pdu
}

/// Returns a PDU, where `header` contains the bytes after the common header.
pub(crate) fn make(kind: u8, flags: u8, header: &[u8], data: &[u8], wishes: Wishes) -> Vec<u8> {
    let length = 8 + header.len();
    let start = length + if wishes.header_digest { 4 } else { 0 };
    let trailer = if wishes.data_digest && !data.is_empty() { 4 } else { 0 };
    let mut pdu = vec![kind, flags, length as u8, if data.is_empty() { 0 } else { start as u8 }];
    pdu[1] |= u8::from(wishes.header_digest) | u8::from(trailer > 0) << 1;
    pdu.extend(((start + data.len() + trailer) as u32).to_le_bytes());
    pdu.extend(header);
    if wishes.header_digest {
        let digest = crc32c::crc32c(&pdu);
        pdu.extend(digest.to_le_bytes());
    }
    pdu.extend(data);
    if trailer > 0 {
        pdu.extend(crc32c::crc32c(data).to_le_bytes());
    }
    pdu
}

pub(crate) const IN_CAPSULE: u8 = 0x01;
pub(crate) const BY_TRANSPORT: u8 = 0x5a;

pub(crate) fn entry(opcode: u8, id: u16, sgl: u8, length: u32) -> [u8; 64] {
    let mut entry = [0; 64];
    entry[0] = opcode;
    entry[1] = 1 << 6;
    entry[2..4].copy_from_slice(&id.to_le_bytes());
    entry[32..36].copy_from_slice(&length.to_le_bytes());
    entry[39] = sgl;
    entry
}

/// A host, and the controller side of its connection.
pub(crate) struct Host {
    pub(crate) wishes: Wishes,
    pub(crate) receiver: Receiver,
    pub(crate) sender: Sender,
}

impl Host {
    /// Returns a connection whose queue is connected.
    pub(crate) fn new(wishes: Wishes, limits: Limits) -> Self {
        let mut receiver = Receiver::new(limits);
        let mut events = Vec::new();
        receiver.receive(&initialize(wishes), &mut events).unwrap();
        let Some(&Received::Began(settings)) = events.last() else { panic!("{events:?}") };
        let Settings { header_digest, data_digest, .. } = settings;
        assert_eq!((header_digest, data_digest), (wishes.header_digest, wishes.data_digest));
        let mut sender = Sender::new(settings, &receiver);
        receiver.connected(&QUEUE);
        sender.connected(&QUEUE);
        Self { wishes, receiver, sender }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<Vec<Received>, Fatal> {
        let mut events = Vec::new();
        self.receiver.receive(bytes, &mut events)?;
        Ok(events)
    }

    pub(crate) fn capsule(&self, entry: [u8; 64], data: &[u8]) -> Vec<u8> {
        make(4, 0, &entry, data, self.wishes)
    }

    /// Returns the PDU with the data requested with `tag`.
    pub(crate) fn data(&self, id: u16, tag: u16, offset: u32, data: &[u8], last: bool) -> Vec<u8> {
        let mut header = [0; 16];
        header[..2].copy_from_slice(&id.to_le_bytes());
        header[2..4].copy_from_slice(&tag.to_le_bytes());
        header[4..8].copy_from_slice(&offset.to_le_bytes());
        header[8..12].copy_from_slice(&(data.len() as u32).to_le_bytes());
        make(6, u8::from(last) << 2, &header, data, self.wishes)
    }

    /// Returns the bytes of a successful completion.
    pub(crate) fn complete(&mut self, id: u16, data: Vec<u8>) -> Vec<u8> {
        self.reply(&success(id, 7, data))
    }

    pub(crate) fn reply(&mut self, reply: &Reply) -> Vec<u8> {
        let mut out = Vec::new();
        self.sender.completion(reply, &mut out);
        out
    }

    /// Returns the PDUs of a completion without data.
    pub(crate) fn completed(&mut self, id: u16) -> Vec<Pdu> {
        let bytes = self.complete(id, Vec::new());
        self.read(&bytes)
    }

    /// Parses PDUs from the controller and checks their common properties.
    pub(crate) fn read(&self, mut bytes: &[u8]) -> Vec<Pdu> {
        let mut pdus = Vec::new();
        while !bytes.is_empty() {
            let length = u32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize;
            let (pdu, rest) = bytes.split_at(length);
            let (header, start) = (usize::from(pdu[2]), usize::from(pdu[3]));
            assert_eq!(pdu[1] & 1 == 1, self.wishes.header_digest);
            let mut end = header;
            if self.wishes.header_digest {
                assert_eq!(pdu[header..header + 4], crc32c::crc32c(&pdu[..header]).to_le_bytes());
                end += 4;
            }
            let mut data = Vec::new();
            if start > 0 {
                assert_eq!(start % ((usize::from(self.wishes.alignment) + 1) * 4), 0);
                assert!(pdu[end..start].iter().all(|&byte| byte == 0));
                let trailer = if self.wishes.data_digest { 4 } else { 0 };
                data = pdu[start..length - trailer].to_vec();
                assert_eq!(pdu[1] >> 1 & 1 == 1, self.wishes.data_digest);
                if trailer > 0 {
                    assert_eq!(pdu[length - 4..], crc32c::crc32c(&data).to_le_bytes());
                }
                end = length;
            }
            assert_eq!(length, end);
            pdus.push(Pdu { kind: pdu[0], header: pdu[..header].to_vec(), data, start });
            bytes = rest;
        }
        pdus
    }
}

pub(crate) fn success(command_id: u16, result: u64, data: Vec<u8>) -> Reply {
    let (controller, queue, status) = (1, 1, Status::SUCCESS);
    Reply { controller, queue, command_id, result, status, logged: false, data }
}

/// Returns the only command in the events.
pub(crate) fn command(events: &[Received]) -> &Command {
    let [Received::Command(command)] = events else { panic!("{events:?}") };
    command
}

/// Returns the bytes to send from the events.
pub(crate) fn sent(events: &[Received]) -> Vec<u8> {
    let bytes = events.iter().filter_map(|reply| match reply {
        Received::Send(bytes) => Some(bytes.as_slice()),
        _ => None,
    });
    bytes.collect::<Vec<_>>().concat()
}
