//! Heat map of I/Os by address and time. Both axes grow with the trace.

const TIMES: usize = 96;
const ADDRESSES: usize = 64;
/// Initial cell size. All cell sizes are powers of two, so that no division is needed.
const FIRST_BITS: u32 = 20;

#[derive(Clone, Debug)]
pub(crate) struct Heat {
    /// Base-2 logarithms of the cell size in ns and bytes.
    time_bits: u32,
    address_bits: u32,
    /// Reads and writes, by address and time.
    cells: Vec<[u32; 2]>,
}

impl Default for Heat {
    fn default() -> Self {
        Self {
            time_bits: FIRST_BITS,
            address_bits: FIRST_BITS,
            cells: vec![[0; 2]; TIMES * ADDRESSES],
        }
    }
}

impl Heat {
    pub(crate) fn cell_ns(&self) -> u64 {
        1 << self.time_bits
    }

    pub(crate) fn cell_bytes(&self) -> u64 {
        1 << self.address_bits
    }

    #[inline]
    pub(crate) fn add(&mut self, time_ns: u64, offset: u64, write: bool) {
        while time_ns >> self.time_bits >= TIMES as u64 {
            self.fold(|address, time| (address, time / 2));
            self.time_bits += 1;
        }
        while offset >> self.address_bits >= ADDRESSES as u64 {
            self.fold(|address, time| (address / 2, time));
            self.address_bits += 1;
        }
        let at =
            (offset >> self.address_bits) as usize * TIMES + (time_ns >> self.time_bits) as usize;
        let cell = &mut self.cells[at][usize::from(write)];
        *cell = cell.saturating_add(1);
    }

    #[cold]
    fn fold(&mut self, place: impl Fn(usize, usize) -> (usize, usize)) {
        let all = std::mem::replace(&mut self.cells, vec![[0; 2]; TIMES * ADDRESSES]);
        for (n, cell) in all.into_iter().enumerate() {
            let (address, time) = place(n / TIMES, n % TIMES);
            let to = &mut self.cells[address * TIMES + time];
            to[0] = to[0].saturating_add(cell[0]);
            to[1] = to[1].saturating_add(cell[1]);
        }
    }

    /// Returns the rows by address up to the last one in use, for reads (0) or writes (1).
    pub(crate) fn rows(&self, which: usize) -> Vec<Vec<u32>> {
        let used = |n: &usize| self.cells[*n] != [0; 2];
        let last = (0..self.cells.len()).filter(used).map(|n| n / TIMES).max().unwrap_or(0);
        let end = (0..self.cells.len()).filter(used).map(|n| n % TIMES).max().unwrap_or(0);
        let row = |n: usize| (0..=end).map(|t| self.cells[n * TIMES + t][which]).collect();
        (0..=last).map(row).collect()
    }
}
