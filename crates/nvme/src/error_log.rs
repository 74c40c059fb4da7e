//! Error Information log over a controller's lifetime (01h; Base 2.1, 5.1.12.1.2). The drive stores
//! the log because it outlives controllers and power cycles.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::page::Page;

const ENTRY_BYTES: usize = 64;
/// Maximum number of entries in the log page; the log drops older entries.
pub const ENTRIES_MAX: usize = 64;
/// Parameter Error Location of an error that does not concern a specific byte of the command.
const NO_LOCATION: u16 = 0xffff;

/// A failed command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorEntry {
    /// Error Count; 0 until the entry is added to a log.
    pub number: u64,
    /// Submission Queue ID.
    pub queue: u16,
    /// Command ID.
    pub command_id: u16,
    /// Status field of the completion.
    pub status: u16,
    /// Position of the invalid byte in the submission queue entry.
    pub byte: Option<u8>,
    /// First logical block of the command; 0 for admin commands.
    pub lba: u64,
    /// Namespace Identifier.
    pub nsid: u32,
    /// Command opcode.
    pub opcode: u8,
}

/// Failed commands, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorLog {
    /// Number of errors in the controller's lifetime.
    pub count: u64,
    /// Most recent errors, newest first.
    pub entries: VecDeque<ErrorEntry>,
}

impl ErrorLog {
    /// Adds an entry and assigns it the next number.
    pub fn add(&mut self, entry: ErrorEntry) {
        self.count += 1;
        self.entries.truncate(ENTRIES_MAX - 1);
        self.entries.push_front(ErrorEntry { number: self.count, ..entry });
    }

    pub(crate) fn page(&self) -> Page {
        let mut page = Page::new(ENTRY_BYTES * ENTRIES_MAX);
        for (n, entry) in self.entries.iter().take(ENTRIES_MAX).enumerate() {
            let at = ENTRY_BYTES * n;
            page.u64(at, entry.number);
            page.u16(at + 8, entry.queue);
            page.u16(at + 10, entry.command_id);
            page.u16(at + 12, entry.status);
            page.u16(at + 14, entry.byte.map_or(NO_LOCATION, u16::from));
            page.u64(at + 16, entry.lba);
            page.u32(at + 24, entry.nsid);
            page.u8(at + 31, entry.opcode);
            page.u8(at + 63, 1); // Version 1 of the structure has the opcode field.
        }
        page
    }
}
