//! Log-linear buckets for integers: exact below 2^(`BITS` + 1), then 2^`BITS` buckets for each
//! power of two. A bucket is at most 1/2^`BITS` of its lower bound wide.

/// Returns the number of buckets that cover all `u64` values.
#[must_use]
pub const fn buckets<const BITS: u32>() -> usize {
    (64 - BITS as usize + 1) << BITS
}

/// Returns the bucket of a value; below 2^(`BITS` + 1), the bucket number equals the value.
#[inline]
#[must_use]
pub const fn bucket_of<const BITS: u32>(value: u64) -> usize {
    // `value >> shift` lies in 2^BITS..2^(BITS + 1), so bit BITS of the result adds one octave.
    let shift = (u64::BITS - 1 - (value | (1 << BITS)).leading_zeros()) - BITS;
    let bucket = ((shift as u64) << BITS) as usize + (value >> shift) as usize;
    debug_assert!(lower_bound::<BITS>(bucket) <= value);
    bucket
}

/// Returns the lowest value of a bucket.
#[must_use]
pub const fn lower_bound<const BITS: u32>(bucket: usize) -> u64 {
    debug_assert!(bucket < buckets::<BITS>());
    let shift = (bucket as u64 >> BITS).saturating_sub(1);
    (bucket as u64 - (shift << BITS)) << shift
}

/// Returns the highest value of a bucket.
#[must_use]
pub const fn upper_bound<const BITS: u32>(bucket: usize) -> u64 {
    let shift = (bucket as u64 >> BITS).saturating_sub(1);
    lower_bound::<BITS>(bucket) + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<const BITS: u32>() {
        assert_eq!(bucket_of::<BITS>(u64::MAX), buckets::<BITS>() - 1);
        assert_eq!(upper_bound::<BITS>(buckets::<BITS>() - 1), u64::MAX);
        for value in (0..5000).chain([u64::MAX / 3, 1 << 63, (1 << 40) - 1]) {
            let bucket = bucket_of::<BITS>(value);
            let (lower, upper) = (lower_bound::<BITS>(bucket), upper_bound::<BITS>(bucket));
            assert!((lower..=upper).contains(&value), "{value} in bucket {bucket}");
            assert!(upper - lower <= lower >> BITS, "{value} in bucket {bucket}");
        }
    }

    #[test]
    fn buckets_hold_the_values_between_their_bounds() {
        check::<4>();
        check::<6>();
        assert_eq!([31, 32, 33, 34].map(bucket_of::<4>), [31, 32, 32, 33]);
        assert_eq!(upper_bound::<4>(32), 33);
    }
}
