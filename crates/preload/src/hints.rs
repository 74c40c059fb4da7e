//! Hooks for write-lifetime hints: record the program's hint and the kernel's result.
//!
//! The kernel reads 64 bits, but some programs pass a 32-bit enumeration (RocksDB before its pull
//! request 12595). Since Linux 5.x, the kernel rejects a non-zero upper half. If repair is enabled,
//! such a call is repeated with only the lower half, which is the value that the program intended.

use crate::events::{self, Note, Op, REPAIR_HINTS, REPAIRED};
use crate::files::File;
use crate::next::real;
use libc::{c_int, c_ulong};

const F_SET_RW_HINT: c_int = 1036;
const F_SET_FILE_RW_HINT: c_int = 1038;
const HINTS: u64 = 6; // RWH_WRITE_LIFE_NOT_SET to RWH_WRITE_LIFE_EXTREME

type Real = unsafe extern "C" fn(c_int, c_int, ...) -> c_int;

unsafe fn control(real: Real, fd: c_int, command: c_int, argument: c_ulong) -> c_int {
    let before = crate::errno();
    // SAFETY: the caller's arguments are passed unchanged.
    let mut result = unsafe { real(fd, command, argument) };
    if (command != F_SET_RW_HINT && command != F_SET_FILE_RW_HINT) || !events::active() {
        return result;
    }
    let errno = crate::errno();
    if result != 0 && (errno == libc::EFAULT || errno == libc::EBADF) {
        return result; // The pointer or descriptor is invalid.
    }
    let mut left = errno;
    let mut hint_errno = if result == 0 { 0 } else { errno };
    // SAFETY: unless the kernel does not support the command, it has just read 8 bytes from this
    // address, aligned or not. Every caller passes at least 4 bytes.
    let low = u64::from(unsafe { (argument as *const u32).read_unaligned() });
    let mut flags = 0;
    if hint_errno == libc::EINVAL && low < HINTS && events::has(REPAIR_HINTS) {
        // SAFETY: the pointer refers to a local 64-bit value.
        if unsafe { real(fd, command, &raw const low) } == 0 {
            (result, hint_errno, flags, left) = (0, 0, REPAIRED, before);
        }
    }
    if let Some(file) = File::open(fd) {
        file.record_name(fd);
        let what =
            Note { flags, errno: hint_errno as u16, a: low, b: command as u64, ..file.note() };
        events::note(Op::Hint, what, &[]);
    }
    crate::set_errno(left);
    result
}

macro_rules! fcntl_hook {
    ($name:ident) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(fd: c_int, command: c_int, argument: c_ulong) -> c_int {
            let Some(real) = real!($name as Real) else { return -1 };
            // SAFETY: the caller's arguments are passed unchanged.
            unsafe { control(real, fd, command, argument) }
        }
    };
}

fcntl_hook!(fcntl);
fcntl_hook!(fcntl64);
