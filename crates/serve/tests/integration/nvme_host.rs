//! A host of NVMe/TCP that sends what tests tell it to, right or wrong.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

pub(crate) const DISCOVERY_NQN: &str = "nqn.2014-08.org.nvmexpress.discovery";
pub(crate) const HOST_NQN: &str = "nqn.2014-08.org.nvmexpress:uuid:tests";
const IN_CAPSULE: u8 = 0x01;
const BY_TRANSPORT: u8 = 0x5a;

/// A completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Completion {
    pub id: u16,
    pub result: u64,
    /// Status code type and status code.
    pub status: u16,
}

/// What a command does with data.
#[derive(Clone, Copy)]
pub(crate) enum Data<'a> {
    None,
    /// In the capsule, or sent when it is asked for.
    Capsule(&'a [u8]),
    Asked(&'a [u8]),
    Read(u32),
}

/// A submission queue entry in the making.
#[derive(Clone, Copy)]
pub(crate) struct Entry(pub [u8; 64]);

impl Entry {
    pub(crate) fn new(opcode: u8) -> Self {
        let mut entry = [0; 64];
        (entry[0], entry[1]) = (opcode, 1 << 6);
        Self(entry).dword(1, 1)
    }

    pub(crate) fn dword(mut self, number: usize, value: u32) -> Self {
        self.0[number * 4..number * 4 + 4].copy_from_slice(&value.to_le_bytes());
        self
    }

    /// A command about `count` blocks.
    pub(crate) fn blocks(opcode: u8, lba: u64, count: u32) -> Self {
        let entry = Self::new(opcode).dword(10, lba as u32).dword(11, (lba >> 32) as u32);
        entry.dword(12, count - 1)
    }
}

/// A connection.
pub(crate) struct Host {
    pub stream: TcpStream,
    digests: bool,
    next_id: u16,
    /// Set before [`Self::connect`] to get the head of the queue in completions, or not.
    pub flow_control: bool,
}

impl Host {
    /// Connects and initializes; a host that waits for ten seconds has failed.
    pub(crate) fn begin(port: u16, digests: bool) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut host = Self { stream, digests, next_id: 0, flow_control: true };
        let mut request = [0; 128];
        (request[2], request[4]) = (128, 128);
        request[11] = if digests { 3 } else { 0 };
        host.stream.write_all(&request).unwrap();
        let mut response = [0; 128];
        host.stream.read_exact(&mut response).unwrap();
        assert_eq!((response[0], response[11]), (1, request[11]));
        host
    }

    /// Connects a queue; the controller, or the status.
    pub(crate) fn connect(
        &mut self,
        nqn: &str,
        host: &str,
        controller: u16,
        queue: u16,
        keep_alive_ms: u32,
    ) -> Result<u16, u16> {
        let mut entry = Entry::new(0x7f).dword(1, 1).dword(12, keep_alive_ms).0;
        entry[42..44].copy_from_slice(&queue.to_le_bytes());
        entry[44..46].copy_from_slice(&127_u16.to_le_bytes());
        entry[46] = u8::from(!self.flow_control) << 2;
        let mut data = vec![5; 16];
        data.extend(controller.to_le_bytes());
        data.resize(1024, 0);
        data[256..256 + nqn.len()].copy_from_slice(nqn.as_bytes());
        data[512..512 + host.len()].copy_from_slice(host.as_bytes());
        let (completion, _) = self.run(Entry(entry), Data::Capsule(&data));
        if completion.status == 0 { Ok(completion.result as u16) } else { Err(completion.status) }
    }

    /// Connects an admin queue and enables its controller.
    pub(crate) fn admin(port: u16, nqn: &str, digests: bool) -> (Self, u16) {
        let mut host = Self::begin(port, digests);
        let controller = host.connect(nqn, HOST_NQN, 0xffff, 0, 0).unwrap();
        host.configure(1 | 6 << 4 | 6 << 16 | 4 << 20);
        (host, controller)
    }

    /// An admin queue and an I/O queue.
    pub(crate) fn both(port: u16, nqn: &str, digests: bool) -> (Self, Self) {
        let (admin, controller) = Self::admin(port, nqn, digests);
        let mut io = Self::begin(port, digests);
        assert_eq!(io.connect(nqn, HOST_NQN, controller, 1, 0), Ok(controller));
        (admin, io)
    }

    pub(crate) fn configure(&mut self, value: u32) {
        let entry = Entry::new(0x7f).dword(1, 0).dword(11, 0x14).dword(12, value);
        assert_eq!(self.run(entry, Data::None).0.status, 0);
    }

    /// Sends a command; its identifier.
    pub(crate) fn send(&mut self, entry: Entry, data: Data<'_>) -> u16 {
        let id = self.next_id;
        self.next_id = (id + 1) % 128;
        let mut entry = entry.0;
        entry[2..4].copy_from_slice(&id.to_le_bytes());
        let (length, kind, in_capsule): (usize, u8, &[u8]) = match data {
            Data::None => (0, BY_TRANSPORT, &[]),
            Data::Capsule(data) => (data.len(), IN_CAPSULE, data),
            Data::Asked(data) => (data.len(), BY_TRANSPORT, &[]),
            Data::Read(length) => (length as usize, BY_TRANSPORT, &[]),
        };
        entry[32..36].copy_from_slice(&(length as u32).to_le_bytes());
        entry[39] = kind;
        let pdu = self.pdu(4, 0, &entry, in_capsule);
        self.stream.write_all(&pdu).unwrap();
        id
    }

    fn pdu(&self, kind: u8, flags: u8, header: &[u8], data: &[u8]) -> Vec<u8> {
        let digest = if self.digests { 4 } else { 0 };
        let start = 8 + header.len() + digest;
        let trailer = if data.is_empty() { 0 } else { digest };
        let at = if data.is_empty() { 0 } else { start };
        let flags = flags | u8::from(self.digests) | u8::from(trailer > 0) << 1;
        let mut pdu = vec![kind, flags, 8 + header.len() as u8, at as u8];
        pdu.extend(((start + data.len() + trailer) as u32).to_le_bytes());
        pdu.extend(header);
        if self.digests {
            pdu.extend(crc32c::crc32c(&pdu.clone()).to_le_bytes());
        }
        pdu.extend(data);
        if trailer > 0 {
            pdu.extend(crc32c::crc32c(data).to_le_bytes());
        }
        pdu
    }

    /// Receives a PDU: its header and its data, with digests verified.
    fn receive(&mut self) -> (Vec<u8>, Vec<u8>) {
        let mut common = [0; 8];
        self.stream.read_exact(&mut common).unwrap();
        let length = u32::from_le_bytes(common[4..8].try_into().unwrap()) as usize;
        let mut pdu = common.to_vec();
        pdu.resize(length, 0);
        self.stream.read_exact(&mut pdu[8..]).unwrap();
        let (header, start) = (usize::from(pdu[2]), usize::from(pdu[3]));
        if self.digests {
            assert_eq!(pdu[header..header + 4], crc32c::crc32c(&pdu[..header]).to_le_bytes());
        }
        let mut data = Vec::new();
        if start > 0 {
            let end = length - if self.digests { 4 } else { 0 };
            data = pdu[start..end].to_vec();
            if self.digests {
                assert_eq!(pdu[end..], crc32c::crc32c(&data).to_le_bytes());
            }
        }
        pdu.truncate(header);
        (pdu, data)
    }

    /// The next completion, and the data that came before it; sends data that are asked for.
    pub(crate) fn complete(&mut self, to_send: &[u8]) -> (Completion, Vec<u8>) {
        let mut read = Vec::new();
        loop {
            let (header, data) = self.receive();
            let number = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().unwrap());
            match header[0] {
                5 => {
                    let status = (number(20) >> 17) as u16 & 0x7ff;
                    let result = u64::from(number(8)) | u64::from(number(12)) << 32;
                    let id = number(20) as u16;
                    return (Completion { id, result, status }, read);
                }
                7 if header[1] >> 3 & 1 == 1 => {
                    assert!(!self.flow_control, "the host needs a response capsule");
                    return (Completion { id: number(8) as u16, result: 0, status: 0 }, data);
                }
                7 => read = data,
                9 => {
                    let (offset, length) = (number(12) as usize, number(16) as usize);
                    let asked = &to_send[offset..offset + length];
                    for (n, part) in asked.chunks(100_000).enumerate() {
                        let at = offset + n * 100_000;
                        let mut rest = header[8..12].to_vec();
                        rest.extend((at as u32).to_le_bytes());
                        rest.extend((part.len() as u32).to_le_bytes());
                        rest.extend([0; 4]);
                        let is_last = at + part.len() == offset + length;
                        let pdu = self.pdu(6, u8::from(is_last) << 2, &rest, part);
                        self.stream.write_all(&pdu).unwrap();
                    }
                }
                kind => panic!("PDU of type {kind:02x}h"),
            }
        }
    }

    /// Runs a command to its completion.
    pub(crate) fn run(&mut self, entry: Entry, data: Data<'_>) -> (Completion, Vec<u8>) {
        let id = self.send(entry, data);
        let to_send = if let Data::Asked(data) = data { data } else { &[] };
        let (completion, read) = self.complete(to_send);
        assert_eq!(completion.id, id);
        (completion, read)
    }

    /// The data of a command that succeeds.
    pub(crate) fn read(&mut self, entry: Entry, length: u32) -> Vec<u8> {
        let (completion, data) = self.run(entry, Data::Read(length));
        assert_eq!((completion.status, data.len()), (0, length as usize));
        data
    }

    /// Waits until the server closes the connection.
    pub(crate) fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        self.stream.read_to_end(&mut rest).is_ok() || self.stream.take_error().is_ok()
    }
}
