//! io_uring of an issue, with the target and memory registered if the kernel permits it.

use std::io;
use std::os::fd::RawFd;

use io_uring::types::{Fixed, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode};
use writecliff_workload::Operation;

use crate::arena::Arena;

/// Maximum number of requests per submission.
pub(crate) const BATCH: u32 = 8;
const ENTRIES: u32 = 256;
const GETEVENTS: u32 = 1;
const TARGET: Fixed = Fixed(0);

pub(crate) struct Request {
    pub(crate) operation: Operation,
    pub(crate) offset: u64,
    pub(crate) length: u32,
    /// Address of the data in the arena.
    pub(crate) memory: *mut u8,
    pub(crate) dsync: bool,
}

pub(crate) struct Ring {
    ring: IoUring,
    /// `true` if the memory is pinned; otherwise, the kernel pins it for each I/O.
    pub(crate) is_pinned: bool,
}

impl Ring {
    /// Returns a ring for `fd` with at most `depth` I/Os in flight.
    pub(crate) fn new(fd: RawFd, arena: &Arena, depth: u32) -> io::Result<Self> {
        let mut builder = IoUring::builder();
        builder.setup_cqsize((2 * depth).next_power_of_two().max(2 * ENTRIES)).setup_clamp();
        // The thread polls frequently, so processing completions only then prevents them from
        // interrupting submissions. This setup needs Linux 6.1; the plain ring is slower.
        let mut deferred = builder.clone();
        deferred.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag();
        let ring = deferred.build(ENTRIES).or_else(|_| builder.build(ENTRIES))?;
        if !ring.params().is_feature_ext_arg() {
            return Err(io::Error::from_raw_os_error(libc::ENOSYS));
        }
        ring.submitter().register_files(&[fd])?;
        let memory = libc::iovec { iov_base: arena.start().cast(), iov_len: Arena::BYTES };
        // SAFETY: the arena outlives the ring, because the ring is dropped first or has no I/Os.
        let pinned = unsafe { ring.submitter().register_buffers(&[memory]) };
        Ok(Self { ring, is_pinned: pinned.is_ok() })
    }

    /// Queues a request. Ring size: at least `BATCH` requests fit between two submissions.
    pub(crate) fn push(&mut self, slot: u32, request: &Request) {
        let Request { offset, length, memory, .. } = *request;
        let flags = if request.dsync { libc::RWF_DSYNC } else { 0 };
        let entry = match (request.operation, self.is_pinned) {
            (Operation::Read, true) => {
                opcode::ReadFixed::new(TARGET, memory, length, 0).offset(offset).build()
            }
            (Operation::Read, false) => {
                opcode::Read::new(TARGET, memory, length).offset(offset).build()
            }
            (Operation::Write, true) => opcode::WriteFixed::new(TARGET, memory, length, 0)
                .offset(offset)
                .rw_flags(flags)
                .build(),
            (Operation::Write, false) => {
                opcode::Write::new(TARGET, memory, length).offset(offset).rw_flags(flags).build()
            }
            (Operation::Flush, _) => opcode::Fsync::new(TARGET).flags(FsyncFlags::DATASYNC).build(),
            (Operation::Trim, _) => unreachable!("deallocations have threads of their own"),
        };
        // SAFETY: the memory is the read region or a piece that is allocated until completion.
        let pushed = unsafe { self.ring.submission().push(&entry.user_data(u64::from(slot))) };
        assert!(pushed.is_ok(), "each batch is submitted before the next");
    }

    pub(crate) fn submit(&mut self) -> io::Result<()> {
        while !self.ring.submission().is_empty() {
            match self.ring.submit() {
                Ok(_) => {}
                Err(error) if is_passing(&error) => self.run_completions()?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Moves the available completions to `to` as pairs of slot and result.
    #[inline]
    pub(crate) fn take(&mut self, to: &mut Vec<(u32, i32)>) -> io::Result<()> {
        let flags = self.ring.submission();
        let waits = flags.taskrun() || flags.cq_overflow();
        drop(flags);
        if waits {
            self.run_completions()?;
        }
        to.extend(self.ring.completion().map(|entry| (entry.user_data() as u32, entry.result())));
        Ok(())
    }

    /// Sleeps until an I/O completes, for at most `for_ns`.
    pub(crate) fn wait(&mut self, for_ns: u64) -> io::Result<()> {
        let (seconds, nanoseconds) = (for_ns / 1_000_000_000, for_ns % 1_000_000_000);
        let time = Timespec::new().sec(seconds).nsec(nanoseconds as u32);
        let until = SubmitArgs::new().timespec(&time);
        match self.ring.submitter().submit_with_args(1, &until) {
            Err(error) if error.raw_os_error() != Some(libc::ETIME) && !is_passing(&error) => {
                Err(error)
            }
            _ => Ok(()),
        }
    }

    fn run_completions(&mut self) -> io::Result<()> {
        // SAFETY: the call submits nothing and takes no argument.
        let done = unsafe { self.ring.submitter().enter::<()>(0, 0, GETEVENTS, None) };
        match done {
            Err(error) if !is_passing(&error) => Err(error),
            _ => Ok(()),
        }
    }
}

/// Returns `true` for errors that disappear once completions have been reaped.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY))
}
