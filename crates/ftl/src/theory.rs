//! Closed-form write amplification, for uniform random overwrites of single slots without TRIM.
//!
//! `alpha` is the fraction of valid slots among the slots that GC circulates through, and `b` the
//! number of slots per reclaim unit. Over-provisioning is `1 / alpha − 1`.

/// Returns the principal branch of the Lambert W function on `(-1/e, 0)`, by Halley's iteration.
fn lambert_w0(x: f64) -> f64 {
    debug_assert!((-1.0 / std::f64::consts::E..0.0).contains(&x));
    // Series around the branch point (Corless et al., "On the Lambert W function", 1996, eq. 4.22).
    let p = (2.0 * (std::f64::consts::E * x + 1.0)).max(0.0).sqrt();
    let mut w = -1.0 + p - p * p / 3.0 + 11.0 / 72.0 * p * p * p;
    for _ in 0..50 {
        let e = w.exp();
        let f = w * e - x;
        let step = f / (e * (w + 1.0) - (w + 2.0) * f / (2.0 * w + 2.0));
        w -= step;
        if step.abs() < 1e-15 {
            break;
        }
    }
    w
}

/// Returns the write amplification of FIFO (and of greedy for `b → ∞`): `1/A = 1 − exp(−1/(αA))`
/// (Desnoyers, "Analytic modeling of SSD write performance", SYSTOR 2012; Xiang and Kurkoski,
/// 2012).
pub fn fifo(alpha: f64) -> f64 {
    let beta = 1.0 / alpha;
    1.0 / (1.0 + alpha * lambert_w0(-beta * (-beta).exp()))
}

/// Returns the fraction of distinct data among the slots of a drive where each write duplicates,
/// with probability `d`, the last write that was not a duplicate: `−ln(1 − d) (1 − d) / d`.
///
/// Data remain live while any page refers to them. Consider data written `t` drive overwrites ago
/// to a geometrically distributed number of pages: the fraction
/// `s(t) = e^(−t) / (1 − d + d e^(−t))` is still live. The result is the integral of `s`,
/// multiplied by the fraction of writes with new data.
pub fn different_data(d: f64) -> f64 {
    if d == 0.0 { 1.0 } else { -(1.0 - d) / d * (1.0 - d).ln() }
}

/// Returns the write amplification of FIFO on such a drive with deduplication, as slots written to
/// flash per host slot. With `t` overwrites per turn of the queue, the flash holds the remaining
/// data of all turns: `1/α = (1 − d) t Σ s(kt)`, k = 0, 1, 2…, and `A = (1 − d) Σ s(kt)`.
pub fn fifo_without_duplicates(alpha: f64, d: f64) -> f64 {
    let alive = |t: f64| (-t).exp() / (1.0 - d + d * (-t).exp());
    let turns = |t: f64| {
        let ages = (0..).map(|k| alive(f64::from(k) * t));
        (1.0 - d) * ages.take_while(|&share| share > 1e-15).sum::<f64>()
    };
    let (mut low, mut high) = (1e-3, 1.0 / (alpha * (1.0 - d)));
    for _ in 0..100 {
        let t = 0.5 * (low + high);
        *(if t * turns(t) < 1.0 / alpha { &mut low } else { &mut high }) = t;
    }
    turns(0.5 * (low + high))
}

/// Returns the write amplification of random victim selection: `1 / (1 − α)`.
pub fn random(alpha: f64) -> f64 {
    1.0 / (1.0 - alpha)
}

/// Returns the write amplification of greedy with finite units (exact mean field). Let `k` be the
/// lowest populated level and `H` the harmonic numbers: `p = (b − k − αb(H_b − H_k)) / (αb/k − 1)`
/// lies in `[0, 1]` for one `k`, and `A = b / (b − k + p)`. The result is the limit of d-choices
/// for `d → ∞`.
pub fn greedy(alpha: f64, b: u32) -> f64 {
    let size = f64::from(b);
    let mut harmonic_above = 0.0; // H_b − H_k
    for k in (1..=b).rev() {
        let level = f64::from(k);
        let p = (size - level - alpha * size * harmonic_above) / (alpha * size / level - 1.0);
        if (0.0..=1.0).contains(&p) && level < alpha * size {
            return size / (size - level + p);
        }
        harmonic_above += 1.0 / level;
    }
    1.0
}

/// Returns the write amplification of d-choices (Van Houdt, SIGMETRICS 2013). Let `S_i` be the
/// fraction of units holding at least `i` valid slots: `S_i − S_{i+1} = (αb / (H i)) (1 − S_i^d)`
/// and `H = b − Σ S_i^d`; `A = b / H`.
pub fn d_choices(alpha: f64, b: u32, d: u32) -> f64 {
    let size = f64::from(b);
    let excess = |h: f64| size - expected_victim(alpha, b, d, h) - h;
    // h = 0 is a trivial root of the equation. The required root is the largest root, and `excess`
    // is negative above it.
    let mut high = size;
    let mut low = size;
    while excess(low) < 0.0 && low > 1e-6 {
        high = low;
        low *= 0.9;
    }
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if excess(middle) < 0.0 { high = middle } else { low = middle }
    }
    size / low
}

/// Returns the mean number of valid slots in a victim if each victim yields `h` free slots.
fn expected_victim(alpha: f64, b: u32, d: u32, h: f64) -> f64 {
    let power = f64::from(d);
    let (mut share, mut mean) = (0.0_f64, 0.0);
    for i in (1..=b).rev() {
        let rate = alpha * f64::from(b) / (h * f64::from(i));
        // Solve s = share + rate (1 − s^d) for s in [share, 1] by bisection of a monotone function.
        let (mut low, mut high) = (share, 1.0);
        for _ in 0..60 {
            let s = 0.5 * (low + high);
            if s < share + rate * (1.0 - s.powf(power)) { low = s } else { high = s }
        }
        share = 0.5 * (low + high);
        mean += share.powf(power);
    }
    mean
}

/// Data class: its fractions of the data and of the writes, which are uniform within it.
#[derive(Clone, Copy, Debug)]
pub struct Class {
    /// Fraction of the data, 0 to 1.
    pub data: f64,
    /// Fraction of the writes, 0 to 1.
    pub writes: f64,
}

/// Returns the optimal split of spare space between separated classes of random data with greedy
/// GC. Returns each class's fraction of the spare space, and the write amplification.
///
/// Spare space has diminishing returns, so assigning each unit of space to the class that gains
/// most reaches the optimum.
pub fn best_split(classes: &[Class], alpha: f64, b: u32) -> (Vec<f64>, f64) {
    const PIECES: u32 = 2000;
    let piece = (1.0 / alpha - 1.0) / f64::from(PIECES);
    let cost = |c: &Class, pieces: u32| {
        c.writes * greedy(c.data / (c.data + f64::from(pieces) * piece), b)
    };
    // A class without spare space would have unbounded write amplification: each starts with one.
    let mut pieces = vec![1_u32; classes.len()];
    let gain = |c: &Class, n: u32| cost(c, n) - cost(c, n + 1);
    let mut gains: Vec<f64> = classes.iter().map(|c| gain(c, 1)).collect();
    for _ in classes.len() as u32..PIECES {
        let best = (0..gains.len()).max_by(|&x, &y| gains[x].total_cmp(&gains[y])).unwrap_or(0);
        pieces[best] += 1;
        gains[best] = gain(&classes[best], pieces[best]);
    }
    let total = classes.iter().zip(&pieces).map(|(c, &n)| cost(c, n)).sum();
    (pieces.iter().map(|&n| f64::from(n) / f64::from(PIECES)).collect(), total)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values at OP 7, 12.7, 20 and 28 %, b = 256, computed independently of this code from the
    /// same sources.
    #[test]
    fn known_values() {
        let rows = [
            (0.07, 7.817, 7.597, 10.584, 7.828, 15.29),
            (0.127, 4.617, 4.542, 6.219, 4.667, 8.874),
            (0.20, 3.188, 3.153, 4.253, 3.234, 6.00),
            (0.28, 2.481, 2.461, 3.274, 2.520, 4.571),
        ];
        for (op, a_fifo, a_greedy, a_d2, a_d10, a_random) in rows {
            let alpha = 1.0 / (1.0 + op);
            let close = |got: f64, want: f64, what: &str| {
                assert!((got - want).abs() < 0.0012 * want, "OP {op} {what}: {got} v {want}");
            };
            close(fifo(alpha), a_fifo, "fifo");
            close(greedy(alpha, 256), a_greedy, "greedy");
            close(d_choices(alpha, 256, 2), a_d2, "d=2");
            close(d_choices(alpha, 256, 10), a_d10, "d=10");
            close(random(alpha), a_random, "random");
        }
    }

    #[test]
    fn smaller_units_have_lower_write_amplification() {
        let alpha = 1.0 / 1.07;
        let close = |got: f64, want: f64| assert!((got - want).abs() < 0.002, "{got} v {want}");
        close(greedy(alpha, 32), 6.347);
        close(greedy(alpha, 64), 7.010);
        close(greedy(alpha, 512), 7.705);
    }

    /// Values for hot and cold data, f/r, computed independently of this code from the same
    /// sources.
    #[test]
    fn hot_and_cold_data() {
        let rows = [
            (0.07, 0.2, 0.8, 5.112),
            (0.07, 0.1, 0.9, 3.191),
            (0.07, 0.05, 0.95, 2.044),
            (0.28, 0.2, 0.8, 1.852),
        ];
        for (op, data, writes, split) in rows {
            let rest = Class { data: 1.0 - data, writes: 1.0 - writes };
            let classes = [Class { data, writes }, rest];
            let alpha = 1.0 / (1.0 + op);
            let close = |got: f64, want: f64| assert!((got - want).abs() < 1e-3, "{got} v {want}");
            let (shares, waf) = best_split(&classes, alpha, 256);
            close(waf, split);
            assert!((0.42..0.52).contains(&shares[0]), "about half for each: {shares:?}");
        }
    }

    #[test]
    fn limits_agree() {
        assert!((fifo_without_duplicates(0.9, 1e-9) / fifo(0.9) - 1.0).abs() < 1e-6);
        assert!((different_data(1e-9) - 1.0).abs() < 1e-6);
        let alpha = 1.0 / 1.07;
        assert!((greedy(alpha, 1 << 16) / fifo(alpha) - 1.0).abs() < 2e-3);
        assert!((d_choices(alpha, 64, 4000) / greedy(alpha, 64) - 1.0).abs() < 2e-3);
        assert!((d_choices(alpha, 64, 1) / random(alpha) - 1.0).abs() < 1e-3);
    }
}
