//! Members of a tar archive, in order and without seeking: it may be compressed and of any size.

use std::io::{Cursor, Error, ErrorKind, Read};
use std::sync::{Arc, Mutex, PoisonError};

use super::packed::Bytes;

const RECORD_BYTES: usize = 512;
const NAME_BYTES_MAX: u64 = 1 << 16;

/// Returns `true` if the bytes are a tar archive, together with all bytes still unread.
pub(super) fn is_tar(mut bytes: Bytes) -> std::io::Result<(Bytes, bool)> {
    let mut head = Vec::with_capacity(RECORD_BYTES);
    bytes.by_ref().take(RECORD_BYTES as u64).read_to_end(&mut head)?;
    let tar = head.get(257..262).is_some_and(|magic| magic == b"ustar");
    Ok((Box::new(Cursor::new(head).chain(bytes)), tar))
}

struct State {
    bytes: Bytes,
    /// Unread bytes of the current member, and the padding of its last block.
    left: u64,
    padding: u64,
}

/// An archive; clones share it.
#[derive(Clone)]
pub(super) struct Tar(Arc<Mutex<State>>);

pub(super) struct MemberBytes(pub(super) Tar);

impl Tar {
    pub(super) fn new(bytes: Bytes) -> Self {
        Self(Arc::new(Mutex::new(State { bytes, left: 0, padding: 0 })))
    }

    /// Advances to the next regular file and returns its name; `None` at the end.
    pub(super) fn next(&mut self) -> std::io::Result<Option<String>> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut long_name = None;
        loop {
            state.pass()?;
            let Some(header) = state.header()? else { return Ok(None) };
            match header.kind {
                b'0' | 0 | b'7' => return Ok(Some(long_name.unwrap_or(header.name))),
                kind @ (b'L' | b'x') if state.left <= NAME_BYTES_MAX => {
                    let mut data = vec![0; state.left as usize];
                    state.bytes.read_exact(&mut data)?;
                    state.left = 0; // Only padding remains.
                    let name = if kind == b'L' { Some(text(&data)) } else { path_of(&data) };
                    long_name = name.or(long_name);
                }
                _ => {}
            }
        }
    }
}

/// Returns the path in the fields of a header of POSIX 2001: `27 path=FOLDER/NAME\n`.
fn path_of(fields: &[u8]) -> Option<String> {
    let fields = String::from_utf8_lossy(fields);
    let path = fields.lines().find_map(|line| line.split_once(" path=").map(|(_, path)| path));
    path.map(str::to_owned)
}

struct Header {
    name: String,
    kind: u8,
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Parses a size in octal digits, or as a binary number whose first bit is set.
fn size_of(field: &[u8]) -> Option<u64> {
    if field[0] & 0x80 != 0 {
        return Some(field[4..].iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte)));
    }
    let digits = text(field);
    let digits = digits.trim();
    if digits.is_empty() { Some(0) } else { u64::from_str_radix(digits, 8).ok() }
}

impl State {
    /// Skips the remainder of a member.
    fn pass(&mut self) -> std::io::Result<()> {
        let rest = self.left + self.padding;
        let passed = std::io::copy(&mut self.bytes.by_ref().take(rest), &mut std::io::sink())?;
        (self.left, self.padding) = (0, 0);
        if passed == rest { Ok(()) } else { Err(ErrorKind::UnexpectedEof.into()) }
    }

    fn header(&mut self) -> std::io::Result<Option<Header>> {
        let mut block = Vec::with_capacity(RECORD_BYTES);
        self.bytes.by_ref().take(RECORD_BYTES as u64).read_to_end(&mut block)?;
        if block.iter().all(|&byte| byte == 0) {
            return Ok(None);
        }
        if block.len() < RECORD_BYTES {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let damaged = || Error::new(ErrorKind::InvalidData, "the archive is damaged");
        let is_ustar = block[257..262] == *b"ustar";
        self.left = size_of(&block[124..136]).filter(|_| is_ustar).ok_or_else(damaged)?;
        self.left = self.left.min(1 << 62);
        self.padding = self.left.next_multiple_of(RECORD_BYTES as u64) - self.left;
        let (prefix, name) = (text(&block[345..500]), text(&block[..100]));
        let old = block[263..265] != *b"00";
        let name = if prefix.is_empty() || old { name } else { format!("{prefix}/{name}") };
        Ok(Some(Header { name, kind: block[156] }))
    }
}

impl Read for MemberBytes {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let mut state = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        let most = (into.len() as u64).min(state.left) as usize;
        let read = state.bytes.read(&mut into[..most])?;
        if read == 0 && most > 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        state.left -= read as u64;
        Ok(read)
    }
}
