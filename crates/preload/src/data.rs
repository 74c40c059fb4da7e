//! Hooks for calls that transfer data or make data durable.

use crate::events::{self, Note, Op, WITH_READS};
use crate::files::File;
use crate::next::{hook, real};
use crate::stdio;
use libc::{c_int, c_long, c_uint, c_void, iovec, off_t, size_t, ssize_t};

/// Records a transfer of `length` bytes at an offset, or up to the descriptor's position.
pub(crate) fn moved(op: Op, fd: c_int, offset: Option<off_t>, length: ssize_t) {
    if length <= 0 {
        return;
    }
    let Some(file) = File::open(fd) else { return };
    let at = match offset {
        Some(at) if at >= 0 => at,
        _ => {
            // SAFETY: the call only queries the file position.
            let end = unsafe { libc::lseek(fd, 0, libc::SEEK_CUR) };
            stdio::at(fd, end);
            end - length as off_t
        }
    };
    file.record_name(fd);
    note(op, file, at as u64, length as u64);
}

pub(crate) fn note(op: Op, file: File, a: u64, b: u64) {
    events::note(op, Note { a, b, ..file.note() }, &[]);
}

fn wrote(fd: c_int, offset: Option<off_t>, length: ssize_t) {
    moved(Op::Write, fd, offset, length);
    if length > 0 && bypasses_cache(fd) {
        durable(fd);
    }
}

/// Records a write with per-call flags (`RWF_*`).
fn wrote_as(fd: c_int, offset: off_t, how: c_int, length: ssize_t) {
    wrote(fd, Some(offset), length);
    if length > 0 && how & (libc::RWF_SYNC | libc::RWF_DSYNC) != 0 {
        durable(fd);
    }
}

/// Returns `true` if a write to the descriptor is durable when the call returns.
fn bypasses_cache(fd: c_int) -> bool {
    // SAFETY: the call only queries the descriptor flags; it is raw because fcntl is hooked.
    let flags = unsafe { libc::syscall(libc::SYS_fcntl, fd, libc::F_GETFL) } as c_int;
    flags >= 0 && flags & (libc::O_DIRECT | libc::O_DSYNC) != 0
}

fn got(fd: c_int, offset: Option<off_t>, length: ssize_t) {
    if events::has(WITH_READS) {
        moved(Op::Read, fd, offset, length);
    } else if length > 0 {
        stdio::moved(fd);
    }
}

pub(crate) fn record(op: Op, fd: c_int, a: u64, b: u64) {
    if let Some(file) = File::open(fd) {
        file.record_name(fd);
        note(op, file, a, b);
    }
}

fn synced(fd: c_int, result: c_int) {
    if result == 0 {
        record(Op::Fsync, fd, 0, 0);
    }
}

/// Records the sync implied by a write.
fn durable(fd: c_int) {
    if let Some(file) = File::open(fd) {
        file.record_name(fd);
        events::note(Op::Fsync, Note { flags: events::IMPLIED, ..file.note() }, &[]);
    }
}

fn resized(fd: c_int, size: off_t, result: c_int) {
    if result == 0 {
        record(Op::Truncate, fd, size as u64, 0);
    }
}

fn punched(fd: c_int, mode: c_int, offset: off_t, length: off_t, result: c_int) {
    let frees = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE;
    if result == 0 && mode & frees != 0 {
        record(Op::Punch, fd, offset as u64, length as u64);
    }
}

fn mapped(fd: c_int, access: c_int, flags: c_int, offset: off_t, length: size_t, at: *mut c_void) {
    let shared = flags & 0xf == libc::MAP_SHARED || flags & 0xf == libc::MAP_SHARED_VALIDATE;
    if fd >= 0 && at != libc::MAP_FAILED && shared && access & libc::PROT_WRITE != 0 {
        record(Op::Mmap, fd, offset as u64, length as u64);
    }
}

hook!(write | __write(fd: c_int, data: *const c_void, size: size_t) -> ssize_t,
    r => wrote(fd, None, r));
hook!(pwrite | pwrite64 | __pwrite64
    (fd: c_int, data: *const c_void, size: size_t, at: off_t) -> ssize_t,
    r => wrote(fd, Some(at), r));
hook!(writev(fd: c_int, data: *const iovec, count: c_int) -> ssize_t, r => wrote(fd, None, r));
hook!(pwritev | pwritev64(fd: c_int, data: *const iovec, count: c_int, at: off_t) -> ssize_t,
    r => wrote(fd, Some(at), r));
hook!(pwritev2 | pwritev64v2
    (fd: c_int, data: *const iovec, count: c_int, at: off_t, how: c_int) -> ssize_t,
    r => wrote_as(fd, at, how, r));

hook!(read | __read(fd: c_int, data: *mut c_void, size: size_t) -> ssize_t, r => got(fd, None, r));
hook!(__read_chk(fd: c_int, data: *mut c_void, size: size_t, room: size_t) -> ssize_t,
    r => got(fd, None, r));
hook!(pread | pread64 | __pread64(fd: c_int, data: *mut c_void, size: size_t, at: off_t) -> ssize_t,
    r => got(fd, Some(at), r));
hook!(__pread_chk | __pread64_chk
    (fd: c_int, data: *mut c_void, size: size_t, at: off_t, room: size_t) -> ssize_t,
    r => got(fd, Some(at), r));
hook!(readv(fd: c_int, data: *const iovec, count: c_int) -> ssize_t, r => got(fd, None, r));
hook!(preadv | preadv64(fd: c_int, data: *const iovec, count: c_int, at: off_t) -> ssize_t,
    r => got(fd, Some(at), r));
hook!(preadv2 | preadv64v2
    (fd: c_int, data: *const iovec, count: c_int, at: off_t, how: c_int) -> ssize_t,
    r => got(fd, Some(at), r));

hook!(sendfile | sendfile64(to: c_int, from: c_int, at: *mut off_t, size: size_t) -> ssize_t,
    r => wrote(to, None, r));
hook!(copy_file_range(from: c_int, from_at: *mut off_t, to: c_int, to_at: *mut off_t, size: size_t,
    how: c_uint) -> ssize_t, r => wrote(to, before(to_at, r), r));
hook!(splice(from: c_int, from_at: *mut off_t, to: c_int, to_at: *mut off_t, size: size_t,
    how: c_uint) -> ssize_t, r => wrote(to, before(to_at, r), r));

/// Returns the offset where a transfer started, computed after the kernel has advanced it.
fn before(at: *const off_t, length: ssize_t) -> Option<off_t> {
    // SAFETY: the kernel has just written to this address.
    (length > 0 && !at.is_null()).then(|| unsafe { *at } - length as off_t)
}

hook!(fsync | fdatasync(fd: c_int) -> c_int, r => synced(fd, r));
hook!(sync_file_range(fd: c_int, at: off_t, size: off_t, how: c_uint) -> c_int, r => synced(fd, r));
hook!(ftruncate | ftruncate64(fd: c_int, size: off_t) -> c_int, r => resized(fd, size, r));
hook!(fallocate | fallocate64(fd: c_int, mode: c_int, at: off_t, size: off_t) -> c_int,
    r => punched(fd, mode, at, size, r));

hook!(mmap | mmap64(hint: *mut c_void, size: size_t, access: c_int, flags: c_int, fd: c_int,
    at: off_t) -> *mut c_void = libc::MAP_FAILED, map => mapped(fd, access, flags, at, size, map));

/// The kernel's `struct iocb`, as replicated by libaio.
#[repr(C)]
struct Iocb {
    data: u64,
    key: [u32; 2],
    opcode: u16,
    priority: i16,
    fd: u32,
    buffer: u64,
    length: u64,
    offset: i64,
    rest: [u64; 2],
}

impl Iocb {
    /// Returns the descriptor, the operation, and the offset and length in bytes.
    fn what(&self) -> Option<(c_int, Op, off_t, u64)> {
        let (op, vectors) = match self.opcode {
            0 => (Op::Read, false),
            1 => (Op::Write, false),
            2 | 3 => (Op::Fsync, false),
            7 => (Op::Read, true),
            8 => (Op::Write, true),
            _ => return None,
        };
        let length = if vectors {
            // SAFETY: by the contract of io_submit, the pointer refers to an array of that length.
            let parts = unsafe {
                std::slice::from_raw_parts(self.buffer as *const iovec, self.length as usize)
            };
            parts.iter().map(|part| part.iov_len as u64).sum()
        } else {
            self.length
        };
        Some((self.fd as c_int, op, self.offset, length))
    }
}

/// Number of requests that the hook reads before it forwards them.
const BATCH: usize = 256;

/// Hook for libaio's request submission. A long list is forwarded in batches, so that a fixed-size
/// array can hold the requests of each batch. The kernel accepts a list in order and may stop
/// anywhere, so callers see no difference.
#[unsafe(no_mangle)]
unsafe extern "C" fn io_submit(
    context: *mut c_void,
    count: c_long,
    list: *mut *mut c_void,
) -> c_int {
    type Real = unsafe extern "C" fn(*mut c_void, c_long, *mut *mut c_void) -> c_int;
    let Some(real) = real!(io_submit as Real) else { return -libc::ENOSYS };
    let requests = usize::try_from(count).unwrap_or(0);
    if !events::active() || list.is_null() || requests == 0 {
        // SAFETY: the caller's arguments are passed unchanged.
        return unsafe { real(context, count, list) };
    }
    let mut submitted = 0;
    while submitted < requests {
        let batch = (requests - submitted).min(BATCH);
        // SAFETY: by the contract of io_submit, the list has `count` requests, and
        // `submitted` is below `count`.
        let accepted = unsafe {
            let part = list.add(submitted);
            submit_batch(part, batch, || real(context, batch as c_long, part))
        };
        match usize::try_from(accepted) {
            Ok(accepted) if accepted == batch => submitted += batch,
            Ok(accepted) => return (submitted + accepted) as c_int,
            Err(_) if submitted == 0 => return accepted,
            Err(_) => break,
        }
    }
    submitted as c_int
}

/// Submits `count` requests, at most `BATCH`, and records those that the kernel accepted. The
/// requests are read first, because a completed request's memory may be freed.
///
/// # Safety
/// `list` must point to `count` requests, by the contract of `io_submit`.
unsafe fn submit_batch(
    list: *mut *mut c_void,
    count: usize,
    submit: impl FnOnce() -> c_int,
) -> c_int {
    let mut requests = [None; BATCH];
    for (index, request) in requests.iter_mut().enumerate().take(count) {
        // SAFETY: the caller guarantees this by the function's contract.
        *request = unsafe { (*(*list.add(index)).cast::<Iocb>()).what() };
    }
    let accepted = submit();
    crate::after(|| {
        let accepted = usize::try_from(accepted).unwrap_or(0);
        for (fd, op, offset, length) in requests.iter().take(accepted).flatten() {
            match op {
                Op::Fsync => synced(*fd, 0),
                Op::Read => got(*fd, Some(*offset), *length as ssize_t),
                _ => wrote(*fd, Some(*offset), *length as ssize_t),
            }
        }
    });
    accepted
}
