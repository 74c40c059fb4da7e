//! Looking for the next request before sleeping: to wake a thread takes about as long as a client
//! takes that sends its next request when it has the reply to the last one.

use std::io;
use std::time::{Duration, Instant};

use crate::served::{Attendant, Served};
use crate::socket::{Socket, is_passing};

/// How long the next request is looked for.
const LOOK: Duration = Duration::from_micros(50);
/// Of that many requests, at least, one is looked for.
const SLEEPS_MAX: u32 = 1_023;
/// How long the drive is attended to before the connection's own affairs are seen to.
const ATTEND: Duration = Duration::from_millis(1);
/// What is received at a time while the drive is attended to: more would take too long.
pub(crate) const RECEIVED_MAX: usize = 8 << 10;

/// Looks for requests of a client, the more seldom the more often they did not come at once. With
/// requests outstanding it does what the drive's thread would have to be woken for.
#[derive(Default)]
pub(crate) struct Lookout {
    /// Requests to come that are not looked for.
    sleeps: u32,
    /// Those after the next one that does not come at once.
    next_sleeps: u32,
    attendant: Option<Attendant>,
}

impl Lookout {
    /// Receives what comes soon, as [`Socket::receive`]; `None` if nothing does. `is_idle`: whether
    /// the client has no requests outstanding.
    pub(crate) fn look(
        &mut self,
        socket: &Socket,
        into: &mut [u8],
        is_idle: bool,
        served: Option<&Served>,
    ) -> Option<io::Result<usize>> {
        if let Some(served) = served {
            self.attend(served);
        }
        let found = self.find(socket, into, is_idle);
        if !matches!(found, Some(Ok(0..=RECEIVED_MAX))) {
            self.attendant = None;
        }
        found
    }

    fn find(
        &mut self,
        socket: &Socket,
        into: &mut [u8],
        is_idle: bool,
    ) -> Option<io::Result<usize>> {
        let looks = is_idle && self.sleeps == 0;
        let start = Instant::now();
        loop {
            let is_needed = self.attendant.as_ref().is_some_and(Attendant::is_needed);
            if !looks && !is_needed {
                break;
            }
            match socket.receive(into, false) {
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

    /// Begins to attend to the drive, before it is given requests: its own thread is not woken.
    pub(crate) fn attend(&mut self, served: &Served) {
        if self.attendant.is_none() {
            self.attendant = served.attend();
        }
    }

    /// Leaves the drive to its own thread.
    pub(crate) fn leave(&mut self) {
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
        let (socket, mut lookout, mut into) = (Socket::from(ours), Lookout::default(), [0; 8]);
        let mut look = |lookout: &mut Lookout| lookout.look(&socket, &mut into, true, None);
        for sleeps in [0, 1, 3, 7] {
            assert!(look(&mut lookout).is_none());
            assert_eq!(lookout.sleeps, sleeps);
            client.write_all(&[1]).unwrap();
            for _ in 0..sleeps {
                assert!(look(&mut lookout).is_none(), "it is not looked for");
            }
            // The thread that is woken takes it.
            assert!(matches!(socket.receive(&mut [0; 8], true), Ok(1)));
        }
        // One that is there at once begins anew.
        client.write_all(&[1]).unwrap();
        assert!(matches!(look(&mut lookout), Some(Ok(1))));
        assert_eq!((lookout.sleeps, lookout.next_sleeps), (0, 0));
        drop(client);
        assert!(matches!(look(&mut lookout), Some(Ok(0))));
    }
}
