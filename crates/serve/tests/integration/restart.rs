//! Tests servers that are stopped or killed: the replies that hosts receive, and the state of the
//! next server.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use writecliff_base::{Bytes, StreamId};
use writecliff_contents::{Contents, MemoryOptions};
use writecliff_host_interface::Operation;
use writecliff_serve::nvme::SimulatedDrive;
use writecliff_serve::{
    Address, Listener, PowerHistory, Request, Served, ServedParts, Session, Tag, Timing, nbd, state,
};

use crate::nbd_client::{Client, NO_HOLE, WRITE, WRITE_ZEROES};
use crate::nvme::Server as NvmeServer;
use crate::nvme_host::{Data, Entry, Host};
use crate::served::{Kept, session};
use crate::support::{CAPACITY, REAL, Server, drive, drive_with, eventually, scratch, serve};

const PAGE: u64 = 4096;
const NVME_WRITE: u8 = 0x01;

#[test]
fn a_server_that_stops_gives_nvme_hosts_no_errors() {
    for timing in [REAL, Timing::Real { slow_down: 1e4 }] {
        let server = NvmeServer::of(serve(drive(), timing), None);
        let (_admin, mut io) = Host::both(server.port, &server.nqn, false);
        let data = [7; PAGE as usize];
        let write = |lba| Entry::blocks(NVME_WRITE, lba, 8);
        let sent: Vec<_> = (0..8).map(|n| io.send(write(8 * n), Data::Capsule(&data))).collect();
        eventually("the drive has them", || {
            let now = server.served.snapshot();
            now.outstanding as u64 + now.operations.0[1].requests == 8
        });
        server.served.stop();
        // These writes have completed, so the host may receive replies. The next write has not
        // completed, so it receives no reply.
        io.send(write(80), Data::Capsule(&data));
        let mut answers = 0;
        while let Some(completion) = io.completion() {
            assert_eq!((completion.status, sent.contains(&completion.id)), (0, true));
            answers += 1;
        }
        assert_eq!(answers, 8, "{timing:?}");
        assert_eq!(server.served.snapshot().operations.0[1].requests, 8);
        server.end();
    }
}

#[test]
fn a_server_that_stops_gives_nbd_clients_no_errors() {
    let server = Server::new(REAL);
    let mut client = Client::ready(&server.path, true);
    assert_eq!(client.write(0, 0, &[7; PAGE as usize]), 0);
    server.served.stop();
    client.request(0, WRITE, 1, (PAGE, PAGE as u32));
    client.send(&[8; PAGE as usize]);
    let mut rest = Vec::new();
    client.rest(&mut rest);
    assert_eq!(rest, [0; 0], "no reply");
    server.end();
}

/// A directory for state files, which is removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let folder = scratch("restart");
        fs::create_dir(&folder).unwrap();
        Self(folder)
    }

    fn state(&self) -> PathBuf {
        self.0.join("drive.state")
    }

    /// Returns the files that a server would leave if it were killed now.
    fn killed_now(&self) -> Self {
        let copy = Self::new();
        for file in fs::read_dir(&self.0).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), copy.0.join(file.file_name())).unwrap();
        }
        copy
    }

    fn names(&self) -> Vec<String> {
        let files = fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> =
            files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn new_parts() -> ServedParts {
    let contents = Contents::in_memory(Bytes(CAPACITY), MemoryOptions::default());
    ServedParts::new(drive(), contents)
}

/// Returns a session of the drive in a state file, and `true` if the previous session was killed.
fn begin(path: &Path, timing: Timing) -> (Served, bool) {
    let mut parts = new_parts();
    let was_killed = state::open(&mut parts, path).unwrap();
    (Served::new(parts, timing), was_killed)
}

fn end(served: Served, path: &Path) {
    served.stop();
    let parts = served.into_parts().unwrap_or_else(|_| panic!("in use"));
    state::close(parts, Some(path)).unwrap();
}

struct Writer {
    session: Session,
    replies: Arc<Kept>,
}

impl Writer {
    fn of(served: &Served) -> Self {
        let (session, replies) = session(served);
        Self { session, replies }
    }

    /// Sends a request and waits for its acknowledgement.
    fn request(&self, operation: Operation, page: u64, pages: u64) {
        let (offset, length) = (page * PAGE, pages * PAGE);
        let (stream, before) = (StreamId::DEFAULT, self.replies.count());
        let request = Request {
            tag: Tag::Number(page),
            operation,
            offset,
            length,
            stream,
            durable: false,
            is_zeros: false,
        };
        if operation == Operation::Write {
            self.session.store(offset, &data(page, pages)).unwrap();
        }
        self.session.batch().submit(request, None).unwrap();
        eventually("it is acknowledged", || self.replies.count() > before);
    }
}

fn data(page: u64, pages: u64) -> Vec<u8> {
    (page..page + pages).flat_map(|page| [page as u8 + 1; PAGE as usize]).collect()
}

fn is_there(served: &Served, page: u64, pages: u64) -> bool {
    let mut read = vec![0; (pages * PAGE) as usize];
    served.read(page * PAGE, &mut read).unwrap();
    read == data(page, pages)
}

#[test]
fn a_killed_server_loses_nothing_that_it_acknowledged() {
    for timing in [REAL, Timing::Fast] {
        let mut folder = Folder::new();
        for kills in 0..4_u64 {
            let (served, was_killed) = begin(&folder.state(), timing);
            assert_eq!(was_killed, kills > 0);
            let power = served.snapshot().power;
            assert_eq!(power, PowerHistory { cycles: kills + 1, unsafe_shutdowns: kills });
            for before in 0..kills {
                assert!(is_there(&served, 100 * before, 40), "session {before}");
                assert!(!is_there(&served, 100 * before + 40, 1), "it was trimmed");
            }
            let mapped = served.with_drive(|drive| drive.counters().host_write_bytes());
            assert_eq!(mapped, kills * 48 * PAGE, "the drive has had all writes");
            let writer = Writer::of(&served);
            writer.request(Operation::Write, 100 * kills, 48);
            writer.request(Operation::Trim, 100 * kills + 40, 8);
            writer.request(Operation::Read, 0, 8);
            let killed = folder.killed_now();
            drop(writer);
            end(served, &folder.state());
            assert_eq!(folder.names(), ["drive.state"]);
            folder = killed;
        }
    }
}

#[test]
fn a_session_that_ended_is_not_repeated() {
    let folder = Folder::new();
    let (served, _) = begin(&folder.state(), Timing::Fast);
    Writer::of(&served).request(Operation::Write, 0, 4);
    let killed = folder.killed_now();
    end(served, &folder.state());
    // The server was killed after saving the state and before removing the journal.
    for name in ["drive.state.journal", "drive.state.data"] {
        fs::copy(killed.0.join(name), folder.0.join(name)).unwrap();
    }
    let (served, was_killed) = begin(&folder.state(), Timing::Fast);
    assert!(!was_killed && is_there(&served, 0, 4));
    assert_eq!(served.snapshot().life.write_commands, 1);
    end(served, &folder.state());
}

#[test]
fn counters_and_errors_are_of_the_drives_life() {
    use writecliff_nvme::{Drive as _, ErrorEntry};

    let mut folder = Folder::new();
    for session in 1..4_u64 {
        let (served, _) = begin(&folder.state(), Timing::Fast);
        let writer = Writer::of(&served);
        let mut drive = SimulatedDrive::new(&served, "S1");
        let before = drive.health();
        (0..5).for_each(|n| writer.request(Operation::Write, n, 1));
        (0..7).for_each(|n| writer.request(Operation::Read, 512 + n, 2)); // Unwritten.
        drive.log_error(ErrorEntry { lba: session, ..ErrorEntry::default() });
        let health = drive.health();
        assert_eq!(health.host_write_commands, 5 * session);
        assert_eq!(health.host_write_bytes, 5 * session * PAGE);
        assert_eq!(health.host_read_commands - before.host_read_commands, 7);
        assert_eq!(health.host_read_bytes - before.host_read_bytes, 14 * PAGE);
        assert_eq!((health.error_entries, health.power_cycles), (session, session));
        let log = drive.error_log();
        let kinds: Vec<_> = log.entries.iter().map(|entry| (entry.number, entry.lba)).collect();
        let wanted: Vec<_> = (1..=session).rev().map(|n| (n, n)).collect();
        assert_eq!(kinds, wanted, "number and address, newest first");
        drop((writer, drive));
        if session == 2 {
            let killed = folder.killed_now();
            end(served, &folder.state());
            folder = killed;
        } else {
            // The killed session issued these reads in its last second.
            assert_eq!(health.host_read_commands, if session == 1 { 7 } else { 14 });
            end(served, &folder.state());
        }
    }
}

#[test]
fn a_panic_of_the_simulator_closes_connections_and_leaves_the_journal_unchanged() {
    for timing in [REAL, Timing::Fast] {
        let folder = Folder::new();
        let (served, _) = begin(&folder.state(), timing);
        let path = scratch("socket");
        let listener = Listener::new(&served, &Address::Unix(path.clone()), nbd::connection);
        let (mut client, mut other) = (Client::ready(&path, true), Client::ready(&path, true));
        assert_eq!(client.write(0, 0, &data(0, 1)), 0);
        // On the smaller drive, the simulator panics on the next write, which lies beyond the
        // drive's end.
        let small = drive_with("64 MiB", "32 MiB");
        served.with_drive(|drive| *drive = small);
        client.request(0, WRITE, 1, (CAPACITY - PAGE, PAGE as u32));
        client.send(&data(1, 1));
        for client in [&mut client, &mut other] {
            let mut rest = Vec::new();
            client.rest(&mut rest);
            assert_eq!(rest, [0; 0], "no reply");
        }
        let mut late = Client::ready(&path, true);
        assert!(late.is_closed(), "without a request");
        let panic = catch_unwind(AssertUnwindSafe(|| served.snapshot())).unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"the simulated drive has failed"));
        drop(listener);
        let killed = folder.killed_now();
        let (served, was_killed) = begin(&killed.state(), timing);
        assert!(was_killed && is_there(&served, 0, 1));
        assert_eq!(served.snapshot().life.write_commands, 1, "the failed write is not repeated");
        end(served, &killed.state());
    }
}

#[test]
fn write_zeroes_does_not_count_as_data_written_by_the_host() {
    const NVME_WRITE_ZEROES: u8 = 0x08;
    const DEALLOCATE: u32 = 1 << 25;
    for timing in [REAL, Timing::Fast] {
        let folder = Folder::new();
        let (drive, _) = begin(&folder.state(), timing);
        let server = NvmeServer::of(drive, None);
        let (mut admin, mut io) = Host::both(server.port, &server.nqn, false);
        let mut written = |commands: u64| {
            let log = Entry::new(0x02).dword(1, u32::MAX).dword(10, 2 | 127 << 16);
            let smart = admin.read(log, 512);
            let count = |at: usize| u64::from_le_bytes(*smart[at..].first_chunk().unwrap());
            assert_eq!((count(48), count(80)), (1, commands), "data units, commands; {timing:?}");
        };
        let block = [7; PAGE as usize];
        assert_eq!(io.run(Entry::blocks(NVME_WRITE, 0, 8), Data::Capsule(&block)).0.status, 0);
        written(1);
        // If these commands were counted, Data Units Written would increase.
        let zeros = Entry::blocks(NVME_WRITE_ZEROES, 0, 2048);
        assert_eq!(io.run(zeros, Data::None).0.status, 0);
        let zeros = Entry::blocks(NVME_WRITE_ZEROES, 0, 2048).dword(12, 2047 | DEALLOCATE);
        assert_eq!(io.run(zeros, Data::None).0.status, 0);
        written(1);
        let path = scratch("socket");
        let listener = Listener::new(&server.served, &Address::Unix(path.clone()), nbd::connection);
        let mut client = Client::ready(&path, true);
        assert_eq!(client.call(NO_HOLE, WRITE_ZEROES, (0, 1 << 20)).0, 0);
        written(1);
        let mapped = server.served.with_drive(|drive| drive.counters().host_write_bytes());
        assert_eq!(mapped, PAGE + 2 * (1 << 20), "the drive has written the zeros");
        drop((client, listener));
        let killed = folder.killed_now();
        server.end();
        let (again, was_killed) = begin(&killed.state(), timing);
        let life = again.snapshot().life;
        assert_eq!((was_killed, life.write_commands, life.write_bytes), (true, 1, PAGE));
        end(again, &killed.state());
    }
}

#[test]
fn purges_and_formats_outlive_a_killed_server() {
    let folder = Folder::new();
    let (drive, _) = begin(&folder.state(), Timing::Fast);
    let server = NvmeServer::of(drive, None);
    let (mut admin, mut io) = Host::both(server.port, &server.nqn, false);
    let block = [7; PAGE as usize];
    assert_eq!(io.run(Entry::blocks(NVME_WRITE, 0, 8), Data::Capsule(&block)).0.status, 0);
    assert_eq!(admin.run(Entry::new(0x80).dword(1, 1).dword(10, 1), Data::None).0.status, 0);
    assert_eq!(io.run(Entry::blocks(NVME_WRITE, 9, 1), Data::Capsule(&block)).0.status, 0);
    let killed = folder.killed_now();
    server.end();
    let (drive, was_killed) = begin(&killed.state(), Timing::Fast);
    assert!(was_killed);
    assert_eq!(drive.logical_block(), Bytes(PAGE));
    let mut read = vec![1; 10 * PAGE as usize];
    drive.read(0, &mut read).unwrap();
    assert!(read[..9 * PAGE as usize].iter().all(|&byte| byte == 0), "it was purged");
    assert_eq!(read[9 * PAGE as usize..], block);
    end(drive, &killed.state());
}

#[test]
fn data_in_a_file_of_their_own_need_no_copy() {
    let folder = Folder::new();
    let file = folder.0.join("data");
    let parts = || ServedParts::new(drive(), Contents::in_file(Bytes(CAPACITY), &file).unwrap());
    let mut first = parts();
    assert!(!state::open(&mut first, &folder.state()).unwrap());
    let served = Served::new(first, Timing::Fast);
    Writer::of(&served).request(Operation::Write, 3, 2);
    assert_eq!(folder.names(), ["data", "drive.state", "drive.state.journal"]);
    let killed = folder.killed_now();
    served.stop();
    drop(served.into_parts());
    let contents = Contents::in_file(Bytes(CAPACITY), &killed.0.join("data")).unwrap();
    let mut again = ServedParts::new(drive(), contents);
    assert!(state::open(&mut again, &killed.state()).unwrap());
    let served = Served::new(again, Timing::Fast);
    assert!(is_there(&served, 3, 2));
    end(served, &killed.state());
}

#[test]
fn a_state_is_used_by_one_server_and_damage_is_named() {
    let folder = Folder::new();
    let (served, _) = begin(&folder.state(), Timing::Fast);
    Writer::of(&served).request(Operation::Write, 0, 4);
    let error = state::open(&mut new_parts(), &folder.state()).unwrap_err().to_string();
    assert!(error.contains("another server") && error.contains("drive.state.journal"), "{error}");
    let journal = |of: &Folder| of.0.join("drive.state.journal");
    // The server was killed in the middle of a record, so the request was not acknowledged.
    let torn = folder.killed_now();
    let whole = fs::read(journal(&torn)).unwrap();
    fs::write(journal(&torn), [&whole[..], &[7, 1, 1]].concat()).unwrap();
    let (again, was_killed) = begin(&torn.state(), Timing::Fast);
    assert!(was_killed && is_there(&again, 0, 4));
    Writer::of(&again).request(Operation::Write, 8, 1);
    let once_more = torn.killed_now();
    end(again, &torn.state());
    let (again, _) = begin(&once_more.state(), Timing::Fast);
    assert!(is_there(&again, 0, 4) && is_there(&again, 8, 1));
    end(again, &once_more.state());
    // These records are impossible for this drive. The test changes the first record after the
    // header: its type, its operation, and a number beyond the end.
    let first = 8 + 1 + whole[8] as usize;
    for (at, byte) in [(first + 1, 99), (first + 2, 0), (first + 3, 0xff)] {
        let damaged = folder.killed_now();
        let mut bytes = whole.clone();
        bytes[at] = byte;
        fs::write(journal(&damaged), bytes).unwrap();
        let error = state::open(&mut new_parts(), &damaged.state()).unwrap_err().to_string();
        assert!(error.contains("drive.state.journal is damaged"), "{at}: {error}");
    }
    // This state belongs to a different drive.
    let mut other = new_parts();
    other.drive = drive_with("command_time = \"2 us\"", "command_time = \"3 us\"");
    let left = folder.killed_now();
    assert!(state::open(&mut other, &left.state()).is_err());
    end(served, &folder.state());
}
