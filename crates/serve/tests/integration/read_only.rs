//! Tests a drive without spare space: writes are rejected with the errors defined by the standards,
//! and change nothing.

use writecliff_host_interface::{Command, Content, Operation, Status};
use writecliff_runner::AnyDrive;
use writecliff_serve::Timing;

use writecliff_base::{Nanos, StreamId};

use crate::nbd_client::{Client, READ, TRIM, WRITE_ZEROES};
use crate::nvme::Server as NvmeServer;
use crate::nvme_host::{Data, Entry, Host};
use crate::support::{CAPACITY, REAL, Server, losing_power_and, serve};

/// Error number EPERM, "operation not permitted".
const NOT_PERMITTED: u32 = 1;
const WRITE_PROTECTED: u16 = 0x020;
const CHUNK: usize = 1 << 20;

/// Returns a drive where half of the blocks fail within twelve cycles.
fn frail() -> AnyDrive {
    let section = "[bad_blocks]\nfailed_at_rated = \"50 %\"\nshape = 4\n[link]";
    losing_power_and(&[("rated_cycles = 1000", "rated_cycles = 12"), ("[link]", section)])
}

/// Returns a drive that has become read-only.
fn worn_out() -> AnyDrive {
    let mut drive = frail();
    let (content, stream) = (Content::INCOMPRESSIBLE, StreamId::DEFAULT);
    let (operation, length) = (Operation::Write, CHUNK as u32);
    for n in 0.. {
        assert!(n < 10_000, "the drive never wears out");
        let offset = n * CHUNK as u64 % CAPACITY;
        let command = Command { operation, offset, length, content, stream, queue: 0, tag: 0 };
        drive.fast_forward(&command);
        if drive.is_read_only() {
            break;
        }
    }
    drive.end_fast_forward();
    drive
}

#[test]
fn a_rejected_write_completes_with_its_status() {
    let mut drive = worn_out();
    let (content, stream) = (Content::INCOMPRESSIBLE, StreamId::DEFAULT);
    for (operation, status) in
        [(Operation::Write, Status::WriteProtected), (Operation::Read, Status::Success)]
    {
        let (length, at) = (4096, drive.now());
        drive.submit(
            at,
            Command { operation, offset: 0, length, content, stream, queue: 0, tag: 7 },
        );
        let done = drive.step(Nanos::MAX).unwrap();
        assert_eq!((done.tag, done.operation, done.status), (7, operation, status));
    }
}

#[test]
fn an_nbd_client_learns_that_the_drive_takes_no_more() {
    let server = Server::of(frail(), Timing::Fast);
    let mut client = Client::ready(&server.path, false);
    assert_eq!(client.write(0, 0, &vec![7; CHUNK]), 0);
    let mut written = 0;
    let error = loop {
        written += 1;
        let offset = (1 + written % 60) * CHUNK as u64;
        match client.write(0, offset, &vec![written as u8; CHUNK]) {
            0 => assert!(written < 10_000, "the drive never wears out"),
            error => break error,
        }
    };
    assert_eq!(error, NOT_PERMITTED);
    assert!(written > 60 * 4, "after some cycles: {written}");
    assert_eq!(client.write(0, 0, &vec![8; CHUNK]), NOT_PERMITTED);
    for command in [TRIM, WRITE_ZEROES] {
        assert_eq!(client.call(0, command, (0, 4096)), (NOT_PERMITTED, Vec::new()));
    }
    assert_eq!(client.read(0, CHUNK as u32), vec![7; CHUNK], "what it held is still there");
    drop(client);
    server.end();
}

#[test]
fn a_worn_out_drive_refuses_in_real_time_too() {
    let server = Server::of(worn_out(), REAL);
    let mut client = Client::ready(&server.path, true);
    assert_eq!(client.write(0, 4096, &[1; 4096]), NOT_PERMITTED);
    assert_eq!(client.call(0, TRIM, (4096, 4096)).0, NOT_PERMITTED);
    assert_eq!(client.call(0, READ, (4096, 4096)), (0, vec![0; 4096]), "nothing was stored");
    drop(client);
    server.end();
}

#[test]
fn an_nvme_host_is_told_that_the_namespace_is_write_protected() {
    for timing in [REAL, Timing::Fast] {
        let server = NvmeServer::of(serve(worn_out(), timing), None);
        let (mut admin, mut io) = Host::both(server.port, &server.nqn, false);
        let data = [5; 4096];
        let write = io.run(Entry::blocks(0x01, 0, 8), Data::Capsule(&data)).0.status;
        assert_eq!(write, WRITE_PROTECTED);
        let zeroes = io.run(Entry::blocks(0x08, 0, 8), Data::None).0.status;
        assert_eq!(zeroes, WRITE_PROTECTED);
        assert_eq!(io.read(Entry::blocks(0x02, 0, 8), 4096), vec![0; 4096]);
        let page = admin.read(Entry::new(0x02).dword(1, u32::MAX).dword(10, 2 | 127 << 16), 512);
        assert_eq!(page[0] & 1 << 3, 1 << 3, "critical warning: read-only");
        server.end();
    }
}
