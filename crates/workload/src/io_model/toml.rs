//! The model in a workload file: a table with a table of columns for each part.

use writecliff_base::located::{LocatedError, Table};

use super::mixes::Mixes;
use super::sweeps::{Demand, Sweeps};
use super::{Gaps, IoModel, Periods, Places, States, Streams, Transitions};

type Read<T> = Result<T, LocatedError>;

const ANY: std::ops::RangeInclusive<u64> = 0..=i64::MAX as u64;

fn column(table: &Table<'_>, key: &str) -> Read<Vec<u64>> {
    table.optional_integers(key, ANY)?.ok_or_else(|| table.missing(key))
}

/// A column of smaller numbers.
fn narrow<T: TryFrom<u64>>(table: &Table<'_>, key: &str) -> Read<Vec<T>> {
    let each = column(table, key)?.into_iter().map(|one| {
        T::try_from(one).map_err(|_| table.error(key, format!("{one} is too large"), None))
    });
    each.collect()
}

fn part<'a>(table: &Table<'a>, key: &str) -> Read<Table<'a>> {
    table.optional_table(key)?.ok_or_else(|| table.missing(key))
}

/// The model of a job, if it has one.
pub(crate) fn read(job: &Table<'_>) -> Read<Option<IoModel>> {
    let Some(table) = job.optional_table("model")? else { return Ok(None) };
    let swept = table.optional_table("sweeps")?;
    let demand = table.optional_table("demand")?;
    let mixed = table.optional_table("mixes")?;
    let chained = swept.is_none() && mixed.is_none() && demand.is_none();
    let mut model = IoModel {
        seed: table.optional_integer("seed", ANY)?.unwrap_or(1),
        range_bytes: table.required_size("range")?.0,
        streams: streams(part(&table, "streams")?)?,
        sweeps: swept.map(sweeps).transpose()?,
        mixes: mixed.map(mixes).transpose()?,
        demand: demand.map(intervals).transpose()?,
        read_ranks: table.optional_integers("read_ranks", ANY)?.unwrap_or_default(),
        write_ranks: table.optional_integers("write_ranks", ANY)?.unwrap_or_default(),
        ..IoModel::default()
    };
    if chained {
        model.gaps = gaps(part(&table, "gaps")?)?;
        model.states = states(part(&table, "states")?)?;
        model.transitions = transitions(part(&table, "transitions")?)?;
        model.periods = periods(part(&table, "periods")?)?;
        model.places = places(part(&table, "places")?)?;
    }
    table.finish()?;
    Ok(Some(model))
}

fn streams(table: Table<'_>) -> Read<Streams> {
    let operations = table.required_text("operations")?.to_owned();
    let found = Streams {
        operations,
        lengths: narrow(&table, "lengths")?,
        several: narrow(&table, "several")?,
    };
    table.finish()?;
    Ok(found)
}

fn gaps(table: Table<'_>) -> Read<Gaps> {
    let idle_ns = table.required_integer("idle_ns", ANY)?;
    let found = Gaps { values_ns: column(&table, "values_ns")?, idle_ns };
    table.finish()?;
    Ok(found)
}

fn states(table: Table<'_>) -> Read<States> {
    let found = States {
        stream: narrow(&table, "stream")?,
        continues: narrow(&table, "continues")?,
        back: narrow(&table, "back")?,
        gap: narrow(&table, "gap")?,
    };
    table.finish()?;
    Ok(found)
}

fn transitions(table: Table<'_>) -> Read<Transitions> {
    let found = Transitions {
        phase: narrow(&table, "phase")?,
        before: narrow(&table, "before")?,
        after: narrow(&table, "after")?,
        count: column(&table, "count")?,
    };
    table.finish()?;
    Ok(found)
}

fn periods(table: Table<'_>) -> Read<Periods> {
    let found = Periods {
        phase: narrow(&table, "phase")?,
        ios: column(&table, "ios")?,
        length_ns: column(&table, "length_ns")?,
        longest_ns: column(&table, "longest_ns")?,
    };
    table.finish()?;
    Ok(found)
}

fn places(table: Table<'_>) -> Read<Places> {
    let found = Places {
        stream: narrow(&table, "stream")?,
        begin: column(&table, "begin")?,
        within: column(&table, "within")?,
        life: column(&table, "life")?,
        shape: narrow(&table, "shape")?,
        count: column(&table, "count")?,
        uses: column(&table, "uses")?,
        run_bytes: column(&table, "run_bytes")?,
        offset: column(&table, "offset")?,
        stride: column(&table, "stride")?,
    };
    table.finish()?;
    Ok(found)
}

fn sweeps(table: Table<'_>) -> Read<Sweeps> {
    let found = Sweeps {
        begin: column(&table, "begin")?,
        end: column(&table, "end")?,
        offset: column(&table, "offset")?,
        ios: column(&table, "ios")?,
        mix: narrow(&table, "mix")?,
        span: column(&table, "span")?,
        steps: column(&table, "steps")?,
        left_out: column(&table, "left_out")?,
        read_weights: narrow(&table, "read_weights")?,
        write_weights: narrow(&table, "write_weights")?,
    };
    table.finish()?;
    Ok(found)
}

fn mixes(table: Table<'_>) -> Read<Mixes> {
    let found = Mixes {
        sizes: narrow(&table, "sizes")?,
        stream: narrow(&table, "stream")?,
        back: narrow(&table, "back")?,
        count: column(&table, "count")?,
        begins: column(&table, "begins")?,
        first: column(&table, "first")?,
        last: column(&table, "last")?,
        groups: column(&table, "groups")?,
    };
    table.finish()?;
    Ok(found)
}

fn intervals(table: Table<'_>) -> Read<Demand> {
    let found = Demand {
        ios: column(&table, "ios")?,
        length_ns: column(&table, "length_ns")?,
        shape: narrow(&table, "shape")?,
    };
    table.finish()?;
    Ok(found)
}
