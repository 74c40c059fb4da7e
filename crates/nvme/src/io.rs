//! I/O queue commands (NVM Command Set 1.1, 3.2), converted to work for the drive.

use crate::admin::whole_page;
use crate::command::{ALL_NAMESPACES, Entry, MAX_TRANSFER, NSID, Placement, Request, Span, Work};
use crate::directives::has_streams_enabled;
use crate::drive::{Identity, PlacementInterface};
use crate::fdp;
use crate::page::read;
use crate::status::{Refusal, Status};
use crate::subsystem::{Answer, Answered, Context};

pub(crate) const FLUSH: u8 = 0x00;
pub(crate) const WRITE: u8 = 0x01;
pub(crate) const READ: u8 = 0x02;
pub(crate) const COMPARE: u8 = 0x05;
pub(crate) const WRITE_ZEROES: u8 = 0x08;
pub(crate) const DATASET_MANAGEMENT: u8 = 0x09;
pub(crate) const VERIFY: u8 = 0x0c;
pub(crate) const MANAGEMENT_RECEIVE: u8 = 0x12;
pub(crate) const MANAGEMENT_SEND: u8 = 0x1d;

/// Maximum size of a Verify or Write Zeroes command, as reported by CNS 06h.
const ZEROES_BYTES: u64 = 4096 << crate::identify::ZEROES_LIMIT;
const RANGE_BYTES: usize = 16;

pub(crate) fn is_supported(opcode: u8, identity: &Identity) -> bool {
    match opcode {
        FLUSH | WRITE | READ | COMPARE | WRITE_ZEROES | DATASET_MANAGEMENT | VERIFY => true,
        MANAGEMENT_RECEIVE | MANAGEMENT_SEND => identity.fdp().is_some(),
        _ => false,
    }
}

pub(crate) fn execute(mut context: Context<'_>, request: Request<'_>) -> Answered {
    let entry = request.entry;
    let opcode = entry.opcode();
    if !is_supported(opcode, context.drive.identity()) {
        return Err(Refusal::at(Status::INVALID_OPCODE, 0));
    }
    if entry.nsid() != NSID && !(opcode == FLUSH && entry.nsid() == ALL_NAMESPACES) {
        return Err(Refusal::at(Status::INVALID_NAMESPACE, 4));
    }
    let fua = entry.flag(12, 30);
    let work = match opcode {
        MANAGEMENT_RECEIVE => return fdp::receive(&mut context, request),
        MANAGEMENT_SEND => return fdp::send(&mut context, request),
        FLUSH => Work::Flush,
        READ => {
            let span = span(&context, entry, u64::from(MAX_TRANSFER))?;
            whole_page(request, span.length as usize)?;
            Work::Read(span)
        }
        WRITE => {
            let placement = placement(&mut context, entry)?;
            Work::Write { span: sent(&context, request)?, placement, fua }
        }
        COMPARE => Work::Compare(sent(&context, request)?),
        VERIFY => Work::Verify(span(&context, entry, ZEROES_BYTES)?),
        WRITE_ZEROES => {
            let placement = placement(&mut context, entry)?;
            let span = span(&context, entry, ZEROES_BYTES)?;
            Work::WriteZeroes { span, placement, fua, deallocate: entry.flag(12, 25) }
        }
        _ => match deallocated(&context, request)? {
            Some(spans) => Work::Deallocate(spans),
            None => return Ok(Answer::OK),
        },
    };
    Ok(Answer::Work(work))
}

/// Returns the byte range that Starting LBA and Number of Logical Blocks specify.
fn span(context: &Context<'_>, entry: Entry<'_>, most: u64) -> Result<Span, Refusal> {
    let block = context.block_bytes();
    let (start, count) = (entry.quadword(10), u64::from(entry.bits(12, 0, 15)) + 1);
    let length = count * block.0;
    if length > most {
        return Err(Refusal::field(12));
    }
    within(context, start, count, 40)?;
    let span = Span { offset: start * block.0, length };
    debug_assert!(span.offset + span.length <= context.drive.identity().capacity.0);
    Ok(span)
}

fn within(context: &Context<'_>, start: u64, count: u64, byte: u8) -> Result<(), Refusal> {
    let end = start.checked_add(count);
    let fits = end.is_some_and(|end| end <= context.blocks());
    if fits { Ok(()) } else { Err(Refusal::at(Status::LBA_OUT_OF_RANGE, byte)) }
}

/// Returns the byte range of a command whose data come from the host.
fn sent(context: &Context<'_>, request: Request<'_>) -> Result<Span, Refusal> {
    let span = span(context, request.entry, u64::from(MAX_TRANSFER))?;
    request.first(span.length as usize)?;
    Ok(span)
}

/// Returns the Directive Type and Directive Specific fields of a write. The stream counts only
/// while the directive is enabled. The drive handles unknown placement identifiers.
fn placement(context: &mut Context<'_>, entry: Entry<'_>) -> Result<Placement, Refusal> {
    const STREAMS: u32 = 1;
    const DATA_PLACEMENT: u32 = 2;
    let specific = entry.bits(13, 16, 31) as u16;
    match (entry.bits(12, 20, 23), &context.drive.identity().placement) {
        (0, _) => Ok(Placement::Unstated),
        (STREAMS, PlacementInterface::Streams) => {
            let is_enabled = has_streams_enabled(context.drive);
            let counts = is_enabled && specific != 0;
            Ok(if counts { Placement::Stream(specific) } else { Placement::Unstated })
        }
        (DATA_PLACEMENT, PlacementInterface::Fdp(_)) => Ok(Placement::Identifier(specific)),
        _ => Err(Refusal::field(12)),
    }
}

/// Returns the ranges of a Dataset Management command; `None` if the command only provides hints.
fn deallocated(context: &Context<'_>, request: Request<'_>) -> Result<Option<Vec<Span>>, Refusal> {
    let entry = request.entry;
    let count = entry.bits(10, 0, 7) as usize + 1;
    let ranges = request.first(count * RANGE_BYTES)?;
    if !entry.flag(11, 2) {
        return Ok(None);
    }
    let block = context.block_bytes();
    let mut spans = Vec::with_capacity(count);
    for range in ranges.chunks_exact(RANGE_BYTES) {
        let blocks = u64::from(read(range, 4).map_or(0, u32::from_le_bytes));
        let start = read(range, 8).map_or(0, u64::from_le_bytes);
        within(context, start, blocks, 24)?;
        if blocks > 0 {
            spans.push(Span { offset: start * block.0, length: blocks * block.0 });
        }
    }
    Ok(Some(spans))
}
