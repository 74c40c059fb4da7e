//! A closed loop of requests on one connection, for measuring servers.
//!
//! fio's clients use as much CPU time as a fast server. This client sends all due requests at once
//! and discards received data, so that it can measure a server on the same machine.

use std::io;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use writecliff_host_interface::Operation;
use writecliff_measure::Histogram;
use writecliff_serve::input::Input;
use writecliff_serve::{Address, Socket};

pub mod nbd;
pub mod nvme;

/// Request of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadRequest {
    /// Operation of the request.
    pub operation: Operation,
    /// First byte.
    pub offset: u64,
    /// Length in bytes.
    pub length: u32,
}

/// Results of a workload run, in wall time.
#[derive(Clone, Debug)]
pub struct LoadOutcome {
    /// Latency from just before a request is sent until its reply has been received.
    pub latency: Histogram,
    /// Wall time from the first request to the last reply.
    pub elapsed_ns: u64,
}

pub(crate) fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the server {what}"))
}

/// A blocking connection to a server.
pub(crate) struct Channel {
    socket: Socket,
    input: Input,
}

impl Channel {
    pub(crate) fn connect(address: &Address) -> io::Result<Self> {
        let socket: Socket = match address {
            Address::Unix(path) => UnixStream::connect(path)?.into(),
            Address::Tcp(host, port) => TcpStream::connect((host.as_str(), *port))?.into(),
        };
        Ok(Self { socket, input: Input::default() })
    }

    /// Waits for more bytes, polling before it sleeps, so that the client adds little latency.
    fn receive(&mut self) -> io::Result<()> {
        match self.input.look(&self.socket, true, None) {
            Some(count) => count,
            None => self.input.receive(&self.socket, true),
        }
    }

    pub(crate) fn head<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        loop {
            if let Some(&head) = self.input.head() {
                self.input.consume(N);
                return Ok(head);
            }
            self.receive()?;
        }
    }

    pub(crate) fn take(&mut self, count: usize) -> io::Result<Vec<u8>> {
        let mut taken = Vec::new();
        self.each(count, |bytes| taken.extend_from_slice(bytes))?;
        Ok(taken)
    }

    pub(crate) fn skip(&mut self, count: usize) -> io::Result<()> {
        self.each(count, |_| {})
    }

    fn each(&mut self, mut count: usize, mut take: impl FnMut(&[u8])) -> io::Result<()> {
        while count > 0 {
            if self.input.bytes().is_empty() {
                self.receive()?;
            }
            let there = count.min(self.input.bytes().len());
            take(&self.input.bytes()[..there]);
            self.input.consume(there);
            count -= there;
        }
        Ok(())
    }

    pub(crate) fn send(&self, mut data: &[u8]) -> io::Result<()> {
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
}

/// Protocol of a workload. Requests are identified by their slot numbers.
pub(crate) trait Protocol {
    /// Size of the shortest reply in bytes.
    const REPLY_BYTES: usize;

    /// Appends a request to the send buffer.
    fn append(&mut self, requests: &mut Vec<u8>, request: &LoadRequest, slot: u32);

    /// Waits for the next reply, consumes it and returns the slot of its request.
    fn reply(&mut self, channel: &mut Channel) -> io::Result<u32>;
}

/// Keeps `queue_depth` requests outstanding until `next` returns `None`.
pub(crate) fn run(
    channel: &mut Channel,
    protocol: &mut impl Protocol,
    queue_depth: u32,
    mut next: impl FnMut() -> Option<LoadRequest>,
) -> io::Result<LoadOutcome> {
    let start = Instant::now();
    let mut sent: Vec<Option<Instant>> = vec![None; queue_depth as usize];
    let mut latency = Histogram::new();
    let mut free: Vec<u32> = (0..queue_depth).rev().collect();
    let mut requests = Vec::new();
    let mut is_over = false;
    loop {
        let now = Instant::now();
        while !is_over && let Some(slot) = free.pop() {
            if let Some(request) = next() {
                debug_assert!(sent[slot as usize].is_none(), "another request has this slot");
                sent[slot as usize] = Some(now);
                protocol.append(&mut requests, &request, slot);
            } else {
                free.push(slot);
                is_over = true;
            }
        }
        channel.send(&requests)?;
        requests.clear();
        if free.len() == queue_depth as usize {
            return Ok(LoadOutcome { latency, elapsed_ns: start.elapsed().as_nanos() as u64 });
        }
        replies(channel, protocol, &mut sent, |slot, sent| {
            latency.record(sent.elapsed().as_nanos() as u64);
            free.push(slot);
        })?;
    }
}

/// Consumes at least one reply, and any further replies that have arrived.
fn replies<P: Protocol>(
    channel: &mut Channel,
    protocol: &mut P,
    sent: &mut [Option<Instant>],
    mut taken: impl FnMut(u32, Instant),
) -> io::Result<()> {
    loop {
        let slot = protocol.reply(channel)?;
        let Some(at) = sent.get_mut(slot as usize).and_then(Option::take) else {
            return Err(malformed("sent a reply that matches no request"));
        };
        taken(slot, at);
        if channel.input.bytes().len() < P::REPLY_BYTES {
            return Ok(());
        }
    }
}
