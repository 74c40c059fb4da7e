//! A disk with round timing values, and helper functions that run commands on it.

use writecliff_base::{Nanos, Prng, StreamId};
use writecliff_disk::{Disk, DiskConfig, device_file};
use writecliff_host_interface::Content;
use writecliff_host_interface::{Command, Completion, Drive, Operation};

pub(crate) const DISK: &str = r#"
name = "test"
description = "round numbers"
model = "test"
user_capacity = "20 GB"
[disk]
rpm = 6000
heads = 2
zones = 8
outer_rate = "100 MB/s"
inner_rate = "50 MB/s"
seek_track = "1 ms"
seek_average = "8 ms"
seek_full = "17 ms"
head_switch = "1 ms"
write_settle = "0.5 ms"
seek_margin = "0.3 ms"
retry_probability = "0 %"
retries = 3
[cache]
size = "8 MiB"
segments = 4
write_cache = false
cached_writes = 64
[controller]
command_time = "10 us"
latency = "10 us"
age_limit = "10 s"
[link]
interface = "SAS 3Gb/s"
bandwidth = "300 MB/s"
duplex = "full"
command = "1 us"
queues = 1
queue_depth = 64
"#;

pub(crate) const CAPACITY: u64 = 20_000_000_000;
/// Duration of one revolution at 6,000 rpm.
pub(crate) const TURN: Nanos = Nanos(10_000_000);
/// Firmware, link and status time of a 4 KiB read.
pub(crate) const OVERHEAD: Nanos = Nanos(20_000 + 13_654 + 1_000);

/// Returns the configuration with `changes` of `(from, to)` applied to the device file.
pub(crate) fn config(changes: &[(&str, &str)]) -> DiskConfig {
    let mut text = DISK.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from} is not in the device file");
        text = text.replace(from, to);
    }
    device_file::read(&text, "test.toml", 1).unwrap()
}

pub(crate) fn disk(changes: &[(&str, &str)]) -> Disk {
    Disk::new(config(changes)).unwrap()
}

pub(crate) fn command(operation: Operation, offset: u64, length: u32, tag: u32) -> Command {
    let (content, stream) = (Content::INCOMPRESSIBLE, StreamId::DEFAULT);
    Command { operation, offset, length, content, stream, queue: 0, tag }
}

/// Runs one command on an idle disk and returns its service time.
pub(crate) fn alone(disk: &mut Disk, operation: Operation, offset: u64, length: u32) -> Nanos {
    let begin = disk.now();
    disk.submit(begin, command(operation, offset, length, 0));
    let done = disk.step(Nanos::MAX).expect("a completion");
    disk.idle_until(done.at);
    done.at - begin
}

/// Runs `count` commands at queue depth `depth` and returns their completions in order.
pub(crate) fn keep(
    disk: &mut Disk,
    depth: usize,
    count: usize,
    mut next: impl FnMut(usize) -> (Operation, u64, u32),
) -> Vec<Completion> {
    let mut completions = Vec::with_capacity(count);
    let mut issued = 0;
    while completions.len() < count {
        while issued < count && issued - completions.len() < depth {
            let (operation, offset, length) = next(issued);
            disk.submit(disk.now(), command(operation, offset, length, issued as u32));
            issued += 1;
        }
        completions.push(disk.step(Nanos::MAX).expect("a completion"));
    }
    completions
}

/// Returns random 4 KiB blocks over the entire disk.
pub(crate) fn random_blocks(
    seed: u64,
    operation: Operation,
) -> impl FnMut(usize) -> (Operation, u64, u32) {
    let mut random = Prng::new(seed);
    move |_| (operation, random.below(CAPACITY / 4096) * 4096, 4096)
}

/// Operations per second between the first and the last completion.
pub(crate) fn rate(completions: &[Completion]) -> f64 {
    let (first, last) = (completions[0].at, completions[completions.len() - 1].at);
    (completions.len() - 1) as f64 / (last - first).as_secs_f64()
}
