//! Tests replays with predictable results on a small drive.

use writecliff_base::Prng;
use writecliff_filesystem::{
    Events, FileOp, FileSystem, LayOut, Repeats, TraceEvent, deaths, synthetic,
};
use writecliff_ssd::{DeviceConfig, device_file};

use super::*;
use crate::outcome::Unobserved;

const DRIVE: &str = include_str!("test_drive.toml");

/// Returns a drive with 15 % over-provisioning.
fn config(user_bytes: u64) -> DeviceConfig {
    let units = user_bytes * 115 / 100 / (96 << 10);
    let text = DRIVE.replace("USER", &user_bytes.to_string()).replace("UNITS", &units.to_string());
    device_file::read(&text, "test.toml", 1).unwrap()
}

fn lay_out(events: &Events, config: &DeviceConfig, fills: f64) -> BlockTrace {
    let repeats = Repeats::Fills(fills);
    let capacity_blocks = (config.user_capacity.0 / SLOT_BYTES) as u32;
    let file_system = FileSystem::default();
    events
        .lay_out(&LayOut { capacity_blocks, file_system, repeats, copies: 1 }, &mut |_| {
            ControlFlow::Continue(())
        })
        .unwrap()
}

fn replayed(
    config: &DeviceConfig,
    trace: &BlockTrace,
    scheme: Scheme,
    streams: u16,
    timed: Option<Timed>,
) -> ReplayOutcome {
    let options = ReplayOptions { scheme, streams, mistag: 0.0, seed: 1, timed };
    let make = || Ssd::new(config.clone());
    run(&make, trace, &deaths(trace), &options, &mut Unobserved).unwrap()
}

/// Returns logs that are written in turn, each in a separate stream, and deleted as a whole.
fn logs() -> Events {
    let mut events = Events::default();
    let mut file = 4;
    let mut add = |op, file: u32, offset, log: u16| {
        let (stream, origin) = (log, log);
        let (length, folder, time_ms) = (65_536, 0, 0);
        events.add(TraceEvent { op, file, offset, length, stream, origin, folder, time_ms });
    };
    // Log n is 2^n MiB long; the program deletes log n - 1 when log n is full.
    let mut current = [0, 1, 2, 3];
    for step in 0..1024_u64 {
        for log in 0..4_u16 {
            let chunks = 16 << log;
            let at = step % chunks;
            if at == 0 {
                add(FileOp::Create, file, 0, log);
                add(FileOp::Unlink, current[usize::from(log)], 0, log);
                current[usize::from(log)] = file;
                file += 1;
            }
            add(FileOp::Write, current[usize::from(log)], at * 65_536, log);
        }
    }
    events
}

#[test]
fn logs_in_streams_of_their_own_amplify_nothing() {
    let events = logs();
    let peak = events.footprint(&FileSystem::default(), 1).peak_blocks;
    let config = config(peak * 4096 * 10 / 9);
    let trace = lay_out(&events, &config, 6.0);
    let separate = replayed(&config, &trace, Scheme::Rules, 4, None);
    assert!(
        separate.write_amplification().unwrap() < 1.005,
        "{:?}",
        separate.write_amplification()
    );
    assert_eq!(separate.ledger.counts.iter().sum::<u64>(), trace.written_blocks);
    let again = replayed(&config, &trace, Scheme::Rules, 4, None);
    assert_eq!(separate.after, again.after);
}

#[test]
fn the_oracle_is_as_good_as_any_on_the_synthetic_store() {
    let store = synthetic::Store {
        table_bytes: 32 << 10,
        chunk_bytes: 4 << 10,
        logged_bytes: 16 << 20,
        seed: 1,
    };
    let events = synthetic::events(&store);
    let peak = events.footprint(&FileSystem::default(), 1).peak_blocks;
    let config = config(peak * 4096 * 20 / 19);
    let trace = lay_out(&events, &config, 8.0);
    let waf = |scheme, streams| {
        replayed(&config, &trace, scheme, streams, None).write_amplification().unwrap()
    };
    let oracle = waf(Scheme::Oracle, 6);
    let none = waf(Scheme::None, 1);
    assert!(none > 1.02, "GC has too little work: {none}");
    for scheme in Scheme::ALL {
        let other = waf(scheme, 6);
        assert!(oracle <= other + 1e-9, "{scheme:?}: {other} against {oracle}");
    }
}

#[test]
fn both_clocks_end_in_the_same_state() {
    let events = logs();
    let peak = events.footprint(&FileSystem::default(), 1).peak_blocks;
    let config = config(peak * 4096 * 10 / 9);
    let trace = lay_out(&events, &config, 2.0);
    let timed = Timed {
        queue_depth: 16,
        readers: 2,
        reads_per_block: None,
        command_blocks: 32,
        written_blocks: trace.written_blocks / 4,
    };
    let fast = replayed(&config, &trace, Scheme::Rules, 4, None);
    let slow = replayed(&config, &trace, Scheme::Rules, 4, Some(timed));
    assert_eq!(fast.after.host_write_bytes, slow.after.host_write_bytes);
    assert_eq!(fast.after.trimmed_bytes, slow.after.trimmed_bytes);
    let nand = |o: &ReplayOutcome| o.after.nand_write_bytes as f64;
    assert!((nand(&fast) / nand(&slow) - 1.0).abs() < 0.002);
    assert!(slow.reads.count() > 1000 && slow.writes.count() > 1000 && slow.timed_ns > 0);
    let unmapped = slow.after.unmapped_read_bytes as f64 / slow.after.host_read_bytes as f64;
    assert!(unmapped < 0.01, "{unmapped} of the reads found nothing");
}

#[test]
fn reads_keep_their_proportion_to_writes() {
    let events = logs();
    let peak = events.footprint(&FileSystem::default(), 1).peak_blocks;
    let config = config(peak * 4096 * 10 / 9);
    let trace = lay_out(&events, &config, 2.0);
    let timed = |reads_per_block| Timed {
        queue_depth: 16,
        readers: 8,
        reads_per_block: Some(reads_per_block),
        command_blocks: 8,
        written_blocks: trace.written_blocks / 4,
    };
    let mut speeds = Vec::new();
    for proportion in [0.0, 0.5, 2.0, 8.0] {
        let done = replayed(&config, &trace, Scheme::Rules, 4, Some(timed(proportion)));
        let written = done.timed_written_bytes as f64 / 4096.0;
        let wanted = proportion * written;
        // Reads that came due with the last writes may not have started.
        assert!((wanted - done.reads.count() as f64).abs() <= 8.0 * proportion + 1.0);
        speeds.push(written / done.timed_ns as f64);
    }
    assert!(speeds.is_sorted_by(|a, b| a >= b) && speeds[3] < 0.8 * speeds[0], "{speeds:?}");
}

/// Records the progress reports of the fast-forwarded and the timed phase.
#[derive(Default)]
struct Shares(Vec<f64>, Vec<f64>);

impl Observer for Shares {
    fn look(&mut self, live: &StepProgress) -> ControlFlow<()> {
        if live.elapsed_ns == 0 { &mut self.0 } else { &mut self.1 }.push(live.fraction);
        ControlFlow::Continue(())
    }
}

#[test]
fn passes_of_an_oracle_are_shares_of_one_whole() {
    let events = logs();
    let peak = events.footprint(&FileSystem::default(), 1).peak_blocks;
    let config = config(peak * 4096 * 10 / 9);
    let trace = lay_out(&events, &config, 8.0);
    let timed = Timed {
        queue_depth: 16,
        readers: 0,
        reads_per_block: None,
        command_blocks: 32,
        written_blocks: trace.written_blocks / 4,
    };
    let options = ReplayOptions {
        scheme: Scheme::Oracle,
        streams: 2,
        mistag: 0.0,
        seed: 1,
        timed: Some(timed),
    };
    let make = || Ssd::new(config.clone());
    let mut seen = Shares::default();
    run(&make, &trace, &deaths(&trace), &options, &mut seen).unwrap();
    for shares in [&seen.0, &seen.1] {
        assert!(shares.is_sorted_by(|a, b| a < b), "{shares:?}");
        assert!(shares[0] < 0.6 && shares[shares.len() - 1] <= 1.0, "{shares:?}");
    }
    // The observer is called several times for each bucketing and once for the timed pass.
    assert!(seen.0.len() > 8 && seen.0[seen.0.len() - 1] > 0.9, "{:?}", seen.0);
}

/// Returns a file that exists before the trace and is overwritten in 4 KiB pieces.
fn overwrites(blocks: impl Iterator<Item = u64>) -> Events {
    let mut events = Events::default();
    for block in blocks {
        let (op, offset, length) = (FileOp::Write, block * SLOT_BYTES, SLOT_BYTES);
        let (file, stream, origin, folder, time_ms) = (0, 0, 0, 0, 0);
        events.add(TraceEvent { op, file, offset, length, stream, origin, folder, time_ms });
    }
    events
}

fn waf_of(events: &Events) -> f64 {
    let peak = events.footprint(&FileSystem::default(), 1).peak_blocks;
    let config = config(peak * 4096 * 10 / 9);
    let trace = lay_out(events, &config, 8.0);
    replayed(&config, &trace, Scheme::None, 1, None).write_amplification().unwrap()
}

/// Tests that a short trace of uniform writes gives the same write amplification as a long trace.
#[test]
fn short_traces_of_random_writes_amplify_like_long_ones() {
    let uniform = |writes: u64| {
        let mut random = Prng::new(7);
        waf_of(&overwrites((0..writes).map(move |_| random.below(20_000))))
    };
    let (short, long) = (uniform(8_000), uniform(160_000));
    assert!(long > 1.8, "{long}");
    assert!((short / long - 1.0).abs() < 0.1, "{short} against {long}");
}

/// Tests that the replay preserves orders in the trace: a single run, and a random order that
/// repeats.
#[test]
fn sequential_and_recurring_orders_amplify_nothing() {
    assert!(waf_of(&overwrites((0..30_000).map(|n| n % 20_000))) < 1.01);
    let mut random = Prng::new(7);
    let mut order: Vec<u64> = (0..10_000).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, random.below(last as u64 + 1) as usize);
    }
    assert!(waf_of(&overwrites((0..30_000).map(|n| order[n % 10_000]))) < 1.01);
    // Each round writes each block once, in a different random order.
    assert!(waf_of(&overwrites(order.into_iter())) > 1.3);
}
