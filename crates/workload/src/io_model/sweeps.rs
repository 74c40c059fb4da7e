//! A trace as sweeps: I/Os that go through the addresses upwards, from one point of a pass to
//! another.
//!
//! On a drive that maps pages, write amplification depends on addresses only through which data
//! are overwritten when: on the order of births and deaths. Data that are written one after another
//! and overwritten one after another, as those of files and tables are, are sweeps, and sweeps that
//! have their begins, ends and addresses keep that order by construction. Within a sweep I/Os are
//! even over its part of the pass, and so is each kind of them: a size, and by how much an I/O goes
//! back.

use serde::{Deserialize, Serialize};
use writecliff_base::Prng;

use super::places::spread;
use super::{IOS_MAX, IoModel, KEY, SHAPES};
use crate::check::{Check, ensure, whole_sectors};
use crate::io_log::IoLog;

/// Steps are multiples of this if their sum is one.
const UNIT_BYTES: u64 = 4096;
const SECTOR_BYTES: u64 = 512;
/// Work of an I/O beside its bytes.
const WORK_OF_IO_BYTES: u64 = 16 << 10;
/// A sweep that begins so near the end of the one before in the table goes on there.
const NEAR_BYTES: u64 = 64 << 10;
/// Places between two I/Os of the order, for those of other sweeps.
const BETWEEN_BITS: u32 = 16;

/// Sweeps, one row each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweeps {
    /// Numbers of the first and of the last I/O within the pass.
    pub begin: Vec<u64>,
    pub end: Vec<u64>,
    /// Least address.
    pub offset: Vec<u64>,
    pub ios: Vec<u64>,
    /// Number of the mix of sizes.
    pub mix: Vec<u32>,
    /// Of the last rows only, the others leave nothing out: bytes from the least address to the end
    /// of the last I/O.
    pub span: Vec<u64>,
    /// Of the same rows: I/Os before which something is left out.
    pub steps: Vec<u64>,
}

/// Mixes of I/O streams, which sweeps that are alike share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mixes {
    /// Rows of the other columns, those of the mixes one after another.
    pub sizes: Vec<u32>,
    /// I/O stream, bytes before the end of the I/O before at which it begins, and I/Os of that kind
    /// in all sweeps of the mix.
    pub stream: Vec<u32>,
    pub back: Vec<u32>,
    pub count: Vec<u64>,
    /// Numbers of the first and of the last of them among all I/Os of the mix; the others are
    /// evenly spaced between. The sweeps of a mix take its I/Os one after another.
    pub first: Vec<u64>,
    pub last: Vec<u64>,
}

/// Demand over time, in intervals of the work that arrives: the bytes of I/Os, and
/// `WORK_OF_IO_BYTES` more for each. So a burst asks as much of a drive as in the trace, even if it
/// is not quite the same I/Os that are large.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Demand {
    pub work: Vec<u64>,
    /// From the last I/O of the interval before to the last one of this.
    pub length_ns: Vec<u64>,
    /// Shape of the Weibull distribution of the times between I/Os, in hundredths.
    pub shape: Vec<u32>,
}

impl Demand {
    /// Times of I/Os with these lengths, in this order.
    fn times_ns(&self, lengths: &[u32], random: &mut Prng) -> Vec<u64> {
        let mut times = Vec::with_capacity(lengths.len());
        let (mut done, mut until, mut begin) = (0, 0, 0);
        let mut lengths = lengths.iter().peekable();
        for (n, (work, length)) in self.work.iter().zip(&self.length_ns).enumerate() {
            until += work;
            let mut ios = 0;
            let last = n + 1 == self.work.len();
            while let Some(bytes) = lengths.next_if(|_| last || done < until) {
                done += u64::from(*bytes) + WORK_OF_IO_BYTES;
                ios += 1;
            }
            let shape = f64::from(self.shape[n]) / 100.0;
            let within = spread(ios + 1, *length, shape, random);
            times.extend(within.skip(1).map(|time| begin + time));
            begin += length;
        }
        times
    }
}

impl Mixes {
    /// The rows of each mix.
    fn rows(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        self.sizes.iter().scan(0, |row, sizes| {
            let begin = *row;
            *row += *sizes as usize;
            Some(begin..*row)
        })
    }

    /// The rows of the I/Os of each mix, in the order in which they are taken.
    fn ordered(&self) -> Vec<std::vec::IntoIter<usize>> {
        let each = self.rows().map(|rows| {
            let mut ordered: Vec<(u64, usize)> = Vec::new();
            for row in rows {
                let (first, last, count) = (self.first[row], self.last[row], self.count[row]);
                let apart = u128::from(last - first) << BETWEEN_BITS;
                let at = |n: u64| apart * u128::from(n) / u128::from(count.max(2) - 1);
                ordered.extend((0..count).map(|n| ((first << BETWEEN_BITS) + at(n) as u64, row)));
            }
            ordered.sort_unstable();
            ordered.into_iter().map(|one| one.1).collect::<Vec<_>>().into_iter()
        });
        each.collect()
    }

    fn check(&self, model: &IoModel) -> Check {
        let listed = self.sizes.iter().fold(0_u64, |sum, one| sum + u64::from(*one));
        let columns = [&self.count, &self.first, &self.last].map(Vec::len);
        let sizes = [self.stream.len(), self.back.len()] == [columns[0]; 2]
            && columns.map(|rows| rows as u64) == [listed; 3];
        ensure(sizes, KEY, || "the columns of mixes differ in length".to_owned())?;
        let known = |stream: &u32| (*stream as usize) < model.streams.lengths.len();
        ensure(self.stream.iter().all(known), KEY, || "a mix of an unknown stream".to_owned())?;
        ensure(self.count.iter().all(|one| (1..=IOS_MAX).contains(one)), KEY, || {
            format!("the count of a stream of a mix is outside 1 to {IOS_MAX}")
        })?;
        let mut places = self.first.iter().zip(&self.last);
        ensure(places.all(|(first, last)| first <= last && *last < IOS_MAX), KEY, || {
            "the last I/O of a stream of a mix is before the first".to_owned()
        })?;
        for back in &self.back {
            whole_sectors(KEY, u64::from(*back))?;
        }
        let moves = |stream: &u32| model.operation(*stream as usize) != b'f';
        ensure(self.stream.iter().any(moves), KEY, || "it has no I/Os".to_owned())?;
        for (n, rows) in self.rows().enumerate() {
            let flushes = rows.clone().filter(|row| !moves(&self.stream[*row])).count();
            ensure(flushes == 0 || flushes == rows.len(), KEY, || {
                format!("the mix {n} is of flushes and other I/Os")
            })?;
        }
        Ok(())
    }
}

/// An I/O: its place in the order, its address, its stream.
type Swept = (u64, u64, usize);

impl Sweeps {
    /// The I/Os of one pass, at addresses from `offset` on.
    pub(super) fn expand(
        &self,
        model: &IoModel,
        mixes: &Mixes,
        demand: &Demand,
        offset: u64,
        random: &mut Prng,
    ) -> IoLog {
        let mut swept: Vec<Swept> = Vec::with_capacity(self.total() as usize);
        let mut ordered = mixes.ordered();
        let mut before = None;
        for n in 0..self.ios.len() {
            let ios = self.ios[n] as usize;
            let of_mix = ordered[self.mix[n] as usize].by_ref().take(ios);
            let (streams, backs) =
                of_mix.map(|row| (mixes.stream[row] as usize, u64::from(mixes.back[row]))).unzip();
            self.row(n, (streams, backs), model, &mut before, random, &mut swept);
        }
        swept.sort_by_key(|one| one.0);
        let streams = swept.iter().map(|one| one.2);
        let letters = streams.clone().map(|stream| model.operation(stream));
        let lengths: Vec<u32> = streams.map(|stream| model.streams.lengths[stream]).collect();
        IoLog {
            operations: letters.clone().map(char::from).collect(),
            offsets: swept
                .iter()
                .zip(letters)
                .map(|(one, letter)| if letter == b'f' { 0 } else { offset + one.1 })
                .collect(),
            times_ns: demand.times_ns(&lengths, random),
            lengths,
        }
    }

    /// I/Os of a pass.
    pub(super) fn total(&self) -> u64 {
        self.ios.iter().fold(0, |sum, ios| sum.saturating_add(*ios))
    }

    /// Adds the I/Os of one row. `before`: the operation of the row before, and where it ended.
    fn row(
        &self,
        n: usize,
        (streams, backs): (Vec<usize>, Vec<u64>),
        model: &IoModel,
        before: &mut Option<(u8, u64)>,
        random: &mut Prng,
        to: &mut Vec<Swept>,
    ) {
        let length = |stream: &usize| u64::from(model.streams.lengths[*stream]);
        let lengths: Vec<u64> = streams.iter().map(length).collect();
        let (span, steps) = self.open(n).unwrap_or_default();
        let within = self.offset[n]..self.offset[n] + span;
        let operation = streams.first().map_or(b'f', |stream| model.operation(*stream));
        let near = |one: &(u8, u64)| {
            one.0 == operation && one.1.abs_diff(within.start) <= NEAR_BYTES && operation != b'f'
        };
        let end = before.filter(near).map(|one| one.1);
        let at = upwards(&within, end, steps, &lengths, &backs, random);
        *before = at.last().zip(lengths.last()).map(|(at, length)| (operation, at + length));
        let apart = u128::from(self.end[n] - self.begin[n]) << BETWEEN_BITS;
        let last = (streams.len() as u128).saturating_sub(1).max(1);
        for (k, (stream, at)) in streams.into_iter().zip(at).enumerate() {
            let place = (self.begin[n] << BETWEEN_BITS) + (apart * k as u128 / last) as u64;
            to.push((place, at.min(model.range_bytes - length(&stream)), stream));
        }
    }

    /// Span and steps of a row that leaves something out.
    fn open(&self, n: usize) -> Option<(u64, u64)> {
        let at = (n + self.span.len()).checked_sub(self.begin.len())?;
        Some((self.span[at], self.steps[at]))
    }

    pub(super) fn check(&self, model: &IoModel, mixes: &Mixes, demand: &Demand) -> Check {
        let (rows, open) = (self.begin.len(), self.span.len());
        let columns = [self.end.len(), self.offset.len(), self.ios.len(), self.mix.len()];
        let equal = columns == [rows; 4] && self.steps.len() == open && open <= rows;
        ensure(equal, KEY, || "the columns of sweeps differ in length".to_owned())?;
        demand.check()?;
        mixes.check(model)?;
        let mut left: Vec<u64> = mixes.rows().map(|rows| mixes.count[rows].iter().sum()).collect();
        for n in 0..rows {
            self.check_row(n, model)?;
            let of_mix = left.get_mut(self.mix[n] as usize);
            let less = of_mix.and_then(|of| of.checked_sub(self.ios[n]).map(|less| *of = less));
            ensure(less.is_some(), KEY, || format!("the mix of the sweep {n} has too few I/Os"))?;
        }
        ensure(left.iter().all(|left| *left == 0), KEY, || {
            "a mix has more I/Os than its sweeps".to_owned()
        })
    }

    fn check_row(&self, n: usize, model: &IoModel) -> Check {
        let (begin, end, ios) = (self.begin[n], self.end[n], self.ios[n]);
        ensure(begin <= end && end < IOS_MAX, KEY, || {
            format!("the sweep {n} goes from the I/O {begin} to the I/O {end}")
        })?;
        ensure((1..=IOS_MAX).contains(&ios), KEY, || format!("the sweep {n} has {ios} I/Os"))?;
        let (span, steps) = self.open(n).unwrap_or_default();
        ensure(steps < ios, KEY, || format!("the sweep {n} has {ios} I/Os and {steps} steps"))?;
        for bytes in [self.offset[n], span] {
            whole_sectors(KEY, bytes)?;
        }
        let end = self.offset[n].checked_add(span);
        ensure(end.is_some_and(|end| end <= model.range_bytes), KEY, || {
            format!("the sweep {n} goes behind the range")
        })
    }
}

impl Demand {
    fn check(&self) -> Check {
        let rows = self.work.len();
        ensure(rows > 0 && self.length_ns.len() == rows && self.shape.len() == rows, KEY, || {
            "the columns of demand differ in length".to_owned()
        })?;
        ensure(self.shape.iter().all(|shape| SHAPES.contains(shape)), KEY, || {
            "the shape of an interval of demand is out of range".to_owned()
        })?;
        let length = self.length_ns.iter().try_fold(0_u64, |sum, one| sum.checked_add(*one));
        ensure(length.is_some_and(|length| i64::try_from(length).is_ok()), KEY, || {
            "the intervals of demand are too long".to_owned()
        })
    }
}

type Extent = std::ops::Range<u64>;

/// Addresses that go up `within` an extent, from its begin or from where I/Os `before` ended: each
/// begins where the one before ended, or `backs` bytes earlier, or, `steps` of them, later, so that
/// they come to its end.
fn upwards(
    within: &Extent,
    before: Option<u64>,
    steps: u64,
    lengths: &[u64],
    backs: &[u64],
    random: &mut Prng,
) -> Vec<u64> {
    let grows = lengths.iter().zip(backs).map(|(length, back)| length - back.min(length));
    let bytes = lengths.first().unwrap_or(&0) + grows.skip(1).sum::<u64>();
    let left_out = (within.end - within.start).saturating_sub(bytes);
    // I/Os that go back leave nothing out, as long as there are others.
    let mut order: Vec<usize> = (1..lengths.len()).collect();
    shuffle(&mut order, random);
    order.sort_by_key(|k| backs[*k] > 0);
    let mut which = vec![false; lengths.len()];
    order.into_iter().take(steps as usize).for_each(|k| which[k] = true);
    let mut parts = if steps == 0 { vec![] } else { apart(steps, left_out, random) }.into_iter();
    let mut end = before.unwrap_or(within.start);
    let mut addresses = Vec::with_capacity(lengths.len());
    for (k, (length, back)) in lengths.iter().zip(backs).enumerate() {
        let at = if which[k] {
            end + parts.next().unwrap_or(0)
        } else if k == 0 && before.is_none() {
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

fn unit(bytes: u64) -> u64 {
    if bytes.is_multiple_of(UNIT_BYTES) { UNIT_BYTES } else { SECTOR_BYTES }
}

/// Bytes in parts that are cut at random, none of them empty if there is enough.
fn apart(parts: u64, bytes: u64, random: &mut Prng) -> Vec<u64> {
    let unit = unit(bytes);
    let least = u64::from(bytes / unit >= parts);
    let free = bytes / unit - least * parts;
    let mut cuts: Vec<u64> = (1..parts).map(|_| random.below(free + 1)).collect();
    cuts.sort_unstable();
    cuts.push(free);
    let mut before = 0;
    let parts = cuts.into_iter().map(|cut| {
        let part = cut - before + least;
        before = cut;
        part * unit
    });
    parts.collect()
}

#[cfg(test)]
mod tests;
