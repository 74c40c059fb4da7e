//! Identifies the file behind a descriptor and records the file name once.

use crate::events::{self, Note, Op};
use crate::text::Text;
use libc::{c_char, c_int};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) dev: u32,
    pub(crate) ino: u64,
    pub(crate) nlink: u32,
    pub(crate) size: u64,
    kind: libc::mode_t,
}

impl File {
    /// Queries only the required fields: since Linux 6.13, a query of timestamps makes the
    /// program's next write store a more precise timestamp, which the file system must journal.
    ///
    /// # Safety
    /// `path` must be a C string (the kernel checks it).
    unsafe fn query(dirfd: c_int, path: *const c_char, flags: c_int) -> Option<Self> {
        let wanted = libc::STATX_TYPE | libc::STATX_INO | libc::STATX_NLINK | libc::STATX_SIZE;
        let mut stat = MaybeUninit::<libc::statx>::uninit();
        // SAFETY: the structure is read only after the kernel has filled it. This code makes a raw
        // system call because older C libraries have no such function.
        let stat = unsafe {
            let buffer = stat.as_mut_ptr();
            if libc::syscall(libc::SYS_statx, dirfd, path, flags, wanted, buffer) != 0 {
                return None;
            }
            stat.assume_init()
        };
        Some(Self {
            dev: (stat.stx_dev_major << 20) | (stat.stx_dev_minor & 0xf_ffff),
            ino: stat.stx_ino,
            nlink: stat.stx_nlink,
            size: stat.stx_size,
            kind: libc::mode_t::from(stat.stx_mode) & libc::S_IFMT,
        })
    }

    /// Returns the open file if it is a regular file or a block device.
    pub(crate) fn open(fd: c_int) -> Option<Self> {
        // SAFETY: the path is an empty C string.
        let file = unsafe { Self::query(fd, c"".as_ptr(), libc::AT_EMPTY_PATH) }?;
        (file.kind == libc::S_IFREG || file.kind == libc::S_IFBLK).then_some(file)
    }

    /// Returns the file with the given name; follows symbolic links if `follow`.
    ///
    /// # Safety
    /// `path` must be a C string (the kernel checks it).
    pub(crate) unsafe fn at(dirfd: c_int, path: *const c_char, follow: bool) -> Option<Self> {
        // SAFETY: the caller guarantees this by the function's contract.
        unsafe { Self::query(dirfd, path, if follow { 0 } else { libc::AT_SYMLINK_NOFOLLOW }) }
    }

    pub(crate) fn is_regular(&self) -> bool {
        self.kind == libc::S_IFREG
    }

    pub(crate) fn is_folder(&self) -> bool {
        self.kind == libc::S_IFDIR
    }

    pub(crate) fn same(&self, other: &Self) -> bool {
        self.dev == other.dev && self.ino == other.ino
    }

    pub(crate) fn note(&self) -> Note {
        Note { dev: self.dev, ino: self.ino, nlink: self.nlink, b: self.size, ..Note::default() }
    }

    fn key(&self) -> u64 {
        (self.ino ^ u64::from(self.dev).rotate_left(40)).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1
    }

    /// Returns the word that holds the file's key if its name is recorded.
    fn word(&self) -> Option<&'static AtomicU64> {
        events::named((self.key() >> 48) as usize)
    }

    /// Records the file name, unless a process in this capture has already recorded it.
    pub(crate) fn record_name(&self, fd: c_int) {
        if let Some(word) = self.word()
            && word.load(Ordering::Relaxed) != self.key()
        {
            word.store(self.key(), Ordering::Relaxed);
            let path = Text::of_descriptor(fd);
            events::note(Op::File, self.note(), &[path.bytes()]);
        }
    }

    /// Marks the file name as recorded because another event contains it.
    pub(crate) fn mark_named(&self) {
        if let Some(word) = self.word() {
            word.store(self.key(), Ordering::Relaxed);
        }
    }

    /// Clears the file's mark because its inode number may be reused.
    pub(crate) fn unmark_named(&self) {
        if let Some(word) = self.word()
            && word.load(Ordering::Relaxed) == self.key()
        {
            word.store(0, Ordering::Relaxed);
        }
    }
}
