//! Hooks for calls that create, name, rename and remove files.

use crate::events::{self, CREATED, DIRECTORY, EXCHANGED, Note, Op, TRUNCATED, WITH_READS};
use crate::files::File;
use crate::next::hook;
use crate::stdio;
use crate::text::Text;
use libc::{AT_FDCWD, c_char, c_int, c_uint, mode_t, off_t};

/// File at a path, as it was before the path was opened.
pub(crate) enum Before {
    NotQueried,
    Nothing,
    File(File),
}

impl Before {
    /// # Safety
    /// `path` must be a C string.
    pub(crate) unsafe fn opening(dirfd: c_int, path: *const c_char, flags: c_int) -> Self {
        if !events::active() || flags & (libc::O_CREAT | libc::O_TRUNC) == 0 {
            return Self::NotQueried;
        }
        // SAFETY: the caller guarantees this by the function's contract.
        let file = crate::keeping_errno(|| unsafe { File::at(dirfd, path, true) });
        file.map_or(Self::Nothing, Self::File)
    }

    pub(crate) fn note_open(&self, fd: c_int, flags: c_int) {
        let writes = flags & libc::O_ACCMODE != libc::O_RDONLY;
        let wanted = writes || flags & libc::O_CREAT != 0 || events::has(WITH_READS);
        if fd < 0 || !wanted {
            return;
        }
        let Some(file) = File::open(fd) else { return };
        let nameless = flags & libc::O_TMPFILE == libc::O_TMPFILE;
        let what = match self {
            Self::Nothing if flags & libc::O_CREAT != 0 => CREATED,
            Self::File(old) if flags & libc::O_TRUNC != 0 && old.size > 0 => TRUNCATED,
            _ if nameless => CREATED,
            _ => 0,
        };
        opened(fd, file, what);
    }
}

fn opened(fd: c_int, file: File, flags: u8) {
    file.mark_named();
    let path = Text::of_descriptor(fd);
    events::note(Op::Open, Note { flags, ..file.note() }, &[path.bytes()]);
}

type Open = unsafe extern "C" fn(*const c_char, c_int, ...) -> c_int;
type OpenAt = unsafe extern "C" fn(c_int, *const c_char, c_int, ...) -> c_int;

/// # Safety
/// `path` is a C string.
unsafe fn opening(
    dirfd: c_int,
    path: *const c_char,
    flags: c_int,
    open: impl FnOnce() -> c_int,
) -> c_int {
    // SAFETY: the caller guarantees this by the function's contract.
    let before = unsafe { Before::opening(dirfd, path, flags) };
    let fd = open();
    crate::after(|| before.note_open(fd, flags));
    fd
}

// The mode, variadic in C, is always passed; the C library reads it only if the flags say so.
hook!(open | open64 | __open_2 | __open64_2
    (path: *const c_char, flags: c_int, mode: mode_t) -> c_int as Open,
    // SAFETY: the path is the caller's C string.
    |real| unsafe { opening(AT_FDCWD, path, flags, real) });
hook!(openat | openat64 | __openat_2 | __openat64_2
    (dirfd: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int as OpenAt,
    // SAFETY: the path is the caller's C string.
    |real| unsafe { opening(dirfd, path, flags, real) });
hook!(creat | creat64(path: *const c_char, mode: mode_t) -> c_int,
// SAFETY: the caller's C string.
|real| unsafe {
    opening(AT_FDCWD, path, libc::O_CREAT | libc::O_TRUNC | libc::O_WRONLY, real)
});

/// Records a file that a call inside the C library has created and opened.
fn made(fd: c_int) {
    if fd >= 0
        && let Some(file) = File::open(fd)
    {
        opened(fd, file, CREATED);
    }
}

hook!(mkstemp | mkstemp64(template: *mut c_char) -> c_int, fd => made(fd));
hook!(mkostemp | mkostemp64(template: *mut c_char, flags: c_int) -> c_int, fd => made(fd));
hook!(mkstemps(template: *mut c_char, suffix: c_int) -> c_int, fd => made(fd));
hook!(mkostemps(template: *mut c_char, suffix: c_int, flags: c_int) -> c_int, fd => made(fd));

// Records the close of an unlinked file because the close frees its space.
hook!(close(fd: c_int) -> c_int, |real| {
    crate::after(|| {
        stdio::closed(fd);
        if let Some(file) = File::open(fd)
            && file.nlink == 0
        {
            events::note(Op::Close, file.note(), &[]);
        }
    });
    real()
});

/// Records that a regular file's name was removed.
fn removed(file: &File, path: &Text) {
    if file.is_regular() {
        if file.nlink <= 1 {
            file.unmark_named();
        }
        events::note(Op::Unlink, file.note(), &[path.bytes()]);
    }
}

/// # Safety
/// `path` is a C string.
unsafe fn removing(dirfd: c_int, path: *const c_char, call: impl FnOnce() -> c_int) -> c_int {
    if !events::active() {
        return call();
    }
    // SAFETY: by the contract.
    let (file, name) = crate::keeping_errno(|| unsafe {
        (File::at(dirfd, path, false), Text::absolute(dirfd, path))
    });
    let result = call();
    if result == 0 {
        crate::after(|| {
            if let Some(file) = file {
                removed(&file, &name);
            }
        });
    }
    result
}

hook!(unlink | remove(path: *const c_char) -> c_int,
    // SAFETY: the caller's C string.
    |real| unsafe { removing(AT_FDCWD, path, real) });
hook!(unlinkat(dirfd: c_int, path: *const c_char, flags: c_int) -> c_int,
    // SAFETY: the caller's C string.
    |real| unsafe { removing(dirfd, path, real) });

/// A file name relative to a directory.
type Name = (c_int, *const c_char);

/// # Safety
/// Both names must be C strings.
unsafe fn renaming(from: Name, to: Name, flags: c_uint, call: impl FnOnce() -> c_int) -> c_int {
    if !events::active() {
        return call();
    }
    // SAFETY: by the contract.
    let [(file, old), (replaced, new)] = crate::keeping_errno(|| unsafe {
        [from, to].map(|(dirfd, path)| (File::at(dirfd, path, false), Text::absolute(dirfd, path)))
    });
    let result = call();
    let Some(file) = file else { return result };
    if result == 0 {
        crate::after(|| {
            let exchanged = flags & libc::RENAME_EXCHANGE != 0;
            let other = replaced.filter(|other| !other.same(&file));
            if let Some(other) = other
                && !exchanged
            {
                removed(&other, &new);
            }
            renamed(&file, &old, &new, if exchanged { EXCHANGED } else { 0 });
            if let Some(other) = other
                && exchanged
            {
                renamed(&other, &new, &old, EXCHANGED);
            }
        });
    }
    result
}

fn renamed(file: &File, old: &Text, new: &Text, flags: u8) {
    if file.is_regular() || file.is_folder() {
        let flags = flags | if file.is_folder() { DIRECTORY } else { 0 };
        let what = Note { flags, ..file.note() };
        events::note(Op::Rename, what, &[old.bytes(), b"\0", new.bytes()]);
    }
}

hook!(rename(from: *const c_char, to: *const c_char) -> c_int,
    // SAFETY: the names are the caller's C strings.
    |real| unsafe { renaming((AT_FDCWD, from), (AT_FDCWD, to), 0, real) });
hook!(renameat(from_dir: c_int, from: *const c_char, to_dir: c_int, to: *const c_char) -> c_int,
    // SAFETY: the names are the caller's C strings.
    |real| unsafe { renaming((from_dir, from), (to_dir, to), 0, real) });
hook!(renameat2(from_dir: c_int, from: *const c_char, to_dir: c_int, to: *const c_char,
    flags: c_uint) -> c_int,
    // SAFETY: the names are the caller's C strings.
    |real| unsafe { renaming((from_dir, from), (to_dir, to), flags, real) });

/// # Safety
/// `to` must be a C string.
unsafe fn linked(dirfd: c_int, to: *const c_char, result: c_int) {
    if result != 0 {
        return;
    }
    // SAFETY: by the contract.
    let (file, name) = unsafe { (File::at(dirfd, to, false), Text::absolute(dirfd, to)) };
    if let Some(file) = file.filter(File::is_regular) {
        events::note(Op::Link, file.note(), &[name.bytes()]);
    }
}

hook!(link(from: *const c_char, to: *const c_char) -> c_int,
    // SAFETY: the path is the caller's C string, which the real call has read.
    r => unsafe { linked(AT_FDCWD, to, r) });
hook!(linkat(from_dir: c_int, from: *const c_char, to_dir: c_int, to: *const c_char, flags: c_int)
    // SAFETY: the path is the caller's C string, which the real call has read.
    -> c_int, r => unsafe { linked(to_dir, to, r) });

/// # Safety
/// `path` is a C string.
unsafe fn shortened(path: *const c_char, size: off_t, result: c_int) {
    if result != 0 {
        return;
    }
    // SAFETY: by the contract.
    let (file, name) = unsafe { (File::at(AT_FDCWD, path, true), Text::absolute(AT_FDCWD, path)) };
    if let Some(file) = file.filter(File::is_regular) {
        file.mark_named();
        events::note(Op::File, file.note(), &[name.bytes()]);
        events::note(Op::Truncate, Note { a: size as u64, b: 0, ..file.note() }, &[]);
    }
}

hook!(truncate | truncate64(path: *const c_char, size: off_t) -> c_int,
    // SAFETY: the path is the caller's C string, which the real call has read.
    r => unsafe { shortened(path, size, r) });
