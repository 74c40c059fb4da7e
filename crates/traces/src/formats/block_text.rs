//! Block layer events as text, from blkparse and from the kernel's tracepoints (tracefs, trace-cmd,
//! perf script) such as `block:block_rq_issue` and `block_rq_complete`.

use memchr::memmem;
use writecliff_tracefs::{BlockEvent, EventKind, parse_rwbs};

use crate::Names;
use crate::fields::Words;
use crate::number::{NS_PER_S, time_ns, whole};
use crate::pairing::Pairing;
use crate::parser::{Line, LineFormat, Lines};
use crate::sink::{Reason, Sink};

use super::Format;

pub(super) const BLKPARSE: Format = Format {
    name: "blkparse",
    title: "blktrace as text (blkparse)",
    columns: "maj,min cpu sequence time pid action rwbs sector + sectors [process]",
    units: "time in seconds; sectors of 512 bytes; requests from their events",
    make: || Box::new(Lines::new(Events { event: blkparse, pairing: Pairing::default() })),
};

pub(super) const TRACEFS: Format = Format {
    name: "tracefs",
    title: "tracepoints of the kernel as text",
    columns: "task-pid [cpu] flags time: block_rq_issue: maj,min rwbs bytes () sector + sectors \
              [process]",
    units: "time in seconds; sectors of 512 bytes; requests from their events",
    make: || Box::new(Lines::new(Events { event: tracefs, pairing: Pairing::default() })),
};

/// Device (maj,min) and event of a line, or the reason why the line has none.
type Parsed<'a> = Result<Result<(&'a [u8], BlockEvent), Line>, Reason>;

/// Result for a line of the format that does not belong to a request.
const NO_STEP: Line = Line::Beside("event that does not belong to a request");

struct Events {
    event: for<'a> fn(&'a [u8], &mut Names) -> Parsed<'a>,
    pairing: Pairing,
}

impl LineFormat for Events {
    fn line(&mut self, line: &[u8], to: &mut Sink) -> Result<Line, Reason> {
        let (device, event) = match (self.event)(line, &mut to.processes)? {
            Ok(parsed) => parsed,
            Err(skipped) => return Ok(skipped),
        };
        self.pairing.add(to.volumes.number(device), &event, to);
        Ok(Line::Used)
    }

    fn finish(&mut self, to: &mut Sink) {
        self.pairing.finish(to);
    }
}

/// Parses the blkparse action; returns `None` if the event does not belong to a request.
fn kind_of(action: &[u8]) -> Result<Option<EventKind>, Reason> {
    Ok(Some(match action {
        b"Q" => EventKind::BioQueue,
        b"G" => EventKind::Get,
        b"D" => EventKind::Issue,
        b"C" => EventKind::Complete,
        b"R" => EventKind::Requeue,
        b"F" => EventKind::FrontMerge,
        b"I" | b"M" | b"S" | b"P" | b"U" | b"UT" | b"X" | b"A" | b"B" | b"m" => return Ok(None),
        _ => return Err("unknown action"),
    }))
}

fn is_summary(line: &[u8]) -> bool {
    line.starts_with(b"CPU")
        || line.starts_with(b"Total (")
        || line.starts_with(b"Throughput")
        || line.starts_with(b"Events (")
        || line.starts_with(b"Skips:")
        || (line.starts_with(b" ") && memchr::memchr(b':', line).is_some())
}

fn blkparse<'a>(line: &'a [u8], processes: &mut Names) -> Parsed<'a> {
    if is_summary(line) {
        return Ok(Err(Line::Beside("blkparse summary")));
    }
    let mut words = Words::new(line);
    let device = words.field()?;
    let comma = device.iter().position(|&byte| byte == b',').ok_or("no device (maj,min)")?;
    whole(&device[..comma])?;
    whole(&device[comma + 1..])?;
    whole(words.field()?)?;
    whole(words.field()?)?;
    let time = time_ns(words.field()?, NS_PER_S)?;
    whole(words.field()?)?;
    let Some(kind) = kind_of(words.field()?)? else {
        return Ok(Err(NO_STEP));
    };
    let rwbs = words.field()?;
    let event = event(time, kind, rwbs, words.rest(), processes)?;
    Ok(Ok((device, event)))
}

/// Parses `task-pid [cpu] flags time: event: maj,min rwbs bytes () sector + sectors [process]`.
fn tracefs<'a>(line: &'a [u8], processes: &mut Names) -> Parsed<'a> {
    if line.starts_with(b"#") {
        return Ok(Err(Line::Beside("comment")));
    }
    if line.starts_with(b"CPU:") && line.ends_with(b"EVENTS]") {
        return Err("events lost by the kernel");
    }
    let Some(at) = memmem::find(line, b": block") else {
        return Err("not a block layer event");
    };
    let before = &line[..at];
    let time = before.iter().rposition(|&byte| byte == b' ').ok_or("no time")?;
    let time = time_ns(&before[time + 1..], NS_PER_S)?;
    let mut text = line[at + 2..].trim_ascii_start();
    text = text.strip_prefix(b"block:").unwrap_or(text);
    let end = text.iter().position(|&byte| byte == b':').ok_or("no name of an event")?;
    let name = std::str::from_utf8(&text[..end]).map_err(|_| "unknown event")?;
    let kind = match EventKind::of(name) {
        Some(EventKind::BioComplete) | None => {
            return Ok(Err(NO_STEP));
        }
        Some(kind) => kind,
    };
    let mut words = Words::new(&text[end + 1..]);
    let (device, rwbs) = (words.field()?, words.field()?);
    if !device.contains(&b',') {
        return Err("no device (maj,min)");
    }
    let event = event(time, kind, rwbs, words.rest(), processes)?;
    Ok(Ok((device, event)))
}

/// Address, size, and the text in brackets at the end: `2048 + 8 [fio]`.
struct Extent<'a> {
    sector: u64,
    sectors: u32,
    /// The text is the process name, or the error of a completion.
    bracket: &'a [u8],
}

/// Parses the extent in the words after the operation letters; empty if there is no extent.
fn extent(text: &[u8]) -> Result<Extent<'_>, Reason> {
    let bracket = match (text.iter().rposition(|&b| b == b'['), text.trim_ascii_end().last()) {
        (Some(at), Some(b']')) => &text[at + 1..text.trim_ascii_end().len() - 1],
        _ => &[],
    };
    let Some(plus) = text.windows(3).position(|three| three == b" + ") else {
        // This event is a flush that has no address or a meaningless address.
        return Ok(Extent { sector: 0, sectors: 0, bracket });
    };
    let before = text[..plus].trim_ascii_end();
    let begin = before.iter().rposition(|&byte| byte == b' ').map_or(0, |at| at + 1);
    let after = &text[plus + 3..];
    let end = after.iter().position(|&byte| byte == b' ').unwrap_or(after.len());
    let sectors = u32::try_from(whole(&after[..end])?).map_err(|_| "number too large")?;
    let sector = match &before[begin..] {
        // The kernel uses the highest possible address for a flush.
        b"18446744073709551615" => 0,
        address => whole(address)?,
    };
    Ok(Extent { sector, sectors, bracket })
}

/// Parses a block event. `rest` contains the words after the operation letters `rwbs`.
fn event(
    time_ns: u64,
    kind: EventKind,
    rwbs: &[u8],
    rest: &[u8],
    processes: &mut Names,
) -> Result<BlockEvent, Reason> {
    let extent = extent(rest)?;
    // blkparse prints FN for a flush without data, and the kernel prints FF.
    let flush = rwbs.starts_with(b"FN") && extent.sectors == 0;
    let (operation, flags) = parse_rwbs(if flush { b"FF" } else { rwbs }, extent.sectors);
    let digits = extent.bracket.strip_prefix(b"-").unwrap_or(extent.bracket);
    let completion = matches!(kind, EventKind::Complete | EventKind::BioComplete);
    let errno = if completion { whole(digits).unwrap_or(0) as u16 } else { 0 };
    let name = if kind == EventKind::Complete { 0 } else { processes.number(extent.bracket) };
    Ok(BlockEvent {
        time_ns,
        kind,
        operation,
        flags,
        sector: extent.sector,
        sectors: extent.sectors,
        thread_id: 0,
        name,
        errno,
    })
}
