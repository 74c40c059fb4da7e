//! The drive's virtual time as a function of wall time, and waiting until a moment of it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Thread;
use std::time::{Duration, Instant};

use writecliff_base::Nanos;

/// A sleeping thread wakes up to this late, so the last part of a wait is spun.
const SPIN_NS: u64 = 60_000;

/// The two clocks. Wall time counts from when serving began.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
    /// The drive's time when serving began.
    origin: Nanos,
    slow_down: f64,
}

impl Clock {
    /// `slow_down` is how many nanoseconds of wall time one of the drive takes.
    pub fn new(origin: Nanos, slow_down: f64) -> Self {
        Self { start: Instant::now(), origin, slow_down }
    }

    pub fn slow_down(&self) -> f64 {
        self.slow_down
    }

    /// Wall time.
    pub fn wall(&self) -> Nanos {
        Nanos(self.start.elapsed().as_nanos() as u64)
    }

    /// The drive's time at `wall`.
    pub fn drive_time(&self, wall: Nanos) -> Nanos {
        self.origin + Nanos((wall.0 as f64 / self.slow_down) as u64)
    }

    /// The wall time at which the drive's time is `drive`.
    pub fn wall_time(&self, drive: Nanos) -> Nanos {
        Nanos((drive.saturating_sub(self.origin).0 as f64 * self.slow_down).ceil() as u64)
    }
}

/// A deadline that one thread waits for and others move forward.
#[derive(Debug)]
pub(crate) struct Alarm {
    /// In wall time; `u64::MAX` for none.
    deadline_ns: AtomicU64,
    stopped: AtomicBool,
    waiter: OnceLock<Thread>,
}

impl Alarm {
    pub(crate) fn new() -> Self {
        let deadline_ns = AtomicU64::new(u64::MAX);
        Self { deadline_ns, stopped: AtomicBool::new(false), waiter: OnceLock::new() }
    }

    /// Sets the deadline and wakes the waiting thread if it would wake too late.
    pub(crate) fn set(&self, deadline: Option<Nanos>) {
        let new = deadline.map_or(u64::MAX, |at| at.0);
        if new < self.deadline_ns.swap(new, Ordering::SeqCst) {
            self.wake();
        }
    }

    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.wake();
    }

    fn wake(&self) {
        if let Some(waiter) = self.waiter.get()
            && waiter.id() != std::thread::current().id()
        {
            waiter.unpark();
        }
    }

    /// Waits for the deadline, wherever it is moved meanwhile. Returns false when stopped.
    ///
    /// It sleeps until shortly before and then spins. To give way to other threads meanwhile would
    /// cost whole time slices, milliseconds, on a machine that has other work.
    pub(crate) fn wait(&self, clock: &Clock) -> bool {
        self.waiter.get_or_init(|| {
            fine_timer();
            std::thread::current()
        });
        loop {
            if self.stopped.load(Ordering::SeqCst) {
                return false;
            }
            let deadline = self.deadline_ns.load(Ordering::SeqCst);
            if deadline == u64::MAX {
                std::thread::park();
                continue;
            }
            let left = deadline.saturating_sub(clock.wall().0);
            match left {
                0 => return true,
                1..=SPIN_NS => std::hint::spin_loop(),
                _ => std::thread::park_timeout(Duration::from_nanos(left - SPIN_NS)),
            }
        }
    }
}

/// Lets the timers of this thread end on time; by default the kernel may delay them by 50 µs to
/// wake several threads at once.
fn fine_timer() {
    // SAFETY: sets a property of the calling thread; it has no pointers.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64, 0_u64, 0_u64, 0_u64) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn the_two_times_are_each_others_inverse() {
        for slow_down in [1.0, 10.0, 2.5] {
            let clock = Clock::new(Nanos(7_000), slow_down);
            for wall in [0, 1, 999, 86_400_000_000_000] {
                let drive = clock.drive_time(Nanos(wall));
                assert!(clock.wall_time(drive).0.abs_diff(wall) <= slow_down as u64);
                assert!(clock.drive_time(clock.wall_time(drive)).0.abs_diff(drive.0) <= 1);
            }
        }
        assert_eq!(Clock::new(Nanos(7), 10.0).wall_time(Nanos(1_007)), Nanos(10_000));
    }

    #[test]
    fn an_alarm_never_goes_off_early_and_can_be_moved_forward() {
        let (clock, alarm) = (Clock::new(Nanos::ZERO, 1.0), Arc::new(Alarm::new()));
        let waiter = {
            let alarm = Arc::clone(&alarm);
            std::thread::spawn(move || {
                let mut at = Vec::new();
                while alarm.wait(&clock) {
                    at.push(clock.wall());
                    alarm.set(None);
                }
                at
            })
        };
        alarm.set(Some(Nanos::from_secs(3600)));
        std::thread::sleep(Duration::from_millis(5));
        let soon = clock.wall() + Nanos::from_micros(300);
        alarm.set(Some(soon));
        while alarm.deadline_ns.load(Ordering::SeqCst) != u64::MAX {
            std::thread::yield_now();
        }
        alarm.stop();
        let at = waiter.join().unwrap();
        assert!(at.len() == 1 && at[0] >= soon && at[0] < Nanos::from_secs(3000));
    }
}
