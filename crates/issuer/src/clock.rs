//! Monotonic clock, and precise waits of a thread.

use std::num::NonZeroU64;

use rustix::process::setpriority_process;
use rustix::thread::set_current_timer_slack;
use rustix::time::{ClockId, clock_gettime};

/// Returns the monotonic clock time in nanoseconds, like Python's `time.monotonic_ns`.
#[inline]
pub(crate) fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Ends sleeps of this thread on time, not up to 50 µs late, and raises its priority if permitted.
pub(crate) fn be_punctual() {
    const NICENESS: i32 = -20;
    // A failure of this call is harmless.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let _ = setpriority_process(None, NICENESS);
}
