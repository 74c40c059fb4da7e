//! Where the mechanisms of a drive take part in what it does.
//!
//! The drive decodes commands, places data and completes commands. At each of these steps it calls
//! a hook of every mechanism that it has, in the order of the list in `mod.rs`. A mechanism
//! implements the hooks that it needs. The calls are static: a hook that no mechanism of the list
//! implements compiles to nothing, and a drive skips the steps in which none of its mechanisms
//! takes part ([`Steps`]).

use writecliff_base::codec::CodecError;
use writecliff_base::words::{WordReader, WordWriter};
use writecliff_base::{Lpn, Nanos};
use writecliff_flash::geometry::SLOT_BYTES;
use writecliff_host_interface::{Command, Status};

use crate::attribution::Recorder;
use crate::config::DeviceConfig;
use crate::event::SsdEvent;
use crate::ssd::Ssd;

/// A host write that is about to be placed, or a host read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access<'a> {
    pub command: &'a Command,
    pub first: Lpn,
    pub slots: u32,
    /// `false` on the fast-forward clock.
    pub is_timed: bool,
}

impl<'a> Access<'a> {
    /// Returns the access of a command on the fast-forward clock.
    pub(crate) fn untimed(command: &'a Command) -> Self {
        let slot = u64::from(SLOT_BYTES);
        let first = command.offset / slot;
        let end = (command.offset + u64::from(command.length)).div_ceil(slot);
        let (first, slots) = (Lpn(first as u32), (end - first) as u32);
        Self { command, first, slots, is_timed: false }
    }
}

/// Slots that the firmware has mapped for a write.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MappedSlots {
    /// For the host, including those that complete a large unit.
    pub host: u32,
    pub moved: u64,
    /// Written in part and merged with their old data.
    pub merged: u32,
    pub folded: u64,
}

/// Times of flash that a mechanism has for itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Medium {
    /// tR.
    pub read: Nanos,
    /// tPROG of a page of all planes.
    pub program: Nanos,
}

/// Steps of the drive that mechanisms take part in.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, tested on every command")]
pub(crate) struct Steps {
    /// Commands begin.
    pub commands: bool,
    /// Reads may fail, wait or take firmware time.
    pub reads: bool,
    /// Data are placed, on either clock.
    pub writes: bool,
    /// A placed write takes firmware time.
    pub mapping: bool,
    /// Writes may have to wait in front of the buffer.
    pub admission: bool,
    /// Programs end.
    pub programs: bool,
}

impl Steps {
    /// No step of commands: a mechanism that works by itself.
    pub(crate) const NONE: Self = Self {
        commands: false,
        reads: false,
        writes: false,
        mapping: false,
        admission: false,
        programs: false,
    };

    pub(crate) fn add(&mut self, other: Self) {
        self.commands |= other.commands;
        self.reads |= other.reads;
        self.writes |= other.writes;
        self.mapping |= other.mapping;
        self.admission |= other.admission;
        self.programs |= other.programs;
    }
}

/// A mechanism of a drive. While one of its hooks runs with the drive, the drive is without it.
pub(crate) trait Mechanism: Sized {
    /// The steps of the drive that it takes part in.
    const STEPS: Steps;

    /// Returns the mechanism of a new drive; `None` if the drive does not have it.
    fn of(config: &DeviceConfig) -> Option<Box<Self>>;

    /// Returns the times of flash that it has for itself.
    fn medium(_config: &DeviceConfig) -> Option<Medium> {
        None
    }

    /// Does the work that is due before a command is decoded.
    fn before_command<R: Recorder>(&mut self, drive: &mut Ssd<R>) {
        while self.works(drive, drive.now()) {}
    }

    /// A command begins.
    fn command_begins<R: Recorder>(&mut self, _drive: &mut Ssd<R>) {}

    /// Returns additional latency of a command.
    fn command_delay(&mut self) -> Nanos {
        Nanos::ZERO
    }

    /// Returns `true` if no write may enter the buffer now, and schedules an event for when one
    /// may.
    fn holds_writes<R: Recorder>(&mut self, _drive: &mut Ssd<R>) -> bool {
        false
    }

    /// A write is about to be placed.
    fn before_write<R: Recorder>(&mut self, _drive: &mut Ssd<R>, _write: &Access<'_>) {}

    /// A write was placed on the timed clock.
    fn after_write(&mut self, _now: Nanos, _mapped: &MappedSlots) {}

    /// Returns `true` if a read has to wait for what [`Self::due`] brings.
    fn holds_read<R: Recorder>(
        &mut self,
        _drive: &mut Ssd<R>,
        _number: u16,
        _read: &Access<'_>,
    ) -> bool {
        false
    }

    /// Takes part in a read with this outcome so far; returns its outcome.
    fn read(&mut self, _read: &Access<'_>, outcome: Status) -> Status {
        outcome
    }

    /// The host has deallocated a slot.
    fn trimmed(&mut self, _lpn: Lpn) {}

    /// A program of the host's or of relocated data has ended.
    fn programmed<R: Recorder>(&mut self, _drive: &mut Ssd<R>) {}

    /// An event or a flash read that it has scheduled has occurred. Returns `true` if writes may
    /// enter the buffer now.
    fn due<R: Recorder>(&mut self, _drive: &mut Ssd<R>, _token: u16) -> bool {
        false
    }

    /// Returns when its next work is due, if not after `until`; an idle drive does it then.
    fn next_work<R: Recorder>(&self, _drive: &Ssd<R>, _until: Nanos) -> Option<Nanos> {
        None
    }

    /// Does the work that [`Self::next_work`] has named.
    fn work<R: Recorder>(&mut self, _drive: &mut Ssd<R>) {}

    /// Does the next work if it is due at `now`; returns whether it was.
    fn works<R: Recorder>(&mut self, drive: &mut Ssd<R>, now: Nanos) -> bool {
        let is_due = self.next_work(drive, now).is_some();
        if is_due {
            self.work(drive);
        }
        is_due
    }

    /// All data have been erased.
    fn purged(&mut self) {}

    /// The drive has lost its power and starts again, without the events that were scheduled.
    fn powered_up(&mut self, _config: &DeviceConfig) {}

    /// Slots programmed in flash that the FTL does not allocate.
    fn own_slots<R: Recorder>(&self, _drive: &Ssd<R>) -> u64 {
        0
    }

    fn save(&self, _out: &mut WordWriter) {}

    /// Restores what `save` saved. `fills` is the number of program units in progress.
    ///
    /// # Errors
    /// Fails if the words are damaged.
    fn restore(&mut self, _fills: usize, _input: &mut WordReader<'_>) -> Result<(), CodecError> {
        Ok(())
    }
}

/// The number of a mechanism, by which its events and flash reads find it.
pub(crate) trait Numbered {
    const NUMBER: u8;

    /// The event that calls [`Mechanism::due`].
    fn event(token: u16) -> SsdEvent {
        SsdEvent::Due { mechanism: Self::NUMBER, token }
    }
}

/// Calls a hook of each mechanism that the drive has, which it is without meanwhile.
macro_rules! each {
    ($drive:ident, [$($name:ident),*], $mechanism:ident => $call:expr) => {$(
        if let Some(mut $mechanism) = $drive.mechanisms.$name.take() {
            $call;
            $drive.mechanisms.$name = Some($mechanism);
        }
    )*};
}

/// Declares [`Mechanisms`]: a line for each mechanism.
macro_rules! mechanisms {
    ($($name:ident: $type:ty,)*) => {
        /// The mechanisms that a drive has.
        pub(crate) struct Mechanisms {
            $(pub $name: Option<Box<$type>>,)*
        }

        #[expect(non_camel_case_types, reason = "named as the fields are")]
        enum Number { $($name),* }

        $(impl Numbered for $type {
            const NUMBER: u8 = Number::$name as u8;
        })*

        impl Mechanisms {
            pub(crate) fn of(config: &DeviceConfig) -> Self {
                Self { $($name: <$type>::of(config)),* }
            }

            /// Returns which steps of the drive the mechanisms take part in.
            pub(crate) fn steps(&self) -> Steps {
                let mut steps = Steps::default();
                $(if self.$name.is_some() { steps.add(<$type>::STEPS); })*
                steps
            }

            /// Returns the flash that mechanisms have for themselves, with its number.
            pub(crate) fn media(config: &DeviceConfig) -> impl Iterator<Item = (u8, Medium)> {
                let media = [$((<$type>::NUMBER, <$type>::medium(config))),*];
                media.into_iter().filter_map(|(n, medium)| medium.map(|m| (medium_of(n), m)))
            }

            pub(crate) fn before_command<R: Recorder>(drive: &mut Ssd<R>) {
                each!(drive, [$($name),*], m => m.before_command(drive));
            }

            pub(crate) fn command_begins<R: Recorder>(drive: &mut Ssd<R>) {
                each!(drive, [$($name),*], m => m.command_begins(drive));
            }

            #[inline]
            pub(crate) fn command_delay(&mut self) -> Nanos {
                Nanos::ZERO $(+ self.$name.as_mut().map_or(Nanos::ZERO, |m| m.command_delay()))*
            }

            /// The first mechanism that holds writes decides.
            pub(crate) fn holds_writes<R: Recorder>(drive: &mut Ssd<R>) -> bool {
                let mut holds = false;
                each!(drive, [$($name),*], m => holds = holds || m.holds_writes(drive));
                holds
            }

            pub(crate) fn before_write<R: Recorder>(drive: &mut Ssd<R>, write: &Access<'_>) {
                each!(drive, [$($name),*], m => m.before_write(drive, write));
            }

            pub(crate) fn after_write(&mut self, now: Nanos, mapped: &MappedSlots) {
                $(if let Some(m) = &mut self.$name { m.after_write(now, mapped); })*
            }

            pub(crate) fn holds_read<R: Recorder>(
                drive: &mut Ssd<R>,
                number: u16,
                read: &Access<'_>,
            ) -> bool {
                let mut holds = false;
                each!(drive, [$($name),*], m => holds = holds || m.holds_read(drive, number, read));
                holds
            }

            /// Returns the outcome of a read; `outcome` is that of its flash reads.
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

            pub(crate) fn programmed<R: Recorder>(drive: &mut Ssd<R>) {
                each!(drive, [$($name),*], m => m.programmed(drive));
            }

            /// Returns `true` if writes may enter the buffer now.
            pub(crate) fn due<R: Recorder>(drive: &mut Ssd<R>, number: u8, token: u16) -> bool {
                let mut admits = false;
                $(if number == Number::$name as u8 {
                    each!(drive, [$name], m => admits = m.due(drive, token));
                })*
                admits
            }

            /// Returns when work of a mechanism is due next, if not after `until`.
            pub(crate) fn next_work<R: Recorder>(drive: &Ssd<R>, until: Nanos) -> Option<Nanos> {
                let all = &drive.mechanisms;
                [$(all.$name.as_ref().and_then(|m| m.next_work(drive, until))),*]
                    .into_iter().flatten().min()
            }

            /// Lets the first mechanism whose work is due at `now` do it; returns `false` if there
            /// is none.
            pub(crate) fn work<R: Recorder>(drive: &mut Ssd<R>, now: Nanos) -> bool {
                let mut has_worked = false;
                each!(drive, [$($name),*], m => has_worked = has_worked || m.works(drive, now));
                has_worked
            }

            pub(crate) fn purged(&mut self) {
                $(if let Some(m) = &mut self.$name { m.purged(); })*
            }

            pub(crate) fn powered_up(&mut self, config: &DeviceConfig) {
                $(if let Some(m) = &mut self.$name { m.powered_up(config); })*
            }

            #[inline]
            pub(crate) fn own_slots<R: Recorder>(drive: &Ssd<R>) -> u64 {
                0 $(+ drive.mechanisms.$name.as_ref().map_or(0, |m| m.own_slots(drive)))*
            }

            pub(crate) fn save(&self, out: &mut WordWriter) {
                $(if let Some(m) = &self.$name { m.save(out); })*
            }

            pub(crate) fn restore(
                &mut self,
                fills: usize,
                input: &mut WordReader<'_>,
            ) -> Result<(), CodecError> {
                $(if let Some(m) = &mut self.$name { m.restore(fills, input)?; })*
                Ok(())
            }
        }
    };
}
