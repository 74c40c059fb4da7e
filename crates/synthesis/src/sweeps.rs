//! Trace represented as sweeps: sequences of I/Os with ascending addresses, each from one time of a
//! pass to another.
//!
//! On a page-mapped drive, write amplification depends on addresses only through the order in which
//! data are written and overwritten. Sequentially written and overwritten data, such as files and
//! tables, form sweeps. Sweeps with the original starts, ends and addresses preserve that order by
//! construction. Within a sweep, I/Os are evenly spaced; `mixes` determines their types.

use serde::{Deserialize, Serialize};
use writecliff_base::{Prng, SECTOR_BYTES, SLOT_BYTES};

use crate::free_places::FreePlaces;
use crate::gaps::Popularity;
use crate::mixes::Mixes;
use crate::places::spread;
use crate::{Check, IOS_MAX, IoLog, IoModel, LENGTH_MAX, SHAPES, ensure, whole_sectors};

/// Maximum distance for a sweep without skips to continue the previous sweep of the table. Such a
/// sweep retains its distance from the actual end of that sweep's I/Os.
const NEAR_BYTES: u64 = 64 << 10;

model_table! {
    /// Sweeps, one row per sweep.
    Sweeps {
        /// Numbers of the first and last I/Os of the sweep within the pass.
        begin: Vec<u64>,
        end: Vec<u64>,
        /// Lowest address.
        offset: Vec<u64>,
        ios: Vec<u64>,
        /// Number of the sweep's mix of sizes.
        mix: Vec<u32>,
        /// Span in bytes from the lowest address to the end of the last I/O.
        span: Vec<u64>,
        /// Number of I/Os that are preceded by skipped bytes, and number of skipped bytes. Present
        /// only for the last rows; the sweeps of all other rows skip no bytes.
        steps: Vec<u64>,
        left_out: Vec<u64>,
        /// Weights for the selection of the pages that these sweeps read and write, one per page.
        /// If the list is empty, all pages are equally likely.
        read_weights: Vec<u32>,
        write_weights: Vec<u32>,
    }
}

model_table! {
    /// Demand over time, in intervals.
    Demand {
        ios: Vec<u64>,
        /// Time from the last I/O of the previous interval to the last I/O of this interval.
        length_ns: Vec<u64>,
        /// Shape of the Weibull distribution of the times between I/Os, in hundredths.
        shape: Vec<u32>,
    }
}

impl Demand {
    /// Returns the times of `total` I/Os; the last interval takes all I/Os that the intervals do
    /// not account for.
    fn times_ns(&self, total: usize, random: &mut Prng) -> Vec<u64> {
        let mut times = Vec::with_capacity(total);
        let mut begin = 0;
        for (n, length) in self.length_ns.iter().enumerate() {
            let left = (total - times.len()) as u64;
            let ios = if n + 1 == self.ios.len() { left } else { self.ios[n].min(left) };
            let shape = f64::from(self.shape[n]) / 100.0;
            let within = spread(ios + 1, *length, shape, random);
            times.extend(within.skip(1).map(|time| begin + time));
            begin += length;
        }
        assert_eq!(times.len(), total, "times of all I/Os");
        times
    }
}

/// An I/O: its address, its length and its stream.
type Swept = (u64, u32, usize);

impl Sweeps {
    /// Returns the I/Os of one pass, at addresses starting at `offset`.
    pub(super) fn expand(
        &self,
        model: &IoModel,
        mixes: &Mixes,
        demand: &Demand,
        offset: u64,
        random: &mut Prng,
    ) -> IoLog {
        let mut left = mixes.all();
        let mut before = None;
        let mut rows = Vec::with_capacity(self.ios.len());
        for n in 0..self.ios.len() {
            let of_mix = &mut left[self.mix[n] as usize];
            let kinds = mixes.take(of_mix, self.ios[n] as usize, self.bytes(n), model);
            rows.push(self.row(n, &kinds, mixes, model, &mut before, random));
        }
        let swept = self.in_order(&rows);
        let streams = swept.iter().map(|io| io.2);
        let letters = streams.clone().map(|stream| model.operation(stream));
        IoLog {
            operations: letters.clone().map(char::from).collect(),
            offsets: swept
                .iter()
                .zip(letters)
                .map(|(io, letter)| if letter == b'f' { 0 } else { offset + io.0 })
                .collect(),
            times_ns: demand.times_ns(swept.len(), random),
            lengths: swept.iter().map(|io| io.1.into()).collect(),
        }
    }

    /// Returns the I/Os of all rows in order. A pass has exactly as many positions as I/Os. Each
    /// sweep gets evenly spaced positions among the free positions from its first to its last I/O.
    /// Sweeps with the least slack are placed first, so that the I/Os of a burst stay together. A
    /// sweep with too few free positions uses all of them evenly, and later I/Os move slightly.
    fn in_order(&self, rows: &[Vec<Swept>]) -> Vec<Swept> {
        let total = self.total() as usize;
        let mut free = FreePlaces::new(total);
        let mut placed: Vec<(usize, bool, Swept)> = Vec::with_capacity(total);
        for n in self.least_slack_first() {
            let (begin, end) = (self.begin[n] as usize, self.end[n] as usize);
            let before = free.below(begin.min(total));
            let among = free.below((end + 1).min(total)) - before;
            let ios = rows[n].len();
            let last = (ios - 1).max(1);
            let shared = among < ios;
            let positions: Vec<usize> = if shared {
                (0..ios).map(|k| begin + (end - begin) * k / last).collect()
            } else {
                let nth = |k: usize| (2 * k * (among - 1) + last) / (2 * last);
                let positions: Vec<usize> = (0..ios).map(|k| free.nth(before + nth(k))).collect();
                for place in &positions {
                    free.take(*place);
                }
                positions
            };
            placed.extend(
                positions.into_iter().zip(&rows[n]).map(|(place, io)| (place, shared, *io)),
            );
        }
        assert_eq!(placed.len(), total, "places of all I/Os");
        placed.sort_by_key(|entry| (entry.0, entry.1));
        placed.into_iter().map(|entry| entry.2).collect()
    }

    /// Returns the rows in order of slack, which is the number of positions between their first and
    /// last I/O that belong to other rows.
    fn least_slack_first(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.ios.len()).collect();
        order.sort_by_key(|&n| (self.end[n] + 1 - self.begin[n]).saturating_sub(self.ios[n]));
        order
    }

    /// Returns the number of I/Os in a pass.
    pub(super) fn total(&self) -> u64 {
        self.ios.iter().fold(0, |sum, ios| sum.saturating_add(*ios))
    }

    /// Returns the I/Os of one row. `before` contains the operation and the end address of the
    /// previous row.
    fn row(
        &self,
        n: usize,
        kinds: &[usize],
        mixes: &Mixes,
        model: &IoModel,
        before: &mut Option<(u8, u64)>,
        random: &mut Prng,
    ) -> Vec<Swept> {
        let streams: Vec<usize> = kinds.iter().map(|kind| mixes.stream[*kind] as usize).collect();
        let backs: Vec<u64> = kinds.iter().map(|kind| u64::from(mixes.back[*kind])).collect();
        let lengths = lengths_that_fill(self.bytes(n), &streams, &backs, model);
        let operation = model.operation(streams[0]);
        let end = before.filter(|io| io.0 == operation && self.open(n).is_none());
        let begin = end.and_then(|io| self.goes_on(n, io.1)).unwrap_or(self.offset[n]);
        let weights = match operation {
            b'r' => &self.read_weights,
            b'w' => &self.write_weights,
            _ => &Vec::new(),
        };
        let popular = Popularity { weights, seed: model.seed };
        let end = self.offset[n] + self.span[n];
        let steps = self.open(n).unwrap_or_default().0;
        let at = upwards(begin..end, steps, &lengths, &backs, popular, random);
        *before = at.last().zip(lengths.last()).map(|(at, length)| (operation, at + length));
        let inside = |at: u64, length: u64| at.min(model.range_bytes - length);
        let swept = at.into_iter().zip(lengths).zip(streams);
        swept.map(|((at, length), stream)| (inside(at, length), length as u32, stream)).collect()
    }

    /// Returns the start of a row that continues near the end of the previous row, whose I/Os ended
    /// at `end`.
    fn goes_on(&self, n: usize, end: u64) -> Option<u64> {
        let before = n.checked_sub(1)?;
        let was = self.offset[before] + self.span[before];
        let near = |a: u64, b: u64| a.abs_diff(b) <= NEAR_BYTES;
        (near(was, self.offset[n]) && near(was, end))
            .then(|| (self.offset[n] + end).saturating_sub(was))
    }

    /// Returns the number of bytes by which the I/Os of a row advance, excluding skipped bytes.
    fn bytes(&self, n: usize) -> u64 {
        self.span[n] - self.open(n).unwrap_or_default().1
    }

    /// Returns the number of steps in a row with skips, and the number of skipped bytes.
    fn open(&self, n: usize) -> Option<(u64, u64)> {
        let at = (n + self.steps.len()).checked_sub(self.begin.len())?;
        Some((self.steps[at], self.left_out[at]))
    }

    pub(super) fn check(&self, model: &IoModel, mixes: &Mixes, demand: &Demand) -> Check {
        let (rows, open) = (self.begin.len(), self.steps.len());
        let columns = [&self.end, &self.offset, &self.ios, &self.span].map(Vec::len);
        let equal = columns == [rows; 4] && self.mix.len() == rows;
        let equal = equal && self.left_out.len() == open && open <= rows;
        let weights = [&self.read_weights, &self.write_weights].into_iter().flatten();
        ensure(weights.min().is_none_or(|least| *least > 0), || {
            "a weight of pages is 0".to_owned()
        })?;
        ensure(equal, || "the columns of sweeps differ in length".to_owned())?;
        demand.check()?;
        mixes.check(model)?;
        let mut left = mixes.totals();
        for n in 0..rows {
            self.check_row(n, model)?;
            let less = left.get_mut(self.mix[n] as usize).and_then(|(ios, begins)| {
                (*ios, *begins) = (ios.checked_sub(self.ios[n])?, begins.checked_sub(1)?);
                Some(())
            });
            ensure(less.is_some(), || format!("the mix of sweep {n} has too few I/Os"))?;
        }
        ensure(left.iter().all(|left| *left == (0, 0)), || {
            "a mix has more I/Os than its sweeps".to_owned()
        })
    }

    fn check_row(&self, n: usize, model: &IoModel) -> Check {
        let (begin, end, ios) = (self.begin[n], self.end[n], self.ios[n]);
        ensure(begin <= end && end < IOS_MAX, || {
            format!("sweep {n} goes from I/O {begin} to I/O {end}")
        })?;
        ensure((1..=IOS_MAX).contains(&ios), || format!("sweep {n} has {ios} I/Os"))?;
        let (steps, left_out) = self.open(n).unwrap_or_default();
        let span = self.span[n];
        ensure(steps < ios, || format!("sweep {n} has {ios} I/Os and {steps} steps"))?;
        ensure(left_out <= span, || format!("sweep {n} skips more than it spans"))?;
        for bytes in [self.offset[n], span, left_out] {
            whole_sectors(bytes)?;
        }
        let end = self.offset[n].checked_add(span);
        ensure(end.is_some_and(|end| end <= model.range_bytes), || {
            format!("sweep {n} ends beyond the range")
        })
    }
}

impl Demand {
    fn check(&self) -> Check {
        let rows = self.ios.len();
        ensure(rows > 0 && self.length_ns.len() == rows && self.shape.len() == rows, || {
            "the columns of demand differ in length".to_owned()
        })?;
        ensure(self.shape.iter().all(|shape| SHAPES.contains(shape)), || {
            "the shape of an interval of demand is out of range".to_owned()
        })?;
        let length = self.length_ns.iter().try_fold(0_u64, |sum, length| sum.checked_add(*length));
        ensure(length.is_some_and(|length| i64::try_from(length).is_ok()), || {
            "the intervals of demand are too long".to_owned()
        })
    }
}

/// Returns I/O lengths in these streams that advance by `bytes` in total. The difference from the
/// streams' lengths is distributed over the I/Os of streams with several sizes.
fn lengths_that_fill(bytes: u64, streams: &[usize], backs: &[u64], model: &IoModel) -> Vec<u64> {
    let of = &model.streams;
    let mut lengths: Vec<u64> =
        streams.iter().map(|stream| u64::from(of.lengths[*stream])).collect();
    let back = |k: usize| if k == 0 { 0 } else { backs[k] };
    let grows = |k: usize| lengths[k].saturating_sub(back(k));
    let mut short = bytes as i64 - (0..lengths.len()).map(grows).sum::<u64>() as i64;
    let several: Vec<usize> = (0..lengths.len()).filter(|k| of.several[streams[*k]] == 1).collect();
    for (n, &k) in several.iter().enumerate() {
        let unit = if lengths[k].is_multiple_of(SLOT_BYTES) { SLOT_BYTES } else { SECTOR_BYTES };
        let share = short / (several.len() - n) as i64 / unit as i64 * unit as i64;
        let most = (2 * lengths[k]).min(model.range_bytes).min(LENGTH_MAX.into());
        let least = (lengths[k] / 2).max(back(k) + unit);
        let length = lengths[k].saturating_add_signed(share).clamp(least.min(most), most);
        let length = length / unit * unit;
        short -= length as i64 - lengths[k] as i64;
        lengths[k] = length;
    }
    lengths
}

/// Returns ascending addresses `within` an extent, starting at the beginning of the extent. Each
/// I/O starts where the previous I/O ended, or `backs` bytes earlier. For `steps` of the I/Os, it
/// starts later, so that the last I/O ends at the end of the extent.
fn upwards(
    within: std::ops::Range<u64>,
    steps: u64,
    lengths: &[u64],
    backs: &[u64],
    popular: Popularity<'_>,
    random: &mut Prng,
) -> Vec<u64> {
    let grows = lengths.iter().zip(backs).map(|(length, back)| length - back.min(length));
    let grows: Vec<u64> = lengths.iter().take(1).copied().chain(grows.skip(1)).collect();
    let left_out = within.end.saturating_sub(within.start + grows.iter().sum::<u64>());
    // Backward I/Os skip no bytes while other I/Os are available.
    let mut order: Vec<usize> = (1..lengths.len()).collect();
    shuffle(&mut order, random);
    order.sort_by_key(|k| backs[*k] > 0);
    let mut which = vec![false; lengths.len()];
    order.into_iter().take(steps as usize).for_each(|k| which[k] = true);
    let mut groups: Vec<u64> = Vec::new();
    for (bytes, begins) in grows.into_iter().zip(&which) {
        match groups.last_mut() {
            Some(group) if !begins => *group += bytes,
            _ => groups.push(bytes),
        }
    }
    let gaps = popular.gaps(within.start, &groups, left_out, random);
    debug_assert_eq!(gaps.len() + 1, groups.len(), "a gap between any two groups");
    let mut gaps = gaps.into_iter();
    let mut end = within.start;
    let mut addresses = Vec::with_capacity(lengths.len());
    for (k, (length, back)) in lengths.iter().zip(backs).enumerate() {
        let at = if which[k] {
            end + gaps.next().unwrap_or(0)
        } else if k == 0 {
            end
        } else {
            end.saturating_sub(*back.min(length))
        };
        addresses.push(at);
        end = at + length;
    }
    addresses
}

fn shuffle<T>(values: &mut [T], random: &mut Prng) {
    for n in (1..values.len()).rev() {
        values.swap(n, random.below(n as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests;
