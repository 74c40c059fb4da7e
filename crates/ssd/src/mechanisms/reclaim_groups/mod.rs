//! Reclaim groups, which divide the dies. The placement identifier selects the group that stores
//! the data.

mod section;

use writecliff_ftl::Ftl;

use crate::Front;
use crate::front::{Placed, PlacementSink, Write};

pub(crate) use section::{check, divided};

/// Front that passes data to the FTL stream of their reclaim group, or of another group if that
/// group is full.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grouped;

impl Front for Grouped {
    fn place<S: PlacementSink>(&mut self, write: Write<'_>, ftl: &mut Ftl, sink: &mut S) -> Placed {
        let mut placed = Placed::default();
        for (lpn, bytes) in write.slots() {
            let stream = ftl.choose_stream(write.stream);
            placed.elsewhere_bytes += if stream == write.stream { 0 } else { bytes };
            ftl.write(lpn, stream, bytes, sink);
        }
        placed
    }
}
