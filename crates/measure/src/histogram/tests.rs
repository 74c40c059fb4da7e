//! Tests the layout against fio's, and the algebra of recording, merging and restoring.

use proptest::prelude::*;

use super::*;

fn of(values: &[u64]) -> Histogram {
    let mut histogram = Histogram::new();
    values.iter().copied().for_each(|value| histogram.record(value));
    histogram
}

/// Reimplements fio's `plat_val_to_idx` (stat.c) from its description, without its upper limit.
fn fio_index(value: u64) -> usize {
    let msb = value.checked_ilog2().unwrap_or(0);
    if msb <= 6 {
        return value as usize;
    }
    let error_bits = msb - 6;
    let base = u64::from(error_bits + 1) << 6;
    (base + ((value >> error_bits) & 63)) as usize
}

/// Reimplements fio's `plat_idx_to_val`, which returns the middle of a bucket.
fn fio_value(index: usize) -> u64 {
    if index < 128 {
        return index as u64;
    }
    let error_bits = (index >> 6) - 1;
    let base = 1_u64 << (error_bits + 6);
    (base as f64 + ((index % 64) as f64 + 0.5) * (1_u64 << error_bits) as f64) as u64
}

#[test]
fn every_fio_bucket_is_ours() {
    for index in 0..29 * 64 {
        let middle = fio_value(index);
        assert_eq!(bucket_of(middle), index, "bin {middle} ns");
        assert_eq!(fio_index(lower_bound(index)), index);
        assert_eq!(fio_index(upper_bound(index)), index);
    }
}

/// All `bins` of a run of fio 3.33 (300 random 64 KiB writes to a file, direct), and the statistics
/// in the same output: clat min 100629, max 417268, mean 144357.506667, stddev 24977.614461.
#[rustfmt::skip]
const FIO_BINS: [(u64, u64); 52] = [
    (100_864, 1), (105_984, 2), (112_128, 1), (114_176, 1), (115_200, 5), (116_224, 1),
    (117_248, 1), (119_296, 2), (120_320, 2), (121_344, 2), (122_368, 2), (123_392, 2),
    (125_440, 1), (126_464, 4), (127_488, 2), (128_512, 5), (129_536, 11), (130_560, 13),
    (132_096, 25), (134_144, 14), (136_192, 14), (138_240, 15), (140_288, 23), (142_336, 21),
    (144_384, 19), (146_432, 26), (148_480, 15), (150_528, 12), (152_576, 13), (154_624, 5),
    (156_672, 5), (158_720, 3), (160_768, 3), (162_816, 3), (164_864, 4), (166_912, 3),
    (168_960, 1), (171_008, 1), (173_056, 2), (175_104, 1), (177_152, 1), (179_200, 1),
    (181_248, 2), (183_296, 2), (185_344, 1), (197_632, 1), (228_352, 1), (234_496, 1),
    (238_592, 1), (257_024, 1), (272_384, 1), (415_744, 1),
];

#[test]
fn bins_that_fio_printed() {
    let (values, counts): (Vec<u64>, Vec<u64>) = FIO_BINS.into_iter().unzip();
    let moments = (144_357.506_667, 24_977.614_461);
    let histogram = Histogram::from_buckets(&values, &counts, (100_629, 417_268), moments).unwrap();
    assert_eq!(histogram.count(), 300);
    assert!((histogram.moments().mean().unwrap() - moments.0).abs() < 1e-5);
    assert!((histogram.moments().sd().unwrap() - moments.1).abs() < 1e-5);
    for ((value, count), (lower, upper, ours)) in FIO_BINS.into_iter().zip(histogram.buckets()) {
        assert!(lower <= value && value <= upper && count == ours, "bin {value}");
    }
    // fio prints the midpoint of the bucket, but writecliff prints its upper end.
    for (q, fio) in [(0.5, 142_336), (0.9, 160_768), (0.95, 173_056), (0.99, 238_592)] {
        let ours = histogram.quantile(q).unwrap().value_ns.unwrap();
        assert_eq!(bucket_of(ours), bucket_of(fio), "q {q}");
        assert!(ours >= fio);
    }
    // fio prints 415744 for these percentiles, which is effectively the maximum, because 300
    // samples do not determine a p99.9.
    assert_eq!(histogram.quantile(0.999).unwrap().value_ns, None);
}

#[test]
fn buckets_tile_all_of_u64() {
    assert_eq!(lower_bound(0), 0);
    for bucket in 1..BUCKETS {
        assert_eq!(lower_bound(bucket), upper_bound(bucket - 1) + 1, "bucket {bucket}");
    }
    assert_eq!(upper_bound(BUCKETS - 1), u64::MAX);
    assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
}

#[test]
fn latencies_above_seventeen_seconds_keep_their_place() {
    let day = 86_400_000_000_000;
    let histogram = of(&[day, 20_000_000_000]);
    let buckets: Vec<_> = histogram.buckets().collect();
    assert_eq!(buckets.len(), 2);
    assert!(buckets[1].0 <= day && day <= buckets[1].1 && buckets[1].0 > day / 2);
    assert_eq!(histogram.moments().max(), Some(day));
}

#[test]
fn from_buckets_keeps_the_moments_of_the_tool() {
    let histogram =
        Histogram::from_buckets(&[129, 16_512], &[3, 1], (128, 16_600), (4246.0, 8236.0)).unwrap();
    assert_eq!(histogram.count(), 4);
    assert_eq!((histogram.moments().min(), histogram.moments().max()), (Some(128), Some(16_600)));
    assert_eq!(histogram.moments().mean(), Some(4246.0));
    assert!((histogram.moments().sd().unwrap() - 8236.0).abs() < 1e-3);
    let buckets: Vec<_> = histogram.buckets().collect();
    assert_eq!(buckets, [(128, 129, 3), (16_384, 16_639, 1)]);
}

#[test]
fn a_saturated_fio_bin_reaches_to_its_maximum() {
    let last = fio_value(29 * 64 - 1);
    let minute = 60_000_000_000;
    let h = Histogram::from_buckets(&[129, last], &[1, 99], (129, minute), (2e10, 1e9)).unwrap();
    assert_eq!(h.quantile(0.9).unwrap().value_ns, Some(minute));
}

#[test]
fn impossible_buckets_are_refused() {
    let build = |v: &[u64], c: &[u64], extremes, moments| {
        Histogram::from_buckets(v, c, extremes, moments).unwrap_err()
    };
    assert_eq!(build(&[1, 2], &[1], (1, 2), (1.5, 0.5)), HistogramError::Lengths(2, 1));
    for (extremes, moments) in [
        ((5, 2), (3.0, 0.0)),
        ((1, 2), (9.0, 0.0)),
        ((1, 2), (1.5, -1.0)),
        ((1, 2), (1.5, f64::NAN)),
        ((1, 2), (f64::NAN, 0.0)),
    ] {
        assert!(matches!(build(&[1], &[1], extremes, moments), HistogramError::Inconsistent(_)));
    }
    assert!(matches!(
        build(&[1, 2], &[u64::MAX, 1], (1, 2), (1.5, 0.5)),
        HistogramError::Inconsistent(_)
    ));
}

#[test]
fn damaged_bytes_are_refused() {
    let good = of(&[1, 200, 1 << 40]).to_bytes();
    assert_eq!(Histogram::from_bytes(b"nope"), Err(HistogramError::NotAHistogram));
    for end in 4..good.len() {
        let outcome = Histogram::from_bytes(&good[..end]);
        assert!(matches!(outcome, Err(HistogramError::Damaged(_))), "cut at {end}");
    }
    let mut huge = good.clone();
    huge.extend([0xff, 0xff, 0x7f, 1]);
    assert_eq!(
        Histogram::from_bytes(&huge),
        Err(HistogramError::Damaged("a bucket number is out of range"))
    );
}

#[test]
fn an_empty_histogram_has_no_moments() {
    let empty = Histogram::new();
    assert_eq!(
        (
            empty.moments().min(),
            empty.moments().max(),
            empty.moments().mean(),
            empty.moments().sd()
        ),
        (None, None, None, None)
    );
    assert_eq!(Histogram::from_bytes(&empty.to_bytes()).unwrap(), empty);
    assert_eq!(Histogram::from_buckets(&[], &[], (0, 0), (0.0, 0.0)).unwrap(), empty);
}

proptest! {
    #[test]
    fn a_value_lies_in_its_bucket_which_is_narrow(value in 0_u64.., shift in 0_u32..64) {
        let value = value >> shift;
        let bucket = bucket_of(value);
        prop_assert!(lower_bound(bucket) <= value && value <= upper_bound(bucket));
        prop_assert!(upper_bound(bucket) - lower_bound(bucket) <= lower_bound(bucket) / 64);
        prop_assert_eq!(bucket, fio_index(value));
    }

    #[test]
    fn merging_is_recording_all(a in values(), b in values()) {
        let mut merged = of(&a);
        merged.merge(&of(&b));
        prop_assert_eq!(merged, of(&[a, b].concat()));
    }

    #[test]
    fn restoring_gives_equality(a in values()) {
        let histogram = of(&a);
        prop_assert_eq!(Histogram::from_bytes(&histogram.to_bytes()).unwrap(), histogram);
    }

    #[test]
    fn many_at_once_is_one_by_one(value in 0_u64.., count in 0_u64..50) {
        let mut at_once = Histogram::new();
        at_once.record_many(value, count);
        prop_assert_eq!(at_once, of(&vec![value; count as usize]));
    }

    #[test]
    fn arbitrary_bytes_never_panic(data in proptest::collection::vec(any::<u8>(), 0..80)) {
        let _ = Histogram::from_bytes(&[MAGIC, &data[..]].concat());
    }
}

fn values() -> impl Strategy<Value = Vec<u64>> {
    proptest::collection::vec((0_u64.., 0_u32..64).prop_map(|(v, shift)| v >> shift), 0..200)
}
