//! Stream control: SBC-4, STREAM CONTROL (9Eh/14h), GET STREAM STATUS (9Eh/16h), WRITE STREAM(16)
//! and (32), and the Block Limits Extension VPD page (B7h).
//!
//! The host opens a stream, and the drive assigns the lowest free identifier. A workload identifies
//! streams by number. The host opens streams until the drive has assigned the required number or
//! rejects the command. A write whose stream could not be opened is sent as a plain WRITE.

use writecliff_base::{SECTOR_BYTES, StreamId, saved};
use writecliff_host_interface::placement::{BlockLimitsExtension, Refusal, Sense};

use super::resources::Resources;
use super::{PlacementTally, Sizes};

#[derive(Clone, Debug)]
pub(crate) struct ScsiStreams {
    pub(crate) resources: Resources,
}

saved! { ScsiStreams { resources } }

impl ScsiStreams {
    pub(crate) fn new(limit: u16) -> Self {
        Self { resources: Resources::new(limit) }
    }

    pub(crate) fn limits(&self, sizes: &Sizes) -> BlockLimitsExtension {
        BlockLimitsExtension {
            maximum_number_of_streams: self.resources.limit(),
            optimal_stream_write_size: u16::try_from(sizes.write_size.0 / SECTOR_BYTES)
                .unwrap_or(u16::MAX),
            stream_granularity_size: sizes.granularity,
        }
    }

    /// STREAM CONTROL with `STR_CTL` 01b; returns the assigned identifier.
    pub(crate) fn open(
        &mut self,
        route: &mut [u16],
        tally: &mut PlacementTally,
    ) -> Result<u16, Refusal> {
        let assigned = (1..=self.resources.limit()).find(|&id| !self.resources.is_open(id));
        let Some(id) = assigned else {
            let about = format!("{} streams are open", self.resources.limit());
            return Err(Refusal::CheckCondition { sense: Sense::TooManyStreams, about });
        };
        self.resources.open(route, id);
        tally.opened += 1;
        Ok(id)
    }

    /// STREAM CONTROL with `STR_CTL` 10b.
    pub(crate) fn close(&mut self, route: &mut [u16], id: u16) -> Result<(), Refusal> {
        if self.resources.close(route, id) {
            return Ok(());
        }
        let about = format!("stream {id} is not open");
        Err(Refusal::CheckCondition { sense: Sense::InvalidFieldInCdb, about })
    }

    /// GET STREAM STATUS; returns the open identifiers, starting at `first`.
    pub(crate) fn status(&self, first: u16) -> Result<Vec<u16>, Refusal> {
        let most = self.resources.limit();
        if first > most {
            let about = format!(
                "starting stream identifier {first} is out of range; the drive has {most} streams"
            );
            return Err(Refusal::CheckCondition { sense: Sense::InvalidFieldInCdb, about });
        }
        Ok(self.resources.ids().into_iter().filter(|&id| id >= first).collect())
    }

    /// Handles a write to a stream that is not open.
    pub(crate) fn route(
        &mut self,
        route: &mut [u16],
        id: u16,
        tally: &mut PlacementTally,
    ) -> Option<StreamId> {
        if id > self.resources.limit() {
            return None;
        }
        while !self.resources.is_open(id) {
            self.open(route, tally).ok()?;
        }
        Some(StreamId(route[usize::from(id)]))
    }
}
