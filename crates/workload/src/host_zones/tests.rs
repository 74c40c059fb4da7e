//! Checks I/Os against the test's own model of the zones.

use proptest::prelude::*;

use super::*;
use crate::ThreadGenerator;
use crate::spec::BlockSize;

const DEVICE: Bytes = Bytes(64 << 20);
const KIB: u64 = 1024;

fn zones(size_bytes: u64) -> HostZones {
    HostZones {
        size_bytes,
        capacity_bytes: None,
        max_open: 0,
        max_open_per_thread: 0,
        begin_full: false,
        read_unwritten: false,
        short_writes: false,
        reset_above_pct: 0.0,
        reset_every_writes: 0,
    }
}

fn job(pattern: Pattern, block: u64, host_zones: HostZones) -> JobSpec {
    let block_sizes = vec![BlockSize { bytes: block, weight: 1.0, sequential_pct: 0.0 }];
    let (range_bytes, host_zones) = (Some(8 * host_zones.size_bytes), Some(host_zones));
    JobSpec { pattern, block_sizes, range_bytes, host_zones, ios: Some(1), ..JobSpec::default() }
}

/// Returns the generators of these jobs' threads, with shared zones.
fn generators(jobs: &[JobSpec]) -> Vec<ThreadGenerator> {
    let mut zones = None;
    let new = |(index, job): (usize, &JobSpec)| {
        let mut generator = ThreadGenerator::new(job, DEVICE, 7, index as u32, 0).unwrap();
        generator.share_zones(&mut zones);
        generator
    };
    jobs.iter().enumerate().map(new).collect()
}

/// Returns the offset and length of the next I/Os in KiB.
fn drawn(job: &JobSpec, count: usize) -> Vec<(u64, u64)> {
    let mut generator = generators(std::slice::from_ref(job)).remove(0);
    let pair = |io: IoRequest| (io.offset / KIB, u64::from(io.length) / KIB);
    (0..count).map(|_| pair(generator.next())).collect()
}

#[test]
fn sequential_writes_leave_out_what_is_beyond_the_capacity() {
    let spec = HostZones { capacity_bytes: Some(40 * KIB), ..zones(64 * KIB) };
    let job = job(Pattern::Sequential, 16 * KIB, spec);
    assert_eq!(drawn(&job, 5), [(0, 16), (16, 16), (64, 16), (80, 16), (128, 16)]);
    let short = HostZones { short_writes: true, ..spec };
    let job = JobSpec { host_zones: Some(short), ..job };
    assert_eq!(drawn(&job, 5), [(0, 16), (16, 16), (32, 8), (64, 16), (80, 16)]);
}

#[test]
fn a_pass_is_followed_by_another_over_zones_that_are_reset() {
    let job =
        JobSpec { offset_bytes: 128 * KIB, ..job(Pattern::Sequential, 64 * KIB, zones(64 * KIB)) };
    let offsets: Vec<u64> = drawn(&job, 10).into_iter().map(|(offset, _)| offset).collect();
    assert_eq!(offsets, [128, 192, 256, 320, 384, 448, 512, 576, 128, 192]);
}

#[test]
fn sequential_reads_skip_zones_without_data_and_the_rest_of_others() {
    let spec = zones(64 * KIB);
    let fill = JobSpec { range_bytes: Some(64 * KIB), ..job(Pattern::Sequential, 16 * KIB, spec) };
    let far = JobSpec { offset_bytes: 256 * KIB, ..fill.clone() };
    let read = JobSpec { read_pct: 100.0, ..job(Pattern::Sequential, 16 * KIB, spec) };
    let mut all = generators(&[fill, far, read]);
    for (index, count) in [(0, 4), (1, 2)] {
        for _ in 0..count {
            all[index].next();
        }
    }
    let offsets: Vec<u64> = (0..8).map(|_| all[2].next().offset / KIB).collect();
    assert_eq!(offsets, [0, 16, 32, 48, 256, 272, 0, 16]);
}

#[test]
fn zones_are_reset_by_every_nth_write_above_the_threshold() {
    let spec = HostZones { reset_above_pct: 50.0, reset_every_writes: 4, ..zones(64 * KIB) };
    let mut generator = generators(&[job(Pattern::Random, 16 * KIB, spec)]).remove(0);
    let mut written = [0_u64; 8];
    let mut levels = Vec::new();
    for _ in 0..400 {
        let io = generator.next();
        let zone = (io.offset / (64 * KIB)) as usize;
        written[zone] = io.offset % (64 * KIB) + u64::from(io.length);
        levels.push(written.iter().sum::<u64>() * 100 / (8 * 64 * KIB));
    }
    let mean = levels[100..].iter().sum::<u64>() / 300;
    assert!((45..=65).contains(&mean), "{mean} % are written");
    let always = HostZones { reset_every_writes: 1, ..zones(64 * KIB) };
    let job = job(Pattern::Random, 16 * KIB, always);
    assert!(drawn(&job, 50).iter().all(|(offset, _)| offset % 64 == 0));
}

#[test]
fn trims_go_to_zones_with_data_and_reset_them() {
    let spec = zones(64 * KIB);
    let write = JobSpec { range_bytes: Some(64 * KIB), ..job(Pattern::Random, 16 * KIB, spec) };
    let trim = JobSpec { trim_pct: 100.0, ..job(Pattern::Random, 64 * KIB, spec) };
    let mut all = generators(&[write, trim]);
    for _ in 0..20 {
        assert_eq!(all[0].next().offset, 0, "the zone is empty again");
        let trimmed = all[1].next();
        assert_eq!((trimmed.op, trimmed.offset), (Operation::Trim, 0));
    }
}

#[test]
fn a_mix_writes_before_it_reads() {
    let job = JobSpec { read_pct: 90.0, ..job(Pattern::Random, 16 * KIB, zones(64 * KIB)) };
    let mut generator = generators(&[job]).remove(0);
    assert_eq!(generator.next().op, Operation::Write);
    let reads = (0..100).filter(|_| generator.next().op == Operation::Read).count();
    assert!(reads > 70, "{reads}");
}

#[test]
fn invalid_zones_are_rejected() {
    let good = zones(64 * KIB);
    for (spec, message) in [
        (HostZones { size_bytes: 1000, ..good }, "1000 B is not a multiple"),
        (HostZones { capacity_bytes: Some(128 * KIB), ..good }, "do not fit into each other"),
        (HostZones { size_bytes: 8 * KIB, ..good }, "blocks of 16 KiB"),
        (HostZones { max_open_per_thread: 1, ..good }, "needs max_open"),
        (HostZones { max_open: 5000, ..good }, "max_open 5000 is above 4096"),
        (HostZones { reset_above_pct: 101.0, ..good }, "reset_above 101 %"),
        (HostZones { size_bytes: 192 * KIB, ..good }, "multiples of the zone size of 192 KiB"),
    ] {
        let job = JobSpec { range_bytes: Some(512 * KIB), ..job(Pattern::Random, 16 * KIB, spec) };
        let error = ThreadGenerator::new(&job, DEVICE, 1, 0, 0).map(drop).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    let trim = JobSpec { trim_pct: 100.0, ..job(Pattern::Random, 16 * KIB, good) };
    assert!(trim.check().unwrap_err().message.contains("blocks of the size of a zone"));
    let holes = JobSpec { hole_bytes: 512, ..job(Pattern::Sequential, 16 * KIB, good) };
    assert!(holes.check().unwrap_err().message.contains("not together"));
}

proptest! {
    /// Two threads issue I/Os in any order. Tests that writes continue or restart their zone, stay
    /// within its capacity, and never exceed the limit of open zones.
    #[test]
    fn writes_are_in_order_and_open_zones_few(
        sequential: bool, short_writes: bool, begin_full: bool,
        block in 1_u64..9, sectors in 16_u64..64, lost in 0_u64..4,
        max_open in 0_u32..5, own_max in 0_u32..3, read_pct in 0_u8..80,
        turns in proptest::collection::vec(0_usize..2, 500),
    ) {
        let (size, least) = (sectors * 512, block * 512);
        let capacity = size - lost * 512;
        let spec = HostZones {
            capacity_bytes: Some(capacity),
            max_open,
            max_open_per_thread: if max_open > 0 { own_max } else { 0 },
            begin_full,
            short_writes,
            ..zones(size)
        };
        let pattern = if sequential { Pattern::Sequential } else { Pattern::Random };
        let mut zoned = job(pattern, least, spec);
        zoned.read_pct = f64::from(read_pct);
        zoned.block_sizes.push(BlockSize { bytes: 2 * least, weight: 1.0, sequential_pct: 0.0 });
        zoned.align_bytes = (!sequential).then_some(least);
        prop_assume!(2 * least <= capacity);
        let mut all = generators(&[zoned.clone(), zoned]);
        let mut written = [if begin_full { capacity } else { 0 }; 8];
        let full = |written: u64| {
            let rest = capacity.saturating_sub(written);
            if short_writes { rest == 0 } else { rest < least }
        };
        for turn in turns {
            let io = all[turn].next();
            let (zone, at) = ((io.offset / size) as usize, io.offset % size);
            let end = at + u64::from(io.length);
            prop_assert!(io.length > 0);
            if io.op == Operation::Read {
                // The unwritten remainder of a finished zone counts as written.
                let readable = if full(written[zone]) { size } else { written[zone] };
                prop_assert!(end <= readable, "to {} of {}", end, readable);
                continue;
            }
            let anew = at == 0 && full(written[zone]);
            prop_assert!(at == written[zone] || anew, "{at} in {}", written[zone]);
            prop_assert!(end <= capacity && (u64::from(io.length) >= least || short_writes));
            written[zone] = end;
            let open = written.iter().filter(|&&bytes| bytes > 0 && !full(bytes)).count();
            prop_assert!(max_open == 0 || open <= max_open as usize, "{open} are open");
        }
    }
}
