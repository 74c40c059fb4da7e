//! Thread and process names. A thread's name is queried from the kernel when the thread is first
//! seen, after any thread was renamed through the C library, and every 50 ms. Querying it each time
//! would double the cost of an event.

use crate::events::{self, Note, Op};
use crate::next::hook;
use crate::text::Text;
use libc::{c_char, c_int, c_ulong};
use std::cell::Cell;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

const STALE_NS: u64 = 50_000_000;
const TITLE_QUERIES: u8 = 2;

static PROCESS: AtomicU32 = AtomicU32::new(0);
static RENAMES: AtomicU32 = AtomicU32::new(1);
static TITLES: AtomicU8 = AtomicU8::new(0);

#[derive(Clone, Copy)]
struct Known {
    comm: [u8; 16],
    queried_ns: u64,
    renames: u32,
}

const UNKNOWN: Known = Known { comm: [0; 16], queried_ns: 0, renames: 0 };

thread_local! {
    static KNOWN: Cell<Known> = const { Cell::new(UNKNOWN) };
}

pub(crate) fn process() -> u32 {
    PROCESS.load(Ordering::Relaxed)
}

pub(crate) fn thread() -> [u8; 16] {
    KNOWN.with(Cell::get).comm
}

pub(crate) fn refresh() {
    let cached = KNOWN.with(Cell::get);
    let renames = RENAMES.load(Ordering::Relaxed);
    let now = events::now_ns();
    if cached.renames == renames && now.wrapping_sub(cached.queried_ns) < STALE_NS {
        return;
    }
    let mut comm = [0u8; 16];
    // SAFETY: the kernel writes at most 16 bytes; the call is raw because `prctl` is hooked.
    unsafe { libc::syscall(libc::SYS_prctl, libc::PR_GET_NAME, comm.as_mut_ptr()) };
    KNOWN.with(|cell| cell.set(Known { comm, queried_ns: now, renames }));
    if TITLES.load(Ordering::Relaxed) < TITLE_QUERIES {
        TITLES.fetch_add(1, Ordering::Relaxed);
        title();
    }
}

/// Records the process title shown by `ps`, where servers such as PostgreSQL describe the role of a
/// process. The first events of a process read it, when the program has already set it.
fn title() {
    let mut bytes = [0u8; 128];
    // SAFETY: the length is the buffer's; the calls are raw because their functions are hooked.
    let got = unsafe {
        let (path, flags) = (c"/proc/self/cmdline".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        let fd = libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path, flags, 0) as c_int;
        if fd < 0 {
            return;
        }
        let got = libc::syscall(libc::SYS_read, fd, bytes.as_mut_ptr(), bytes.len());
        libc::syscall(libc::SYS_close, fd);
        got
    };
    let length = usize::try_from(got).unwrap_or(0);
    events::put(Op::Title, Note::default(), &[&bytes[..length]]);
}

fn announce() {
    // SAFETY: the call takes no arguments and cannot fail.
    let (process, parent) = unsafe { (libc::syscall(libc::SYS_getpid), libc::getppid()) };
    PROCESS.store(process as u32, Ordering::Relaxed);
    TITLES.store(0, Ordering::Relaxed);
    RENAMES.fetch_add(1, Ordering::Relaxed);
    let program = Text::of_link(c"/proc/self/exe");
    let what = Note { a: parent as u64, ..Note::default() };
    events::note(Op::Process, what, &[program.bytes()]);
}

extern "C" fn forked() {
    crate::stdio::forget_all();
    if events::active() {
        announce();
    }
}

/// Runs once in each started program.
pub(crate) fn begin() {
    // SAFETY: the handler exists as long as this library, which is never unloaded.
    unsafe { libc::pthread_atfork(None, None, Some(forked)) };
    announce();
}

fn renamed() {
    RENAMES.fetch_add(1, Ordering::Relaxed);
}

hook!(pthread_setname_np(thread: libc::pthread_t, name: *const c_char) -> c_int, _r => renamed());

type Prctl = unsafe extern "C" fn(c_int, ...) -> c_int;

// The C function is variadic. All callers pass integers, which have the same calling convention.
hook!(prctl(option: c_int, a: c_ulong, b: c_ulong, c: c_ulong, d: c_ulong) -> c_int as Prctl,
|real| {
    let result = real();
    if option == libc::PR_SET_NAME {
        renamed();
    }
    result
});
