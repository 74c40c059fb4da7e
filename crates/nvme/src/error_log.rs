//! The Error Information log of a controller's life (01h; Base 2.1, 5.1.12.1.2). A drive keeps it,
//! because it outlives controllers and power cycles.

use std::collections::VecDeque;

use crate::page::Page;
use crate::status::Status;

pub const ENTRY_BYTES: usize = 64;
/// Entries of the log page; the log drops older entries.
pub const ENTRIES_MAX: usize = 64;
/// Parameter Error Location of an error that is not about one byte of the command.
const NO_LOCATION: u16 = 0xffff;

/// An entry of the log page, in the layout of the standard. Its number (Error Count) is 0 until it
/// is in a log.
pub type ErrorEntry = [u8; ENTRY_BYTES];

/// Failed commands, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorLog {
    count: u64,
    entries: VecDeque<ErrorEntry>,
}

impl ErrorLog {
    /// A log as it was saved: the number of errors so far, and the last entries, newest first.
    pub fn saved(count: u64, entries: impl IntoIterator<Item = ErrorEntry>) -> Self {
        Self { count, entries: entries.into_iter().take(ENTRIES_MAX).collect() }
    }

    /// Number of errors in the controller's life.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The last errors, newest first.
    pub fn entries(&self) -> impl Iterator<Item = &ErrorEntry> {
        self.entries.iter()
    }

    /// Adds an entry, which gets the next number.
    pub fn add(&mut self, mut entry: ErrorEntry) {
        self.count += 1;
        entry[..8].copy_from_slice(&self.count.to_le_bytes());
        self.entries.truncate(ENTRIES_MAX - 1);
        self.entries.push_front(entry);
    }

    /// The log page.
    pub(crate) fn page(&self) -> Page {
        let mut page = Page::new(ENTRY_BYTES * ENTRIES_MAX);
        for (n, entry) in self.entries.iter().enumerate() {
            page.put(ENTRY_BYTES * n, entry);
        }
        page
    }
}

/// A failed command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FailedCommand {
    pub(crate) queue: u16,
    pub(crate) command_id: u16,
    pub(crate) status: Status,
    /// The byte of the submission queue entry that is wrong.
    pub(crate) byte: Option<u8>,
    pub(crate) lba: u64,
    pub(crate) nsid: u32,
    pub(crate) opcode: u8,
}

impl FailedCommand {
    pub(crate) fn entry(&self) -> ErrorEntry {
        let mut page = Page::new(ENTRY_BYTES);
        page.u16(8, self.queue);
        page.u16(10, self.command_id);
        page.u16(12, self.status.field(false));
        page.u16(14, self.byte.map_or(NO_LOCATION, u16::from));
        page.u64(16, self.lba);
        page.u32(24, self.nsid);
        page.u8(31, self.opcode);
        page.u8(63, 1); // the version that has the opcode
        let mut entry = [0; ENTRY_BYTES];
        entry.copy_from_slice(&page.into_bytes());
        entry
    }
}
