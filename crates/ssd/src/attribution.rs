//! Latency attribution: the causes of each command's time.
//!
//! The drive reports to a [`Recorder`] when work starts and ends. With [`Unrecorded`], the default,
//! all reports compile to nothing. [`Attribution`] charges the time of each command to causes, up
//! to the latest reported time, so the times by cause always add up to the latency.
//!
//! A command is attributed along its critical path; for a read with several pieces, this is the
//! piece that arrives last. While a command waits for a die, the causes are the die's activities
//! during the wait. While a write waits for buffer space, the causes are the activities of the die
//! that makes room at the end of the wait.

mod timeline;

use std::collections::VecDeque;
use std::ops::Range;

use writecliff_base::{Lpn, Nanos, Ppa, ReclaimUnitId};
use writecliff_ftl::Unwritten;
use writecliff_host_interface::{Arrival, Cause, TimeByCause};

use self::timeline::Timeline;

/// Times of a flash read of a command: from waiting for the channel to the end of retries.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlashRead {
    pub(crate) started: Nanos,
    pub(crate) addressed: Nanos,
    pub(crate) sensed: Nanos,
    pub(crate) corrected: Nanos,
}

/// Receives the causes of latency. `command` is the number in the command table.
pub trait Recorder: Default {
    /// `true` if the recorder records anything; guards code that only computes arguments.
    const RECORDS: bool = false;
    /// `true` if the recorder records changes that are not on flash.
    const KEEPS_UNWRITTEN: bool = false;
    /// `true` if a drive with this recorder enforces a limit on active dies. The check takes CPU
    /// time, so drives without a limit use a recorder with the value `false`.
    const LIMITS_DIES: bool = false;

    /// Records that the drive starts to process a command that arrived earlier.
    fn begun(&mut self, _command: u16, _arrival: Arrival, _now: Nanos) {}
    /// Charges all further time of the command until `until` to `cause`.
    fn spent(&mut self, _command: u16, _cause: Cause, _until: Nanos) {}
    /// Records that the firmware processes no commands from `from` to `until`.
    fn firmware_stalled(&mut self, _from: Nanos, _until: Nanos) {}
    /// Records that writes wait because of `cause` from now on.
    fn writes_wait(&mut self, _now: Nanos, _cause: Cause) {}
    /// Records that a write no longer waits.
    fn admitted(&mut self, _command: u16, _now: Nanos) {}
    /// Records that a die has made room in the write buffer.
    fn buffer_freed(&mut self, _die: u16, _now: Nanos) {}
    /// Records that a die delays commands by `activity` from `from` on; `None` if it is idle.
    fn die_does(&mut self, _die: u16, _from: Nanos, _activity: Option<Cause>) {}
    /// Records that a host read starts on a die.
    fn read_started(&mut self, _die: u16, _channel: u16, _read: FlashRead) {}
    /// Records the transfer of host read data from a die.
    fn read_transferred(&mut self, _die: u16, _begun: Nanos, _ended: Nanos) {}
    /// Records that the last data that a command needs were transferred from a die. `read` is the
    /// die, or the number used to report the times of the read.
    fn read_done(&mut self, _command: u16, _die: u16, _read: u16) {}
    /// Records the end of the last program that a command waits for.
    fn programmed(&mut self, _command: u16, _die: u16, _now: Nanos) {}
    /// Records that a channel starts no transfers from `from` to `until`.
    fn channel_stopped(&mut self, _channel: u16, _from: Nanos, _until: Nanos) {}
    /// Records that the command has completed at the host.
    fn completed(&mut self, _command: u16, _now: Nanos) {}

    /// Records that a host write or deallocation with this tag is about to be placed.
    fn writing(&mut self, _tag: u32) {}
    /// Records a host write that moved a page from `before` to `at`, not yet on flash.
    fn placed(&mut self, _lpn: Lpn, _at: Ppa, _before: Ppa) {}
    /// Records that the drive relocates a page, like [`Self::placed`] for host writes.
    fn moved(&mut self, lpn: Lpn, at: Ppa, before: Ppa) {
        self.placed(lpn, at, before);
    }
    /// Records the deallocation of a logical page that was at `before`.
    fn trimmed(&mut self, _lpn: Lpn, _before: Ppa) {}
    /// Returns `true` if a deallocation of this size is journaled at once, without `trimmed`.
    fn journals(&mut self, _first: Lpn, _slots: u32) -> bool {
        false
    }
    /// Records that all deallocations so far survive a power loss.
    fn journaled(&mut self) {}
    /// Records that the erase of a newly opened reclaim unit waits. Data placed in the unit from
    /// now on are not programmed before [`Self::released`].
    fn held(&mut self, _ppas: Range<u32>) {}
    /// Records that a held erase was issued.
    fn released(&mut self, _ppas: Range<u32>) {}
    /// Records that a program unit is on flash.
    fn unit_programmed(&mut self, _ppas: Range<u32>) {}
    /// Records that the blocks of a reclaim unit on a die are erased.
    fn erased(&mut self, _unit: ReclaimUnitId, _die: u32) {}
    /// Records that all reclaim units are erased.
    fn purged(&mut self) {}
    /// Takes the changes that are not on flash, newest first; `None` if none are recorded.
    fn take_unwritten(&mut self) -> Option<Vec<Unwritten>> {
        None
    }
    /// Records that the drive is idle and all full program units are on flash.
    fn settled(&mut self)
    where
        Self: Sized,
    {
        *self = Self::default();
    }

    /// Returns the times of the most recently completed command.
    fn last(&self) -> Option<&TimeByCause> {
        None
    }
}

/// Records nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unrecorded;

impl Recorder for Unrecorded {}

/// Charges the time of each command to its causes.
#[derive(Clone, Debug, Default)]
pub struct Attribution {
    /// By number.
    commands: Vec<Spent>,
    /// Commands in starting order; the first command is in flight.
    begun: VecDeque<(u16, Nanos)>,
    dies: Vec<DieRecord>,
    stops: Vec<Interval>,
    stall: Interval,
    /// Reason why writes currently wait.
    gate: Timeline,
    /// Die that last made room in the buffer, and the time.
    freed: (u16, Nanos),
    last: TimeByCause,
}

/// A command's time so far.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    in_flight: bool,
    begun: Nanos,
    /// End of the time that has already been charged to causes.
    until: Nanos,
    by_cause: TimeByCause,
}

#[derive(Clone, Debug, Default)]
struct DieRecord {
    activity: Timeline,
    channel: u16,
    read: FlashRead,
    transfer: Interval,
}

#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    from: Nanos,
    until: Nanos,
}

impl Spent {
    /// Charges the time until `until`, unless it has already been charged.
    #[inline]
    fn charge(&mut self, cause: Cause, until: Nanos) {
        if until > self.until {
            self.by_cause.add(cause, until - self.until);
            self.until = until;
        }
    }

    /// Charges the time until `until` to `cause`, except within `exception` with its own cause.
    fn charge_except(&mut self, cause: Cause, until: Nanos, exception: (Interval, Cause)) {
        let (interval, other) = exception;
        self.charge(cause, interval.from.min(until));
        self.charge(other, interval.until.min(until));
        self.charge(cause, until);
    }

    fn charge_die(&mut self, die: &Timeline, until: Nanos, otherwise: Cause) {
        die.walk(self.until, until, |activity, end| {
            self.charge(activity.unwrap_or(otherwise), end);
        });
    }
}

/// Returns the element at `index` of a vector that grows as needed.
fn grown<T: Clone + Default>(all: &mut Vec<T>, index: u16) -> &mut T {
    let index = usize::from(index);
    if index >= all.len() {
        all.resize(index + 1, T::default());
    }
    &mut all[index]
}

/// Returns the cause of a wait for buffer space, given the activity of the die that made room.
fn buffer_cause(activity: Option<Cause>) -> Cause {
    match activity {
        Some(Cause::Program) => Cause::BufferProgram,
        Some(Cause::Erase) => Cause::BufferErase,
        Some(Cause::Collection) => Cause::BufferCollection,
        _ => Cause::BufferOther,
    }
}

impl Attribution {
    /// Returns the earliest time that later queries may request.
    fn horizon(&self, now: Nanos) -> Nanos {
        self.begun.front().map_or(now, |&(_, begun)| begun)
    }
}

impl Recorder for Attribution {
    const RECORDS: bool = true;
    const LIMITS_DIES: bool = true;

    fn begun(&mut self, command: u16, arrival: Arrival, now: Nanos) {
        let by_cause = TimeByCause::default();
        debug_assert!(arrival.submitted <= arrival.entered && arrival.entered <= now);
        let spent = grown(&mut self.commands, command);
        *spent = Spent { in_flight: true, begun: now, until: arrival.submitted, by_cause };
        spent.charge(Cause::HostQueue, arrival.entered);
        spent.charge_except(Cause::Firmware, arrival.decoded, (self.stall, Cause::Housekeeping));
        spent.charge(Cause::Barrier, now);
        self.begun.push_back((command, now));
    }

    fn spent(&mut self, command: u16, cause: Cause, until: Nanos) {
        self.commands[usize::from(command)].charge(cause, until);
    }

    fn firmware_stalled(&mut self, from: Nanos, until: Nanos) {
        debug_assert!(from <= until, "a stall ends before it begins");
        self.stall = Interval { from, until };
    }

    fn writes_wait(&mut self, now: Nanos, cause: Cause) {
        let horizon = self.horizon(now);
        self.gate.push(now, Some(cause), horizon);
    }

    fn admitted(&mut self, command: u16, now: Nanos) {
        let spent = &mut self.commands[usize::from(command)];
        let (die, freed) = self.freed;
        let since = spent.until;
        let maker = (freed >= since).then(|| self.dies.get(usize::from(die))).flatten();
        self.gate.walk(since, now, |reason, end| match (reason, maker) {
            (Some(cause), _) if cause != Cause::BufferOther => spent.charge(cause, end),
            (_, None) => spent.charge(Cause::BufferOther, end),
            (_, Some(die)) => die.activity.walk(spent.until, end, |activity, end| {
                spent.charge(buffer_cause(activity), end);
            }),
        });
    }

    fn buffer_freed(&mut self, die: u16, now: Nanos) {
        self.freed = (die, now);
    }

    fn die_does(&mut self, die: u16, from: Nanos, activity: Option<Cause>) {
        let horizon = self.horizon(from);
        grown(&mut self.dies, die).activity.push(from, activity, horizon);
    }

    fn read_started(&mut self, die: u16, channel: u16, read: FlashRead) {
        let record = grown(&mut self.dies, die);
        record.channel = channel;
        record.read = read;
    }

    fn read_transferred(&mut self, die: u16, begun: Nanos, ended: Nanos) {
        self.dies[usize::from(die)].transfer = Interval { from: begun, until: ended };
    }

    fn read_done(&mut self, command: u16, die: u16, read: u16) {
        let spent = &mut self.commands[usize::from(command)];
        let activity = &self.dies[usize::from(die)].activity;
        let die = &self.dies[usize::from(read)];
        let stop = self.stops.get(usize::from(die.channel)).copied().unwrap_or_default();
        let stop = (stop, Cause::Throttling);
        spent.charge_die(activity, die.read.started, Cause::OtherReads);
        spent.charge_except(Cause::Channel, die.read.addressed, stop);
        spent.charge(Cause::Flash, die.read.sensed);
        spent.charge(Cause::ReadRetry, die.read.corrected);
        spent.charge_except(Cause::Channel, die.transfer.from, stop);
        spent.charge(Cause::Flash, die.transfer.until);
    }

    fn programmed(&mut self, command: u16, die: u16, now: Nanos) {
        let spent = &mut self.commands[usize::from(command)];
        let activity = &self.dies[usize::from(die)].activity;
        spent.charge_die(activity, activity.start_of_last(now), Cause::Flash);
        spent.charge(Cause::Flash, now);
    }

    fn channel_stopped(&mut self, channel: u16, from: Nanos, until: Nanos) {
        *grown(&mut self.stops, channel) = Interval { from, until };
    }

    fn completed(&mut self, command: u16, now: Nanos) {
        let spent = &mut self.commands[usize::from(command)];
        debug_assert_eq!(spent.until, now, "time of a command without a cause");
        debug_assert!(spent.in_flight && spent.begun <= now, "a command completed twice");
        spent.in_flight = false;
        self.last = spent.by_cause;
        while let Some(&(number, begun)) = self.begun.front() {
            let front = &self.commands[usize::from(number)];
            if front.in_flight && front.begun == begun {
                return;
            }
            self.begun.pop_front();
        }
    }

    fn last(&self) -> Option<&TimeByCause> {
        Some(&self.last)
    }
}
