//! A connected TCP or Unix socket, and a bell to wake the thread that waits for the socket.

use std::io;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, sockopt};

/// Half-open connections are detected by keep-alive probes (tcp(7)): after a minute without
/// traffic, six probes are sent at intervals of ten seconds.
const KEEP_ALIVE_IDLE: Duration = Duration::from_secs(60);
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEP_ALIVE_PROBES: u32 = 6;

/// Connected TCP or Unix stream socket.
#[derive(Debug)]
pub struct Socket(OwnedFd);

impl From<UnixStream> for Socket {
    fn from(stream: UnixStream) -> Self {
        Self(stream.into())
    }
}

impl From<TcpStream> for Socket {
    /// Sets options to send small replies immediately and to detect a lost peer. The connection
    /// also works without these options, so errors are ignored.
    fn from(stream: TcpStream) -> Self {
        let _ = stream.set_nodelay(true);
        let _ = sockopt::set_socket_keepalive(&stream, true);
        let _ = sockopt::set_tcp_keepidle(&stream, KEEP_ALIVE_IDLE);
        let _ = sockopt::set_tcp_keepintvl(&stream, KEEP_ALIVE_INTERVAL);
        let _ = sockopt::set_tcp_keepcnt(&stream, KEEP_ALIVE_PROBES);
        Self(stream.into())
    }
}

/// Returns `true` if a call failed only because it would block or was interrupted.
pub(crate) fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

impl Socket {
    /// Receives available bytes; returns 0 at the end of the stream. Without `wait`, returns the
    /// error `WouldBlock` if no bytes are available.
    pub fn receive(&self, into: &mut [u8], wait: bool) -> io::Result<usize> {
        let flags = if wait { RecvFlags::empty() } else { RecvFlags::DONTWAIT };
        let (count, _) = rustix::net::recv(&self.0, into, flags)?;
        Ok(count)
    }

    /// Sends as many bytes as the kernel accepts; returns `WouldBlock` if it accepts none.
    pub fn send(&self, data: &[u8]) -> io::Result<usize> {
        Ok(rustix::net::send(&self.0, data, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?)
    }

    /// Ends the connection in both directions, which wakes the threads that wait for it.
    pub fn shut_down(&self) {
        let _ = rustix::net::shutdown(&self.0, Shutdown::Both); // The peer may have disconnected.
    }

    /// Waits until data can be received (if `receive`) or sent (if `send`), the bell rings (and is
    /// reset), or the time limit has passed. Returns `false` if the time limit has passed. Returns
    /// an error if the peer has disconnected and no data can be received.
    pub fn wait(
        &self,
        receive: bool,
        send: bool,
        bell: Option<&Bell>,
        at_most: Option<Duration>,
    ) -> io::Result<bool> {
        let mut events = PollFlags::empty();
        events.set(PollFlags::IN, receive);
        events.set(PollFlags::OUT, send);
        let ringing = bell.map_or(&self.0, |bell| &bell.0);
        let mut entries = [PollFd::new(&self.0, events), PollFd::new(ringing, PollFlags::IN)];
        let polled = 1 + usize::from(bell.is_some());
        let happened = poll(&mut entries[..polled], at_most)?;
        if let Some(bell) = bell.filter(|_| !entries[1].revents().is_empty()) {
            bell.answer();
        }
        if !receive && entries[0].revents().intersects(PollFlags::HUP | PollFlags::ERR) {
            return Err(io::Error::from(io::ErrorKind::BrokenPipe));
        }
        Ok(happened)
    }
}

/// Polls and returns `true` if an event occurred.
pub(crate) fn poll(entries: &mut [PollFd<'_>], at_most: Option<Duration>) -> io::Result<bool> {
    let timeout = at_most.and_then(|time| Timespec::try_from(time).ok());
    match rustix::event::poll(entries, timeout.as_ref()) {
        Ok(count) => Ok(count > 0),
        Err(Errno::INTR) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// A bell (eventfd) that wakes a thread waiting for a socket.
#[derive(Debug)]
pub struct Bell(pub(crate) OwnedFd);

impl Bell {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?))
    }

    pub(crate) fn ring(&self) {
        // The write fails only at the counter's maximum, when the bell is ringing already.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    fn answer(&self) {
        // The read fails if the bell is not ringing.
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}
