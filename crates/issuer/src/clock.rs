//! The monotonic clock, and what a thread needs to wait for its times.

use std::mem::MaybeUninit;

/// Nanoseconds of the monotonic clock, as `time.monotonic_ns` of Python has them.
#[inline]
pub(crate) fn now_ns() -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the call fills the structure; this clock always exists.
    let time = unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, time.as_mut_ptr());
        time.assume_init()
    };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Lets sleeps of this thread end at their time instead of up to 50 µs later, and puts it ahead of
/// others where that is allowed.
pub(crate) fn be_punctual() {
    const NICENESS: i32 = -20;
    // SAFETY: both change the calling thread alone and take plain numbers; a refusal is no harm.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64, 0_u64, 0_u64, 0_u64);
        libc::setpriority(libc::PRIO_PROCESS, 0, NICENESS);
    }
}
