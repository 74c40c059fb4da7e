//! Tests patrol reads: their effect on commands, their schedule, and their cost on an idle drive.

use crate::common::{self, BUS_SLOT, LINK_SLOT, alone, closed_loop, read, user_slots, write};
use writecliff_base::{Nanos, Prng};
use writecliff_ssd::{Drive, Ssd};

const COMMAND_TIME: u64 = 50_000;
/// Scans that cover half of each interval, and take a fifth of the firmware's time during a scan.
const PATROL: &str = "patrol_interval = \"200 ms\"\npatrol_length = \"100 ms\"\n\
                      patrol_step = \"500 us\"\npatrol_time = \"100 us\"";
/// Latency of a single read on an idle drive.
const READ: u64 = COMMAND_TIME + 5_000 + 1_000 + 50_000 + BUS_SLOT + 3_000 + LINK_SLOT;

/// Returns a drive whose firmware limits it to 20,000 reads per second.
fn drive(keys: &str) -> Ssd {
    let section = format!("[housekeeping]\n{keys}\n[link]");
    let changes =
        [("[link]", section.as_str()), ("command_time = \"2 us\"", "command_time = \"50 us\"")];
    let mut ssd = common::drive(&changes);
    for slot in 0..user_slots(&ssd) {
        ssd.fast_forward(&write(slot, 1));
    }
    ssd.end_fast_forward();
    ssd.quiesce();
    ssd
}

/// Returns the number of reads that complete in each 10 ms bin.
fn reads_by_time(ssd: &mut Ssd, count: u32) -> Vec<u32> {
    let (user, mut random) = (user_slots(ssd), Prng::new(8));
    let start = ssd.now();
    let mut bins = Vec::new();
    for done in closed_loop(ssd, 32, count, |_| read(random.below(user), 1)) {
        let bin = ((done.at - start).0 / 10_000_000) as usize;
        bins.resize(bins.len().max(bin + 1), 0);
        bins[bin] += 1;
    }
    bins.pop(); // The last bin is incomplete.
    bins.remove(0);
    bins
}

#[test]
fn a_scan_takes_its_share_of_the_firmware_for_its_length() {
    let bins = reads_by_time(&mut drive(PATROL), 72_000);
    let (slow, fast): (Vec<u32>, Vec<u32>) = bins.iter().partition(|&&reads| reads < 180);
    assert!(slow.iter().all(|&reads| reads >= 158), "{slow:?}");
    assert!(fast.iter().all(|&reads| reads <= 202), "{fast:?}");
    let mean = f64::from(bins.iter().sum::<u32>()) / bins.len() as f64;
    assert!((mean / 180.0 - 1.0).abs() < 0.02, "{mean} in 10 ms instead of 180");
    // Scans take half of the time (ten bins each) and start at random times.
    let share = slow.len() as f64 / bins.len() as f64;
    assert!((share - 0.5).abs() < 0.05, "{share}");
}

#[test]
fn without_load_a_page_delays_a_read_by_its_own_time_at_most() {
    let mut ssd = drive(PATROL);
    let mut random = Prng::new(3);
    let mut delays = Vec::new();
    for _ in 0..4_000 {
        let at = ssd.now() + Nanos(100_000 + random.below(2_000_000));
        ssd.idle_until(at);
        delays.push(alone(&mut ssd, read(0, 1)) - READ);
    }
    assert!(delays.iter().all(|&delay| delay <= 100_000));
    // The firmware processes each page for a tenth of the time; a command arrives on average in the
    // middle of a page.
    let mean = delays.iter().sum::<u64>() as f64 / delays.len() as f64;
    assert!((mean / 5_000.0 - 1.0).abs() < 0.15, "{mean} ns");
}

#[test]
fn a_long_silence_costs_nothing() {
    let mut ssd = drive(
        "patrol_interval = \"20 us\"\npatrol_length = \"10 us\"\n\
                         patrol_step = \"2 us\"\npatrol_time = \"1 us\"",
    );
    ssd.idle_until(Nanos::from_secs(365 * 86_400)); // 8e12 pages
    assert!(alone(&mut ssd, read(0, 1)) <= READ + 1_000);
    assert!(alone(&mut ssd, read(0, 1)) <= READ + 1_000);
}

#[test]
fn errors_name_their_line() {
    let rows = [
        ("patrol_length = \"1 s\"", ":39: ", "missing key 'patrol_interval'"),
        ("patrol_interval = \"1 s\"", ":39: ", "missing key 'patrol_length'"),
        (
            "patrol_interval = \"1 s\"\npatrol_length = \"2 s\"\npatrol_step = \"1 ms\"\n\
             patrol_time = \"1 us\"",
            ":41: ",
            "2 s is above patrol_interval, 1 s",
        ),
        (
            "patrol_interval = \"1 s\"\npatrol_length = \"1 s\"\npatrol_step = \"1 ms\"\n\
             patrol_time = \"950 us\"",
            ":43: ",
            "95 % of the firmware's time; it must leave commands 10 %",
        ),
        (
            "patrol_interval = \"1 s\"\npatrol_length = \"1 s\"\npatrol_step = \"0 s\"\n\
             patrol_time = \"1 us\"",
            ":42: ",
            "above zero",
        ),
    ];
    for (keys, location, what) in rows {
        common::assert_section_refused("housekeeping", keys, location, what);
    }
}
