//! Events of all processors in the order of their times.

use crate::block_event::{BlockEvent, BlockFormat, EventKind};
use crate::event_rows::EventRows;
use crate::format::{EventFormat, FormatError};
use crate::names::Names;
use crate::requests::Requests;

/// Requests and other events from the records of a tracing instance.
#[derive(Debug)]
pub struct Capture {
    block: Vec<(u16, BlockFormat)>,
    waiting: Vec<BlockEvent>,
    /// Events so far, of all kinds that are known.
    pub events: u64,
    pub names: Names,
    pub requests: Requests,
    pub rows: EventRows,
}

impl Capture {
    /// `block`: formats of events of the block layer; others are refused.
    pub fn new(block: &[EventFormat], requests: Requests) -> Result<Self, FormatError> {
        let mut formats = Vec::new();
        for format in block {
            let kind = EventKind::of(&format.name).ok_or_else(|| FormatError::Missing {
                event: format.name.clone(),
                field: "a request".to_owned(),
            })?;
            formats.push((format.id, BlockFormat::of(format, kind)?));
        }
        Ok(Self {
            block: formats,
            waiting: Vec::new(),
            events: 0,
            names: Names::default(),
            requests,
            rows: EventRows::default(),
        })
    }

    /// Take a record.
    pub fn record(&mut self, time_ns: u64, event: &[u8]) {
        let Some(id) = event.get(..2) else { return };
        let id = u16::from_le_bytes([id[0], id[1]]);
        self.events += 1;
        let Some((_, format)) = self.block.iter().find(|(known, _)| *known == id) else {
            self.rows.push(id, time_ns, event);
            return;
        };
        let (mut found, name) = format.decode(time_ns, event);
        if !name.is_empty() {
            found.name = self.names.number(name);
        }
        self.waiting.push(found);
    }

    /// Hand the events before `until_ns` to the requests: those of all processors are here by then.
    pub fn settle(&mut self, until_ns: u64) {
        self.waiting.sort_by_key(|event| event.time_ns);
        let count = self.waiting.partition_point(|event| event.time_ns < until_ns);
        for event in self.waiting.drain(..count) {
            self.requests.add(&event);
        }
    }
}
