//! Sessions of a drive with a state file. Each session continues where the previous session ended,
//! even if the server was killed.

use std::io;
use std::path::Path;

use super::{StateError, restore_contents, restore_drive, save};
use crate::journal::{Header, Journal, Record};
use crate::request::{Request, Tag};
use crate::served::{LOGICAL_BLOCKS, ServedParts};
use writecliff_base::SECTOR_BYTES;
use writecliff_contents::SavedError;
use writecliff_host_interface::Operation;

/// Starts a session of the drive in a state file; creates the file from the new drive if the file
/// does not exist. After a killed session, the drive has all acknowledged requests with their data
/// and counters, and counts an unsafe shutdown. The read counters are complete up to the last
/// second. From this point on, no acknowledged request is lost if this process is killed. Returns
/// `true` if the previous session was killed.
pub fn open(parts: &mut ServedParts, path: &Path) -> Result<bool, StateError> {
    let mut journal = Journal::open(path).map_err(|error| in_use(error, path))?;
    let was_there = path.exists();
    let mut saved = if was_there { Some(restore_drive(parts, path)?) } else { None };
    let power_ups = parts.power.cycles;
    // The journal of an earlier state file may remain if the server was killed after saving the
    // state.
    let killed = journal.header()?.filter(|of| was_there && of.power_ups == power_ups);
    let is_mirrored = killed.is_some_and(|of| of.has_data);
    if is_mirrored && !parts.contents.is_in_memory() {
        return Err(StateError::TwoContents);
    }
    if is_mirrored {
        parts.contents.restore_mirror(journal.data()).map_err(SavedError::from)?;
    } else if let Some(saved) = &mut saved {
        restore_contents(parts, saved)?;
    }
    if !was_there {
        save(parts, path)?;
    }
    if !is_mirrored && parts.contents.is_in_memory() {
        parts.contents.mirror_to(journal.data()).map_err(SavedError::from)?;
    }
    let header = Header { power_ups, has_data: parts.contents.is_in_memory() };
    if killed.is_some() {
        let replayed = journal.replay(|record| is_of(parts, &record) && apply(parts, record));
        replayed.map_err(|error| damaged(error, path))?;
        parts.drive.end_fast_forward();
        apply(parts, Record::PowerUp);
        journal.set_header(header)?;
        journal.add(Record::PowerUp);
    } else {
        journal.begin(header)?;
    }
    parts.journal = Some(journal);
    Ok(killed.is_some())
}

/// Ends a session and saves the state. If `path` is `None`, the state file is not changed.
pub fn close(mut parts: ServedParts, path: Option<&Path>) -> Result<(), StateError> {
    if let Some(path) = path {
        save(&parts, path)?;
    }
    Ok(parts.journal.take().map_or(Ok(()), Journal::remove)?)
}

fn in_use(error: io::Error, path: &Path) -> StateError {
    if error.kind() == io::ErrorKind::ResourceBusy {
        return StateError::InUse(format!("{}.journal", path.display()));
    }
    error.into()
}

fn damaged(error: io::Error, path: &Path) -> StateError {
    if error.kind() == io::ErrorKind::InvalidData {
        return StateError::Journal(format!("{}.journal", path.display()));
    }
    error.into()
}

/// Returns `true` if the record is possible for this drive.
fn is_of(parts: &mut ServedParts, record: &Record) -> bool {
    let drive = &parts.drive;
    let fits = |offset: u64, length: u64| {
        let is_aligned = (offset | length).is_multiple_of(SECTOR_BYTES);
        is_aligned && offset.checked_add(length).is_some_and(|end| end <= drive.capacity().0)
    };
    match *record {
        Record::Change { operation, offset, length, stream, .. } => {
            let can = match operation {
                Operation::Write => true,
                Operation::Trim => drive.refuses_trim().is_none(),
                Operation::Read | Operation::Flush => false,
            };
            can && fits(offset, length) && stream.0 < drive.streams()
        }
        Record::Format(block) => LOGICAL_BLOCKS.contains(&block),
        Record::Header(_) => false,
        Record::Purge | Record::PowerUp | Record::Life(_) | Record::Error(_) => true,
    }
}

/// Repeats the recorded action on a drive without timing; returns `true`.
fn apply(parts: &mut ServedParts, record: Record) -> bool {
    match record {
        Record::Header(_) => {}
        Record::Change { operation, offset, length, stream, is_zeros } => {
            let request = Request::new(Tag::NONE, operation, offset, length);
            repeat(parts, &Request { stream, is_zeros, ..request });
        }
        Record::Purge => {
            parts.drive.end_fast_forward();
            parts.drive.purge();
        }
        Record::Format(block) => parts.logical_block = block,
        Record::PowerUp => {
            parts.power.cycles += 1;
            parts.power.unsafe_shutdowns += 1;
        }
        Record::Life(life) => parts.life = life,
        Record::Error(entry) => parts.errors.add(entry),
    }
    true
}

fn repeat(parts: &mut ServedParts, request: &Request) {
    let end = request.offset + request.length;
    debug_assert!(end <= parts.drive.capacity().0, "the record was not checked");
    let mut given = 0;
    while given < request.length {
        let command = request.command(given, 0, 0);
        given += u64::from(command.length);
        parts.drive.fast_forward(&command);
    }
    parts.life.count(request);
}
