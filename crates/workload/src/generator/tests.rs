//! Tests mixes, flushes, streams and determinism of requests.

use super::*;
use crate::spec::{BlockSize, WorkloadSpec};

const CAPACITY: Bytes = Bytes(1 << 30);

fn job(json: &str) -> JobSpec {
    let text = format!(r#"{{"name":"w","jobs":[{json}]}}"#);
    WorkloadSpec::from_json(&text).unwrap().jobs.remove(0)
}

fn requests(job: &JobSpec, count: usize) -> Vec<IoRequest> {
    let mut generator = ThreadGenerator::new(job, CAPACITY, 1, 0, 0).unwrap();
    (0..count).map(|_| generator.next()).collect()
}

#[test]
fn a_seed_fixes_everything_and_threads_and_jobs_differ() {
    let job = job(r#"{"read_pct":50,"ios":1}"#);
    let take = |seed, job_index, thread| {
        let mut generator = ThreadGenerator::new(&job, CAPACITY, seed, job_index, thread).unwrap();
        (0..100).map(|_| generator.next()).collect::<Vec<_>>()
    };
    assert_eq!(take(1, 0, 0), take(1, 0, 0));
    assert_ne!(take(1, 0, 0), take(2, 0, 0));
    assert_ne!(take(1, 0, 0), take(1, 1, 0));
    assert_ne!(take(1, 0, 0), take(1, 0, 1));
}

/// Golden values, which every simulation result depends on. Golden values must be changed only
/// deliberately.
#[test]
fn the_first_requests_never_change() {
    let job = job(r#"{"read_pct":65,"block_sizes":[{"bytes":4096},{"bytes":8192}],"ios":1}"#);
    let got: Vec<(u8, u64, u32)> =
        requests(&job, 8).iter().map(|io| (io.op as u8, io.offset / 512, io.length)).collect();
    assert_eq!(got, GOLDEN);
}

/// Operation, sector and length, from an independent implementation of the definition.
const GOLDEN: [(u8, u64, u32); 8] = [
    (0, 646_640, 8192),
    (1, 1_835_824, 8192),
    (0, 470_480, 8192),
    (1, 330_208, 8192),
    (0, 1_010_856, 4096),
    (0, 974_832, 8192),
    (1, 1_794_176, 8192),
    (0, 246_840, 4096),
];

#[test]
fn shares_of_operations_match_the_specification() {
    let n = 1_000_000;
    let mut seen = [0_u32; 4];
    for io in requests(&job(r#"{"read_pct":65,"trim_pct":5,"ios":1}"#), n) {
        seen[io.op as usize] += 1;
    }
    // The tolerance is four standard deviations, where one standard deviation is sqrt(n p (1 - p)).
    for (operation, share) in [(0, 0.65), (2, 0.05), (1, 0.30)] {
        let expected = n as f64 * share;
        let tolerance = 4.0 * (expected * (1.0 - share)).sqrt();
        assert!((f64::from(seen[operation]) - expected).abs() < tolerance, "{seen:?}");
    }
    assert_eq!(seen[3], 0);
}

#[test]
fn single_operations_draw_no_others() {
    for (json, op) in [
        (r#"{"ios":1}"#, Operation::Write),
        (r#"{"read_pct":100,"ios":1}"#, Operation::Read),
        (r#"{"trim_pct":100,"ios":1}"#, Operation::Trim),
    ] {
        assert!(requests(&job(json), 10_000).iter().all(|io| io.op == op));
    }
}

#[test]
fn the_jesd219_size_mix_has_its_shares() {
    let mix = [(512, 4), (1024, 1), (1536, 1), (4096, 67), (8192, 10), (16_384, 7), (65_536, 10)];
    let block_sizes = mix
        .iter()
        .map(|&(bytes, weight)| BlockSize { bytes, weight: f64::from(weight), sequential_pct: 0.0 })
        .collect();
    let job = JobSpec { block_sizes, align_bytes: Some(4096), ios: Some(1), ..JobSpec::default() };
    let all = requests(&job, 500_000);
    for (bytes, weight) in mix {
        let count = all.iter().filter(|io| u64::from(io.length) == bytes).count() as f64;
        let (p, n) = (f64::from(weight) / 100.0, all.len() as f64);
        assert!((count - n * p).abs() < 4.0 * (n * p * (1.0 - p)).sqrt(), "{bytes}: {count}");
    }
    assert!(all.iter().all(|io| io.offset % 4096 == 0));
}

#[test]
fn offset_stream_and_length_reach_the_request() {
    let job = job(r#"{"offset_bytes":536870912,"range_bytes":1048576,"stream":3,"ios":1}"#);
    for io in requests(&job, 1000) {
        assert!((536_870_912..536_870_912 + 1_048_576).contains(&io.offset));
        assert_eq!((io.stream, io.length), (StreamId(3), 4096));
    }
}

#[test]
fn a_flush_follows_every_nth_write() {
    let all = requests(&job(r#"{"read_pct":50,"flush_every_writes":3,"ios":1}"#), 4000);
    let mut writes = 0;
    for io in &all {
        match io.op {
            Operation::Write => writes += 1,
            Operation::Flush => {
                assert_eq!((std::mem::take(&mut writes), io.offset, io.length), (3, 0, 0));
            }
            _ => {}
        }
        assert!(writes <= 3);
    }
    assert!(all.iter().filter(|io| io.op == Operation::Flush).count() > 400);
}

#[test]
fn dsync_changes_no_request() {
    let dsync = requests(&job(r#"{"read_pct":50,"dsync":true,"ios":1}"#), 1000);
    let plain = requests(&job(r#"{"read_pct":50,"ios":1}"#), 1000);
    assert_eq!(dsync, plain);
}

#[test]
fn a_job_that_does_not_fit_has_no_generator() {
    let job = job(r#"{"range_bytes":2147483648,"ios":1}"#);
    let error = ThreadGenerator::new(&job, CAPACITY, 1, 0, 0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "job 'job': range: 2 GiB from offset 0 B exceeds the drive of 1 GiB"
    );
}

#[test]
fn writes_and_trims_have_their_own_sizes_and_alignment() {
    let job = job(r#"{"read_pct":40,"trim_pct":20,"ios":1,"block_sizes":[{"bytes":8192}],
            "writes":{"block_sizes":[{"bytes":4096,"weight":3},{"bytes":16384}],"align_bytes":4096},
            "trims":{"block_sizes":[{"bytes":65536}]}}"#);
    let mut large = [0_u32; 2];
    for io in requests(&job, 100_000) {
        match io.op {
            Operation::Read => assert_eq!((io.length, io.offset % 8192), (8192, 0)),
            Operation::Trim => assert_eq!((io.length, io.offset % 65536), (65536, 0)),
            _ => {
                assert_eq!(io.offset % 4096, 0);
                large[usize::from(io.length == 16384)] += 1;
            }
        }
    }
    let share = f64::from(large[1]) / f64::from(large[0] + large[1]);
    assert!((share - 0.25).abs() < 0.01, "{large:?}");
    assert!((job.mean_block_bytes() - (0.4 * 15_360.0 + 0.2 * 65_536.0)).abs() < 1e-6);
}

#[test]
fn runs_continue_from_random_addresses() {
    let got = requests(&job(r#"{"run_ios":4,"ios":1}"#), 400);
    for run in got.chunks(4) {
        assert!(run.windows(2).all(|pair| pair[1].offset == pair[0].offset + 4096), "{run:?}");
    }
    let jumps = got.windows(2).filter(|pair| pair[1].offset != pair[0].offset + 4096).count();
    assert_eq!(jumps, 99);
}

#[test]
fn shares_of_reads_and_writes_continue_where_the_last_one_ended() {
    let mixed = r#"{"read_pct":95,"sequential_read_pct":25,"sequential_write_pct":60,"ios":1}"#;
    let mut ends = [None; 2];
    let (mut continued, mut all) = ([0; 2], [0; 2]);
    for io in requests(&job(mixed), 200_000) {
        let index = io.op as usize;
        continued[index] += usize::from(ends[index] == Some(io.offset));
        all[index] += 1;
        ends[index] = Some(io.offset + u64::from(io.length));
    }
    let share =
        |index: usize| 100.0 * f64::from(continued[index] as u32) / f64::from(all[index] as u32);
    assert!((share(0) - 25.0).abs() < 0.5, "{continued:?} of {all:?}");
    assert!((share(1) - 60.0).abs() < 2.0, "{continued:?} of {all:?}");
}

/// Tests the I/O streams of a mix: sequential 64 KiB reads, random 4 KiB reads, and 4 KiB writes,
/// half of which are sequential.
#[test]
fn sizes_go_on_in_order_beside_random_ones() {
    let mixed = r#"{"read_pct":50,"align_bytes":4096,"ios":1,
        "block_sizes":[{"bytes":4096,"weight":3},{"bytes":65536,"sequential_pct":100}],
        "writes":{"block_sizes":[{"bytes":4096,"sequential_pct":50}],"align_bytes":4096}}"#;
    let got = requests(&job(mixed), 40_000);
    let of = |op, length| got.iter().filter(move |io| (io.op, io.length) == (op, length));
    let offsets = |op, length| of(op, length).map(|io| io.offset).collect::<Vec<_>>();
    let ordered = offsets(Operation::Read, 65_536);
    assert!((4500..5500).contains(&ordered.len()), "{}", ordered.len());
    let whole = CAPACITY.0 / 65_536;
    let jumps = ordered.windows(2).filter(|pair| pair[1] != pair[0] + 65_536).count();
    assert!(jumps as u64 <= ordered.len() as u64 / whole + 1, "{jumps}");
    let random = offsets(Operation::Read, 4096);
    assert!(random.windows(2).filter(|pair| pair[1] == pair[0] + 4096).count() < 10);
    let writes = offsets(Operation::Write, 4096);
    let ends: std::collections::BTreeSet<u64> = writes.iter().map(|at| at + 4096).collect();
    let went_on = writes.iter().filter(|at| ends.contains(at)).count();
    // In 4 % of the cases, a random I/O continues another I/O by chance.
    let share = went_on as f64 / writes.len() as f64;
    assert!((0.45..0.6).contains(&share), "{share}");
}

#[test]
fn sequential_streams_begin_where_they_are_told() {
    let json = r#"{"pattern":"sequential","read_pct":50,"range_bytes":65536,"start_bytes":57344,
        "write_start_bytes":4096,"ios":1}"#;
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    for io in requests(&job(json), 40) {
        if io.op == Operation::Read { &mut reads } else { &mut writes }.push(io.offset / 4096);
    }
    assert_eq!(reads[..4], [14, 15, 0, 1]);
    assert_eq!(writes[..3], [1, 2, 3]);
}

#[test]
fn each_block_is_trimmed_and_then_written() {
    for pattern in ["random", "sequential"] {
        let json = format!(r#"{{"trim_first":true,"pattern":"{pattern}","ios":1}}"#);
        let got = requests(&job(&json), 200);
        for pair in got.chunks(2) {
            assert_eq!((pair[0].op, pair[1].op), (Operation::Trim, Operation::Write));
            assert_eq!((pair[0].offset, pair[0].length), (pair[1].offset, pair[1].length));
        }
        assert_ne!(got[0].offset, got[2].offset);
    }
}

#[test]
fn writes_go_to_several_streams_and_reads_to_none() {
    let in_turn = job(r#"{"read_pct":50,"streams":[1,3],"ios":1}"#);
    let got = requests(&in_turn, 1000);
    let writes: Vec<u16> =
        got.iter().filter(|io| io.op == Operation::Write).map(|io| io.stream.0).collect();
    assert!(writes.chunks_exact(2).all(|pair| pair == [1, 3]), "{writes:?}");
    let random = job(r#"{"streams":[1,3],"stream_order":"random","ios":1}"#);
    let first = requests(&random, 10_000).iter().filter(|io| io.stream.0 == 1).count();
    assert!((4_800..5_200).contains(&first), "{first}");
}

#[test]
fn operations_may_continue_from_one_position() {
    for course in ["", r#""hole_bytes":8192,"#] {
        let reading = job(&format!(
            r#"{{"pattern":"sequential","read_pct":30,"trim_pct":30,{course}
            "one_position":true,"ios":1}}"#
        ));
        let step = 4096 + reading.hole_bytes as u64;
        let drawn = requests(&reading, 100);
        let offsets: Vec<u64> = drawn.iter().map(|request| request.offset).collect();
        assert_eq!(offsets, (0..100).map(|index| index * step).collect::<Vec<_>>());
        for operation in [Operation::Read, Operation::Write, Operation::Trim] {
            assert!(drawn.iter().any(|request| request.op == operation), "{operation:?}");
        }
    }
}

#[test]
fn a_log_is_repeated_as_it_is() {
    let json = r#"{"ios":1,"offset_bytes":4096,"log":{"operations":"wrf","offsets":[8192,512,0],
        "lengths":[4096,512,0],"times_ns":[0,7,7]}}"#;
    let got: Vec<(u8, u64, u32)> =
        requests(&job(json), 4).iter().map(|io| (io.op as u8, io.offset, io.length)).collect();
    assert_eq!(got, [(1, 8192, 4096), (0, 512, 512), (3, 0, 0), (1, 8192, 4096)]);
}
