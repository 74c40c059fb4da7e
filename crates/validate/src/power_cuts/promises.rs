//! Data that the host may find after a power cut, given the replies before the cut.
//!
//! A write is durable once it has completed on a drive that guarantees durability, or once a flush
//! has completed that was submitted after the write completed. A write may be lost unless it is
//! durable, and it may survive although it never completed. Data must not reappear if a later
//! durable write replaced them. Deallocations count as writes without data.

use writecliff_base::SLOT_BYTES;
use writecliff_host_interface::{Command, Operation};

/// Version of a page without data.
pub(super) const NOTHING: u32 = 0;
/// Version of the data that a drive had at the start.
pub(super) const AGED: u32 = 1;
/// First tag of a command, which is also the version of the data that it writes.
pub(super) const FIRST_TAG: u32 = 2;

#[derive(Clone, Copy, Debug)]
struct Write {
    version: u32,
    /// Submission time, in the host's order of submissions and completions.
    submitted: u64,
    completed: Option<u64>,
    is_durable: bool,
    tag: u32,
}

pub(super) struct Promises {
    /// Writes of each page since the last power cut, preceded by its contents at that time.
    pages: Vec<Vec<Write>>,
    /// Pages written since the last power cut.
    touched: Vec<u32>,
    /// Submission times of outstanding flushes.
    flushes: Vec<(u32, u64)>,
    /// `true` if every write is durable when it completes.
    is_durable: bool,
    order: u64,
}

fn held(version: u32) -> Write {
    Write { version, submitted: 0, completed: Some(0), is_durable: true, tag: version }
}

/// Returns the pages of a command: all pages that a write touches, or all pages that a deallocation
/// fully covers.
fn pages(command: &Command) -> std::ops::Range<u32> {
    let (first, end) = (command.offset, command.offset + u64::from(command.length));
    match command.operation {
        Operation::Write => (first / SLOT_BYTES) as u32..end.div_ceil(SLOT_BYTES) as u32,
        Operation::Trim => first.div_ceil(SLOT_BYTES) as u32..(end / SLOT_BYTES) as u32,
        Operation::Read | Operation::Flush => 0..0,
    }
}

impl Promises {
    pub(super) fn new(pages: u32, is_durable: bool, holds: impl Fn(u32) -> bool) -> Self {
        let version = |lpn| if holds(lpn) { AGED } else { NOTHING };
        Self {
            pages: (0..pages).map(|lpn| vec![held(version(lpn))]).collect(),
            touched: Vec::new(),
            flushes: Vec::new(),
            is_durable,
            order: 0,
        }
    }

    pub(super) fn submitted(&mut self, command: &Command) {
        self.order += 1;
        let (tag, submitted) = (command.tag, self.order);
        if command.operation == Operation::Flush {
            self.flushes.push((tag, submitted));
        }
        let version = if command.operation == Operation::Trim { NOTHING } else { tag };
        for lpn in pages(command) {
            let history = &mut self.pages[lpn as usize];
            if history.len() == 1 {
                self.touched.push(lpn);
            }
            history.push(Write { version, submitted, completed: None, is_durable: false, tag });
        }
    }

    pub(super) fn completed(&mut self, command: &Command) {
        self.order += 1;
        // The standard guarantees the durability of deallocations only after a flush.
        let is_durable = self.is_durable && command.operation == Operation::Write;
        for lpn in pages(command) {
            let of_it = self.pages[lpn as usize].iter_mut().find(|w| w.tag == command.tag);
            let write = of_it.expect("a write that completes was submitted");
            assert_eq!(write.completed, None, "command {} completes twice", command.tag);
            (write.completed, write.is_durable) = (Some(self.order), is_durable);
        }
        if command.operation == Operation::Flush
            && let Some(index) = self.flushes.iter().position(|&(tag, _)| tag == command.tag)
        {
            let (_, submitted) = self.flushes.swap_remove(index);
            self.flushed(submitted);
        }
    }

    fn flushed(&mut self, submitted: u64) {
        for &lpn in &self.touched {
            for write in &mut self.pages[lpn as usize] {
                write.is_durable |= write.completed.is_some_and(|at| at < submitted);
            }
        }
    }

    /// Checks the version of each page after a power cut, and accepts it as the page's new
    /// contents. Returns the number of acknowledged writes that were lost, and of unacknowledged
    /// writes that survived.
    pub(super) fn check(&mut self, versions: &[u32]) -> Result<(u64, u64), String> {
        assert_eq!(versions.len(), self.pages.len(), "a version of each page");
        let (mut lost, mut survived) = (0, 0);
        for (lpn, (history, &version)) in self.pages.iter().zip(versions).enumerate() {
            let may_be = |w: &&Write| w.version == version && is_allowed(w, history);
            let Some(write) = history.iter().rev().find(may_be) else {
                return Err(format!(
                    "page {lpn} contains version {version}, but its history is {history:?}"
                ));
            };
            let gone = |w: &&Write| {
                w.completed.is_some() && write.completed.is_some_and(|at| at < w.submitted)
            };
            lost += history.iter().filter(gone).count() as u64;
            survived += u64::from(write.completed.is_none());
        }
        for lpn in std::mem::take(&mut self.touched) {
            let history = &mut self.pages[lpn as usize];
            history.clear();
            history.push(held(versions[lpn as usize]));
        }
        self.flushes.clear();
        Ok((lost, survived))
    }
}

/// Returns `true` if a page may hold the data of `write` because no durable write has replaced
/// them.
fn is_allowed(write: &Write, history: &[Write]) -> bool {
    let completed = write.completed.unwrap_or(u64::MAX);
    !history.iter().any(|other| other.is_durable && other.submitted > completed)
}
