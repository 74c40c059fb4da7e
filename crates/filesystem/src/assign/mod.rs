//! Stream assignment schemes, which choose the stream of each write when the host specifies none.
//!
//! A scheme sees the writes and TRIMs in order, like a block driver, but not the drive's internal
//! state. Only the oracle has future knowledge. Time is measured in blocks written, so a scheme
//! assigns the same streams in fast-forward and in a timed replay. All schemes are deterministic.

mod autostream;
mod oracle;
mod sepbit;
mod shadow;

pub use autostream::{MultiQueue, Sfr};
pub use oracle::{Bucketing, Oracle};
pub use sepbit::SepBit;

use writecliff_base::{Prng, words};

use crate::{BlockRequest, BlockTrace};

/// A run of consecutive blocks of one write that go to the same stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Number of blocks, at least 1.
    pub count: u32,
    /// Stream of the blocks.
    pub stream: u16,
}

/// A stream assignment scheme.
pub trait Assigner {
    /// Appends the streams of the write's blocks to `pieces`, in order. `clock` is the number of
    /// blocks written before this request.
    fn write(&mut self, request: &BlockRequest, clock: u32, pieces: &mut Vec<Piece>);

    /// Notifies the scheme of trimmed blocks. Does nothing by default.
    fn trim(&mut self, _request: &BlockRequest, _clock: u32) {}
}

words! {
    /// Available stream assignment schemes.
    pub enum Scheme {
        /// Sends all writes to the default stream.
        None = "none",
        /// Uses the streams in the trace, as assigned by rules.
        Rules = "rules",
        /// Classifies writes by sequentiality, frequency and recency (AutoStream).
        Sfr = "sfr",
        /// Classifies writes by access frequency in several queues (AutoStream).
        MultiQueue = "multi-queue",
        /// Infers death times from the data that writes invalidate (SepBIT).
        SepBit = "sepbit",
        /// Uses the death times that are known from the trace.
        Oracle = "oracle",
    }
}

impl Scheme {
    /// Creates the scheme for `trace` with `streams` streams. Only the oracle uses `bucketing` and
    /// `deaths`.
    pub fn assigner<'a>(
        self,
        trace: &BlockTrace,
        streams: u16,
        bucketing: Bucketing,
        deaths: &'a [u32],
    ) -> Box<dyn Assigner + 'a> {
        assert!(streams > 0, "a drive has the default stream");
        let blocks = trace.capacity_blocks;
        match self {
            Self::None => Box::new(Given { streams: 1 }),
            Self::Rules => Box::new(Given { streams }),
            Self::Oracle if bucketing == Bucketing::Given => Box::new(Given { streams }),
            Self::Sfr => Box::new(Sfr::new(blocks, streams)),
            Self::MultiQueue => Box::new(MultiQueue::new(blocks, streams)),
            Self::SepBit => Box::new(SepBit::new(blocks, streams)),
            Self::Oracle => Box::new(Oracle::new(deaths, streams, bucketing)),
        }
    }
}

/// Schemes `none` (one stream) and `rules`: uses the stream that each trace request carries, set by
/// user rules or by the write-lifetime hints of the traced program.
///
/// A stream number that the drive does not support falls back to default stream 0, like streams
/// that could not be opened in NVMe (NVMe Base Specification, Streams Directive).
pub struct Given {
    streams: u16,
}

impl Assigner for Given {
    fn write(&mut self, request: &BlockRequest, _: u32, pieces: &mut Vec<Piece>) {
        let stream = if request.stream < self.streams { request.stream } else { 0 };
        pieces.push(Piece { count: request.count, stream });
    }
}

/// Wraps a scheme and sends a random fraction of the writes to a wrong stream, where all other
/// streams are equally likely. This wrapper measures how sensitive a scheme is to mispredictions.
pub struct MisTag<'a> {
    inner: Box<dyn Assigner + 'a>,
    share: f64,
    streams: u16,
    random: Prng,
}

impl<'a> MisTag<'a> {
    /// Sends a fraction `share` of `inner`'s writes to a different, randomly chosen stream.
    pub fn new(inner: Box<dyn Assigner + 'a>, share: f64, streams: u16, seed: u64) -> Self {
        Self { inner, share, streams, random: Prng::derive(seed, 0x6d69_7374) }
    }
}

impl Assigner for MisTag<'_> {
    fn write(&mut self, request: &BlockRequest, clock: u32, pieces: &mut Vec<Piece>) {
        let begin = pieces.len();
        self.inner.write(request, clock, pieces);
        if self.streams > 1 && self.random.unit() < self.share {
            let shift = 1 + self.random.below(u64::from(self.streams) - 1) as u16;
            for piece in &mut pieces[begin..] {
                piece.stream = (piece.stream + shift) % self.streams;
            }
        }
    }

    fn trim(&mut self, request: &BlockRequest, clock: u32) {
        self.inner.trim(request, clock);
    }
}

/// Appends one block: extends the last piece of this write if the stream is the same, otherwise
/// starts a new piece. `begin` is the index of the first piece of this write.
#[inline]
fn push_block(pieces: &mut Vec<Piece>, begin: usize, stream: u16) {
    match pieces[begin..].last_mut() {
        Some(last) if last.stream == stream => last.count += 1,
        _ => pieces.push(Piece { count: 1, stream }),
    }
}

#[cfg(test)]
mod tests;
