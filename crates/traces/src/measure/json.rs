//! Trace metrics as JSON.

use serde_json::{Value, json};

use super::histogram::WeightedHistogram;
use super::hll;
use super::sizes::{Kinds, Sizes};
use super::volume::{Count, Volume};
use super::{Measures, arrival::IDLE_NS};
use crate::record::Operation;
use writecliff_base::SLOT_BYTES;

/// Number of sizes shown individually; all other sizes are combined.
const SIZES_SHOWN: usize = 8;
const STREAMS_SHOWN: usize = 32;
const PROCESSES_SHOWN: usize = 32;
const VOLUMES_SHOWN: usize = 1024;
/// Number of volumes with heat maps, which are the volumes with the most I/Os.
const HEAT_SHOWN: usize = 4;
const HOTTEST_PCT: [f64; 7] = [0.1, 1.0, 5.0, 10.0, 20.0, 50.0, 100.0];
const NS_PER_S: f64 = 1e9;
/// Cache sizes for which the hit rate is computed: powers of two, starting at 1 MiB.
const CACHES: std::ops::RangeInclusive<u32> = 20..=46;

/// Operation and access pattern of each I/O type of a size.
pub(super) const KINDS: [(&str, &str); 4] =
    [("read", "random"), ("read", "sequential"), ("write", "random"), ("write", "sequential")];

fn pct(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| 100.0 * part / whole)
}

fn share(part: u64, whole: u64) -> Option<f64> {
    debug_assert!(part <= whole || whole == 0, "{part} of {whole}");
    pct(part as f64, whole as f64)
}

/// Returns mean, quantiles and maximum of a distribution divided by `unit`; null without values.
fn distribution(of: &WeightedHistogram, unit: f64) -> Value {
    let Some(mean) = of.mean() else { return Value::Null };
    let at = |q: f64| of.quantile(q).map(|value| value as f64 / unit);
    json!({
        "count": of.total.round(),
        "mean": mean / unit,
        "p50": at(0.5),
        "p90": at(0.9),
        "p99": at(0.99),
        "p99_9": at(0.999),
        "max": of.max as f64 / unit,
    })
}

/// Returns points of a distribution, as value and cumulative percentage.
fn points(of: &WeightedHistogram, unit: f64) -> Vec<[f64; 2]> {
    of.cumulative().into_iter().map(|(value, part)| [value as f64 / unit, 100.0 * part]).collect()
}

fn operations(counts: &[Count; 4]) -> Value {
    let each = Operation::ALL.iter().zip(counts);
    each.map(|(operation, count)| {
        (operation.name().to_owned(), json!({"ios": count.ios, "bytes": count.bytes}))
    })
    .collect::<serde_json::Map<_, _>>()
    .into()
}

fn data_ios(counts: &[Count; 4]) -> u64 {
    counts[0].ios + counts[1].ios
}

/// Returns the most frequent sizes, and all other sizes combined.
fn sizes(of: &Sizes, ios: u64) -> Value {
    let mut all: Vec<(u64, Kinds)> = of.iter().collect();
    all.sort_by_key(|(size, kinds)| (std::cmp::Reverse(kinds.iter().sum::<u64>()), *size));
    let row = |ios_of: Kinds, size: Option<u64>| {
        let count: u64 = ios_of.iter().sum();
        json!({
            "size_bytes": size,
            "ios": count,
            "share_pct": share(count, ios),
            "reads": ios_of[0] + ios_of[1],
            "writes": ios_of[2] + ios_of[3],
        })
    };
    let tail = &all[all.len().min(SIZES_SHOWN)..];
    let mut rows: Vec<_> =
        all.iter().take(SIZES_SHOWN).map(|(size, kinds)| row(*kinds, Some(*size))).collect();
    if !tail.is_empty() || of.rest != [0; 4] {
        let sum = |n| tail.iter().map(|(_, kinds)| kinds[n]).sum::<u64>() + of.rest[n];
        let mut rest = row([0, 1, 2, 3].map(sum), None);
        rest["sizes"] = json!(tail.len());
        rows.push(rest);
    }
    rows.into()
}

/// Returns the I/O streams (operation, access, size) by their fraction of the reads and writes.
fn streams(of: &Sizes, ios: u64) -> Value {
    let mut all = Vec::new();
    for (size, kinds) in of.iter() {
        let used = kinds.into_iter().enumerate().filter(|(_, count)| *count > 0);
        all.extend(used.map(|(n, count)| (count, size, n)));
    }
    all.sort_by_key(|&(count, size, n)| (std::cmp::Reverse(count), size, n));
    let row = |&(count, size, n): &(u64, u64, usize)| {
        let (operation, access) = KINDS[n];
        json!({
            "access": access,
            "operation": operation,
            "size_bytes": size,
            "share_pct": share(count, ios),
            "ios": count,
        })
    };
    all.iter().take(STREAMS_SHOWN).map(row).collect::<Vec<_>>().into()
}

impl Measures {
    /// Returns all trace metrics. The name of a time field ends with its unit.
    pub fn result(&self) -> Value {
        let ios = data_ios(&self.counts);
        let [read, write, ..] = self.counts;
        let of_volumes: u64 =
            self.volumes.iter().flat_map(|volume| &volume.counts).map(|count| count.ios).sum();
        assert_eq!(of_volumes, self.ios(), "I/Os by volume");
        let of_processes: u64 = self.processes.iter().map(|process| process[0]).sum();
        assert_eq!(of_processes, self.ios(), "I/Os by process");
        let of_intervals: u64 =
            self.timeline.intervals.iter().flat_map(|interval| interval.ios).sum();
        assert_eq!(of_intervals, self.ios(), "I/Os by interval");
        let sequential: u64 =
            self.volumes.iter().map(|volume| volume.sequential.iter().sum::<u64>()).sum();
        let sequential_of =
            |n: usize| self.volumes.iter().map(|volume| volume.sequential[n]).sum::<u64>();
        let duration_s = self.last_ns as f64 / NS_PER_S;
        json!({
            "ios": self.ios(),
            "read_pct": share(read.ios, ios),
            "read_bytes": read.bytes,
            "write_bytes": write.bytes,
            "duration_s": duration_s,
            "operations": operations(&self.counts),
            "sizes": sizes(&self.sizes, ios),
            "streams": streams(&self.sizes, ios),
            "sequential_pct": share(sequential, ios),
            "sequential": {
                "read_pct": share(sequential_of(0), read.ios),
                "write_pct": share(sequential_of(1), write.ios),
            },
            "alignment": self.alignment(ios),
            "queue_depth": self.queue_depth(),
            "response_ms": self.responses(),
            "arrivals": self.arrivals_value(duration_s),
            "unique_bytes": self.unique_bytes(|_| true),
            "unique": self.unique(),
            "hottest": self.hottest(),
            "reuse": self.reuse_value(),
            "updates": self.updates(),
            "content": self.content_value(),
            "intervals": self.intervals(),
            "volumes": self.volume_rows(),
            "volumes_total": self.volumes.len(),
            "heat": self.heat(),
            "processes": self.process_rows(),
            "out_of_order": self.late,
        })
    }

    /// Returns the time steps, if counted: their length, the streams of all steps, and each step.
    pub fn steps(&self) -> Option<Value> {
        let duration_ns = u64::try_from(self.last_ns).unwrap_or(0);
        self.steps.as_ref().map(|steps| steps.result(duration_ns, &self.process_names))
    }

    fn alignment(&self, ios: u64) -> Value {
        let row = |n: usize| {
            let aligned: u64 = self.aligned[n..].iter().sum();
            json!({"bytes": 512_u64 << n, "ios_pct": share(aligned, ios)})
        };
        (0..self.aligned.len()).map(row).collect::<Vec<_>>().into()
    }

    fn queue_depth(&self) -> Value {
        let total = self.depths.total();
        if total == 0 {
            return Value::Null;
        }
        let sum: f64 = self.depths.iter().map(|(depth, count)| depth as f64 * count as f64).sum();
        let part = |(depth, count): (usize, u64)| json!([depth, share(count, total)]);
        json!({
            "mean": sum / total as f64,
            "p50": self.depths.quantile(0.5),
            "p90": self.depths.quantile(0.9),
            "p99": self.depths.quantile(0.99),
            "max": self.depths.iter().map(|depth| depth.0).max(),
            "ios": total,
            "distribution": self.depths.iter().map(part).collect::<Vec<_>>(),
        })
    }

    fn responses(&self) -> Value {
        if self.response.iter().all(|times| times.total == 0.0) {
            return Value::Null;
        }
        let mut to = serde_json::Map::new();
        for (operation, times) in Operation::ALL.iter().zip(&self.response) {
            to.insert(operation.name().to_owned(), distribution(times, 1e6));
        }
        let curves: serde_json::Map<_, _> = Operation::ALL
            .iter()
            .zip(&self.response)
            .filter(|(_, times)| times.total > 0.0)
            .map(|(operation, times)| (operation.name().to_owned(), json!(points(times, 1e6))))
            .collect();
        to.insert("points".to_owned(), curves.into());
        to.into()
    }

    fn arrivals_value(&self, duration_s: f64) -> Value {
        let bursts = self.arrivals.bursts();
        let idle = |(least, (count, time)): (&u64, &(u64, u64))| {
            json!({
                "at_least_ms": *least as f64 / 1e6,
                "periods": count,
                "time_pct": pct(*time as f64 / NS_PER_S, duration_s),
            })
        };
        let each = IDLE_NS.iter().zip(&self.arrivals.idle);
        json!({
            "between_us": distribution(&self.arrivals.between_ns, 1e3),
            "between_points_us": points(&self.arrivals.between_ns, 1e3),
            "window_s": 1,
            "windows": bursts.seconds,
            "ios_per_s": bursts.mean,
            "peak_ios_per_s": bursts.peak,
            "peak_to_mean": (bursts.mean > 0.0).then(|| f64::from(bursts.peak) / bursts.mean),
            "index_of_dispersion": (bursts.mean > 0.0).then(|| bursts.variance / bursts.mean),
            "ios_beyond_windows": self.arrivals.uncounted,
            "idle": each.map(idle).collect::<Vec<_>>(),
            "idle_longest_ms": self.arrivals.idle_longest_ns as f64 / 1e6,
        })
    }

    /// Returns the total size in bytes of the blocks for which `which` is `true`.
    fn unique_bytes(&self, which: impl Fn(&super::blocks::Block) -> bool) -> f64 {
        let count = self.blocks.iter().filter(|block| which(block)).count();
        count as f64 * self.blocks.scale * SLOT_BYTES as f64
    }

    fn unique(&self) -> Value {
        json!({
            "block_bytes": SLOT_BYTES,
            "read_bytes": self.unique_bytes(|block| block.reads > 0),
            "write_bytes": self.unique_bytes(|block| block.writes > 0),
            "read_and_written_bytes":
                self.unique_bytes(|block| block.reads > 0 && block.writes > 0),
            "sampled_one_in": self.blocks.scale,
            "blocks_in_sample": self.blocks.len(),
            "relative_error_pct": 100.0 * self.blocks.relative_error(),
        })
    }

    /// Returns the fraction of traffic to the most frequently used blocks, for all I/Os, reads and
    /// writes, and points of the Lorenz curve of all I/Os.
    fn hottest(&self) -> Value {
        let sorted = |of: fn(&super::blocks::Block) -> u64| {
            let mut uses: Vec<u64> =
                self.blocks.iter().map(of).filter(|&count| count > 0).collect();
            uses.sort_unstable_by_key(|&count| std::cmp::Reverse(count));
            let mut sum = 0;
            for running in &mut uses {
                sum += *running;
                *running = sum;
            }
            uses
        };
        let all = sorted(|block| u64::from(block.reads) + u64::from(block.writes));
        let (reads, writes) =
            (sorted(|block| u64::from(block.reads)), sorted(|block| u64::from(block.writes)));
        let traffic = |sums: &[u64], blocks_pct: f64| {
            let count = (sums.len() as f64 * blocks_pct / 100.0).ceil() as usize;
            let part = count.checked_sub(1).and_then(|last| sums.get(last))?;
            share(*part, *sums.last()?)
        };
        let row = |blocks_pct: f64| {
            json!({
                "blocks_pct": blocks_pct,
                "traffic_pct": traffic(&all, blocks_pct),
                "read_pct": traffic(&reads, blocks_pct),
                "write_pct": traffic(&writes, blocks_pct),
            })
        };
        HOTTEST_PCT.map(row).to_vec().into()
    }

    fn reuse_value(&self) -> Value {
        let (distances, cold) = (self.reuse.distances(), self.reuse.cold);
        let all = distances.total + cold;
        let mut caches = Vec::new();
        for exponent in CACHES {
            let hits = distances.below_power(exponent);
            caches.push(json!({"cache_bytes": 1_u64 << exponent, "hit_pct": pct(hits, all)}));
            if hits >= distances.total {
                break;
            }
        }
        json!({
            "distance_bytes": distribution(&distances, 1.0),
            "first_use_pct": pct(cold, all),
            "hits": caches,
            "sampled_one_in": self.reuse.scale,
        })
    }

    fn updates(&self) -> Value {
        json!({
            "overwritten_pct": pct(self.blocks.overwrites, self.block_writes as f64),
            "reads_of_written_pct":
                pct(self.blocks.reads_of_written, self.block_reads as f64),
            "interval_s": distribution(&self.blocks.update_ns, NS_PER_S),
            "interval_points_s": points(&self.blocks.update_ns, NS_PER_S),
            "interval_bytes": distribution(&self.blocks.update_bytes, 1.0),
            "interval_points_bytes": points(&self.blocks.update_bytes, 1.0),
        })
    }

    fn content_value(&self) -> Value {
        if self.content_writes == 0 {
            return Value::Null;
        }
        let distinct = self.content.estimate().min(self.content_writes as f64);
        let duplicates = self.content_writes as f64 - distinct;
        json!({
            "writes": self.content_writes,
            "distinct": distinct,
            "duplicate_pct": pct(duplicates, self.content_writes as f64),
            "relative_error_pct": 100.0 * hll::RELATIVE_ERROR,
        })
    }

    fn intervals(&self) -> Value {
        let seconds = self.timeline.width_ns() as f64 / NS_PER_S;
        let row = |(n, interval): (usize, &super::arrival::Interval)| {
            json!({
                "begin_s": n as f64 * seconds,
                "reads": interval.ios[0],
                "writes": interval.ios[1],
                "flushes": interval.ios[2],
                "discards": interval.ios[3],
                "read_bytes": interval.bytes[0],
                "write_bytes": interval.bytes[1],
                "discard_bytes": interval.bytes[3],
                "working_set_bytes": interval.blocks.estimate() * SLOT_BYTES as f64,
            })
        };
        json!({
            "length_s": seconds,
            "working_set_error_pct": 100.0 * hll::RELATIVE_ERROR,
            "rows": self.timeline.intervals.iter().enumerate().map(row).collect::<Vec<_>>(),
        })
    }

    /// Returns the volume numbers in descending order of I/O count.
    fn by_ios(&self) -> Vec<usize> {
        let ios = |n: &usize| self.volumes[*n].counts.iter().map(|count| count.ios).sum::<u64>();
        let mut order: Vec<usize> = (0..self.volumes.len()).filter(|n| ios(n) > 0).collect();
        order.sort_by_key(|n| (std::cmp::Reverse(ios(n)), *n));
        order
    }

    fn name(&self, number: usize) -> &str {
        self.volume_names.get(number).map_or("", String::as_str)
    }

    fn volume_rows(&self) -> Value {
        let mut unique = vec![0_u64; self.volumes.len()];
        for block in self.blocks.iter() {
            unique[block.volume as usize] += 1;
        }
        let scale = self.blocks.scale * SLOT_BYTES as f64;
        let row = |n: usize| self.volume_row(n, unique[n] as f64 * scale);
        self.by_ios().into_iter().take(VOLUMES_SHOWN).map(row).collect::<Vec<_>>().into()
    }

    fn volume_row(&self, number: usize, unique_bytes: f64) -> Value {
        let volume: &Volume = &self.volumes[number];
        let ios = data_ios(&volume.counts);
        let mean_ns = (volume.responses > 0).then(|| volume.response_ns / volume.responses as f64);
        json!({
            "volume": self.name(number),
            "ios": volume.counts.iter().map(|count| count.ios).sum::<u64>(),
            "read_pct": share(volume.counts[0].ios, ios),
            "read_bytes": volume.counts[0].bytes,
            "write_bytes": volume.counts[1].bytes,
            "operations": operations(&volume.counts),
            "sequential_pct": share(volume.sequential.iter().sum(), ios),
            "unique_bytes": unique_bytes,
            "end_bytes": volume.end_bytes,
            "response_mean_ms": mean_ns.map(|ns| ns / 1e6),
            "sizes": volume.sizes.as_ref().map(|sizes_of_volume| sizes(sizes_of_volume, ios)),
        })
    }

    fn heat(&self) -> Value {
        let shown =
            self.by_ios().into_iter().filter_map(|n| Some((n, self.volumes[n].heat.as_ref()?)));
        let map = |(n, heat): (usize, &super::heat::Heat)| {
            json!({
                "volume": self.name(n),
                "cell_s": heat.cell_ns() as f64 / NS_PER_S,
                "cell_bytes": heat.cell_bytes(),
                "reads": heat.rows(0),
                "writes": heat.rows(1),
            })
        };
        shown.take(HEAT_SHOWN).map(map).collect::<Vec<_>>().into()
    }

    fn process_rows(&self) -> Value {
        let named = self.processes.iter().enumerate().skip(1).filter(|(_, counts)| counts[0] > 0);
        let mut rows: Vec<_> = named.collect();
        rows.sort_by_key(|(n, counts)| (std::cmp::Reverse(counts[0]), *n));
        let row = |(n, counts): (usize, &[u64; 2])| {
            let name = self.process_names.get(n).map_or("", String::as_str);
            json!({"process": name, "ios": counts[0], "bytes": counts[1]})
        };
        rows.into_iter().take(PROCESSES_SHOWN).map(row).collect::<Vec<_>>().into()
    }
}
