//! Selection of the next I/O of a sweep: its size, and how many bytes it starts before the previous
//! end.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::{Check, IOS_MAX, IoModel, ensure, whole_sectors};

/// Number of positions between two I/Os, which are available for other types of I/Os.
const BETWEEN_BITS: u32 = 16;
/// Difference in bytes above which a sweep exchanges I/Os with later I/Os of its mix.
const OFF_BYTES: u64 = 64 << 10;
const EXCHANGES_MAX: usize = 3;
/// Number of I/Os of the mix that are considered for an exchange.
const LOOKED_AT: usize = 1000;

model_table! {
    /// Mixes of I/O streams, shared by similar sweeps.
    Mixes {
        /// Number of rows of each mix in the other columns, which list the mixes one after another.
        sizes: Vec<u32>,
        /// I/O stream, number of bytes by which an I/O starts before the end of the previous I/O,
        /// and number of such I/Os in all sweeps of the mix.
        stream: Vec<u32>,
        back: Vec<u32>,
        count: Vec<u64>,
        /// Number of these I/Os that start a sweep.
        begins: Vec<u64>,
        /// Index of the row's first I/O that does not start a sweep, among all such I/Os of the
        /// mix; present only for rows with such I/Os.
        first: Vec<u64>,
        /// Index of the row's last such I/O, and number of groups of consecutive I/Os; present only
        /// for rows with several such I/Os. Groups are evenly spaced.
        last: Vec<u64>,
        groups: Vec<u64>,
    }
}

/// Positions of a row's I/Os that do not start a sweep, among all I/Os of the mix.
#[derive(Clone, Copy, Debug)]
struct Spread {
    ios: u64,
    first: u64,
    last: u64,
    groups: u64,
}

impl Spread {
    /// Positions of the I/Os, in fine steps between two I/Os of the mix.
    fn places(self) -> impl Iterator<Item = u64> {
        let Self { ios, first, last, groups } = self;
        debug_assert!(first <= last && groups > 0, "the check rejects it");
        // The last group starts so that its I/Os end at the last position.
        let extra = (last - first).saturating_sub((ios / groups).saturating_sub(1));
        let group = move |n: u64| u128::from(n) * u128::from(groups) / u128::from(ios);
        let last_group = u128::from(groups.max(2) - 1);
        let after = move |n: u64| (u128::from(extra) << BETWEEN_BITS) * group(n) / last_group;
        (0..ios).map(move |n| (first << BETWEEN_BITS) + after(n) as u64)
    }
}

/// I/Os of a mix that have not been assigned to a sweep, by row, in order.
pub(super) struct Left {
    begins: std::vec::IntoIter<usize>,
    others: Vec<usize>,
    next: usize,
}

impl Mixes {
    fn rows(&self) -> impl Iterator<Item = Range<usize>> {
        self.sizes.iter().scan(0, |row, sizes| {
            let begin = *row;
            *row += *sizes as usize;
            Some(begin..*row)
        })
    }

    /// Returns the I/Os of each mix.
    pub(super) fn all(&self) -> Vec<Left> {
        let begins = |rows: Range<usize>| {
            let middles = |row: usize| {
                let count = u128::from(self.begins[row]);
                (0..count).map(move |n| ((((2 * n + 1) << 64) / (2 * count)) as u64, row))
            };
            in_order(rows.flat_map(middles))
        };
        let others = self.others();
        self.rows()
            .zip(others)
            .map(|(rows, others)| Left { begins: begins(rows).into_iter(), others, next: 0 })
            .collect()
    }

    /// Returns, for each mix, the rows of the I/Os that do not start a sweep, in order.
    pub(super) fn others(&self) -> Vec<Vec<usize>> {
        let spreads = self.spreads();
        let places = |row: usize| spreads[row].places().map(move |place| (place, row));
        self.rows().map(|rows| in_order(rows.flat_map(places))).collect()
    }

    /// Returns the spread of each row. Missing numbers are derived from the row's I/Os.
    fn spreads(&self) -> Vec<Spread> {
        let (mut first, mut last, mut groups) =
            (self.first.iter(), self.last.iter(), self.groups.iter());
        let next = |ios: u64| -> Option<Spread> {
            let first = if ios > 0 { *first.next()? } else { 0 };
            let (last, groups) =
                if ios > 1 { (*last.next()?, *groups.next()?) } else { (first, 1) };
            Some(Spread { ios, first, last, groups })
        };
        self.others_of_rows().map_while(next).collect()
    }

    /// Returns the number of I/Os of each row that do not start a sweep.
    fn others_of_rows(&self) -> impl Iterator<Item = u64> {
        self.count.iter().zip(&self.begins).map(|(count, begins)| count.saturating_sub(*begins))
    }

    /// Returns the rows of the next `ios` I/Os of a sweep with `wanted_bytes` bytes. If the next
    /// I/Os of the mix have a different size, up to `EXCHANGES_MAX` of them are exchanged for later
    /// I/Os.
    pub(super) fn take(
        &self,
        left: &mut Left,
        ios: usize,
        wanted_bytes: u64,
        model: &IoModel,
    ) -> Vec<usize> {
        let bytes = |row: usize| u64::from(model.streams.lengths[self.stream[row] as usize]);
        let grows = |row: usize| bytes(row).saturating_sub(u64::from(self.back[row]));
        let goes_on = |row: usize| self.back[row] == 0;
        let begin = left.begins.next();
        let end = (left.next + ios - usize::from(begin.is_some())).min(left.others.len());
        let (taken, later) = left.others.split_at_mut(end);
        let taken = &mut taken[left.next..];
        let looked_at = LOOKED_AT.min(later.len());
        let later = &mut later[..looked_at];
        for _ in 0..EXCHANGES_MAX {
            let has = begin.map_or(0, bytes) + taken.iter().map(|row| grows(*row)).sum::<u64>();
            if has.abs_diff(wanted_bytes) <= OFF_BYTES {
                break;
            }
            let (ours, theirs) = (first_of_each(taken, goes_on), first_of_each(later, goes_on));
            let pairs = ours.iter().flat_map(|a| theirs.iter().map(move |b| (a, b)));
            let off = |a: usize, b: usize| (has + grows(b) - grows(a)).abs_diff(wanted_bytes);
            let best = pairs.map(|(a, b)| (off(*a.0, *b.0), *a.1, *b.1)).min();
            let Some((_, a, b)) = best.filter(|best| best.0 < has.abs_diff(wanted_bytes)) else {
                break;
            };
            std::mem::swap(&mut taken[a], &mut later[b]);
        }
        let rows: Vec<_> = begin.into_iter().chain(taken.iter().copied()).collect();
        debug_assert_eq!(rows.len(), ios, "a mix has as many I/Os as its sweeps");
        left.next = end;
        rows
    }

    /// Checks all fields that do not depend on sweeps.
    pub(super) fn check(&self, model: &IoModel) -> Check {
        let listed = self.sizes.iter().fold(0_u64, |sum, size| sum + u64::from(*size));
        let columns = [self.stream.len(), self.back.len(), self.count.len(), self.begins.len()];
        let equal = columns.map(|rows| rows as u64) == [listed; 4];
        ensure(equal, || "the columns of mixes differ in length".to_owned())?;
        (0..self.count.len()).try_for_each(|row| self.check_counts(row))?;
        let with = |least: u64| self.others_of_rows().filter(|ios| *ios >= least).count();
        let placed = [self.first.len(), self.last.len(), self.groups.len()];
        ensure(placed == [with(1), with(2), with(2)], || {
            "mixes position the wrong number of streams".to_owned()
        })?;
        let exists = |stream: &u32| (*stream as usize) < model.streams.lengths.len();
        ensure(self.stream.iter().all(exists), || "a mix has an unknown stream".to_owned())?;
        let mut spreads = self.spreads().into_iter().enumerate();
        spreads.try_for_each(|(row, spread)| self.check_place(row, spread))?;
        let moves = |stream: &u32| model.operation(*stream as usize) != b'f';
        ensure(self.stream.iter().any(moves), || "it has no I/Os".to_owned())?;
        for (n, rows) in self.rows().enumerate() {
            let flushes = rows.clone().filter(|row| !moves(&self.stream[*row])).count();
            ensure(flushes == 0 || flushes == rows.len(), || {
                format!("mix {n} combines flushes with other I/Os")
            })?;
        }
        Ok(())
    }

    fn check_counts(&self, row: usize) -> Check {
        let (count, begins) = (self.count[row], self.begins[row]);
        ensure((1..=IOS_MAX).contains(&count), || {
            format!("the count of a stream of a mix is outside 1 to {IOS_MAX}")
        })?;
        ensure(begins <= count, || {
            "a stream of a mix starts more sweeps than it has I/Os".to_owned()
        })
    }

    fn check_place(&self, row: usize, of: Spread) -> Check {
        ensure(of.first <= of.last && of.last < IOS_MAX, || {
            "the last I/O of a stream of a mix is before the first".to_owned()
        })?;
        ensure((1..=of.ios.max(1)).contains(&of.groups), || {
            "a stream of a mix has more groups than I/Os, or none".to_owned()
        })?;
        whole_sectors(u64::from(self.back[row]))
    }

    /// Returns the number of I/Os of each mix, and the number of I/Os that start a sweep.
    pub(super) fn totals(&self) -> Vec<(u64, u64)> {
        let sum = |of: &[u64]| of.iter().sum::<u64>();
        self.rows().map(|rows| (sum(&self.count[rows.clone()]), sum(&self.begins[rows]))).collect()
    }
}

/// Returns the rows in the order of their positions.
fn in_order(places: impl Iterator<Item = (u64, usize)>) -> Vec<usize> {
    let mut sorted: Vec<(u64, usize)> = places.collect();
    sorted.sort_unstable();
    sorted.into_iter().map(|entry| entry.1).collect()
}

/// Returns the first position of each row where `wanted` is `true`.
fn first_of_each(rows: &[usize], wanted: impl Fn(usize) -> bool) -> BTreeMap<usize, usize> {
    let mut places = BTreeMap::new();
    for (place, row) in rows.iter().enumerate().filter(|entry| wanted(*entry.1)) {
        places.entry(*row).or_insert(place);
    }
    places
}
