//! Kinds of values that occur only in workload files.

use writecliff_base::keys::{Numbers, Percent, Rate, Size};
use writecliff_base::kinds;
use writecliff_base::located::Table;

/// Returns `true` if the value is a string that ends with `end`. The caller reports other types.
fn ends_with(table: &Table<'_>, key: &str, end: &str) -> bool {
    matches!(table.text(key), Ok(Some(text)) if text.trim().ends_with(end))
}

kinds! {
    /// Number of tables, which are read later.
    Tables -> usize {
        |_, table, key| table.array_of_tables(key).map(|tables| Some(tables.len())),
        |_| "tables".to_owned(),
    }
    /// A size in bytes; `None` if the value is a percentage of the drive up to this limit.
    SizeOrShare(f64) -> u64 {
        |_, table, key| {
            let size = (!ends_with(table, key, "%")).then(|| Size.read(table, key));
            Ok(size.transpose()?.flatten().map(|size| size.0))
        },
        |kind| format!("size or {}", Percent(0.0..=kind.0).takes()),
    }
    /// A percentage of the drive; `None` if the value is a size, see [`SizeOrShare`].
    ShareOrSize(f64) -> f64 {
        |kind, table, key| {
            let share = || Percent(0.0..=kind.0).read(table, key);
            Ok(ends_with(table, key, "%").then(share).transpose()?.flatten())
        },
        |kind| SizeOrShare(kind.0).takes(),
    }
    /// A size that may be subtracted.
    Distance -> i64 {
        |_, table, key| {
            let size = Size.read(table, key)?;
            Ok(size.map(|size| i64::try_from(size.0).unwrap_or(i64::MAX)))
        },
        |_| "size".to_owned(),
    }
    /// I/Os per second; `None` if the rate is in bytes per second.
    IopsOrRate -> f64 {
        |_, table, key| {
            if !ends_with(table, key, "IOPS") {
                return Ok(None);
            }
            let text = table.text(key)?.unwrap_or_default();
            let number = text.trim().trim_end_matches("IOPS").trim_end().replace('_', "");
            number.parse().map(Some).map_err(|_| {
                let hint = Some("write, for example, rate = \"1000 IOPS\"".to_owned());
                table.error(key, format!("'{text}' is not a number of IOPS"), hint)
            })
        },
        |_| "`\"1000 IOPS\"` or `\"200 MB/s\"`".to_owned(),
    }
    /// Bytes per second; `None` if the rate is in I/Os per second, see [`IopsOrRate`].
    RateOrIops -> f64 {
        |_, table, key| {
            let rate = (!ends_with(table, key, "IOPS")).then(|| Rate.read(table, key));
            Ok(rate.transpose()?.flatten().map(|rate| rate.0 as f64))
        },
        |_| IopsOrRate.takes(),
    }
    /// A list of stream numbers.
    StreamNumbers -> Vec<u16> {
        |_, table, key| {
            let Some(numbers) = Numbers(0.0..=65_535.0).read(table, key)? else {
                return Ok(None);
            };
            if numbers.iter().any(|number| number.fract() != 0.0) {
                return Err(table.error(key, "stream numbers must be integers", None));
            }
            Ok(Some(numbers.into_iter().map(|number| number as u16).collect()))
        },
        |_| Numbers(0.0..=65_535.0).takes(),
    }
}
