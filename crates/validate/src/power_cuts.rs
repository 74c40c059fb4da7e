//! Random power cuts: no data that a drive has declared durable may be lost.
//!
//! Small drives receive random commands and lose power at random times. The drives' contents are
//! then compared with two models that share no code with the simulator: the flash, page by page
//! ([`image`]), and the data that the drive has declared durable ([`promises`]).

mod drives;
mod image;
mod promises;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use writecliff_base::{Lpn, Nanos, Prng, SECTOR_BYTES, SLOT_BYTES, StreamId};
use writecliff_host_interface::{Command, Operation};
use writecliff_ssd::{Drive, PowerCut, Ssd};

pub use drives::{Extra, KINDS, Kind};
use image::FlashImage;
use promises::Promises;

/// Label of the random generator for a drive's workload.
const SEED_LABEL: u64 = 0x0070_6f77_6572;
/// Average number of commands between two power cuts.
const COMMANDS: u64 = 60;

/// Defect to inject, so that the check itself can be tested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// No defect.
    #[default]
    None,
    /// The drive acknowledges flushes without executing them.
    IgnoredFlushes,
    /// Reclaim units are erased before the data that replace their contents are programmed.
    EarlyErases,
    /// The mapping is rebuilt with the oldest copy of a page on flash.
    OldestCopy,
    /// Deallocations are lost although they were flushed.
    ForgottenTrims,
}

/// Counts for one or more drives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PowerCutTally {
    /// Power cuts.
    pub cuts: u64,
    /// Number of host commands.
    pub commands: u64,
    /// Acknowledged writes and deallocations of a slot that the drive was allowed to lose and did
    /// lose.
    pub lost: u64,
    /// Unacknowledged writes and deallocations that survived.
    pub survived: u64,
    /// Program units whose programming was interrupted, and which are unreadable.
    pub torn_units: u64,
    /// Block erases that did not finish.
    pub interrupted_erases: u64,
    /// Slots programmed with capacitor power.
    pub saved_slots: u64,
    /// Longest time until a drive was ready.
    pub slowest: Nanos,
}

impl PowerCutTally {
    fn cut(&mut self, cut: &PowerCut) {
        self.cuts += 1;
        self.torn_units += cut.torn.len() as u64;
        self.interrupted_erases += u64::from(cut.interrupted_erases);
        self.saved_slots += cut.saved_slots;
        self.slowest = self.slowest.max(cut.rebuild.total());
    }
}

/// Cuts the power of drive `number` of `seed` `cuts` times; `Err` describes the first violation.
pub fn run(seed: u64, number: u64, cuts: u32, fault: Fault) -> Result<PowerCutTally, String> {
    let mut cut = 0;
    let cut_all = || {
        let mut bench = Bench::new(seed, number, fault)?;
        while cut < cuts {
            cut += 1;
            bench.load()?;
            bench.cut()?;
        }
        Ok(bench.tally)
    };
    let ended = catch_unwind(AssertUnwindSafe(cut_all));
    let violation = |what: String| format!("cut {cut}: {what}");
    ended.unwrap_or_else(|panic| Err(message(&*panic))).map_err(violation)
}

/// Returns the panic message of the simulator.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("the simulator has failed").to_owned()
}

struct Bench {
    ssd: Ssd<FlashImage>,
    promises: Promises,
    random: Prng,
    /// Commands in the drive, by tag.
    outstanding: Vec<Command>,
    /// Flushes that are still to be sent after writes that the host wants to be durable.
    owed_flushes: u32,
    next_tag: u32,
    streams: u16,
    slots: u64,
    fault: Fault,
    tally: PowerCutTally,
}

impl Bench {
    fn new(seed: u64, number: u64, fault: Fault) -> Result<Self, String> {
        let mut random =
            Prng::derive(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15), SEED_LABEL);
        let mut config = drives::config(&Kind::of(number), &mut random)?;
        config.ftl.volatile_buffer &= fault != Fault::EarlyErases;
        let slots = config.ftl.user_slots;
        let streams = config.ftl.streams;
        let is_durable = config.controller.power_loss_protection || !config.controller.write_cache;
        let mut ssd = Ssd::<FlashImage>::recording(config).map_err(|e| e.to_string())?;
        drives::age(&mut ssd, &mut random);
        FlashImage::begin(&mut ssd);
        let promises = Promises::new(slots as u32, is_durable, |lpn| {
            !ssd.storage().location(Lpn(lpn)).is_none()
        });
        let (outstanding, tally) = (Vec::new(), PowerCutTally::default());
        let (owed_flushes, next_tag) = (0, promises::FIRST_TAG);
        Ok(Self {
            ssd,
            promises,
            random,
            outstanding,
            owed_flushes,
            next_tag,
            streams,
            slots,
            fault,
            tally,
        })
    }

    /// Sends commands and stops at a random time.
    fn load(&mut self) -> Result<(), String> {
        let depth = 1 + self.random.below(24) as usize;
        let commands = if self.random.below(16) == 0 { 0 } else { self.random.below(2 * COMMANDS) };
        for _ in 0..commands {
            while self.outstanding.len() >= depth {
                self.complete_one()?;
            }
            if self.outstanding.is_empty() && self.random.below(40) == 0 {
                let rest = Nanos(self.random.below(40_000_000));
                let until = self.ssd.now() + rest;
                self.ssd.idle_until(until);
            }
            let command = self.next_command();
            self.submit(command)?;
        }
        // The power fails within one program, within one erase, or much later.
        let longest = [10_000, 1_000_000, 10_000_000][self.random.below(3) as usize];
        let until = self.ssd.now() + Nanos(self.random.below(longest));
        while let Some(done) = self.ssd.step(until) {
            self.completed(done.tag)?;
        }
        self.ssd.storage().recorder().fault()
    }

    fn next_command(&mut self) -> Command {
        if self.owed_flushes > 0 {
            self.owed_flushes -= 1;
            return self.command(Operation::Flush, 0, 0);
        }
        let hot = self.random.below(4) > 0;
        let slot = self.random.below(if hot { self.slots / 8 } else { self.slots });
        let count = 1 + self.random.below(8).min(self.slots - slot - 1);
        match self.random.below(100) {
            0..4 => self.command(Operation::Flush, 0, 0),
            4..8 => self.command(Operation::Trim, slot * SLOT_BYTES, count * SLOT_BYTES),
            8..20 => self.command(Operation::Read, slot * SLOT_BYTES, count * SLOT_BYTES),
            20..24 => {
                self.command(Operation::Write, slot * SLOT_BYTES + SECTOR_BYTES, 2 * SECTOR_BYTES)
            }
            24..27 => {
                self.owed_flushes += 1;
                self.command(Operation::Write, slot * SLOT_BYTES, SLOT_BYTES)
            }
            _ => self.command(Operation::Write, slot * SLOT_BYTES, count * SLOT_BYTES),
        }
    }

    fn command(&mut self, operation: Operation, offset: u64, length: u64) -> Command {
        let tag = self.next_tag;
        self.next_tag += 1;
        let stream = StreamId(self.random.below(u64::from(self.streams)) as u16);
        Command { stream, tag, ..Command::new(operation, offset, length as u32) }
    }

    fn submit(&mut self, command: Command) -> Result<(), String> {
        self.tally.commands += 1;
        self.promises.submitted(&command);
        self.outstanding.push(command);
        if command.operation == Operation::Flush && self.fault == Fault::IgnoredFlushes {
            return self.completed(command.tag);
        }
        let now = self.ssd.now();
        self.ssd.submit(now, command);
        Ok(())
    }

    fn complete_one(&mut self) -> Result<(), String> {
        match self.ssd.step(Nanos::MAX) {
            Some(done) => self.completed(done.tag),
            None => Err(format!("{} commands never completed", self.outstanding.len())),
        }
    }

    fn completed(&mut self, tag: u32) -> Result<(), String> {
        let Some(index) = self.outstanding.iter().position(|c| c.tag == tag) else {
            return Err(format!("command {tag} completed but was not outstanding"));
        };
        let command = self.outstanding.swap_remove(index);
        self.promises.completed(&command);
        Ok(())
    }

    fn cut(&mut self) -> Result<(), String> {
        if self.fault == Fault::ForgottenTrims {
            self.ssd.recorder_mut().forget_journal();
        }
        let cut = PowerCut::of(&mut self.ssd);
        self.tally.cut(&cut);
        self.outstanding.clear();
        self.owed_flushes = 0;
        self.ssd.recorder_mut().power_failed(&cut);
        self.ssd.storage().recorder().fault()?;
        self.ssd.check_invariants()?;
        let is_oldest = self.fault == Fault::OldestCopy;
        let versions = FlashImage::check_rebuilt(&mut self.ssd, is_oldest)?;
        let (lost, survived) = self.promises.check(&versions)?;
        cut.power_up(&mut self.ssd);
        self.ssd.check_invariants()?;
        self.tally.lost += lost;
        self.tally.survived += survived;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
