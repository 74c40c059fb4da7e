//! Data reduction under workloads with a known closed form: uniform random overwrites of single
//! slots. Each slot has one of several compressed sizes, or duplicates the last write that was not
//! a duplicate.

use writecliff_base::{Lpn, Prng, StreamId};
use writecliff_ftl::gc_policy::GcPolicy;
use writecliff_ftl::{Allocated, ConfigError, FastForward, Ftl, ReductionConfig, theory};
use writecliff_host_interface::Content;

use super::{PLAIN, Policies, WafCase, WafRow, drive};

/// Content of the host data.
#[derive(Clone, Debug)]
pub struct Data {
    /// Compressed slot sizes in sectors, all equally frequent.
    pub sizes: Vec<u32>,
    /// Fraction of the writes that are duplicates.
    pub duplicates: f64,
}

impl Data {
    /// Returns the mean compressed size as a fraction of a slot.
    fn share(&self) -> f64 {
        f64::from(self.sizes.iter().sum::<u32>()) / (8 * self.sizes.len()) as f64
    }
}

/// Measures one case. Theory for greedy GC requires data of one size without duplicates; FIFO
/// supports all cases.
///
/// # Errors
/// Returns an error for a case that no theory covers, or for an impossible drive.
pub fn reduction(case: &WafCase, data: &Data) -> Result<WafRow, ConfigError> {
    let share = data.share();
    let theory = |lost: f64| {
        let alpha = share / (1.0 + case.overprovision) / (1.0 - lost);
        let pieces = match (case.policy, &data.sizes[..]) {
            (GcPolicy::Greedy, &[sectors]) if data.duplicates == 0.0 => {
                theory::greedy(alpha, case.slots * 8 / sectors)
            }
            (GcPolicy::Fifo, _) => theory::fifo_without_duplicates(alpha, data.duplicates),
            _ => return None,
        };
        Some(share * pieces / (1.0 - lost))
    };
    if theory(0.0).is_none() {
        let message =
            "theory for greedy covers only data of one size without duplicates; use fifo for \
             other data"
                .to_owned();
        return Err(ConfigError { key: "policy", message });
    }
    let least = data.sizes.iter().map(|&size| 1 << size.ilog2()).min().unwrap_or(8);
    let reduction =
        ReductionConfig { min_stored_sectors: least, duplicates: data.duplicates > 0.0 };
    let mut ftl = drive(case, 1, Policies { reduction: Some(reduction), ..PLAIN })?;
    let user = ftl.user_slots();
    let mut host = Host { random: Prng::new(case.seed), data, original: Lpn::NONE };
    (0..user).for_each(|lpn| host.write(&mut ftl, Lpn(lpn)));
    host.overwrite(&mut ftl, case.warm_up);
    let before = ftl.allocated();
    host.overwrite(&mut ftl, case.measured);
    let allocated = |all: &dyn Fn(&Allocated) -> u64| (all(&ftl.allocated()) - all(&before)) as f64;
    let total = allocated(&|p| p.total().0);
    // Space that is left unused at the end of a unit is lost.
    let lost = allocated(&|p| p.padding.0) / total;
    let written = 4096.0 * f64::from(user) * f64::from(case.measured);
    Ok(WafRow { waf_measured: total / written, waf_theory: theory(lost).unwrap_or(f64::NAN) })
}

struct Host<'a> {
    random: Prng,
    data: &'a Data,
    original: Lpn,
}

impl Host<'_> {
    fn overwrite(&mut self, ftl: &mut Ftl, times: u32) {
        let user = u64::from(ftl.user_slots());
        for _ in 0..u64::from(times) * user {
            let lpn = Lpn(self.random.below(user) as u32);
            self.write(ftl, lpn);
        }
    }

    fn write(&mut self, ftl: &mut Ftl, lpn: Lpn) {
        let of_all = self.data.sizes.len() as u64;
        let sectors = self.data.sizes[self.random.below(of_all) as usize];
        let drawn = self.random.next_u64() as f64 / u64::MAX as f64;
        let repeats = drawn < self.data.duplicates && !self.original.is_none();
        let same_as = if repeats { self.original } else { Lpn::NONE };
        let content = Content { sectors, same_as };
        ftl.write_reduced(lpn, StreamId::DEFAULT, 4096, content, &mut FastForward);
        if !repeats {
            self.original = lpn;
        }
    }
}
