//! Section `[housekeeping]` of a device file.

use writecliff_base::keys::{Choice, Flag, Number, PositiveTime, Size, Time};
use writecliff_base::located::{Answer, Change, Table};
use writecliff_base::{Bytes, Nanos, reject, section};
use writecliff_flash::Geometry;

use super::PatrolConfig;
use crate::device_file::scaled::{change, size};
use crate::mechanisms::{Checked, Described, MechanismSection, Resizing};

/// Maximum fraction of the time for which media work may occupy each die.
const MEDIA_SHARE_MAX: f64 = 0.9;

/// A program-like operation once per interval, on a random die at a random time in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaWork {
    pub(crate) interval: Nanos,
    /// Die time of the operation, including its transfer.
    pub time: Nanos,
    /// `true` if host reads may suspend the operation like a program.
    pub suspendable: bool,
}

/// Work that is due after each `interval` of bytes programmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerWritten {
    pub(crate) interval: Bytes,
    pub(crate) time: Nanos,
}

/// Probability and length of extra controller latency of a command that delays no others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hiccups {
    pub(crate) probability: f64,
    pub(crate) time: Nanos,
}

/// Background work of firmware and flash.
#[derive(Clone, Debug, PartialEq)]
pub struct HousekeepingConfig {
    pub(crate) media: Option<MediaWork>,
    /// Programs of a mapping journal page, on each die in turn.
    pub journal: Option<PerWritten>,
    /// Writes of a mapping checkpoint, during which the firmware accepts no commands.
    pub checkpoint: Option<PerWritten>,
    /// `true` if a checkpoint only prevents the mapping core from mapping writes.
    pub checkpoint_stops_writes: bool,
    pub(crate) hiccups: Option<Hiccups>,
    pub(crate) patrol: Option<PatrolConfig>,
}

section! {
    pub(crate) struct Keys {
        media_suspendable: default Flag = true,
            "reads suspend media work like a program, if the flash part supports suspension";
        media_interval: optional Time,
            "interval of internal operations (refresh, metadata), each on a random die";
        media_time: optional Time,
            "duration of an internal operation, at most 90 % of the dies' time; required with \
             `media_interval`";
        journal_interval: optional Size,
            "programmed data per journal page; at least a program unit";
        journal_time: optional Time, "program time of a journal page; required with \
         `journal_interval`";
        checkpoint_interval: optional Size,
            "programmed data per mapping checkpoint; at least a program unit";
        checkpoint_time: optional Time,
            "duration of a checkpoint; required with `checkpoint_interval`";
        checkpoint_stops: default Choice<bool>(&[("commands", false), ("writes", true)]) = false,
            "whether a checkpoint stops the decoding of commands, or only the mapping of writes";
        hiccup_probability: optional Number(0.0..=1.0),
            "probability that an internal task delays a command";
        hiccup_time: optional Time, "delay of a command by an internal task; required with \
         `hiccup_probability`";
        patrol_interval: optional PositiveTime,
            "interval of scans for data that must be moved, at random times";
        patrol_length: optional PositiveTime,
            "duration of a scan; required with `patrol_interval`";
        patrol_step: optional PositiveTime,
            "interval between two page reads during a scan; required with `patrol_interval`";
        patrol_time: optional PositiveTime,
            "firmware time per page, at most 90 % of the step; required with `patrol_interval`";
    }
}

impl MechanismSection for HousekeepingConfig {
    type Keys = Keys;

    fn check(keys: Self::Keys, table: &Table<'_>, drive: &mut Described<'_>) -> Checked<Self> {
        let per_written = |name: &str, interval: Option<Bytes>, time| {
            let (key, time_key) = (&format!("{name}_interval"), &format!("{name}_time"));
            let unit = Bytes(drive.geometry.unit_bytes());
            let least = interval.unwrap_or(unit);
            reject! { table,
                key if least < unit => "{least} is less than a program unit of {unit}";
            }
            let pair = timed(table, key, interval, time_key, time)?;
            Ok(pair.map(|(interval, time)| PerWritten { interval, time }))
        };
        let hiccup = keys.hiccup_probability;
        let hiccups = timed(table, "hiccup_probability", hiccup, "hiccup_time", keys.hiccup_time)?;
        Ok(Some(Self {
            media: media(table, &keys, &drive.geometry)?,
            journal: per_written("journal", keys.journal_interval, keys.journal_time)?,
            checkpoint: per_written("checkpoint", keys.checkpoint_interval, keys.checkpoint_time)?,
            checkpoint_stops_writes: stops_writes(table, &keys, drive)?,
            hiccups: hiccups.map(|(probability, time)| Hiccups { probability, time }),
            patrol: PatrolConfig::of(table, &keys)?,
        }))
    }

    fn scaled(&self, drive: &Resizing<'_>) -> Vec<Change> {
        let mut changes = Vec::new();
        if let Some(checkpoint) = self.checkpoint {
            let interval = (checkpoint.interval.0 as f64 / drive.scale).round_ties_even() as u64;
            let interval = interval.max(drive.config.word_line_bytes());
            let factor = interval as f64 / checkpoint.interval.0 as f64;
            changes.push(size("housekeeping.checkpoint_interval", Bytes(interval)));
            let ns = (checkpoint.time.0 as f64 * factor).round_ties_even().max(1.0);
            changes.push(change("housekeeping.checkpoint_time", format!("{ns} ns")));
        }
        if let Some(patrol) = self.patrol {
            // A scan reads at least one page.
            let length = Nanos(patrol.step.0.max((patrol.length.0 as f64 / drive.scale) as u64));
            let factor = patrol.length.0 as f64 / length.0 as f64;
            let interval = Nanos((patrol.interval.0 as f64 / factor) as u64).max(length);
            for (key, time) in [("patrol_interval", interval), ("patrol_length", length)] {
                changes.push(change(&format!("housekeeping.{key}"), format!("{} ns", time.0)));
            }
        }
        changes
    }
}

fn media(table: &Table<'_>, keys: &Keys, geometry: &Geometry) -> Answer<Option<MediaWork>> {
    const INTERVAL: &str = "media_interval";
    let pair = timed(table, INTERVAL, keys.media_interval, "media_time", keys.media_time)?;
    let Some((interval, time)) = pair else {
        reject! { table,
            "media_suspendable" if table.has("media_suspendable") =>
                "it has no effect without {INTERVAL}";
        }
        return Ok(None);
    };
    let share = time.0 as f64 / (interval.0 as f64 * f64::from(geometry.dies));
    reject! { table,
        INTERVAL if share > MEDIA_SHARE_MAX =>
            "media work of {time} every {interval} takes {:.0} % of the time of {} dies; it must \
             leave at least {:.0} %",
            100.0 * share, geometry.dies, 100.0 * (1.0 - MEDIA_SHARE_MAX);
    }
    Ok(Some(MediaWork { interval, time, suspendable: keys.media_suspendable }))
}

fn stops_writes(table: &Table<'_>, keys: &Keys, drive: &Described<'_>) -> Answer<bool> {
    const KEY: &str = "checkpoint_stops";
    reject! { table,
        KEY if keys.checkpoint_stops && !drive.controller.has_mapping_core() =>
            "it stops the mapping core, so it requires controller.mapping_update_time";
        KEY if keys.checkpoint_interval.is_none() && table.has(KEY) =>
            "it has no effect without checkpoint_interval";
    }
    Ok(keys.checkpoint_stops)
}

/// Returns a value with the duration that it requires, if possible for a die operation.
fn timed<T>(
    table: &Table<'_>,
    key: &str,
    value: Option<T>,
    time_key: &str,
    time: Option<Nanos>,
) -> Answer<Option<(T, Nanos)>> {
    let refusal = format!("it has no effect without {key}");
    let time = table.needed_if(value.is_some(), time_key, time, refusal)?;
    let limited = time.unwrap_or(Nanos(1));
    reject! { table,
        time_key if limited.0 == 0 || u32::try_from(limited.0).is_err() =>
            "{limited} is out of range; it must be above zero and below 4.29 s";
    }
    Ok(value.zip(time))
}
