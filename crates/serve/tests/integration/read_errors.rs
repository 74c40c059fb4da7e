//! Tests that reads that fail in the drive fail for the clients, as often as the drive counts them.

use writecliff_runner::{AnyDrive, Counters};
use writecliff_serve::Timing;

use crate::nbd_client::{Client, FLUSH, READ};
use crate::nvme::Server as NvmeServer;
use crate::nvme_host::{Data, Entry, Host};
use crate::support::{REAL, Server, losing_power_and, serve};

/// Error number EIO.
const IO_ERROR: u32 = 5;
const UNRECOVERED_READ: u16 = 0x281;
const SLOT: u32 = 4096;
const SLOTS: u64 = 1000;

/// Returns a drive where one bit of every 50th slot flips in the buffer, which reads of the slot
/// detect.
fn flipping() -> AnyDrive {
    let section = "[integrity]\nbuffer_flips = 0.02\nguard = true\n[link]";
    losing_power_and(&[("[link]", section)])
}

/// Returns a drive that cannot correct a few percent of its flash reads; `more` contains further
/// sections.
fn erring(more: &str) -> AnyDrive {
    let section = format!(
        "[ecc]\nrber = 0.0067\nrber_at_rated = 0.0067\nretries_max = 0\ncodeword = \"1 KiB\"\n\
         correctable = 72\nretry_time = \"60 us\"\n{more}[link]"
    );
    losing_power_and(&[("blocks_per_plane = 80", "blocks_per_plane = 120"), ("[link]", &section)])
}

/// Returns the number of failed reads counted by the drive. The drive must not have moved data.
fn failed_reads(drive: &AnyDrive) -> u64 {
    let Counters::Ssd(ssd) = drive.counters() else { panic!("an SSD") };
    assert_eq!(ssd.gc_moved_bytes, 0);
    let of_ecc = ssd.ecc.map_or(0, |ecc| ecc.uncorrectable_reads);
    let of_flash = ssd.die_parity.map_or(of_ecc, |parity| parity.counts.unrecovered);
    of_flash + ssd.integrity.map_or(0, |integrity| integrity.reported_reads)
}

fn data(slot: u64) -> Vec<u8> {
    vec![slot as u8 | 1; SLOT as usize]
}

fn write_all(client: &mut Client) {
    for slot in 0..SLOTS {
        assert_eq!(client.write(0, slot * u64::from(SLOT), &data(slot)), 0);
    }
    assert_eq!(client.call(0, FLUSH, (0, 0)).0, 0);
}

/// Reads all slots one at a time and returns the slots whose reads failed.
fn read_all(client: &mut Client) -> Vec<u64> {
    let mut failed = Vec::new();
    for slot in 0..SLOTS {
        match client.call(0, READ, (slot * u64::from(SLOT), SLOT)) {
            (0, read) => assert_eq!(read, data(slot), "slot {slot}"),
            (error, read) => {
                assert_eq!((error, read.len()), (IO_ERROR, 0));
                failed.push(slot);
            }
        }
    }
    failed
}

/// Writes and reads all slots; returns the slots whose reads failed.
fn read_back(client: &mut Client) -> Vec<u64> {
    write_all(client);
    read_all(client)
}

#[test]
fn an_nbd_client_sees_every_read_that_protection_reports() {
    for (timing, structured) in [(REAL, false), (Timing::Fast, true)] {
        let server = Server::of(flipping(), timing);
        let mut client = Client::ready(&server.path, structured);
        let failed = read_back(&mut client);
        assert!((5..60).contains(&failed.len()), "{}", failed.len());
        let mut errors = failed.len() as u64;
        for slot in failed {
            let range = (slot * u64::from(SLOT), SLOT);
            assert_eq!(client.call(0, READ, range).0, IO_ERROR, "the flash still has these data");
            errors += 1;
            let is_well = (0..10).any(|_| {
                assert_eq!(client.write(0, range.0, &data(slot)), 0);
                let error = client.call(0, READ, range).0;
                errors += u64::from(error != 0);
                error == 0
            });
            assert!(is_well, "slot {slot}, written again");
        }
        drop(client);
        assert_eq!(failed_reads(&server.end()), errors);
    }
}

#[test]
fn one_slot_fails_a_read_of_many() {
    for timing in [REAL, Timing::Fast] {
        let server = Server::of(flipping(), timing);
        let mut client = Client::ready(&server.path, true);
        assert!(!read_back(&mut client).is_empty());
        let all = (0, SLOTS as u32 * SLOT);
        assert_eq!(client.call(0, READ, all).0, IO_ERROR);
        drop(client);
        server.end();
    }
}

#[test]
fn an_nbd_client_sees_reads_that_no_retry_corrects() {
    let server = Server::of(erring(""), REAL);
    let mut client = Client::ready(&server.path, false);
    let errors = read_back(&mut client).len() as u64;
    drop(client);
    assert!(errors > 0);
    assert_eq!(failed_reads(&server.end()), errors);
}

#[test]
fn reads_that_parity_rebuilds_succeed() {
    let server = Server::of(erring("[die_parity]\nstripe = 4\n"), REAL);
    let mut client = Client::ready(&server.path, true);
    let errors = read_back(&mut client).len() as u64;
    drop(client);
    let drive = server.end();
    let Counters::Ssd(ssd) = drive.counters() else { panic!("an SSD") };
    let parity = ssd.die_parity.unwrap().counts;
    assert!(parity.rebuilt > parity.unrecovered && parity.unrecovered > 0, "{parity:?}");
    assert_eq!(parity.unrecovered, errors);
}

#[test]
fn reads_of_a_lost_die_without_parity_fail() {
    let sections = [("[link]", "[die_parity]\nstripe = 1\n[link]")];
    let more = [("blocks_per_plane = 80", "blocks_per_plane = 140")];
    let server = Server::of(losing_power_and(&[sections, more].concat()), REAL);
    let mut client = Client::ready(&server.path, true);
    write_all(&mut client);
    server.served.with_drained_drive(|drive| drive.lose_die(1)).unwrap();
    let errors = read_all(&mut client).len() as u64;
    drop(client);
    assert!(errors > 0);
    assert_eq!(failed_reads(&server.end()), errors);
}

#[test]
fn an_nvme_host_gets_unrecovered_read_errors_that_smart_counts() {
    // Half of the slots are corrupt, and the flash loses some of the corrupt slots as well. The
    // drive counts each error once.
    let both = erring("[integrity]\nbuffer_flips = 0.5\nguard = true\n");
    let drives = [(flipping(), REAL), (flipping(), Timing::Fast), (erring(""), REAL), (both, REAL)];
    for (drive, timing) in drives {
        let server = NvmeServer::of(serve(drive, timing), None);
        let (mut admin, mut io) = Host::both(server.port, &server.nqn, false);
        for slot in 0..SLOTS {
            let data = data(slot);
            let write = Entry::blocks(0x01, 8 * slot, 8);
            assert_eq!(io.run(write, Data::Capsule(&data)).0.status, 0);
        }
        assert_eq!(io.run(Entry::new(0x00).dword(1, 1), Data::None).0.status, 0);
        let (mut errors, mut last) = (0, 0);
        for slot in 0..SLOTS {
            let (done, read) = io.run(Entry::blocks(0x02, 8 * slot, 8), Data::Read(SLOT));
            if done.status == 0 {
                assert_eq!(read, data(slot), "slot {slot}");
            } else {
                assert_eq!((done.status, read.len()), (UNRECOVERED_READ, 0));
                (errors, last) = (errors + 1, 8 * slot);
            }
        }
        assert!(errors > 0);
        let log = |id: u32| Entry::new(0x02).dword(1, u32::MAX).dword(10, id | 127 << 16);
        let smart = admin.read(log(2), 512);
        let count = |at: usize| u64::from_le_bytes(*smart[at..].first_chunk().unwrap());
        assert_eq!((count(160), count(176)), (errors, errors), "media errors, error log entries");
        let newest = admin.read(log(1), 512);
        let status = u16::from_le_bytes([newest[12], newest[13]]) >> 1 & 0x7ff;
        let lba = u64::from_le_bytes(*newest[16..].first_chunk().unwrap());
        assert_eq!((status, lba), (UNRECOVERED_READ, last));
        assert_eq!(failed_reads(&server.end().drive), errors);
    }
}
