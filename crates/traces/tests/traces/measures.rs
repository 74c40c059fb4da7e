//! Tests the trace metrics against simple counting, on small random traces.

use std::collections::BTreeMap;

use serde_json::Value;
use writecliff_traces::{MeasureLimits, Measures, NO_RESPONSE, Operation, Record, StepLength};

const BLOCK: u64 = 4096;

/// Returns random I/Os of three volumes, some of them sequential, including flushes and discards.
fn trace(count: usize, seed: u64) -> Vec<Record> {
    let mut state = seed;
    let mut random = move |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let (mut time_ns, mut ends) = (0, [0_u64; 3]);
    (0..count)
        .map(|n| {
            let pause = if random(50) == 0 { 3_000_000_000 } else { random(2_000_000) };
            time_ns += if n == 0 { 0 } else { pause as i64 };
            let volume = random(3) as usize;
            let operation = match random(20) {
                0 => Operation::Flush,
                1 => Operation::Discard,
                2..9 => Operation::Write,
                _ => Operation::Read,
            };
            let length = [512, 4096, 4096, 8192, 10_000, 65_536][random(6) as usize];
            let offset = if random(3) == 0 { ends[volume] } else { 512 * random(1 << 12) };
            let mut record = Record::new(time_ns, operation, offset, length);
            record.volume = volume as u32;
            record.response_ns =
                if random(10) == 0 { NO_RESPONSE } else { random(9_000_000) as i64 };
            record.process = random(4) as u32;
            if operation == Operation::Flush {
                (record.offset_bytes, record.length_bytes) = (0, 0);
            } else if operation == Operation::Write {
                ends[volume] = offset + length;
            }
            record
        })
        .collect()
}

fn measured(records: &[Record], limits: MeasureLimits) -> Value {
    taken(records, limits).result()
}

fn taken(records: &[Record], limits: MeasureLimits) -> Measures {
    let mut measures = Measures::new(limits);
    let volumes = ["a", "b", "c"].map(str::to_owned);
    let processes = ["", "p", "q", "r"].map(str::to_owned);
    for part in records.chunks(777) {
        measures.add(part, &volumes, &processes);
    }
    measures
}

fn steps_of(records: &[Record], length: StepLength) -> Value {
    let limits = MeasureLimits { steps: Some(length), ..MeasureLimits::default() };
    taken(records, limits).steps().unwrap()
}

fn sum(rows: &Value, key: &str) -> u64 {
    rows.as_array().unwrap().iter().map(|row| row[key].as_u64().unwrap()).sum()
}

#[test]
fn steps_hold_what_arrives_in_their_time() {
    let all = trace(5000, 7);
    let last_s = all.last().unwrap().time_ns as u64 / 1_000_000_000;
    for (length, seconds) in [
        (StepLength::Given { seconds: 7 }, 7),
        (StepLength::ByDuration, if last_s < 300 { 1 } else { 5 }),
    ] {
        let steps = steps_of(&all, length);
        assert_eq!(steps["length_s"], seconds);
        let rows = steps["rows"].as_array().unwrap();
        assert_eq!(rows.len() as u64, last_s / seconds + 1);
        for (n, row) in rows.iter().enumerate() {
            let in_step =
                |stream: &&Record| stream.time_ns as u64 / (seconds * 1_000_000_000) == n as u64;
            let count =
                |op| all.iter().filter(in_step).filter(|stream| stream.operation == op).count();
            assert_eq!(row["reads"], count(Operation::Read));
            assert_eq!(row["writes"], count(Operation::Write));
            assert_eq!(row["flushes"], count(Operation::Flush));
            let answered = all.iter().filter(in_step).filter(|stream| stream.operation.moves());
            let answered = answered.filter(|stream| stream.response_ns != NO_RESPONSE);
            let slowest = answered.map(|stream| stream.response_ns as u64).max();
            assert_eq!(row["response_max_ns"].as_u64(), slowest);
            let streams = row["streams"].as_array().unwrap();
            let counted: u64 = streams.iter().map(|stream| stream[1].as_u64().unwrap()).sum();
            let other = row["other_ios"].as_u64().unwrap();
            assert_eq!(counted + other, (count(Operation::Read) + count(Operation::Write)) as u64);
        }
    }
}

#[test]
fn a_long_trace_has_few_steps_and_loses_nothing() {
    let read = |n: i64| Record::new(n * 1_000_000_000, Operation::Read, 4096 * n as u64, 4096);
    for (seconds, length) in [(299, 1), (1400, 5), (20_000, 300), (86_400, 300), (400_000, 600)] {
        let all: Vec<Record> = (0..seconds).step_by(7).map(read).collect();
        let steps = steps_of(&all, StepLength::ByDuration);
        assert_eq!(steps["length_s"], length, "{seconds}");
        assert_eq!(sum(&steps["rows"], "reads"), all.len() as u64);
        assert_eq!(steps["ios_beyond"], 0);
        let first = steps["rows"][0]["reads"].as_u64().unwrap();
        assert_eq!(first, (length as u64).div_ceil(7));
    }
    let given = steps_of(&[read(0), read(5000)], StepLength::Given { seconds: 1 });
    assert_eq!((given["rows"].as_array().unwrap().len(), &given["ios_beyond"]), (1, &1.into()));
}

fn number(of: &Value) -> f64 {
    of.as_f64().unwrap_or_else(|| panic!("{of} is no number"))
}

fn close(value: &Value, wanted: f64) {
    let value = number(value);
    assert!((value - wanted).abs() <= 1e-9 * wanted.abs().max(1.0), "{value} is not {wanted}");
}

fn moves(records: &[Record]) -> impl Iterator<Item = &Record> {
    records.iter().filter(|record| record.operation.moves())
}

fn blocks(record: &Record) -> impl Iterator<Item = (u32, u64)> {
    let (first, end) =
        (record.offset_bytes / BLOCK, (record.offset_bytes + record.length_bytes).div_ceil(BLOCK));
    let volume = record.volume;
    (first..end).map(move |block| (volume, block))
}

#[test]
fn counts_sizes_and_times_are_exact() {
    let all = trace(20_000, 7);
    let measures = measured(&all, MeasureLimits::default());
    let of = |operation: Operation| all.iter().filter(move |count| count.operation == operation);
    let (reads, writes) = (of(Operation::Read).count() as f64, of(Operation::Write).count() as f64);
    close(&measures["ios"], 20_000.0);
    close(&measures["read_pct"], 100.0 * reads / (reads + writes));
    for operation in Operation::ALL {
        let bytes: u64 = of(operation).map(|count| count.length_bytes).sum();
        let counts = &measures["operations"][operation.name()];
        assert_eq!(
            (&counts["ios"], &counts["bytes"]),
            (&of(operation).count().into(), &bytes.into())
        );
    }
    let last = all.iter().map(|count| count.time_ns).max().unwrap();
    close(&measures["duration_s"], last as f64 / 1e9);
    let mut sizes = BTreeMap::<u64, u64>::new();
    moves(&all).for_each(|count| *sizes.entry(count.length_bytes).or_default() += 1);
    for row in measures["sizes"].as_array().unwrap() {
        assert_eq!(row["ios"].as_u64().unwrap(), sizes[&row["size_bytes"].as_u64().unwrap()]);
    }
    let shares: f64 =
        measures["streams"].as_array().unwrap().iter().map(|row| number(&row["share_pct"])).sum();
    assert!((shares - 100.0).abs() < 1e-6);
    let aligned = moves(&all)
        .filter(|count| count.offset_bytes % BLOCK == 0 && count.length_bytes % BLOCK == 0)
        .count() as f64;
    assert_eq!(measures["alignment"][3]["bytes"], 4096);
    close(&measures["alignment"][3]["ios_pct"], 100.0 * aligned / (reads + writes));
    let mut seconds = vec![0_f64; (last / 1_000_000_000) as usize + 1];
    for count in &all {
        seconds[(count.time_ns / 1_000_000_000) as usize] += 1.0;
    }
    let mean = seconds.iter().sum::<f64>() / seconds.len() as f64;
    let variance =
        seconds.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / seconds.len() as f64;
    let arrivals = &measures["arrivals"];
    close(&arrivals["peak_to_mean"], seconds.iter().copied().fold(0.0, f64::max) / mean);
    close(&arrivals["index_of_dispersion"], variance / mean);
    for (row, volume) in
        measures["volumes"].as_array().unwrap().iter().map(|row| (row, &row["volume"]))
    {
        let number = ["a", "b", "c"].iter().position(|name| volume == name).unwrap() as u32;
        let count = all.iter().filter(|count| count.volume == number).count();
        assert_eq!(row["ios"], count);
    }
    let of_process = |n: u32| all.iter().filter(|count| count.process == n).count();
    for row in measures["processes"].as_array().unwrap() {
        let n = ["", "p", "q", "r"].iter().position(|name| row["process"] == *name).unwrap();
        assert_eq!(row["ios"], of_process(n as u32));
    }
    let intervals = measures["intervals"]["rows"].as_array().unwrap();
    let sum: u64 = intervals.iter().map(|row| row["reads"].as_u64().unwrap()).sum();
    assert_eq!((sum as f64, intervals.len() <= 256), (reads, true));
}

#[test]
fn queue_depth_and_idle_periods_are_those_of_plain_lists() {
    let all = trace(5000, 11);
    let measures = measured(&all, MeasureLimits::default());
    let mut depths = BTreeMap::<usize, u64>::new();
    let mut open: Vec<i64> = Vec::new();
    for record in all.iter().filter(|record| record.response_ns != NO_RESPONSE) {
        open.retain(|done| *done > record.time_ns);
        open.push(record.time_ns + record.response_ns);
        *depths.entry(open.len()).or_default() += 1;
    }
    let total: u64 = depths.values().sum();
    let rows = measures["queue_depth"]["distribution"].as_array().unwrap();
    assert_eq!(rows.len(), depths.len());
    for row in rows {
        let count = depths[&(row[0].as_u64().unwrap() as usize)];
        close(&row[1], 100.0 * count as f64 / total as f64);
    }
    let mut idle = (0, 0);
    let mut busy_until = 0;
    for (n, record) in all.iter().enumerate() {
        let gap = record.time_ns - busy_until;
        if n > 0 && gap >= 1_000_000_000 {
            idle = (idle.0 + 1, idle.1.max(gap));
        }
        busy_until = busy_until.max(record.time_ns + record.response_ns.max(0));
    }
    assert!(idle.0 > 50);
    assert_eq!(measures["arrivals"]["idle"][3]["periods"], idle.0);
    close(&measures["arrivals"]["idle_longest_ms"], idle.1 as f64 / 1e6);
    let reads: Vec<i64> = all
        .iter()
        .filter(|record| record.operation == Operation::Read && record.response_ns != NO_RESPONSE)
        .map(|record| record.response_ns)
        .collect();
    let response = &measures["response_ms"]["read"];
    assert_eq!(number(&response["count"]) as usize, reads.len());
    close(&response["mean"], reads.iter().sum::<i64>() as f64 / reads.len() as f64 / 1e6);
    close(&response["max"], *reads.iter().max().unwrap() as f64 / 1e6);
}

/// Block statistics, counted from a list of accesses.
#[derive(Default)]
struct Blocks {
    uses: BTreeMap<(u32, u64), (u64, u64)>,
    overwrites: u64,
    writes: u64,
    update_ns: i64,
    update_bytes: u64,
}

fn by_list(all: &[Record]) -> Blocks {
    let mut blocks_of_list = Blocks::default();
    let mut last = BTreeMap::new();
    let mut written = 0;
    for record in moves(all) {
        let write = record.operation == Operation::Write;
        written += if write { record.length_bytes } else { 0 };
        for block in blocks(record) {
            let uses = blocks_of_list.uses.entry(block).or_default();
            if !write {
                uses.0 += 1;
                continue;
            }
            uses.1 += 1;
            blocks_of_list.writes += 1;
            if let Some((ns, bytes)) = last.insert(block, (record.time_ns, written)) {
                blocks_of_list.overwrites += 1;
                blocks_of_list.update_ns += record.time_ns - ns;
                blocks_of_list.update_bytes += written - bytes;
            }
        }
    }
    blocks_of_list
}

#[test]
fn blocks_are_counted_exactly_while_they_fit() {
    let all = trace(20_000, 3);
    let measures = measured(&all, MeasureLimits::default());
    let wanted = by_list(&all);
    let bytes = |which: fn(&(u64, u64)) -> bool| {
        wanted.uses.values().filter(|uses| which(uses)).count() as f64 * BLOCK as f64
    };
    close(&measures["unique_bytes"], bytes(|_| true));
    close(&measures["unique"]["write_bytes"], bytes(|uses| uses.1 > 0));
    close(&measures["unique"]["read_bytes"], bytes(|uses| uses.0 > 0));
    close(&measures["unique"]["relative_error_pct"], 0.0);
    let updates = &measures["updates"];
    close(&updates["overwritten_pct"], 100.0 * wanted.overwrites as f64 / wanted.writes as f64);
    let overwrites = wanted.overwrites as f64;
    close(&updates["interval_s"]["mean"], wanted.update_ns as f64 / overwrites / 1e9);
    close(&updates["interval_bytes"]["mean"], wanted.update_bytes as f64 / overwrites);
    let mut uses: Vec<u64> = wanted.uses.values().map(|uses| uses.0 + uses.1).collect();
    uses.sort_unstable_by(|first, other| other.cmp(first));
    for row in measures["hottest"].as_array().unwrap() {
        let count = (uses.len() as f64 * number(&row["blocks_pct"]) / 100.0).ceil() as usize;
        let part: u64 = uses[..count].iter().sum();
        close(&row["traffic_pct"], 100.0 * part as f64 / uses.iter().sum::<u64>() as f64);
    }
    let heat: u64 = measures["heat"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|map| ["reads", "writes"].map(|which| map[which].as_array().unwrap().clone()))
        .flatten()
        .flat_map(|row| row.as_array().unwrap().clone())
        .map(|cell| cell.as_u64().unwrap())
        .sum();
    assert_eq!(heat, moves(&all).count() as u64);
}

#[test]
fn a_sample_of_the_blocks_is_within_its_error() {
    let mut all = trace(60_000, 5);
    for (n, record) in (0..).zip(&mut all) {
        record.offset_bytes = (record.offset_bytes * 31 + n * 4096 * 97) % (1 << 31);
    }
    let whole = measured(
        &all,
        MeasureLimits { blocks: 1 << 20, sample_blocks: 4000, reuse_blocks: 1 << 18, steps: None },
    );
    let part = measured(
        &all,
        MeasureLimits { blocks: 8000, sample_blocks: 4000, reuse_blocks: 2000, steps: None },
    );
    close(&whole["unique"]["sampled_one_in"], 1.0);
    assert!(number(&part["unique"]["sampled_one_in"]) >= 32.0);
    let error = number(&part["unique"]["relative_error_pct"]) / 100.0;
    assert!((0.01..0.03).contains(&error));
    let (exact, sampled) = (number(&whole["unique_bytes"]), number(&part["unique_bytes"]));
    assert!((sampled / exact - 1.0).abs() < 4.0 * error, "{sampled} for {exact}");
    for row in 0..5 {
        let share = |of: &Value| number(&of["hottest"][row]["traffic_pct"]);
        assert!((share(&whole) - share(&part)).abs() < 3.0);
    }
    let overwritten = |of: &Value| number(&of["updates"]["overwritten_pct"]);
    assert!((overwritten(&whole) - overwritten(&part)).abs() < 3.0);
    let first = |of: &Value| number(&of["reuse"]["first_use_pct"]);
    assert!((first(&whole) - first(&part)).abs() < 5.0);
}

#[test]
fn runs_are_sequential_and_random_ios_are_not() {
    let mut all = Vec::new();
    for n in 0..1000_u64 {
        for run in 0..4_u64 {
            let mut record =
                Record::new((n * 1000) as i64, Operation::Read, (run << 30) + n * 8192, 8192);
            record.volume = (run % 2) as u32;
            all.push(record);
        }
        all.push(Record::new(
            (n * 1000) as i64,
            Operation::Write,
            (n * 7919 % 1000 + 1) << 20,
            4096,
        ));
    }
    let measures = measured(&all, MeasureLimits::default());
    close(&measures["sequential"]["read_pct"], 99.9);
    close(&measures["sequential"]["write_pct"], 0.0);
    let streams = measures["streams"].as_array().unwrap();
    let top = &streams[0];
    assert_eq!((&top["access"], &top["operation"]), (&"sequential".into(), &"read".into()));
    assert_eq!(top["size_bytes"], 8192);
    close(&top["share_pct"], 100.0 * 3996.0 / 5000.0);
    assert_eq!(measures["response_ms"], Value::Null);
    assert_eq!(measures["queue_depth"], Value::Null);
}

#[test]
fn times_beyond_all_traces_do_no_harm() {
    let mut all = vec![
        Record::new(0, Operation::Read, 0, 4096),
        Record::new(i64::MAX, Operation::Write, (1 << 62) + 512, 1 << 30),
        Record::new(-5, Operation::Read, 4096, 4096),
    ];
    all[1].response_ns = i64::MAX;
    let measures = measured(
        &all,
        MeasureLimits { blocks: 1000, sample_blocks: 500, reuse_blocks: 100, steps: None },
    );
    close(&measures["ios"], 3.0);
    assert_eq!(measures["out_of_order"], 1);
    assert_eq!(measures["arrivals"]["ios_beyond_windows"], 1);
}
