//! Chunks: the pieces of the drive that AutoStream keeps its statistics by.

/// Number of chunks of `size` blocks in a drive.
pub(super) fn chunks(blocks: u32, size: u32) -> usize {
    blocks.div_ceil(size) as usize
}

/// Blocks of a request that lie in one chunk each: chunk, first block, count.
pub(super) fn split(block: u32, count: u32, size: u32) -> impl Iterator<Item = (usize, u32, u32)> {
    let end = block + count;
    let mut next = block;
    std::iter::from_fn(move || {
        (next < end).then(|| {
            let first = next;
            let stop = (first - first % size).saturating_add(size).min(end);
            next = stop;
            ((first / size) as usize, first, stop - first)
        })
    })
}
