//! Tests NVMe/TCP over loopback with the test host.

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use writecliff_base::Bytes;
use writecliff_bench::LoadRequest;
use writecliff_bench::nvme::Client;
use writecliff_contents::{Contents, MemoryOptions};
use writecliff_host_interface::Operation;
use writecliff_runner::AnyDrive;
use writecliff_serve::nvme::{Target, TargetOptions};
use writecliff_serve::{Address, Listener, Served, ServedParts, Timing};

use crate::nvme_host::{DISCOVERY_NQN, Data, Entry, HOST_NQN, Host};
use crate::support::{CAPACITY, REAL, drive, drive_with, eventually, scm, serve};

const READ: u8 = 0x02;
const WRITE: u8 = 0x01;
const COMPARE: u8 = 0x05;
const FUA: u32 = 1 << 30;
const FDP: &str = "[controller]";
const WITH_FDP: &str = "[data_placement]\ninterface = \"nvme-fdp\"\n[controller]";
const LBA_OUT_OF_RANGE: u16 = 0x080;
const COMPARE_FAILURE: u16 = 0x285;

pub(crate) struct Server {
    pub served: Served,
    target: Arc<Target>,
    listener: Listener,
    pub port: u16,
    pub nqn: String,
}

impl Server {
    fn new(drive: AnyDrive, timing: Timing, hosts: Option<Vec<String>>) -> Self {
        Self::of(serve(drive, timing), hosts)
    }

    pub(crate) fn of(served: Served, hosts: Option<Vec<String>>) -> Self {
        let target = Target::new(&served, TargetOptions { serial: "SN1".to_owned(), hosts });
        let of = target.clone();
        let address = Address::Tcp("127.0.0.1".to_owned(), 0);
        let listener = Listener::new(&served, &address, move |outbox, served| {
            of.connection(&outbox, &served);
        });
        let listener = listener.unwrap();
        target.advertise([&listener.address].into_iter());
        let &Address::Tcp(_, port) = &listener.address else { panic!() };
        let nqn = target.nqn();
        Self { served, target, listener, port, nqn }
    }

    /// Ends all connections, stops the drive and checks its invariants.
    pub(crate) fn end(self) -> ServedParts {
        self.served.stop();
        drop(self.listener);
        drop(self.target);
        let parts =
            self.served.into_parts().unwrap_or_else(|_| panic!("the drive is still in use"));
        parts.drive.check_invariants().unwrap();
        parts
    }
}

fn text(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|n| (n * 31 + n / 512 + seed) as u8).collect()
}

#[test]
fn a_host_finds_the_drive_and_learns_what_it_is() {
    let server = Server::new(drive(), REAL, None);
    let (mut discovery, _) = Host::admin(server.port, DISCOVERY_NQN, false);
    let log = Entry::new(0x02).dword(10, 0x70 | 511 << 16);
    let page = discovery.read(log, 2048);
    assert_eq!(page[8], 1);
    assert_eq!(&page[1280..1280 + server.nqn.len()], server.nqn.as_bytes());
    assert_eq!(&page[1536..1545], b"127.0.0.1");
    let port = server.port.to_string();
    assert_eq!(&page[1056..1056 + port.len()], port.as_bytes());

    let (mut admin, mut io) = Host::both(server.port, &server.nqn, false);
    let page = admin.read(Entry::new(0x06).dword(10, 1), 4096);
    assert_eq!((&page[4..7], &page[24..30], page[525] & 1), (&b"SN1"[..], &b"served"[..], 1));
    let page = admin.read(Entry::new(0x06).dword(10, 0), 4096);
    assert_eq!(u64::from_le_bytes(page[..8].try_into().unwrap()), CAPACITY / 512);
    let data = text(1_024_000, 0);
    let write = Entry::blocks(WRITE, 0, 2000);
    assert_eq!(io.run(write, Data::Asked(&data)).0.status, 0);
    let page = admin.read(Entry::new(0x02).dword(1, u32::MAX).dword(10, 2 | 127 << 16), 512);
    assert_eq!((page[48], page[80]), (2, 1), "data units and commands written");
    server.end();
}

#[test]
fn what_is_written_is_read_with_and_without_digests_and_timing() {
    for (digests, timing) in
        [(false, REAL), (true, REAL), (false, Timing::Fast), (true, Timing::Fast)]
    {
        let server = Server::new(drive(), timing, None);
        let (_admin, mut io) = Host::both(server.port, &server.nqn, digests);
        for (n, blocks) in [1, 16, 256, 2048].into_iter().enumerate() {
            let data = text(blocks * 512, n);
            let (lba, count) = (n as u64 * 4096, blocks as u32);
            let sent = if blocks <= 16 { Data::Capsule(&data) } else { Data::Asked(&data) };
            let fua = if n == 1 { FUA } else { 0 };
            let write = Entry::blocks(WRITE, lba, count).dword(12, (count - 1) | fua);
            assert_eq!(io.run(write, sent).0.status, 0);
            assert_eq!(io.read(Entry::blocks(READ, lba, count), count * 512), data);
            let compare = Entry::blocks(COMPARE, lba, count);
            assert_eq!(io.run(compare, sent).0.status, 0);
            let other = text(blocks * 512, n + 1);
            assert_eq!(io.run(compare, Data::Asked(&other)).0.status, COMPARE_FAILURE);
        }
        for opcode in [0x00, 0x0c] {
            assert_eq!(io.run(Entry::blocks(opcode, 0, 1), Data::None).0.status, 0);
        }
        let mut ranges = vec![0; 48];
        for (range, lba) in ranges.chunks_exact_mut(16).zip([0_u64, 4096, 8192]) {
            range[4] = 16;
            range[8..].copy_from_slice(&lba.to_le_bytes());
        }
        let trim = Entry::new(0x09).dword(10, 2).dword(11, 1 << 2);
        assert_eq!(io.run(trim, Data::Capsule(&ranges)).0.status, 0);
        for lba in [0, 4096, 8192] {
            assert_eq!(io.read(Entry::blocks(READ, lba, 16), 8192), [0; 8192], "one reply for all");
        }
        for deallocate in [0, 1 << 25] {
            let zeroes = Entry::blocks(0x08, 8192, 256).dword(12, 255 | deallocate);
            assert_eq!(io.run(zeroes, Data::None).0.status, 0);
        }
        assert_eq!(io.read(Entry::blocks(READ, 8192, 256), 131_072), vec![0; 131_072]);
        let beyond = Entry::blocks(READ, CAPACITY / 512, 1);
        assert_eq!(io.run(beyond, Data::Read(512)).0.status, LBA_OUT_OF_RANGE);
        server.end();
    }
}

#[test]
fn reads_without_flow_control_complete_with_their_data() {
    for digests in [false, true] {
        let server = Server::new(drive(), REAL, None);
        let (_admin, controller) = Host::admin(server.port, &server.nqn, digests);
        let mut io = Host::begin(server.port, digests);
        io.flow_control = false;
        io.connect(&server.nqn, HOST_NQN, controller, 1, 0).unwrap();
        let data = text(4096, 5);
        assert_eq!(io.run(Entry::blocks(WRITE, 0, 8), Data::Capsule(&data)).0.status, 0);
        for _ in 0..300 {
            assert_eq!(io.read(Entry::blocks(READ, 0, 8), 4096), data);
        }
        let beyond = Entry::blocks(READ, CAPACITY / 512, 1);
        assert_eq!(io.run(beyond, Data::Read(512)).0.status, LBA_OUT_OF_RANGE);
        server.end();
    }
}

#[test]
fn many_commands_are_outstanding_at_a_time() {
    let server = Server::new(drive(), REAL, None);
    let (_admin, mut io) = Host::both(server.port, &server.nqn, false);
    let data = text(4096, 9);
    for round in 0..4 {
        for n in 0..100 {
            let write = Entry::blocks(WRITE, (round * 100 + n) * 8, 8);
            io.send(write, Data::Capsule(&data));
        }
        let mut seen: Vec<u16> = (0..100).map(|_| io.complete(&[]).0.id).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 100, "each completes once");
    }
    assert_eq!(io.read(Entry::blocks(READ, 399 * 8, 8), 4096), data);
    server.end();
}

#[test]
fn placement_handles_are_those_of_the_drive() {
    let server = Server::new(drive_with(FDP, WITH_FDP), REAL, None);
    let (mut admin, mut io) = Host::both(server.port, &server.nqn, false);
    let status = Entry::new(0x12).dword(10, 1).dword(11, 144 / 4 - 1);
    let available = |io: &mut Host| -> Vec<u64> {
        let page = io.read(status, 144);
        assert_eq!(page[14], 4);
        let at = |n: usize| u64::from_le_bytes(page[24 + 32 * n..32 + 32 * n].try_into().unwrap());
        (0..4).map(at).collect()
    };
    let before = available(&mut io);
    let data = text(64 << 10, 1);
    let write = Entry::blocks(WRITE, 0, 128).dword(12, 127 | 2 << 20).dword(13, 2 << 16);
    assert_eq!(io.run(write, Data::Asked(&data)).0.status, 0);
    let after = available(&mut io);
    let used: Vec<u64> = before.iter().zip(&after).map(|(b, a)| b - a).collect();
    assert_eq!(used, [0, 0, 128, 0], "the write went to handle 2");
    let enable = Entry::new(0x09).dword(10, 0x1e).dword(11, 2 | 1 << 16).dword(12, 1);
    assert_eq!(admin.run(enable, Data::Capsule(&[0])).0.status, 0);
    let update = Entry::new(0x1d).dword(10, 1);
    assert_eq!(io.run(update, Data::Capsule(&[2, 0])).0.status, 0);
    assert_eq!(available(&mut io)[2], before[2], "it has an empty unit");
    let log = Entry::new(0x02).dword(10, 0x23 | 1 << 8 | 31 << 16).dword(11, 1 << 16);
    let page = admin.read(log, 128);
    assert_eq!((page[0], page[64], page[66]), (1, 0, 2), "unit not fully written, identifier 2");
    server.end();
}

#[test]
fn a_format_erases_and_changes_the_block() {
    let server = Server::new(drive(), REAL, None);
    let (mut admin, mut io) = Host::both(server.port, &server.nqn, false);
    let data = text(512, 3);
    assert_eq!(io.run(Entry::blocks(WRITE, 0, 1), Data::Capsule(&data)).0.status, 0);
    assert_eq!(admin.run(Entry::new(0x80).dword(10, 1), Data::None).0.status, 0);
    let page = admin.read(Entry::new(0x06).dword(10, 0), 4096);
    assert_eq!(u64::from_le_bytes(page[..8].try_into().unwrap()), CAPACITY / 4096);
    assert_eq!(io.read(Entry::blocks(READ, 0, 1), 4096), [0; 4096]);
    assert_eq!(io.run(Entry::blocks(WRITE, 0, 1), Data::Capsule(&[7; 4096])).0.status, 0);
    assert_eq!(admin.run(Entry::new(0x84).dword(10, 2), Data::None).0.status, 0);
    assert_eq!(io.read(Entry::blocks(READ, 0, 1), 4096), [0; 4096]);
    assert_eq!(server.end().logical_block, Bytes(4096));
}

#[test]
fn storage_class_memory_is_formatted_and_sanitized() {
    let server = Server::new(scm(), REAL, None);
    let (mut admin, mut io) = Host::both(server.port, &server.nqn, false);
    let page = admin.read(Entry::new(0x06).dword(10, 1), 4096);
    assert_eq!(page[525] & 1, 0, "no volatile write cache");
    let format = Entry::new(0x80).dword(10, 2 << 9);
    let sanitize = Entry::new(0x84).dword(10, 4);
    for erase in [format, sanitize] {
        assert_eq!(io.run(Entry::blocks(WRITE, 0, 1), Data::Capsule(&[7; 512])).0.status, 0);
        assert_eq!(io.read(Entry::blocks(READ, 0, 1), 512), [7; 512]);
        assert_eq!(admin.run(erase, Data::None).0.status, 0);
        assert_eq!(io.read(Entry::blocks(READ, 0, 1), 512), [0; 512]);
    }
    let blocks = Entry::new(0x84).dword(10, 2);
    assert_ne!(admin.run(blocks, Data::None).0.status, 0, "there are no blocks to erase");
    let page = admin.read(Entry::new(0x02).dword(1, u32::MAX).dword(10, 2 | 127 << 16), 512);
    assert_eq!(page[5], 0, "percentage used");
    server.end();
}

#[test]
fn a_drive_comes_back_with_its_block() {
    let contents = Contents::in_memory(Bytes(CAPACITY), MemoryOptions::default());
    let mut parts = ServedParts::new(drive(), contents);
    parts.logical_block = Bytes(4096);
    let server = Server::of(Served::new(parts, REAL), None);
    let (mut admin, _io) = Host::both(server.port, &server.nqn, false);
    let page = admin.read(Entry::new(0x06).dword(10, 0), 4096);
    assert_eq!(u64::from_le_bytes(page[..8].try_into().unwrap()), CAPACITY / 4096);
    assert_eq!(page[26] & 0xf, 1);
    server.end();
}

#[test]
fn only_listed_hosts_connect() {
    let server = Server::new(drive(), REAL, Some(vec![HOST_NQN.to_owned()]));
    let mut stranger = Host::begin(server.port, false);
    assert_eq!(stranger.connect(&server.nqn, "stranger", 0xffff, 0, 0), Err(0x184));
    let _allowed_host = Host::both(server.port, &server.nqn, false);
    server.end();
}

#[test]
fn queues_end_with_their_controller() {
    let server = Server::new(drive(), REAL, None);
    let (mut admin, mut io) = Host::both(server.port, &server.nqn, false);
    admin.configure(0);
    assert!(io.is_closed(), "after a reset");
    admin.configure(1 | 6 << 16 | 4 << 20);
    drop(admin);
    let (admin, mut io) = Host::both(server.port, &server.nqn, false);
    drop(admin);
    assert!(io.is_closed(), "after the end of the admin queue");
    let (_admin, mut io) = Host::both(server.port, &server.nqn, false);
    io.read(Entry::blocks(READ, 0, 1), 512);
    server.end();
}

#[test]
fn a_silent_host_is_gone_after_its_keep_alive_timeout() {
    let server = Server::new(drive(), REAL, None);
    let mut admin = Host::begin(server.port, false);
    let controller = admin.connect(&server.nqn, HOST_NQN, 0xffff, 0, 2000).unwrap();
    admin.configure(1 | 6 << 16 | 4 << 20);
    let mut io = Host::begin(server.port, false);
    io.connect(&server.nqn, HOST_NQN, controller, 1, 0).unwrap();
    // Commands on an I/O queue reset the keep-alive timer.
    for _ in 0..8 {
        std::thread::sleep(Duration::from_millis(400));
        io.read(Entry::blocks(READ, 0, 1), 512);
    }
    assert_eq!(admin.run(Entry::new(0x18).dword(1, 0), Data::None).0.status, 0);
    assert!(admin.is_closed() && io.is_closed());
    server.end();
}

#[test]
fn hostile_peers_disturb_nobody() {
    let server = Server::new(drive(), Timing::Fast, None);
    let (_admin, mut io) = Host::both(server.port, &server.nqn, false);
    let half_open: Vec<_> = (0..200).map(|_| Host::begin(server.port, false)).collect();
    for bytes in
        [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 300], &[4, 0, 72, 0, 0xff, 0xff, 0xff, 0x7f]]
    {
        let mut peer = Host::begin(server.port, false);
        peer.stream.write_all(bytes).unwrap();
        let mut words = Vec::new();
        let _ = peer.stream.read_to_end(&mut words); // A connection reset also ends the connection.
        assert!(words.is_empty() || words[0] == 3);
    }
    // This host never reads the requested data.
    let (_other, mut slow) = Host::both(server.port, &server.nqn, true);
    for _ in 0..100 {
        slow.send(Entry::blocks(READ, 0, 2048), Data::Read(1 << 20));
    }
    assert_eq!(io.run(Entry::blocks(WRITE, 0, 1), Data::Capsule(&[1; 512])).0.status, 0);
    assert_eq!(io.read(Entry::blocks(READ, 0, 1), 512), [1; 512]);
    drop((half_open, slow));
    eventually("their sessions end", || server.served.snapshot().sessions <= 3);
    server.end();
}

/// Tests the measuring client: the drive counts its requests of every type.
#[test]
fn a_load_does_what_it_is_told() {
    for timing in [REAL, Timing::Fast] {
        let server = Server::new(drive(), timing, None);
        let mut client = Client::connect(&server.listener.address).unwrap();
        assert_eq!(client.size, CAPACITY);
        let block = |operation, n, length: u32| {
            let offset = n * u64::from(length) % CAPACITY;
            LoadRequest { operation, offset, length }
        };
        let loads = [
            (Operation::Write, 131_072, 40), // Transferred on request (R2T).
            (Operation::Write, 4096, 100),   // in the capsule
            (Operation::Read, 4096, 1000),
            (Operation::Trim, 65_536, 10),
            (Operation::Flush, 0, 3),
        ];
        for (operation, length, count) in loads {
            let mut numbers = 0..count;
            let next = || numbers.next().map(|n| block(operation, n, length));
            let outcome = client.run(32, next).unwrap();
            assert_eq!(outcome.latency.count(), count);
            assert!(outcome.elapsed_ns > 0);
        }
        let [reads, writes, trims, flushes] = server.served.snapshot().operations.0;
        let requests = [&reads, &writes, &trims, &flushes].map(|operation| operation.requests);
        assert_eq!(requests, [1000, 140, 10, 3]);
        assert_eq!((reads.bytes, writes.bytes), (4_096_000, 40 * 131_072 + 409_600));
        let mut data = [0; 4096];
        server.served.read(655_360, &mut data).unwrap();
        assert_eq!(data, [0x5a; 4096], "behind what was trimmed");
        let beyond = LoadRequest { operation: Operation::Read, offset: CAPACITY, length: 4096 };
        let error = client.run(1, || Some(beyond)).unwrap_err().to_string();
        assert!(error.contains("status 080h"), "{error}");
        assert!(client.run(1024, || None).is_err(), "more than a queue has entries");
        drop(client);
        server.end();
    }
}
