//! Times of flash operations by page type, as given in the device file.

use writecliff_base::{BytesPerSecond, Nanos};

/// Times of one flash part. Indices of `read` and `program` are page types (0 = fastest page);
/// a one-shot part has one program time for the whole word line, at index 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlashTiming {
    /// tR by page type.
    pub read: Vec<Nanos>,
    /// tPROG by page type.
    pub program: Vec<Nanos>,
    /// tBERS.
    pub erase: Nanos,
    /// Data rate of a channel, whose dies share the bus.
    pub bus: BytesPerSecond,
    /// Bus time of the command and address cycles of an operation.
    pub command: Nanos,
    /// Time from the suspend command until the die can read; `None` if the part does not support
    /// suspend.
    pub program_suspend: Option<Nanos>,
    pub erase_suspend: Option<Nanos>,
    /// Whether planes of a die read different pages at the same time.
    pub independent_plane_reads: bool,
}

impl FlashTiming {
    #[inline]
    pub fn read_time(&self, page_type: u32) -> Nanos {
        self.read[page_type as usize % self.read.len()]
    }

    #[inline]
    pub fn program_time(&self, page_type: u32) -> Nanos {
        self.program[page_type as usize % self.program.len()]
    }

    /// Mean program time of a unit over the page types.
    pub fn program_mean(&self) -> Nanos {
        Nanos(self.program.iter().map(|t| t.0).sum::<u64>() / self.program.len() as u64)
    }

    #[inline]
    pub fn transfer(&self, bytes: u64) -> Nanos {
        self.bus.time_for(bytes)
    }
}
