//! Death times: the data of a write die at the next write or TRIM of the same block.

use super::block_trace::BlockTrace;
use super::layout::BlockOp;

/// Death time of data that outlive the trace.
pub const NEVER: u32 = u32::MAX;

/// Returns, for every block written, in order, the clock at which its data die, or [`NEVER`].
///
/// The clock counts blocks written by the host, because garbage collection depends on that and not
/// on wall-clock time.
pub fn deaths(trace: &BlockTrace) -> Vec<u32> {
    let mut deaths = vec![NEVER; trace.written_blocks as usize];
    let mut last = vec![NEVER; trace.capacity_blocks as usize];
    let mut clock = 0;
    for request in &trace.requests {
        let blocks = request.block as usize..(request.block + request.count) as usize;
        for slot in &mut last[blocks] {
            if *slot != NEVER {
                deaths[*slot as usize] = clock;
            }
            *slot = NEVER;
            if request.op == BlockOp::Write {
                *slot = clock;
                clock += 1;
            }
        }
    }
    deaths
}
