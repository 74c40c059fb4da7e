//! Journal of a served drive with a state file: a record of each request that changes the drive.
//!
//! The state file is written at the end of a session, so a killed server does not write it. Two
//! files next to the state file therefore contain all changes that the server has acknowledged:
//! `STATE.data`, a copy of the data (unless the data are already in a file; see
//! [`writecliff_contents::Contents::mirror_to`]), and `STATE.journal`. The next server restores the
//! state, replays the journal's requests without timing, and reads the data from the copy. Records
//! reach the kernel before replies are sent.
//!
//! ```text
//! "WCJRNL2\n"                    8 bytes
//! records                       length u8, and a `Record` in the format of `postcard`
//! ```
//!
//! The first record is the header; the last may be incomplete. A session's end removes the journal.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use writecliff_base::{Bytes, Nanos, StreamId};
use writecliff_host_interface::Operation;
use writecliff_nvme::ErrorEntry;

use crate::request::Request;
use crate::statistics::Life;

const MAGIC: &[u8; 8] = b"WCJRNL2\n";
const RECORD_BYTES_MAX: usize = 64;
const _: () = assert!(RECORD_BYTES_MAX <= u8::MAX as usize, "a record's length fits in a byte");
/// Wall time between records of the counters that no other record implies.
const LIFE_INTERVAL: Nanos = Nanos(1_000_000_000);

/// A change to the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Record {
    Header(Header),
    /// A write or trim.
    Change {
        operation: Operation,
        offset: u64,
        length: u64,
        stream: StreamId,
        is_zeros: bool,
    },
    Purge,
    Format(Bytes),
    /// A power loss, followed by a power-up.
    PowerUp,
    Life(Life),
    Error(ErrorEntry),
}

/// Session that the journal belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    /// Number of power-ups in the state file that precedes the records. Each session increments
    /// this number, so it identifies the state file.
    pub power_ups: u64,
    /// `true` if the journal has a copy of the data.
    pub has_data: bool,
}

impl Record {
    pub(crate) fn of(request: &Request) -> Option<Self> {
        let &Request { operation, offset, length, stream, is_zeros, .. } = request;
        matches!(operation, Operation::Write | Operation::Trim).then_some(Self::Change {
            operation,
            offset,
            length,
            stream,
            is_zeros,
        })
    }

    fn append_to(self, out: &mut Vec<u8>) {
        let mut buffer = [0; RECORD_BYTES_MAX];
        let fields = postcard::to_slice(&self, &mut buffer).expect("records are short");
        out.push(fields.len() as u8);
        out.extend_from_slice(fields);
    }

    /// Reads the next record and returns the record with its length in the file. Returns the error
    /// `UnexpectedEof` at the end, and `InvalidData` if the bytes are not a record.
    fn read(input: &mut impl Read) -> io::Result<(Self, u64)> {
        let mut length = [0];
        input.read_exact(&mut length)?;
        let mut fields = vec![0; length[0].into()];
        input.read_exact(&mut fields)?;
        match postcard::take_from_bytes(&fields) {
            Ok((record, [])) => Ok((record, 1 + fields.len() as u64)),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// An open journal that is locked against other processes.
pub(crate) struct Journal {
    file: File,
    path: PathBuf,
    /// Path of the data copy.
    pub data: PathBuf,
    records: Vec<u8>,
    /// `true` if records could not be written; no further change may then be acknowledged.
    pub has_failed: bool,
    /// Counters in the file, and the time when they were written.
    life: Life,
    life_at: Nanos,
}

/// Returns the path of a file next to a state file, with `suffix` appended.
pub(crate) fn beside(state: &Path, suffix: &str) -> PathBuf {
    let mut name = state.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

impl Journal {
    /// Opens the journal of a state file; creates an empty journal if none exists. Returns the
    /// error `ResourceBusy` if another server has the journal open.
    pub(crate) fn open(state: &Path) -> io::Result<Self> {
        let (path, data) = (beside(state, ".journal"), beside(state, ".data"));
        let options = &mut OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(&path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => return Err(io::ErrorKind::ResourceBusy.into()),
            locked => locked?,
        }
        // A server that stops removes its journal, which may be this file.
        let is_there = fs::metadata(&path).is_ok_and(|there| {
            file.metadata().is_ok_and(|ours| (ours.dev(), ours.ino()) == (there.dev(), there.ino()))
        });
        if !is_there {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        let (records, life, life_at) = (Vec::new(), Life::default(), Nanos::ZERO);
        Ok(Self { file, path, data, records, has_failed: false, life, life_at })
    }

    /// Returns the journal's session; `None` for a new journal. Call [`Self::replay`] next.
    pub(crate) fn header(&mut self) -> io::Result<Option<Header>> {
        self.file.rewind()?;
        let mut magic = [0; MAGIC.len()];
        let header = self.file.read_exact(&mut magic).and_then(|()| Record::read(&mut self.file));
        match header {
            Ok((Record::Header(header), _)) if magic == *MAGIC => Ok(Some(header)),
            Ok(_) => Ok(None),
            Err(error) => match error.kind() {
                io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData => Ok(None),
                _ => Err(error),
            },
        }
    }

    /// Starts a journal without records.
    pub(crate) fn begin(&mut self, header: Header) -> io::Result<()> {
        self.file.set_len(0)?;
        self.set_header(header)
    }

    /// Updates the header of a journal in use. Only `has_data` may change.
    pub(crate) fn set_header(&mut self, header: Header) -> io::Result<()> {
        let mut bytes = MAGIC.to_vec();
        Record::Header(header).append_to(&mut bytes);
        self.file.rewind()?;
        self.file.write_all(&bytes)?;
        self.file.seek(SeekFrom::End(0))?;
        Ok(())
    }

    /// Passes all records to `take`; returns the error `InvalidData` if `take` returns `false`.
    /// Drops an incomplete last record. New records are appended after the existing ones.
    pub(crate) fn replay(&mut self, mut take: impl FnMut(Record) -> bool) -> io::Result<()> {
        let mut end = self.file.stream_position()?;
        assert!(end >= MAGIC.len() as u64, "the header is read before the records");
        let mut input = BufReader::new(&self.file);
        loop {
            match Record::read(&mut input) {
                Ok((record, bytes)) if take(record) => end += bytes,
                Ok(_) => return Err(io::ErrorKind::InvalidData.into()),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
                Err(error) => return Err(error),
            }
        }
        drop(input);
        self.file.set_len(end)?;
        self.file.seek(SeekFrom::End(0))?;
        Ok(())
    }

    /// Adds a record to be written by [`Self::write`].
    pub(crate) fn add(&mut self, record: Record) {
        debug_assert!(!matches!(record, Record::Header(_)), "the header is the first record");
        record.append_to(&mut self.records);
    }

    /// Writes the added records and, periodically, the counters `life`. After an error, the journal
    /// is unusable ([`Self::has_failed`]).
    pub(crate) fn write(&mut self, life: Life, wall: Nanos) {
        if life != self.life && wall >= self.life_at + LIFE_INTERVAL {
            (self.life, self.life_at) = (life, wall);
            self.add(Record::Life(life));
        }
        if !self.records.is_empty() {
            self.has_failed |= self.file.write_all(&self.records).is_err();
            self.records.clear();
        }
    }

    /// Removes a journal that is no longer needed.
    pub(crate) fn remove(self) -> io::Result<()> {
        fs::remove_file(&self.path)?;
        match fs::remove_file(&self.data) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}
