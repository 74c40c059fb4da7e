//! Bytes that a client has sent and that are not yet understood.

use std::io;

use crate::lookout::{Lookout, RECEIVED_MAX};
use crate::served::Served;
use crate::socket::Socket;

/// Data of writes pass through in pieces of up to this size.
const BUFFER_BYTES: usize = 160 << 10;

pub struct Input {
    buffer: Vec<u8>,
    first: usize,
    end: usize,
    lookout: Lookout,
}

impl Default for Input {
    fn default() -> Self {
        Self { buffer: vec![0; BUFFER_BYTES], first: 0, end: 0, lookout: Lookout::default() }
    }
}

impl Input {
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.first..self.end]
    }

    /// The first `N` bytes, if they are there.
    pub fn head<const N: usize>(&self) -> Option<&[u8; N]> {
        self.bytes().first_chunk()
    }

    pub fn consume(&mut self, count: usize) {
        self.first += count;
        assert!(self.first <= self.end, "consumed more than there is");
        if self.first == self.end {
            (self.first, self.end) = (0, 0);
        }
    }

    /// Receives more behind what is there. `UnexpectedEof` at the end of the stream, `WouldBlock`
    /// if there is nothing and `wait` is not set.
    pub fn receive(&mut self, socket: &Socket, wait: bool) -> io::Result<()> {
        let room = self.room();
        let received = socket.receive(&mut self.buffer[room..], wait);
        self.received(received)
    }

    /// The same for what comes soon; `None` if nothing does. See [`Lookout::look`].
    pub fn look(
        &mut self,
        socket: &Socket,
        is_idle: bool,
        served: Option<&Served>,
    ) -> Option<io::Result<()>> {
        let room = self.room();
        let found = self.lookout.look(socket, &mut self.buffer[room..], is_idle, served)?;
        Some(self.received(found))
    }

    /// Begins to attend to the drive if there is not too much to be taken first.
    pub fn attend(&mut self, served: &Served) {
        if self.bytes().len() <= RECEIVED_MAX {
            self.lookout.attend(served);
        }
    }

    /// Leaves the drive to its own thread.
    pub fn leave(&mut self) {
        self.lookout.leave();
    }

    /// Where more can be received.
    fn room(&mut self) -> usize {
        if self.end == self.buffer.len() {
            self.buffer.copy_within(self.first..self.end, 0);
            (self.first, self.end) = (0, self.end - self.first);
        }
        self.end
    }

    fn received(&mut self, received: io::Result<usize>) -> io::Result<()> {
        match received? {
            0 => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            count => {
                self.end += count;
                Ok(())
            }
        }
    }
}
