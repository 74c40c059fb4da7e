//! Cutting the power of a served drive.

use std::sync::Weak;

use writecliff_base::Nanos;
use writecliff_contents::ContentsError;

use super::{Served, locked};
use crate::core::Core;
use crate::power::{CutPlan, PowerCut};

impl Served {
    /// Seeds the cuts to come; each further one takes the next seed.
    pub fn seed_cuts(&self, seed: u64) {
        let mut core = self.core();
        let cuts = locked(&self.shared.cuts).len() as u64;
        core.planned.first_seed = seed.wrapping_sub(cuts);
    }

    /// Cuts the power now, and gives it back.
    pub fn power_cut(&self) -> Result<PowerCut, ContentsError> {
        let mut batch = self.locked();
        self.cut(batch.core())
    }

    /// Cuts the power as planned from now on, instead of any other plan.
    pub fn plan_cuts(&self, plan: CutPlan) {
        let mut batch = self.locked();
        let now = self.shared.clock.drive_time(batch.arrived);
        let core = batch.core();
        core.planned.begin(plan, self.next_seed(core), now, core.writes);
    }

    /// Returns the power cuts so far. Waits for a cut in progress, so that a client that lost its
    /// connection by it sees it here.
    pub fn power_cuts(&self) -> Vec<PowerCut> {
        let _core = self.core();
        locked(&self.shared.cuts).clone()
    }

    fn next_seed(&self, core: &Core) -> u64 {
        let cuts = locked(&self.shared.cuts).len() as u64;
        core.planned.first_seed.wrapping_add(cuts)
    }

    /// Cuts the power at the moments up to `now` that are planned.
    pub(super) fn cut_in_time(&self, core: &mut Core, now: Nanos) {
        while let Some(at) = core.planned.time()
            && at <= now
            && !core.stopped
        {
            core.advance(at);
            // Contents that cannot be read or written have failed every request before.
            if self.cut(core).is_err() {
                return;
            }
        }
    }

    /// First ends all connections, so that no reply is sent any more. Sessions from before the cut
    /// can store no data after it; clients may connect again at once, but store nothing until the
    /// cut is done, because it has the contents.
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
