//! An NBD client for measurements: a closed loop of requests on one connection.
//!
//! fio's client costs a core as much as a fast server does. This one sends what it has to send at
//! once and throws data away, so that a server can be measured beside it.

use std::io;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use writecliff_host_interface::Operation;
use writecliff_runner::Histogram;

use super::input::Input;
use super::protocol::{
    GREETING, NO_ZEROES, OPTION, OPTION_REPLY, REQUEST, SIMPLE_REPLY, command, info, option, reply,
};
use crate::listener::Address;
use crate::socket::Socket;

const SIMPLE_REPLY_BYTES: usize = 16;
const OPTION_REPLY_BYTES: usize = 20;

/// A request as a load makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadRequest {
    pub operation: Operation,
    pub offset: u64,
    pub length: u32,
}

/// What a load measured, by wall time.
#[derive(Clone, Debug)]
pub struct LoadOutcome {
    /// From just before a request is sent until its reply has been read.
    pub latency: Histogram,
    pub elapsed_ns: u64,
}

/// A connection in transmission.
pub struct Client {
    socket: Socket,
    input: Input,
    size: u64,
    /// When each outstanding request was sent, and the data that its reply has, by cookie.
    sent: Vec<(Instant, u32)>,
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the NBD server {what}"))
}

impl Client {
    /// Connects to the first export of a server.
    pub fn connect(address: &Address) -> io::Result<Self> {
        let socket: Socket = match address {
            Address::Unix(path) => UnixStream::connect(path)?.into(),
            Address::Tcp(host, port) => TcpStream::connect((host.as_str(), *port))?.into(),
        };
        let mut client = Self { socket, input: Input::new(), size: 0, sent: Vec::new() };
        client.handshake()?;
        Ok(client)
    }

    /// Bytes of the export.
    pub fn size(&self) -> u64 {
        self.size
    }

    fn handshake(&mut self) -> io::Result<()> {
        let greeting = self.take(18)?;
        let expected = [GREETING.to_be_bytes(), OPTION.to_be_bytes()];
        if greeting[..16] != *expected.as_flattened() {
            return Err(malformed("does not speak the newstyle protocol"));
        }
        let mut go = u32::from(NO_ZEROES | 1).to_be_bytes().to_vec();
        go.extend(OPTION.to_be_bytes());
        go.extend([option::GO, 6].map(u32::to_be_bytes).as_flattened());
        go.extend([0; 6]); // the default export, and no further information
        self.send(&go)?;
        loop {
            let head = self.take(OPTION_REPLY_BYTES)?;
            let (magic, rest) = head.split_first_chunk::<8>().expect("20 bytes");
            let (words, _) = rest.as_chunks::<4>();
            let [_, kind, length] = [0, 1, 2].map(|n| u32::from_be_bytes(words[n]));
            if u64::from_be_bytes(*magic) != OPTION_REPLY {
                return Err(malformed("answers an option with something else"));
            }
            let data = self.take(length as usize)?;
            match kind {
                reply::ACK => return Ok(()),
                reply::INFO if data.starts_with(&info::EXPORT.to_be_bytes()) => {
                    let size = data[2..].first_chunk().ok_or_else(|| malformed("has no size"))?;
                    self.size = u64::from_be_bytes(*size);
                }
                reply::INFO => {}
                _ => return Err(malformed("refuses the default export")),
            }
        }
    }

    fn take(&mut self, count: usize) -> io::Result<Vec<u8>> {
        while self.input.bytes().len() < count {
            self.input.receive(&self.socket, true)?;
        }
        let taken = self.input.bytes()[..count].to_vec();
        self.input.consume(count);
        Ok(taken)
    }

    fn send(&self, mut data: &[u8]) -> io::Result<()> {
        while !data.is_empty() {
            match self.socket.send(data) {
                Ok(count) => data = &data[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.socket.wait(false, true, None, None)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Keeps `queue_depth` requests outstanding until `next` has no more of them.
    pub fn run(
        &mut self,
        queue_depth: u32,
        mut next: impl FnMut() -> Option<LoadRequest>,
    ) -> io::Result<LoadOutcome> {
        let start = Instant::now();
        self.sent = vec![(start, 0); queue_depth as usize];
        let mut latency = Histogram::new();
        let mut free: Vec<u32> = (0..queue_depth).rev().collect();
        let mut requests = Vec::new();
        let mut is_over = false;
        loop {
            let now = Instant::now();
            while !is_over && let Some(cookie) = free.pop() {
                if let Some(request) = next() {
                    self.sent[cookie as usize] = (now, append(&mut requests, &request, cookie));
                } else {
                    free.push(cookie);
                    is_over = true;
                }
            }
            self.send(&requests)?;
            requests.clear();
            if free.len() == queue_depth as usize {
                let elapsed_ns = start.elapsed().as_nanos() as u64;
                return Ok(LoadOutcome { latency, elapsed_ns });
            }
            self.reply(&mut free, &mut latency)?;
        }
    }

    /// Takes at least one reply, and all that have arrived with it.
    fn reply(&mut self, free: &mut Vec<u32>, latency: &mut Histogram) -> io::Result<()> {
        let before = free.len();
        while free.len() == before || self.input.bytes().len() >= SIMPLE_REPLY_BYTES {
            while self.input.bytes().len() < SIMPLE_REPLY_BYTES {
                self.input.receive(&self.socket, true)?;
            }
            let head: [u8; SIMPLE_REPLY_BYTES] = *self.input.head().expect("received");
            self.input.consume(SIMPLE_REPLY_BYTES);
            let (words, _) = head.as_chunks::<4>();
            let [magic, error, high, cookie] = [0, 1, 2, 3].map(|n| u32::from_be_bytes(words[n]));
            let Some(&(sent, data)) = self.sent.get(cookie as usize) else {
                return Err(malformed("answers what was not asked"));
            };
            if magic != SIMPLE_REPLY || high != 0 {
                return Err(malformed("answers with something else"));
            }
            if error != 0 {
                return Err(malformed(&format!("refuses a request: error {error}")));
            }
            self.skip(data as usize)?;
            latency.record(sent.elapsed().as_nanos() as u64);
            free.push(cookie);
        }
        Ok(())
    }

    fn skip(&mut self, mut count: usize) -> io::Result<()> {
        while count > 0 {
            if self.input.bytes().is_empty() {
                self.input.receive(&self.socket, true)?;
            }
            let there = count.min(self.input.bytes().len());
            self.input.consume(there);
            count -= there;
        }
        Ok(())
    }
}

/// Appends a request; returns the length of the data that its reply has.
fn append(requests: &mut Vec<u8>, request: &LoadRequest, cookie: u32) -> u32 {
    let &LoadRequest { operation, offset, length } = request;
    let (command, reply_bytes) = match operation {
        Operation::Read => (command::READ, length),
        Operation::Write => (command::WRITE, 0),
        Operation::Trim => (command::TRIM, 0),
        Operation::Flush => (command::FLUSH, 0),
    };
    requests.extend(REQUEST.to_be_bytes());
    requests.extend(u32::from(command).to_be_bytes()); // no flags
    requests.extend(u64::from(cookie).to_be_bytes());
    requests.extend(offset.to_be_bytes());
    requests.extend(length.to_be_bytes());
    if operation == Operation::Write {
        requests.resize(requests.len() + length as usize, 0x5a);
    }
    reply_bytes
}
