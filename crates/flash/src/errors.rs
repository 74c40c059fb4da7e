//! Raw bit errors of flash, and the probability that an error-correcting code corrects the errors.
//!
//! The raw bit error rate grows with wear as a power of the erase count (linear in the field:
//! Schroeder, Lagisetty, Merchant, "Flash reliability in production", FAST 2016; exponents of 1 to
//! 2 elsewhere) and with the logarithm of retention time. Pages vary by a log-normal factor.

use writecliff_base::Nanos;

/// Time scale of early charge loss; later charge loss is logarithmic in time.
const EARLY: Nanos = Nanos::from_secs(3600);

/// Raw bit error rate of the median page, in errors per bit.
#[derive(Clone, Debug, PartialEq)]
pub struct BitErrors {
    /// Error rate of a block that was never erased.
    pub fresh: f64,
    /// Error rate of a block at its rated erase count.
    pub at_rated: f64,
    /// Exponent of the erase count as a fraction of the rated count; 1 for linear growth.
    pub wear_exponent: f64,
    /// Factor on the error rate after `retention_time`.
    pub retention_factor: f64,
    /// Data age at which the error rate has grown by `retention_factor`.
    pub retention_time: Nanos,
}

impl BitErrors {
    /// Returns the error rate of newly written data at the fraction `wear` of the rated erases.
    pub fn worn(&self, wear: f64) -> f64 {
        self.fresh + (self.at_rated - self.fresh) * wear.powf(self.wear_exponent)
    }

    /// Returns the error rate of data written `age` ago at the fraction `wear` of the rated erases.
    pub fn rate(&self, wear: f64, age: Nanos) -> f64 {
        debug_assert!(wear >= 0.0, "negative wear");
        let worn = self.worn(wear);
        if self.retention_factor <= 1.0 {
            return worn.min(0.5);
        }
        let lost = |time: Nanos| (time.0 as f64 / EARLY.0 as f64).ln_1p();
        let share = lost(age) / lost(self.retention_time);
        (worn * (1.0 + (self.retention_factor - 1.0) * share)).min(0.5)
    }
}

/// Block code that corrects a fixed number of bit errors per codeword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// Codeword length in bits.
    pub bits: u32,
    /// Number of bit errors per codeword that the code corrects.
    pub correctable: u32,
}

impl Code {
    /// Returns the probability that a codeword has too many bit errors: the binomial upper tail.
    pub fn failure(&self, rate: f64) -> f64 {
        let (n, t) = (f64::from(self.bits), f64::from(self.correctable));
        if rate <= 0.0 || self.correctable >= self.bits {
            return 0.0;
        }
        debug_assert!(rate < 1.0, "not a bit error rate");
        let odds = rate / (1.0 - rate);
        let log_choose: f64 = (0..self.correctable).map(|i| log_ratio(n, f64::from(i))).sum();
        // ln P(exactly t bit errors)
        let at_limit = log_choose + t * rate.ln() + (n - t) * (-rate).ln_1p();
        if n * rate > t {
            let mut term = at_limit.exp();
            let mut corrected = 0.0;
            let mut i = t;
            while i >= 0.0 && term > 0.0 {
                corrected += term;
                term *= i / (n - i + 1.0) / odds;
                i -= 1.0;
            }
            return (1.0 - corrected).max(0.0);
        }
        let mut i = t;
        let mut term = (at_limit + log_ratio(n, i)).exp() * odds;
        let mut failed = 0.0;
        while i < n && term > failed * 1e-17 {
            failed += term;
            i += 1.0;
            term *= (n - i) / (i + 1.0) * odds;
        }
        failed
    }
}

/// Returns ln of the ratio of (n choose i + 1) to (n choose i).
fn log_ratio(n: f64, i: f64) -> f64 {
    ((n - i) / (i + 1.0)).ln()
}

/// Range of error rates in a [`FailureCurve`], and the number of points.
const RATE_MIN: f64 = 1e-9;
const RATE_MAX: f64 = 0.5;
const POINTS: usize = 1024;
/// ln of a probability too small for any 53-bit random number.
const LOG_NEVER: f64 = -60.0;

/// [`Code::failure`] averaged over pages with different error rates, tabulated by the median rate.
#[derive(Clone, Debug)]
pub struct FailureCurve {
    /// ln of the probability, at equal steps of ln of the error rate.
    logs: Vec<f64>,
}

impl FailureCurve {
    /// Tabulates the curve. `spread` is the standard deviation of ln of the rate between pages.
    pub fn new(code: Code, spread: f64) -> Self {
        let rate = |point: usize| (RATE_MIN.ln() + point as f64 * Self::step()).exp();
        let table = |failure: &dyn Fn(f64) -> f64| Self {
            logs: (0..POINTS).map(|point| failure(rate(point)).ln().max(LOG_NEVER)).collect(),
        };
        assert!(spread.is_finite(), "a standard deviation");
        let alike = table(&|rate| code.failure(rate));
        if spread <= 0.0 {
            return alike;
        }
        // Integrate over the normal distribution within five standard deviations of the mean.
        let normal = (-50..=50).map(|i| f64::from(i) / 10.0).map(|z| (z, (-z * z / 2.0).exp()));
        let normal: Vec<(f64, f64)> = normal.collect();
        let whole: f64 = normal.iter().map(|&(_, weight)| weight).sum();
        table(&|rate| {
            let part = |&(z, weight): &(f64, f64)| weight * alike.at(rate * (spread * z).exp());
            normal.iter().map(part).sum::<f64>() / whole
        })
    }

    fn step() -> f64 {
        (RATE_MAX / RATE_MIN).ln() / (POINTS - 1) as f64
    }

    /// Returns the probability that a codeword cannot be corrected, at this median page's rate.
    pub fn at(&self, rate: f64) -> f64 {
        debug_assert!(rate >= 0.0, "not a bit error rate");
        let coordinate = ((rate / RATE_MIN).ln() / Self::step()).clamp(0.0, (POINTS - 1) as f64);
        let point = (coordinate as usize).min(POINTS - 2);
        let share = coordinate - point as f64;
        let log = self.logs[point] + (self.logs[point + 1] - self.logs[point]) * share;
        if log <= LOG_NEVER { 0.0 } else { log.exp() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: f64, expected: f64, tolerance: f64) {
        assert!((got / expected - 1.0).abs() < tolerance, "{got:e}, expected {expected:e}");
    }

    /// Enumerates all error patterns of a 12-bit codeword.
    #[test]
    fn failure_is_the_binomial_tail() {
        let rate: f64 = 0.07;
        for correctable in 0..12 {
            let by_hand: f64 = (0_u32..1 << 12)
                .map(u32::count_ones)
                .filter(|&wrong| wrong > correctable)
                .map(|wrong| rate.powi(wrong as i32) * (1.0 - rate).powi(12 - wrong as i32))
                .sum();
            close(Code { bits: 12, correctable }.failure(rate), by_hand, 1e-9);
        }
        assert!(Code { bits: 12, correctable: 12 }.failure(rate) <= 0.0);
        assert!(Code { bits: 8192, correctable: 72 }.failure(0.0) <= 0.0);
    }

    #[test]
    fn large_codewords_match_the_normal_and_poisson_limits() {
        let code = Code { bits: 8192, correctable: 72 };
        // Half of the codewords have more bit errors than the median count.
        let half = code.failure(72.67 / 8192.0);
        assert!((half - 0.5).abs() < 0.01, "{half}");
        assert!(code.failure(0.05) > 1.0 - 1e-12);
        assert!(code.failure(1e-3) < 1e-30);
        let single = Code { bits: 8192, correctable: 0 };
        close(single.failure(1e-6), 1.0 - (-8192e-6_f64).exp(), 1e-6);
    }

    #[test]
    fn the_curve_follows_the_code_and_rises() {
        let code = Code { bits: 8192, correctable: 72 };
        let curve = FailureCurve::new(code, 0.0);
        for rate in [4e-3, 5.3e-3, 7.1e-3, 8.8e-3, 1.2e-2] {
            close(curve.at(rate), code.failure(rate), 0.02);
        }
        let wide = FailureCurve::new(code, 0.4);
        assert!(wide.at(4e-3) > 100.0 * curve.at(4e-3), "weak pages fail earlier");
        assert!(wide.at(1.2e-2) < curve.at(1.2e-2), "strong pages fail later");
        assert!((1..999).all(|n| wide.at(1e-5 * f64::from(n)) <= wide.at(1e-5 * f64::from(n + 1))));
        // With a code that fails abruptly above a fixed error rate, the spread between codewords
        // turns the failure curve into the normal distribution.
        let steep = Code { bits: 1 << 20, correctable: 10_486 };
        let share = FailureCurve::new(steep, 0.5).at(0.01 * (-0.5_f64).exp());
        assert!((share - 0.1587).abs() < 0.012, "{share}: one standard deviation");
    }

    #[test]
    fn the_rate_grows_with_wear_and_with_time() {
        let errors = BitErrors {
            fresh: 1e-5,
            at_rated: 1e-3,
            wear_exponent: 2.0,
            retention_factor: 4.0,
            retention_time: Nanos::from_secs(90 * 86_400),
        };
        close(errors.rate(0.0, Nanos::ZERO), 1e-5, 1e-12);
        close(errors.rate(1.0, Nanos::ZERO), 1e-3, 1e-12);
        close(errors.rate(0.5, Nanos::ZERO), 1e-5 + 0.25 * 99e-5, 1e-12);
        close(errors.rate(1.0, errors.retention_time), 4e-3, 1e-12);
        let day = errors.rate(1.0, Nanos::from_secs(86_400)) / 1e-3;
        close(day, 1.0 + 3.0 * 25_f64.ln() / (90.0 * 24.0 + 1.0_f64).ln(), 1e-9);
        close(BitErrors { at_rated: 0.9, ..errors }.rate(1.0, Nanos::ZERO), 0.5, 1e-12);
    }
}
