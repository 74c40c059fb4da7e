//! Address generators, which determine the offset of the next I/O; there is one generator for each
//! address kind.
//!
//! Offsets are relative to the start of the range, are multiples of the alignment (by default the
//! block size), and leave room for the whole block. Alignment is relative to the start of the range
//! or segment, as in fio, where it is relative to `offset`.
//!
//! Uniform addresses are drawn in slots of the I/O size. All slots are equally likely, and no slot
//! straddles two segments. Addresses may repeat, as with fio's `norandommap` and as the PTS
//! requires. The bias of a bounded draw is below range / 2^64 ([`writecliff_base::Prng::below`]).
//! The generator is validated by a chi-square test over all slots, with and without segments. All
//! other random addresses are drawn in units of the job's smallest alignment and then aligned down,
//! so that blocks of all sizes agree on which addresses are hot.

use writecliff_base::{Bytes, Prng};
use writecliff_host_interface::Operation;

use crate::block_map::BlockMap;
use crate::segments::SegmentMap;
use crate::sequence::Sequence;
use crate::skewed::{Ranks, Scatter};
use crate::spec::{AddressKind, AddressSpec, BlockSize, JobSpec, Pattern};
use crate::sprandom::Sprandom;
use crate::striding::Striding;

/// Precomputed values for one block size of a job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SizeClass {
    pub(crate) length: u32,
    pub(crate) align: u64,
    /// `align - 1` if the alignment is a power of two, otherwise 0.
    mask: u64,
    /// Number of aligned offsets where the block fits into the range, or into a segment.
    pub(crate) slots: u64,
}

impl SizeClass {
    /// Prepares blocks of `length` bytes in a contiguous extent of `extent` bytes.
    fn new(length: u64, align: Option<u64>, extent: u64) -> Self {
        let align = align.unwrap_or(length);
        let mask = if align.is_power_of_two() { align - 1 } else { 0 };
        let slots = extent.checked_sub(length).map_or(0, |room| room / align + 1);
        Self { length: length as u32, align, mask, slots }
    }

    /// Draws an aligned offset where the block fits; all such offsets are equally likely.
    #[inline]
    fn draw(&self, random: &mut Prng) -> u64 {
        debug_assert!(self.slots > 0, "a block of {} does not fit", self.length);
        random.below(self.slots) * self.align
    }

    /// Returns the highest aligned offset at or below `position` where the block still fits.
    #[inline]
    fn align_down(&self, position: u64) -> u64 {
        let aligned =
            if self.mask > 0 { position & !self.mask } else { position / self.align * self.align };
        debug_assert!(self.slots > 0, "a block of {} does not fit", self.length);
        aligned.min((self.slots - 1) * self.align)
    }
}

/// Block sizes of a job: for reads, and for writes and trims if they differ.
#[derive(Clone, Debug)]
pub(crate) struct SizeClasses {
    pub(crate) common: Vec<SizeClass>,
    pub(crate) writes: Option<Vec<SizeClass>>,
    pub(crate) trims: Option<Vec<SizeClass>>,
}

impl SizeClasses {
    fn new(job: &JobSpec, extent: u64) -> Self {
        let classes = |sizes: &[BlockSize], align| {
            sizes.iter().map(|size| SizeClass::new(size.bytes, align, extent)).collect::<Vec<_>>()
        };
        let of_operation = |operation| {
            job.own_blocks(operation)
                .map(|of_operation| classes(&of_operation.block_sizes, of_operation.align_bytes))
        };
        Self {
            common: classes(&job.block_sizes, job.align_bytes),
            writes: of_operation(Operation::Write),
            trims: of_operation(Operation::Trim),
        }
    }

    /// Returns the smallest alignment of all block sizes.
    fn unit(&self) -> u64 {
        let specific = self.writes.iter().chain(&self.trims).flatten();
        self.common.iter().chain(specific).map(|class| class.align).min().unwrap_or(1)
    }
}

/// Generates the offsets of one thread.
#[derive(Clone, Debug)]
pub(crate) enum AddressGenerator {
    Uniform,
    UniformSegments(SegmentMap),
    Sequential(Sequential),
    SequentialSegments(Sequential, SegmentMap),
    Striding(Striding),
    Skewed { ranks: Ranks, scatter: Option<Scatter>, offsets: OffsetMap },
    Sequence { blocks: Sequence, offsets: OffsetMap },
    Sprandom { writes: Box<Sprandom>, offsets: OffsetMap },
    Once(Box<BlockMap>),
}

/// Maps units of the active range amount to offsets in the range.
#[derive(Clone, Debug)]
pub(crate) struct OffsetMap {
    unit: u64,
    segments: Option<SegmentMap>,
}

impl OffsetMap {
    #[inline]
    fn offset(&self, unit: u64, class: &SizeClass) -> u64 {
        let position = unit * self.unit;
        match &self.segments {
            None => class.align_down(position),
            Some(map) => {
                let (start, inner) = map.locate(position);
                start + class.align_down(inner)
            }
        }
    }
}

/// Sequential addresses: one position per operation, which wraps at the end of the range.
///
/// Each operation has a separate position, as with fio's `rw=rw` (observed with fio 3.33: mixed
/// reads and writes each pass over the whole file, and neither skips blocks that the other
/// accessed). A block that would cross the end of the range starts at the beginning instead, so a
/// remainder smaller than a block is never used. If `one_position`, all operations share one
/// position.
#[derive(Clone, Debug)]
pub(crate) struct Sequential {
    positions: [u64; 3],
    range: u64,
    /// Alignment, which is 1 if the job sets none: blocks of mixed sizes then follow each other
    /// without gaps.
    align: u64,
    one_position: bool,
}

impl Sequential {
    #[inline]
    fn next(&mut self, operation: Operation, length: u32) -> u64 {
        let index = self.index(operation);
        let position = &mut self.positions[index];
        if self.align > 1 {
            *position = position.next_multiple_of(self.align);
        }
        let length = u64::from(length);
        let offset = if *position + length > self.range { 0 } else { *position };
        debug_assert!(offset + length <= self.range, "a block of {length} at {offset}");
        *position = offset + length;
        offset
    }

    /// Returns the index of the position that an operation uses.
    #[inline]
    fn index(&self, operation: Operation) -> usize {
        if self.one_position { 0 } else { operation as usize }
    }

    fn room(&self, operation: Operation) -> u64 {
        let position = self.positions[self.index(operation)];
        let next = if self.align > 1 { position.next_multiple_of(self.align) } else { position };
        self.range.saturating_sub(next)
    }

    /// Generates the next address in segments laid end to end; a block that would cross the end of
    /// a segment starts in the next segment.
    fn next_in(&mut self, map: &SegmentMap, operation: Operation, length: u32) -> u64 {
        let index = self.index(operation);
        let (position, length) = (self.positions[index], u64::from(length));
        let mut segment = position / map.size * map.size;
        let mut inner = (position - segment).next_multiple_of(self.align);
        if inner + length > map.size {
            (segment, inner) = (segment + map.size, 0);
        }
        if segment >= self.range {
            segment = 0;
        }
        debug_assert!(inner + length <= map.size, "a block leaves its segment");
        self.positions[index] = segment + inner + length;
        map.locate(segment).0 + inner
    }
}

impl AddressGenerator {
    /// Creates the generator and size classes of thread `thread` of a validated and resolved job.
    pub(crate) fn new(
        job: &JobSpec,
        range: Bytes,
        thread: u32,
    ) -> Result<(Self, SizeClasses), String> {
        let segments = job.segments.map(|_| SegmentMap::new(job, range)).transpose()?;
        let extent = segments.as_ref().map_or(range.0, |map| map.size);
        let classes = SizeClasses::new(job, extent);
        let addresses = &job.addresses;
        let smallest = classes.unit();
        let unit = addresses.scatter_bytes.map_or(smallest, |piece| piece.min(smallest));
        let active = segments.as_ref().map_or(range.0, |map| map.size * map.starts.len() as u64);
        let units = active / unit;
        if job.pattern == Pattern::Sequential {
            return Ok((in_sequence(job, Bytes(active), unit, thread, segments)?, classes));
        }
        let offsets = OffsetMap { unit, segments };
        let generator = match addresses.kind {
            AddressKind::Uniform => offsets.segments.map_or(Self::Uniform, Self::UniformSegments),
            AddressKind::Sequence => {
                Self::Sequence { blocks: Sequence::new(addresses, units)?, offsets }
            }
            AddressKind::Sprandom => {
                let spare = addresses.spare_pct.unwrap_or_default() / 100.0;
                let writes = Sprandom::new(units, spare, addresses.regions.unwrap_or(100));
                Self::Sprandom { writes: Box::new(writes), offsets }
            }
            AddressKind::Once => Self::Once(Box::new(BlockMap::new(units, unit))),
            _ => Self::skewed(addresses, units, offsets).ok_or_else(|| {
                format!(
                    "{} is too small for the zones; it must have at least one block per zone",
                    Bytes(active)
                )
            })?,
        };
        Ok((generator, classes))
    }

    /// Creates a generator of skewed addresses; returns `None` if there are fewer units than zones.
    fn skewed(addresses: &AddressSpec, units: u64, offsets: OffsetMap) -> Option<Self> {
        let piece = addresses.scatter_bytes.unwrap_or(offsets.unit) / offsets.unit;
        let ranks = Ranks::of(addresses, units)?;
        let is_scattered = match ranks {
            Ranks::FioZipf(_) => false,
            Ranks::Zoned(_) => addresses.scatter_bytes.is_some(),
            _ => true,
        };
        let scatter = is_scattered.then(|| Scatter::new(units, piece, addresses.scatter_seed));
        Some(Self::Skewed { ranks, scatter, offsets })
    }

    #[expect(clippy::inline_always, reason = "once for each I/O")]
    #[inline(always)]
    pub(crate) fn next(
        &mut self,
        random: &mut Prng,
        class: &SizeClass,
        operation: Operation,
    ) -> u64 {
        // This kind is by far the most frequent and so cheap that a jump table would be visible in
        // profiles.
        if matches!(self, Self::Uniform) {
            return class.draw(random);
        }
        self.next_of_others(random, class, operation)
    }

    #[inline(never)]
    fn next_of_others(
        &mut self,
        random: &mut Prng,
        class: &SizeClass,
        operation: Operation,
    ) -> u64 {
        match self {
            Self::Uniform => class.draw(random),
            Self::Sequential(sequential) => sequential.next(operation, class.length),
            Self::SequentialSegments(sequential, map) => {
                sequential.next_in(map, operation, class.length)
            }
            Self::Striding(striding) => striding.next(operation, class.length),
            Self::UniformSegments(map) => map.draw(random) + class.draw(random),
            Self::Skewed { ranks, scatter, offsets } => {
                let rank = ranks.draw(random);
                offsets.offset(scatter.as_ref().map_or(rank, |all| all.apply(rank)), class)
            }
            Self::Sequence { blocks, offsets } => offsets.offset(blocks.next(operation), class),
            Self::Sprandom { writes, offsets } => offsets.offset(writes.draw(random), class),
            Self::Once(map) => map.draw(random, class.length).0,
        }
    }

    /// Returns the number of bytes from an operation's next offset to the end of the range, where
    /// its sequence starts over; `None` if the addresses do not form a single sequence.
    pub(crate) fn room(&self, operation: Operation) -> Option<u64> {
        match self {
            Self::Sequential(sequential) => Some(sequential.room(operation)),
            _ => None,
        }
    }
}

/// Returns the generator of a sequential job; `range` is the active range amount if the job has
/// `segments`. Returns an error if the job's files are smaller than its blocks.
fn in_sequence(
    job: &JobSpec,
    range: Bytes,
    unit: u64,
    thread: u32,
    segments: Option<SegmentMap>,
) -> Result<AddressGenerator, String> {
    let stride = u128::from(job.thread_stride_bytes) * u128::from(thread);
    let begin = |at: u64| ((stride + u128::from(at)) % u128::from(range.0.max(1))) as u64;
    let start = begin(job.start_bytes);
    if job.hole_bytes == 0 && job.files == 1 {
        let align = job.align_bytes.unwrap_or(1);
        let one_position = job.one_position;
        let write_start = job.write_start_bytes.map_or(start, begin);
        let positions = [start, write_start, start];
        let sequential = Sequential { positions, range: range.0, align, one_position };
        return Ok(match segments {
            None => AddressGenerator::Sequential(sequential),
            Some(map) => AddressGenerator::SequentialSegments(sequential, map),
        });
    }
    let striding = Striding::new(job, range, unit, start);
    let largest = job.all_block_sizes().map(|size| size.bytes).max().unwrap_or(0);
    if !striding.holds(largest) {
        return Err(format!(
            "{range} in {} files is less than one block of {} per file",
            job.files,
            Bytes(largest)
        ));
    }
    Ok(AddressGenerator::Striding(striding))
}

#[cfg(test)]
mod tests;
