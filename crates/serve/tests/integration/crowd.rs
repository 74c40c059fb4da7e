//! Tests a thousand simultaneous connections over each protocol, most of which violate the
//! protocol.

use std::io::Write;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use writecliff_serve::{Address, Listener, Timing, nbd};

use crate::hostile::resident;
use crate::nbd_client::{Client, READ, WRITE};
use crate::nvme::Server;
use crate::nvme_host::{Data, Entry, HOST_NQN, Host};
use crate::support::{drive, eventually, is_alone, scratch, serve};

/// Number of connections of each type, per protocol.
const IDLE: usize = 500;
const SILENT: usize = 150;
const HALVES: usize = 150;
const NOISY: usize = 100;
const SLOW: usize = 100;
/// Number of I/O queues per host.
const QUEUES: u16 = 31;
const READ_BLOCKS: u8 = 0x02;
const WRITE_BLOCKS: u8 = 0x01;
const NOISE: [u8; 256] = [0xa5; 256];

/// Clients and hosts; dropping the value disconnects them.
struct Crowd {
    hosts: Vec<Host>,
    clients: Vec<Client>,
    tcp: Vec<TcpStream>,
    unix: Vec<UnixStream>,
}

/// Connects hosts with their I/O queues.
fn hosts(server: &Server, count: usize) -> Vec<Host> {
    let mut all = Vec::new();
    while all.len() < count {
        let (admin, controller) = Host::admin(server.port, &server.nqn, false);
        all.push(admin);
        for queue in 1..=QUEUES.min((count - all.len()) as u16) {
            let mut io = Host::begin(server.port, false);
            assert_eq!(io.connect(&server.nqn, HOST_NQN, controller, queue, 0), Ok(controller));
            all.push(io);
        }
    }
    all
}

fn gather(server: &Server, path: &std::path::Path) -> Crowd {
    let tcp = || TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    let unix = || UnixStream::connect(path).unwrap();
    let mut crowd = Crowd {
        hosts: hosts(server, IDLE + SLOW),
        clients: (0..IDLE + SLOW).map(|_| Client::ready(path, true)).collect(),
        tcp: (0..SILENT + HALVES + NOISY).map(|_| tcp()).collect(),
        unix: (0..SILENT + HALVES + NOISY).map(|_| unix()).collect(),
    };
    for (stream, other) in crowd.tcp.iter_mut().zip(&mut crowd.unix).take(NOISY) {
        // The server may have closed the connection in the meantime.
        let _ = (stream.write_all(&NOISE), other.write_all(&NOISE));
    }
    for (stream, other) in crowd.tcp.iter_mut().zip(&mut crowd.unix).skip(NOISY).take(HALVES) {
        stream.write_all(&[0, 0, 128, 0, 128, 0, 0, 0]).unwrap();
        other.write_all(&[0, 0, 0, 3, b'I', b'H', b'A']).unwrap();
    }
    for client in crowd.clients.iter_mut().take(SLOW) {
        for _ in 0..16 {
            client.request(0, READ, 1, (0, 8 << 20));
        }
        client.request(0, WRITE, 2, (0, 1 << 20)); // The client never sends the data.
    }
    for host in crowd.hosts.iter_mut().filter(|host| host.queue > 0).take(SLOW) {
        for _ in 0..100 {
            host.send(Entry::blocks(READ_BLOCKS, 0, 256), Data::Read(256 * 512));
        }
    }
    crowd
}

#[test]
fn a_thousand_connections_of_each_kind_do_no_harm() {
    if !is_alone("crowd::a_thousand_connections_of_each_kind_do_no_harm") {
        return;
    }
    let drive = serve(drive(), Timing::Fast);
    let path = scratch("crowd");
    let address = Address::Unix(path.clone());
    let nbd = Listener::new(&drive, &address, nbd::connection).unwrap();
    let server = Server::of(drive, None);
    let before = resident();
    let crowd = gather(&server, &path);
    for round in 0..20_u8 {
        let mut client = Client::ready(&path, true);
        assert_eq!(client.write(0, 4096, &[round; 4096]), 0);
        assert_eq!(client.read(4096, 4096), [round; 4096]);
        let (_admin, mut io) = Host::both(server.port, &server.nqn, true);
        let write = Entry::blocks(WRITE_BLOCKS, 64, 8);
        assert_eq!(io.run(write, Data::Capsule(&[round; 4096])).0.status, 0);
        assert_eq!(io.read(Entry::blocks(READ_BLOCKS, 64, 8), 4096), [round; 4096]);
    }
    // Other tests in this process also use memory, but only temporarily.
    let most = (2_000 * 192) << 10;
    eventually("a connection takes less than 192 KiB", || resident().saturating_sub(before) < most);
    drop(crowd);
    eventually("sessions end", || server.served.snapshot().sessions == 0);
    server.served.stop();
    drop(nbd);
    server.end();
}
