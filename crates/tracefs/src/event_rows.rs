//! Other events as rows of numbers: time, kind, thread, and the fields that were asked for.

use crate::format::{EventFormat, Field, FormatError};

/// Columns of equal length; `values` has `width` numbers a row.
#[derive(Clone, Debug, Default)]
pub struct EventRows {
    formats: Vec<(u16, Vec<Option<Field>>)>,
    thread: Option<Field>,
    /// Numbers of a row; fields that an event has not are 0.
    pub width: usize,
    pub time_ns: Vec<u64>,
    pub kind: Vec<u16>,
    pub thread_id: Vec<i32>,
    pub values: Vec<i64>,
}

impl EventRows {
    /// Keep `fields` of an event; those that this kernel's event has not are 0. Its rows have the
    /// number of the call as their kind.
    pub fn add_format(
        &mut self,
        format: &EventFormat,
        fields: &[String],
    ) -> Result<(), FormatError> {
        let found: Vec<_> = fields.iter().map(|name| format.optional(name)).collect();
        self.thread = Some(format.field("common_pid")?);
        self.width = self.width.max(found.len());
        self.formats.push((format.id, found));
        Ok(())
    }

    pub(crate) fn push(&mut self, id: u16, time_ns: u64, event: &[u8]) {
        let Some(kind) = self.formats.iter().position(|(known, _)| *known == id) else { return };
        let fields = &self.formats[kind].1;
        self.time_ns.push(time_ns);
        self.kind.push(kind as u16);
        self.thread_id.push(self.thread.map_or(0, |field| field.number(event) as i32));
        let numbers =
            fields.iter().map(|field| field.map_or(0, |field| field.number(event) as i64));
        self.values.extend(numbers.chain(std::iter::repeat_n(0, self.width - fields.len())));
    }

    /// Hand the rows over.
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
