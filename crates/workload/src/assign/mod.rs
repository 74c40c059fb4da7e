//! Which stream a write goes to, for hosts that do not say.
//!
//! One scheme is one file. Each sees what a block driver sees, the writes and TRIMs in their order,
//! and nothing of the drive; only the oracle knows more. Time is the number of blocks written, so
//! that a scheme gives the same streams on either clock. All are deterministic.
//!
//! | file | scheme | source |
//! |---|---|---|
//! | `none.rs` | all in stream 0 | |
//! | `given.rs` | the streams of the trace (rules) | |
//! | `sfr.rs` | sequentiality, frequency, recency | Yang et al., "AutoStream", SYSTOR 2017 |
//! | `multi_queue.rs` | queues by number of writes | the same |
//! | `sepbit.rs`, `shadow.rs` | inferred invalidation time | Wang et al., "SepBIT", FAST 2022 |
//! | `oracle.rs` | known death times | |

mod chunks;
mod given;
mod multi_queue;
mod none;
mod oracle;
mod sepbit;
mod sfr;
mod shadow;

pub use given::Given;
pub use multi_queue::MultiQueue;
pub use none::NoStreams;
pub use oracle::{Bucketing, Oracle};
pub use sepbit::SepBit;
pub use sfr::Sfr;

use writecliff_base::Prng;

use crate::trace::{BlockRequest, BlockTrace};

/// Consecutive blocks of a write that go to one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub count: u32,
    pub stream: u16,
}

/// A scheme of stream assignment.
pub trait Assigner {
    /// The streams of a write's blocks, in order, appended to `pieces`. `clock` is the number of
    /// blocks written before it.
    fn write(&mut self, request: &BlockRequest, clock: u32, pieces: &mut Vec<Piece>);

    /// Blocks that were trimmed.
    fn trim(&mut self, _request: &BlockRequest, _clock: u32) {}
}

/// The schemes by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    None,
    Rules,
    Sfr,
    MultiQueue,
    SepBit,
    Oracle,
}

impl Scheme {
    pub const ALL: [Self; 6] =
        [Self::None, Self::Rules, Self::Sfr, Self::MultiQueue, Self::SepBit, Self::Oracle];

    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Rules => "rules",
            Self::Sfr => "sfr",
            Self::MultiQueue => "multi-queue",
            Self::SepBit => "sepbit",
            Self::Oracle => "oracle",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scheme| scheme.name() == name)
    }

    /// The scheme for `trace` with so many streams. `bucketing` and `deaths` are the oracle's.
    pub fn assigner<'a>(
        self,
        trace: &BlockTrace,
        streams: u16,
        bucketing: Bucketing,
        deaths: &'a [u32],
    ) -> Box<dyn Assigner + 'a> {
        let blocks = trace.capacity_blocks;
        match self {
            Self::None => Box::new(NoStreams),
            Self::Rules => Box::new(Given::new(streams)),
            Self::Sfr => Box::new(Sfr::new(blocks, streams)),
            Self::MultiQueue => Box::new(MultiQueue::new(blocks, streams)),
            Self::SepBit => Box::new(SepBit::new(blocks, streams)),
            Self::Oracle => Box::new(Oracle::new(deaths, streams, bucketing)),
        }
    }
}

/// Sends a share of the writes to a wrong stream: each other one is as likely.
pub struct MisTag<'a> {
    inner: Box<dyn Assigner + 'a>,
    share: f64,
    streams: u16,
    random: Prng,
}

impl<'a> MisTag<'a> {
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

/// Append a block, to the last piece where the stream is the same. `begin`: pieces of this write.
#[inline]
fn push_block(pieces: &mut Vec<Piece>, begin: usize, stream: u16) {
    match pieces[begin..].last_mut() {
        Some(last) if last.stream == stream => last.count += 1,
        _ => pieces.push(Piece { count: 1, stream }),
    }
}

#[cfg(test)]
mod tests;
