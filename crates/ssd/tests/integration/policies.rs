//! Tests every combination of policies under workloads that some policies handle badly: no
//! operation is lost, no data are lost, and timed and fast-forwarded drives reach the same state.

use crate::common::{closed_loop, command, drive, read, user_slots, write};
use writecliff_base::{Lpn, Nanos, Prng, StreamId};
use writecliff_ssd::{Command, Drive, Operation, Ssd};

const GC: [&str; 6] = [
    "\"greedy\"",
    "\"fifo\"",
    "\"random\"",
    "\"d-choices\"\nd = 3",
    "\"cost-benefit\"",
    "\"windowed-greedy\"\ngc_window = 3",
];
const PACING: [&str; 4] =
    ["\"incremental\"", "\"quanta\"\ngc_quantum = \"128 KiB\"", "\"per-victim\"", "\"on-demand\""];
/// Destinations of relocated data, with the spare policies that they permit.
const STREAMS: [&str; 5] = [
    "\"per-stream\"",
    "\"per-stream\"\nspare = \"self-tuned\"",
    "\"host-unit\"",
    "\"shared\"",
    "\"per-handle\"\nisolated_streams = [1, 3]",
];
const WEAR: [&str; 3] = ["\"none\"", "\"dynamic\"", "\"static\"\nwear_threshold = 3"];

/// Workloads on a full drive.
#[derive(Clone, Copy, Debug)]
enum Load {
    /// Four fifths of the data are never overwritten.
    Static,
    /// Nine tenths of the writes go to a tenth of the drive.
    Skewed,
    /// Every fifth request is a TRIM.
    Trimmed,
    /// Streams with data of different temperatures, one for each quarter of the drive.
    Streams,
}

const LOADS: [Load; 4] = [Load::Static, Load::Skewed, Load::Trimmed, Load::Streams];

fn commands(load: Load, user: u64, count: usize) -> Vec<Command> {
    let mut random = Prng::new(load as u64);
    let fill = (0..user / 4).map(|n| write(4 * n, 4));
    let writes = (0..count).map(|_| {
        let length = 1 + random.below(4);
        let mut at = |range: u64| random.below(range - 8);
        match load {
            Load::Static => write(at(user / 5), length as u32),
            Load::Skewed if at(18) == 0 => write(at(user), length as u32),
            Load::Skewed => write(at(user / 10), length as u32),
            Load::Trimmed if at(13) == 0 => command(Operation::Trim, at(user), 8, 0),
            Load::Trimmed => write(at(user), length as u32),
            Load::Streams => {
                let hot = at(16).trailing_ones().min(3);
                write(u64::from(hot) * user / 4 + at(user / 4), length as u32)
            }
        }
    });
    let stream = |command: &Command| match load {
        Load::Streams => StreamId((4 * (command.offset / 4096) / user) as u16),
        _ => StreamId::DEFAULT,
    };
    fill.chain(writes).map(|command| Command { stream: stream(&command), ..command }).collect()
}

/// Checks that the drive maps exactly the slots that the commands leave written.
fn assert_intact(ssd: &Ssd, commands: &[Command]) {
    let ftl = ssd.ftl();
    ftl.check_invariants().unwrap();
    let mut is_written = vec![false; ftl.user_slots() as usize];
    for command in commands {
        let first = (command.offset / 4096) as usize;
        let slots = first..first + (command.length / 4096) as usize;
        is_written[slots].fill(command.operation == Operation::Write);
    }
    for (slot, is_written) in (0..).zip(is_written) {
        let ppa = ftl.lookup(Lpn(slot));
        assert_eq!(!ppa.is_none(), is_written, "slot {slot}");
        assert!(ppa.is_none() || ftl.holder(ppa) == Some(Lpn(slot)), "slot {slot}");
    }
}

fn both_clocks_keep_the_data(changes: &[(&str, &str)], load: Load) {
    let mut timed = drive(changes);
    let user = user_slots(&timed);
    let commands = commands(load, user, 3_000);
    closed_loop(&mut timed, 1, commands.len() as u32, |n| commands[n as usize]);
    timed.quiesce();
    assert_intact(&timed, &commands);
    let mut fast = drive(changes);
    for command in &commands {
        fast.fast_forward(command);
    }
    fast.end_fast_forward();
    assert!(fast.counters().collections > 20, "GC did not run");
    assert_eq!(timed.ftl().digest(), fast.ftl().digest());
    let done = closed_loop(&mut timed, 16, user as u32, |n| read(n.into(), 1));
    assert_eq!(done.len() as u64, user);
}

#[test]
fn every_combination_of_policies_keeps_the_data_on_both_clocks() {
    let mut case = 0;
    for gc in GC {
        for pacing in PACING {
            for streams in STREAMS {
                let gc = format!("gc = {gc}\ngc_pacing = {pacing}");
                let streams = format!("gc_destination = {streams}");
                let wear = format!("wear_leveling = {}", WEAR[case % WEAR.len()]);
                let changes = [
                    ("user_capacity = \"40 MiB\"", "user_capacity = \"10 MiB\""),
                    ("pages_per_block = 16", "pages_per_block = 4"),
                    ("gc = \"greedy\"", &gc),
                    ("gc_destination = \"per-stream\"", &streams),
                    ("wear_leveling = \"none\"", &wear),
                ];
                // Each combination runs two workloads, and combinations that differ in one policy
                // run the other two workloads.
                for load in [LOADS[case % 4], LOADS[(case + 1 + case / 4) % 4]] {
                    both_clocks_keep_the_data(&changes, load);
                }
                case += 1;
            }
        }
    }
}

const PROGRAM_NS: u64 = 400_000;
const DIES: u64 = 4;

/// Tests that FIFO relocates all static data together, which requires more program units than 16
/// bits can number.
#[test]
fn static_data_may_be_relocated_between_two_slots_of_the_host() {
    for loss_protection in ["true", "false"] {
        let protection = format!("power_loss_protection = {loss_protection}");
        let changes = [
            ("user_capacity = \"40 MiB\"", "user_capacity = \"450 MiB\""),
            ("blocks_per_plane = 64", "blocks_per_plane = 512"),
            ("pages_per_block = 16", "pages_per_block = 64"),
            ("page = \"16 KiB\"", "page = \"4 KiB\""),
            ("cell = \"MLC\"", "cell = \"SLC\""),
            ("[\"50 us\", \"70 us\"]", "[\"50 us\"]"),
            ("[\"400 us\", \"1200 us\"]", "[\"400 us\"]"),
            ("gc = \"greedy\"", "gc = \"fifo\""),
            ("power_loss_protection = false", &protection),
        ];
        let mut ssd = drive(&changes);
        let user = user_slots(&ssd);
        for slot in 0..user {
            ssd.fast_forward(&write(slot, 1));
        }
        ssd.end_fast_forward();
        let hot = user / 5;
        let mut random = Prng::new(1);
        let count = 3 * hot as u32;
        let done = closed_loop(&mut ssd, 4, count, |_| write(random.below(hot), 1));
        let stall = done.windows(2).map(|two| two[1].at - two[0].at).max().unwrap();
        assert!(stall > Nanos(PROGRAM_NS * u64::from(u16::MAX) / DIES), "{stall}");
        ssd.quiesce();
        ssd.ftl().check_invariants().unwrap();
        assert_eq!(ssd.ftl().mapped_slots(), user);
    }
}
