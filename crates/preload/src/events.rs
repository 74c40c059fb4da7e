//! Event file: its layout, and how slots are claimed and filled.
//!
//! The file is in native byte order (read by `writecliff.capture.events`) and contains a header of
//! 4096 bytes, a table that marks the files whose names are recorded (`NAMED` words), and slots of
//! 64 bytes. An event occupies one slot, plus one slot for every 62 bytes of text. The first byte
//! of a slot is written last; 0 marks a slot that was never completed.
//!
//! The file grows ahead of its writers by allocating blocks; the mapping covers its maximum size.
//! On a full disk, a write to a hole in the mapping would kill the program (SIGBUS), so events are
//! dropped and counted instead. In a program that locks all its memory (mlockall, as in Cassandra),
//! only the existing portion of the file is locked.

use crate::names;
use libc::{c_char, c_int, c_long};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering, fence};

const MAGIC: u64 = u64::from_le_bytes(*b"WCEVENT1");
const HEADER_BYTES: u64 = 4096;
const NAMED: usize = 8192;
const SLOTS_AT: u64 = HEADER_BYTES + (NAMED as u64) * 8;
const EVENT_SLOT_BYTES: u64 = 64;
const TEXT_PER_SLOT: usize = 62;
const STRETCH_SLOTS: u64 = 1 << 18; // 16 MiB
const CONTINUED: u8 = 255;

const STOPPED: u32 = 1;
pub(crate) const WITH_READS: u32 = 2;
pub(crate) const REPAIR_HINTS: u32 = 4;

#[repr(C)]
struct Header {
    magic: u64,
    capacity: u64,        // Capacity in slots.
    cursor: AtomicU64,    // Index of the next slot.
    allocated: AtomicU64, // Slots that have blocks on disk.
    dropped: AtomicU64,
    start_ns: u64,
    flags: AtomicU32,
}

#[derive(Clone, Copy)]
#[repr(u8)]
pub(crate) enum Op {
    Process = 1,
    Title = 2,
    Open = 3,
    File = 4,
    Write = 5,
    Read = 6,
    Fsync = 7,
    Truncate = 8,
    Unlink = 9,
    Rename = 10,
    Link = 11,
    Punch = 12,
    Hint = 13,
    Mmap = 14,
    Close = 15,
}

pub(crate) const CREATED: u8 = 1;
pub(crate) const TRUNCATED: u8 = 2;
pub(crate) const DIRECTORY: u8 = 4;
pub(crate) const EXCHANGED: u8 = 8;
pub(crate) const REPAIRED: u8 = 16;
/// Flag of a sync that was implied by a write, without a separate call.
pub(crate) const IMPLIED: u8 = 32;

/// Event fields except for time, process and thread, which are added when the event is recorded.
#[derive(Clone, Copy, Default)]
pub(crate) struct Note {
    pub(crate) flags: u8,
    pub(crate) errno: u16,
    pub(crate) dev: u32,
    pub(crate) nlink: u32,
    pub(crate) ino: u64,
    pub(crate) a: u64,
    pub(crate) b: u64,
}

#[repr(C)]
struct Slot {
    op: AtomicU8,
    flags: u8,
    errno: u16,
    pid: u32,
    time_ns: u64,
    ino: u64,
    dev: u32,
    nlink: u32,
    a: u64,
    b: u64,
    comm: [u8; 16],
}

static BASE: AtomicPtr<Header> = AtomicPtr::new(ptr::null_mut());
static PATH: AtomicPtr<c_char> = AtomicPtr::new(ptr::null_mut());

fn header() -> Option<&'static Header> {
    let base = BASE.load(Ordering::Acquire);
    // SAFETY: the pointer is set once, to a permanent mapping that starts with the header.
    if base.is_null() { None } else { Some(unsafe { &*base }) }
}

pub(crate) fn active() -> bool {
    header().is_some_and(|h| h.flags.load(Ordering::Relaxed) & STOPPED == 0)
}

/// Returns `true` if the capture was started with the option `flag`.
pub(crate) fn has(flag: u32) -> bool {
    header().is_some_and(|h| h.flags.load(Ordering::Relaxed) & flag != 0)
}

/// Returns a word of the table that marks the files whose names are recorded.
pub(crate) fn named(index: usize) -> Option<&'static AtomicU64> {
    let base = BASE.load(Ordering::Acquire);
    if base.is_null() {
        return None;
    }
    // SAFETY: the table lies between the header and the slots, and the index lies within the table.
    Some(unsafe { &*base.byte_add(HEADER_BYTES as usize).cast::<AtomicU64>().add(index % NAMED) })
}

/// Maps the event file named in the environment; without it, hooks only call real functions.
pub(crate) fn begin() {
    // SAFETY: these are plain C library calls whose results are checked.
    unsafe {
        let path = libc::getenv(c"WRITECLIFF_EVENTS".as_ptr());
        if path.is_null() {
            return;
        }
        let flags = libc::O_RDWR | libc::O_CLOEXEC;
        let fd = libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path, flags, 0) as c_int;
        if fd < 0 {
            return;
        }
        let mut header: [u64; 2] = [0; 2];
        let got = libc::pread(fd, header.as_mut_ptr().cast(), size_of_val(&header), 0);
        if got == size_of_val(&header) as isize && header[0] == MAGIC {
            // All arguments are full words: variadic calls pass an `int` in half a register, but
            // the kernel reads a whole register.
            let (anywhere, from): (usize, i64) = (0, 0);
            let size = SLOTS_AT + header[1] * EVENT_SLOT_BYTES;
            let access = (libc::PROT_READ | libc::PROT_WRITE) as c_long;
            let (shared, file) = (libc::MAP_SHARED as c_long, fd as c_long);
            let map = libc::syscall(libc::SYS_mmap, anywhere, size, access, shared, file, from);
            if map != -1 {
                // Copied: a program that rewrites its arguments also overwrites its environment.
                PATH.store(libc::strdup(path), Ordering::Release);
                BASE.store(map as *mut Header, Ordering::Release);
            }
        }
        libc::syscall(libc::SYS_close, fd);
    }
}

/// Claims `count` consecutive slots; if there is no space, counts a dropped event and returns
/// `None`.
fn claim(count: u64) -> Option<*mut Slot> {
    let header = header()?;
    if header.flags.load(Ordering::Relaxed) & STOPPED != 0 {
        return None;
    }
    let first = header.cursor.fetch_add(count, Ordering::Relaxed);
    let end = first + count;
    if end > header.capacity || !allocate(header, end) {
        header.dropped.fetch_add(1, Ordering::Relaxed);
        return None;
    }
    // SAFETY: the slot lies within the mapping, whose size follows from the capacity.
    Some(unsafe {
        let base = BASE.load(Ordering::Acquire);
        base.byte_add((SLOTS_AT + first * EVENT_SLOT_BYTES) as usize).cast::<Slot>()
    })
}

/// Ensures that all slots before `end` have blocks allocated on disk.
fn allocate(header: &Header, end: u64) -> bool {
    let have = header.allocated.load(Ordering::Acquire);
    if end <= have {
        return true;
    }
    let wanted = (end.div_ceil(STRETCH_SLOTS) * STRETCH_SLOTS).min(header.capacity);
    // SAFETY: raw system calls on the event file, harmless from several threads at once.
    unsafe {
        let path = PATH.load(Ordering::Acquire);
        let flags = libc::O_WRONLY | libc::O_CLOEXEC;
        let fd = libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path, flags, 0) as c_int;
        if fd < 0 {
            return false;
        }
        let (from, length) =
            (SLOTS_AT + have * EVENT_SLOT_BYTES, (wanted - have) * EVENT_SLOT_BYTES);
        let mut done = libc::syscall(libc::SYS_fallocate, fd, 0_i64, from, length) == 0;
        if !done && crate::errno() == libc::EOPNOTSUPP {
            let last = (from + length - 1) as libc::off_t;
            let nothing = [0u8];
            done = libc::syscall(libc::SYS_pwrite64, fd, nothing.as_ptr(), 1_usize, last) == 1;
        }
        libc::syscall(libc::SYS_close, fd);
        if !done {
            return false;
        }
    }
    header.allocated.fetch_max(wanted, Ordering::AcqRel);
    true
}

pub(crate) fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes only to `time`.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Records an event with `text` (a path, or two paths separated by a NUL).
pub(crate) fn note(op: Op, what: Note, text: &[&[u8]]) {
    names::refresh();
    put(op, what, text);
}

/// Records an event, like `note`, without updating the thread and process names.
pub(crate) fn put(op: Op, what: Note, text: &[&[u8]]) {
    let length: usize = text.iter().map(|part| part.len()).sum();
    let more = length.div_ceil(TEXT_PER_SLOT);
    let Some(slots) = claim(1 + more as u64) else { return };
    let mut bytes = text.iter().flat_map(|part| part.iter());
    for index in 0..more {
        let used = (length - index * TEXT_PER_SLOT).min(TEXT_PER_SLOT);
        // SAFETY: the slot was claimed by this thread.
        unsafe {
            let slot = slots.add(index + 1).cast::<u8>();
            for (offset, byte) in bytes.by_ref().take(used).enumerate() {
                *slot.add(2 + offset) = *byte;
            }
            *slot.add(1) = used as u8;
            (*slot.cast::<AtomicU8>()).store(CONTINUED, Ordering::Release);
        }
    }
    // SAFETY: the slot was claimed by this thread, and is not read before its first byte is set.
    unsafe {
        (*slots).flags = what.flags;
        (*slots).errno = what.errno;
        (*slots).pid = names::process();
        (*slots).time_ns = now_ns();
        (*slots).ino = what.ino;
        (*slots).dev = what.dev;
        (*slots).nlink = what.nlink;
        (*slots).a = what.a;
        (*slots).b = what.b;
        (*slots).comm = names::thread();
        fence(Ordering::Release);
        (*slots).op.store(op as u8, Ordering::Release);
    }
}
