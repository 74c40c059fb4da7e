//! A small drive whose times are all round numbers, and workloads for it.

use writecliff_base::{Nanos, Prng, StreamId};
use writecliff_host_interface::Content;
use writecliff_ssd::{Command, Completion, DeviceConfig, Drive, Operation, Ssd, device_file};

pub(crate) const DRIVE: &str = r#"
name = "test"
description = "round numbers"
model = "test"
user_capacity = "40 MiB"
[flash]
channels = 2
dies_per_channel = 2
planes_per_die = 1
blocks_per_plane = 64
pages_per_block = 16
page = "16 KiB"
cell = "MLC"
multi_plane = true
one_shot = false
read = ["50 us", "70 us"]
program = ["400 us", "1200 us"]
erase = "3 ms"
bus = "400 MB/s"
command = "1 us"
rated_cycles = 1000
[ftl]
streams = 4
gc = "greedy"
gc_destination = "per-stream"
wear_leveling = "none"
gc_high_watermark = 4
gc_low_watermark = 3
gc_idle_watermark = 6
[controller]
write_buffer = "1 MiB"
power_loss_protection = false
write_cache = true
command_time = "2 us"
latency = "5 us"
reads_in_a_row = 8
suspends_per_operation = 4
idle_delay = "10 ms"
[link]
interface = "test"
bandwidth = "500 MB/s"
duplex = "half"
command = "3 us"
queues = 1
queue_depth = 32
"#;

/// Slot transfer times on the bus (4096 B at 400 MB/s) and on the link (at 500 MB/s).
pub(crate) const BUS_SLOT: u64 = 10_240;
pub(crate) const LINK_SLOT: u64 = 8_192;

/// A firmware core that takes 50 us per host slot and 30 us per relocated slot.
pub(crate) const PLACING: [(&str, &str); 1] = [(
    "latency = \"5 us\"",
    "latency = \"5 us\"\nmapping_update_time = \"50 us\"\nrelocation_time = \"30 us\"",
)];

/// A controller that compresses data, down to one sector, and deduplicates them.
pub(crate) const REDUCTION: [(&str, &str); 1] = [(
    "[link]",
    "[reduction]\ncompression = true\nmin_stored_size = \"512 B\"\nduplicates = true\n[link]",
)];

/// An SLC cache of 4 MiB, which has 1024 slots in units of one page (4 slots).
pub(crate) const SLC: [(&str, &str); 1] =
    [("[link]", "[slc_cache]\nsize = \"4 MiB\"\nprogram = \"200 us\"\nread = \"25 us\"\n[link]")];

pub(crate) fn config(changes: &[(&str, &str)]) -> DeviceConfig {
    let mut text = DRIVE.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "no '{from}' in the drive");
        text = text.replace(from, to);
    }
    device_file::read(&text, "test.toml", 1).unwrap()
}

/// Asserts that a device file is rejected, and that the message or its hint contains the location
/// and `what`.
pub(crate) fn assert_refused(text: &str, location: &str, what: &str) {
    let error = device_file::read(text, "drive.toml", 1).unwrap_err();
    let all = format!("{error} {}", error.hint.clone().unwrap_or_default());
    assert!(
        all.contains(location) && all.contains(what),
        "expected '{location}' and '{what}': {all}"
    );
}

/// Asserts that a section that the drive with round numbers does not have is rejected.
pub(crate) fn assert_section_refused(name: &str, keys: &str, location: &str, what: &str) {
    let text = DRIVE.replace("[link]", &format!("[{name}]\n{keys}\n[link]"));
    assert_refused(&text, location, what);
}

pub(crate) fn drive(changes: &[(&str, &str)]) -> Ssd {
    Ssd::new(config(changes)).unwrap()
}

pub(crate) fn command(operation: Operation, slot: u64, slots: u32, tag: u32) -> Command {
    let stream = StreamId::DEFAULT;
    let (offset, length, content) = (slot * 4096, slots * 4096, Content::INCOMPRESSIBLE);
    Command { operation, offset, length, content, stream, queue: 0, tag }
}

pub(crate) fn write(slot: u64, slots: u32) -> Command {
    command(Operation::Write, slot, slots, 0)
}

pub(crate) fn read(slot: u64, slots: u32) -> Command {
    command(Operation::Read, slot, slots, 0)
}

/// Runs one command alone and returns its latency.
pub(crate) fn alone(ssd: &mut Ssd, command: Command) -> u64 {
    let at = ssd.now();
    ssd.submit(at, command);
    let done = ssd.step(Nanos::MAX).expect("the command completes");
    assert_eq!(done.tag, command.tag);
    (done.at - at).0
}

/// Keeps `depth` commands outstanding until `count` have completed, and returns all completions.
pub(crate) fn closed_loop(
    ssd: &mut Ssd,
    depth: u32,
    count: u32,
    mut next: impl FnMut(u32) -> Command,
) -> Vec<Completion> {
    let mut done = Vec::new();
    let mut issued = 0;
    while issued < depth.min(count) {
        let at = ssd.now();
        ssd.submit(at, Command { tag: issued, ..next(issued) });
        issued += 1;
    }
    while (done.len() as u32) < count {
        let completion = ssd.step(Nanos::MAX).expect("an outstanding command completes");
        done.push(completion);
        if issued < count {
            ssd.submit(completion.at, Command { tag: issued, ..next(issued) });
            issued += 1;
        }
    }
    done
}

pub(crate) fn user_slots(ssd: &Ssd) -> u64 {
    u64::from(ssd.ftl().user_slots())
}

/// Fast-forwards the drive: fills it in order, then overwrites it at random `times` times.
pub(crate) fn precondition(ssd: &mut Ssd, times: u64) {
    let user = user_slots(ssd);
    let mut random = Prng::new(3);
    (0..user).for_each(|slot| ssd.fast_forward(&write(slot, 1)));
    for _ in 0..times * user {
        ssd.fast_forward(&write(random.below(user), 1));
    }
    ssd.end_fast_forward();
}
