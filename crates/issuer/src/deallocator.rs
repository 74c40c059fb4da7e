//! Deallocation (TRIM) through a blocking ioctl, which a few threads execute.
//!
//! io_uring supports deallocation only since Linux 6.12, and its `fallocate` writes zeroes to block
//! devices instead of deallocating. For a file, a hole is punched.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{FallocateFlags, fallocate};
use rustix::ioctl::{Opcode, Setter, ioctl};

use crate::clock::now_ns;

const THREADS: usize = 8;
const BLKDISCARD: Opcode = 0x1277;

struct Request {
    slot: u32,
    offset: u64,
    length: u64,
}

pub(crate) struct Deallocated {
    pub(crate) slot: u32,
    pub(crate) at_ns: u64,
    /// Result: 0 for success, or a negative error number.
    pub(crate) result: i32,
}

struct Common {
    /// Duplicate: a thread that outlives the issue does not use a reused descriptor number.
    fd: OwnedFd,
    is_file: bool,
    requests: Mutex<Receiver<Request>>,
    ended: AtomicBool,
}

pub(crate) struct Deallocator {
    common: Arc<Common>,
    requests: Sender<Request>,
    made: Receiver<Deallocated>,
    /// Sender that the threads use for results.
    makers: Sender<Deallocated>,
    threads: usize,
}

impl Deallocator {
    pub(crate) fn new(fd: BorrowedFd<'_>, is_file: bool) -> io::Result<Self> {
        let fd = fd.try_clone_to_owned()?;
        let ((requests, waiting), (makers, made)) = (channel(), channel());
        let (waiting, ended) = (Mutex::new(waiting), AtomicBool::new(false));
        let common = Arc::new(Common { fd, is_file, requests: waiting, ended });
        Ok(Self { common, requests, made, makers, threads: 0 })
    }

    pub(crate) fn submit(&mut self, slot: u32, offset: u64, length: u64) {
        if self.threads < THREADS {
            let (common, made) = (Arc::clone(&self.common), self.makers.clone());
            std::thread::spawn(move || common.work(&made));
            self.threads += 1;
        }
        let sent = self.requests.send(Request { slot, offset, length });
        debug_assert!(sent.is_ok(), "`common` has the receiver");
    }

    /// Moves completed deallocations to `to`; inexpensive if there are none.
    pub(crate) fn take(&self, to: &mut Vec<Deallocated>) {
        to.extend(self.made.try_iter());
    }
}

impl Common {
    fn work(&self, made: &Sender<Deallocated>) {
        while let Some(request) = self.next() {
            let result = self.deallocate(&request);
            // The receiver is dropped once the issuer has stopped.
            let _ = made.send(Deallocated { slot: request.slot, at_ns: now_ns(), result });
        }
    }

    fn next(&self) -> Option<Request> {
        let request = self.requests.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()?;
        (!self.ended.load(Ordering::Relaxed)).then_some(request)
    }

    fn deallocate(&self, request: &Request) -> i32 {
        let &Request { offset, length, .. } = request;
        let outcome = if self.is_file {
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            fallocate(&self.fd, hole, offset, length)
        } else {
            // SAFETY: the ioctl reads a range of two words.
            unsafe { ioctl(&self.fd, Setter::<BLKDISCARD, [u64; 2]>::new([offset, length])) }
        };
        outcome.map_or_else(|error| -error.raw_os_error(), |()| 0)
    }
}

impl Drop for Deallocator {
    fn drop(&mut self) {
        // The threads are not joined: the drive that one waits for may not respond.
        self.common.ended.store(true, Ordering::Relaxed);
    }
}
