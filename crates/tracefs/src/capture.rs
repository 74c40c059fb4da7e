//! Events of all processors in time order; events other than requests are rows of numbers.

use crate::block_event::{BlockEvent, BlockFormat, EventKind};
use crate::format::{EventFormat, Field, FormatError};
use crate::names::Names;
use crate::requests::Requests;

/// Requests and other events from the records of a tracing instance.
#[derive(Debug)]
pub struct Capture {
    block: Vec<(u16, BlockFormat)>,
    waiting: Vec<BlockEvent>,
    /// Number of events of all known types so far.
    pub events: u64,
    /// Thread names.
    pub names: Names,
    /// Requests reconstructed from block layer events.
    pub requests: Requests,
    /// Other events.
    pub rows: EventRows,
}

impl Capture {
    /// Creates a capture; `block` contains formats of block layer events (an error otherwise).
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

    /// Decodes a ring buffer record.
    pub fn record(&mut self, time_ns: u64, event: &[u8]) {
        let Some(id) = event.get(..2) else { return };
        let id = u16::from_le_bytes([id[0], id[1]]);
        self.events += 1;
        let Some((_, format)) = self.block.iter().find(|(other, _)| *other == id) else {
            self.rows.push(id, time_ns, event);
            return;
        };
        let (mut decoded, name) = format.decode(time_ns, event);
        if !name.is_empty() {
            decoded.name = self.names.number(name);
        }
        self.waiting.push(decoded);
    }

    /// Matches the events before `until_ns` to requests, once all processors have reported theirs.
    pub fn settle(&mut self, until_ns: u64) {
        self.waiting.sort_by_key(|event| event.time_ns);
        let count = self.waiting.partition_point(|event| event.time_ns < until_ns);
        for event in self.waiting.drain(..count) {
            self.requests.add(&event);
        }
    }
}

/// Other events as rows of numbers: time, event type, thread, and the requested fields.
///
/// Columns of equal length; `values` has `width` numbers per row.
#[derive(Clone, Debug, Default)]
pub struct EventRows {
    formats: Vec<(u16, Vec<Option<Field>>)>,
    thread: Option<Field>,
    /// Numbers per row; fields that an event lacks are 0.
    pub width: usize,
    /// Times on the trace clock.
    pub time_ns: Vec<u64>,
    /// Kernel event IDs.
    pub kind: Vec<u16>,
    /// Threads that were running.
    pub thread_id: Vec<i32>,
    /// Values of the requested fields.
    pub values: Vec<i64>,
}

impl EventRows {
    /// Stores `fields` of an event; fields that the event lacks on this kernel are 0. The event
    /// type in the rows is the number of the call.
    pub fn add_format(
        &mut self,
        format: &EventFormat,
        fields: &[String],
    ) -> Result<(), FormatError> {
        let columns: Vec<_> = fields.iter().map(|name| format.optional(name)).collect();
        self.thread = Some(format.field("common_pid")?);
        self.width = self.width.max(columns.len());
        self.formats.push((format.id, columns));
        Ok(())
    }

    pub(crate) fn push(&mut self, id: u16, time_ns: u64, event: &[u8]) {
        let Some(kind) = self.formats.iter().position(|format| format.0 == id) else { return };
        let fields = &self.formats[kind].1;
        self.time_ns.push(time_ns);
        self.kind.push(kind as u16);
        self.thread_id.push(self.thread.map_or(0, |field| field.number(event) as i32));
        let numbers =
            fields.iter().map(|field| field.map_or(0, |field| field.number(event) as i64));
        debug_assert!(fields.len() <= self.width);
        self.values.extend(numbers.chain(std::iter::repeat_n(0, self.width - fields.len())));
    }

    /// Removes and returns the rows.
    #[must_use]
    pub fn take(&mut self) -> Self {
        let empty = Self {
            formats: self.formats.clone(),
            thread: self.thread,
            width: self.width,
            ..Self::default()
        };
        std::mem::replace(self, empty)
    }
}
