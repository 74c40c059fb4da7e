//! The drive's virtual time as a function of wall time, and precise waits for virtual times.

use std::num::NonZeroU64;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Thread;
use std::time::{Duration, Instant};

use rustix::thread::set_current_timer_slack;
use writecliff_base::Nanos;

/// Maximum wake-up delay of a sleeping thread; threads spin for this last portion of a wait.
const SPIN_NS: u64 = 60_000;
/// Value of `asleep_until_ns` while the thread is awake.
const AWAKE: u64 = 0;

/// Wall clock and drive clock. Wall time is measured from the start of serving.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
    /// Drive time at the start of serving.
    origin: Nanos,
    pub(crate) slow_down: f64,
}

impl Clock {
    /// Creates the clocks. `slow_down` is the wall time per unit of drive time.
    pub fn new(origin: Nanos, slow_down: f64) -> Self {
        Self { start: Instant::now(), origin, slow_down }
    }

    /// Returns the wall time since the start of serving.
    pub fn wall(&self) -> Nanos {
        Nanos(self.start.elapsed().as_nanos() as u64)
    }

    /// Returns the drive time at wall time `wall`.
    pub fn drive_time(&self, wall: Nanos) -> Nanos {
        self.origin + Nanos((wall.0 as f64 / self.slow_down) as u64)
    }

    /// Returns the wall time at drive time `drive`.
    pub fn wall_time(&self, drive: Nanos) -> Nanos {
        Nanos((drive.saturating_sub(self.origin).0 as f64 * self.slow_down).ceil() as u64)
    }
}

/// A deadline that one thread waits for and other threads can bring forward. Another thread may
/// temporarily take over the wait ([`Self::attend`]), so that the waiting thread need not be woken.
#[derive(Debug)]
pub(crate) struct Alarm {
    /// Deadline in wall time; `u64::MAX` if there is none.
    deadline_ns: AtomicU64,
    /// Deadline that the waiting thread sleeps until.
    asleep_until_ns: AtomicU64,
    is_attended: AtomicBool,
    stopped: AtomicBool,
    waiter: OnceLock<Thread>,
}

impl Alarm {
    pub(crate) fn new() -> Self {
        Self {
            deadline_ns: AtomicU64::new(u64::MAX),
            asleep_until_ns: AtomicU64::new(AWAKE),
            is_attended: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            waiter: OnceLock::new(),
        }
    }

    /// Sets the deadline. Wakes the waiting thread if it would be late and no other thread attends.
    pub(crate) fn set(&self, deadline: Option<Nanos>) {
        let new = deadline.map_or(u64::MAX, |at| at.0);
        self.deadline_ns.store(new, Ordering::SeqCst);
        if !self.is_attended.load(Ordering::SeqCst) {
            self.wake_if_late();
        }
    }

    /// Takes over the wait, until [`Self::leave`]; returns `false` if another thread has done so.
    pub(crate) fn attend(&self) -> bool {
        !self.is_attended.swap(true, Ordering::SeqCst)
    }

    pub(crate) fn leave(&self) {
        self.is_attended.store(false, Ordering::SeqCst);
        self.wake_if_late();
    }

    /// Returns `true` if the deadline has passed; called by an attending thread.
    pub(crate) fn is_due(&self, clock: &Clock) -> bool {
        self.left(clock) == 0
    }

    /// Returns `true` if the calling, attending thread should spin until the deadline.
    pub(crate) fn is_soon(&self, clock: &Clock) -> bool {
        self.left(clock) <= SPIN_NS
    }

    fn left(&self, clock: &Clock) -> u64 {
        match self.deadline_ns.load(Ordering::SeqCst) {
            u64::MAX => u64::MAX,
            deadline => deadline.saturating_sub(clock.wall().0),
        }
    }

    fn wake_if_late(&self) {
        let deadline = self.deadline_ns.load(Ordering::SeqCst);
        if deadline < self.asleep_until_ns.load(Ordering::SeqCst) {
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

    /// Waits for the deadline, which may move meanwhile. Returns `false` if the wait was stopped.
    ///
    /// Sleeps until shortly before the deadline and then spins. Yielding to other threads instead
    /// of spinning would cost whole time slices (milliseconds) on a busy machine.
    pub(crate) fn wait(&self, clock: &Clock) -> bool {
        self.waiter.get_or_init(|| {
            // By default, the kernel may delay timers by 50 µs to wake several threads together.
            let _ = set_current_timer_slack(NonZeroU64::new(1));
            std::thread::current()
        });
        loop {
            if self.stopped.load(Ordering::SeqCst) {
                return false;
            }
            let deadline = self.deadline_ns.load(Ordering::SeqCst);
            let left = self.left(clock);
            match left {
                0..=SPIN_NS if self.is_attended.load(Ordering::SeqCst) => {
                    self.sleep(u64::MAX, None, || self.is_attended.load(Ordering::SeqCst));
                }
                0 => return true,
                1..=SPIN_NS => std::hint::spin_loop(),
                _ => {
                    let at_most = Duration::from_nanos(left - SPIN_NS);
                    let at_most = Some(at_most).filter(|_| deadline < u64::MAX);
                    let is_same = || self.deadline_ns.load(Ordering::SeqCst) == deadline;
                    self.sleep(deadline, at_most, is_same);
                }
            }
        }
    }

    /// Sleeps until a deadline while `has_reason` is true. A thread that makes the reason false
    /// after the check sees that this thread sleeps, and wakes it.
    fn sleep(&self, until: u64, at_most: Option<Duration>, has_reason: impl Fn() -> bool) {
        self.asleep_until_ns.store(until, Ordering::SeqCst);
        if has_reason() && !self.stopped.load(Ordering::SeqCst) {
            match at_most {
                Some(time) => std::thread::park_timeout(time),
                None => std::thread::park(),
            }
        }
        self.asleep_until_ns.store(AWAKE, Ordering::SeqCst);
    }
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

    #[test]
    fn an_alarm_that_is_attended_goes_off_when_it_is_left() {
        let (clock, alarm) = (Clock::new(Nanos::ZERO, 1.0), Arc::new(Alarm::new()));
        let rung = Arc::new(AtomicU64::new(0));
        let waiter = {
            let (alarm, rung) = (Arc::clone(&alarm), Arc::clone(&rung));
            std::thread::spawn(move || {
                while alarm.wait(&clock) {
                    alarm.set(None);
                    rung.fetch_add(1, Ordering::SeqCst);
                }
            })
        };
        for before in 0..50 {
            assert!(alarm.attend());
            assert!(!alarm.attend(), "another thread attends");
            alarm.set(Some(clock.wall() + Nanos::from_micros(10)));
            assert!(alarm.is_soon(&clock));
            while !alarm.is_due(&clock) {
                std::hint::spin_loop();
            }
            std::thread::sleep(Duration::from_micros(10 * before));
            assert_eq!(rung.load(Ordering::SeqCst), before);
            alarm.leave();
            while rung.load(Ordering::SeqCst) == before {
                std::thread::yield_now();
            }
        }
        alarm.stop();
        waiter.join().unwrap();
    }
}
