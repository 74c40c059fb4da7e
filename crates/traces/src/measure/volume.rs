//! Counts by volume.

use super::heat::Heat;
use super::sizes::{Sizes, kind};
use writecliff_base::cursors::Cursors;

use crate::record::{NO_RESPONSE, Operation, Record};

/// Maximum number of volumes with separate sizes and heat maps; cloud traces have thousands.
const DETAILED: usize = 64;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Count {
    pub(crate) ios: u64,
    pub(crate) bytes: u64,
}

impl Count {
    #[inline]
    pub(crate) fn add(&mut self, bytes: u64) {
        self.ios += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

pub(crate) struct Volume {
    pub(crate) counts: [Count; 4],
    runs: Box<[Cursors; 2]>,
    pub(crate) sequential: [u64; 2],
    pub(crate) sizes: Option<Sizes>,
    pub(crate) heat: Option<Heat>,
    pub(crate) end_bytes: u64,
    pub(crate) responses: u64,
    pub(crate) response_ns: f64,
}

impl Volume {
    pub(crate) fn new(number: usize) -> Self {
        let detailed = number < DETAILED;
        Self {
            counts: Default::default(),
            runs: Box::default(),
            sequential: [0; 2],
            sizes: detailed.then(Sizes::default),
            heat: detailed.then(Heat::default),
            end_bytes: 0,
            responses: 0,
            response_ns: 0.0,
        }
    }

    /// Adds an I/O; returns the type of a read or write.
    #[inline]
    pub(crate) fn add(&mut self, record: &Record, time_ns: u64, all: &mut Sizes) -> Option<usize> {
        self.counts[record.operation as usize].add(record.length_bytes);
        if record.response_ns != NO_RESPONSE {
            self.responses += 1;
            self.response_ns += record.response_ns as f64;
        }
        let end = record.offset_bytes.saturating_add(record.length_bytes);
        self.end_bytes = self.end_bytes.max(end);
        if !record.operation.moves() {
            return None;
        }
        let write = record.operation == Operation::Write;
        let sequential = self.runs[usize::from(write)].take(record.offset_bytes, end);
        self.sequential[usize::from(write)] += u64::from(sequential);
        let kind = kind(write, sequential);
        all.add(record.length_bytes, kind);
        if let Some(sizes) = &mut self.sizes {
            sizes.add(record.length_bytes, kind);
        }
        if let Some(heat) = &mut self.heat {
            heat.add(time_ns, record.offset_bytes, write);
        }
        Some(kind)
    }
}
