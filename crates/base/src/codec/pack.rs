//! Packing of state chunks. Byte chunks are compressed with LZ4. Number chunks are stored as
//! LZ4-compressed differences if the differences repeat, as in a sequentially written map, or else
//! with as many bits per number as the largest needs. A randomly written map is incompressible
//! except for its leading zeros, so a general compressor would only waste time.

/// Length of the sampled runs, spread over the chunk, that decide which packing is smaller.
const SAMPLE_RUN: usize = 1024;
const SAMPLE_RUNS: usize = 16;

/// Packing of a chunk, as stored in the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Packing {
    /// LZ4.
    Bytes = 0,
    /// Differences between successive numbers, zigzag-encoded and compressed with LZ4.
    Deltas = 1,
    /// Each number plus 1 (modulo 2^32: "none" is 0) in as many bits as the first byte states.
    Bits = 2,
}

impl Packing {
    pub(super) fn from_u8(value: u8) -> Option<Self> {
        [Self::Bytes, Self::Deltas, Self::Bits].into_iter().find(|&packing| packing as u8 == value)
    }
}

pub(super) fn pack_bytes(raw: &[u8]) -> Vec<u8> {
    lz4_flex::block::compress(raw)
}

/// Unpacks exactly `length` bytes; `None` if the data are damaged.
pub(super) fn unpack_bytes(packed: &[u8], length: usize) -> Option<Vec<u8>> {
    lz4_flex::block::decompress(packed, length).ok().filter(|raw| raw.len() == length)
}

pub(super) fn pack_numbers(numbers: &[u32]) -> (Packing, Vec<u8>) {
    let all = numbers.iter().fold(0, |all, n| all | n.wrapping_add(1));
    let width = (u32::BITS - all.leading_zeros()).max(1);
    if deltas_pay(numbers, width) {
        return (Packing::Deltas, pack_bytes(&delta_bytes(numbers)));
    }
    (Packing::Bits, pack_bits(numbers, width))
}

fn zigzag_delta(from: u32, to: u32) -> u32 {
    let delta = to.wrapping_sub(from);
    delta << 1 ^ (delta.cast_signed() >> 31).cast_unsigned()
}

/// Stores the differences in byte planes (all first bytes, all second bytes, ...), where small
/// differences form long runs of zeros.
fn delta_bytes(numbers: &[u32]) -> Vec<u8> {
    let mut raw = vec![0; numbers.len() * 4];
    let mut previous = 0;
    for (i, &number) in numbers.iter().enumerate() {
        for (plane, byte) in zigzag_delta(previous, number).to_le_bytes().into_iter().enumerate() {
            raw[plane * numbers.len() + i] = byte;
        }
        previous = number;
    }
    raw
}

/// Returns `true` if the sampled differences take less than 3/4 of the space of plain bits.
fn deltas_pay(numbers: &[u32], width: u32) -> bool {
    let stride = (numbers.len() / SAMPLE_RUNS).max(SAMPLE_RUN);
    let mut sample = Vec::with_capacity(SAMPLE_RUN * SAMPLE_RUNS);
    for run in numbers.chunks(stride) {
        sample.extend_from_slice(&run[..run.len().min(SAMPLE_RUN)]);
    }
    let packed = pack_bytes(&delta_bytes(&sample)).len() as u64;
    4 * 8 * packed < 3 * u64::from(width) * sample.len() as u64
}

fn pack_bits(numbers: &[u32], width: u32) -> Vec<u8> {
    debug_assert!((1..=32).contains(&width), "numbers of {width} bits");
    let mut packed = Vec::with_capacity(numbers.len() * width as usize / 8 + 16);
    packed.push(width as u8);
    let (mut buffer, mut filled) = (0_u64, 0);
    for &number in numbers {
        buffer |= u64::from(number.wrapping_add(1)) << filled;
        filled += width;
        if filled >= 32 {
            packed.extend_from_slice(&(buffer as u32).to_le_bytes());
            buffer >>= 32;
            filled -= 32;
        }
    }
    packed.extend_from_slice(&(buffer as u32).to_le_bytes());
    let bits = numbers.len() as u64 * u64::from(width);
    debug_assert_eq!(packed.len() as u64, 1 + (bits / 32 + 1) * 4, "the reader needs all words");
    packed
}

/// Unpacks exactly `count` numbers into `numbers`; `None` if the data are damaged.
pub(super) fn unpack_numbers(
    packing: Packing,
    packed: &[u8],
    count: usize,
    numbers: &mut Vec<u32>,
) -> Option<()> {
    numbers.clear();
    match packing {
        Packing::Bytes => None,
        Packing::Deltas => {
            let raw = unpack_bytes(packed, count * 4)?;
            let (low, high) = raw.split_at(2 * count);
            let (planes, mut previous) = ([low.split_at(count), high.split_at(count)], 0_u32);
            let [(a, b), (c, d)] = planes;
            for (((&a, &b), &c), &d) in a.iter().zip(b).zip(c).zip(d) {
                let zigzag = u32::from_le_bytes([a, b, c, d]);
                previous = previous.wrapping_add(zigzag >> 1 ^ (zigzag & 1).wrapping_neg());
                numbers.push(previous);
            }
            Some(())
        }
        Packing::Bits => {
            let (&width, words) = packed.split_first()?;
            let width = u32::from(width);
            let needed = (count as u64 * u64::from(width) / 32 + 1) * 4;
            if !(1..=32).contains(&width) || words.len() as u64 != needed {
                return None;
            }
            unpack_bits(words, width, count, numbers);
            Some(())
        }
    }
}

fn unpack_bits(words: &[u8], width: u32, count: usize, numbers: &mut Vec<u32>) {
    debug_assert!((1..=32).contains(&width), "numbers of {width} bits");
    let mask = u32::MAX >> (32 - width);
    let mut words = words.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]]));
    let (mut buffer, mut filled) = (0_u64, 0);
    numbers.extend((0..count).map(|_| {
        if filled < width {
            buffer |= u64::from(words.next().unwrap_or(0)) << filled;
            filled += 32;
        }
        let number = buffer as u32 & mask;
        buffer >>= width;
        filled -= width;
        number.wrapping_sub(1)
    }));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Prng;

    fn round_trip(values: &[u32]) -> (Packing, usize) {
        let (packing, packed) = pack_numbers(values);
        let mut back = Vec::new();
        unpack_numbers(packing, &packed, values.len(), &mut back).unwrap();
        assert_eq!(back, values);
        (packing, packed.len())
    }

    #[test]
    fn ordered_numbers_are_packed_as_differences_and_random_ones_as_bits() {
        let ordered: Vec<u32> = (0..1 << 20).map(|n| n + 77).collect();
        let (packing, size) = round_trip(&ordered);
        assert!(packing == Packing::Deltas && size < 1 << 15, "{packing:?}, {size} bytes");
        let mut random = Prng::new(5);
        let mut chance: Vec<u32> = (0..1 << 20).map(|_| random.below(1 << 28) as u32).collect();
        chance[1000] = u32::MAX;
        let (packing, size) = round_trip(&chance);
        assert_eq!((packing, size), (Packing::Bits, (1 << 20) * 28 / 8 + 4 + 1));
    }

    proptest! {
        #[test]
        fn all_numbers_survive_in_all_widths(
            values in prop::collection::vec(any::<u32>(), 0..200), shift in 0_u32..32,
        ) {
            let values: Vec<u32> = values.into_iter().map(|v| v >> shift).collect();
            round_trip(&values);
            let with_none: Vec<u32> =
                values.iter().map(|&v| if v % 3 == 0 { u32::MAX } else { v }).collect();
            round_trip(&with_none);
            for width in 32 - shift..=32 {
                let all = values.iter().all(|v| v.wrapping_add(1) <= u32::MAX >> (32 - width));
                if all {
                    let mut back = Vec::new();
                    let packed = pack_bits(&values, width);
                    unpack_numbers(Packing::Bits, &packed, values.len(), &mut back).unwrap();
                    prop_assert_eq!(&back, &values);
                }
            }
        }
    }
}
