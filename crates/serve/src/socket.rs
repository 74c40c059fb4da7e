//! A connected socket, TCP or Unix, and a bell to wake the thread that waits for it.

use std::io;
use std::net::TcpStream;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Half-open connections are found by keep-alive probes (tcp(7)): after a minute of silence, six
/// of them, ten seconds apart.
const KEEP_ALIVE: [(libc::c_int, libc::c_int); 3] =
    [(libc::TCP_KEEPIDLE, 60), (libc::TCP_KEEPINTVL, 10), (libc::TCP_KEEPCNT, 6)];

#[derive(Debug)]
pub struct Socket(OwnedFd);

impl From<UnixStream> for Socket {
    fn from(stream: UnixStream) -> Self {
        Self(stream.into())
    }
}

impl From<TcpStream> for Socket {
    /// Small replies must not wait for acknowledgements, and a peer that is gone must be found.
    fn from(stream: TcpStream) -> Self {
        let _ = stream.set_nodelay(true); // costs latency, not correctness
        let socket = Self(stream.into());
        socket.set(libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1);
        for (option, value) in KEEP_ALIVE {
            socket.set(libc::IPPROTO_TCP, option, value);
        }
        socket
    }
}

/// The result of a call that returns a count or -1.
fn counted(returned: isize) -> io::Result<usize> {
    usize::try_from(returned).map_err(|_| io::Error::last_os_error())
}

/// Whether a call failed only because there is nothing to receive or no room to send now.
pub(crate) fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

impl Socket {
    /// Sets an option without which the connection works too.
    fn set(&self, level: libc::c_int, option: libc::c_int, value: libc::c_int) {
        let length = size_of_val(&value) as libc::socklen_t;
        // SAFETY: `value` is read for its length.
        unsafe {
            libc::setsockopt(self.raw(), level, option, (&raw const value).cast(), length);
        }
    }

    fn raw(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Receives what is there; 0 at the end of the stream. Without `wait`, an error `WouldBlock`
    /// if there is nothing.
    pub fn receive(&self, into: &mut [u8], wait: bool) -> io::Result<usize> {
        let flags = if wait { 0 } else { libc::MSG_DONTWAIT };
        // SAFETY: the buffer is written within its length.
        counted(unsafe { libc::recv(self.raw(), into.as_mut_ptr().cast(), into.len(), flags) })
    }

    /// Sends what the kernel takes; an error `WouldBlock` if that is nothing.
    pub fn send(&self, data: &[u8]) -> io::Result<usize> {
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        // SAFETY: the buffer is read within its length.
        counted(unsafe { libc::send(self.raw(), data.as_ptr().cast(), data.len(), flags) })
    }

    /// Ends the connection in both directions; threads that wait for it wake up.
    pub fn shut_down(&self) {
        // SAFETY: a call on an open socket; it has no pointers.
        unsafe { libc::shutdown(self.raw(), libc::SHUT_RDWR) };
    }

    /// Waits until data can be received (if `receive`) or sent (if `send`), the bell rings (and is
    /// answered), or the time is over. Returns whether anything happened. An error if the peer has
    /// left and nothing is to be received.
    pub fn wait(
        &self,
        receive: bool,
        send: bool,
        bell: Option<&Bell>,
        at_most: Option<Duration>,
    ) -> io::Result<bool> {
        let events = if receive { libc::POLLIN } else { 0 } | if send { libc::POLLOUT } else { 0 };
        let ringing = bell.map_or(-1, |bell| bell.0.as_raw_fd());
        let entry = |fd, events| libc::pollfd { fd, events, revents: 0 };
        let mut entries = [entry(self.raw(), events), entry(ringing, libc::POLLIN)];
        let happened = poll(&mut entries, at_most)?;
        if let Some(bell) = bell.filter(|_| entries[1].revents != 0) {
            bell.answer();
        }
        if !receive && entries[0].revents & (libc::POLLHUP | libc::POLLERR) != 0 {
            return Err(io::Error::from(io::ErrorKind::BrokenPipe));
        }
        Ok(happened)
    }
}

/// Polls; true if there was an event.
pub(crate) fn poll(entries: &mut [libc::pollfd], at_most: Option<Duration>) -> io::Result<bool> {
    let timeout = at_most.map_or(-1, |time| time.as_millis().min(1 << 30) as libc::c_int);
    // SAFETY: the array is read and written within its length.
    let count = unsafe { libc::poll(entries.as_mut_ptr(), entries.len() as _, timeout) };
    match counted(count as isize) {
        Ok(count) => Ok(count > 0),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
        Err(error) => Err(error),
    }
}

/// Wakes a thread that waits for a socket (an eventfd).
#[derive(Debug)]
pub struct Bell(OwnedFd);

impl Bell {
    pub fn new() -> io::Result<Self> {
        // SAFETY: the call creates a descriptor or fails.
        let fd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        counted(fd as isize)?;
        // SAFETY: the descriptor is new and nobody else's.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    pub fn ring(&self) {
        let one = 1_u64.to_ne_bytes();
        // SAFETY: the buffer is read within its length. It cannot fail but by a full counter, and
        // then the bell rings anyway.
        unsafe { libc::write(self.0.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    /// Ends the ringing.
    fn answer(&self) {
        let mut count = [0; 8];
        // SAFETY: the buffer is written within its length. It fails if the bell does not ring.
        unsafe { libc::read(self.0.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
    }

    pub(crate) fn raw(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
