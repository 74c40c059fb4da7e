//! Identifies the file of a descriptor and records its name once.

use crate::events::{self, NAMED, Note, Op};
use crate::text::Text;
use libc::{c_char, c_int};
use std::mem::MaybeUninit;
use std::sync::atomic::Ordering;

/// The fields of `statx` that are used.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) dev: u32,
    pub(crate) ino: u64,
    pub(crate) nlink: u32,
    pub(crate) size: u64,
    kind: libc::mode_t,
}

impl File {
    /// Only the fields that are requested. Times are left out on purpose: since Linux 6.13 querying
    /// them makes the next write of the program set a finer one and journal it.
    ///
    /// # Safety
    /// `path` is a C string (the kernel checks it).
    unsafe fn ask(dirfd: c_int, path: *const c_char, flags: c_int) -> Option<Self> {
        let wanted = libc::STATX_TYPE | libc::STATX_INO | libc::STATX_NLINK | libc::STATX_SIZE;
        let mut stat = MaybeUninit::<libc::statx>::uninit();
        // SAFETY: read only after the kernel has filled it. Raw, as older C libraries have no such
        // function.
        let stat = unsafe {
            let place = stat.as_mut_ptr();
            if libc::syscall(libc::SYS_statx, dirfd, path, flags, wanted, place) != 0 {
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

    /// An open file that holds data: a regular one or a block device.
    pub(crate) fn open(fd: c_int) -> Option<Self> {
        // SAFETY: an empty C string.
        let file = unsafe { Self::ask(fd, c"".as_ptr(), libc::AT_EMPTY_PATH) }?;
        (file.kind == libc::S_IFREG || file.kind == libc::S_IFBLK).then_some(file)
    }

    /// The file with this name; links are followed if `follow`.
    ///
    /// # Safety
    /// `path` is a C string (the kernel checks it).
    pub(crate) unsafe fn at(dirfd: c_int, path: *const c_char, follow: bool) -> Option<Self> {
        // SAFETY: by the contract.
        unsafe { Self::ask(dirfd, path, if follow { 0 } else { libc::AT_SYMLINK_NOFOLLOW }) }
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

    fn place(&self) -> usize {
        (self.key() >> 48) as usize % NAMED
    }

    /// Record the file's name, unless a process of this capture has done so.
    pub(crate) fn tell(&self, fd: c_int) {
        let Some(word) = events::named(self.place()) else { return };
        if word.load(Ordering::Relaxed) == self.key() {
            return;
        }
        word.store(self.key(), Ordering::Relaxed);
        let path = Text::of_descriptor(fd);
        events::note(Op::File, self.note(), &[path.bytes()]);
    }

    /// The name has just been recorded with another event.
    pub(crate) fn told(&self) {
        if let Some(word) = events::named(self.place()) {
            word.store(self.key(), Ordering::Relaxed);
        }
    }

    /// The inode number may be reused from now on.
    pub(crate) fn forget(&self) {
        if let Some(word) = events::named(self.place())
            && word.load(Ordering::Relaxed) == self.key()
        {
            word.store(0, Ordering::Relaxed);
        }
    }
}
