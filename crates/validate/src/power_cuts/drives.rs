//! Small drives whose power is cut: all combinations of the properties that determine which data
//! survive, with random values for all other properties.

use writecliff_base::{Prng, SLOT_BYTES, StreamId, words};
use writecliff_host_interface::{Command, Operation};
use writecliff_ssd::{DeviceConfig, Drive, Ssd, device_file};

use super::image::FlashImage;

const POLICIES: [&str; 6] =
    ["greedy", "fifo", "d-choices", "random", "cost-benefit", "windowed-greedy"];

words! {
    /// Type of data separation.
    pub enum Placement {
        /// One stream for all data.
        OneStream = "one stream",
        /// Streams of the host.
        Streams = "streams",
        /// Reclaim unit handles that are all initially isolated.
        Fdp = "FDP",
        /// Reclaim unit handles, some of which are persistently isolated.
        FdpIsolated = "FDP, isolated",
    }
    /// Mechanism in addition to the plain mapping.
    pub enum Extra {
        /// No additional mechanism.
        Nothing = "none",
        /// An SLC cache that the host bypasses while the cache is full.
        SlcCache = "SLC cache",
        /// An SLC cache that takes all host writes.
        SlcCacheOnly = "SLC cache, no way past it",
        /// Parity across all dies; drives with one die have none.
        DieParity = "parity across dies",
    }
}

/// A type of drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kind {
    /// GC policy, as named in device files.
    pub gc: &'static str,
    /// Data placement interface.
    pub placement: Placement,
    /// Additional mechanism.
    pub extra: Extra,
    /// `true` if the volatile write cache is enabled.
    pub write_cache: bool,
    /// `true` if capacitors power the drive until its buffer is programmed.
    pub power_loss_protection: bool,
}

/// Number of drive types without an additional mechanism.
const PLAIN: usize = 4 * Placement::ALL.len() * POLICIES.len();
/// Number of drive types, which the drives use in turn.
pub const KINDS: usize = Extra::ALL.len() * PLAIN;

impl Kind {
    /// Returns the kind of drive `number`.
    pub fn of(number: u64) -> Self {
        let n = (number % KINDS as u64) as usize;
        Self {
            gc: POLICIES[n % PLAIN / 16],
            placement: Placement::ALL[n / 4 % 4],
            extra: Extra::ALL[n / PLAIN],
            write_cache: n.is_multiple_of(2),
            power_loss_protection: n / 2 % 2 == 1,
        }
    }
}

fn one_of(random: &mut Prng, all: &[&'static str]) -> &'static str {
    all[random.below(all.len() as u64) as usize]
}

/// Randomly chosen properties of a drive, as words and numbers of its device file.
struct Drawn {
    streams: u64,
    channels: u64,
    dies: u64,
    destination: &'static str,
    cell: &'static str,
    pages: u64,
    times: &'static str,
    one_shot: bool,
    programs: &'static str,
    page: &'static str,
    pacing: &'static str,
    wear: &'static str,
    suspend: &'static str,
    low: u64,
    high: u64,
    units: u64,
    user: u64,
    buffer: u64,
}

fn draw(kind: &Kind, random: &mut Prng) -> Drawn {
    let is_one = kind.placement == Placement::OneStream;
    let streams = if is_one { 1 } else { 2 + random.below(3) };
    let (channels, dies) = (1 + random.below(2), 1 + random.below(4));
    let destination = match kind.placement {
        Placement::OneStream | Placement::Streams => {
            one_of(random, &["per-stream", "shared", "host-unit"])
        }
        Placement::Fdp => "shared",
        Placement::FdpIsolated => one_of(random, &["per-stream", "host-unit", "per-handle"]),
    };
    let (cell, pages, times) = [
        ("SLC", 16, r#"["50 us"]"#),
        ("MLC", 16, r#"["50 us", "70 us"]"#),
        ("TLC", 12, r#"["50 us", "60 us", "70 us"]"#),
    ][match (kind.extra, random.below(3) as usize) {
        (Extra::SlcCache | Extra::SlcCacheOnly, 0) => 1,
        (_, cell) => cell,
    }];
    let one_shot = random.below(2) == 1;
    let programs = match (one_shot, cell) {
        (true, _) | (_, "SLC") => r#"["800 us"]"#,
        (_, "MLC") => r#"["400 us", "1200 us"]"#,
        _ => r#"["400 us", "900 us", "2 ms"]"#,
    };
    let page = one_of(random, &["4 KiB", "8 KiB"]);
    let pacing = one_of(random, &["incremental", "quanta", "per-victim", "on-demand"]);
    let wear = one_of(random, &["none", "dynamic", "static"]);
    let suspend = if random.below(2) == 1 {
        "program_suspend = \"20 us\"\nerase_suspend = \"30 us\"\n"
    } else {
        ""
    };
    let low = 2 + random.below(2);
    let high = low + 1 + random.below(2);
    let units = 24 + 2 * streams + random.below(8);
    let slots_per_page = if page == "8 KiB" { 2 } else { 1 };
    let per_unit = channels * dies * pages * slots_per_page;
    let user = (units - 2 * streams - high - 3) * per_unit * (75 + random.below(20)) / 100;
    let buffer = 256 + 256 * random.below(4);
    Drawn {
        streams,
        channels,
        dies,
        destination,
        cell,
        pages,
        times,
        one_shot,
        programs,
        page,
        pacing,
        wear,
        suspend,
        low,
        high,
        units,
        user,
        buffer,
    }
}

/// Returns a drive of the given type, with 1 to 8 dies and a few hundred program units.
pub(super) fn config(kind: &Kind, random: &mut Prng) -> Result<DeviceConfig, String> {
    let mut drawn = draw(kind, random);
    let dies = drawn.channels * drawn.dies;
    let extra = match kind.extra {
        Extra::Nothing => String::new(),
        Extra::SlcCache | Extra::SlcCacheOnly => slc_cache(kind.extra, &drawn, random),
        Extra::DieParity if dies == 1 => String::new(),
        Extra::DieParity => {
            drawn.user = drawn.user * (dies - 1) / dies;
            format!("[die_parity]\nstripe = {dies}\n")
        }
    };
    let text = text(kind, &drawn) + &extra;
    device_file::read(&text, "power-cuts.toml", random.next_u64()).map_err(|e| e.to_string())
}

/// Returns the section of the SLC cache, whose size is between one page of every die and several
/// blocks.
fn slc_cache(extra: Extra, drawn: &Drawn, random: &mut Prng) -> String {
    let page = if drawn.page == "8 KiB" { 8 } else { 4 };
    let size = drawn.channels * drawn.dies * page * (1 + random.below(3 * drawn.pages));
    let fold_at = match random.below(3) {
        0 => String::new(),
        _ => format!("fold_at = \"{} %\"\n", random.below(100)),
    };
    format!(
        "[slc_cache]\nsize = \"{} KiB\"\nprogram = \"200 us\"\nread = \"25 us\"\n\
         bypass = {}\n{fold_at}",
        size.min(4 * drawn.user),
        extra == Extra::SlcCache,
    )
}

fn flash(drawn: &Drawn) -> String {
    let Drawn {
        channels, dies, cell, pages, times, one_shot, programs, page, suspend, units, ..
    } = drawn;
    format!(
        r#"[flash]
channels = {channels}
dies_per_channel = {dies}
planes_per_die = 1
blocks_per_plane = {units}
pages_per_block = {pages}
page = "{page}"
cell = "{cell}"
multi_plane = true
one_shot = {one_shot}
read = {times}
program = {programs}
erase = "3 ms"
bus = "400 MB/s"
command = "1 us"
{suspend}rated_cycles = 1000
"#
    )
}

fn text(kind: &Kind, drawn: &Drawn) -> String {
    let Drawn { streams, destination, pacing, wear, low, high, user, buffer, .. } = drawn;
    let flash = flash(drawn);
    let isolated = if *destination == "per-handle" { "isolated_streams = [1]\n" } else { "" };
    let window = if kind.gc == "windowed-greedy" { "gc_window = 6\n" } else { "" };
    let quantum = if *pacing == "quanta" { "gc_quantum = \"32 KiB\"\n" } else { "" };
    let interface = match kind.placement {
        Placement::Fdp | Placement::FdpIsolated => "[data_placement]\ninterface = \"nvme-fdp\"\n",
        _ => "",
    };
    format!(
        r#"
name = "power-cuts"
description = "a small drive"
model = "test"
user_capacity = "{capacity} KiB"
{flash}[ftl]
streams = {streams}
gc = "{gc}"
{window}gc_destination = "{destination}"
{isolated}gc_pacing = "{pacing}"
{quantum}wear_leveling = "{wear}"
wear_threshold = 5
gc_high_watermark = {high}
gc_low_watermark = {low}
gc_idle_watermark = {idle}
[controller]
write_buffer = "{buffer} KiB"
power_loss_protection = {plp}
write_cache = {cache}
command_time = "2 us"
latency = "5 us"
reads_in_a_row = 8
suspends_per_operation = 4
idle_delay = "2 ms"
[link]
interface = "test"
bandwidth = "500 MB/s"
duplex = "half"
command = "3 us"
queues = 1
queue_depth = 32
{interface}"#,
        capacity = 4 * user,
        gc = kind.gc,
        idle = high + 2,
        plp = kind.power_loss_protection,
        cache = kind.write_cache,
    )
}

/// Fills the drive and overwrites some of it, so that garbage collection runs.
pub(super) fn age(ssd: &mut Ssd<FlashImage>, random: &mut Prng) {
    let (user, streams) = (u64::from(ssd.ftl().user_slots()), ssd.ftl().config().streams);
    let full = user - random.below(user / 4);
    let overwrites = random.below(2 * user);
    for n in 0..full + overwrites {
        let slot = if n < full { n } else { random.below(full) };
        let stream = StreamId(random.below(u64::from(streams)) as u16);
        let write = Command::new(Operation::Write, slot * SLOT_BYTES, SLOT_BYTES as u32);
        ssd.fast_forward(&Command { stream, ..write });
    }
    ssd.end_fast_forward();
}
