//! The journal of a served drive with a state file: a record of each request that changes it.
//!
//! A state file is written at the end. A server that is killed writes none, so two files beside the
//! state file hold all that it has acknowledged: `STATE.data`, a copy of the data (unless these
//! are in a file already, see [`writecliff_contents::Contents::mirror_to`]), and `STATE.journal`.
//! The next server restores the state, gives the drive the requests of the journal without timing,
//! and takes the data from the copy. Records reach the kernel before replies do.
//!
//! ```text
//! "WCJRNL1" and 'd' (with a copy of the data) or '-'    8 bytes
//! power-ups of the state file before this session       u64
//! records: kind u8, flag u8, stream u16, zero u32, and:
//!   1 write (flag 1: of zeros), 2 trim                  offset u64, length u64
//!   3 purge, 4 format, 5 power-up                       block size u64 (of a format), zero u64
//!   6 life                                              five u64, see `Life`
//!   7 error                                             an entry of the error log, 64 bytes
//! ```
//!
//! The last record may be incomplete. A write takes 24 bytes; the journal lasts as long as the
//! session.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use writecliff_base::{Bytes, Nanos, StreamId};
use writecliff_host_interface::Operation;
use writecliff_nvme::error_log::{ENTRY_BYTES, ErrorEntry};

use crate::life::Life;
use crate::request::Request;

const MAGIC: &[u8; 7] = b"WCJRNL1";
const WITH_DATA: u8 = b'd';
const WITHOUT_DATA: u8 = b'-';
const HEADER_BYTES: u64 = 16;
/// Wall time between records of counters that no other record implies.
const LIFE_INTERVAL: Nanos = Nanos(1_000_000_000);

const WRITE: u8 = 1;
const TRIM: u8 = 2;
const PURGE: u8 = 3;
const FORMAT: u8 = 4;
const POWER_UP: u8 = 5;
const LIFE: u8 = 6;
const ERROR: u8 = 7;

/// A change of the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    Write {
        offset: u64,
        length: u64,
        stream: StreamId,
        is_zeros: bool,
    },
    Trim {
        offset: u64,
        length: u64,
    },
    Purge,
    Format(Bytes),
    /// The drive lost its power, and has it again.
    PowerUp,
    Life(Life),
    Error(ErrorEntry),
}

impl Record {
    /// The record of a request that changes the drive.
    pub(crate) fn of(request: &Request) -> Option<Self> {
        let &Request { operation, offset, length, stream, is_zeros, .. } = request;
        match operation {
            Operation::Write => Some(Self::Write { offset, length, stream, is_zeros }),
            Operation::Trim => Some(Self::Trim { offset, length }),
            Operation::Read | Operation::Flush => None,
        }
    }

    fn append_to(self, out: &mut Vec<u8>) {
        let mut flag = 0;
        let (kind, stream, words) = match self {
            Self::Write { offset, length, stream, is_zeros } => {
                flag = u8::from(is_zeros);
                (WRITE, stream.0, [offset, length])
            }
            Self::Trim { offset, length } => (TRIM, 0, [offset, length]),
            Self::Purge => (PURGE, 0, [0, 0]),
            Self::Format(block) => (FORMAT, 0, [block.0, 0]),
            Self::PowerUp => (POWER_UP, 0, [0, 0]),
            Self::Life(life) => {
                out.extend([LIFE, 0, 0, 0, 0, 0, 0, 0]);
                out.extend(life.to_words().into_iter().flat_map(u64::to_le_bytes));
                return;
            }
            Self::Error(entry) => {
                out.extend([ERROR, 0, 0, 0, 0, 0, 0, 0]);
                out.extend(entry);
                return;
            }
        };
        let [low, high] = stream.to_le_bytes();
        out.extend([kind, flag, low, high, 0, 0, 0, 0]);
        out.extend(words.into_iter().flat_map(u64::to_le_bytes));
    }

    /// Bytes in the file.
    fn size(&self) -> u64 {
        match self {
            Self::Life(_) => 8 + 8 * Life::WORDS as u64,
            Self::Error(_) => 8 + ENTRY_BYTES as u64,
            _ => 24,
        }
    }

    /// The next record; an error `UnexpectedEof` at the end, `InvalidData` for an unknown kind.
    fn read(input: &mut impl Read) -> io::Result<Self> {
        let [kind, flag, low, high, ..] = bytes::<8>(input)?;
        if kind == ERROR {
            return Ok(Self::Error(bytes::<ENTRY_BYTES>(input)?));
        }
        if kind == LIFE {
            return Ok(Self::Life(Life::from_words(words(input)?)));
        }
        let [first, second] = words::<2>(input)?;
        let stream = StreamId(u16::from_le_bytes([low, high]));
        match kind {
            WRITE => {
                let is_zeros = flag == 1;
                Ok(Self::Write { offset: first, length: second, stream, is_zeros })
            }
            TRIM => Ok(Self::Trim { offset: first, length: second }),
            PURGE => Ok(Self::Purge),
            FORMAT => Ok(Self::Format(Bytes(first))),
            POWER_UP => Ok(Self::PowerUp),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

fn bytes<const N: usize>(input: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn words<const N: usize>(input: &mut impl Read) -> io::Result<[u64; N]> {
    let mut words = [0; N];
    for word in &mut words {
        *word = u64::from_le_bytes(bytes(input)?);
    }
    Ok(words)
}

/// The session that a journal is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Power-ups in the state file that the records follow. Each session adds to them, so they
    /// identify that state file.
    pub power_ups: u64,
    /// `true` if a copy of the data is beside the journal.
    pub has_data: bool,
}

/// An open journal, which nobody else can open.
pub(crate) struct Journal {
    file: File,
    path: PathBuf,
    data: PathBuf,
    records: Vec<u8>,
    has_failed: bool,
    /// The counters that the file has, and since when.
    life: Life,
    life_at: Nanos,
}

/// Locks a file until it is closed; `false` if another open file has the lock.
fn lock(file: &File) -> io::Result<bool> {
    // SAFETY: a call on an open file; it has no pointers.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    if error.kind() == io::ErrorKind::WouldBlock { Ok(false) } else { Err(error) }
}

/// A file beside a state file.
fn beside(state: &Path, suffix: &str) -> PathBuf {
    let mut name = state.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

impl Journal {
    /// Opens the journal of a state file, and makes an empty one if there is none. An error
    /// `ResourceBusy` if another server has it.
    pub(crate) fn open(state: &Path) -> io::Result<Self> {
        let (path, data) = (beside(state, ".journal"), beside(state, ".data"));
        let options = &mut OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(&path)?;
        let is_locked = lock(&file)?;
        // A server that ends removes the file, perhaps this file.
        let is_there = fs::metadata(&path).is_ok_and(|there| {
            file.metadata().is_ok_and(|ours| (ours.dev(), ours.ino()) == (there.dev(), there.ino()))
        });
        if !is_locked || !is_there {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        let (records, life, life_at) = (Vec::new(), Life::default(), Nanos::ZERO);
        Ok(Self { file, path, data, records, has_failed: false, life, life_at })
    }

    /// The file for a copy of the data.
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// The session of which the journal has records; `None` of a new one.
    pub(crate) fn header(&mut self) -> io::Result<Option<Header>> {
        self.file.rewind()?;
        let mut header = [0; HEADER_BYTES as usize];
        match self.file.read_exact(&mut header) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        let (magic, rest) = header.split_at(MAGIC.len());
        let (kind, power_ups) = (rest[0], u64::from_le_bytes(*rest[1..].first_chunk().expect("8")));
        let is_known = magic == MAGIC && matches!(kind, WITH_DATA | WITHOUT_DATA);
        Ok(is_known.then_some(Header { power_ups, has_data: kind == WITH_DATA }))
    }

    /// Begins a journal without records.
    pub(crate) fn begin(&mut self, header: Header) -> io::Result<()> {
        self.file.set_len(0)?;
        self.set_header(header)
    }

    /// Changes the header of a journal that goes on.
    pub(crate) fn set_header(&mut self, header: Header) -> io::Result<()> {
        let kind = if header.has_data { WITH_DATA } else { WITHOUT_DATA };
        self.file.rewind()?;
        let bytes = [&MAGIC[..], &[kind], &header.power_ups.to_le_bytes()].concat();
        self.file.write_all(&bytes)?;
        self.file.seek(SeekFrom::End(0))?;
        Ok(())
    }

    /// Passes all records, until `take` returns `false`, which is an error `InvalidData`. Drops a
    /// last record that is incomplete. New records follow them.
    pub(crate) fn replay(&mut self, mut take: impl FnMut(Record) -> bool) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(HEADER_BYTES))?;
        let mut input = BufReader::new(&self.file);
        let mut end = HEADER_BYTES;
        loop {
            match Record::read(&mut input) {
                Ok(record) => {
                    end += record.size();
                    if !take(record) {
                        return Err(io::ErrorKind::InvalidData.into());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
                Err(error) => return Err(error),
            }
        }
        drop(input);
        self.file.set_len(end)?;
        self.file.seek(SeekFrom::End(0))?;
        Ok(())
    }

    /// Adds a record, which [`Self::write`] writes.
    pub(crate) fn add(&mut self, record: Record) {
        record.append_to(&mut self.records);
    }

    /// Writes the records that were added, and from time to time the counters `life`. After an
    /// error the journal is of no use: [`Self::has_failed`].
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

    /// Returns `true` if records could not be written: no change may be acknowledged any more.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Ends a journal that nobody needs any more.
    pub(crate) fn remove(self) -> io::Result<()> {
        fs::remove_file(&self.path)?;
        match fs::remove_file(&self.data) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}
