//! Deallocation (TRIM): an ioctl that waits for the drive, so a few threads make it.
//!
//! io_uring has a command for it since Linux 6.12; its `fallocate` writes zeroes on block devices,
//! which is something else. A file gets a hole.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::clock::now_ns;

/// Deallocations at a time.
const THREADS: usize = 8;
const BLKDISCARD: libc::c_ulong = 0x1277;

struct Request {
    slot: u32,
    offset: u64,
    length: u64,
}

/// A deallocation that was made.
pub(crate) struct Deallocated {
    pub(crate) slot: u32,
    pub(crate) at_ns: u64,
    /// 0, or a negative error number.
    pub(crate) result: i32,
}

#[derive(Default)]
struct Queue {
    requests: VecDeque<Request>,
    ended: bool,
}

struct Common {
    /// Its own, so that a thread that outlives the issue has no other file's number.
    fd: OwnedFd,
    is_file: bool,
    queue: Mutex<Queue>,
    more: Condvar,
    made: Mutex<Vec<Deallocated>>,
    /// As many as are in `made`.
    count: AtomicUsize,
}

/// Makes deallocations beside the thread that asks for them.
pub(crate) struct Deallocator {
    common: Arc<Common>,
    threads: usize,
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Deallocator {
    pub(crate) fn new(fd: BorrowedFd<'_>, is_file: bool) -> io::Result<Self> {
        let common = Common {
            fd: fd.try_clone_to_owned()?,
            is_file,
            queue: Mutex::default(),
            more: Condvar::new(),
            made: Mutex::default(),
            count: AtomicUsize::new(0),
        };
        Ok(Self { common: Arc::new(common), threads: 0 })
    }

    pub(crate) fn submit(&mut self, slot: u32, offset: u64, length: u64) {
        if self.threads < THREADS {
            let common = Arc::clone(&self.common);
            std::thread::spawn(move || common.work());
            self.threads += 1;
        }
        locked(&self.common.queue).requests.push_back(Request { slot, offset, length });
        self.common.more.notify_one();
    }

    /// Moves what was made to `to`; cheap while there is nothing.
    pub(crate) fn take(&self, to: &mut Vec<Deallocated>) {
        if self.common.count.load(Ordering::Acquire) > 0 {
            let mut made = locked(&self.common.made);
            self.common.count.store(0, Ordering::Release);
            to.append(&mut made);
        }
    }
}

impl Common {
    fn work(&self) {
        while let Some(request) = self.next() {
            let result = self.deallocate(&request);
            let done = Deallocated { slot: request.slot, at_ns: now_ns(), result };
            let mut made = locked(&self.made);
            made.push(done);
            self.count.store(made.len(), Ordering::Release);
        }
    }

    fn next(&self) -> Option<Request> {
        let mut queue = locked(&self.queue);
        loop {
            if queue.ended {
                return None;
            }
            if let Some(request) = queue.requests.pop_front() {
                return Some(request);
            }
            queue = self.more.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn deallocate(&self, request: &Request) -> i32 {
        let range = [request.offset, request.length];
        // SAFETY: the descriptor is open as long as this is; the range outlives the call.
        let failed = unsafe {
            if self.is_file {
                let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
                libc::fallocate(self.fd.as_raw_fd(), mode, range[0] as i64, range[1] as i64)
            } else {
                libc::ioctl(self.fd.as_raw_fd(), BLKDISCARD as _, range.as_ptr())
            }
        };
        if failed == 0 { 0 } else { -io::Error::last_os_error().raw_os_error().unwrap_or(5) }
    }
}

impl Drop for Deallocator {
    fn drop(&mut self) {
        // Not waited for: a thread may wait for a drive that does not answer.
        locked(&self.common.queue).ended = true;
        self.common.more.notify_all();
    }
}
