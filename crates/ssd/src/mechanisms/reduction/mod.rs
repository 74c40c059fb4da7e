//! Data reduction by compression or deduplication: section `[reduction]` of a device file.
//!
//! The drive reduces data between buffer and flash: link and buffer carry the host's data, and the
//! flash carries the reduced data. GC uses the saved space as spare space; the user capacity does
//! not change. The FTL implements the mechanism.

mod section;

use writecliff_ftl::Ftl;

use crate::Front;
use crate::front::{Placed, PlacementSink, Write};

pub(crate) use section::{Keys, read};

/// Front that passes reduced data to the FTL.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reduced;

impl Front for Reduced {
    /// Duplicates leave the buffer immediately and are as durable as the data that they duplicate.
    fn place<S: PlacementSink>(&mut self, write: Write<'_>, ftl: &mut Ftl, sink: &mut S) -> Placed {
        let (mut placed, stream) = (Placed::default(), write.stream);
        for ((lpn, bytes), n) in write.slots().zip(0..) {
            let content = write.command.content.of_slot(n);
            if S::IS_TIMED && !ftl.takes_space(content, bytes) {
                let original = ftl.lookup(content.same_as);
                let location = ftl.geometry().locate(original);
                placed.extra_slots -= 1;
                placed.repeats_buffered |=
                    ftl.is_filling(original, location.reclaim_unit) || sink.is_in_flight(&location);
            } else if sink.awaits() {
                ftl.make_fit(stream, content, sink);
                sink.await_unit(ftl.host_frontier(stream));
            }
            ftl.write_reduced(lpn, stream, bytes, content, sink);
        }
        placed
    }
}
