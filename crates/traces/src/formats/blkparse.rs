//! The text of blkparse: `maj,min cpu sequence time pid action rwbs sector + sectors [process]`.

use writecliff_tracefs::EventKind;

use crate::block_text::event;
use crate::fields::Words;
use crate::number::{NS_PER_S, time_ns, whole};
use crate::pairing::Pairing;
use crate::parser::{Line, LineFormat, Lines};
use crate::sink::Sink;
use crate::skipped::Reason;

use super::Format;

pub(super) const FORMAT: Format = Format {
    name: "blkparse",
    title: "blktrace as text (blkparse)",
    columns: "maj,min cpu sequence time pid action rwbs sector + sectors [process]",
    units: "time in seconds; sectors of 512 bytes; requests from their events",
    make: || Box::new(Lines::new(Blkparse::default())),
};

#[derive(Default)]
struct Blkparse {
    pairing: Pairing,
}

/// By blkparse's letter; None: an event that is no step of a request.
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

/// A line of the summary at the end.
fn is_summary(line: &[u8]) -> bool {
    line.starts_with(b"CPU")
        || line.starts_with(b"Total (")
        || line.starts_with(b"Throughput")
        || line.starts_with(b"Events (")
        || line.starts_with(b"Skips:")
        || (line.starts_with(b" ") && memchr::memchr(b':', line).is_some())
}

impl LineFormat for Blkparse {
    fn line(&mut self, line: &[u8], to: &mut Sink) -> Result<Line, Reason> {
        if is_summary(line) {
            return Ok(Line::Beside("summary of blkparse"));
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
            return Ok(Line::Beside("event that is no step of a request"));
        };
        let rwbs = words.field()?;
        let event = event(time, kind, rwbs, words.rest(), &mut to.processes)?;
        self.pairing.add(to.volumes.number(device), &event, to);
        Ok(Line::Used)
    }

    fn finish(&mut self, to: &mut Sink) {
        self.pairing.finish(to);
    }
}
