//! Reclaim groups: the dies divided among them. A placement identifier names the group that its
//! data go to.

mod section;

use writecliff_ftl::Ftl;

use crate::front::{Front, Placed, PlacementSink, Write};
pub(crate) use section::{check, divided};

/// Hands data to the FTL's stream in the group that they belong to, or in another one if that is
/// full.
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
