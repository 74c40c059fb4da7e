//! Tests with I/Os on a temporary file: each I/O is issued exactly once, on time and with its data;
//! also tests the end conditions.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use writecliff_issuer::{
    Done, Io, Issue, JobTime, LENGTH_MAX_BYTES, Lane, Measured, Operation, Shared, Target, feed,
    issue,
};

mod generated;
mod traced;

const MS: u64 = 1_000_000;

/// A temporary file of this many bytes, where each byte is the low byte of the number of its 4 KiB
/// block.
struct Temporary(PathBuf);

impl Temporary {
    fn new(length: usize) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("writecliff-issuer-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let bytes: Vec<u8> = (0..length).map(|at| (at / 4096) as u8).collect();
        std::fs::write(&path, bytes).unwrap();
        Self(path)
    }

    fn open(&self, write: bool) -> File {
        let mut options = OpenOptions::new();
        options.read(true).write(write).custom_flags(libc::O_DIRECT).open(&self.0).unwrap()
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        File::open(&self.0).unwrap().read_to_end(&mut bytes).unwrap();
        bytes
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn io(due_ns: u64, operation: Operation, offset: u64, length: u64) -> Io {
    Io { due_ns, operation, lane: 0, offset, length, repeats: false }
}

fn issued(file: &File, lanes: Vec<Lane>, ios: Vec<Io>) -> (Measured, Vec<Done>) {
    let (mut feeder, feed) = feed();
    std::thread::spawn(move || ios.into_iter().all(|io| feeder.add(io)));
    let shared = Shared::new(true);
    let target = Target { fd: file.as_fd(), is_file: true };
    let what =
        Issue { target, lanes, jobs: vec![JobTime::default()], interval_ns: 100 * MS, seed: 5 };
    let measured = issue(&what, feed, &shared).unwrap();
    (measured, shared.take())
}

fn one_lane(depth: u32) -> Vec<Lane> {
    vec![Lane::of_trace(depth, 0.0)]
}

#[test]
fn every_io_is_issued_once_at_its_time_and_never_before() {
    let file = Temporary::new(4 << 20);
    let ios: Vec<Io> = (0..500_u64)
        .map(|n| {
            let operation = if n % 3 == 0 { Operation::Write } else { Operation::Read };
            io(n * MS / 10, operation, n * 5 % 1024 * 4096, 4096 * (1 + n % 2))
        })
        .filter(|io| io.offset + io.length <= 4 << 20)
        .collect();
    let (measured, mut done) = issued(&file.open(true), one_lane(64), ios.clone());
    assert_eq!(measured.failure, None);
    assert_eq!(measured.lateness.each.count(), ios.len() as u64);
    assert_eq!(measured.lateness.intended_ns, ios.last().unwrap().due_ns);
    assert!(measured.lateness.length_ns >= measured.lateness.intended_ns);
    assert!(
        done.iter().all(|record| record.issue_ns >= record.io.due_ns),
        "issued before it was due"
    );
    assert!(done.iter().all(|record| record.complete_ns >= record.issue_ns));
    assert!(done.iter().all(|record| record.result as u64 == record.io.length));
    done.sort_by_key(|record| record.io.due_ns);
    assert_eq!(done.iter().map(|record| record.io).collect::<Vec<_>>(), ios);
    let [reads, writes, _] = &measured.jobs[0].operations;
    let writes_wanted = ios.iter().filter(|io| io.operation == Operation::Write);
    assert_eq!(writes.ios, writes_wanted.clone().count() as u64);
    assert_eq!(writes.bytes, writes_wanted.map(|io| io.length).sum::<u64>());
    assert_eq!(reads.ios + writes.ios, ios.len() as u64);
    assert_eq!(measured.intervals.ios.iter().sum::<u64>(), ios.len() as u64);
    assert_eq!(reads.response.as_ref().unwrap().count(), reads.ios);
}

#[test]
fn writes_reach_their_addresses_with_data_of_their_own() {
    let file = Temporary::new(1 << 20);
    let before = file.bytes();
    let written = [(0, 4096), (64 << 10, 128 << 10), (1020 << 10, 4096), (512 << 10, 512)];
    let ios = written.iter().map(|&(offset, length)| io(0, Operation::Write, offset, length));
    let (measured, _) = issued(&file.open(true), one_lane(64), ios.collect());
    assert_eq!((measured.failure, measured.jobs[0].operations[1].ios), (None, 4));
    let after = file.bytes();
    assert_eq!(after.len(), before.len());
    let is_written = |at: usize| {
        written.iter().any(|&(offset, length)| (offset..offset + length).contains(&(at as u64)))
    };
    let mut changed = 0;
    for at in 0..after.len() {
        if is_written(at) {
            changed += u32::from(after[at] != before[at]);
        } else {
            assert_eq!(after[at], before[at], "byte {at} was not to be written");
        }
    }
    let total: u64 = written.iter().map(|&(_, length)| length).sum();
    assert!(u64::from(changed) > total * 99 / 100, "{changed} of {total} bytes changed");
}

#[test]
fn a_trim_of_a_file_is_a_hole_and_a_flush_is_counted_apart() {
    let file = Temporary::new(1 << 20);
    let ios = vec![
        io(0, Operation::Trim, 128 << 10, 64 << 10),
        io(MS, Operation::Flush, 0, 0),
        io(2 * MS, Operation::Read, 4096, 4096),
    ];
    let (measured, done) = issued(&file.open(true), one_lane(64), ios);
    assert_eq!((measured.failure, measured.jobs[0].flush.service.count()), (None, 1));
    let [reads, writes, trims] = &measured.jobs[0].operations;
    assert_eq!((reads.ios, writes.ios, trims.ios, trims.bytes), (1, 0, 1, 64 << 10));
    assert_eq!(done.len(), 3);
    let after = file.bytes();
    assert!(after[128 << 10..192 << 10].iter().all(|&byte| byte == 0));
    assert_eq!(after[192 << 10], 48);
}

#[test]
fn what_waits_for_the_cap_is_late_and_counted() {
    let file = Temporary::new(1 << 20);
    let ios: Vec<Io> = (0..200).map(|n| io(0, Operation::Read, n % 256 * 4096, 4096)).collect();
    let (measured, done) = issued(&file.open(false), one_lane(2), ios);
    assert_eq!((measured.failure, done.len()), (None, 200));
    assert!(measured.in_flight_max <= 2, "{} in flight", measured.in_flight_max);
    assert!(measured.lateness.waited >= 190, "{} waited", measured.lateness.waited);
    assert_eq!(measured.lateness.each.count(), 200);
    let late = done.iter().filter(|record| record.issue_ns > record.io.due_ns).count();
    assert!(late as u64 >= measured.lateness.waited, "those that waited were late");
}

#[test]
fn lanes_wait_for_themselves_alone_and_up_to_their_deadline() {
    let file = Temporary::new(1 << 20);
    let first = Lane { deadline_ns: Some(0), ..Lane::of_trace(1, 0.0) };
    let ios: Vec<Io> = (0..64)
        .map(|n| Io { lane: u32::from(n % 2 == 0), ..io(0, Operation::Read, n * 4096, 4096) })
        .collect();
    let lanes = vec![first, Lane::of_trace(64, 0.0)];
    let (measured, done) = issued(&file.open(false), lanes, ios);
    let of_first = done.iter().filter(|record| record.io.lane == 0).count() as u64;
    assert_eq!(done.iter().filter(|record| record.io.lane == 1).count(), 32);
    assert!(of_first >= 1, "the first of a lane waits for nobody");
    assert_eq!(of_first + measured.lateness.left, 32);
    assert!(measured.lateness.left > 0, "what waited was issued after its job's end");
}

#[test]
fn an_error_of_the_drive_ends_it_and_is_told() {
    let file = Temporary::new(1 << 20);
    let ios = |bad: Io| {
        let later = (1..50).map(|n| io(200 * MS + n * MS, Operation::Read, 0, 4096));
        [io(0, Operation::Read, 0, 4096), bad].into_iter().chain(later).collect::<Vec<_>>()
    };
    // Reads beyond the end of the file return fewer bytes than requested.
    let bad = io(MS, Operation::Read, 8 << 20, 4096);
    let (measured, _) = issued(&file.open(false), one_lane(8), ios(bad));
    let failure = measured.failure.unwrap();
    assert_eq!((failure.io, failure.errno, failure.moved), (bad, 0, 0));
    assert_eq!(measured.jobs[0].operations[0].ios, 1, "no more is issued");
    // Direct I/O rejects an address that is not aligned to a sector.
    let bad = io(MS, Operation::Read, 100, 4096);
    let (measured, done) = issued(&file.open(false), one_lane(8), ios(bad));
    assert_eq!(measured.failure.unwrap().errno, libc::EINVAL);
    assert_eq!(done.iter().find(|record| record.io == bad).unwrap().result, -libc::EINVAL);
    // A read-only descriptor cannot write.
    let bad = io(MS, Operation::Write, 0, 4096);
    let (measured, _) = issued(&file.open(false), one_lane(8), ios(bad));
    assert_eq!(measured.failure.unwrap().errno, libc::EBADF);
}

#[test]
fn each_job_has_its_own_time() {
    let file = Temporary::new(1 << 20);
    let ios: Vec<Io> = (0..20_u64)
        .flat_map(|n| (0..4_u32).map(move |lane| (n * MS, lane)))
        .filter(|&(due_ns, lane)| lane != 2 || due_ns < 3 * MS)
        .map(|(due_ns, lane)| Io { lane, ..io(due_ns, Operation::Read, 0, 4096) })
        .collect();
    let lane = |job| Lane { job, ..Lane::of_trace(64, 0.0) };
    let until = |deadline_ns| JobTime { deadline_ns: Some(deadline_ns), ..JobTime::default() };
    let jobs = vec![
        until(30 * MS),
        JobTime { start_ns: 5 * MS, ..until(40 * MS) },
        JobTime { ios: Some(3), ..until(500 * MS) },
        JobTime::default(),
    ];
    let (mut feeder, feed) = feed();
    std::thread::spawn(move || ios.into_iter().all(|io| feeder.add(io)));
    let file = file.open(false);
    let target = Target { fd: file.as_fd(), is_file: true };
    let what =
        Issue { target, lanes: (0..4).map(lane).collect(), jobs, interval_ns: 10 * MS, seed: 5 };
    let measured = issue(&what, feed, &Shared::new(false)).unwrap();
    // The times are later only if the machine stalls for longer than the gaps between the I/Os.
    let times: Vec<_> = measured.jobs.iter().map(|job| (job.began_ns, job.elapsed_ns)).collect();
    assert!(times[0].0 == 0 && times[0].1 >= 30 * MS);
    assert!(times[1].0 == 5 * MS && times[1].1 >= 35 * MS);
    assert!(times[2].1 >= 2 * MS && times[2].1 < 500 * MS, "its count ended it: {times:?}");
    assert!(times[3].1 >= 19 * MS, "it has no end but its last I/O: {times:?}");
    let ends = times.iter().map(|(began_ns, elapsed_ns)| began_ns + elapsed_ns);
    assert_eq!(measured.elapsed_ns, ends.max().unwrap());
    assert_eq!(measured.jobs[2].operations[0].ios, 3);
}

#[test]
fn a_stop_waits_for_what_is_in_flight_and_keeps_the_results() {
    let file = Temporary::new(1 << 20);
    let (mut feeder, feed) = feed();
    std::thread::spawn(move || {
        let mut ios = (0..u64::MAX).map(|n| io(n * MS, Operation::Read, n % 256 * 4096, 4096));
        ios.all(|io| feeder.add(io))
    });
    let shared = Shared::new(false);
    let file = file.open(false);
    let target = Target { fd: file.as_fd(), is_file: true };
    let what = Issue {
        target,
        lanes: one_lane(64),
        jobs: vec![JobTime::default()],
        interval_ns: 10 * MS,
        seed: 1,
    };
    let measured = std::thread::scope(|scope| {
        scope.spawn(|| {
            while shared.live().ios < 20 {
                std::thread::sleep(Duration::from_millis(1));
            }
            shared.stop();
        });
        issue(&what, feed, &shared).unwrap()
    });
    assert!(measured.jobs[0].operations[0].ios >= 20);
    assert_eq!(
        measured.lateness.each.count(),
        measured.jobs[0].operations[0].ios,
        "all were waited for"
    );
    assert_eq!((measured.abandoned, measured.failures), (0, 0));
}

/// Returns the number of memory mappings that are large enough to be I/O buffers.
fn large_mappings() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let address = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let length = |line: &str| {
        let (from, to) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
        address(to) - address(from)
    };
    maps.lines().filter(|line| length(line) >= 128 << 20).count()
}

/// The test runs in its own process because the issuers of concurrent tests also map I/O buffers.
#[test]
fn memory_that_abandoned_ios_may_still_use_stays_mapped() {
    const ALONE: &str = "WRITECLIFF_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let mut process = std::process::Command::new(std::env::current_exe().unwrap());
        process.args(["--exact", "memory_that_abandoned_ios_may_still_use_stays_mapped"]);
        assert!(process.env(ALONE, "1").status().unwrap().success());
        return;
    }
    let before = large_mappings();
    let file = Temporary::new(1 << 20);
    let (measured, _) =
        issued(&file.open(false), one_lane(8), vec![io(0, Operation::Read, 0, 4096)]);
    assert_eq!((measured.abandoned, large_mappings()), (0, before));
    // A read from an empty pipe never completes.
    let (pipe, _writer) = std::io::pipe().unwrap();
    let (mut feeder, feed) = feed();
    assert!(feeder.add(io(0, Operation::Read, 0, 4096)));
    drop(feeder);
    let shared = Shared::new(false);
    let what = Issue {
        target: Target { fd: pipe.as_fd(), is_file: true },
        lanes: one_lane(8),
        jobs: vec![JobTime::default()],
        interval_ns: 10 * MS,
        seed: 1,
    };
    let measured = std::thread::scope(|scope| {
        scope.spawn(|| {
            while shared.live().in_flight == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
            shared.abandon();
        });
        issue(&what, feed, &shared).unwrap()
    });
    assert_eq!((measured.abandoned, large_mappings()), (1, before + 1));
}

#[test]
fn no_ios_and_the_longest_are_fine() {
    let length = LENGTH_MAX_BYTES as usize * 2;
    let file = Temporary::new(length);
    let (measured, done) = issued(&file.open(false), one_lane(8), Vec::new());
    assert_eq!((measured.elapsed_ns, done.len()), (0, 0));
    let ios = (0..8)
        .map(|n| {
            let operation = if n % 2 == 0 { Operation::Write } else { Operation::Read };
            io(0, operation, n % 3 % 2 * LENGTH_MAX_BYTES, LENGTH_MAX_BYTES)
        })
        .collect();
    let (measured, _) = issued(&file.open(true), one_lane(8), ios);
    assert_eq!(measured.failure, None);
    assert_eq!(measured.jobs[0].operations[1].bytes, 4 * LENGTH_MAX_BYTES);
}
