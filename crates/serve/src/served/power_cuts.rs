//! Power cuts of a served drive.

use std::sync::Weak;

use writecliff_base::Nanos;
use writecliff_contents::ContentsError;

use super::{Served, locked};
use crate::core::Core;
use crate::power::{CutPlan, PowerCut};

impl Served {
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
        while let Some(at) = core.planned.time()
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
    /// opened before the cut cannot store data after it. Clients may reconnect immediately but
    /// cannot store data until the cut is complete because the cut has locked the contents.
    pub(super) fn cut(&self, core: &mut Core) -> Result<PowerCut, ContentsError> {
        let (seed, clock) = (self.next_seed(core), self.shared.clock);
        let (wall, writes, outstanding) = (clock.wall(), core.writes, core.outstanding());
        let mut contents = self.contents();
        let severed = locked(&self.shared.open_sessions).end_epoch();
        severed.iter().filter_map(Weak::upgrade).for_each(|replies| replies.sever());
        let outcome = core.power_cut(&mut contents, seed);
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
