//! Power cuts: what was outstanding gets no reply, and what was not durable may be gone.

use std::sync::Weak;

use writecliff_base::{Bytes, Nanos};
use writecliff_contents::{Contents, Lost};
use writecliff_runner::AnyConfig;

use crate::request::Replies;

/// What is kept of changes on drives whose cache is not described: more than they have.
const CACHE_BYTES: Bytes = Bytes(64 << 20);

/// A power cut and what it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerCut {
    pub wall: Nanos,
    pub seed: u64,
    /// Writes that the drive had been sent, the one at which power was cut included.
    pub writes: u64,
    /// Requests without a reply: each has happened, in part, or not at all.
    pub outstanding: usize,
    /// How long the drive takes to be ready again; `None` if that is not modelled.
    pub rebuild: Option<Nanos>,
    pub lost: Lost,
}

/// When to cut the power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CutAt {
    pub write: u64,
    pub seed: u64,
}

/// What the drive has made durable, of the changes of the contents below a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durable {
    All { below: u64 },
    Range { offset: u64, length: u64, below: u64 },
}

impl Durable {
    pub(crate) fn note(self, contents: &mut Contents) {
        match self {
            Self::All { below } => contents.durable_until(below),
            Self::Range { offset, length, below } => contents.durable_range(offset, length, below),
        }
    }
}

/// The volume of changes that a drive may hold in its volatile cache, or have in flight.
pub(crate) fn undo_limit(config: &AnyConfig) -> Bytes {
    match config {
        AnyConfig::Ssd(ssd) if !ssd.controller.power_loss_protection => ssd.controller.write_buffer,
        _ => CACHE_BYTES,
    }
}

/// The open sessions, of which a cut ends the connections.
#[derive(Default)]
pub(crate) struct OpenSessions(Vec<Weak<dyn Replies>>);

impl OpenSessions {
    pub(crate) fn push(&mut self, replies: Weak<dyn Replies>) {
        self.0.retain(|one| one.strong_count() > 0);
        self.0.push(replies);
    }

    pub(crate) fn sever(&mut self) {
        for replies in self.0.drain(..).filter_map(|one| one.upgrade()) {
            replies.sever();
        }
    }
}
