//! Flash operation times by page type, as given in the device file.

use writecliff_base::keys::{Count, Flag, PositiveRate, PositiveTime, Time, Times};
use writecliff_base::{Nanos, section};

section! {
    /// Operation times of a flash part. `read` and `program` are indexed by page type (0 = fastest
    /// page). A one-shot part has a single program time for the whole word line, at index 0.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct FlashTiming {
        read: required Times, "tR for each page type";
        program: required Times, "tPROG: a single value with `one_shot`, otherwise a value for \
         each page type";
        erase: required PositiveTime, "tBERS";
        bus: required PositiveRate, "data rate of a channel, whose dies share the bus";
        command: required Time, "bus time of the command and address cycles of an operation";
        program_suspend: optional Time,
            "time from suspending a program until the die can read; without it, reads wait";
        erase_suspend: optional Time,
            "time from suspending an erase until the die can read; without it, reads wait";
        program_suspend_step: default Time = Nanos::ZERO,
            "a program can be suspended only at multiples of this time after its start";
        erase_suspend_step: default Time = Nanos::ZERO,
            "an erase can be suspended only at multiples of this time after its start";
        erase_portions: default Count(1..=1 << 20) = 1,
            "number of blocks that share one physical block: on average, one in this many erases \
             of a die, chosen at random, takes the time `erase`, and the others take no time";
        independent_plane_reads: default Flag = false,
            "planes of a die serve host reads of different pages at the same time";
    }
}

impl FlashTiming {
    /// Returns tR for a page type.
    #[inline]
    pub fn read_time(&self, page_type: u32) -> Nanos {
        self.read[page_type as usize % self.read.len()]
    }

    /// Returns tPROG for a page type.
    #[inline]
    pub fn program_time(&self, page_type: u32) -> Nanos {
        self.program[page_type as usize % self.program.len()]
    }

    /// Returns the mean program time of a program unit over the page types.
    pub fn program_mean(&self) -> Nanos {
        debug_assert!(!self.program.is_empty(), "a time for each page type");
        Nanos(self.program.iter().map(|t| t.0).sum::<u64>() / self.program.len() as u64)
    }
}
