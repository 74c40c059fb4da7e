//! Buffered input of a connection: bytes that are not yet parsed.
//!
//! The connection's thread polls for the next request before it sleeps. Waking a thread takes about
//! as long as a client needs to send its next request after a reply.

use std::io;
use std::time::{Duration, Instant};

use crate::served::{DriveDriver, Served};
use crate::socket::{Socket, is_transient};

/// Buffer size; write data pass through the buffer in pieces of up to this size.
const BUFFER_BYTES: usize = 160 << 10;
/// Polling time for the next request.
const POLL: Duration = Duration::from_micros(50);
/// Maximum number of requests between two polls.
const SLEEPS_MAX: u32 = 1_023;
/// Maximum time for which the thread runs the drive before it serves its connection again.
const ATTEND: Duration = Duration::from_millis(1);
/// Maximum number of bytes to receive at once while running the drive, so as not to delay it.
const RECEIVED_MAX: usize = 8 << 10;

/// Adaptive polling for client requests, with exponential back-off. While requests are outstanding,
/// the polling thread also runs the drive, so that the drive's own thread need not be woken.
pub struct Input {
    buffer: Vec<u8>,
    first: usize,
    end: usize,
    /// Number of subsequent requests for which the thread does not poll.
    sleeps: u32,
    /// Value of `sleeps` after the next poll that receives no request.
    next_sleeps: u32,
    attendant: Option<DriveDriver>,
}

impl Default for Input {
    fn default() -> Self {
        let buffer = vec![0; BUFFER_BYTES];
        Self { buffer, first: 0, end: 0, sleeps: 0, next_sleeps: 0, attendant: None }
    }
}

impl Input {
    /// Returns the received bytes that have not been consumed.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.first..self.end]
    }

    /// Returns the first `N` bytes if they have been received.
    pub fn head<const N: usize>(&self) -> Option<&[u8; N]> {
        self.bytes().first_chunk()
    }

    /// Discards the first `count` bytes.
    pub fn consume(&mut self, count: usize) {
        self.first += count;
        assert!(self.first <= self.end, "consumed more than was received");
        if self.first == self.end {
            (self.first, self.end) = (0, 0);
        }
    }

    /// Receives more bytes after the buffered ones. Returns the error `UnexpectedEof` at the end of
    /// the stream, and `WouldBlock` if no bytes have arrived and `wait` is not set.
    pub fn receive(&mut self, socket: &Socket, wait: bool) -> io::Result<()> {
        if self.end == self.buffer.len() {
            self.buffer.copy_within(self.first..self.end, 0);
            (self.first, self.end) = (0, self.end - self.first);
        }
        debug_assert!(self.end < self.buffer.len(), "nothing of a full buffer was consumed");
        match socket.receive(&mut self.buffer[self.end..], wait)? {
            0 => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            count => {
                self.end += count;
                debug_assert!(self.end <= self.buffer.len());
                Ok(())
            }
        }
    }

    /// Receives bytes that arrive soon; returns `None` if none arrive. `is_idle` must be `true` if
    /// the client has no outstanding requests.
    pub fn look(
        &mut self,
        socket: &Socket,
        is_idle: bool,
        served: Option<&Served>,
    ) -> Option<io::Result<()>> {
        if let Some(served) = served
            && self.attendant.is_none()
        {
            self.attendant = served.attend();
        }
        let before = self.bytes().len();
        let received = self.find(socket, is_idle);
        if !matches!(received, Some(Ok(()))) || self.bytes().len() - before > RECEIVED_MAX {
            self.attendant = None;
        }
        received
    }

    fn find(&mut self, socket: &Socket, is_idle: bool) -> Option<io::Result<()>> {
        let looks = is_idle && self.sleeps == 0;
        let start = Instant::now();
        loop {
            let is_needed = self.attendant.as_ref().is_some_and(DriveDriver::is_needed);
            if !looks && !is_needed {
                break;
            }
            match self.receive(socket, false) {
                Err(error) if is_transient(&error) => {}
                received => {
                    self.next_sleeps = if is_idle { 0 } else { self.next_sleeps };
                    return Some(received);
                }
            }
            if start.elapsed() >= if is_needed { ATTEND } else { POLL } {
                break;
            }
            std::hint::spin_loop();
        }
        if looks {
            self.sleeps = self.next_sleeps;
            self.next_sleeps = (2 * self.next_sleeps + 1).min(SLEEPS_MAX);
        } else if is_idle {
            self.sleeps -= 1;
        }
        None
    }

    /// Starts running the drive before requests are submitted, so that the drive's own thread is
    /// not woken. The call does nothing if too many bytes must be handled first.
    pub fn attend(&mut self, served: &Served) {
        if self.attendant.is_none() && self.bytes().len() <= RECEIVED_MAX {
            self.attendant = served.attend();
        }
    }

    /// Returns the drive to its own thread.
    pub fn leave(&mut self) {
        self.attendant = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    #[test]
    fn requests_that_do_not_come_at_once_are_looked_for_ever_more_seldom() {
        let (ours, mut client) = UnixStream::pair().unwrap();
        let (socket, mut input) = (Socket::from(ours), Input::default());
        let look = |input: &mut Input| input.look(&socket, true, None);
        for sleeps in [0, 1, 3, 7] {
            assert!(look(&mut input).is_none());
            assert_eq!(input.sleeps, sleeps);
            client.write_all(&[1]).unwrap();
            for _ in 0..sleeps {
                assert!(look(&mut input).is_none(), "no poll while it backs off");
            }
            // The thread that is woken receives the request.
            assert!(matches!(socket.receive(&mut [0; 8], true), Ok(1)));
        }
        // A request that has already arrived resets the back-off.
        client.write_all(&[1]).unwrap();
        assert!(matches!(look(&mut input), Some(Ok(()))));
        assert_eq!((input.bytes(), input.sleeps, input.next_sleeps), (&[1][..], 0, 0));
        drop(client);
        let error = look(&mut input).unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
