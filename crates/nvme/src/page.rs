//! NVMe data structures as bytes, with little-endian fields at given offsets.

use writecliff_base::Nanos;

/// A data structure of a fixed size, initially zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page(Vec<u8>);

macro_rules! puts {
    ($($name:ident($type:ty);)*) => {$(
        pub(crate) fn $name(&mut self, at: usize, value: $type) {
            self.put(at, &value.to_le_bytes());
        }
    )*};
}

impl Page {
    pub(crate) fn new(bytes: usize) -> Self {
        Self(vec![0; bytes])
    }

    puts! { u8(u8); u16(u16); u32(u32); u64(u64); u128(u128); }

    pub(crate) fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Writes ASCII text, truncated or padded with spaces to `width`; other characters become `?`.
    pub(crate) fn text(&mut self, at: usize, width: usize, text: &str) {
        let visible = |c: char| if matches!(c, ' '..='~') { c as u8 } else { b'?' };
        let padded = text.chars().map(visible).chain(std::iter::repeat(b' '));
        let bytes: Vec<u8> = padded.take(width).collect();
        self.put(at, &bytes);
    }

    /// Writes a zero-terminated text into a field of `width` bytes.
    pub(crate) fn name(&mut self, at: usize, width: usize, text: &str) {
        let bytes = text.as_bytes();
        self.put(at, &bytes[..bytes.len().min(width - 1)]);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Returns `bytes` bytes, starting at `offset`, with zeros beyond the end.
    pub(crate) fn part(&self, offset: usize, bytes: usize) -> Vec<u8> {
        let start = offset.min(self.0.len());
        let end = offset.saturating_add(bytes).min(self.0.len());
        let mut part = self.0[start..end].to_vec();
        part.resize(bytes, 0);
        part
    }
}

/// Reads a little-endian number at `at`; returns `None` beyond the end.
pub(crate) fn read<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// Converts a time to whole milliseconds, the timestamp unit of the standard.
pub(crate) fn milliseconds(time: Nanos) -> u64 {
    time.0 / 1_000_000
}
