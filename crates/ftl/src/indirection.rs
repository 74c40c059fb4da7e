//! Indirection units of several slots: the host's part is merged with the rest of the unit.

use std::ops::Range;

use writecliff_base::{Lpn, Ppa, StreamId};
use writecliff_flash::geometry::SLOT_BYTES;

use crate::frontier::FrontierId;
use crate::{FlashSink, Ftl};

impl Ftl {
    /// Writes the slots of an indirection unit, of which the host gives `bytes` bytes. The rest is
    /// read from where it is, and written with them.
    pub fn write_unit<S: FlashSink>(
        &mut self,
        unit: Range<u32>,
        stream: StreamId,
        bytes: u32,
        sink: &mut S,
    ) {
        let whole = unit.len() as u32 * SLOT_BYTES;
        if bytes < whole {
            self.read_unit(self.host_frontier(stream), unit.clone(), sink);
        }
        for lpn in unit {
            self.write(Lpn(lpn), stream, SLOT_BYTES, sink);
        }
        self.counters.host_bytes -= u64::from(whole - bytes);
    }

    /// Reads what a unit holds, one flash read for slots that are side by side in a read group.
    fn read_unit<S: FlashSink>(&self, frontier: FrontierId, unit: Range<u32>, sink: &mut S) {
        let group = self.geometry().ppas_per_read_group;
        let mut run: Option<(Ppa, u32)> = None;
        for lpn in unit {
            let at = self.lookup(Lpn(lpn));
            if at.is_none() {
                continue;
            }
            match &mut run {
                Some((first, count))
                    if at.0 == first.0 + *count && at.0 / group == first.0 / group =>
                {
                    *count += 1;
                }
                _ => {
                    if let Some((first, count)) = run {
                        sink.read_for(frontier, first, count);
                    }
                    run = Some((at, 1));
                }
            }
        }
        if let Some((first, count)) = run {
            sink.read_for(frontier, first, count);
        }
    }
}
