//! Which file a descriptor is, and telling its name once.

use crate::events::{self, NAMED, Note, Op};
use crate::text::Text;
use libc::{c_char, c_int};
use std::mem::MaybeUninit;
use std::sync::atomic::Ordering;

/// What is kept of a `stat`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) dev: u32,
    pub(crate) ino: u64,
    pub(crate) nlink: u32,
    pub(crate) size: u64,
    kind: libc::mode_t,
}

impl File {
    fn of(stat: &libc::stat) -> Self {
        Self {
            dev: (libc::major(stat.st_dev) << 20) | (libc::minor(stat.st_dev) & 0xf_ffff),
            ino: stat.st_ino,
            nlink: stat.st_nlink as u32,
            size: stat.st_size as u64,
            kind: stat.st_mode & libc::S_IFMT,
        }
    }

    /// An open file that holds data: a regular one or a block device.
    pub(crate) fn open(fd: c_int) -> Option<Self> {
        let mut stat = MaybeUninit::<libc::stat>::uninit();
        // SAFETY: read only after the kernel has filled it.
        let stat = unsafe {
            if libc::fstat(fd, stat.as_mut_ptr()) != 0 {
                return None;
            }
            stat.assume_init()
        };
        let file = Self::of(&stat);
        (file.kind == libc::S_IFREG || file.kind == libc::S_IFBLK).then_some(file)
    }

    /// Whatever has this name; links are followed if `follow`.
    ///
    /// # Safety
    /// `path` is a string of C (the kernel checks it).
    pub(crate) unsafe fn at(dirfd: c_int, path: *const c_char, follow: bool) -> Option<Self> {
        let mut stat = MaybeUninit::<libc::stat>::uninit();
        let flags = if follow { 0 } else { libc::AT_SYMLINK_NOFOLLOW };
        // SAFETY: read only after the kernel has filled it.
        unsafe {
            if libc::fstatat(dirfd, path, stat.as_mut_ptr(), flags) != 0 {
                return None;
            }
            Some(Self::of(&stat.assume_init()))
        }
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

    /// Tell the file's name, unless it was told by any process of this capture.
    pub(crate) fn tell(&self, fd: c_int) {
        let Some(word) = events::named(self.place()) else { return };
        if word.load(Ordering::Relaxed) == self.key() {
            return;
        }
        word.store(self.key(), Ordering::Relaxed);
        let path = Text::of_descriptor(fd);
        events::note(Op::File, self.note(), &[path.bytes()]);
    }

    /// The name has just been told along with something else.
    pub(crate) fn told(&self) {
        if let Some(word) = events::named(self.place()) {
            word.store(self.key(), Ordering::Relaxed);
        }
    }

    /// The number may be given to another file from now on.
    pub(crate) fn forget(&self) {
        if let Some(word) = events::named(self.place())
            && word.load(Ordering::Relaxed) == self.key()
        {
            word.store(0, Ordering::Relaxed);
        }
    }
}
