//! Tests that rate-driven workloads issue the same I/Os as the simulator's host.

use writecliff_base::Bytes;
use writecliff_issuer::generated::{Generated, lanes, times};
use writecliff_issuer::{Io, Operation};
use writecliff_workload::{Arrival, JobSpec, ThreadGenerator, ThreadPacing, WorkloadSpec};

use crate::MS;

const CAPACITY: Bytes = Bytes(1 << 30);

fn workload(jobs: Vec<JobSpec>) -> WorkloadSpec {
    let json = r#"{"name":"w","jobs":[],"seed":7,"interval_ns":1000000000}"#;
    let mut spec: WorkloadSpec = serde_json::from_str(json).unwrap();
    spec.jobs = jobs;
    spec
}

fn all(spec: &WorkloadSpec) -> Vec<Io> {
    Generated::new(spec, CAPACITY).unwrap().collect()
}

fn rated(name: &str, iops: f64) -> JobSpec {
    JobSpec {
        name: name.to_owned(),
        rate_iops: Some(iops),
        read_pct: 70.0,
        threads: 3,
        queue_depth: 4,
        duration_ns: Some(1_000_000_000),
        ..JobSpec::default()
    }
}

#[test]
fn each_thread_issues_what_the_simulator_would() {
    let poisson = JobSpec { arrival: Arrival::Poisson, ..rated("b", 900.0) };
    let spec = workload(vec![rated("a", 300.0), poisson]);
    let ios = all(&spec);
    assert!(ios.is_sorted_by_key(|io| io.due_ns));
    assert_eq!(ios.iter().filter(|io| io.lane < 3).count(), 300);
    assert_eq!(lanes(&spec).iter().map(|lane| lane.job).collect::<Vec<_>>(), [0, 0, 0, 1, 1, 1]);
    for lane in 0..6_u32 {
        let (number, thread) = (lane / 3, lane % 3);
        let job = &spec.jobs[number as usize];
        let mut requests = ThreadGenerator::new(job, CAPACITY, 7, number, thread).unwrap();
        let mut pacing = ThreadPacing::new(job, 7, number, thread);
        let mine: Vec<_> = ios.iter().filter(|io| io.lane == lane).collect();
        assert!(mine.len() >= 90);
        for io in mine {
            let wanted = requests.next();
            assert_eq!((io.operation, io.offset), (wanted.op, wanted.offset));
            assert_eq!(Some(io.due_ns), pacing.next_arrival_ns(wanted.op, wanted.length));
        }
    }
}

#[test]
fn jobs_end_by_time_ios_or_volume() {
    let mut by_ios = JobSpec { ios: Some(40), ..rated("ios", 1000.0) };
    let by_volume = JobSpec { volume_bytes: Some(50 * 4096), ..rated("volume", 1000.0) };
    let count = |spec: &WorkloadSpec, from: u32| {
        all(spec).iter().filter(|io| (from..from + 3).contains(&io.lane)).count()
    };
    let spec = workload(vec![by_ios.clone(), by_volume.clone(), rated("time", 100.0)]);
    assert_eq!([count(&spec, 0), count(&spec, 3), count(&spec, 6)], [40, 50, 100]);
    by_ios.ends_all = true;
    let spec = workload(vec![by_ios, by_volume, rated("time", 100.0)]);
    assert_eq!([count(&spec, 0), count(&spec, 3)], [40, 41], "all end with the first");
    assert!(count(&spec, 6) <= 5);
}

#[test]
fn flushes_follow_their_writes_and_durable_writes_need_none() {
    let writes = JobSpec { read_pct: 0.0, threads: 1, ios: Some(10), ..rated("w", 1000.0) };
    let with_flushes = JobSpec { flush_every_writes: 5, ..writes.clone() };
    let ios = all(&workload(vec![with_flushes]));
    let places: Vec<_> = (0..ios.len()).filter(|&n| ios[n].operation == Operation::Flush).collect();
    assert_eq!(places, [5]);
    assert_eq!(ios[5].due_ns, ios[4].due_ns);
    let spec = workload(vec![JobSpec { dsync: true, ..writes }]);
    assert!(all(&spec).iter().all(|io| io.operation == Operation::Write));
    assert!(lanes(&spec)[0].dsync);
}

#[test]
fn a_closed_loop_is_refused() {
    let spec = workload(vec![JobSpec { rate_iops: None, ..rated("closed", 1.0) }]);
    assert!(Generated::new(&spec, CAPACITY).is_err());
}

#[test]
fn schedules_and_counts_start_again_after_a_ramp() {
    let (ramp_ns, start_delay_ns) = (45 * MS, 10 * MS);
    let job = JobSpec { ramp_ns, start_delay_ns, ios: Some(3), ..rated("j", 100.0) };
    let spec = workload(vec![job]);
    let due_ms: Vec<u64> = all(&spec).iter().map(|io| io.due_ns / MS).collect();
    // The limit of three I/Os also applies during the ramp time.
    assert_eq!(due_ms, [10, 20, 30]);
    let job = JobSpec { ramp_ns, start_delay_ns, ios: Some(6), ..rated("j", 100.0) };
    let due_ms: Vec<u64> = all(&workload(vec![job])).iter().map(|io| io.due_ns / MS).collect();
    assert_eq!(due_ms, [10, 20, 30, 40, 50, 55, 65, 75, 85, 95, 105]);
    assert_eq!(times(&spec)[0].start_ns, 55 * MS);
}
