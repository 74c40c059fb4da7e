//! Counts writes to streams that the drive does not have, and generates warnings about these
//! writes.

use writecliff_base::Bytes;
use writecliff_host_interface::placement::DataPlacementStatus;

/// Maximum number of streams that a warning lists individually.
const NAMED: usize = 8;

/// Returns the bytes written to unavailable streams during a step, by stream number.
pub fn since(before: &DataPlacementStatus, after: &DataPlacementStatus) -> Vec<(u16, u64)> {
    let earlier = |number| {
        let entry = before.overflow_by_number.iter().find(|(n, _)| *n == number);
        entry.map_or(0, |&(_, bytes)| bytes)
    };
    let added = after.overflow_by_number.iter().map(|&(n, bytes)| (n, bytes - earlier(n)));
    added.filter(|&(_, bytes)| bytes > 0).collect()
}

/// Returns the warning about writes to unavailable streams during a step, if there were any.
pub(crate) fn warning(both: Option<&(DataPlacementStatus, DataPlacementStatus)>) -> Option<String> {
    let (before, after) = both?;
    let added = since(before, after);
    let bytes = Bytes(added.iter().map(|(_, bytes)| bytes).sum());
    if bytes.0 == 0 {
        return None;
    }
    let mut numbers: Vec<String> = added.iter().map(|(n, _)| n.to_string()).collect();
    if numbers.len() > NAMED {
        let more = numbers.split_off(NAMED).len();
        numbers.push(format!("and {more} more"));
    }
    let (numbers, limit) = (numbers.join(", "), after.limit);
    Some(match (after.fdp.is_some(), after.enabled) {
        (true, _) => format!(
            "{bytes} were written with placement identifiers that the drive does not have \
             ({numbers}) and went to placement handle 0; it has {limit} handles"
        ),
        (false, true) => format!(
            "{bytes} for streams that could not be opened ({numbers}) went to the default stream: \
             the drive has {limit} other streams"
        ),
        (false, false) => format!(
            "{bytes} for streams ({numbers}) went to the default stream: the Streams directive is \
             not enabled"
        ),
    })
}
