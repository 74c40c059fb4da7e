//! Detection of sequential I/O: an I/O is sequential if it starts where a recent run ended.
//!
//! Several programs use a volume, so the detector stores where the most recent runs ended. A new
//! run replaces a run that was not continued for a while (clock algorithm).

/// Maximum number of tracked runs.
pub const RUNS: usize = 32;

const _: () = assert!(RUNS <= u32::BITS as usize, "each run has a bit");

/// Runs of one operation type on one volume.
#[derive(Clone, Debug)]
pub struct Cursors {
    ends: [u64; RUNS],
    /// Bit set of the runs continued since the clock hand last passed them.
    continued: u32,
    hand: u32,
}

impl Default for Cursors {
    fn default() -> Self {
        Self { ends: [u64::MAX; RUNS], continued: 0, hand: 0 }
    }
}

impl Cursors {
    /// Records an I/O and returns `true` if the I/O continues a run.
    #[inline]
    pub fn take(&mut self, offset: u64, end: u64) -> bool {
        self.place(offset, end).1
    }

    /// Returns `true` if an I/O at `offset` would continue a run.
    pub fn has(&self, offset: u64) -> bool {
        self.ends.contains(&offset)
    }

    /// Returns the run number of an I/O, and `true` if the I/O continues the run. Run numbers are
    /// reused after a run is replaced.
    #[inline]
    pub fn place(&mut self, offset: u64, end: u64) -> (usize, bool) {
        if let Some(n) = self.ends.iter().position(|&run_end| run_end == offset) {
            self.ends[n] = end;
            self.continued |= 1 << n;
            return (n, true);
        }
        while self.continued & (1 << self.hand) != 0 {
            self.continued &= !(1 << self.hand);
            self.hand = (self.hand + 1) % RUNS as u32;
        }
        debug_assert_eq!(self.continued & (1 << self.hand), 0, "a run in use is replaced");
        let n = self.hand as usize;
        self.ends[n] = end;
        self.hand = (self.hand + 1) % RUNS as u32;
        (n, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interleaved_runs_are_sequential() {
        let mut cursors = Cursors::default();
        let mut sequential = 0;
        for n in 0..100_u64 {
            for run in 0..16 {
                let offset = (run << 40) + n * 4096;
                sequential += u32::from(cursors.take(offset, offset + 4096));
            }
        }
        assert_eq!(sequential, 16 * 99);
    }

    #[test]
    fn a_run_outlives_random_ios_between() {
        let mut cursors = Cursors::default();
        let mut sequential = 0;
        for n in 0..1000_u64 {
            sequential += u32::from(cursors.take(n * 4096, (n + 1) * 4096));
            for random in 0..20 {
                let offset = (n * 20 + random + 1) << 32;
                assert!(!cursors.take(offset, offset + 4096));
            }
        }
        assert_eq!(sequential, 999);
    }
}
