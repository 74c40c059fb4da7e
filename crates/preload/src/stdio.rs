//! Hooks for streams of the C library (`FILE *`). The C library writes stream buffers without
//! calling any hook, so a stream's writes are derived from the position of its descriptor: after a
//! flush, a close, every page of `fwrite`, and at the end of the program. Small writes are
//! therefore merged.
//!
//! Only streams that this process opened for writing alone are tracked: read-ahead moves a
//! descriptor as well, and other processes move an inherited one.

use crate::data;
use crate::events::Op;
use crate::files::File;
use crate::namespace::Before;
use crate::next::{hook, real};
use libc::{AT_FDCWD, FILE, c_char, c_int, c_long, c_void, off_t, size_t};
use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::{AtomicI64, AtomicPtr, AtomicUsize, Ordering};

const TRACKED: usize = 1024; // descriptors; higher ones are not tracked
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
    let found = STREAMS.get(usize::try_from(fd).ok()?)?;
    (found.position.load(Ordering::Relaxed) != NOT_TRACKED).then_some(found)
}

fn position(fd: c_int) -> off_t {
    // SAFETY: only queries the position.
    unsafe { libc::lseek(fd, 0, libc::SEEK_CUR) }
}

/// Returns the descriptor of a stream, -1 for one without, such as that of `fmemopen`. Preserves
/// `errno`, which `fileno` sets for those.
fn descriptor(stream: *mut FILE) -> c_int {
    if stream.is_null() {
        return -1;
    }
    let errno = crate::errno();
    // SAFETY: a stream of the program.
    let fd = unsafe { libc::fileno(stream) };
    crate::set_errno(errno);
    fd
}

/// Updates the position after a hooked call has moved the descriptor to `position`.
pub(crate) fn at(fd: c_int, position: off_t) {
    if let Some(entry) = entry(fd) {
        entry.position.store(position, Ordering::Relaxed);
    }
}

/// Updates the position after a call that is not recorded has moved the descriptor.
pub(crate) fn moved(fd: c_int) {
    if entry(fd).is_some() {
        at(fd, position(fd));
    }
}

/// Stops tracking the descriptor, which may refer to another file from now on.
pub(crate) fn closed(fd: c_int) {
    at(fd, NOT_TRACKED);
}

pub(crate) fn forget_all() {
    for stream in &STREAMS {
        stream.position.store(NOT_TRACKED, Ordering::Relaxed);
    }
}

/// Records what the stream has written since the last check.
fn record_written(fd: c_int) {
    let Some(entry) = entry(fd) else { return };
    entry.pending.store(0, Ordering::Relaxed);
    let now = position(fd);
    let before = entry.position.swap(now, Ordering::Relaxed);
    if before >= 0
        && now > before
        && let Some(file) = File::open(fd)
    {
        file.record_name(fd);
        data::note(Op::Write, file, before as u64, (now - before) as u64);
    }
}

/// Flushes and records all tracked streams at the end of the program, before the C library flushes
/// them.
pub(crate) fn flush_all() {
    for (fd, stream) in STREAMS.iter().enumerate() {
        let file = stream.file.load(Ordering::Relaxed);
        if stream.position.load(Ordering::Relaxed) == NOT_TRACKED || file.is_null() {
            continue;
        }
        // SAFETY: an open stream, because closing it removes it from the table. One that another
        // thread holds is skipped, because waiting for it might never end.
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

/// The flags of `open` that correspond to a mode of `fopen`.
///
/// # Safety
/// `mode` is a C string.
unsafe fn flags_of(mode: *const c_char) -> c_int {
    // SAFETY: by the contract.
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
        return; // read-ahead moves the descriptor just as writing does
    }
    let Some(entry) = STREAMS.get(fd as usize) else { return };
    if let Some(file) = File::open(fd) {
        let end = if flags & libc::O_APPEND != 0 { file.size as i64 } else { position(fd) };
        entry.file.store(stream, Ordering::Relaxed);
        entry.pending.store(0, Ordering::Relaxed);
        entry.position.store(end, Ordering::Relaxed);
    }
}

macro_rules! fopen_hooks {
    ($($name:ident $again:ident,)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(path: *const c_char, mode: *const c_char) -> *mut FILE {
            type Real = unsafe extern "C" fn(*const c_char, *const c_char) -> *mut FILE;
            let Some(real) = real!($name as Real) else { return ptr::null_mut() };
            // SAFETY: the caller's arguments, passed on.
            unsafe {
                let flags = flags_of(mode);
                let before = Before::opening(AT_FDCWD, path, flags);
                let stream = real(path, mode);
                crate::after(|| follow(stream, flags, &before));
                stream
            }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $again(
            path: *const c_char,
            mode: *const c_char,
            stream: *mut FILE,
        ) -> *mut FILE {
            type Real =
                unsafe extern "C" fn(*const c_char, *const c_char, *mut FILE) -> *mut FILE;
            let Some(real) = real!($again as Real) else { return ptr::null_mut() };
            crate::after(|| closed(descriptor(stream)));
            // SAFETY: the caller's arguments, passed on. Without a path only the mode changes.
            unsafe {
                if path.is_null() {
                    return real(path, mode, stream);
                }
                let flags = flags_of(mode);
                let before = Before::opening(AT_FDCWD, path, flags);
                let stream = real(path, mode, stream);
                crate::after(|| follow(stream, flags, &before));
                stream
            }
        }
    )*};
}

fopen_hooks! {
    fopen freopen,
    fopen64 freopen64,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fdopen(fd: c_int, mode: *const c_char) -> *mut FILE {
    type Real = unsafe extern "C" fn(c_int, *const c_char) -> *mut FILE;
    let Some(real) = real!(fdopen as Real) else { return ptr::null_mut() };
    // SAFETY: the caller's arguments, passed on.
    unsafe {
        let stream = real(fd, mode);
        crate::after(|| follow(stream, flags_of(mode) & !libc::O_CREAT, &Before::NotQueried));
        stream
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fclose(stream: *mut FILE) -> c_int {
    type Real = unsafe extern "C" fn(*mut FILE) -> c_int;
    let Some(real) = real!(fclose as Real) else { return -1 };
    crate::after(|| {
        let fd = descriptor(stream);
        if entry(fd).is_some() {
            // SAFETY: a stream of the program, which closing would flush as well. If that fails,
            // closing fails in the same way.
            unsafe { libc::fflush(stream) };
            record_written(fd);
            closed(fd);
        }
    });
    // SAFETY: the caller's argument, passed on.
    unsafe { real(stream) }
}

hook!(fflush(stream: *mut FILE) -> c_int, _r => record_written(descriptor(stream)));

macro_rules! fwrite_hook {
    ($name:ident) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            data: *const c_void,
            size: size_t,
            count: size_t,
            stream: *mut FILE,
        ) -> size_t {
            type Real = unsafe extern "C" fn(*const c_void, size_t, size_t, *mut FILE) -> size_t;
            let Some(real) = real!($name as Real) else { return 0 };
            // SAFETY: the caller's arguments, passed on.
            let done = unsafe { real(data, size, count, stream) };
            let fd = descriptor(stream);
            if let Some(entry) = entry(fd)
                && entry.pending.fetch_add(done.saturating_mul(size), Ordering::Relaxed)
                    >= MEMORY_PAGE
            {
                crate::after(|| record_written(fd));
            }
            done
        }
    };
}

fwrite_hook!(fwrite);
fwrite_hook!(fwrite_unlocked);

macro_rules! fseek_hook {
    ($name:ident($offset:ty)) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(stream: *mut FILE, offset: $offset, whence: c_int) -> c_int {
            type Real = unsafe extern "C" fn(*mut FILE, $offset, c_int) -> c_int;
            let Some(real) = real!($name as Real) else { return -1 };
            let fd = descriptor(stream);
            if entry(fd).is_some() {
                crate::after(|| {
                    // SAFETY: seeking flushes as well; the position shows how much.
                    unsafe { libc::fflush(stream) };
                    record_written(fd);
                });
            }
            // SAFETY: the caller's arguments, passed on.
            let result = unsafe { real(stream, offset, whence) };
            crate::after(|| moved(fd));
            result
        }
    };
}

fseek_hook!(fseek(c_long));
fseek_hook!(fseeko(off_t));
fseek_hook!(fseeko64(off_t));
