//! What the texts of blkparse and of the kernel's tracepoints have in common.

use writecliff_tracefs::{BlockEvent, EventKind, parse_rwbs};

use crate::names::Names;
use crate::number::whole;
use crate::skipped::Reason;

/// Address, size, and what stands in brackets at the end: `2048 + 8 [fio]`.
struct Extent<'a> {
    sector: u64,
    sectors: u32,
    /// The process, or the error of a completion.
    bracket: &'a [u8],
}

/// Read the extent in the words after the letters of the operation; without one it is empty.
fn extent(text: &[u8]) -> Result<Extent<'_>, Reason> {
    let bracket = match (text.iter().rposition(|&b| b == b'['), text.trim_ascii_end().last()) {
        (Some(at), Some(b']')) => &text[at + 1..text.trim_ascii_end().len() - 1],
        _ => &[],
    };
    let Some(plus) = text.windows(3).position(|three| three == b" + ") else {
        // A flush without an address, or with one that means nothing.
        return Ok(Extent { sector: 0, sectors: 0, bracket });
    };
    let before = text[..plus].trim_ascii_end();
    let begin = before.iter().rposition(|&byte| byte == b' ').map_or(0, |at| at + 1);
    let after = &text[plus + 3..];
    let end = after.iter().position(|&byte| byte == b' ').unwrap_or(after.len());
    let sectors = u32::try_from(whole(&after[..end])?).map_err(|_| "number too large")?;
    let sector = match &before[begin..] {
        // A flush of the kernel has the largest address there is.
        b"18446744073709551615" => 0,
        said => whole(said)?,
    };
    Ok(Extent { sector, sectors, bracket })
}

/// Parses a block event. `rest` contains the words after the operation letters `rwbs`.
pub(crate) fn event(
    time_ns: u64,
    kind: EventKind,
    rwbs: &[u8],
    rest: &[u8],
    processes: &mut Names,
) -> Result<BlockEvent, Reason> {
    let extent = extent(rest)?;
    // blkparse writes a flush without data as FN, the kernel as FF.
    let flush = rwbs.starts_with(b"FN") && extent.sectors == 0;
    let (operation, flags) = parse_rwbs(if flush { b"FF" } else { rwbs }, extent.sectors);
    let digits = extent.bracket.strip_prefix(b"-").unwrap_or(extent.bracket);
    let completion = matches!(kind, EventKind::Complete | EventKind::BioComplete);
    let errno = if completion { whole(digits).unwrap_or(0) as u16 } else { 0 };
    let name = if kind == EventKind::Complete { 0 } else { processes.number(extent.bracket) };
    Ok(BlockEvent {
        time_ns,
        kind,
        operation,
        flags,
        sector: extent.sector,
        sectors: extent.sectors,
        thread_id: 0,
        name,
        errno,
    })
}
