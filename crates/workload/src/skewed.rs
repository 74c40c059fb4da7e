//! Skewed addresses: access distributions over the units of a range, and the scattering of hot
//! units.

use writecliff_base::{Permutation, Prng};

use crate::spec::{AddressKind, AddressSpec, ZipfGenerator, Zone};

/// Distribution of accesses over units, which draws ranks by access frequency.
#[derive(Clone, Debug)]
pub(crate) enum Ranks {
    Zipf(Zipf),
    FioZipf(FioZipf),
    Pareto(Pareto),
    Normal(Normal),
    Zoned(Zoned),
}

impl Ranks {
    /// Creates the distribution over `units` units; returns `None` if there are fewer units than
    /// zones.
    pub(crate) fn of(addresses: &AddressSpec, units: u64) -> Option<Self> {
        let theta = addresses.theta.unwrap_or(1.0);
        let is_fio = addresses.generator == ZipfGenerator::Fio;
        Some(match addresses.kind {
            AddressKind::Zipf if is_fio => Self::FioZipf(FioZipf::new(units, theta)),
            AddressKind::Zipf => {
                Self::Zipf(Zipf::new(addresses.ranks.unwrap_or(units), units, theta))
            }
            AddressKind::Pareto => {
                Self::Pareto(Pareto::new(units, addresses.hot_pct.unwrap_or(20.0)))
            }
            AddressKind::Normal => {
                Self::Normal(Normal::new(units, addresses.deviation_pct.unwrap_or(10.0)))
            }
            _ if units <= addresses.zones.len() as u64 => return None,
            _ => Self::Zoned(Zoned::new(addresses, units)),
        })
    }

    #[inline]
    pub(crate) fn draw(&self, random: &mut Prng) -> u64 {
        match self {
            Self::Zipf(ranks) => ranks.draw_unit(random),
            Self::FioZipf(blocks) => blocks.draw(random),
            Self::Pareto(ranks) => ranks.draw(random),
            Self::Normal(ranks) => ranks.draw(random),
            Self::Zoned(zones) => zones.draw(random),
        }
    }
}

/// Zipf-distributed addresses: rank r of n is drawn with probability proportional to r^-theta.
///
/// The method is rejection-inversion (W. Hörmann, G. Derflinger: "Rejection-inversion to generate
/// variates from monotone discrete distributions", ACM TOMACS 6(3), 1996, pages 169-184). The
/// method draws in O(1) for any theta > 0, with theta = 1 as a limit, and needs no table. The
/// widely used method of Gray et al. ("Quickly generating billion-record synthetic databases",
/// SIGMOD 1994), which fio and YCSB use, is an approximation. Only ranks 1 and 2 have their exact
/// probability, and theta >= 1 needs special treatment.
///
/// Known errors: `exp` and `ln` are provided by the platform's C library, so rare draws may differ
/// between platforms. On one platform, a seed always gives the same draws. Ranks above 2^53 are not
/// representable.
///
/// Moving hot spots are not modelled. The set of hot blocks is a property of the data, not of the
/// run. [`writecliff_base::Permutation`] scatters the ranks in one fixed way for each number of
/// blocks, independently of the workload's seed. All jobs and all steps of a test therefore share
/// their hot blocks.
///
/// The distribution is validated by a chi-square test against the exact probabilities over all
/// ranks of a small range, and by a Kolmogorov-Smirnov test (1 %) over a range of a million, for
/// theta below, at and above 1.
///
/// Draws ranks in `1..=n`.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    n: f64,
    /// Number of units per rank; below 1 if ranks share units.
    units_per_rank: f64,
    theta: f64,
    /// Integral of the hat from rank 1 (excluding its own weight) to rank n + 1/2.
    low: f64,
    high: f64,
    /// Ranks this close to the inverted point are accepted without computing their weight.
    shortcut: f64,
}

impl Zipf {
    /// Creates the distribution of `ranks` ranks over `units` units. Each unit has the same number
    /// of neighbouring ranks.
    pub(crate) fn new(ranks: u64, units: u64, theta: f64) -> Self {
        debug_assert!(ranks > 0 && units > 0);
        let (n, units_per_rank) = (ranks, units as f64 / ranks as f64);
        let mut zipf =
            Self { n: n as f64, units_per_rank, theta, low: 0.0, high: 0.0, shortcut: 0.0 };
        zipf.low = zipf.integral(1.5) - 1.0;
        zipf.high = zipf.integral(n as f64 + 0.5);
        assert!(zipf.low < zipf.high, "the hat has an area");
        zipf.shortcut = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.weight(2.0));
        zipf
    }

    #[inline]
    pub(crate) fn draw(&self, random: &mut Prng) -> u64 {
        loop {
            let area = self.high + random.unit() * (self.low - self.high);
            let point = self.inverse(area);
            let rank = (point + 0.5).floor().clamp(1.0, self.n);
            if rank - point <= self.shortcut
                || area >= self.integral(rank + 0.5) - self.weight(rank)
            {
                return rank as u64;
            }
        }
    }

    /// Draws a rank and returns its unit, counting from 0.
    #[inline]
    pub(crate) fn draw_unit(&self, random: &mut Prng) -> u64 {
        ((self.draw(random) - 1) as f64 * self.units_per_rank) as u64
    }

    fn weight(&self, x: f64) -> f64 {
        (-self.theta * x.ln()).exp()
    }

    /// Returns the integral of x^-theta, shifted to be continuous in theta at 1: (x^(1-theta) - 1)
    /// / (1 - theta).
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        let exponent = (1.0 - self.theta) * log;
        let ratio =
            if exponent.abs() > 1e-8 { exponent.exp_m1() / exponent } else { 1.0 + exponent / 2.0 };
        ratio * log
    }

    fn inverse(&self, area: f64) -> f64 {
        // For large theta, rounding may move the value past the pole at -1.
        let product = (area * (1.0 - self.theta)).max(-1.0);
        let ratio =
            if product.abs() > 1e-8 { product.ln_1p() / product } else { 1.0 - product / 2.0 };
        (ratio * area).exp()
    }
}

/// Maximum number of blocks whose weights fio sums.
const SUMMED_MAX: u64 = 10_000_000;
/// Number of weights that are added individually; the weights of further ranks are integrated.
const ADDED: u64 = 10_000;
/// Multiplier that maps ranks to blocks.
const HASH: u64 = 0x61c8_8646_80b5_83eb;

/// Zipf-distributed addresses as generated by fio, for comparison with an actual drive under fio.
///
/// The method is the approximation of Gray et al. ("Quickly generating billion-record synthetic
/// databases", SIGMOD 1994). Two properties of fio (3.33, observed in logs of its addresses) make
/// the distribution more skewed than Zipf's law with the same exponent:
///
/// * the weights are summed over the first ten million blocks only, so the two hottest blocks of a
///   larger range are accessed too often;
/// * ranks are mapped to blocks by a multiplication modulo the range size. Unless the range size is
///   a power of two, ranks collide, and a fraction of about 1/e of the blocks is never accessed.
///
/// Known deviations: the hash is not rotated, so all jobs share their hot blocks, as with a fixed
/// centre in fio.
///
/// The distribution is validated by the access counts of the hottest blocks and the number of all
/// blocks that fio accesses.
///
/// Draws blocks in `0..n`.
#[derive(Clone, Debug)]
pub(crate) struct FioZipf {
    n: u64,
    /// Sum of the weights of all summed blocks.
    total: f64,
    /// Sum of the weights of the first two blocks.
    first_two: f64,
    eta: f64,
    alpha: f64,
}

impl FioZipf {
    /// Creates the distribution over `n` blocks with the exponent `theta`, which must be positive
    /// and not 1.
    pub(crate) fn new(n: u64, theta: f64) -> Self {
        debug_assert!(n > 0 && theta > 0.0);
        let total = weights(n.min(SUMMED_MAX), theta);
        let first_two = 1.0 + 0.5_f64.powf(theta);
        let eta = (1.0 - (2.0 / n as f64).powf(1.0 - theta)) / (1.0 - first_two / total);
        Self { n, total, first_two, eta, alpha: 1.0 / (1.0 - theta) }
    }

    #[inline]
    pub(crate) fn draw(&self, random: &mut Prng) -> u64 {
        let point = random.unit();
        let weight = point * self.total;
        let rank = if weight < 1.0 {
            0
        } else if weight < self.first_two {
            1
        } else {
            (self.n as f64 * (self.eta * (point - 1.0) + 1.0).powf(self.alpha)) as u64
        };
        rank.wrapping_mul(HASH) % self.n
    }
}

/// Returns the sum of the weights of `count` ranks, by the midpoint rule above [`ADDED`].
fn weights(count: u64, theta: f64) -> f64 {
    let added: f64 = (1..=count.min(ADDED)).map(|rank| (rank as f64).powf(-theta)).sum();
    let integral = |rank: u64| (rank as f64 + 0.5).powf(1.0 - theta) / (1.0 - theta);
    if count <= ADDED { added } else { added + integral(count) - integral(ADDED) }
}

/// Pareto-like addresses: a fraction h of the blocks receives 1 - h of the accesses, and this
/// applies recursively within that fraction.
///
/// The distribution is the self-similar distribution of Gray et al. ("Quickly generating
/// billion-record synthetic databases", SIGMOD 1994), which fio calls `pareto:h`: rank n u^(log h /
/// log(1 - h)) for a uniform u. With h = 20 %, it is the 80/20 rule. Ranks are scattered over the
/// range by the same permutation as for zipf.
///
/// Known errors: `powf` is provided by the platform's C library, so rare draws may differ between
/// platforms. The distribution is validated by the fractions of accesses that nested hot portions
/// receive.
///
/// Draws ranks in `0..n`.
#[derive(Clone, Debug)]
pub(crate) struct Pareto {
    n: u64,
    power: f64,
}

impl Pareto {
    pub(crate) fn new(n: u64, hot_pct: f64) -> Self {
        let hot = hot_pct / 100.0;
        assert!(n > 0 && (0.0..1.0).contains(&hot), "{hot_pct} % of {n} blocks");
        Self { n, power: hot.ln() / (1.0 - hot).ln() }
    }

    #[inline]
    pub(crate) fn draw(&self, random: &mut Prng) -> u64 {
        ((self.n as f64 * random.unit().powf(self.power)) as u64).min(self.n - 1)
    }
}

/// Normally distributed addresses: the blocks with ranks around the middle are hot.
///
/// A rank is the middle plus the deviation times a sum of twelve uniform numbers minus six, which
/// has mean 0 and standard deviation 1 (Irwin-Hall). Ranks outside the range are redrawn. No C
/// library function is involved, so draws are equal on every platform. Ranks are scattered over the
/// range by the same permutation as for zipf.
///
/// Known deviation: the sum ends at six standard deviations. The distribution is validated by its
/// mean, its deviation and the fractions within one and two deviations.
///
/// Draws ranks in `0..n`.
#[derive(Clone, Debug)]
pub(crate) struct Normal {
    n: f64,
    deviation: f64,
}

impl Normal {
    pub(crate) fn new(n: u64, deviation_pct: f64) -> Self {
        assert!(n > 0 && deviation_pct > 0.0, "ranks of {n} blocks");
        Self { n: n as f64, deviation: n as f64 * deviation_pct / 100.0 }
    }

    #[inline]
    pub(crate) fn draw(&self, random: &mut Prng) -> u64 {
        loop {
            let sum: f64 = (0..12).map(|_| random.unit()).sum();
            let rank = self.n / 2.0 + self.deviation * (sum - 6.0);
            if rank >= 0.0 && rank < self.n {
                return rank as u64;
            }
        }
    }
}

/// Zoned addresses: consecutive zones of the range, each with a fraction of the accesses.
///
/// Source: JESD219 specifies for enterprise endurance that 50 % of the accesses go to the first 5 %
/// of the range, 30 % to the next 15 % and 20 % to the last 80 %; fio's `random_distribution=zoned`
/// works in the same way. Hot and cold data are modelled as two zones. Addresses within a zone are
/// uniform.
///
/// Known deviations: zone boundaries are rounded to whole units (the job's smallest alignment), and
/// each zone has at least one unit. A block that starts in one zone may end in the next.
///
/// The distribution is validated by a chi-square test over zones and over equal portions of each
/// zone.
///
/// Draws units in `0..units`.
#[derive(Clone, Debug)]
pub(crate) struct Zoned {
    zones: Vec<Piece>,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    /// A 64-bit draw below this threshold, and not below the previous one, selects this zone.
    threshold: u64,
    first: u64,
    units: u64,
}

/// Returns the zones of a specification; for `hot_cold`, adds the cold zone.
fn all_zones(spec: &AddressSpec) -> Vec<Zone> {
    let mut zones = spec.zones.clone();
    if let (AddressKind::HotCold, Some(hot)) = (spec.kind, spec.zones.first()) {
        zones.push(Zone { access_pct: 100.0 - hot.access_pct, size_pct: 100.0 - hot.size_pct });
    }
    zones
}

impl Zoned {
    /// Creates zones over `units` units; there must be at least as many units as zones.
    pub(crate) fn new(spec: &AddressSpec, units: u64) -> Self {
        let zones = all_zones(spec);
        let count = zones.len() as u64;
        debug_assert!(count > 0 && units >= count);
        let (mut access, mut size, mut first) = (0.0, 0.0, 0);
        let mut pieces = Vec::with_capacity(zones.len());
        for (i, zone) in zones.iter().enumerate() {
            access += zone.access_pct;
            size += zone.size_pct;
            let later = count - 1 - i as u64;
            let end = (units as f64 * (size / 100.0)).round() as u64;
            let end = if later == 0 { units } else { end.clamp(first + 1, units - later) };
            // The cast saturates. Draws above the last threshold belong to the last zone in any
            // case.
            assert!(end > first, "a zone has units");
            let threshold = (access / 100.0 * 2_f64.powi(64)) as u64;
            pieces.push(Piece { threshold, first, units: end - first });
            first = end;
        }
        assert_eq!(first, units, "the zones cover the range");
        Self { zones: pieces }
    }

    #[inline]
    pub(crate) fn draw(&self, random: &mut Prng) -> u64 {
        let point = random.next_u64();
        let drawn = self.zones.iter().find(|zone| point < zone.threshold);
        let zone = drawn.or(self.last_used()).expect("there is at least one zone");
        zone.first + random.below(zone.units)
    }

    /// Returns the last zone with accesses, because rounding must not direct an access to a zone of
    /// 0 %.
    #[cold]
    fn last_used(&self) -> Option<&Piece> {
        let top = self.zones.last()?.threshold;
        self.zones.iter().find(|zone| zone.threshold == top)
    }
}

/// Permutes pieces of the range, so that hot units are not adjacent.
///
/// Hot database pages are spread over the database files, and files over the drive. If zones are
/// contiguous, whole reclaim units contain data of only one zone, and garbage collection is cheap.
/// If zones are scattered page by page, every reclaim unit contains data of all zones.
///
/// A bijection of units that keeps the units of each piece together.
#[derive(Clone, Debug)]
pub(crate) struct Scatter {
    pieces: Permutation,
    /// Number of whole pieces. Units after the whole pieces do not move.
    count: u64,
    /// Number of units in a piece.
    length: u64,
}

impl Scatter {
    /// Scatters `units` units in pieces of `length` units. A range that is shorter than a piece
    /// remains in order.
    pub(crate) fn new(units: u64, length: u64, seed: u64) -> Self {
        debug_assert!(length > 0);
        let count = units / length;
        Self { pieces: Permutation::seeded(count.max(1), seed), count, length }
    }

    /// Returns the unit that `unit` moves to.
    #[inline]
    pub(crate) fn apply(&self, unit: u64) -> u64 {
        if self.length == 1 {
            return self.pieces.apply(unit);
        }
        let piece = unit / self.length;
        if piece >= self.count {
            return unit;
        }
        self.pieces.apply(piece) * self.length + unit % self.length
    }
}

#[cfg(test)]
mod tests;
