//! Queued replies to a client, which are sent without waiting for the client.
//!
//! Any thread may queue replies and send as much as the client immediately accepts. The
//! connection's own thread, which the bell wakes, sends the remaining replies. Data are copied from
//! the contents when the buffer has room. A client that does not read its replies therefore costs a
//! buffer and a few words per reply, regardless of its read sizes.

use std::collections::VecDeque;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::request::Failure;
use crate::served::{Served, locked};
use crate::socket::{Bell, Socket};

/// Maximum number of bytes ready to send: Linux's maximum read of 128 KiB fits with its header.
const BUFFER_BYTES: usize = 160 << 10;

/// Segment of a reply that has not been copied yet.
enum Part {
    Bytes(Vec<u8>),
    /// Range of the contents.
    Data {
        offset: u64,
        length: u64,
    },
}

#[derive(Default)]
struct Queue {
    parts: VecDeque<Part>,
    buffer: Vec<u8>,
    /// Number of buffer bytes that have been sent.
    sent: usize,
    /// `true` if the connection has failed.
    is_broken: bool,
}

/// Replies to a client, collected and sent by the threads that complete requests.
pub struct Outbox {
    served: Served,
    pub(crate) socket: Socket,
    /// Rings when the connection's thread has work.
    pub(crate) bell: Bell,
    queue: Mutex<Queue>,
    /// Requests in the drive, until their replies or failures have been queued.
    pub(crate) outstanding: AtomicUsize,
    /// `true` if the connection's thread waits for a request to complete.
    pub(crate) wants_bell: AtomicBool,
}

impl Outbox {
    pub(crate) fn new(served: Served, socket: Socket) -> io::Result<Self> {
        Ok(Self {
            served,
            socket,
            bell: Bell::new()?,
            queue: Mutex::default(),
            outstanding: AtomicUsize::new(0),
            wants_bell: AtomicBool::new(false),
        })
    }

    /// Returns `true` if no request is in the drive: all replies and failures are then queued.
    pub(crate) fn is_idle(&self) -> bool {
        self.outstanding.load(Ordering::SeqCst) == 0
    }

    /// Appends a reply to the bytes to be sent, atomically with respect to other threads.
    pub fn push(&self, reply: impl FnOnce(&mut Reply<'_>)) {
        let mut queue = locked(&self.queue);
        if !queue.is_broken {
            reply(&mut Reply { queue: &mut queue, served: &self.served });
        }
    }

    /// Returns `true` if data are waiting to be sent.
    pub fn is_waiting(&self) -> bool {
        let queue = locked(&self.queue);
        queue.sent < queue.buffer.len() || !queue.parts.is_empty()
    }

    /// Sends one buffer of replies after requests have completed, as far as the client immediately
    /// accepts it. Wakes the connection's thread if bytes are left or the thread waits for a
    /// completion. Any thread may call this.
    pub(crate) fn deliver(&self) {
        let sent = locked(&self.queue).send(self, false);
        if sent.is_err() {
            self.socket.shut_down(); // The connection's thread detects the end of the stream.
        }
        if self.wants_bell.swap(false, Ordering::SeqCst) || matches!(sent, Ok(false)) {
            self.bell.ring();
        }
    }

    /// Sends as much as the client immediately accepts; returns `true` if nothing is left to send.
    /// Only the connection's own thread may call this.
    pub(crate) fn send_all(&self) -> io::Result<bool> {
        locked(&self.queue).send(self, true)
    }

    /// Stops sending and ends the connection.
    pub fn close(&self) {
        *locked(&self.queue) = Queue { is_broken: true, ..Queue::default() };
        self.socket.shut_down();
        self.bell.ring();
    }
}

impl Queue {
    /// Sends one buffer, or all buffered data; returns `true` if nothing is left.
    fn send(&mut self, to: &Outbox, all: bool) -> io::Result<bool> {
        loop {
            if self.sent == self.buffer.len() {
                self.refill(&to.served);
                if self.is_broken {
                    return Err(io::Error::from(io::ErrorKind::BrokenPipe));
                }
                if self.buffer.is_empty() {
                    return Ok(true);
                }
            }
            match to.socket.send(&self.buffer[self.sent..]) {
                Ok(count) => {
                    self.sent += count;
                    debug_assert!(self.sent <= self.buffer.len());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => {
                    *self = Self { is_broken: true, ..Self::default() };
                    return Err(error);
                }
            }
            if !all && self.sent == self.buffer.len() && !self.parts.is_empty() {
                return Ok(false);
            }
        }
    }

    /// Copies reply segments into the empty buffer while there is room.
    fn refill(&mut self, served: &Served) {
        debug_assert_eq!(self.sent, self.buffer.len(), "the buffer has bytes to be sent");
        self.buffer.clear();
        self.sent = 0;
        while self.buffer.len() < BUFFER_BYTES
            && let Some(part) = self.parts.pop_front()
        {
            match part {
                Part::Bytes(bytes) => self.buffer.extend(bytes),
                Part::Data { offset, length } => {
                    let count = length.min((BUFFER_BYTES - self.buffer.len()) as u64);
                    if count < length {
                        let rest = Part::Data { offset: offset + count, length: length - count };
                        self.parts.push_front(rest);
                    }
                    // The header has been sent, so only closing the connection can report an error.
                    if self.copy(served, offset, count).is_err() {
                        self.is_broken = true;
                    }
                }
            }
        }
    }

    fn copy(&mut self, served: &Served, offset: u64, length: u64) -> Result<(), Failure> {
        let from = self.buffer.len();
        debug_assert!(from as u64 + length <= BUFFER_BYTES as u64, "no room for {length} bytes");
        self.buffer.resize(from + length as usize, 0);
        served.read(offset, &mut self.buffer[from..]).map_err(Failure::from)
    }

    fn has_room_for(&self, length: u64) -> bool {
        self.parts.is_empty() && self.buffer.len() as u64 + length <= BUFFER_BYTES as u64
    }
}

/// A reply that is being queued.
pub struct Reply<'a> {
    queue: &'a mut Queue,
    served: &'a Served,
}

impl Reply<'_> {
    /// Appends bytes, for example a header.
    pub fn bytes(&mut self, bytes: &[u8]) {
        if self.queue.has_room_for(bytes.len() as u64) {
            self.queue.buffer.extend(bytes);
            return;
        }
        match self.queue.parts.back_mut() {
            Some(Part::Bytes(last)) => last.extend(bytes),
            _ => self.queue.parts.push_back(Part::Bytes(bytes.to_vec())),
        }
    }

    /// Appends a range of the contents, which is read when the buffer has room.
    pub fn data(&mut self, offset: u64, length: u64) {
        if !self.queue.has_room_for(length) {
            self.queue.parts.push_back(Part::Data { offset, length });
        } else if self.queue.copy(self.served, offset, length).is_err() {
            self.queue.is_broken = true;
        }
    }
}
