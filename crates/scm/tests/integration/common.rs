//! A drive with round timing values, and helper functions that run commands on it.

use writecliff_base::{Nanos, Prng, StreamId};
use writecliff_host_interface::Content;
use writecliff_host_interface::{Command, Completion, Drive, Operation};
use writecliff_scm::{Scm, ScmConfig, device_file};

pub(crate) const SCM: &str = r#"
name = "test"
description = "round numbers"
model = "test"
user_capacity = "1 GB"
[media]
banks = 8
unit = "512 B"
interleave = "4 KiB"
read_time = "400 ns"
write_time = "600 ns"
[controller]
command_time = "100 ns"
access_time = "50 ns"
latency = "2 us"
[link]
interface = "test"
bandwidth = "8192 MB/s"
duplex = "full"
command = "100 ns"
queues = 4
queue_depth = 1024
"#;

pub(crate) const CAPACITY: u64 = 1_000_000_000;

/// Returns the configuration with `changes` of `(from, to)` applied to the device file.
pub(crate) fn config(changes: &[(&str, &str)]) -> ScmConfig {
    let mut text = SCM.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from} is not in the device file");
        text = text.replace(from, to);
    }
    device_file::read(&text, "test.toml").unwrap()
}

pub(crate) fn scm(changes: &[(&str, &str)]) -> Scm {
    Scm::new(config(changes))
}

pub(crate) fn command(operation: Operation, offset: u64, length: u32, tag: u32) -> Command {
    let (content, stream) = (Content::INCOMPRESSIBLE, StreamId::DEFAULT);
    Command { operation, offset, length, content, stream, queue: 0, tag }
}

/// Runs one command on an idle drive and returns its service time.
pub(crate) fn alone(scm: &mut Scm, operation: Operation, offset: u64, length: u32) -> Nanos {
    let begin = scm.now();
    scm.submit(begin, command(operation, offset, length, 0));
    let done = scm.step(Nanos::MAX).expect("a completion");
    scm.idle_until(done.at);
    done.at - begin
}

/// Runs `count` commands at queue depth `depth` and returns their completions in order.
pub(crate) fn keep(
    scm: &mut Scm,
    depth: usize,
    count: usize,
    mut next: impl FnMut(usize) -> (Operation, u64, u32),
) -> Vec<Completion> {
    let mut completions = Vec::with_capacity(count);
    let mut issued = 0;
    while completions.len() < count {
        while issued < count && issued - completions.len() < depth {
            let (operation, offset, length) = next(issued);
            scm.submit(scm.now(), command(operation, offset, length, issued as u32));
            issued += 1;
        }
        completions.push(scm.step(Nanos::MAX).expect("a completion"));
    }
    completions
}

/// Returns random blocks of size `size` over the whole drive; `read_pct` % of the commands are
/// reads.
pub(crate) fn random(
    seed: u64,
    read_pct: f64,
    size: u32,
) -> impl FnMut(usize) -> (Operation, u64, u32) {
    let mut random = Prng::new(seed);
    move |_| {
        let is_read = random.unit() * 100.0 < read_pct;
        let operation = if is_read { Operation::Read } else { Operation::Write };
        (operation, random.below(CAPACITY / u64::from(size)) * u64::from(size), size)
    }
}

/// Returns consecutive blocks of size `size`.
pub(crate) fn sequential(
    operation: Operation,
    size: u32,
) -> impl FnMut(usize) -> (Operation, u64, u32) {
    move |index| (operation, index as u64 * u64::from(size) % (1 << 28), size)
}

/// Operations per second between the first and the last completion.
pub(crate) fn rate(completions: &[Completion]) -> f64 {
    let (first, last) = (completions[0].at, completions[completions.len() - 1].at);
    (completions.len() - 1) as f64 / (last - first).as_secs_f64()
}
