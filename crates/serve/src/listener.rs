//! Listening addresses, and accepting and ending connections.

use std::fmt;
use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use thiserror::Error;

use crate::outbox::Outbox;
use crate::served::Served;
use crate::socket::{Bell, Socket, poll};

/// Maximum number of connections per listener; further connections are closed immediately. Each
/// connection takes a thread and two file descriptors.
pub const CONNECTIONS_MAX: usize = 1_024;
const STACK_BYTES: usize = 256 << 10;
/// Pause after a failed `accept`, which fails only because of insufficient resources.
const PAUSE: Duration = Duration::from_millis(50);

/// Address that clients connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Path of a Unix socket.
    Unix(PathBuf),
    /// Host and port; port 0 selects any free port.
    Tcp(String, u16),
}

/// Text that is not a valid address.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("'{0}' is not an address; examples: unix:/run/drive.sock, 127.0.0.1:10809")]
pub struct InvalidAddress(String);

impl FromStr for Address {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        let none = || InvalidAddress(text.to_owned());
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() { Err(none()) } else { Ok(Self::Unix(path.into())) };
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(none)?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        if host.is_empty() || (bare.is_none() && host.contains(':')) {
            return Err(none());
        }
        let port = port.parse().map_err(|_| none())?;
        Ok(Self::Tcp(bare.unwrap_or(host).to_owned(), port))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp(host, port) => write!(f, "{host}:{port}"),
        }
    }
}

/// Serves one connection; returns when the client has disconnected or violated the protocol.
pub type Connection = Arc<dyn Fn(Arc<Outbox>, Served) + Send + Sync>;

enum Acceptor {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl Acceptor {
    fn accept(&self) -> io::Result<Socket> {
        match self {
            Self::Unix(listener) => Ok(listener.accept()?.0.into()),
            Self::Tcp(listener) => Ok(listener.accept()?.0.into()),
        }
    }

    fn entry(&self) -> PollFd<'_> {
        match self {
            Self::Unix(listener) => PollFd::new(listener, PollFlags::IN),
            Self::Tcp(listener) => PollFd::new(listener, PollFlags::IN),
        }
    }
}

/// Listener that ends its connections when it is dropped.
pub struct Listener {
    /// The listener's address, with the actual port.
    pub address: Address,
    bell: Arc<Bell>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Accepts connections at `address` and serves each in a separate thread.
    pub fn new(
        served: &Served,
        address: &Address,
        connection: impl Fn(Arc<Outbox>, Served) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let connection: Connection = Arc::new(connection);
        raise_descriptor_limit();
        let (acceptor, address) = bind(address)?;
        let (bell, served) = (Arc::new(Bell::new()?), served.clone());
        let ring = Arc::clone(&bell);
        let thread = std::thread::Builder::new().name("listener".to_owned());
        let thread = thread.spawn(move || accept_all(&acceptor, &ring, &served, &connection))?;
        Ok(Self { address, bell, thread: Some(thread) })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.bell.ring();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // The panic hook has already run.
        }
        if let Address::Unix(path) = &self.address {
            let _ = fs::remove_file(path); // The file may already have been removed.
        }
    }
}

fn bind(address: &Address) -> io::Result<(Acceptor, Address)> {
    match address {
        Address::Unix(path) => {
            let is_socket = fs::symlink_metadata(path).is_ok_and(|of| of.file_type().is_socket());
            // A socket without a listener was left behind by a killed server.
            if is_socket && UnixStream::connect(path).is_err() {
                fs::remove_file(path)?;
            }
            let listener = UnixListener::bind(path)?;
            listener.set_nonblocking(true)?;
            Ok((Acceptor::Unix(listener), address.clone()))
        }
        Address::Tcp(host, port) => {
            let all: Vec<SocketAddr> = (host.as_str(), *port).to_socket_addrs()?.collect();
            let listener = TcpListener::bind(&all[..])?;
            listener.set_nonblocking(true)?;
            let port = listener.local_addr()?.port();
            Ok((Acceptor::Tcp(listener), Address::Tcp(host.clone(), port)))
        }
    }
}

/// A connection whose thread may still be running.
struct Running {
    outbox: Arc<Outbox>,
    thread: JoinHandle<()>,
}

fn accept_all(acceptor: &Acceptor, bell: &Bell, served: &Served, connection: &Connection) {
    let mut running: Vec<Running> = Vec::new();
    loop {
        let mut entries = [acceptor.entry(), PollFd::new(&bell.0, PollFlags::IN)];
        if poll(&mut entries, None).is_err() || !entries[1].revents().is_empty() {
            break;
        }
        running.retain(|client| !client.thread.is_finished());
        match acceptor.accept() {
            // Dropping the socket closes the connection.
            Ok(_) if running.len() == CONNECTIONS_MAX => {}
            Ok(socket) => running.extend(begin(socket, served, connection)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
    for client in &running {
        client.outbox.close();
    }
    for client in running {
        let _ = client.thread.join(); // The panic hook has already run.
    }
}

/// Ends the connection when its thread ends, even because of a panic.
struct Closing(Arc<Outbox>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Starts the thread of a connection, which is closed if there is no memory for a thread.
fn begin(socket: Socket, served: &Served, connection: &Connection) -> Option<Running> {
    let outbox = Arc::new(Outbox::new(served.clone(), socket).ok()?);
    let (replies, served) = (Arc::clone(&outbox), served.clone());
    let connection = Arc::clone(connection);
    let thread = std::thread::Builder::new().name("connection".to_owned()).stack_size(STACK_BYTES);
    let run = move || {
        let closing = Closing(replies);
        connection(Arc::clone(&closing.0), served);
    };
    Some(Running { outbox, thread: thread.spawn(run).ok()? })
}

/// Raises the limit on file descriptors to the hard limit. The default limit is 1,024, and each
/// connection needs two descriptors.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    // If this call fails, the limit stays unchanged.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_back() {
        for text in ["unix:/run/a b.sock", "127.0.0.1:10809", "localhost:0", "[::1]:10809"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        for text in ["", "unix:", "10809", ":10809", "::1:10809", "host:", "host:70000", "host:x"] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains("unix:/run/drive.sock"), "{text}: {error}");
        }
    }
}
