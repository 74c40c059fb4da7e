//! Hooks for C library streams (`FILE *`), whose buffers are written without calling any hook.
//! Their writes are therefore derived from the position of the descriptor: after a flush, a close,
//! every page of `fwrite`, and at the end of the program. Small writes are thus merged.
//!
//! Only streams that this process opened for writing alone are tracked. Read-ahead also moves a
//! descriptor, and other processes move an inherited descriptor.

use crate::data;
use crate::events::Op;
use crate::files::File;
use crate::namespace::Before;
use crate::next::hook;
use libc::{AT_FDCWD, FILE, c_char, c_int, c_long, c_void, off_t, size_t};
use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::{AtomicI64, AtomicPtr, AtomicUsize, Ordering};

const TRACKED: usize = 1024; // Number of tracked descriptors.
const NOT_TRACKED: i64 = -1;
const MEMORY_PAGE: usize = 4096;

struct Stream {
    position: AtomicI64,
    pending: AtomicUsize,
    file: AtomicPtr<FILE>,
}

static STREAMS: [Stream; TRACKED] = [const {
    Stream {
        position: AtomicI64::new(NOT_TRACKED),
        pending: AtomicUsize::new(0),
        file: AtomicPtr::new(ptr::null_mut()),
    }
}; TRACKED];

fn entry(fd: c_int) -> Option<&'static Stream> {
    let stream = STREAMS.get(usize::try_from(fd).ok()?)?;
    (stream.position.load(Ordering::Relaxed) != NOT_TRACKED).then_some(stream)
}

fn position(fd: c_int) -> off_t {
    // SAFETY: the call only queries the file position.
    unsafe { libc::lseek(fd, 0, libc::SEEK_CUR) }
}

/// Returns the descriptor of a stream; -1 for a stream without a descriptor, for example from
/// `fmemopen`. The function preserves `errno`, which `fileno` sets for such a stream.
fn descriptor(stream: *mut FILE) -> c_int {
    if stream.is_null() {
        return -1;
    }
    // SAFETY: the pointer is an open stream of the program.
    crate::keeping_errno(|| unsafe { libc::fileno(stream) })
}

/// Updates the position after a hooked call has moved the descriptor to `position`.
pub(crate) fn at(fd: c_int, position: off_t) {
    if let Some(entry) = entry(fd) {
        entry.position.store(position, Ordering::Relaxed);
    }
}

/// Updates the position after an unrecorded call has moved the descriptor.
pub(crate) fn moved(fd: c_int) {
    if entry(fd).is_some() {
        at(fd, position(fd));
    }
}

/// Stops tracking the descriptor because it may now refer to another file.
pub(crate) fn closed(fd: c_int) {
    at(fd, NOT_TRACKED);
}

pub(crate) fn forget_all() {
    for stream in &STREAMS {
        stream.position.store(NOT_TRACKED, Ordering::Relaxed);
    }
}

fn record_written(fd: c_int) {
    let Some(entry) = entry(fd) else { return };
    entry.pending.store(0, Ordering::Relaxed);
    let now = position(fd);
    let before = entry.position.swap(now, Ordering::Relaxed);
    if before >= 0 && now > before {
        data::record(Op::Write, fd, before as u64, (now - before) as u64);
    }
}

/// Flushes and records all tracked streams at the program's end, before the C library does.
pub(crate) fn flush_all() {
    for (fd, stream) in STREAMS.iter().enumerate() {
        let file = stream.file.load(Ordering::Relaxed);
        if stream.position.load(Ordering::Relaxed) == NOT_TRACKED || file.is_null() {
            continue;
        }
        // SAFETY: the stream is open, because closing a stream removes it from the table. A stream
        // that another thread has locked is skipped, because the lock might never be released.
        unsafe {
            if ftrylockfile(file) == 0 {
                fflush_unlocked(file);
                funlockfile(file);
                record_written(fd as c_int);
            }
        }
    }
}

unsafe extern "C" {
    fn ftrylockfile(stream: *mut FILE) -> c_int;
    fn funlockfile(stream: *mut FILE);
    fn fflush_unlocked(stream: *mut FILE) -> c_int;
}

/// Returns the flags of `open` that correspond to a mode of `fopen`.
///
/// # Safety
/// `mode` must be a C string.
unsafe fn flags_of(mode: *const c_char) -> c_int {
    // SAFETY: the caller guarantees this by the function's contract.
    let mode = unsafe { CStr::from_ptr(mode) }.to_bytes();
    let both = mode.contains(&b'+');
    let access = if both { libc::O_RDWR } else { libc::O_WRONLY };
    match mode.first() {
        Some(b'w') => libc::O_CREAT | libc::O_TRUNC | access,
        Some(b'a') => libc::O_CREAT | libc::O_APPEND | access,
        Some(b'r') if both => access,
        _ => libc::O_RDONLY,
    }
}

fn follow(stream: *mut FILE, flags: c_int, before: &Before) {
    let fd = descriptor(stream);
    if fd < 0 || flags & libc::O_ACCMODE == libc::O_RDONLY {
        return;
    }
    before.note_open(fd, flags);
    if flags & libc::O_ACCMODE == libc::O_RDWR {
        return; // Read-ahead moves the file position just as a write does.
    }
    let Some(entry) = STREAMS.get(fd as usize) else { return };
    if let Some(file) = File::open(fd) {
        let end = if flags & libc::O_APPEND != 0 { file.size as i64 } else { position(fd) };
        entry.file.store(stream, Ordering::Relaxed);
        entry.pending.store(0, Ordering::Relaxed);
        entry.position.store(end, Ordering::Relaxed);
    }
}

hook!(fopen | fopen64(path: *const c_char, mode: *const c_char) -> *mut FILE = ptr::null_mut(),
// SAFETY: the arguments are the caller's C strings.
|real| unsafe {
    let flags = flags_of(mode);
    let before = Before::opening(AT_FDCWD, path, flags);
    let stream = real();
    crate::after(|| follow(stream, flags, &before));
    stream
});
hook!(freopen | freopen64(path: *const c_char, mode: *const c_char, stream: *mut FILE)
-> *mut FILE = ptr::null_mut(), |real| {
    crate::after(|| closed(descriptor(stream)));
    // If the path is null, only the mode changes.
    if path.is_null() {
        return real();
    }
    // SAFETY: the arguments are the caller's C strings.
    let (flags, before) = unsafe {
        let flags = flags_of(mode);
        (flags, Before::opening(AT_FDCWD, path, flags))
    };
    let stream = real();
    crate::after(|| follow(stream, flags, &before));
    stream
});
hook!(fdopen(fd: c_int, mode: *const c_char) -> *mut FILE = ptr::null_mut(),
    // SAFETY: the mode is the caller's C string.
    stream => follow(stream, unsafe { flags_of(mode) } & !libc::O_CREAT, &Before::NotQueried));

hook!(fclose(stream: *mut FILE) -> c_int, |real| {
    crate::after(|| {
        let fd = descriptor(stream);
        if entry(fd).is_some() {
            // SAFETY: the pointer is an open stream of the program, and closing would also flush
            // it. If the flush fails, closing fails with the same error.
            unsafe { libc::fflush(stream) };
            record_written(fd);
            closed(fd);
        }
    });
    real()
});

hook!(fflush(stream: *mut FILE) -> c_int, _r => record_written(descriptor(stream)));

hook!(fwrite | fwrite_unlocked
(data: *const c_void, size: size_t, count: size_t, stream: *mut FILE) -> size_t = 0, |real| {
    let done = real();
    let fd = descriptor(stream);
    if let Some(entry) = entry(fd)
        && entry.pending.fetch_add(done.saturating_mul(size), Ordering::Relaxed) >= MEMORY_PAGE
    {
        crate::after(|| record_written(fd));
    }
    done
});

fn seeking(stream: *mut FILE, seek: impl FnOnce() -> c_int) -> c_int {
    let fd = descriptor(stream);
    if entry(fd).is_some() {
        crate::after(|| {
            // SAFETY: seeking also flushes the stream; its position shows the bytes written.
            unsafe { libc::fflush(stream) };
            record_written(fd);
        });
    }
    let result = seek();
    crate::after(|| moved(fd));
    result
}

hook!(fseek(stream: *mut FILE, offset: c_long, whence: c_int) -> c_int,
    |real| seeking(stream, real));
hook!(fseeko | fseeko64(stream: *mut FILE, offset: off_t, whence: c_int) -> c_int,
    |real| seeking(stream, real));
