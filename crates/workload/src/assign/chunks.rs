//! Chunks: the pieces of the drive that AutoStream keeps its statistics by.

/// Blocks in a chunk: 1 MiB. The paper's chunks are of the order of a megabyte; ours is what the
/// allocator keeps together.
const CHUNK_BLOCKS: u32 = 256;

/// Number of the chunk that a block is in.
#[inline]
pub(super) fn chunk_of(block: u32) -> usize {
    (block / CHUNK_BLOCKS) as usize
}

pub(super) fn chunks(blocks: u32) -> usize {
    blocks.div_ceil(CHUNK_BLOCKS) as usize
}

/// Blocks of a request that lie in one chunk each: chunk, first block, count.
pub(super) fn split(block: u32, count: u32) -> impl Iterator<Item = (usize, u32, u32)> {
    let end = block + count;
    let mut next = block;
    std::iter::from_fn(move || {
        (next < end).then(|| {
            let first = next;
            let stop = (first - first % CHUNK_BLOCKS).saturating_add(CHUNK_BLOCKS).min(end);
            next = stop;
            (chunk_of(first), first, stop - first)
        })
    })
}
