//! Compressed data, detected by their magic numbers, with a limit on the unpacked size.
//!
//! Traces have compression ratios of 5 to 50. A small file that unpacks to terabytes would occupy a
//! reader for hours, so reading fails beyond `RATIO_MAX` times the bytes read.

use std::io::{Cursor, Error, ErrorKind, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) type Bytes = Box<dyn Read + Send>;

const HEAD_BYTES: usize = 8;

/// Maximum ratio of unpacked to packed bytes.
pub const RATIO_MAX: u64 = 200;
/// Unpacked size up to which the ratio is not limited.
pub const UNPACKED_FREE_BYTES: u64 = 64 << 20;

/// Number of bytes read from a file; clones share the count.
#[derive(Clone, Default)]
pub(super) struct BytesRead(Arc<AtomicU64>);

impl BytesRead {
    /// Returns `bytes` with their count added to this counter.
    pub(super) fn of(&self, bytes: impl Read + Send + 'static) -> Bytes {
        Box::new(Counted { bytes, count: self.clone() })
    }

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

/// Unpacked bytes, limited in proportion to the file size.
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
            let text = format!("unpacks to more than {RATIO_MAX} times its size");
            return Err(Error::new(ErrorKind::Unsupported, text));
        }
        Ok(read)
    }
}

/// Returns the decompressed bytes. Returns an error for unsupported compression types. `file`
/// counts the bytes read from the file.
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
        let text = format!("is packed with {kind}, which is not supported: unpack it first");
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
