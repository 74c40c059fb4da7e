//! The kernel's tracepoints as text (tracefs, trace-cmd, perf script): `block:block_rq_issue`,
//! `block_rq_complete` and those beside them.

use memchr::memmem;
use writecliff_tracefs::EventKind;

use crate::block_text::event;
use crate::fields::Words;
use crate::number::{NS_PER_S, time_ns};
use crate::pairing::Pairing;
use crate::parser::{Line, LineFormat, Lines};
use crate::sink::Sink;
use crate::skipped::Reason;

use super::Format;

pub(super) const FORMAT: Format = Format {
    name: "tracefs",
    title: "tracepoints of the kernel as text",
    columns: "task-pid [cpu] flags time: block_rq_issue: maj,min rwbs bytes () sector + sectors \
              [process]",
    units: "time in seconds; sectors of 512 bytes; requests from their events",
    make: || Box::new(Lines::new(Tracefs::default())),
};

#[derive(Default)]
struct Tracefs {
    pairing: Pairing,
}

impl LineFormat for Tracefs {
    fn line(&mut self, line: &[u8], to: &mut Sink) -> Result<Line, Reason> {
        if line.starts_with(b"#") {
            return Ok(Line::Beside("comment"));
        }
        if line.starts_with(b"CPU:") && line.ends_with(b"EVENTS]") {
            return Err("events lost by the kernel");
        }
        let Some(at) = memmem::find(line, b": block") else {
            return Err("no event of the block layer");
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
                return Ok(Line::Beside("event that is no step of a request"));
            }
            Some(kind) => kind,
        };
        let mut words = Words::new(&text[end + 1..]);
        let (device, rwbs) = (words.field()?, words.field()?);
        if !device.contains(&b',') {
            return Err("no device (maj,min)");
        }
        let event = event(time, kind, rwbs, words.rest(), &mut to.processes)?;
        self.pairing.add(to.volumes.number(device), &event, to);
        Ok(Line::Used)
    }

    fn finish(&mut self, to: &mut Sink) {
        self.pairing.finish(to);
    }
}
