//! File format of saved device states: named sections in chunks, each packed and checksummed.
//!
//! ```text
//! "WCSTATE6"                                 8 bytes; the digit is the version
//! section*: name length u16, name, raw length u64, chunk*
//! chunk:    packing u8, packed length u32, crc32 u32, packed
//! end:      name length 0
//! ```
//!
//! Small components of a state are encoded as fields (`fields.rs`) in one section. Each large array
//! has its own section, which is faster and smaller to pack than encoded elements.
//!
//! All integers are little endian. Every chunk holds 4 MiB of its section, except for the last,
//! which holds the remainder. The checksum of a chunk also covers the section name and length, the
//! chunk number, the packing and the packed length. Chunking makes memory use independent of the
//! section size, and the checksums detect any damage. `pack.rs` implements the packing of chunks.
//! This module does not interpret the section contents.

mod pack;

use std::io::{self, Read, Write};

use thiserror::Error;

use crate::fields::{Impossible, Saved, from_bytes, to_bytes};
use pack::{Packing, pack_bytes, pack_numbers, unpack_bytes, unpack_numbers};

const MAGIC: &[u8; 8] = b"WCSTATE6";
const CHUNK_BYTES: usize = 4 << 20;
const CHUNK_NUMBERS: usize = CHUNK_BYTES / 4;

/// Error while reading a saved state.
#[derive(Debug, Error)]
pub enum CodecError {
    /// The input does not start with the magic bytes `WCSTATE`.
    #[error("not a writecliff device state (the file does not start with WCSTATE)")]
    NotAState,
    /// Version digit of a format that this program does not support.
    #[error("the device state has version {0}, but this program reads version 6: prepare it again")]
    OtherVersion(char),
    /// Name of a section that fails its checksum or is truncated.
    #[error("device state is damaged: section '{0}' fails its checksum")]
    Damaged(String),
    /// Name of a section whose fields decode to an invalid state.
    #[error("device state is damaged: section '{0}' contains invalid values")]
    Impossible(String),
    /// Section names in the wrong order: that which the reader expects, and that in the input.
    #[error("device state has section '{actual}' where '{expected}' is expected")]
    #[allow(missing_docs, reason = "the variant defines both")]
    Unexpected { expected: String, actual: String },
    /// Section name, its raw length, and the length that the drive's configuration implies.
    #[error("device state section '{0}' has {1} bytes, expected {2}")]
    Length(String, u64, u64),
    /// Error of the underlying reader or writer.
    #[error("device state: {0}")]
    Io(#[from] io::Error),
}

/// Returns the input of a section's chunk checksums that covers the section's name and length.
fn section_hash(name: &str, raw_length: u64) -> crc32fast::Hasher {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(name.as_bytes());
    hasher.update(&raw_length.to_le_bytes());
    hasher
}

fn chunk_crc(section: &crc32fast::Hasher, number: u64, header: [u8; 5], packed: &[u8]) -> u32 {
    let mut hasher = section.clone();
    hasher.update(&number.to_le_bytes());
    hasher.update(&header);
    hasher.update(packed);
    hasher.finalize()
}

fn chunk_header(packing: Packing, packed_length: usize) -> [u8; 5] {
    let [a, b, c, d] = (packed_length as u32).to_le_bytes();
    [packing as u8, a, b, c, d]
}

/// Writer of sections in order; `finish` writes the end marker.
pub struct StateWriter<W: Write> {
    out: W,
}

impl<W: Write> StateWriter<W> {
    /// Writes the magic bytes.
    pub fn new(mut out: W) -> Result<Self, CodecError> {
        out.write_all(MAGIC)?;
        Ok(Self { out })
    }

    /// Writes a section of raw bytes.
    pub fn bytes(&mut self, name: &str, raw: &[u8]) -> Result<(), CodecError> {
        let hash = self.begin(name, raw.len() as u64)?;
        for (number, chunk) in raw.chunks(CHUNK_BYTES).enumerate() {
            self.chunk(&hash, number as u64, Packing::Bytes, &pack_bytes(chunk))?;
        }
        Ok(())
    }

    /// Writes an array of 32-bit numbers or IDs.
    pub fn u32s<T: Copy + Into<u32>>(
        &mut self,
        name: &str,
        values: &[T],
    ) -> Result<(), CodecError> {
        let hash = self.begin(name, values.len() as u64 * 4)?;
        let mut numbers = Vec::new();
        for (number, chunk) in values.chunks(CHUNK_NUMBERS).enumerate() {
            numbers.clear();
            numbers.extend(chunk.iter().map(|&value| value.into()));
            let (packing, packed) = pack_numbers(&numbers);
            self.chunk(&hash, number as u64, packing, &packed)?;
        }
        Ok(())
    }

    /// Writes the fields of `state`.
    pub fn fields(&mut self, name: &str, state: &impl Saved) -> Result<(), CodecError> {
        self.bytes(name, &to_bytes(state))
    }

    /// Writes an array of 64-bit numbers as raw little-endian bytes.
    pub fn u64s(&mut self, name: &str, values: &[u64]) -> Result<(), CodecError> {
        let mut raw = Vec::with_capacity(values.len() * 8);
        for value in values {
            raw.extend_from_slice(&value.to_le_bytes());
        }
        self.bytes(name, &raw)
    }

    fn begin(&mut self, name: &str, raw_length: u64) -> Result<crc32fast::Hasher, CodecError> {
        // An empty name is the end marker.
        assert!((1..=usize::from(u16::MAX)).contains(&name.len()), "section '{name}'");
        self.out.write_all(&(name.len() as u16).to_le_bytes())?;
        self.out.write_all(name.as_bytes())?;
        self.out.write_all(&raw_length.to_le_bytes())?;
        Ok(section_hash(name, raw_length))
    }

    fn chunk(
        &mut self,
        section: &crc32fast::Hasher,
        number: u64,
        packing: Packing,
        packed: &[u8],
    ) -> Result<(), CodecError> {
        assert!(packed.len() <= 2 * CHUNK_BYTES, "the reader rejects larger chunks");
        let header = chunk_header(packing, packed.len());
        self.out.write_all(&header)?;
        self.out.write_all(&chunk_crc(section, number, header, packed).to_le_bytes())?;
        self.out.write_all(packed)?;
        Ok(())
    }

    /// Writes the end marker, flushes and returns the output.
    pub fn finish(mut self) -> Result<W, CodecError> {
        self.out.write_all(&0_u16.to_le_bytes())?;
        self.out.flush()?;
        Ok(self.out)
    }
}

/// Reader of sections in the order in which they were written; any other order is an error.
pub struct StateReader<R: Read> {
    input: R,
}

struct Section {
    name: String,
    hash: crc32fast::Hasher,
    raw_length: u64,
    chunks_read: u64,
}

impl Section {
    fn damaged(&self) -> CodecError {
        CodecError::Damaged(self.name.clone())
    }

    /// Returns the raw length of the next chunk in bytes; 0 at the end of the section.
    fn next_length(&self) -> usize {
        let left = self.raw_length.saturating_sub(self.chunks_read * CHUNK_BYTES as u64);
        left.min(CHUNK_BYTES as u64) as usize
    }
}

impl<R: Read> StateReader<R> {
    /// Reads and checks the magic bytes.
    pub fn new(mut input: R) -> Result<Self, CodecError> {
        let mut magic = [0; 8];
        input.read_exact(&mut magic).map_err(|_| CodecError::NotAState)?;
        match &magic {
            MAGIC => Ok(Self { input }),
            [b'W', b'C', b'S', b'T', b'A', b'T', b'E', version] => {
                Err(CodecError::OtherVersion(char::from(*version)))
            }
            _ => Err(CodecError::NotAState),
        }
    }

    /// Reads a section of raw bytes of any length.
    pub fn bytes(&mut self, name: &str) -> Result<Vec<u8>, CodecError> {
        let mut section = self.begin(name)?;
        let mut raw = Vec::new();
        while section.next_length() > 0 {
            let length = section.next_length();
            let (packing, packed) = self.chunk(&mut section)?;
            let chunk = match packing {
                Packing::Bytes => unpack_bytes(&packed, length),
                Packing::Deltas | Packing::Bits => None,
            };
            raw.extend_from_slice(&chunk.ok_or_else(|| section.damaged())?);
        }
        Ok(raw)
    }

    /// Reads an array of exactly `count` numbers.
    pub fn u32s(&mut self, name: &str, count: usize) -> Result<Vec<u32>, CodecError> {
        let mut values = Vec::new();
        self.u32s_each(name, count, |_, chunk| {
            values.extend_from_slice(chunk);
            Ok(())
        })?;
        Ok(values)
    }

    /// Reads an array in pieces; passes each piece with the index of its first number.
    pub fn u32s_each(
        &mut self,
        name: &str,
        count: usize,
        mut take: impl FnMut(usize, &[u32]) -> Result<(), CodecError>,
    ) -> Result<(), CodecError> {
        let mut section = self.begin(name)?;
        check_length(name, section.raw_length, count, 4)?;
        let (mut first, mut numbers) = (0, Vec::new());
        while section.next_length() > 0 {
            let length = section.next_length() / 4;
            let (packing, packed) = self.chunk(&mut section)?;
            unpack_numbers(packing, &packed, length, &mut numbers)
                .ok_or_else(|| section.damaged())?;
            debug_assert_eq!(numbers.len(), length);
            take(first, &numbers)?;
            first += length;
        }
        assert_eq!(first, count, "chunks of the section '{name}'");
        Ok(())
    }

    /// Restores `state` from its fields.
    pub fn fields(&mut self, name: &str, state: &mut impl Saved) -> Result<(), CodecError> {
        let restored = from_bytes(&self.bytes(name)?, state);
        restored.map_err(|Impossible| CodecError::Impossible(name.to_owned()))
    }

    /// Reads an array of exactly `count` 64-bit numbers.
    pub fn u64s(&mut self, name: &str, count: usize) -> Result<Vec<u64>, CodecError> {
        let raw = self.bytes(name)?;
        check_length(name, raw.len() as u64, count, 8)?;
        Ok(raw.chunks_exact(8).map(|c| u64::from_le_bytes(c.try_into().unwrap())).collect())
    }

    /// Reads the end marker of the state.
    pub fn end(mut self) -> Result<(), CodecError> {
        match u16::from_le_bytes(self.array()?) {
            0 => Ok(()),
            _ => Err(CodecError::Damaged("end".to_owned())),
        }
    }

    fn begin(&mut self, name: &str) -> Result<Section, CodecError> {
        let length = u16::from_le_bytes(self.array()?) as usize;
        let mut actual = vec![0; length];
        self.input.read_exact(&mut actual)?;
        let actual = String::from_utf8_lossy(&actual).into_owned();
        if actual != name {
            return Err(CodecError::Unexpected { expected: name.to_owned(), actual });
        }
        let raw_length = u64::from_le_bytes(self.array()?);
        let hash = section_hash(name, raw_length);
        Ok(Section { name: actual, hash, raw_length, chunks_read: 0 })
    }

    fn chunk(&mut self, section: &mut Section) -> Result<(Packing, Vec<u8>), CodecError> {
        let header: [u8; 5] = self.array()?;
        let crc = u32::from_le_bytes(self.array()?);
        let [packing, length @ ..] = header;
        let length = u32::from_le_bytes(length) as usize;
        // Packing grows no chunk beyond this limit, which rejects a damaged length of gigabytes.
        let packing = Packing::from_u8(packing).filter(|_| length <= 2 * CHUNK_BYTES);
        let packing = packing.ok_or_else(|| section.damaged())?;
        let mut packed = vec![0; length];
        self.input.read_exact(&mut packed)?;
        if chunk_crc(&section.hash, section.chunks_read, header, &packed) != crc {
            return Err(section.damaged());
        }
        section.chunks_read += 1;
        Ok((packing, packed))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], CodecError> {
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

fn check_length(name: &str, raw: u64, count: usize, width: u64) -> Result<(), CodecError> {
    let expected = count as u64 * width;
    if raw == expected {
        return Ok(());
    }
    Err(CodecError::Length(name.to_owned(), raw, expected))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prng;

    fn sample() -> Vec<u8> {
        let mut writer = StateWriter::new(Vec::new()).unwrap();
        writer.u32s("map", &[1, 2, u32::MAX]).unwrap();
        writer.u64s("counters", &[7, u64::MAX]).unwrap();
        writer.finish().unwrap()
    }

    #[test]
    fn written_sections_read_back() {
        let data = sample();
        let mut reader = StateReader::new(&data[..]).unwrap();
        assert_eq!(reader.u32s("map", 3).unwrap(), [1, 2, u32::MAX]);
        assert_eq!(reader.u64s("counters", 2).unwrap(), [7, u64::MAX]);
    }

    #[test]
    fn states_of_other_versions_are_refused_by_their_number() {
        let mut data = sample();
        data[7] = b'5';
        assert!(matches!(StateReader::new(&data[..]), Err(CodecError::OtherVersion('5'))));
        data[0] = b'X';
        assert!(matches!(StateReader::new(&data[..]), Err(CodecError::NotAState)));
    }

    #[test]
    fn sections_of_many_chunks_read_back_in_pieces() {
        let mut random = Prng::new(1);
        let count = 2 * CHUNK_NUMBERS + 12_345;
        let values: Vec<u32> = (0..count).map(|_| random.below(1 << 29) as u32).collect();
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let mut writer = StateWriter::new(Vec::new()).unwrap();
        writer.u32s("map", &values).unwrap();
        writer.bytes("bytes", &bytes).unwrap();
        writer.u32s::<u32>("none", &[]).unwrap();
        let data = writer.finish().unwrap();
        let mut reader = StateReader::new(&data[..]).unwrap();
        let mut next = 0;
        let check = |first: usize, chunk: &[u32]| {
            assert_eq!(first, next);
            next += chunk.len();
            assert_eq!(chunk, &values[first..next]);
            Ok(())
        };
        reader.u32s_each("map", count, check).unwrap();
        assert_eq!(next, count);
        assert_eq!(reader.bytes("bytes").unwrap(), bytes);
        assert_eq!(reader.u32s("none", 0).unwrap(), [0; 0]);
    }

    #[test]
    fn every_flipped_byte_is_detected() {
        let good = sample();
        for i in 0..good.len() - 2 {
            let mut bad = good.clone();
            bad[i] ^= 0x40;
            let outcome = StateReader::new(&bad[..])
                .and_then(|mut r| r.u32s("map", 3).and_then(|_| r.u64s("counters", 2)));
            assert!(outcome.is_err(), "byte {i} flipped unnoticed");
        }
    }

    #[test]
    fn swapped_chunks_are_detected() {
        let mut writer = StateWriter::new(Vec::new()).unwrap();
        let mut random = Prng::new(1);
        let raw: Vec<u32> = (0..2 * CHUNK_NUMBERS).map(|_| random.next_u64() as u32).collect();
        writer.u32s("map", &raw).unwrap();
        let mut data = writer.finish().unwrap();
        // The encoded file contains the magic bytes, the name length, the name, the raw length and
        // two chunks of equal size.
        let begin = 8 + 2 + 3 + 8;
        let size = (data.len() - begin - 2) / 2;
        let (first, second) = data[begin..begin + 2 * size].split_at_mut(size);
        assert_eq!(first[..5], second[..5], "both chunks have the same header");
        first.swap_with_slice(second);
        let error = StateReader::new(&data[..]).unwrap().u32s("map", raw.len()).unwrap_err();
        assert!(matches!(error, CodecError::Damaged(_)), "{error}");
    }

    #[test]
    fn a_wrong_section_is_named() {
        let data = sample();
        let error = StateReader::new(&data[..]).unwrap().u32s("valid", 3).unwrap_err();
        assert!(error.to_string().contains("'map' where 'valid'"), "{error}");
    }
}
