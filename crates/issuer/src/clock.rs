//! The monotonic clock, and precise waits of a thread.

use std::num::NonZeroU64;

use rustix::process::setpriority_process;
use rustix::thread::set_current_timer_slack;
use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of the monotonic clock, as `time.monotonic_ns` of Python has them.
#[inline]
pub(crate) fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Lets sleeps of this thread end at their time instead of up to 50 µs later, and puts it ahead of
/// others where that is allowed.
pub(crate) fn be_punctual() {
    const NICENESS: i32 = -20;
    // A refusal is harmless.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let _ = setpriority_process(None, NICENESS);
}
