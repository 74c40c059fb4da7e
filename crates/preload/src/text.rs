//! Paths in fixed-size buffers, because hooks must not allocate memory.

use libc::{c_char, c_int};
use std::ffi::CStr;
use std::io::Write;

const PATH_BYTES: usize = libc::PATH_MAX as usize;

/// A path of at most `PATH_MAX` bytes; longer paths are truncated.
pub(crate) struct Text {
    bytes: [u8; PATH_BYTES],
    length: usize,
}

impl Text {
    fn new() -> Self {
        Self { bytes: [0; PATH_BYTES], length: 0 }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn push(&mut self, text: &[u8]) {
        let taken = text.len().min(PATH_BYTES - self.length);
        self.bytes[self.length..self.length + taken].copy_from_slice(&text[..taken]);
        self.length += taken;
    }

    /// Returns the target of the symbolic link `link`; empty if the link does not exist.
    pub(crate) fn of_link(link: &CStr) -> Self {
        let mut text = Self::new();
        // SAFETY: the length equals the buffer length.
        let got = unsafe {
            libc::readlink(link.as_ptr(), text.bytes.as_mut_ptr().cast::<c_char>(), PATH_BYTES)
        };
        text.length = usize::try_from(got).unwrap_or(0);
        text
    }

    /// Returns the kernel's path for an open file.
    pub(crate) fn of_descriptor(fd: c_int) -> Self {
        let mut name = [0; 32];
        let written = write!(&mut name[..], "/proc/self/fd/{fd}"); // No allocation.
        debug_assert!(written.is_ok(), "the name of a descriptor has at most 25 bytes");
        CStr::from_bytes_until_nul(&name).map_or_else(|_| Self::new(), Self::of_link)
    }

    /// Makes `path`, which is relative to the directory `dirfd`, absolute without normalising it.
    ///
    /// # Safety
    /// `path` must be null or a C string.
    pub(crate) unsafe fn absolute(dirfd: c_int, path: *const c_char) -> Self {
        if path.is_null() {
            return Self::new();
        }
        // SAFETY: the caller guarantees this by the function's contract.
        let path = unsafe { CStr::from_ptr(path) }.to_bytes();
        let mut text = if path.first() == Some(&b'/') {
            Self::new()
        } else if dirfd == libc::AT_FDCWD {
            Self::of_link(c"/proc/self/cwd")
        } else {
            Self::of_descriptor(dirfd)
        };
        if text.length > 0 {
            text.push(b"/");
        }
        text.push(path);
        text
    }
}
