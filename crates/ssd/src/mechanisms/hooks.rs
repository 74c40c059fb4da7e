//! Hooks that connect a drive's mechanisms with its commands.
//!
//! The drive decodes commands, places data and completes commands. At each of these steps, the
//! drive calls a hook of each of its mechanisms, in the order of the list in `mod.rs`. A mechanism
//! implements the hooks that it needs. The calls are static: a hook that no mechanism in the list
//! implements compiles to nothing. A drive skips [`steps`] in which no mechanism takes part.
//!
//! A mechanism lists its state fields in `saved!`, which saves and restores them with the drive;
//! its configuration is not part of a saved state.

use writecliff_base::fields::Saved;
use writecliff_base::{Lpn, Nanos, SLOT_BYTES};
use writecliff_host_interface::{Command, Status};

use crate::{DeviceConfig, FillId, ReadFor, Recorder, Ssd, SsdEvent};

/// A host write that is about to be placed, or a host read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access<'a> {
    pub command: &'a Command,
    pub first: Lpn,
    pub slots: u32,
    /// Number of the command; `None` on the fast-forward clock.
    pub number: Option<u16>,
}

impl<'a> Access<'a> {
    pub(crate) fn untimed(command: &'a Command) -> Self {
        let first = command.offset / SLOT_BYTES;
        let end = (command.offset + u64::from(command.length)).div_ceil(SLOT_BYTES);
        let (first, slots) = (Lpn(first as u32), (end - first) as u32);
        Self { command, first, slots, number: None }
    }
}

/// Slots that the firmware has mapped for a write.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MappedSlots {
    /// Number of host slots, including slots that complete a large unit.
    pub host: u32,
    pub moved: u64,
    /// Number of slots that are partly written and merged with their old data.
    pub merged: u32,
    pub folded: u64,
    /// Number of program and erase suspensions since the previous write.
    pub suspensions: u64,
}

/// Timing of flash owned by a mechanism.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Medium {
    /// tR.
    pub read: Nanos,
    /// tPROG of a page on all planes.
    pub program: Nanos,
}

/// Drive steps in which mechanisms take part, as bits.
pub(crate) mod steps {
    /// Start of a command.
    pub(crate) const COMMANDS: u8 = 1;
    /// Reads, which may fail, wait or take firmware time.
    pub(crate) const READS: u8 = 2;
    /// Data placement, both with timing and in fast-forward.
    pub(crate) const WRITES: u8 = 4;
    /// Firmware time of a placed write.
    pub(crate) const MAPPING: u8 = 8;
    /// Admission of writes to the buffer, which may have to wait.
    pub(crate) const ADMISSION: u8 = 16;
    /// End of a program.
    pub(crate) const PROGRAMS: u8 = 32;
}

/// A mechanism of a drive. While a hook has the drive, the drive lacks the mechanism.
pub(crate) trait Mechanism: Saved {
    /// Steps of the drive in which the mechanism takes part.
    const STEPS: u8;

    /// Returns the mechanism for a new drive; `None` if the drive does not have it.
    fn of(config: &DeviceConfig) -> Option<Box<Self>>;

    /// Returns the timing of the mechanism's own flash; `None` if it owns no flash.
    fn medium(_config: &DeviceConfig) -> Option<Medium> {
        None
    }

    /// Does the work that is due before a command is decoded.
    fn before_command<R: Recorder>(&mut self, drive: &mut Ssd<R>) {
        while self.works(drive, drive.storage.backend.now) {}
    }

    fn command_begins<R: Recorder>(&mut self, _drive: &mut Ssd<R>) {}

    /// Returns the additional latency of a command.
    fn command_delay(&mut self) -> Nanos {
        Nanos::ZERO
    }

    /// Returns `true` if no write may enter the buffer now; an event follows when one may.
    fn holds_writes<R: Recorder>(&mut self, _drive: &mut Ssd<R>) -> bool {
        false
    }

    fn before_write<R: Recorder>(&mut self, _drive: &mut Ssd<R>, _write: &Access<'_>) {}

    /// Called after a write was placed during timed simulation.
    fn after_write(&mut self, _now: Nanos, _mapped: &MappedSlots) {}

    /// Returns `true` if a read must wait. The mechanism resumes the read in [`Self::due`].
    fn holds_read<R: Recorder>(&mut self, _drive: &mut Ssd<R>, _read: &Access<'_>) -> bool {
        false
    }

    /// Returns the outcome of a read; `outcome` is the outcome before this mechanism.
    fn read(&mut self, _read: &Access<'_>, outcome: Status) -> Status {
        outcome
    }

    /// Handles the deallocation of a slot by the host.
    fn trimmed(&mut self, _lpn: Lpn) {}

    /// Handles the end of a program of host data or relocated data.
    fn programmed<R: Recorder>(&mut self, _drive: &mut Ssd<R>) {}

    /// Called at an event or flash read of the mechanism. Returns `true` to admit writes.
    fn due<R: Recorder>(&mut self, _drive: &mut Ssd<R>, _token: u16) -> bool {
        false
    }

    /// Returns the time of the next work, which an idle drive does then; `None` after `until`.
    fn next_work<R: Recorder>(&self, _drive: &Ssd<R>, _until: Nanos) -> Option<Nanos> {
        None
    }

    /// Does the work that came due according to [`Self::next_work`].
    fn work<R: Recorder>(&mut self, _drive: &mut Ssd<R>) {}

    /// Does the next work if it is due at `now`; returns `true` if it was due.
    fn works<R: Recorder>(&mut self, drive: &mut Ssd<R>, now: Nanos) -> bool {
        let is_due = self.next_work(drive, now).is_some();
        if is_due {
            self.work(drive);
        }
        is_due
    }

    fn purged(&mut self) {}

    /// Called when the drive starts again after a power loss, which discards scheduled events.
    fn powered_up(&mut self) {}

    /// Returns the number of slots programmed in flash that the FTL does not allocate.
    fn own_slots<R: Recorder>(&self, _drive: &Ssd<R>) -> u64 {
        0
    }

    /// Returns the fills that wait for the mechanism, once per wait.
    fn waiting_fills(&self) -> Vec<FillId> {
        Vec::new()
    }
}

/// Mechanism number, which identifies the mechanism in its events and flash reads.
pub(crate) trait Numbered {
    const NUMBER: u8;

    /// Returns the event that calls [`Mechanism::due`].
    fn event(token: u16) -> SsdEvent {
        SsdEvent::Due { mechanism: Self::NUMBER, token }
    }

    /// Returns the destination of a flash read that calls [`Mechanism::due`] when it ends.
    fn request(token: u16) -> ReadFor {
        ReadFor::Mechanism { request: u32::from(Self::NUMBER) << 16 | u32::from(token) }
    }
}

/// Calls a hook of each mechanism of the drive, which lacks the mechanism during the call.
macro_rules! each {
    ($drive:ident, [$($name:ident),*], $mechanism:ident => $call:expr) => {{$(
        // This check comes first because most drives have few mechanisms and `take` writes memory.
        if $drive.mechanisms.$name.is_some()
            && let Some(mut $mechanism) = $drive.mechanisms.$name.take()
        {
            $call;
            $drive.mechanisms.$name = Some($mechanism);
        }
    )*}};
}

pub(crate) use each;

/// Declares [`Mechanisms`] from a line for each, and `hook`, which calls a hook of each of them.
macro_rules! mechanisms {
    (($dollar:tt) $($name:ident: $type:ty,)*) => {
        pub(crate) struct Mechanisms {
            $(pub $name: Option<Box<$type>>,)*
        }

        #[expect(non_camel_case_types, reason = "named like the fields")]
        enum Number { $($name),* }

        $(impl Numbered for $type {
            const NUMBER: u8 = Number::$name as u8;
        })*

        writecliff_base::saved! { Mechanisms { $(($name)),* } }

        impl Mechanisms {
            pub(crate) fn of(config: &DeviceConfig) -> Self {
                Self { $($name: <$type>::of(config)),* }
            }

            pub(crate) fn steps(&self) -> u8 {
                0 $(| self.$name.as_ref().map_or(0, |_| <$type>::STEPS))*
            }

            /// Returns the number and timing of each medium that a mechanism owns.
            pub(crate) fn media(config: &DeviceConfig) -> impl Iterator<Item = (u8, Medium)> {
                let media = [$((<$type>::NUMBER, <$type>::medium(config))),*];
                media.into_iter().filter_map(|(n, medium)| medium.map(|m| (medium_of(n), m)))
            }

            #[inline]
            pub(crate) fn command_delay(&mut self) -> Nanos {
                Nanos::ZERO $(+ self.$name.as_mut().map_or(Nanos::ZERO, |m| m.command_delay()))*
            }

            /// Returns `true` if a mechanism holds writes; stops at the first such mechanism.
            pub(crate) fn holds_writes<R: Recorder>(drive: &mut Ssd<R>) -> bool {
                let mut holds = false;
                each!(drive, [$($name),*], m => holds = holds || m.holds_writes(drive));
                holds
            }

            #[inline(never)]
            pub(crate) fn holds_read<R: Recorder>(drive: &mut Ssd<R>, number: u16) -> bool {
                let in_flight = *drive.commands.get(number);
                let read = &in_flight.access(number);
                let mut holds = false;
                each!(drive, [$($name),*], m => holds = holds || m.holds_read(drive, read));
                holds
            }

            /// Returns the outcome of a host read; `outcome` is the outcome of its flash reads.
            pub(crate) fn read(&mut self, read: &Access<'_>, outcome: Status) -> Status {
                $(let outcome = match &mut self.$name {
                    Some(m) => m.read(read, outcome),
                    None => outcome,
                };)*
                outcome
            }

            #[inline]
            pub(crate) fn trimmed(&mut self, lpn: Lpn) {
                $(if let Some(m) = &mut self.$name { m.trimmed(lpn); })*
            }

            /// Handles a mechanism's event, or the end of its flash read.
            #[cold]
            pub(crate) fn due<R: Recorder>(drive: &mut Ssd<R>, number: u8, token: u16) {
                let mut admits = false;
                $(if number == Number::$name as u8 {
                    each!(drive, [$name], m => admits = m.due(drive, token));
                })*
                if admits {
                    drive.admit_writes();
                }
            }

            /// Returns the time of the next work of any mechanism; `None` if that is after `until`.
            pub(crate) fn next_work<R: Recorder>(drive: &Ssd<R>, until: Nanos) -> Option<Nanos> {
                let all = &drive.mechanisms;
                [$(all.$name.as_ref().and_then(|m| m.next_work(drive, until))),*]
                    .into_iter().flatten().min()
            }

            /// Does the work of the first mechanism that has some at `now`, if any.
            pub(crate) fn work<R: Recorder>(drive: &mut Ssd<R>, now: Nanos) -> bool {
                let mut has_worked = false;
                each!(drive, [$($name),*], m => has_worked = has_worked || m.works(drive, now));
                has_worked
            }

            #[inline]
            pub(crate) fn own_slots<R: Recorder>(drive: &Ssd<R>) -> u64 {
                0 $(+ drive.mechanisms.$name.as_ref().map_or(0, |m| m.own_slots(drive)))*
            }

            pub(crate) fn waiting_fills(&self) -> Vec<$crate::fill::FillId> {
                let mut fills = Vec::new();
                $(if let Some(m) = &self.$name { fills.extend(m.waiting_fills()); })*
                fills
            }
        }

        macro_rules! hook {
            ($dollar drive:ident, $dollar m:ident => $dollar call:expr) => {
                $crate::mechanisms::each!($dollar drive, [$($name),*], $dollar m => $dollar call)
            };
        }
        pub(crate) use hook;
    };
}
