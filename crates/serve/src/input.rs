//! Bytes that a client has sent and that are not yet understood.
//!
//! The next request is looked for before the thread sleeps: to wake a thread takes about as long as
//! a client takes that sends its next request when it has the reply to the last one.

use std::io;
use std::time::{Duration, Instant};

use crate::served::{Attendant, Served};
use crate::socket::{Socket, is_passing};

/// Data of writes pass through in pieces of up to this size.
const BUFFER_BYTES: usize = 160 << 10;
/// How long the next request is looked for.
const LOOK: Duration = Duration::from_micros(50);
/// Of that many requests, at least, one is looked for.
const SLEEPS_MAX: u32 = 1_023;
/// How long the drive is attended to before the connection's own affairs are seen to.
const ATTEND: Duration = Duration::from_millis(1);
/// What is received at a time while the drive is attended to: more would take too long.
const RECEIVED_MAX: usize = 8 << 10;

/// Looks for requests of a client, the more seldom the more often they did not come at once. With
/// requests outstanding it does what the drive's thread would have to be woken for.
pub struct Input {
    buffer: Vec<u8>,
    first: usize,
    end: usize,
    /// Requests to come that are not looked for.
    sleeps: u32,
    /// Those after the next one that does not come at once.
    next_sleeps: u32,
    attendant: Option<Attendant>,
}

impl Default for Input {
    fn default() -> Self {
        let buffer = vec![0; BUFFER_BYTES];
        Self { buffer, first: 0, end: 0, sleeps: 0, next_sleeps: 0, attendant: None }
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

    /// Receives what comes soon; `None` if nothing does. `is_idle`: whether the client has no
    /// requests outstanding.
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
        let found = self.find(socket, is_idle);
        if !matches!(found, Some(Ok(()))) || self.bytes().len() - before > RECEIVED_MAX {
            self.attendant = None;
        }
        found
    }

    fn find(&mut self, socket: &Socket, is_idle: bool) -> Option<io::Result<()>> {
        let looks = is_idle && self.sleeps == 0;
        let start = Instant::now();
        loop {
            let is_needed = self.attendant.as_ref().is_some_and(Attendant::is_needed);
            if !looks && !is_needed {
                break;
            }
            match self.receive(socket, false) {
                Err(error) if is_passing(&error) => {}
                found => {
                    self.next_sleeps = if is_idle { 0 } else { self.next_sleeps };
                    return Some(found);
                }
            }
            if start.elapsed() >= if is_needed { ATTEND } else { LOOK } {
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

    /// Begins to attend to the drive, before it is given requests, so that its own thread is not
    /// woken; not if there is too much to be taken first.
    pub fn attend(&mut self, served: &Served) {
        if self.attendant.is_none() && self.bytes().len() <= RECEIVED_MAX {
            self.attendant = served.attend();
        }
    }

    /// Leaves the drive to its own thread.
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
                assert!(look(&mut input).is_none(), "it is not looked for");
            }
            // The thread that is woken takes it.
            assert!(matches!(socket.receive(&mut [0; 8], true), Ok(1)));
        }
        // One that is there at once begins anew.
        client.write_all(&[1]).unwrap();
        assert!(matches!(look(&mut input), Some(Ok(()))));
        assert_eq!((input.bytes(), input.sleeps, input.next_sleeps), (&[1][..], 0, 0));
        drop(client);
        let error = look(&mut input).unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
