//! Tests that a drive served in real time over a socket behaves like a drive simulated in virtual
//! time, under the same workload.
//!
//! Latencies are measured on the drive clock. The time that requests spend outside the drive (in
//! server, socket and client) is measured and added to the simulated host. Otherwise, the simulated
//! drive would have more outstanding requests than the served drive.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use writecliff_base::Nanos;
use writecliff_bench::LoadRequest;
use writecliff_bench::nbd::Client;
use writecliff_host_interface::{Command, Operation};
use writecliff_measure::Histogram;
use writecliff_runner::AnyDrive;
use writecliff_runner::outcome::Unobserved;
use writecliff_serve::{Address, Timing};
use writecliff_workload::{
    BlockSize, IoRequest, JobSpec, Operation as Kind, Pattern, ThreadGenerator, WorkloadSpec,
};

use crate::support::{Server, disk, drive, eventually, scm};

const SEED: u64 = 7;

/// One of the five workloads.
struct Load {
    name: &'static str,
    read_pct: f64,
    block_bytes: u64,
    queue_depth: u32,
}

const LOADS: [Load; 5] = [
    Load { name: "random reads", read_pct: 100.0, block_bytes: 4096, queue_depth: 1 },
    Load { name: "many random reads", read_pct: 100.0, block_bytes: 4096, queue_depth: 16 },
    Load { name: "large reads", read_pct: 100.0, block_bytes: 128 << 10, queue_depth: 2 },
    Load { name: "random writes", read_pct: 0.0, block_bytes: 4096, queue_depth: 4 },
    Load { name: "a mix", read_pct: 70.0, block_bytes: 8192, queue_depth: 8 },
];

fn workload(job: JobSpec, seed: u64) -> WorkloadSpec {
    WorkloadSpec { name: "same".to_owned(), jobs: vec![job], seed, interval_ns: 1_000_000_000 }
}

fn job(load: &Load, ios: u64) -> JobSpec {
    JobSpec {
        read_pct: load.read_pct,
        block_sizes: vec![BlockSize { bytes: load.block_bytes, weight: 1.0, sequential_pct: 0.0 }],
        queue_depth: load.queue_depth,
        ios: Some(ios),
        ..JobSpec::default()
    }
}

/// Writes the whole drive once.
fn filled(mut drive: AnyDrive) -> AnyDrive {
    let fill = JobSpec {
        pattern: Pattern::Sequential,
        block_sizes: vec![BlockSize { bytes: 128 << 10, weight: 1.0, sequential_pct: 0.0 }],
        volume_bytes: Some(drive.any_config().user_capacity().0),
        ..JobSpec::default()
    };
    drive.run_untimed(&workload(fill, 1), &mut Unobserved).unwrap();
    drive
}

/// Compared figures.
#[derive(Debug)]
struct Seen {
    iops: f64,
    mean_ns: f64,
    p99_ns: f64,
    /// Confidence interval of the 99th percentile for this number of samples.
    p99_interval_ns: (f64, f64),
}

impl Seen {
    fn of(latency: &Histogram, elapsed_ns: f64) -> Self {
        let p99 = latency.quantile(0.99).unwrap();
        let ns_of = |ns: Option<u64>| ns.unwrap() as f64;
        Self {
            iops: latency.count() as f64 / elapsed_ns * 1e9,
            mean_ns: latency.moments().mean().unwrap(),
            p99_ns: ns_of(p99.value_ns),
            p99_interval_ns: (ns_of(p99.low_ns), ns_of(p99.high_ns)),
        }
    }
}

/// Runs the workload in virtual time with a host that waits `outside` between a completion and the
/// next request.
fn simulated(mut drive: AnyDrive, load: &Load, ios: u64, outside: Nanos) -> Seen {
    let capacity = drive.any_config().user_capacity();
    let mut requests = ThreadGenerator::new(&job(load, ios), capacity, SEED, 0, 0).unwrap();
    let start = drive.now();
    let mut submitted = vec![start; load.queue_depth as usize];
    let mut ready: BinaryHeap<_> = (0..load.queue_depth).map(|n| Reverse((start, n))).collect();
    let (mut latency, mut left, mut end) = (Histogram::new(), ios, start);
    loop {
        let next = ready.peek().map_or(Nanos::MAX, |&Reverse((time, _))| time);
        if let Some(done) = drive.step(next) {
            end = done.at + outside;
            latency.record((done.at - submitted[done.tag as usize]).0);
            ready.push(Reverse((end, done.tag)));
        } else if let Some(Reverse((at, tag))) = ready.pop() {
            if left > 0 {
                left -= 1;
                submitted[tag as usize] = at;
                drive.submit(at, command(&requests.next(), tag));
            }
        } else {
            return Seen::of(&latency, (end - start).0 as f64);
        }
    }
}

fn command(generated: &IoRequest, tag: u32) -> Command {
    let LoadRequest { operation, offset, length } = request(generated);
    let (content, stream) = (generated.content, generated.stream);
    Command { operation, offset, length, content, stream, queue: 0, tag }
}

fn request(generated: &IoRequest) -> LoadRequest {
    let operation = match generated.op {
        Kind::Read => Operation::Read,
        Kind::Write => Operation::Write,
        Kind::Trim | Kind::Flush => unreachable!("the loads have none"),
    };
    LoadRequest { operation, offset: generated.offset, length: generated.length }
}

fn served(drive: AnyDrive, load: &Load, ios: u64, slow_down: f64) -> (Seen, Nanos) {
    let capacity = drive.any_config().user_capacity();
    let server = Server::of(drive, Timing::Real { slow_down });
    let mut requests = ThreadGenerator::new(&job(load, ios), capacity, SEED, 0, 0).unwrap();
    let mut left = ios;
    let mut client = Client::connect(&Address::Unix(server.path.clone())).unwrap();
    let outcome = client.run(load.queue_depth, || {
        left = left.checked_sub(1)?;
        Some(request(&requests.next()))
    });
    let outcome = outcome.unwrap();
    // The last reply may reach the client before the server has recorded its time.
    eventually("all is noted", || server.served.snapshot().lateness.count() == ios);
    let snapshot = server.served.snapshot();
    let mut latency = Histogram::new();
    for operation in &snapshot.operations.0 {
        latency.merge(&operation.latency);
    }
    assert_eq!(latency.count(), ios);
    let outside =
        outcome.latency.moments().mean().unwrap() / slow_down - latency.moments().mean().unwrap();
    drop(client);
    server.end();
    let seen = Seen::of(&latency, outcome.elapsed_ns as f64 / slow_down);
    (seen, Nanos(outside.round() as u64))
}

/// Number of attempts, because other work may slow down the machine during a measurement.
const TRIES: usize = 3;

/// Returns the name of a figure that differs too much; `None` if all agree.
fn difference(seen: &Seen, expected: &Seen) -> Option<&'static str> {
    let off = |seen: f64, expected: f64| (seen / expected - 1.0).abs();
    let (low, high) = expected.p99_interval_ns;
    if off(seen.iops, expected.iops) > 0.02 {
        return Some("IOPS");
    }
    if off(seen.mean_ns, expected.mean_ns) > 0.05 {
        return Some("mean latency");
    }
    (seen.p99_ns < 0.95 * low || seen.p99_ns > 1.05 * high).then_some("99th percentile")
}

fn compare(new: fn() -> AnyDrive, ios: u64, slow_down: f64) {
    for load in &LOADS {
        let mut different = None;
        for _ in 0..TRIES {
            let (seen, outside) = served(filled(new()), load, ios, slow_down);
            let expected = simulated(filled(new()), load, ios, outside);
            different = difference(&seen, &expected)
                .map(|what| format!("{what}: {seen:?}, simulated {expected:?}, {outside} outside"));
            if different.is_none() {
                break;
            }
        }
        assert_eq!(different, None, "{}", load.name);
    }
}

#[test]
#[ignore = "measures real time, so nothing may run beside it: make test-served"]
fn a_served_ssd_behaves_as_a_simulated_one() {
    compare(drive, 1_000, 100.0);
}

/// A disk's latency depends on the arrival time of the request, so this test uses more requests.
#[test]
#[ignore = "measures real time, so nothing may run beside it: make test-served"]
fn a_served_disk_behaves_as_a_simulated_one() {
    compare(disk, 2_000, 1.0);
}

/// Commands of this drive take only a few microseconds, so drive time is slowed down more.
#[test]
#[ignore = "measures real time, so nothing may run beside it: make test-served"]
fn served_storage_class_memory_behaves_as_a_simulated_drive() {
    compare(scm, 1_000, 2_000.0);
}
