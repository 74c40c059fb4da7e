//! NVMe/TCP host for tests, which can send valid and invalid messages.

use std::io::{Read, Write};
use std::net::TcpStream;

pub(crate) use writecliff_nvme_tcp::host::{Completion, DISCOVERY_NQN, Data, HostEntry as Entry};
use writecliff_nvme_tcp::host::{ENABLED, FromController, HEADER_BYTES, HostWriter, Queue};

use crate::support::WAIT_LIMIT;

/// Data PDU flag: no response capsule follows.
const SUCCESS: u8 = 1 << 3;

pub(crate) const HOST_NQN: &str = "nqn.2014-08.org.nvmexpress:uuid:tests";
/// A host connection.
pub(crate) struct Host {
    pub stream: TcpStream,
    writer: HostWriter,
    next_id: u16,
    pub queue: u16,
    /// `true` to receive the queue head in completions; set before [`Self::connect`].
    pub flow_control: bool,
}

impl Host {
    /// Connects and initializes the connection. A wait longer than [`WAIT_LIMIT`] fails.
    pub(crate) fn begin(port: u16, digests: bool) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(WAIT_LIMIT)).unwrap();
        stream.set_write_timeout(Some(WAIT_LIMIT)).unwrap();
        let writer = HostWriter { header_digest: digests, data_digest: digests };
        let mut host = Self { stream, writer, next_id: 0, queue: 0, flow_control: true };
        let request = writer.initialize();
        host.stream.write_all(&request).unwrap();
        let mut response = [0; 128];
        host.stream.read_exact(&mut response).unwrap();
        assert_eq!((response[0], response[11]), (1, request[11]));
        host
    }

    /// Connects a queue; returns the controller ID, or the status of the failure.
    pub(crate) fn connect(
        &mut self,
        nqn: &str,
        host: &str,
        controller: u16,
        queue: u16,
        keep_alive_ms: u32,
    ) -> Result<u16, u16> {
        let (host_id, entries) = ([5; 16], 128);
        self.queue = queue;
        let queue =
            Queue { subsystem: nqn, host, host_id, controller, queue, entries, keep_alive_ms };
        let (mut entry, data) = queue.connect();
        entry.0[46] = u8::from(!self.flow_control) << 2;
        let (completion, _) = self.run(entry, Data::Capsule(&data));
        if completion.status == 0 { Ok(completion.result as u16) } else { Err(completion.status) }
    }

    /// Connects an admin queue and enables its controller.
    pub(crate) fn admin(port: u16, nqn: &str, digests: bool) -> (Self, u16) {
        let mut host = Self::begin(port, digests);
        let controller = host.connect(nqn, HOST_NQN, 0xffff, 0, 0).unwrap();
        host.configure(ENABLED);
        (host, controller)
    }

    /// Connects an admin queue and an I/O queue.
    pub(crate) fn both(port: u16, nqn: &str, digests: bool) -> (Self, Self) {
        let (admin, controller) = Self::admin(port, nqn, digests);
        let mut io = Self::begin(port, digests);
        assert_eq!(io.connect(nqn, HOST_NQN, controller, 1, 0), Ok(controller));
        (admin, io)
    }

    pub(crate) fn configure(&mut self, value: u32) {
        assert_eq!(self.run(Entry::configure(value), Data::None).0.status, 0);
    }

    /// Sends a command and returns its identifier.
    pub(crate) fn send(&mut self, entry: Entry, data: Data<'_>) -> u16 {
        let id = self.next_id;
        self.next_id = (id + 1) % 128;
        let mut pdu = Vec::new();
        self.writer.capsule(entry, id, data, &mut pdu);
        self.stream.write_all(&pdu).unwrap();
        id
    }

    /// Receives a PDU and verifies its digests; returns the header and the data.
    fn receive(&mut self) -> (Vec<u8>, Vec<u8>) {
        let mut common = [0; 8];
        self.stream.read_exact(&mut common).unwrap();
        let length = u32::from_le_bytes(common[4..8].try_into().unwrap()) as usize;
        let mut pdu = common.to_vec();
        pdu.resize(length, 0);
        self.stream.read_exact(&mut pdu[8..]).unwrap();
        let (header, start) = (usize::from(pdu[2]), usize::from(pdu[3]));
        if self.writer.header_digest {
            assert_eq!(pdu[header..header + 4], crc32c::crc32c(&pdu[..header]).to_le_bytes());
        }
        let mut data = Vec::new();
        if start > 0 {
            let end = length - if self.writer.header_digest { 4 } else { 0 };
            data = pdu[start..end].to_vec();
            if self.writer.header_digest {
                assert_eq!(pdu[end..], crc32c::crc32c(&data).to_le_bytes());
            }
        }
        pdu.truncate(header);
        (pdu, data)
    }

    /// Returns the next completion and the data that preceded it; sends requested data.
    pub(crate) fn complete(&mut self, to_send: &[u8]) -> (Completion, Vec<u8>) {
        let mut read = Vec::new();
        loop {
            let (header, data) = self.receive();
            let header: &[u8; HEADER_BYTES] = header.first_chunk().unwrap();
            match FromController::read(header).expect("a PDU of a controller") {
                FromController::Completion(completion) => return (completion, read),
                FromController::Data { .. } if header[1] & SUCCESS != 0 => {
                    assert!(!self.flow_control, "the host needs a response capsule");
                    let id = u16::from_le_bytes([header[8], header[9]]);
                    return (Completion { id, result: 0, status: 0 }, data);
                }
                FromController::Data { .. } => read = data,
                FromController::ReadyToTransfer(asked) => {
                    let mut pdus = Vec::new();
                    self.writer.data(asked, to_send, 100_000, &mut pdus);
                    self.stream.write_all(&pdus).unwrap();
                }
            }
        }
    }

    /// Returns the next completion of a command without data transfer; `None` at the end of the
    /// connection.
    pub(crate) fn completion(&mut self) -> Option<Completion> {
        let mut first = [0];
        match self.stream.peek(&mut first) {
            Ok(1) => Some(self.complete(&[]).0),
            _ => None,
        }
    }

    /// Runs a command until it completes.
    pub(crate) fn run(&mut self, entry: Entry, data: Data<'_>) -> (Completion, Vec<u8>) {
        let id = self.send(entry, data);
        let to_send = if let Data::Asked(data) = data { data } else { &[] };
        let (completion, read) = self.complete(to_send);
        assert_eq!(completion.id, id);
        (completion, read)
    }

    /// Returns the data of a command that must succeed.
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
