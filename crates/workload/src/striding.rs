//! Sequential addresses that skip holes, go backwards, or alternate between several files.
//!
//! The options correspond to fio's `rw=write:112k`, `rw=read:-8k` and `nrfiles`: an I/O starts at
//! the end of the last I/O of its operation and file, plus the hole. The first I/O always starts at
//! 0, so a job that goes backwards starts there and continues from the end of the file. An I/O that
//! would exceed the file starts over, either at the start or at the hole before the end. Holes may
//! also follow only after a stretch of I/Os, as with fio's `zonemode=strided`.
//!
//! Files are equal, adjacent portions of the range; each I/O goes to the next file.

use writecliff_base::Bytes;
use writecliff_host_interface::Operation;

use crate::spec::JobSpec;

/// One position per file and operation.
#[derive(Clone, Debug)]
pub(crate) struct Striding {
    positions: Vec<[u64; 3]>,
    /// Number of bytes since the last hole, by file and operation.
    stretches: Vec<[u64; 3]>,
    turn: usize,
    file_bytes: u64,
    hole: i64,
    hole_after: u64,
    one_position: bool,
}

impl Striding {
    /// Creates the positions. `unit` is the smallest alignment of the job's blocks; file sizes are
    /// multiples of this value.
    pub(crate) fn new(job: &JobSpec, range: Bytes, unit: u64, start: u64) -> Self {
        let files = u64::from(job.files);
        let file_bytes = range.0 / files / unit * unit;
        let position = start % file_bytes.max(1);
        let positions = vec![[position; 3]; job.files as usize];
        let stretches = vec![[0; 3]; job.files as usize];
        let (hole, hole_after) = (job.hole_bytes, job.hole_after_bytes);
        let one_position = job.one_position;
        Self { positions, stretches, turn: 0, file_bytes, hole, hole_after, one_position }
    }

    /// Returns `true` if each file has room for a block of `largest` bytes.
    pub(crate) fn holds(&self, largest: u64) -> bool {
        self.file_bytes >= largest
    }

    pub(crate) fn next(&mut self, operation: Operation, length: u32) -> u64 {
        let file = self.turn;
        self.turn = (file + 1) % self.positions.len();
        let index = if self.one_position { 0 } else { operation as usize };
        let position = &mut self.positions[file][index];
        let stretch = &mut self.stretches[file][index];
        let length = u64::from(length);
        debug_assert!(length <= self.file_bytes, "a block of {length} leaves its file");
        let last = self.file_bytes - length;
        let mut at = *position;
        if at > 0 && self.hole != 0 && *stretch >= self.hole_after {
            *stretch = 0;
            let back = last.saturating_add_signed(self.hole.saturating_add_unsigned(length));
            let restart = if self.hole > 0 { 0 } else { back.min(last) };
            at = at.checked_add_signed(self.hole).filter(|at| *at <= last).unwrap_or(restart);
        } else if at > last {
            at = 0;
        }
        debug_assert!(at <= last, "a block at {at} leaves its file");
        *position = at + length;
        *stretch += length;
        file as u64 * self.file_bytes + at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offsets(hole_bytes: i64, files: u32, range: u64, count: usize) -> Vec<u64> {
        offsets_of(&JobSpec { hole_bytes, files, ..JobSpec::default() }, range, count)
    }

    fn offsets_of(job: &JobSpec, range: u64, count: usize) -> Vec<u64> {
        let mut striding = Striding::new(job, Bytes(range), 4096, 0);
        (0..count).map(|_| striding.next(Operation::Write, 4096) / 4096).collect()
    }

    #[test]
    fn holes_are_left_out_and_the_end_starts_over() {
        assert_eq!(offsets(8192, 1, 10 * 4096, 6), [0, 3, 6, 9, 0, 3]);
    }

    #[test]
    fn holes_come_after_a_stretch() {
        let job = JobSpec { hole_bytes: 3 * 4096, hole_after_bytes: 8192, ..JobSpec::default() };
        assert_eq!(offsets_of(&job, 10 * 4096, 7), [0, 1, 5, 6, 0, 1, 5]);
    }

    #[test]
    fn backwards_continues_from_the_end() {
        assert_eq!(offsets(-8192, 1, 6 * 4096, 8), [0, 4, 3, 2, 1, 0, 4, 3]);
    }

    #[test]
    fn files_take_turns() {
        assert_eq!(offsets(0, 2, 9 * 4096, 6), [0, 4, 1, 5, 2, 6]);
        assert_eq!(offsets(4096, 2, 8 * 4096, 6), [0, 4, 2, 6, 0, 4]);
    }
}
