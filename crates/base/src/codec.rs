//! The container of saved device states: named sections, each compressed and checked.
//!
//! ```text
//! "WCSTATE1"                                 8 bytes
//! section*: name length u16, name, raw length u64, packed length u64,
//!           crc32 u32 of the lengths and the packed bytes, packed
//! end:      name length 0
//! ```
//! All integers are little endian. A section is one dense array or one small record; zstd level 1
//! packs a random mapping table at about the speed of a disk. Nothing here knows what is stored.

use std::io::{self, Read, Write};

use thiserror::Error;

const MAGIC: &[u8; 8] = b"WCSTATE1";
/// Level 1: states are written once and read a few times; higher levels gain 3 % and cost 5 times.
const LEVEL: i32 = 1;

/// Why a saved state cannot be read.
#[derive(Debug, Error)]
pub enum CodecError {
    #[error("not a writecliff device state (it does not begin with WCSTATE1)")]
    NotAState,
    #[error("device state is damaged: section '{0}' fails its checksum")]
    Damaged(String),
    #[error("device state has section '{found}' where '{expected}' should stand")]
    Unexpected { expected: String, found: String },
    #[error("device state section '{0}' has {1} bytes, expected {2}")]
    Length(String, u64, u64),
    #[error("device state: {0}")]
    Io(#[from] io::Error),
}

/// Writes sections in order; `finish` writes the end mark.
pub struct StateWriter<W: Write> {
    out: W,
}

impl<W: Write> StateWriter<W> {
    pub fn new(mut out: W) -> Result<Self, CodecError> {
        out.write_all(MAGIC)?;
        Ok(Self { out })
    }

    pub fn bytes(&mut self, name: &str, raw: &[u8]) -> Result<(), CodecError> {
        let packed = zstd::bulk::compress(raw, LEVEL)?;
        self.out.write_all(&(name.len() as u16).to_le_bytes())?;
        self.out.write_all(name.as_bytes())?;
        self.out.write_all(&(raw.len() as u64).to_le_bytes())?;
        self.out.write_all(&(packed.len() as u64).to_le_bytes())?;
        let crc = checksum(raw.len() as u64, &packed);
        self.out.write_all(&crc.to_le_bytes())?;
        self.out.write_all(&packed)?;
        Ok(())
    }

    pub fn u32s(&mut self, name: &str, values: &[u32]) -> Result<(), CodecError> {
        let mut raw = Vec::with_capacity(values.len() * 4);
        values.iter().for_each(|v| raw.extend_from_slice(&v.to_le_bytes()));
        self.bytes(name, &raw)
    }

    pub fn u64s(&mut self, name: &str, values: &[u64]) -> Result<(), CodecError> {
        let mut raw = Vec::with_capacity(values.len() * 8);
        values.iter().for_each(|v| raw.extend_from_slice(&v.to_le_bytes()));
        self.bytes(name, &raw)
    }

    pub fn finish(mut self) -> Result<W, CodecError> {
        self.out.write_all(&0_u16.to_le_bytes())?;
        self.out.flush()?;
        Ok(self.out)
    }
}

fn checksum(raw_length: u64, packed: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&raw_length.to_le_bytes());
    hasher.update(&(packed.len() as u64).to_le_bytes());
    hasher.update(packed);
    hasher.finalize()
}

/// Reads sections in the order in which they were written; anything else is an error.
pub struct StateReader<R: Read> {
    input: R,
}

impl<R: Read> StateReader<R> {
    pub fn new(mut input: R) -> Result<Self, CodecError> {
        let mut magic = [0; 8];
        input.read_exact(&mut magic).map_err(|_| CodecError::NotAState)?;
        if &magic != MAGIC {
            return Err(CodecError::NotAState);
        }
        Ok(Self { input })
    }

    pub fn bytes(&mut self, name: &str) -> Result<Vec<u8>, CodecError> {
        let length = u16::from_le_bytes(self.array()?) as usize;
        let mut found = vec![0; length];
        self.input.read_exact(&mut found)?;
        let found = String::from_utf8_lossy(&found).into_owned();
        if found != name {
            return Err(CodecError::Unexpected { expected: name.to_owned(), found });
        }
        let raw_length = u64::from_le_bytes(self.array()?);
        let packed_length = u64::from_le_bytes(self.array()?);
        let crc = u32::from_le_bytes(self.array()?);
        let mut packed = Vec::new();
        (&mut self.input).take(packed_length).read_to_end(&mut packed)?;
        if packed.len() as u64 != packed_length || checksum(raw_length, &packed) != crc {
            return Err(CodecError::Damaged(name.to_owned()));
        }
        let raw = zstd::bulk::decompress(&packed, raw_length as usize)?;
        if raw.len() as u64 != raw_length {
            return Err(CodecError::Length(name.to_owned(), raw.len() as u64, raw_length));
        }
        Ok(raw)
    }

    pub fn u32s(&mut self, name: &str, count: usize) -> Result<Vec<u32>, CodecError> {
        let raw = self.sized(name, count, 4)?;
        Ok(raw.chunks_exact(4).map(|c| u32::from_le_bytes(c.try_into().unwrap())).collect())
    }

    pub fn u64s(&mut self, name: &str, count: usize) -> Result<Vec<u64>, CodecError> {
        let raw = self.sized(name, count, 8)?;
        Ok(raw.chunks_exact(8).map(|c| u64::from_le_bytes(c.try_into().unwrap())).collect())
    }

    fn sized(&mut self, name: &str, count: usize, width: usize) -> Result<Vec<u8>, CodecError> {
        let raw = self.bytes(name)?;
        if raw.len() != count * width {
            let expected = (count * width) as u64;
            return Err(CodecError::Length(name.to_owned(), raw.len() as u64, expected));
        }
        Ok(raw)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], CodecError> {
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let mut writer = StateWriter::new(Vec::new()).unwrap();
        writer.u32s("map", &[1, 2, u32::MAX]).unwrap();
        writer.u64s("counters", &[7, u64::MAX]).unwrap();
        writer.finish().unwrap()
    }

    #[test]
    fn what_is_written_reads_back() {
        let data = sample();
        let mut reader = StateReader::new(&data[..]).unwrap();
        assert_eq!(reader.u32s("map", 3).unwrap(), [1, 2, u32::MAX]);
        assert_eq!(reader.u64s("counters", 2).unwrap(), [7, u64::MAX]);
    }

    #[test]
    fn every_flipped_byte_is_noticed() {
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
    fn a_wrong_section_is_named() {
        let data = sample();
        let error = StateReader::new(&data[..]).unwrap().u32s("valid", 3).unwrap_err();
        assert!(error.to_string().contains("'map' where 'valid'"), "{error}");
    }
}
