//! Tests determinism, timed and fast-forwarded states, and saved states.

use crate::common::{
    self, SLC, closed_loop, command, drive, precondition, read, user_slots, write,
};
use writecliff_base::{Lpn, Prng, StreamId};
use writecliff_host_interface::Content;
use writecliff_ssd::{Command, Completion, Drive, Operation, Ssd};

fn mixed(ssd: &mut Ssd, seed: u64, count: u32) -> Vec<Completion> {
    let user = user_slots(ssd);
    let mut random = Prng::new(seed);
    closed_loop(ssd, 16, count, |_| {
        let slot = random.below(user - 8);
        let stream = writecliff_base::StreamId(random.below(4) as u16);
        let next = match random.below(20) {
            0 => command(Operation::Trim, slot, 8, 0),
            1 => command(Operation::Flush, 0, 0, 0),
            2..=9 => read(slot, 1 + random.below(8) as u32),
            10 => Command { length: 512, ..write(slot, 1) },
            _ => write(slot, 1 + random.below(8) as u32),
        };
        let repeats = random.below(4) == 0;
        let same_as = if repeats { Lpn(random.below(user - 8) as u32) } else { Lpn::NONE };
        let content = Content { sectors: 1 + random.below(8) as u32, same_as };
        Command { stream, content, ..next }
    })
}

#[test]
fn same_device_load_and_seed_give_the_same_run() {
    let run = |seed| {
        let mut ssd = drive(&[("\"greedy\"", "\"d-choices\"\nd = 3")]);
        precondition(&mut ssd, 1);
        let done = mixed(&mut ssd, seed, 20_000);
        (done, ssd.ftl().digest())
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).1, run(2).1);
}

/// Stream and GC policies, as changes to the device file.
const STREAM_POLICIES: [&[(&str, &str)]; 7] = [
    &[],
    &[(
        "gc_destination = \"per-stream\"",
        "gc_destination = \"per-stream\"\nspare = \"self-tuned\"",
    )],
    &[("gc_destination = \"per-stream\"", "gc_destination = \"host-unit\"")],
    &[(
        "gc_destination = \"per-stream\"",
        "gc_destination = \"host-unit\"\ngc_pacing = \"per-victim\"",
    )],
    &[(
        "gc_destination = \"per-stream\"",
        "gc_destination = \"shared\"\ngc_pacing = \"on-demand\"",
    )],
    &[(
        "gc_destination = \"per-stream\"",
        "gc_destination = \"per-handle\"\nisolated_streams = [1, 3]",
    )],
    &[(
        "gc_destination = \"per-stream\"",
        "gc_destination = \"per-stream\"\ngc_pacing = \"quanta\"\ngc_quantum = \"128 KiB\"",
    )],
];

/// Mechanisms that a drive may have, as changes to the device file.
const MECHANISMS: [&[(&str, &str)]; 10] = [
    &common::PLACING,
    &SHARED_CORE,
    &HOUSEKEEPING,
    &ECC,
    &WARM,
    &PLANNED,
    &common::SLC,
    &SLC_IN_FRONT,
    &common::REDUCTION,
    &PLANES,
];

/// Pages of the same total size on two planes that read independently.
const PLANES: [(&str, &str); 3] = [
    ("planes_per_die = 1", "planes_per_die = 2"),
    ("page = \"16 KiB\"", "page = \"8 KiB\""),
    (
        "rated_cycles = 1000",
        "rated_cycles = 1000\nindependent_plane_reads = true\nerase_portions = 3",
    ),
];

/// A core that reads and merges also use, with a barrier between reads and writes.
const SHARED_CORE: [(&str, &str); 1] = [(
    "latency = \"5 us\"",
    "latency = \"5 us\"\nmapping_update_time = \"50 us\"\nread_slot_time = \"20 us\"\n\
     suspend_time = \"5 us\"\nmerge_time = \"30 us\"\nservice_order = \"barrier\"",
)];

/// A cache that folds while the host writes, and flash with read errors.
const SLC_IN_FRONT: [(&str, &str); 1] = [(
    "[link]",
    "[slc_cache]\nsize = \"3 MiB\"\nprogram = \"200 us\"\nread = \"25 us\"\nbypass = false\n\
     fold_at = \"40 %\"\n[ecc]\nrber = 5e-3\nrber_at_rated = 5e-2\ncodeword = \"1 KiB\"\n\
     correctable = 72\nretry_time = \"60 us\"\nretries_max = 3\n[link]",
)];

/// All background firmware work, on flash that can suspend operations for reads.
const HOUSEKEEPING: [(&str, &str); 2] = [
    ("rated_cycles = 1000", "rated_cycles = 1000\nprogram_suspend = \"20 us\""),
    (
        "[link]",
        "[housekeeping]\nmedia_interval = \"500 us\"\nmedia_time = \"300 us\"\n\
         journal_interval = \"256 KiB\"\njournal_time = \"1 ms\"\n\
         checkpoint_interval = \"20 MB\"\ncheckpoint_time = \"2 ms\"\n\
         hiccup_probability = 0.01\nhiccup_time = \"100 us\"\n\
         patrol_interval = \"20 ms\"\npatrol_length = \"8 ms\"\n\
         patrol_step = \"300 us\"\npatrol_time = \"40 us\"\n[link]",
    ),
];

/// An endurance plan of two minutes.
const PLANNED: [(&str, &str); 1] =
    [("[link]", "[endurance]\nlife = \"2 min\"\nreserve = \"1 %\"\n[link]")];

/// A drive whose heat capacity is so small that it alternates between throttling and recovery.
const WARM: [(&str, &str); 1] = [(
    "[link]",
    "[power]\nidle = \"1 W\"\nactive = \"1 W\"\nread = \"1 W\"\nprogram = \"2 W\"\n\
     [thermal]\nambient = \"25 C\"\nresistance = \"10 C/W\"\ncapacity = \"0.001 J/C\"\n\
     throttle_at = [\"70 C\", \"75 C\"]\nrecover_at = [\"60 C\", \"72 C\"]\n\
     throttle_factor = [4, 9]\n\
     period = \"3 ms\"\n[link]",
)];

/// Errors that grow with wear and time, some of them uncorrectable.
const ECC: [(&str, &str); 1] = [(
    "[link]",
    "[ecc]\nrber = 5e-3\nrber_at_rated = 5e-2\nretention_factor = 2.0\n\
     retention_time = \"1 h\"\nrber_spread = 0.3\ncodeword = \"1 KiB\"\ncorrectable = 72\n\
     retry_time = \"60 us\"\nretry_gain = 0.8\nretries_max = 3\n[link]",
)];

#[test]
fn fast_forward_leaves_the_state_that_timed_writing_leaves() {
    for changes in STREAM_POLICIES.into_iter().chain(MECHANISMS) {
        both_clocks_agree(changes);
    }
}

fn both_clocks_agree(changes: &[(&str, &str)]) {
    let commands: Vec<Command> = {
        let ssd = drive(&[]);
        let (user, mut random) = (user_slots(&ssd), Prng::new(4));
        (0..60_000)
            .map(|_| match random.below(50) {
                0 => command(Operation::Trim, random.below(user - 8), 8, 0),
                1 => Command { length: 1024, ..write(random.below(user), 1) },
                _ => write(random.below(user - 4), 1 + random.below(4) as u32),
            })
            .map(|command| Command { stream: stream_of(&command), ..command })
            .collect()
    };
    let mut timed = drive(changes);
    closed_loop(&mut timed, 1, commands.len() as u32, |n| commands[n as usize]);
    timed.quiesce();
    let mut fast = drive(changes);
    for command in &commands {
        fast.fast_forward(command);
    }
    fast.end_fast_forward();
    assert!(fast.counters().collections > 100, "GC did not run");
    assert_eq!(timed.ftl().digest(), fast.ftl().digest());
    assert_eq!(timed.storage().log(), fast.storage().log());
}

/// Returns a stream for each quarter of the addresses.
fn stream_of(command: &Command) -> StreamId {
    StreamId((command.offset / (1 << 20) % 4) as u16)
}

#[test]
fn restore_then_continue_equals_run_through() {
    let mut through = drive(&[]);
    let suspends = [("rated_cycles = 1000", "rated_cycles = 1000\nprogram_suspend = \"20 us\"")];
    for changes in STREAM_POLICIES.into_iter().chain(MECHANISMS).chain([&suspends[..]]) {
        through = drive(changes);
        precondition(&mut through, 2);
        for seed in 0..5 {
            mixed(&mut through, seed, 4_000);
            let saved = through.save(Vec::new()).unwrap();
            // The test restores the state into a drive that has been used since, whose later state
            // must leave no trace.
            let mut restored = drive(changes);
            mixed(&mut restored, 77, 20_000);
            restored.restore_from(&mut &saved[..]).unwrap();
            assert_eq!(restored.save(Vec::new()).unwrap(), saved, "saving takes all of it");
            let mut copied = drive(changes);
            mixed(&mut copied, 78, 20_000);
            copied.copy_from(&through).unwrap();
            assert_eq!(copied.save(Vec::new()).unwrap(), saved, "so does copying");

            let expected = mixed(&mut through, 100 + seed, 6_000);
            assert_eq!(mixed(&mut restored, 100 + seed, 6_000), expected);
            assert_eq!(mixed(&mut copied, 100 + seed, 6_000), expected);
            assert_eq!(restored.counters(), through.counters());
            assert_eq!(restored.save(Vec::new()).unwrap(), through.save(Vec::new()).unwrap());
        }
    }
    through.quiesce();
    through.ftl().check_invariants().unwrap();
}

#[test]
fn saving_disturbs_nothing() {
    let run = |save: bool, changes: &[(&str, &str)]| {
        let mut ssd = drive(changes);
        precondition(&mut ssd, 1);
        let mut all = Vec::new();
        for seed in 0..10 {
            all.extend(mixed(&mut ssd, seed, 3_000));
            if save {
                ssd.save(Vec::new()).unwrap();
            }
        }
        all
    };
    for changes in [&[][..], &HOUSEKEEPING[..], &ECC[..], &WARM[..]] {
        assert_eq!(run(true, changes), run(false, changes));
    }
}

#[test]
fn a_state_is_not_restored_into_another_drive() {
    let saved = drive(&[]).save(Vec::new()).unwrap();
    let mut other = drive(&[("erase = \"3 ms\"", "erase = \"4 ms\"")]);
    let error = other.restore_from(&mut &saved[..]).unwrap_err().to_string();
    let expected = "the state was saved by a different device: \
                    'flash.erase = Nanos(3000000)' in the state, \
                    'flash.erase = Nanos(4000000)' in this device";
    assert_eq!(error, expected);
    assert!(drive(&[]).restore_from(&mut &saved[..saved.len() / 2]).is_err());
}

/// Tests that a drive that differs only in its timing can be restored from the same preconditioned
/// state.
#[test]
fn a_fast_forwarded_state_is_that_of_every_device_with_the_same_ftl() {
    let slow = [("erase = \"3 ms\"", "erase = \"4 ms\"")];
    for changes in [&[][..], &HOUSEKEEPING[..], &ECC[..], &WARM[..], &SLC[..]] {
        let mut base = drive(changes);
        precondition(&mut base, 2);
        let mut slower: Vec<_> = changes.iter().chain(&slow).copied().collect();
        if changes == SLC {
            slower.push(("program = \"200 us\"\nread", "program = \"300 us\"\nread"));
        }
        let mut slow = drive(&slower);
        precondition(&mut slow, 2);
        let mut copied = drive(&slower);
        copied.copy_from(&base).unwrap();
        assert_eq!(mixed(&mut copied, 5, 6_000), mixed(&mut slow, 5, 6_000));
        assert_eq!(copied.counters(), slow.counters());

        // A drive that has executed timed commands neither accepts nor exports such a state.
        mixed(&mut base, 6, 10);
        assert!(drive(&slower).copy_from(&base).is_err());
        assert!(slow.copy_from(&drive(changes)).is_err());
    }
    let mut other = drive(&[("\"greedy\"", "\"d-choices\"\nd = 3")]);
    let error = other.copy_from(&drive(&[])).unwrap_err().to_string();
    assert!(error.starts_with("the state was saved by a different device: 'ftl.gc"), "{error}");
}

#[test]
fn a_purged_drive_is_fresh_but_not_new() {
    let mut ssd = drive(&[]);
    precondition(&mut ssd, 2);
    let before = ssd.counters();
    ssd.purge();
    let after = ssd.counters();
    assert_eq!(ssd.ftl().mapped_slots(), 0);
    assert_eq!(after.host_write_bytes, before.host_write_bytes);
    assert!(after.wear.mean > before.wear.mean, "a purge erases");
    ssd.ftl().check_invariants().unwrap();
    // Rewriting the purged drive causes no write amplification.
    let nand = ssd.counters().nand_write_bytes;
    (0..user_slots(&ssd)).for_each(|slot| ssd.fast_forward(&write(slot, 1)));
    assert_eq!(ssd.counters().nand_write_bytes - nand, user_slots(&ssd) * 4096);
}
