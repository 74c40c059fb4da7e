//! Tests measured times against closed formulas, and thresholds that must be exact: blocked at t −
//! 1, open at t.

use crate::common::{
    self, BUS_SLOT, LINK_SLOT, PLACING, alone, closed_loop, command, drive, precondition, read,
    write,
};
use writecliff_base::{Nanos, Prng};
use writecliff_ssd::{Completion, Drive, Operation, Ssd};

const CONTROLLER: u64 = 2_000 + 5_000;
const LINK_COMMAND: u64 = 3_000;
const FLASH_COMMAND: u64 = 1_000;

/// Returns a drive with every page on flash and an empty buffer.
fn settled(changes: &[(&str, &str)]) -> Ssd {
    let mut ssd = drive(changes);
    for slot in 0..common::user_slots(&ssd) {
        ssd.fast_forward(&write(slot, 1));
    }
    ssd.end_fast_forward();
    alone(&mut ssd, command(Operation::Flush, 0, 0, 0));
    ssd.quiesce();
    ssd
}

#[test]
fn an_unloaded_read_costs_command_sense_and_transfers() {
    let mut ssd = settled(&[]);
    // Slot 0 is on page 0, which is a fast page (50 us). The 16 slots of row 0 are on four dies,
    // and row 1 consists of slow pages.
    let fixed = CONTROLLER + FLASH_COMMAND + BUS_SLOT + LINK_COMMAND + LINK_SLOT;
    assert_eq!(alone(&mut ssd, read(0, 1)), fixed + 50_000);
    assert_eq!(alone(&mut ssd, read(16, 1)), fixed + 70_000);
    // A read of one sector transfers a slot on the bus and a sector on the link.
    let sector = writecliff_ssd::Command { length: 512, ..read(0, 1) };
    assert_eq!(alone(&mut ssd, sector), fixed + 50_000 - LINK_SLOT + 1_024);
}

#[test]
fn a_large_read_uses_all_dies_and_is_bound_by_the_link() {
    let mut ssd = settled(&[]);
    // 16 slots are one page on each die, with two dies per channel. Each channel sends 2
    // consecutive pages. The link, which has half the combined rate of the channels, drains them
    // from the first page on.
    let first_page = CONTROLLER + FLASH_COMMAND + 50_000 + 4 * BUS_SLOT;
    let expected = first_page + 16 * LINK_SLOT + LINK_COMMAND;
    assert_eq!(alone(&mut ssd, read(0, 16)), expected);
}

#[test]
fn unmapped_and_buffered_data_need_no_flash() {
    let mut ssd = drive(&[]);
    let no_flash = CONTROLLER + LINK_COMMAND + LINK_SLOT;
    assert_eq!(alone(&mut ssd, read(100, 1)), no_flash);
    assert_eq!(alone(&mut ssd, write(100, 1)), no_flash);
    assert_eq!(alone(&mut ssd, read(100, 1)), no_flash);
}

#[test]
fn a_write_without_cache_waits_for_the_flash() {
    let mut ssd = drive(&[("write_cache = true", "write_cache = false")]);
    let cached = CONTROLLER + LINK_COMMAND + LINK_SLOT;
    let program = FLASH_COMMAND + 4 * BUS_SLOT + 400_000;
    assert_eq!(alone(&mut ssd, write(0, 1)), cached + program);
    // The remaining slots of the page were padding, so one host slot takes 4 flash slots.
    assert_eq!(ssd.counters().padding_bytes, 3 * 4096);
    // With power-loss protection, the buffer is durable even if the cache is disabled.
    let mut safe = drive(&[
        ("write_cache = true", "write_cache = false"),
        ("protection = false", "protection = true"),
    ]);
    assert_eq!(alone(&mut safe, write(0, 1)), cached);
}

#[test]
fn a_flush_waits_for_what_was_written() {
    let mut ssd = drive(&[]);
    let written = alone(&mut ssd, write(0, 1));
    assert!(written < 20_000, "the cache took the write");
    let flush = alone(&mut ssd, command(Operation::Flush, 0, 0, 0));
    assert_eq!(flush, CONTROLLER + LINK_COMMAND + FLASH_COMMAND + 4 * BUS_SLOT + 400_000);
    let again = alone(&mut ssd, command(Operation::Flush, 0, 0, 0));
    assert_eq!(again, CONTROLLER + LINK_COMMAND, "nothing was left to flush");
}

/// Returns the throughput in MB/s of `count` writes of 64 KiB at queue depth 32, after the buffer
/// has filled.
fn write_rate(changes: &[(&str, &str)], count: u32) -> f64 {
    let mut ssd = drive(changes);
    let user = common::user_slots(&ssd);
    let done = closed_loop(&mut ssd, 32, count, |n| write(u64::from(n) * 16 % (user - 16), 16));
    let half = done.len() / 2;
    let bytes = (done.len() - half) as f64 * 65_536.0;
    bytes / (done[done.len() - 1].at - done[half - 1].at).as_secs_f64() / 1e6
}

#[test]
fn peak_writes_are_bound_by_the_slowest_of_link_channels_and_dies() {
    let close = |got: f64, want: f64, what: &str| {
        assert!((got / want - 1.0).abs() < 0.03, "{what}: {got:.1} MB/s, expected {want:.1}");
    };
    // The dies are the bottleneck: 4 dies program 16 KiB in 400 and 1200 us alternately, and a
    // channel loads one die at a time.
    let load_ms = (16_384.0 / 400e6 + 1e-6) * 1e3;
    let dies = 4.0 * 16_384.0 / ((0.8 + load_ms) * 1e-3) / 1e6;
    close(write_rate(&[], 400), dies, "dies");
    // The channels are the bottleneck, because programs are so short that the two buses are always
    // busy.
    let fast = [("program = [\"400 us\", \"1200 us\"]", "program = [\"1 us\", \"1 us\"]")];
    let slow_bus = ("bus = \"400 MB/s\"", "bus = \"40 MB/s\"");
    let channels = 2.0 * 16_384.0 / (16_384.0 / 40e6 + 1e-6) / 1e6;
    close(write_rate(&[fast[0], slow_bus], 400), channels, "channels");
    // The link is the bottleneck: each command takes the transfer time for 64 KiB plus 3 us.
    let link = 65_536.0 / (65_536.0 / 500e6 + 3e-6) / 1e6;
    close(write_rate(&fast, 400), link, "link");
}

#[test]
fn firmware_bounds_small_reads() {
    let mut ssd = settled(&[("command_time = \"2 us\"", "command_time = \"100 us\"")]);
    let user = common::user_slots(&ssd);
    let mut random = Prng::new(1);
    let done = closed_loop(&mut ssd, 32, 2000, |_| read(random.below(user), 1));
    let seconds = (done[1999].at - done[999].at).as_secs_f64();
    assert!((1000.0 / seconds / 10_000.0 - 1.0).abs() < 0.01, "{} IOPS", 1000.0 / seconds);
}

/// Returns the latency of a read that arrives `after` the start of a program on its die.
fn read_behind_a_program(after: u64, changes: &[(&str, &str)]) -> u64 {
    let mut ssd = settled(changes);
    // The test fills the page in die 0's next unit. The user slot count is a multiple of 16, so a
    // row starts on die 0.
    assert_eq!(ssd.ftl().filled(writecliff_ftl::frontier::FrontierId(0)), 0);
    let start = ssd.now();
    ssd.submit(start, write(0, 4));
    let arrived = ssd.step(Nanos::MAX).unwrap().at;
    let program_begins = arrived; // The page is full, so its program is queued immediately.
    let at = program_begins + Nanos(after);
    assert_eq!(ssd.step(at), None);
    ssd.submit(at, read(4 * 4 * 8, 1));
    (ssd.step(Nanos::MAX).unwrap().at - at).0
}

#[test]
fn reads_wait_for_programs_or_suspend_them() {
    // The write order determines the die of each slot: 4 slots per page, with 4 dies in turn.
    let unloaded = CONTROLLER + FLASH_COMMAND + 50_000 + BUS_SLOT + LINK_COMMAND + LINK_SLOT;
    let program_ends = FLASH_COMMAND + 4 * BUS_SLOT + 400_000;
    let waiting = read_behind_a_program(100_000, &[]);
    // The read reaches the die at 100 us plus the controller time, and starts when the program has
    // ended.
    assert_eq!(waiting, unloaded + program_ends - 100_000 - CONTROLLER);
    let suspend = [("rated_cycles = 1000", "rated_cycles = 1000\nprogram_suspend = \"20 us\"")];
    assert_eq!(read_behind_a_program(100_000, &suspend), unloaded + 20_000);
    // The drive does not suspend a program if less than the suspend latency remains.
    let remains = |ns: u64| program_ends - CONTROLLER - ns;
    assert_eq!(read_behind_a_program(remains(20_000), &suspend), unloaded + 20_000);
    assert_eq!(read_behind_a_program(remains(20_001), &suspend), unloaded + 20_000);
    assert_eq!(read_behind_a_program(remains(19_999), &suspend), unloaded + 19_999);
}

#[test]
fn programs_are_suspended_only_between_their_steps() {
    let unloaded = CONTROLLER + FLASH_COMMAND + 50_000 + BUS_SLOT + LINK_COMMAND + LINK_SLOT;
    let load = FLASH_COMMAND + 4 * BUS_SLOT;
    let steps = |step: &str| {
        let keys = format!(
            "rated_cycles = 1000\nprogram_suspend = \"20 us\"\nprogram_suspend_step = \"{step}\""
        );
        move |after: u64| read_behind_a_program(after, &[("rated_cycles = 1000", keys.as_str())])
    };
    // The read reaches the die `elapsed` after the program starts. Each program step takes 150 us.
    let latency = steps("150 us");
    let at = |elapsed: u64| load + elapsed - CONTROLLER;
    assert_eq!(latency(at(100_000)), unloaded + 50_000 + 20_000);
    assert_eq!(latency(at(149_999)), unloaded + 1 + 20_000);
    assert_eq!(latency(at(150_000)), unloaded + 20_000);
    assert_eq!(latency(at(150_001)), unloaded + 149_999 + 20_000);
    // After the last step, at 300 us, the read waits until the program ends at 400 us.
    assert_eq!(latency(at(300_001)), unloaded + 99_999);
    // While the page is transferred to the die, the read waits until the program starts.
    assert_eq!(latency(at(0) - 10_000), unloaded + 10_000 + 20_000);
    // The drive does not suspend the program if only the suspend latency remains after the step.
    assert_eq!(steps("380 us")(at(1)), unloaded + 399_999);
}

#[test]
fn suspensions_take_time_of_the_mapping_core() {
    // The core takes 50 us per write and `time` per program suspension.
    let mixed_load = |time: &str| {
        let core = format!(
            "latency = \"5 us\"\nmapping_update_time = \"50 us\"\nsuspend_time = \"{time}\""
        );
        let part = "rated_cycles = 1000\nprogram_suspend = \"20 us\"";
        let changes = [("latency = \"5 us\"", core.as_str()), ("rated_cycles = 1000", part)];
        let mut ssd = settled(&changes);
        let user = common::user_slots(&ssd);
        let mut random = Prng::new(2);
        let done = closed_loop(&mut ssd, 16, 12_000, |n| match n % 2 {
            0 => read(random.below(user), 1),
            _ => write(random.below(user), 1),
        });
        (done[11_999].at - done[5_999].at).as_secs_f64()
    };
    let (free, slow) = (mixed_load("0 us"), mixed_load("500 us"));
    assert!(slow > 1.2 * free, "{slow} s with `suspend_time`, {free} s without");
    // A workload without reads has no suspensions.
    let write_load = |time: &str| {
        let core = format!(
            "latency = \"5 us\"\nmapping_update_time = \"50 us\"\nsuspend_time = \"{time}\""
        );
        let mut ssd = settled(&[("latency = \"5 us\"", core.as_str())]);
        closed_loop(&mut ssd, 16, 4000, |n| write(u64::from(n) % 4000, 1)).last().unwrap().at
    };
    assert_eq!(write_load("0 us"), write_load("500 us"));
}

#[test]
fn a_queue_full_of_commands_makes_the_next_one_wait_at_the_host() {
    let mut ssd = settled(&[("queue_depth = 32", "queue_depth = 1")]);
    let done = closed_loop(&mut ssd, 2, 2, |n| read(u64::from(n) * 4, 1));
    // Two dies could work in parallel, but the second command enters only after the first command
    // has completed.
    let latency = CONTROLLER + FLASH_COMMAND + 50_000 + BUS_SLOT + LINK_COMMAND + LINK_SLOT;
    assert_eq!((done[1].at - done[0].at).0, latency);
}

#[test]
fn no_command_is_lost_under_mixed_load_with_gc() {
    let mut ssd = drive(&[]);
    precondition(&mut ssd, 2);
    let user = common::user_slots(&ssd);
    let mut random = Prng::new(9);
    let count = 60_000;
    let done = closed_loop(&mut ssd, 64, count, |_| {
        let slot = random.below(user);
        if random.below(10) < 7 { read(slot, 1) } else { write(slot, 1) }
    });
    let mut tags: Vec<u32> = done.iter().map(|c| c.tag).collect();
    tags.sort_unstable();
    assert!(tags.into_iter().eq(0..count), "every command completed exactly once");
    ssd.quiesce();
    ssd.ftl().check_invariants().unwrap();
    assert!(ssd.counters().collections > 50);
}

#[test]
fn an_idle_drive_runs_gc_in_the_background() {
    let mut ssd = drive(&[]);
    precondition(&mut ssd, 3);
    let before = ssd.counters();
    alone(&mut ssd, write(0, 1));
    let busy = ssd.ftl().free_units();
    assert!(ssd.step(ssd.now() + Nanos::from_secs(5)).is_none());
    assert!(ssd.ftl().free_units() > busy, "free units grew while the host was silent");
    assert!(ssd.ftl().free_units() >= 6);
    assert!(ssd.counters().gc_moved_bytes > before.gc_moved_bytes);
    ssd.quiesce();
    ssd.ftl().check_invariants().unwrap();
}

#[test]
fn victims_moved_at_once_lengthen_the_tail_of_writes_not_their_sum() {
    let run = |pacing: &str| {
        let gc = format!("gc = \"greedy\"\ngc_pacing = \"{pacing}\"");
        // The buffer is smaller than a victim.
        let small = ("write_buffer = \"1 MiB\"", "write_buffer = \"320 KiB\"");
        let mut ssd = drive(&[("gc = \"greedy\"", &gc), small]);
        precondition(&mut ssd, 2);
        let (user, mut random) = (common::user_slots(&ssd), Prng::new(7));
        let (begin, mut last) = (ssd.now(), ssd.now());
        let done = closed_loop(&mut ssd, 1, 10_000, |_| write(random.below(user), 1));
        let wait = |c: &Completion| (c.at - std::mem::replace(&mut last, c.at)).0;
        let mut waits: Vec<u64> = done.iter().map(wait).collect();
        waits.sort_unstable();
        ((last - begin).as_secs_f64(), waits[9900])
    };
    let (even, whole) = (run("incremental"), run("per-victim"));
    assert!((whole.0 / even.0 - 1.0).abs() < 0.02, "{even:?} {whole:?}");
    assert!(whole.1 > even.1 * 6 / 5, "{even:?} {whole:?}");
}

#[test]
fn a_drive_filled_in_no_time_or_restored_is_idle_too() {
    let mut ssd = drive(&[]);
    precondition(&mut ssd, 3);
    let saved = ssd.save(Vec::new()).unwrap();
    let mut restored = drive(&[]);
    restored.restore_from(&mut &saved[..]).unwrap();
    for ssd in [&mut ssd, &mut restored] {
        let (due, before) = (ssd.now() + Nanos(10_000_000), ssd.counters().gc_moved_bytes);
        ssd.idle_until(due - Nanos(1));
        assert_eq!(ssd.counters().gc_moved_bytes, before, "one nanosecond before the idle delay");
        ssd.idle_until(due);
        assert!(ssd.counters().gc_moved_bytes > before, "at it");
        ssd.idle_until(due + Nanos::from_secs(5));
        assert!(ssd.ftl().free_units() >= 6);
    }
    assert_eq!(ssd.save(Vec::new()).unwrap(), restored.save(Vec::new()).unwrap());
    // A quiesced drive waits for its whole idle time again.
    precondition(&mut ssd, 1);
    ssd.quiesce();
    let (due, before) = (ssd.now() + Nanos(10_000_000), ssd.counters().gc_moved_bytes);
    ssd.idle_until(due - Nanos(1));
    assert_eq!(ssd.counters().gc_moved_bytes, before);
    ssd.idle_until(due);
    assert!(ssd.counters().gc_moved_bytes > before);
    ssd.quiesce();
    ssd.ftl().check_invariants().unwrap();
}

/// Changes that make the flash so fast that the firmware core is the bottleneck.
fn core_bound() -> [(&'static str, &'static str); 3] {
    [PLACING[0], ("\"400 us\", \"1200 us\"", "\"9 us\", \"9 us\""), ("3 ms", "100 us")]
}

#[test]
fn mapping_delays_writes_when_the_buffer_is_full_of_unmapped_data() {
    let mut ssd = drive(&core_bound());
    let arrives = CONTROLLER + LINK_COMMAND + LINK_SLOT;
    // Mapping a buffer of 256 slots takes 12.8 ms. Until the buffer is full, writes complete from
    // the buffer.
    let done = closed_loop(&mut ssd, 1, 2000, |n| write(u64::from(n), 1));
    let times: Vec<u64> = done.windows(2).map(|w| (w[1].at - w[0].at).0).collect();
    let free = times.iter().take_while(|&&time| time == arrives).count();
    // Each write adds 50 us, minus its own duration, to the core backlog.
    let expected = 12_800_000_u64.div_ceil(50_000 - arrives) as usize;
    assert!(free.abs_diff(expected) <= 2, "{free} writes, expected {expected}");
    assert!(times[free + 2..].iter().all(|&time| time == 50_000), "then one every 50 us");
    // The core backlog does not delay reads.
    let before = ssd.now();
    ssd.submit(before, write(500, 1));
    ssd.submit(before, read(3000, 1));
    assert_eq!(ssd.step(Nanos::MAX).unwrap().operation, Operation::Read);
}

#[test]
fn relocation_time_is_charged_to_the_writes_that_need_it() {
    let mut ssd = drive(&core_bound());
    precondition(&mut ssd, 3);
    let user = common::user_slots(&ssd);
    let mut random = Prng::new(5);
    let before = (ssd.now(), *ssd.ftl().counters());
    let count = 20_000;
    closed_loop(&mut ssd, 32, count, |_| write(random.below(user), 1));
    let moved = ssd.ftl().counters().moved_slots() - before.1.moved_slots();
    assert!(moved > u64::from(count) / 10, "GC had too little work");
    // At the end, the core backlog still covers a whole buffer.
    let expected = f64::from(count) * 50e-6 + moved as f64 * 30e-6 - 256.0 * 50e-6;
    let took = (ssd.now() - before.0).as_secs_f64();
    assert!((took / expected - 1.0).abs() < 0.002, "{took:.3} s, expected {expected:.3} s");
    ssd.quiesce();
    ssd.ftl().check_invariants().unwrap();
}

#[test]
fn reads_take_time_of_the_mapping_core_but_do_not_wait_for_it() {
    let lookup =
        ("relocation_time = \"30 us\"", "relocation_time = \"30 us\"\nlookup_time = \"40 us\"");
    let changes: Vec<_> = core_bound().into_iter().chain([lookup]).collect();
    let mut ssd = drive(&changes);
    // Half of the commands are reads of unmapped data, which need no flash access, and half are
    // writes, so a pair takes 90 us.
    let done = closed_loop(&mut ssd, 8, 8000, |n| match n % 2 {
        0 => read(9000, 1),
        _ => write(u64::from(n) % 4000, 1),
    });
    let pairs = (done[7999].at - done[4000].at).as_secs_f64() / 2000.0;
    assert!((pairs / 90e-6 - 1.0).abs() < 0.01, "{pairs} s a pair");
    // A workload without writes is as fast as before and leaves no further backlog.
    let fast = drive(&core_bound());
    for mut ssd in [ssd, fast] {
        let done = closed_loop(&mut ssd, 8, 1000, |_| read(9000, 1));
        assert_eq!((done[999].at - done[899].at).0, 100 * (LINK_COMMAND + LINK_SLOT), "link-bound");
    }
}

#[test]
fn the_rest_of_a_write_keeps_the_firmware_from_the_next_command() {
    let longer =
        ("command_time = \"2 us\"", "command_time = \"2 us\"\nwrite_command_time = \"40 us\"");
    let mut ssd = settled(&[longer]);
    let single = CONTROLLER + LINK_COMMAND + LINK_SLOT;
    assert_eq!(alone(&mut ssd, write(0, 1)), single);
    assert_eq!(alone(&mut ssd, write(1, 1)), 40_000);
    let done = closed_loop(&mut ssd, 8, 100, |n| write(u64::from(n), 1));
    assert_eq!((done[99].at - done[49].at).0, 50 * 40_000);
}

#[test]
fn the_slots_of_a_read_take_time_of_the_mapping_core() {
    let slots =
        ("relocation_time = \"30 us\"", "relocation_time = \"30 us\"\nread_slot_time = \"10 us\"");
    let changes: Vec<_> = core_bound().into_iter().chain([slots]).collect();
    for read_slots in [1, 8] {
        let mut ssd = drive(&changes);
        let done = closed_loop(&mut ssd, 8, 8000, |n| match n % 2 {
            0 => read(9000, read_slots),
            _ => write(u64::from(n) % 4000, 1),
        });
        let pairs = (done[7999].at - done[4000].at).as_secs_f64() / 2000.0;
        let expected = 50e-6 + f64::from(read_slots) * 10e-6;
        assert!((pairs / expected - 1.0).abs() < 0.01, "{pairs} s a pair, expected {expected}");
    }
}

#[test]
fn a_slot_that_is_written_in_part_takes_the_core_longer() {
    let merge =
        ("relocation_time = \"30 us\"", "relocation_time = \"30 us\"\nmerge_time = \"70 us\"");
    let changes: Vec<_> = core_bound().into_iter().chain([merge]).collect();
    let sector = |slot: u64| writecliff_ssd::Command { length: 512, ..write(slot, 1) };
    let mut ssd = drive(&changes);
    let per_write = |ssd: &mut Ssd| {
        let done = closed_loop(ssd, 8, 2000, |n| sector(u64::from(n)));
        (done[1999].at - done[999].at).as_secs_f64() / 1000.0
    };
    assert!((per_write(&mut ssd) / 50e-6 - 1.0).abs() < 0.01, "there is nothing to merge with");
    assert!((per_write(&mut ssd) / 120e-6 - 1.0).abs() < 0.01, "each is merged with its old data");
}

#[test]
fn reads_may_take_more_of_the_firmware_than_writes() {
    let longer =
        ("command_time = \"2 us\"", "command_time = \"2 us\"\nread_command_time = \"99 us\"");
    let mut ssd = settled(&[longer]);
    let done = closed_loop(&mut ssd, 16, 200, |n| read(u64::from(n) * 4, 1));
    // The tolerance covers the page types of the first read and the last read.
    assert!((done[199].at - done[99].at).0.abs_diff(100 * 99_000) <= 20_000);
    assert_eq!(alone(&mut ssd, write(0, 1)), CONTROLLER + LINK_COMMAND + LINK_SLOT);
}
