//! Fixed workloads on drives with each mechanism: completions, counters and the saved state change
//! only if the model changes. Run with `WRITECLIFF_RECORD=1` to record new digests.

use std::fmt::Write as _;
use std::path::Path;

use writecliff_base::fields::{FieldReader, FieldWriter, Impossible, Saved, to_bytes};
use writecliff_base::{Nanos, Prng, StreamId, saved_state};
use writecliff_ssd::attribution::{Recorder, Unrecorded};
use writecliff_ssd::{
    Attribution, Command, DeviceConfig, Drive, DriveCounters, Operation, Ssd, Volatile,
};

use crate::common;

const SLOTS: u64 = 10_240;

/// Drives with each mechanism and with combinations that share code: a name, changes to the drive
/// with round numbers (`with OLD -> NEW`, lines separated by ` ; `), and keys of `[ftl]` and of
/// sections.
const DRIVES: &str = include_str!("golden_drives.txt");

/// Returns the drives by name.
fn drives() -> Vec<(String, DeviceConfig)> {
    let blocks = DRIVES.split("\n\n").map(|block| {
        let mut lines = block.lines();
        let name = lines.next().and_then(|line| line.strip_prefix("= ")).expect("a name");
        let replacements: Vec<(&str, String)> = lines
            .clone()
            .filter_map(|line| line.strip_prefix("with ")?.split_once(" -> "))
            .map(|(old, new)| (old, new.replace(" ; ", "\n")))
            .collect();
        let keys: Vec<&str> = lines.filter(|line| !line.starts_with("with ")).collect();
        let keys = keys.join("\n") + "\n";
        let (ftl, sections) = match keys.strip_prefix("[ftl]\n") {
            Some(keys) => (format!("[ftl]\n{keys}"), String::new()),
            None => ("[ftl]\n".to_owned(), keys),
        };
        let link = format!("{sections}[link]");
        let mut changes: Vec<(&str, &str)> =
            replacements.iter().map(|(old, new)| (*old, new.as_str())).collect();
        changes.extend([("[ftl]\n", ftl.as_str()), ("[link]", link.as_str())]);
        (name.to_owned(), common::config(&changes))
    });
    blocks.collect()
}

/// FNV-1a hash, which depends neither on a library nor on the Rust version.
struct Digest(u64);

impl Digest {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// A host that submits reads, writes, deallocations and flushes of all sizes.
struct Host {
    random: Prng,
    slots: u64,
    streams: u16,
    completions: Digest,
}

impl Host {
    fn command(&mut self, tag: u32) -> Command {
        let operation = match self.random.below(100) {
            0..50 => Operation::Read,
            50..94 => Operation::Write,
            94..98 => Operation::Trim,
            _ => Operation::Flush,
        };
        let sectors = [1, 8, 8, 8, 8, 12, 32, 64][self.random.below(8) as usize];
        let unit = if sectors % 8 == 0 { 8 } else { 1 };
        let first = self.random.below((self.slots * 8 - sectors) / unit) * unit;
        let mut command = common::command(operation, 0, 1, tag);
        command.stream = StreamId(self.random.below(u64::from(self.streams)) as u16);
        command.content.sectors = 1 + self.random.below(8) as u32;
        if operation == Operation::Flush {
            (command.offset, command.length) = (0, 0);
        } else {
            (command.offset, command.length) = (first * 512, sectors as u32 * 512);
        }
        command
    }

    fn run<R: Recorder>(&mut self, ssd: &mut Ssd<R>, depth: u32, count: u32) {
        let mut issued = 0;
        for _ in 0..depth {
            let at = ssd.now();
            let command = self.command(issued);
            ssd.submit(at, command);
            issued += 1;
        }
        for _ in 0..count {
            let done = ssd.step(Nanos::MAX).expect("a command is outstanding");
            let times = ssd.time_by_cause().map(|times| format!("{times:?}")).unwrap_or_default();
            let line = format!("{} {} {:?} {times}", done.at.0, done.tag, done.status);
            self.completions.add(line.as_bytes());
            if issued < count {
                let command = self.command(issued);
                ssd.submit(done.at, command);
                issued += 1;
            }
        }
    }
}

fn digests<R: Recorder>(config: DeviceConfig, cuts: bool) -> String {
    let mut ssd = Ssd::<R>::recording(config).unwrap();
    let slots = ssd.config().user_capacity.0 / 4096;
    assert!(slots <= SLOTS);
    let streams = ssd.config().ftl.streams;
    let mut host = Host { random: Prng::derive(7, 1), slots, streams, completions: Digest::new() };
    for n in 0..slots as u32 {
        let mut command = common::write(u64::from(n), 1);
        command.stream = StreamId(n as u16 / 64 % streams);
        ssd.fast_forward(&command);
    }
    for n in 0..2 * slots as u32 {
        let command = host.command(n);
        if !cuts {
            ssd.fast_forward(&command);
        }
    }
    ssd.end_fast_forward();
    for _ in 0..4 {
        host.run(&mut ssd, 16, 1_500);
        let now = ssd.now();
        ssd.idle_until(Nanos(now.0 + 300_000_000));
        if cuts {
            let cut = format!("{:?}", ssd.cut_power());
            host.completions.add(cut.as_bytes());
        }
    }
    if ssd.config().sections.die_parity.is_some() {
        ssd.lose_die(1).unwrap();
    }
    host.run(&mut ssd, 16, 500);
    let mut counters = Digest::new();
    for reading in DriveCounters::readings(Some(&ssd.counters())) {
        counters.add(format!("{} {:?}\n", reading.name, reading.value).as_bytes());
    }
    let mut state = Digest::new();
    state.add(&Drive::save(&ssd, Vec::new()).unwrap());
    ssd.quiesce();
    ssd.check_invariants().unwrap();
    ssd.purge();
    host.run(&mut ssd, 4, 200);
    format!("{:016x} {:016x} {:016x}", host.completions.0, counters.0, state.0)
}

/// Serialized fields, used to build a state with damaged fields and valid checksums.
struct Fields(Vec<u8>);

impl Saved for Fields {
    fn save(&self, out: &mut FieldWriter) {
        self.0.iter().for_each(|byte| out.put(byte));
    }

    fn restore(&mut self, _: &mut FieldReader<'_>) -> Result<(), Impossible> {
        Err(Impossible)
    }
}

/// Runs commands on a restored drive for up to ten seconds. A drive restored from a damaged state
/// may be busy for longer.
fn use_restored(ssd: &mut Ssd<Attribution>) {
    let (slots, streams) = (ssd.config().user_capacity.0 / 4096, ssd.config().ftl.streams);
    let completions = Digest::new();
    let mut host = Host { random: Prng::new(5), slots, streams, completions };
    let end = ssd.now() + Nanos(10_000_000_000);
    for n in 0..8 {
        let at = ssd.now();
        let command = host.command(n);
        ssd.submit(at, command);
    }
    for n in 8..300 {
        let Some(done) = ssd.step(end) else { return };
        let command = host.command(n);
        ssd.submit(done.at, command);
    }
}

/// Tests that a state with a flipped bit and valid checksums is either rejected, or a valid state
/// from which the drive can continue.
#[test]
fn no_damaged_field_causes_a_panic() {
    let mut random = Prng::new(3);
    let mut rejected = 0;
    for (_, config) in drives() {
        let mut ssd = Ssd::<Attribution>::recording(config.clone()).unwrap();
        let slots = ssd.config().user_capacity.0 / 4096;
        let streams = ssd.config().ftl.streams;
        let completions = Digest::new();
        let mut host = Host { random: Prng::derive(7, 1), slots, streams, completions };
        host.run(&mut ssd, 16, 1_500);
        let good = to_bytes(&ssd);
        let restored = |fields: Vec<u8>| {
            let device = &ssd.config().canonical;
            let mut out = saved_state::begin(Vec::new(), device, &Fields(fields)).unwrap();
            ssd.ftl().save(&mut out).unwrap();
            let state = out.finish().unwrap();
            let mut other = Ssd::<Attribution>::recording(config.clone()).unwrap();
            other.restore_from(&mut &state[..]).map(|()| other)
        };
        use_restored(&mut restored(good.clone()).expect("the saved state is possible"));
        for _ in 0..50 {
            let mut bad = good.clone();
            bad[random.below(good.len() as u64) as usize] ^= 1 << random.below(8);
            match restored(bad) {
                Ok(mut other) => use_restored(&mut other),
                Err(_) => rejected += 1,
            }
        }
    }
    assert!(rejected > 100, "{rejected}");
}

#[test]
fn fixed_loads_end_as_recorded() {
    let mut actual = String::new();
    for (name, config) in drives() {
        if config.max_active_dies().is_none() {
            let all = digests::<Unrecorded>(config.clone(), false);
            writeln!(actual, "{name} unrecorded {all}").unwrap();
        }
        writeln!(actual, "{name} attributed {}", digests::<Attribution>(config.clone(), false))
            .unwrap();
        if config.refuses_power_cut().is_none() {
            writeln!(actual, "{name} cut {}", digests::<Volatile>(config, true)).unwrap();
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration/golden.txt");
    if std::env::var_os("WRITECLIFF_RECORD").is_some() {
        std::fs::write(&path, &actual).unwrap();
    }
    let recorded = std::fs::read_to_string(&path).unwrap();
    for (line, expected) in actual.lines().zip(recorded.lines()) {
        assert_eq!(line, expected, "completions, counters, saved state");
    }
    assert_eq!(actual.lines().count(), recorded.lines().count());
}
