//! Stream control: SBC-4, STREAM CONTROL (9Eh/14h), GET STREAM STATUS (9Eh/16h), WRITE STREAM(16)
//! and (32), and the Block Limits Extension VPD page (B7h).
//!
//! The host opens a stream, and the drive assigns the lowest free identifier. A workload identifies
//! streams by number. The host opens streams until the drive has assigned the required number or
//! rejects the command. A write whose stream could not be opened is sent as a plain WRITE.

use writecliff_base::{SECTOR_BYTES, StreamId};
use writecliff_host_interface::placement::{BlockLimitsExtension, Refusal, Sense};

use super::resources::Resources;
use super::{Sizes, Tally};

impl Resources {
    pub(crate) fn scsi_limits(&self, sizes: &Sizes) -> BlockLimitsExtension {
        BlockLimitsExtension {
            maximum_number_of_streams: self.limit(),
            optimal_stream_write_size: u16::try_from(sizes.write_size.0 / SECTOR_BYTES)
                .unwrap_or(u16::MAX),
            stream_granularity_size: sizes.granularity,
        }
    }

    /// STREAM CONTROL with `STR_CTL` 01b; returns the assigned identifier.
    pub(crate) fn scsi_open(
        &mut self,
        route: &mut [u16],
        tally: &mut Tally,
    ) -> Result<u16, Refusal> {
        let assigned = (1..=self.limit()).find(|&id| !self.is_open(id));
        let Some(id) = assigned else {
            let about = format!("{} streams are open", self.limit());
            return Err(Refusal::CheckCondition { sense: Sense::TooManyStreams, about });
        };
        self.open(route, id);
        tally.opened += 1;
        Ok(id)
    }

    /// STREAM CONTROL with `STR_CTL` 10b.
    pub(crate) fn scsi_close(&mut self, route: &mut [u16], id: u16) -> Result<(), Refusal> {
        if self.close(route, id) {
            return Ok(());
        }
        let about = format!("stream {id} is not open");
        Err(Refusal::CheckCondition { sense: Sense::InvalidFieldInCdb, about })
    }

    /// GET STREAM STATUS; returns the open identifiers, starting at `first`.
    pub(crate) fn scsi_status(&self, first: u16) -> Result<Vec<u16>, Refusal> {
        let most = self.limit();
        if first > most {
            let about = format!(
                "starting stream identifier {first} is out of range; the drive has {most} streams"
            );
            return Err(Refusal::CheckCondition { sense: Sense::InvalidFieldInCdb, about });
        }
        Ok(self.ids().into_iter().filter(|&id| id >= first).collect())
    }

    /// Handles a write to a stream that is not open.
    pub(crate) fn scsi_route(
        &mut self,
        route: &mut [u16],
        id: u16,
        tally: &mut Tally,
    ) -> Option<StreamId> {
        if id > self.limit() {
            return None;
        }
        while !self.is_open(id) {
            self.scsi_open(route, tally).ok()?;
        }
        Some(StreamId(route[usize::from(id)]))
    }
}
