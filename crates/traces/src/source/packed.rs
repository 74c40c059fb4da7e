//! Compressed bytes, recognised by how they begin.

use std::io::{Cursor, Error, ErrorKind, Read};

pub(crate) type Bytes = Box<dyn Read + Send>;

const HEAD_BYTES: usize = 8;

/// The bytes as they were before they were compressed. Raises for kinds that are not known here.
pub(super) fn unpacked(mut bytes: Bytes) -> std::io::Result<Bytes> {
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
        [0x1f, 0x8b, ..] => Box::new(flate2::read::MultiGzDecoder::new(whole)),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Box::new(zstd::stream::read::Decoder::new(whole)?),
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => Box::new(bzip2::read::MultiBzDecoder::new(whole)),
        _ => Box::new(whole),
    })
}
