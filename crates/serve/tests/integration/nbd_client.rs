//! NBD client for tests, which can send valid and invalid messages.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::support::WAIT_LIMIT;

pub(crate) const READ: u16 = 0;
pub(crate) const WRITE: u16 = 1;
pub(crate) const DISCONNECT: u16 = 2;
pub(crate) const FLUSH: u16 = 3;
pub(crate) const TRIM: u16 = 4;
pub(crate) const WRITE_ZEROES: u16 = 6;
pub(crate) const FUA: u16 = 1;
pub(crate) const NO_HOLE: u16 = 2;
pub(crate) const GO: u32 = 7;
pub(crate) const INFO: u32 = 6;
pub(crate) const INVALID: u32 = 22;

pub(crate) struct Client {
    pub stream: UnixStream,
    structured: bool,
}

/// A reply to an option: type and data.
pub(crate) type OptionReply = (u32, Vec<u8>);

impl Client {
    /// Connects without performing a handshake. A wait longer than [`WAIT_LIMIT`] fails.
    pub(crate) fn connect_unseen(path: &Path) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(WAIT_LIMIT)).unwrap();
        stream.set_write_timeout(Some(WAIT_LIMIT)).unwrap();
        Self { stream, structured: false }
    }

    /// Connects and receives the server greeting.
    pub(crate) fn connect_silently(path: &Path) -> Self {
        let mut client = Self::connect_unseen(path);
        assert_eq!(&client.take::<16>(), b"NBDMAGICIHAVEOPT");
        assert_eq!(client.take::<2>(), [0, 3]);
        client
    }

    /// Connects and completes the greeting.
    pub(crate) fn connect(path: &Path) -> Self {
        let mut client = Self::connect_silently(path);
        client.send(&3_u32.to_be_bytes());
        client
    }

    /// Connects and enters the transmission phase.
    pub(crate) fn ready(path: &Path, structured: bool) -> Self {
        let mut client = Self::connect(path);
        if structured {
            assert_eq!(client.ask(8, &[]), [(1, Vec::new())]);
            client.structured = true;
        }
        let replies = client.ask(GO, &[0; 6]);
        assert_eq!(replies.last().unwrap().0, 1, "the server acknowledges");
        client
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    pub(crate) fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    fn take_u32(&mut self) -> u32 {
        u32::from_be_bytes(self.take())
    }

    fn take_many(&mut self, count: u32) -> Vec<u8> {
        let mut bytes = vec![0; count as usize];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    pub(crate) fn send_option(&mut self, number: u32, length: u32, data: &[u8]) {
        let numbers = [number.to_be_bytes(), length.to_be_bytes()].concat();
        self.send(&[b"IHAVEOPT", &numbers[..], data].concat());
    }

    /// Sends an option and receives all replies up to an acknowledgement or error.
    pub(crate) fn ask(&mut self, number: u32, data: &[u8]) -> Vec<OptionReply> {
        self.send_option(number, data.len() as u32, data);
        let mut replies = Vec::new();
        loop {
            assert_eq!(u64::from_be_bytes(self.take()), 0x0003_e889_0455_65a9);
            assert_eq!(self.take_u32(), number);
            let (kind, length) = (self.take_u32(), self.take_u32());
            replies.push((kind, self.take_many(length)));
            if kind == 1 || kind >= 1 << 31 {
                return replies;
            }
        }
    }

    pub(crate) fn request(&mut self, flags: u16, command: u16, cookie: u64, range: (u64, u32)) {
        let (offset, length) = range;
        let mut bytes = 0x2560_9513_u32.to_be_bytes().to_vec();
        bytes.extend([flags.to_be_bytes(), command.to_be_bytes()].concat());
        bytes.extend([cookie.to_be_bytes(), offset.to_be_bytes()].concat());
        bytes.extend(length.to_be_bytes());
        self.send(&bytes);
    }

    /// Receives a reply: cookie, error, and the data of a successful read of `length` bytes.
    pub(crate) fn reply(&mut self, length: u32) -> (u64, u32, Vec<u8>) {
        match self.take_u32() {
            0x6744_6698 => {
                let error = self.take_u32();
                let cookie = u64::from_be_bytes(self.take());
                let data = if error == 0 { self.take_many(length) } else { Vec::new() };
                (cookie, error, data)
            }
            0x668e_33ef => {
                assert!(self.structured, "an unrequested structured reply");
                let (flags, kind) = (self.take::<2>(), u16::from_be_bytes(self.take()));
                assert_eq!(flags, [0, 1], "the only chunk");
                let cookie = u64::from_be_bytes(self.take());
                let payload = self.take_u32();
                let mut payload = self.take_many(payload);
                if kind == 32_769 {
                    let (error, message) = payload.split_first_chunk().unwrap();
                    assert_eq!(message, [0, 0]);
                    return (cookie, u32::from_be_bytes(*error), Vec::new());
                }
                assert_eq!(kind, u16::from(length > 0));
                (cookie, 0, payload.split_off(if length == 0 { 0 } else { 8 }))
            }
            other => panic!("{other:#x} begins no reply"),
        }
    }

    /// Sends a request without data, or a read; returns the error and the data.
    pub(crate) fn call(&mut self, flags: u16, command: u16, range: (u64, u32)) -> (u32, Vec<u8>) {
        self.request(flags, command, 99, range);
        let (cookie, error, data) = self.reply(if command == READ { range.1 } else { 0 });
        assert_eq!(cookie, 99);
        (error, data)
    }

    pub(crate) fn write(&mut self, flags: u16, offset: u64, data: &[u8]) -> u32 {
        self.request(flags, WRITE, 98, (offset, data.len() as u32));
        self.send(data);
        let (cookie, error, _) = self.reply(0);
        assert_eq!(cookie, 98);
        error
    }

    pub(crate) fn read(&mut self, offset: u64, length: u32) -> Vec<u8> {
        let (error, data) = self.call(0, READ, (offset, length));
        assert_eq!(error, 0);
        data
    }

    /// Receives data until the server closes the connection.
    pub(crate) fn rest(&mut self, rest: &mut Vec<u8>) {
        assert!(self.is_ended(rest), "the server ends the connection");
    }

    /// Returns `true` if the server has ended the connection; discards data received before.
    pub(crate) fn is_closed(&mut self) -> bool {
        self.is_ended(&mut Vec::new())
    }

    fn is_ended(&mut self, rest: &mut Vec<u8>) -> bool {
        match self.stream.read_to_end(rest) {
            Ok(_) => true,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}
