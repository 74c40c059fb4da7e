//! Section `[data_placement]` of a device file: the interface for placement by the host.

use writecliff_base::keys::{Choice, Count, Numbers, Section, Time};
use writecliff_base::located::{Answer, Table};
use writecliff_base::{Nanos, reject, section, words};

pub(super) const SECOND: u64 = 1_000_000_000;
/// Maximum number of FTL streams.
const STREAMS_MAX: u32 = 128;

words! {
    /// Interface that the host uses to identify the stream of a write.
    pub enum InterfaceKind {
        /// Streams directive: Streams directive (NVMe Base Specification 2.1, 8.1.8.3).
        NvmeStreams = "nvme-streams",
        /// Stream control: SCSI streams (SBC-4, STREAM CONTROL and WRITE STREAM).
        ScsiStreams = "scsi-streams",
        /// Flexible data placement: NVMe Base Specification 2.1, 8.1.10 (TP4146)
        NvmeFdp = "nvme-fdp",
    }
    /// Handling of a write to a new stream while the maximum number of streams is open.
    pub enum Overflow {
        /// The host respects the limit and sends the write without a stream.
        Default = "default",
        /// The host ignores the limit, and the controller releases another stream (8.1.8.3).
        Release = "release",
    }
}

/// A checked section.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataPlacementConfig {
    /// Interface that the drive provides.
    pub interface: InterfaceKind,
    /// Streams: maximum number of open streams in addition to the default stream.
    pub open_streams: u16,
    pub(crate) overflow: Overflow,
    /// FDP: reclaim unit handle of each placement handle of the namespace.
    pub handles: Vec<u16>,
    /// FDP: maximum time that a reclaim unit may stay open, in whole seconds.
    pub time_limit: Option<Nanos>,
    /// FDP: number of reclaim groups that the dies are divided among; otherwise 1.
    pub reclaim_groups: u16,
}

section! {
    pub(crate) struct Keys {
        interface: required Choice<Option<InterfaceKind>>(&[
            ("nvme-streams", Some(InterfaceKind::NvmeStreams)),
            ("scsi-streams", Some(InterfaceKind::ScsiStreams)),
            ("nvme-fdp", Some(InterfaceKind::NvmeFdp)),
            ("none", None),
        ]), "meaning of a stream number";
        open_streams: optional Count(0..=u16::MAX as u32) = "`streams` - 1",
            "nvme-streams, scsi-streams: number of streams that may be open in addition to the \
             default stream";
        overflow: default Choice<Overflow>(Overflow::WORDS) = Overflow::Default,
            "nvme-streams: additional streams use the default stream, or release another stream";
        handles: optional Numbers(0.0..=127.0) = "all, in order",
            "nvme-fdp: reclaim unit handle of each placement handle";
        time_limit: optional Time = "unlimited",
            "nvme-fdp: time that a reclaim unit may stay open, in whole seconds";
        reclaim_groups: default Count(1..=STREAMS_MAX) = 1,
            "nvme-fdp: [groups](../guides/streams.md#reclaim-groups) that divide the dies";
    }
}

/// Reads the section; `None` without an interface. `streams` are the FTL's.
pub fn read(table: &Table<'_>, streams: u16) -> Answer<Option<DataPlacementConfig>> {
    let keys = Keys::read_keys(table)?;
    let interface = keys.interface;
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
        return Err(table.error(key, format!("{key} requires interface '{to}'"), None));
    }
    let most = u32::from(streams) - 1;
    let open = table.otherwise("open_streams", keys.open_streams, most);
    let (groups, most_groups) = (keys.reclaim_groups, STREAMS_MAX / u32::from(streams));
    let limit = keys.time_limit.unwrap_or(Nanos(SECOND));
    let seconds = u64::from(u32::MAX).min(limit.0 / SECOND);
    reject! { table,
        "open_streams" if open > most =>
            "open_streams is {open}; with {streams} streams it must be at most {most}"
            ["raise ftl.streams"];
        // The standard specifies seconds with 32 bits.
        "time_limit" if limit.0 == 0 || limit.0 != seconds * SECOND =>
            "time_limit is {limit}; it must be whole seconds, 1 or more";
        "reclaim_groups" if groups > most_groups =>
            "reclaim_groups is {groups}; with {streams} streams in every group, it must be at most \
             {most_groups}" ["lower ftl.streams"];
    }
    let handles = if fdp { handles(table, keys.handles, streams)? } else { Vec::new() };
    Ok(interface.map(|interface| DataPlacementConfig {
        interface,
        open_streams: open as u16,
        overflow: keys.overflow,
        handles,
        time_limit: keys.time_limit,
        reclaim_groups: keys.reclaim_groups as u16,
    }))
}

fn handles(table: &Table<'_>, listed: Option<Vec<f64>>, streams: u16) -> Answer<Vec<u16>> {
    let Some(listed) = listed else { return Ok((0..streams).collect()) };
    reject! { table,
        "handles" if listed.is_empty() || listed.len() > usize::from(streams) =>
            "handles has {} elements; it must have 1 to {streams}", listed.len();
    }
    let last = streams - 1;
    for (index, &number) in listed.iter().enumerate() {
        reject! { table,
            "handles" if number.fract() != 0.0 || number > f64::from(last) =>
                "handles has {number}; the drive's reclaim unit handles are 0 to {last}";
            // NVMe Base 2.1, 8.1.10: a namespace's list contains each handle once.
            "handles" if listed[..index].contains(&number) =>
                "handles contains {number} twice; each placement handle needs a different one";
        }
    }
    Ok(listed.iter().map(|&number| number as u16).collect())
}
