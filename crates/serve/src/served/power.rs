//! Power cuts: outstanding requests receive no reply, and non-durable data may be lost.

use std::sync::Weak;

use writecliff_base::{Bytes, Nanos, Prng};
use writecliff_contents::{Contents, ContentsError, Lost};
use writecliff_runner::{AnyConfig, AnyDrive};
use writecliff_ssd::Rebuild;

use super::{Served, Timing, locked};
use crate::core::Core;
use crate::request::Replies;

/// Undo limit of drives without a described cache; larger than the cache of actual drives.
const CACHE_BYTES: Bytes = Bytes(64 << 20);

/// Label of the random generator for power cut times.
const MOMENT_LABEL: u64 = 0x0063_7574;

/// A power cut and its effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerCut {
    /// Wall time since serving started.
    pub wall: Nanos,
    /// Seed that selects the lost data.
    pub seed: u64,
    /// Number of writes sent to the drive, including the write that triggered the power cut.
    pub writes: u64,
    /// Number of requests without a reply, which may have taken effect fully, partly or not at all.
    pub outstanding: usize,
    /// Drive work until it is ready again; `None` if this work is not modelled.
    pub recovery: Option<Recovery>,
    /// Pages that lost changes.
    pub lost: Lost,
}

/// Hold-up time of the capacitors, and time to rebuild the mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Time during which the capacitors power the drive.
    pub hold_up: Nanos,
    /// Time from power-up until the drive accepts commands.
    pub rebuild: Rebuild,
}

/// A plan of power cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutPlan {
    /// Time of the first cut.
    pub when: CutWhen,
    /// Number of cuts; each subsequent cut is timed from when the drive is ready again.
    pub cuts: u32,
}

/// Time of a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutWhen {
    /// When this write (counted from 1) arrives, before its reply.
    AtWrite(u64),
    /// After a random time between these limits, on the drive clock, or on the wall clock if timing
    /// is disabled. The cut's seed determines the time.
    After(Nanos, Nanos),
}

/// Planned power cuts, and the seeds of all cuts.
#[derive(Default)]
pub(crate) struct Planned {
    plan: Option<CutPlan>,
    /// Write that triggers the next cut, counted like the writes of the drive.
    next_write: Option<u64>,
    /// Time of the next cut, if no write triggers it.
    pub next_time: Option<Nanos>,
    /// Seed of the first cut; each subsequent cut uses the next seed.
    pub first_seed: u64,
}

impl Planned {
    /// Plans cuts starting from `now`, after `writes` writes; `seed` is the seed of the next cut.
    pub(crate) fn begin(&mut self, plan: CutPlan, seed: u64, now: Nanos, writes: u64) {
        self.plan = (plan.cuts > 0).then_some(plan);
        (self.next_write, self.next_time) = match self.plan.map(|plan| plan.when) {
            None => (None, None),
            Some(CutWhen::AtWrite(write)) => (Some(writes + write), None),
            Some(CutWhen::After(from, to)) => {
                let more = to.0.saturating_sub(from.0) + 1;
                let random = Nanos(Prng::derive(seed, MOMENT_LABEL).below(more));
                (None, Some(now + from + random))
            }
        };
    }

    pub(crate) fn after_cut(&mut self, seed: u64, now: Nanos, writes: u64) {
        if let Some(plan) = self.plan {
            assert!(plan.cuts > 0, "a plan has at least one cut");
            self.begin(CutPlan { cuts: plan.cuts - 1, ..plan }, seed, now, writes);
        }
    }

    pub(crate) fn is_at_write(&self, writes: u64) -> bool {
        self.next_write.is_some_and(|write| writes >= write)
    }
}

/// Changes that the drive has made durable, among the changes below a number.
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

/// Returns the limit on the changes stored for undo: the data that a drive may hold in its volatile
/// cache or in flight. A drive that reports durable data may lose all data sent to it.
pub(crate) fn undo_limit(drive: &mut AnyDrive, timing: Timing) -> Bytes {
    let is_told = timing != Timing::Fast && drive.volatile().is_some();
    match drive.any_config() {
        AnyConfig::Ssd(ssd) if is_told => Bytes(CACHE_BYTES.0 + ssd.controller.write_buffer.0),
        AnyConfig::Ssd(ssd) if !ssd.controller.power_loss_protection => ssd.controller.write_buffer,
        _ => CACHE_BYTES,
    }
}

/// Open sessions, whose connections a power cut ends.
#[derive(Default)]
pub(crate) struct OpenSessions {
    all: Vec<Weak<dyn Replies>>,
    /// Number of power cuts before sessions that are opened now.
    pub epoch: u64,
}

impl OpenSessions {
    /// Adds a session and returns its epoch.
    pub(crate) fn push(&mut self, replies: Weak<dyn Replies>) -> u64 {
        self.all.retain(|session| session.strong_count() > 0);
        self.all.push(replies);
        self.epoch
    }
}

impl Served {
    /// Starts the next epoch, and ends the connections of the previous one.
    pub(super) fn sever_sessions(&self) {
        let mut sessions = locked(&self.shared.open_sessions);
        sessions.epoch += 1;
        let severed = std::mem::take(&mut sessions.all);
        drop(sessions);
        severed.iter().filter_map(Weak::upgrade).for_each(|replies| replies.sever());
    }

    /// Sets the seed of the next cut; each subsequent cut uses the next seed.
    pub fn seed_cuts(&self, seed: u64) {
        let mut core = self.core();
        let cuts = locked(&self.shared.cuts).len() as u64;
        core.planned.first_seed = seed.wrapping_sub(cuts);
    }

    /// Cuts the power now and restores it.
    pub fn power_cut(&self) -> Result<PowerCut, ContentsError> {
        let mut batch = self.locked();
        self.cut(batch.core())
    }

    /// Replaces the plan of power cuts with immediate effect.
    pub fn plan_cuts(&self, plan: CutPlan) {
        let mut batch = self.locked();
        let now = self.shared.clock.drive_time(batch.arrived);
        let core = batch.core();
        core.planned.begin(plan, self.next_seed(core), now, core.writes);
    }

    /// Returns the power cuts so far. Waits for a power cut in progress, so that a client whose
    /// connection was ended finds the cut in the result.
    pub fn power_cuts(&self) -> Vec<PowerCut> {
        let _core = self.core();
        locked(&self.shared.cuts).clone()
    }

    fn next_seed(&self, core: &Core) -> u64 {
        let cuts = locked(&self.shared.cuts).len() as u64;
        core.planned.first_seed.wrapping_add(cuts)
    }

    /// Performs the power cuts that are planned for times up to `now`.
    pub(super) fn cut_in_time(&self, core: &mut Core, now: Nanos) {
        while let Some(at) = core.planned.next_time
            && at <= now
            && !core.stopped
        {
            core.advance(at);
            // If the contents cannot be read or written, all earlier requests have already failed.
            if self.cut(core).is_err() {
                return;
            }
        }
    }

    /// Cuts the power. All connections are ended first, so that no further reply is sent. Sessions
    /// opened before the cut cannot store data after it. Sessions are opened with the core locked,
    /// so no session is opened during the cut. Ending a connection locks its outbox, which may be
    /// reading the contents; the contents are therefore locked afterwards.
    pub(super) fn cut(&self, core: &mut Core) -> Result<PowerCut, ContentsError> {
        let (seed, clock) = (self.next_seed(core), self.shared.clock);
        let (wall, writes, outstanding) = (clock.wall(), core.writes, core.outstanding());
        self.sever_sessions();
        let outcome = core.power_cut(&mut self.contents(), seed);
        let cut = outcome.map(|(lost, recovery)| {
            let cut = PowerCut { wall, seed, writes, outstanding, recovery, lost };
            locked(&self.shared.cuts).push(cut);
            cut
        });
        let ready = core.ready().max(clock.drive_time(wall));
        core.planned.after_cut(self.next_seed(core), ready, writes);
        cut
    }
}
