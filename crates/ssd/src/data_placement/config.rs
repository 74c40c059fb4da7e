//! Section `[data_placement]` of a device file: the interface through which the host controls data
//! placement.

use writecliff_base::Nanos;
use writecliff_base::located::{LocatedError, Table};

const SECOND: u64 = 1_000_000_000;
/// Most streams of an FTL.
const STREAMS_MAX: u16 = 128;

/// How the host identifies the stream of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InterfaceKind {
    /// Streams directive: NVMe Base Specification 2.1, 8.1.8.3.
    NvmeStreams,
    /// Stream control: SBC-4, STREAM CONTROL and WRITE STREAM.
    ScsiStreams,
    /// Flexible data placement: NVMe Base Specification 2.1, 8.1.10 (TP4146).
    NvmeFdp,
}

impl InterfaceKind {
    pub const ALL: [Self; 3] = [Self::NvmeStreams, Self::ScsiStreams, Self::NvmeFdp];

    pub fn name(self) -> &'static str {
        match self {
            Self::NvmeStreams => "nvme-streams",
            Self::ScsiStreams => "scsi-streams",
            Self::NvmeFdp => "nvme-fdp",
        }
    }
}

/// Handling of a write to a new stream when the maximum number of streams is open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Overflow {
    /// The host respects the limit and sends the write without a stream.
    Default,
    /// The host ignores the limit, and the controller releases another stream (8.1.8.3).
    Release,
}

/// A checked section.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataPlacementConfig {
    pub interface: InterfaceKind,
    /// Streams: maximum number of open streams in addition to the default one.
    pub open_streams: u16,
    pub overflow: Overflow,
    /// FDP: the reclaim unit handle of each placement handle of the namespace.
    pub handles: Vec<u16>,
    /// FDP: how long a reclaim unit may stay open, in whole seconds.
    pub time_limit: Option<Nanos>,
    /// FDP: reclaim groups, among which the dies are divided; otherwise 1.
    pub reclaim_groups: u16,
}

type Answer<T> = Result<T, LocatedError>;

/// Reads the section; `None` for a drive without an interface. `streams` is the number of streams
/// of the FTL.
pub fn read(table: &Table<'_>, streams: u16) -> Answer<Option<DataPlacementConfig>> {
    let mut choices: Vec<_> = InterfaceKind::ALL.iter().map(|&i| (i.name(), Some(i))).collect();
    choices.push(("none", None));
    let interface = table.required_choice("interface", &choices)?;
    let fdp = interface == Some(InterfaceKind::NvmeFdp);
    let directive = interface == Some(InterfaceKind::NvmeStreams);
    let belongs = [
        ("open_streams", interface.is_some() && !fdp, "nvme-streams' and 'scsi-streams"),
        ("overflow", directive, "nvme-streams"),
        ("handles", fdp, "nvme-fdp"),
        ("time_limit", fdp, "nvme-fdp"),
        ("reclaim_groups", fdp, "nvme-fdp"),
    ];
    if let Some((key, _, to)) = belongs.iter().find(|(key, fits, _)| table.has(key) && !fits) {
        return Err(table.error(key, format!("{key} needs interface '{to}'"), None));
    }
    let most = u64::from(streams) - 1;
    let open = table
        .or("open_streams", most, |t, key| t.optional_integer(key, 0..=u64::from(u16::MAX)))?;
    if open > most {
        let message =
            format!("open_streams is {open}; with {streams} streams it must be at most {most}");
        return Err(table.error("open_streams", message, Some("raise ftl.streams".to_owned())));
    }
    let overflow = [("default", Overflow::Default), ("release", Overflow::Release)];
    let overflow =
        table.or("overflow", Overflow::Default, |t, key| t.optional_choice(key, &overflow))?;
    let handles = if fdp { handles(table, streams)? } else { Vec::new() };
    let (open_streams, time_limit) = (open as u16, time_limit(table)?);
    let reclaim_groups = reclaim_groups(table, streams)?;
    Ok(interface.map(|interface| DataPlacementConfig {
        interface,
        open_streams,
        overflow,
        handles,
        time_limit,
        reclaim_groups,
    }))
}

/// Reads the number of reclaim groups, in each of which every handle has a reclaim unit.
fn reclaim_groups(table: &Table<'_>, streams: u16) -> Answer<u16> {
    const KEY: &str = "reclaim_groups";
    let most = u64::from(STREAMS_MAX / streams);
    let groups = table.or(KEY, 1, |t, key| t.optional_integer(key, 1..=u64::from(STREAMS_MAX)))?;
    if groups > most {
        let message = format!(
            "{KEY} is {groups}; with {streams} streams, each in every group, it must be at most \
             {most}"
        );
        return Err(table.error(KEY, message, Some("lower ftl.streams".to_owned())));
    }
    Ok(groups as u16)
}

/// Reads the time limit, which the standard specifies in seconds with 32 bits.
fn time_limit(table: &Table<'_>) -> Answer<Option<Nanos>> {
    const KEY: &str = "time_limit";
    let Some(limit) = table.optional_time(KEY)? else { return Ok(None) };
    let whole = limit.0.is_multiple_of(SECOND);
    if !whole || !(1..=u64::from(u32::MAX)).contains(&(limit.0 / SECOND)) {
        let message = format!("{KEY} is {limit}; it must be whole seconds, 1 or more");
        return Err(table.error(KEY, message, None));
    }
    Ok(Some(limit))
}

fn handles(table: &Table<'_>, streams: u16) -> Answer<Vec<u16>> {
    const KEY: &str = "handles";
    let Some(listed) = table.optional_numbers(KEY, 0.0..=127.0)? else {
        return Ok((0..streams).collect());
    };
    let fail = |message: String| Err(table.error(KEY, message, None));
    if listed.is_empty() || listed.len() > usize::from(streams) {
        return fail(format!("{KEY} has {}; it must have 1 to {streams}", listed.len()));
    }
    let mut handles = Vec::new();
    for number in listed {
        let handle = number as u16;
        if number.fract() != 0.0 || handle >= streams {
            let last = streams - 1;
            return fail(format!(
                "{KEY} has {number}; the drive's reclaim unit handles are 0 to {last}"
            ));
        }
        // NVMe Base 2.1, 8.1.10: a namespace's list contains each handle once.
        if handles.contains(&handle) {
            return fail(format!(
                "{KEY} contains {handle} twice; each placement handle needs its own"
            ));
        }
        handles.push(handle);
    }
    Ok(handles)
}
