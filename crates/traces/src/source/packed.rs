//! Compressed bytes, recognised by how they begin, and bounded by the size of their file.
//!
//! Traces pack 5 to 50 to 1. A small file that stands for gigabytes would keep a reader busy for
//! hours, so it is refused once it has given more than `RATIO_MAX` bytes for each that was read.

use std::io::{Cursor, Error, ErrorKind, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) type Bytes = Box<dyn Read + Send>;

const HEAD_BYTES: usize = 8;

/// Unpacked bytes for each byte of the file.
pub const RATIO_MAX: u64 = 200;
/// Size to which any file may unpack.
pub const UNPACKED_FREE_BYTES: u64 = 64 << 20;

/// Number of bytes read from a file; clones share the count.
#[derive(Clone, Default)]
pub(super) struct BytesRead(Arc<AtomicU64>);

impl BytesRead {
    /// `bytes`, counted.
    pub(super) fn of(&self, bytes: impl Read + Send + 'static) -> Bytes {
        Box::new(Counted { bytes, count: self.clone() })
    }

    /// Returns the count so far.
    pub(super) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn bounded(&self, bytes: impl Read + Send + 'static) -> Bytes {
        Box::new(Bounded { bytes, given: 0, file: self.clone() })
    }
}

struct Counted<R> {
    bytes: R,
    count: BytesRead,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let read = self.bytes.read(into)?;
        self.count.0.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// Unpacked bytes, until they are too many for their file.
struct Bounded<R> {
    bytes: R,
    given: u64,
    file: BytesRead,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let read = self.bytes.read(into)?;
        self.given += read as u64;
        let most = RATIO_MAX.saturating_mul(self.file.count());
        if self.given > most.max(UNPACKED_FREE_BYTES) {
            let text = format!("unpacks to more than {RATIO_MAX} bytes for each of the file");
            return Err(Error::new(ErrorKind::Unsupported, text));
        }
        Ok(read)
    }
}

/// Returns the bytes as they were before they were compressed. Raises for kinds that are not known
/// here. `file` counts those of the file that they are from.
pub(super) fn unpacked(mut bytes: Bytes, file: &BytesRead) -> std::io::Result<Bytes> {
    let mut head = Vec::with_capacity(HEAD_BYTES);
    bytes.by_ref().take(HEAD_BYTES as u64).read_to_end(&mut head)?;
    let unknown = match head.as_slice() {
        [0xfd, b'7', b'z', b'X', b'Z', ..] => Some("xz"),
        [b'7', b'z', 0xbc, 0xaf, ..] => Some("7z"),
        [b'P', b'K', 3, 4, ..] => Some("zip"),
        _ => None,
    };
    if let Some(kind) = unknown {
        let text = format!("is packed with {kind}, which is not read here: unpack it first");
        return Err(Error::new(ErrorKind::Unsupported, text));
    }
    let whole = Cursor::new(head.clone()).chain(bytes);
    Ok(match head.as_slice() {
        [0x1f, 0x8b, ..] => file.bounded(flate2::read::MultiGzDecoder::new(whole)),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => file.bounded(zstd::stream::read::Decoder::new(whole)?),
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => {
            file.bounded(bzip2::read::MultiBzDecoder::new(whole))
        }
        _ => Box::new(whole),
    })
}
