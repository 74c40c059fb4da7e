//! Tests properties of all address kinds, and the distribution of uniform addresses.

use proptest::prelude::*;

use super::*;
use crate::spec::{AddressSpec, BlockSize, SegmentSpec, Zone};

fn job() -> JobSpec {
    JobSpec { ios: Some(1), ..JobSpec::default() }
}

fn offsets(job: &JobSpec, range: u64, count: usize) -> Vec<u64> {
    let (mut generator, classes) = AddressGenerator::new(job, Bytes(range), 0).unwrap();
    let mut random = Prng::new(4);
    (0..count).map(|_| generator.next(&mut random, &classes.common[0], Operation::Write)).collect()
}

fn chi_square(seen: &[u32]) -> f64 {
    let expected = f64::from(seen.iter().sum::<u32>()) / seen.len() as f64;
    seen.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum()
}

#[test]
fn uniform_offsets_pass_chi_square() {
    let mut seen = [0_u32; 100];
    for offset in offsets(&job(), 100 * 4096 + 512, 500_000) {
        seen[(offset / 4096) as usize] += 1;
    }
    // The chi-square test has 99 degrees of freedom.
    assert!((60.0..145.0).contains(&chi_square(&seen)), "{}", chi_square(&seen));
}

#[test]
fn uniform_offsets_in_segments_pass_chi_square() {
    let segments = Some(SegmentSpec { count: 10, amount_bytes: 100 * 4096, seed: 1 });
    let job = JobSpec { segments, ..job() };
    let range = 1 << 24;
    let map = SegmentMap::new(&job, Bytes(range)).unwrap();
    let mut seen = [0_u32; 100];
    for offset in offsets(&job, range, 500_000) {
        let segment = map.starts.partition_point(|&start| start <= offset) - 1;
        let inner = offset - map.starts[segment];
        assert!(inner < map.size, "{offset} lies between segments");
        seen[segment * 10 + (inner / 4096) as usize] += 1;
    }
    assert!((60.0..145.0).contains(&chi_square(&seen)), "{}", chi_square(&seen));
}

#[test]
fn scattered_zones_keep_their_shares_and_no_zone_is_contiguous() {
    let zone = |access_pct, size_pct| Zone { access_pct, size_pct };
    let mut addresses = AddressSpec {
        kind: AddressKind::HotCold,
        zones: vec![zone(90.0, 10.0)],
        scatter_bytes: Some(4096),
        ..AddressSpec::default()
    };
    let units = 1000;
    let hot = |addresses: &AddressSpec| -> Vec<u64> {
        let job = JobSpec { addresses: addresses.clone(), ..job() };
        let mut seen = vec![0_u32; units as usize];
        for at in offsets(&job, units * 4096, 200_000) {
            seen[(at / 4096) as usize] += 1;
        }
        // A hot page gets 1800 accesses, a cold page 22.
        let hot: Vec<u64> = (0..units).filter(|&page| seen[page as usize] > 1000).collect();
        assert_eq!(hot.len(), 100);
        let share = hot.iter().map(|&page| seen[page as usize]).sum::<u32>();
        assert!((178_000..182_000).contains(&share), "{share}");
        hot
    };
    let scattered = hot(&addresses);
    let above_middle = scattered.iter().filter(|&&page| page >= units / 2).count();
    assert!((35..=65).contains(&above_middle), "{above_middle}");
    assert_eq!(hot(&addresses), scattered);
    addresses.scatter_seed = 1;
    let common = hot(&addresses).iter().filter(|page| scattered.contains(page)).count();
    assert!(common < 30, "{common}");
    // Chunks of ten blocks stay contiguous.
    addresses.scatter_bytes = Some(10 * 4096);
    let pieces = hot(&addresses);
    assert!(pieces.chunks(10).all(|piece| piece[0] % 10 == 0 && piece[9] == piece[0] + 9));
    addresses.scatter_bytes = None;
    addresses.scatter_seed = 0;
    assert_eq!(hot(&addresses), (0..100).collect::<Vec<_>>());
}

#[test]
fn sequential_positions_wrap_and_each_operation_has_its_own() {
    let job = JobSpec { pattern: Pattern::Sequential, thread_stride_bytes: 8192, ..job() };
    let (mut generator, classes) = AddressGenerator::new(&job, Bytes(5 * 4096 + 512), 1).unwrap();
    let mut random = Prng::new(1);
    let mut next = |operation| generator.next(&mut random, &classes.common[0], operation) / 4096;
    let writes: Vec<u64> = (0..7).map(|_| next(Operation::Write)).collect();
    assert_eq!(writes, [2, 3, 4, 0, 1, 2, 3]);
    assert_eq!(next(Operation::Read), 2);
    assert_eq!(next(Operation::Write), 4);
}

#[test]
fn sequences_pass_through_each_segment_and_start_over() {
    let segments = Some(SegmentSpec { count: 4, amount_bytes: 12 * 4096, seed: 3 });
    let mut job = JobSpec { pattern: Pattern::Sequential, segments, ..job() };
    let range = 1 << 24;
    let starts = SegmentMap::new(&job, Bytes(range)).unwrap().starts;
    let all: Vec<u64> =
        starts.iter().flat_map(|start| (0..3).map(move |block| start + block * 4096)).collect();
    assert_eq!(offsets(&job, range, 24), [&all[..], &all[..]].concat());
    // Positions are relative to the concatenation of all segments.
    job.start_bytes = 8 * 4096;
    assert_eq!(offsets(&job, range, 12), [&all[8..], &all[..8]].concat());
}

#[test]
fn sequential_blocks_of_mixed_sizes_leave_no_holes_unless_aligned() {
    let sizes = [512_u64, 4096, 1536];
    let block_sizes =
        sizes.map(|bytes| BlockSize { bytes, weight: 1.0, sequential_pct: 0.0 }).to_vec();
    let mut job = JobSpec { pattern: Pattern::Sequential, block_sizes, ..job() };
    let all = |job: &JobSpec| {
        let (mut generator, classes) = AddressGenerator::new(job, Bytes(1 << 20), 0).unwrap();
        let mut random = Prng::new(1);
        let draw = |class: &SizeClass| generator.next(&mut random, class, Operation::Write);
        classes.common.iter().map(draw).collect::<Vec<u64>>()
    };
    assert_eq!(all(&job), [0, 512, 4608]);
    job.align_bytes = Some(4096);
    assert_eq!(all(&job), [0, 4096, 8192]);
}

#[test]
fn zipf_blocks_of_all_sizes_share_their_hot_addresses() {
    let block_sizes = [4096_u64, 65_536]
        .map(|bytes| BlockSize { bytes, weight: 1.0, sequential_pct: 0.0 })
        .to_vec();
    let kind = AddressKind::Zipf;
    let addresses = AddressSpec { kind, theta: Some(1.5), ..AddressSpec::default() };
    let job = JobSpec { block_sizes, addresses, ..job() };
    let (mut generator, classes) = AddressGenerator::new(&job, Bytes(1 << 30), 0).unwrap();
    let mut random = Prng::new(8);
    let mut hottest = |class: &SizeClass| {
        let mut seen = std::collections::BTreeMap::<u64, u32>::new();
        for _ in 0..20_000 {
            *seen.entry(generator.next(&mut random, class, Operation::Read)).or_default() += 1;
        }
        seen.into_iter().max_by_key(|&(_, count)| count).unwrap()
    };
    let (small, large) = (hottest(&classes.common[0]), hottest(&classes.common[1]));
    assert_eq!(small.0 / 65_536, large.0 / 65_536);
    // The first rank receives 1 / zeta(1.5) = 38 % of the accesses.
    assert!((7200..8100).contains(&small.1), "{}", small.1);
}

fn kinds() -> impl Strategy<Value = (Pattern, AddressSpec)> {
    let zones = |pairs: &[(f64, f64)]| {
        pairs.iter().map(|&(access_pct, size_pct)| Zone { access_pct, size_pct }).collect()
    };
    let spec = |kind, theta, zones| {
        (Pattern::Random, AddressSpec { kind, theta, zones, ..AddressSpec::default() })
    };
    prop_oneof![
        Just((Pattern::Sequential, AddressSpec::default())),
        Just(spec(AddressKind::Uniform, None, Vec::new())),
        (0.1_f64..3.0).prop_map(move |theta| spec(AddressKind::Zipf, Some(theta), Vec::new())),
        (1.0_f64..99.0).prop_map(|hot| {
            let (kind, hot_pct) = (AddressKind::Pareto, Some(hot));
            (Pattern::Random, AddressSpec { kind, hot_pct, ..AddressSpec::default() })
        }),
        (1.0_f64..99.0).prop_map(|deviation| {
            let (kind, deviation_pct) = (AddressKind::Normal, Some(deviation));
            (Pattern::Random, AddressSpec { kind, deviation_pct, ..AddressSpec::default() })
        }),
        Just(spec(AddressKind::Zoned, None, zones(&[(50.0, 5.0), (30.0, 15.0), (20.0, 80.0)]))),
        Just(spec(AddressKind::HotCold, None, zones(&[(90.0, 10.0)]))),
    ]
}

proptest! {
    #[test]
    fn every_block_lies_inside_the_range_and_is_aligned(
        (pattern, addresses) in kinds(),
        sectors in proptest::collection::vec(1_u64..300, 1..4),
        align in proptest::option::of(1_u64..64),
        range in 1200_u64..100_000,
        segments in proptest::option::of(1_u64..3),
    ) {
        let size = |n: &u64| BlockSize { bytes: n * 512, weight: 1.0, sequential_pct: 0.0 };
        let block_sizes = sectors.iter().map(size).collect();
        let range = Bytes(range * 512);
        let segments = segments.map(|count| {
            SegmentSpec { count, amount_bytes: range.0 / 4 * count, seed: 1 }
        });
        let align_bytes = align.map(|n| n * 512);
        let job = JobSpec { pattern, block_sizes, segments, align_bytes, addresses, ..job() };
        prop_assume!(job.check().is_ok());
        let Ok((mut generator, classes)) = AddressGenerator::new(&job, range, 3) else {
            return Ok(());
        };
        let starts = segments.map(|_| SegmentMap::new(&job, range).unwrap());
        let mut random = Prng::new(2);
        for i in 0..200 {
            let class = classes.common[i % classes.common.len()];
            let offset = generator.next(&mut random, &class, Operation::Read);
            prop_assert!(offset + u64::from(class.length) <= range.0);
            let within = starts.as_ref().map_or(offset, |map| {
                offset - map.starts.iter().rev().find(|&&start| start <= offset).unwrap()
            });
            let default = if pattern == Pattern::Sequential { 512 } else { class.align };
            let align = align_bytes.unwrap_or(default);
            prop_assert_eq!(within % align, 0);
            if let Some(map) = &starts {
                prop_assert!(within + u64::from(class.length) <= map.size);
            }
        }
    }
}
