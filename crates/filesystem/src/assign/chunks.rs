//! Fixed-size chunks of the address space, the granularity at which AutoStream keeps statistics.

/// Number of chunks of `size` blocks that cover a drive of `blocks` blocks.
pub(super) fn chunks(blocks: u32, size: u32) -> usize {
    blocks.div_ceil(size) as usize
}

/// Splits a request at chunk boundaries; each item is the chunk, the first block and the block
/// count.
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
