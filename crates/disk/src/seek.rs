//! Seek curve: seek time by distance, fitted to the three seek times in every data sheet.
//!
//! A short seek consists of acceleration and braking and takes `a + b √d`. A long seek coasts at
//! full speed and takes `c + e d` (Ruemmler and Wilkes, "An introduction to disk drive modeling",
//! IEEE Computer 27(3), 1994). The two curve segments meet with equal slopes. The track-to-track
//! and full-stroke times fix the curve at its ends. The average seek time determines where the
//! segments meet; manufacturers state it as the mean over all pairs of tracks.

use writecliff_base::Nanos;

/// Seek time by distance in cylinders, including settling for a read.
#[derive(Clone, Debug, PartialEq)]
pub struct SeekCurve {
    /// Full stroke in cylinders, excluding the first step.
    stroke: f64,
    /// Start of the linear segment, as a fraction of the stroke.
    knee: f64,
    short: [f64; 2],
    long: [f64; 2],
}

/// Bisection steps in the search for the knee, more than a double can resolve.
const HALVINGS: u32 = 60;

impl SeekCurve {
    /// Fits a curve over `cylinders` cylinders. `Err` contains the lowest and highest average seek
    /// times that are possible with the other two times.
    pub fn new(
        cylinders: u64,
        track: Nanos,
        average: Nanos,
        full: Nanos,
    ) -> Result<Self, (Nanos, Nanos)> {
        let stroke = cylinders.saturating_sub(2).max(1) as f64;
        let curve = |knee: f64| Self::with_knee(stroke, knee, track.0 as f64, full.0 as f64);
        let wanted = average.0 as f64;
        let (mut low, mut high) = (0.0, 1.0);
        let bounds = (curve(low).mean_ns(), curve(high).mean_ns());
        if !(bounds.0..=bounds.1).contains(&wanted) {
            return Err((Nanos(bounds.0.ceil() as u64), Nanos(bounds.1 as u64)));
        }
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(low, high);
            if curve(middle).mean_ns() < wanted {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(curve(high))
    }

    fn with_knee(stroke: f64, knee: f64, track: f64, full: f64) -> Self {
        debug_assert!((0.0..=1.0).contains(&knee), "the knee is within the stroke");
        let root = knee.sqrt();
        // Equal slopes require b / (2 √k) = e; equal values a + b √k = c + e k, where c + e = full.
        let b = 2.0 * (full - track) * root / (1.0 + knee);
        let e = (full - track) / (1.0 + knee);
        Self { stroke, knee, short: [track, b], long: [full - e, e] }
    }

    /// Returns the seek time over `cylinders`; 0 for 0 cylinders.
    #[inline]
    pub fn time(&self, cylinders: u64) -> Nanos {
        if cylinders == 0 {
            return Nanos::ZERO;
        }
        let distance = (cylinders - 1) as f64 / self.stroke;
        let ns = if distance < self.knee {
            self.short[0] + self.short[1] * distance.sqrt()
        } else {
            self.long[0] + self.long[1] * distance
        };
        debug_assert!(ns.is_finite() && ns >= 0.0, "a seek takes time");
        Nanos(ns.round() as u64)
    }

    /// Returns the mean seek time over all pairs of cylinders (density of distance d: 2 (1 - d)).
    pub fn mean_ns(&self) -> f64 {
        let k = self.knee;
        let ([a, b], [c, e]) = (self.short, self.long);
        let root = k * k.sqrt();
        let short = a * k + 2.0 / 3.0 * b * root - a * k * k / 2.0 - 0.4 * b * k * root;
        let long = c * (1.0 - k) + (e - c) * (1.0 - k * k) / 2.0 - e * (1.0 - k * k * k) / 3.0;
        2.0 * (short + long)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve() -> SeekCurve {
        let ms = |ms: f64| Nanos((ms * 1e6) as u64);
        SeekCurve::new(50_000, ms(0.3), ms(3.4), ms(7.0)).unwrap()
    }

    #[test]
    fn the_curve_goes_through_the_three_figures() {
        let curve = curve();
        assert_eq!(curve.time(0), Nanos::ZERO);
        assert_eq!(curve.time(1), Nanos(300_000));
        assert_eq!(curve.time(49_999), Nanos(7_000_000));
        let (mut sum, mut pairs) = (0.0, 0.0);
        for distance in 1..50_000_u64 {
            let count = (50_000 - distance) as f64;
            sum += count * curve.time(distance).0 as f64;
            pairs += count;
        }
        assert!((sum / pairs - 3.4e6).abs() < 500.0, "mean over all pairs {}", sum / pairs);
    }

    #[test]
    fn seek_time_is_monotonic_and_continuous() {
        let curve = curve();
        let times: Vec<u64> = (1..50_000).map(|d| curve.time(d).0).collect();
        assert!(times.is_sorted());
        let steps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(steps[10..].iter().all(|&step| step < 10_000), "no jump at the knee");
    }

    #[test]
    fn an_impossible_average_is_rejected_with_its_limits() {
        let ms = Nanos::from_micros;
        let (least, most) = SeekCurve::new(1000, ms(300), ms(5000), ms(6300)).unwrap_err();
        // The two limits lie at 1/3 and 8/15 of the way from the shortest seek to the longest seek.
        assert!(least.0.abs_diff(2_300_000) < 2 && most.0.abs_diff(3_500_000) < 2);
    }
}
