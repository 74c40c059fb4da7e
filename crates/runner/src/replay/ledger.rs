//! Counts blocks by origin, stream and lifetime.

use writecliff_filesystem::BlockTrace;
use writecliff_filesystem::assign::Piece;

/// Number of lifetime buckets. Bucket n counts lifetimes of at least 2^(n-1) and below 2^n written
/// blocks; the last bucket counts data that are live at the end of the trace.
pub const BUCKETS: usize = 34;
const ALIVE: usize = BUCKETS - 1;
const NEVER: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct LastWrite {
    clock: u32,
    stream: u16,
    origin: u16,
}

/// Counts blocks by origin, stream and lifetime. The clock of the ledger is the number of blocks
/// written.
#[derive(Clone, Debug)]
pub struct Ledger {
    pub(super) clock: u32,
    /// Number of streams.
    pub streams: u16,
    written: Vec<LastWrite>,
    /// Blocks by origin, stream and bucket, in row-major order.
    pub counts: Vec<u64>,
}

impl Ledger {
    pub(super) fn new(trace: &BlockTrace, streams: u16) -> Self {
        let none = LastWrite { clock: NEVER, stream: 0, origin: 0 };
        Self {
            clock: 0,
            streams,
            written: vec![none; trace.capacity_blocks as usize],
            counts: vec![0; usize::from(trace.origins) * usize::from(streams) * BUCKETS],
        }
    }

    #[inline]
    fn count(&mut self, index: usize, bucket: impl FnOnce(u32) -> usize) {
        let LastWrite { clock, stream, origin } = self.written[index];
        if clock != NEVER {
            let class = usize::from(origin) * usize::from(self.streams) + usize::from(stream);
            self.counts[class * BUCKETS + bucket(clock)] += 1;
        }
    }

    #[inline]
    pub(super) fn write(&mut self, block: u32, piece: Piece, origin: u16) {
        debug_assert!(piece.stream < self.streams, "blocks would count for another origin");
        for block in block..block + piece.count {
            let now = self.clock;
            self.count(block as usize, |then| bucket_of(now - then));
            self.written[block as usize] = LastWrite { clock: now, stream: piece.stream, origin };
            self.clock += 1;
        }
    }

    #[inline]
    pub(super) fn trim(&mut self, block: u32, count: u32) {
        let now = self.clock;
        for block in block..block + count {
            self.count(block as usize, |then| bucket_of(now - then));
            self.written[block as usize].clock = NEVER;
        }
    }

    /// Prefetches a block's entry into the cache.
    #[inline]
    pub(super) fn announce(&self, block: u32) {
        #[cfg(target_arch = "x86_64")]
        if let Some(entry) = self.written.get(block as usize) {
            // SAFETY: the address comes from a reference, and a prefetch has no architectural
            // effect.
            unsafe {
                use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
                _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(entry).cast());
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = block;
    }

    pub(super) fn blocks(&self) -> usize {
        self.written.len()
    }

    /// Returns the blocks that hold data.
    pub(super) fn live(&self) -> impl Iterator<Item = u32> {
        let alive = |(block, written): (usize, &LastWrite)| {
            (written.clock != NEVER).then_some(block as u32)
        };
        self.written.iter().enumerate().filter_map(alive)
    }

    /// Counts the live blocks and clears the entries.
    pub(super) fn finished(mut self) -> Self {
        for index in 0..self.written.len() {
            self.count(index, |_| ALIVE);
        }
        let counted: u64 = self.counts.iter().sum();
        assert_eq!(counted, u64::from(self.clock), "each block that is written counts once");
        self.written = Vec::new();
        self
    }
}

#[inline]
fn bucket_of(lifetime: u32) -> usize {
    (u32::BITS - lifetime.leading_zeros()) as usize
}
