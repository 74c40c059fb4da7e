//! Tests the SLC cache: its speed, its write cliff, recovery in idle time, and double writes.

use std::collections::BTreeSet;

use crate::common::{
    self, BUS_SLOT, LINK_SLOT, SLC, alone, closed_loop, command, drive, precondition, read,
    user_slots, write,
};
use writecliff_base::{Lpn, Nanos, Prng};
use writecliff_ssd::mechanisms::slc_cache::SlcCounters;
use writecliff_ssd::{Command, Completion, Drive, Operation, Ssd, device_file};

const CONTROLLER: u64 = 2_000 + 5_000;
const LINK_COMMAND: u64 = 3_000;
const FLASH_COMMAND: u64 = 1_000;
const CACHED: u64 = CONTROLLER + LINK_COMMAND + LINK_SLOT;
const SLC_PROGRAM: u64 = FLASH_COMMAND + 4 * BUS_SLOT + 200_000;
const CAPACITY: u64 = 1024;

/// A cache that is never bypassed.
const IN_FRONT: [(&str, &str); 1] = [(
    "[link]",
    "[slc_cache]\nsize = \"4 MiB\"\nprogram = \"200 us\"\nread = \"25 us\"\nbypass = false\n[link]",
)];

fn slc(ssd: &Ssd) -> SlcCounters {
    ssd.counters().slc_cache.expect("the drive has the cache")
}

/// Leaves the drive idle for `millis` milliseconds.
fn idle(ssd: &mut Ssd, millis: u64) {
    let until = ssd.now() + Nanos::from_micros(1000 * millis);
    ssd.idle_until(until);
}

/// Writes `count` sequential blocks of 64 KiB, starting at `from`, at queue depth 32.
fn stream_in(ssd: &mut Ssd, from: u64, count: u32) -> Vec<Completion> {
    let user = user_slots(ssd);
    closed_loop(ssd, 32, count, |n| write((from + u64::from(n) * 16) % (user - 16), 16))
}

/// Returns the throughput in MB/s of 64 KiB commands between two completions.
fn rate(done: &[Completion], from: usize, to: usize) -> f64 {
    (to - from) as f64 * 65_536.0 / (done[to].at - done[from].at).as_secs_f64() / 1e6
}

/// Returns the throughput in MB/s of four dies that each receive 16 KiB over the bus and program
/// them in `program_us`.
fn program_rate(program_us: f64) -> f64 {
    let load_us = 16_384.0 / 400.0 + 1.0;
    4.0 * 16_384.0 / (program_us + load_us)
}

fn assert_near(got: f64, want: f64, what: &str) {
    assert!((got / want - 1.0).abs() < 0.05, "{what}: {got:.1} MB/s, expected {want:.1}");
}

#[test]
fn writes_have_the_speed_of_slc_until_it_is_full_and_again_after_idle_time() {
    let mut ssd = drive(&SLC);
    for round in 0..3 {
        // 64 commands fill the cache. The buffer is full after about 35 commands, because the link
        // is faster than the flash.
        let done = stream_in(&mut ssd, 0, 260);
        assert_near(rate(&done, 40, 62), program_rate(200.0), "in the cache");
        assert_near(rate(&done, 100, 250), program_rate(800.0), "past it");
        let count = slc(&ssd);
        assert_eq!(count.held, CAPACITY, "all that it holds is alive, round {round}");
        assert_eq!(count.writes, (round + 1) * CAPACITY);
        assert_eq!(count.bypassed, (round + 1) * (260 * 16 - CAPACITY));
        idle(&mut ssd, 500);
        assert_eq!(slc(&ssd).held, 0);
    }
    assert_eq!(slc(&ssd).folds, 3 * CAPACITY);
    assert_eq!(ssd.counters().host_write_bytes, 3 * 260 * 65_536, "each host byte once");
    ssd.quiesce();
    ssd.ftl().check_invariants().unwrap();
}

#[test]
fn the_cliff_is_at_the_size_to_the_slot() {
    let mut ssd = drive(&SLC);
    (0..CAPACITY).for_each(|slot| ssd.fast_forward(&write(slot, 1)));
    assert_eq!((slc(&ssd).held, slc(&ssd).bypassed), (CAPACITY, 0));
    assert_eq!(ssd.ftl().mapped_slots(), 0, "the FTL has seen nothing");
    assert_eq!(ssd.counters().nand_write_bytes, CAPACITY * 4096);
    ssd.fast_forward(&write(CAPACITY, 1));
    assert_eq!((slc(&ssd).held, slc(&ssd).bypassed), (CAPACITY, 1));
    assert_eq!(ssd.ftl().mapped_slots(), 1);
    // An overwrite that bypasses the cache invalidates the oldest data in the cache, so the next
    // write has room.
    ssd.fast_forward(&write(0, 1));
    ssd.fast_forward(&write(2000, 1));
    let count = slc(&ssd);
    assert_eq!((count.held, count.bypassed, count.coalesced), (CAPACITY, 2, 1));
    assert_eq!(count.writes, CAPACITY + 1);
}

#[test]
fn folding_begins_after_the_idle_delay_and_runs_near_the_speed_of_the_main_flash() {
    let mut ssd = drive(&SLC);
    let last = stream_in(&mut ssd, 0, 8).last().unwrap().at;
    let delay = Nanos::from_micros(10_000);
    ssd.idle_until(last + delay - Nanos(1));
    assert_eq!(slc(&ssd).folds, 0, "one nanosecond before");
    ssd.idle_until(last + delay);
    assert!(slc(&ssd).folds > 0, "at the delay");
    idle(&mut ssd, 100);
    stream_in(&mut ssd, 0, 64);
    let before = ssd.now();
    while slc(&ssd).held > 0 {
        idle(&mut ssd, 1);
    }
    let seconds = (ssd.now() - before).as_secs_f64() - 0.010;
    let speed = 4.0 * 1.048_576 / seconds;
    let most = program_rate(800.0);
    assert!((0.6 * most..most).contains(&speed), "{speed:.1} of {most:.1} MB/s");
}

#[test]
fn what_was_written_in_no_time_is_folded_after_the_idle_delay() {
    let mut ssd = drive(&SLC);
    (0..8).for_each(|n| ssd.fast_forward(&write(n * 16, 16)));
    ssd.end_fast_forward();
    let due = ssd.now() + Nanos::from_micros(10_000);
    ssd.idle_until(due - Nanos(1));
    assert_eq!((slc(&ssd).folds, slc(&ssd).held), (0, 128));
    ssd.idle_until(due);
    assert!(slc(&ssd).folds > 0);
    ssd.idle_until(due + Nanos::from_secs(1));
    assert_eq!((slc(&ssd).folds, slc(&ssd).held), (128, 0));
}

#[test]
fn data_written_again_are_folded_once() {
    let mut ssd = drive(&SLC);
    for _ in 0..10 {
        alone(&mut ssd, write(32, 16));
    }
    let count = slc(&ssd);
    assert_eq!((count.writes, count.coalesced, count.held), (160, 144, 16));
    idle(&mut ssd, 200);
    let count = slc(&ssd);
    assert_eq!((count.folds, count.held), (16, 0));
    assert_eq!(ssd.counters().host_write_bytes, 160 * 4096);
    assert_eq!(ssd.counters().nand_write_bytes, (160 + 16) * 4096);
    assert_eq!(ssd.ftl().mapped_slots(), 16);
}

#[test]
fn reads_find_cached_data_at_the_speed_of_slc() {
    let mut ssd = drive(&SLC);
    precondition(&mut ssd, 1);
    idle(&mut ssd, 10);
    alone(&mut ssd, command(Operation::Flush, 0, 0, 0));
    idle(&mut ssd, 1000);
    assert_eq!(slc(&ssd).held, 0, "preconditioning is folded");
    alone(&mut ssd, write(0, 4));
    let buffered = alone(&mut ssd, read(0, 1));
    assert_eq!(buffered, CONTROLLER + LINK_COMMAND + LINK_SLOT, "from the buffer");
    ssd.quiesce();
    let flash = FLASH_COMMAND + BUS_SLOT;
    let link = LINK_COMMAND + LINK_SLOT;
    assert_eq!(alone(&mut ssd, read(0, 1)), CONTROLLER + flash + 25_000 + link);
    // One flash read fetches the four slots of a page.
    let page = alone(&mut ssd, read(0, 4));
    assert_eq!(page, CONTROLLER + flash + 3 * BUS_SLOT + 25_000 + link + 3 * LINK_SLOT);
    // Once the data have been folded, reads have the timing of the main flash.
    idle(&mut ssd, 100);
    assert_eq!(slc(&ssd).held, 0);
    alone(&mut ssd, write(100, 4));
    stream_in(&mut ssd, 1024, 64);
    ssd.quiesce();
    let main = alone(&mut ssd, read(0, 1)) - CONTROLLER - flash - link;
    assert!(main == 50_000 || main == 70_000, "{main} ns");
}

#[test]
fn data_in_the_cache_are_durable_when_they_are_on_flash() {
    let mut ssd = drive(&SLC);
    assert_eq!(alone(&mut ssd, write(0, 1)), CACHED);
    let flush = command(Operation::Flush, 0, 0, 0);
    assert_eq!(alone(&mut ssd, flush), CONTROLLER + LINK_COMMAND + SLC_PROGRAM);
    assert_eq!(alone(&mut ssd, flush), CONTROLLER + LINK_COMMAND, "nothing was left to flush");
    let count = slc(&ssd);
    assert_eq!((count.writes, count.padding), (1, 3));
    assert_eq!(ssd.counters().padding_bytes, 3 * 4096);
    // Folded data stay in the cache's flash until it is erased, so units of the main flash need not
    // be closed.
    idle(&mut ssd, 100);
    assert_eq!(slc(&ssd).folds, 1);
    assert_eq!(alone(&mut ssd, flush), CONTROLLER + LINK_COMMAND);

    let mut uncached = drive(&[SLC[0], ("write_cache = true", "write_cache = false")]);
    assert_eq!(alone(&mut uncached, write(0, 1)), CACHED + SLC_PROGRAM);
    (1..=CAPACITY).for_each(|slot| uncached.fast_forward(&write(slot, 1)));
    uncached.end_fast_forward();
    let main = FLASH_COMMAND + 4 * BUS_SLOT + 400_000;
    let past = alone(&mut uncached, write(5000, 1));
    assert_eq!(past, CACHED + main, "past the full cache: the main flash's program");
}

#[test]
fn trimmed_data_are_gone_and_never_folded() {
    let mut ssd = drive(&SLC);
    alone(&mut ssd, write(8, 8));
    alone(&mut ssd, command(Operation::Trim, 8, 8, 0));
    let count = slc(&ssd);
    assert_eq!((count.trimmed, count.held), (8, 0));
    assert_eq!(ssd.counters().trimmed_bytes, 8 * 4096);
    assert_eq!(alone(&mut ssd, read(8, 1)), CONTROLLER + LINK_COMMAND + LINK_SLOT);
    assert_eq!(ssd.counters().unmapped_read_bytes, 4096);
    idle(&mut ssd, 500);
    assert_eq!(slc(&ssd).folds, 0);
}

#[test]
fn a_part_of_a_slot_is_merged_with_what_is_there() {
    let sector = |slot| Command { length: 512, ..write(slot, 1) };
    let mut ssd = drive(&SLC);
    alone(&mut ssd, write(0, 4));
    idle(&mut ssd, 100);
    alone(&mut ssd, command(Operation::Flush, 0, 0, 0));
    let off = ("write_cache = true", "write_cache = false");
    let mut uncached = drive(&[SLC[0], off]);
    alone(&mut uncached, write(0, 4));
    // The program of the new page waits until the old page on the other die has been read.
    let merged = alone(&mut uncached, sector(0));
    let sense = FLASH_COMMAND + 25_000 + BUS_SLOT;
    assert_eq!(merged, CACHED - LINK_SLOT + 1_024 + sense + SLC_PROGRAM);
    alone(&mut ssd, sector(0));
    idle(&mut ssd, 100);
    assert_eq!(ssd.counters().host_write_bytes, 4 * 4096 + 512);
    assert_eq!((slc(&ssd).folds, ssd.ftl().mapped_slots()), (5, 4));
}

#[test]
fn without_a_bypass_sustained_writes_fold_as_much_as_they_bring() {
    let mut ssd = drive(&IN_FRONT);
    let done = stream_in(&mut ssd, 0, 400);
    assert_near(rate(&done, 40, 62), program_rate(200.0), "in the cache");
    // Every page is programmed twice and read once, and each block of 8 pages is erased once.
    let load_us = 16_384.0 / 400.0 + 1.0;
    let work_us = 200.0 + load_us + 800.0 + 25.0 + load_us + 3000.0 / 8.0;
    assert_near(rate(&done, 150, 390), program_rate(work_us), "folding in front");
    let count = slc(&ssd);
    assert_eq!((count.writes, count.bypassed), (400 * 16, 0));
    assert_eq!(count.folds, 400 * 16 - CAPACITY);
}

#[test]
fn a_share_lets_writes_fold_the_more_the_fuller_it_is() {
    let keys = SLC[0].1.replace("read =", "fold_at = \"50 %\"\nread =");
    let mut ssd = drive(&[("[link]", &keys)]);
    let mut folds = Vec::new();
    for slot in 0..2 * CAPACITY {
        ssd.fast_forward(&write(slot, 1));
        if (slot + 1) % (CAPACITY / 4) == 0 {
            folds.push(slc(&ssd).folds);
        }
    }
    assert_eq!(folds[1], 0, "half full");
    let steps: Vec<u64> = folds.windows(2).map(|w| w[1] - w[0]).collect();
    assert!(steps.is_sorted() && steps[6] < CAPACITY / 4, "{folds:?}");
    assert!(steps[6] > CAPACITY / 5, "{folds:?}");
}

/// Checks that every page that was written and not trimmed is either in the cache or in the FTL,
/// but not in both.
fn check_places(ssd: &Ssd, written: &BTreeSet<u64>) {
    for slot in 0..user_slots(ssd) {
        let lpn = Lpn(slot as u32);
        let cached =
            ssd.storage().log().unwrap().addresses().contains(&ssd.storage().location(lpn).0);
        let mapped = !ssd.ftl().lookup(lpn).is_none();
        assert!(!(cached && mapped), "slot {slot} is in both");
        assert_eq!(cached || mapped, written.contains(&slot), "slot {slot}");
    }
    ssd.ftl().check_invariants().unwrap();
}

fn mixed(ssd: &mut Ssd, seed: u64, written: &mut BTreeSet<u64>) -> Vec<Completion> {
    let user = user_slots(ssd);
    let mut random = Prng::new(seed);
    let mut all = Vec::new();
    for burst in 0..6 {
        all.extend(closed_loop(ssd, 1 + 8 * burst, 300, |_| {
            let slot = random.below(user - 8);
            match random.below(20) {
                0..=1 => command(Operation::Flush, 0, 0, 0),
                2..=9 => read(slot, 1 + random.below(8) as u32),
                10 => {
                    written.insert(slot);
                    Command { length: 512, ..write(slot, 1) }
                }
                _ => {
                    let slots = 1 + random.below(8);
                    written.extend(slot..slot + slots);
                    write(slot, slots as u32)
                }
            }
        }));
        // Deallocations run alone because they would otherwise overtake writes that wait for the
        // buffer.
        for _ in 0..10 {
            let slot = random.below(user - 8);
            written.retain(|s| !(slot..slot + 8).contains(s));
            alone(ssd, command(Operation::Trim, slot, 8, 0));
        }
        let pause = random.below(40_000);
        let until = ssd.now() + Nanos::from_micros(pause);
        ssd.idle_until(until);
    }
    all
}

#[test]
fn every_page_is_stored_once_and_a_restored_drive_continues_identically() {
    let off = ("write_cache = true", "write_cache = false");
    for changes in [&SLC[..], &IN_FRONT[..], &[SLC[0], off], &[IN_FRONT[0], common::PLACING[0]]] {
        let mut ssd = drive(changes);
        precondition(&mut ssd, 1);
        let mut written: BTreeSet<u64> = (0..user_slots(&ssd)).collect();
        for seed in 0..4 {
            mixed(&mut ssd, seed, &mut written);
            let saved = ssd.save(Vec::new()).unwrap();
            let mut restored = drive(changes);
            mixed(&mut restored, 99, &mut BTreeSet::new());
            restored.restore_from(&mut &saved[..]).unwrap();
            assert_eq!(restored.save(Vec::new()).unwrap(), saved, "saving takes all of it");
            let mut other = written.clone();
            let expected = mixed(&mut ssd, 50 + seed, &mut written);
            assert_eq!(mixed(&mut restored, 50 + seed, &mut other), expected);
            assert_eq!(restored.counters(), ssd.counters());
            check_places(&ssd, &written);
        }
        let count = slc(&ssd);
        assert!(count.folds > 0 && count.coalesced > 0 && count.trimmed > 0, "{count:?}");
    }
}

#[test]
fn a_purge_empties_it() {
    let mut ssd = drive(&SLC);
    stream_in(&mut ssd, 0, 40);
    let before = slc(&ssd);
    ssd.purge();
    let after = slc(&ssd);
    assert_eq!((after.held, after.writes), (0, before.writes));
    assert_eq!(alone(&mut ssd, read(0, 1)), CONTROLLER + LINK_COMMAND + LINK_SLOT);
    let done = stream_in(&mut ssd, 0, 80);
    assert_near(rate(&done, 40, 62), program_rate(200.0), "after the purge");
    idle(&mut ssd, 500);
    assert_eq!(ssd.ftl().mapped_slots(), 80 * 16);
}

fn refusal(change: (&str, &str)) -> String {
    let text = common::DRIVE.replace(SLC[0].0, SLC[0].1).replace(change.0, change.1);
    device_file::read(&text, "test.toml", 1).unwrap_err().to_string()
}

#[test]
fn invalid_sizes_are_rejected_with_their_line() {
    let small = refusal(("size = \"4 MiB\"", "size = \"32 KiB\""));
    assert!(
        small.starts_with("test.toml:40: size: size is 32 KiB; it must be 64 KiB (a page"),
        "{small}"
    );
    let large = refusal(("size = \"4 MiB\"", "size = \"41 MiB\""));
    assert!(large.contains("to 40 MiB (the user capacity)"), "{large}");
    assert!(refusal(("read = \"25 us\"", "read = \"0 us\"")).contains("read must be above zero"));
    assert!(refusal(("size = \"4 MiB\"", "")).contains("size"));
    let unknown = refusal(("program = \"200 us\"", "program = \"200 us\"\nfold_att = \"9 %\""));
    assert!(unknown.contains("fold_att") && unknown.contains("fold_at"), "{unknown}");
}

/// Returns a drive with a dynamic cache of `mib` MiB. The flash of `DRIVE` has two bits per cell.
fn dynamic(mib: u32, rest: &str) -> Ssd {
    let section = format!(
        "[slc_cache]\nsize = \"{mib} MiB\"\nprogram = \"200 us\"\nread = \"25 us\"\n\
         dynamic = true\n{rest}\n[link]"
    );
    drive(&[("[link]", &section)])
}

fn fill(ssd: &mut Ssd, slots: std::ops::Range<u64>) -> SlcCounters {
    slots.for_each(|slot| ssd.fast_forward(&write(slot, 1)));
    ssd.end_fast_forward();
    ssd.ftl().check_invariants().unwrap();
    slc(ssd)
}

#[test]
fn a_dynamic_cache_takes_all_free_flash_and_gives_it_back() {
    let mut ssd = dynamic(20, "");
    let user = user_slots(&ssd);
    assert_eq!(user, 10_240);
    let full = fill(&mut ssd, 0..user / 2);
    assert_eq!((full.held, full.bypassed, full.folds), (user / 2, 0, 0), "half, at one bit of two");
    // Each additional cached slot also requires a slot in the main flash. The cache returns main
    // flash space by folding, one program unit of four slots at a time.
    let end = fill(&mut ssd, user / 2..user);
    assert_eq!(end.bypassed, user / 2);
    assert!(end.folds.abs_diff(user / 2) < 4, "{}", end.folds);
    assert!(ssd.ftl().mapped_slots() + end.held == user && end.held < 4);
}

#[test]
fn writes_go_past_a_smaller_dynamic_cache_until_the_rest_is_full() {
    let mut ssd = dynamic(8, "");
    let (cache, user) = (2048, 10_240);
    let direct = fill(&mut ssd, 0..user - cache);
    assert_eq!((direct.held, direct.bypassed, direct.folds), (cache, user - 2 * cache, 0));
    let end = fill(&mut ssd, user - cache..user);
    assert!(end.folds.abs_diff(cache) < 4, "{}", end.folds);
}

#[test]
fn data_that_are_folded_stay_in_order_on_flash() {
    let mut ssd = dynamic(8, "");
    let user = user_slots(&ssd);
    fill(&mut ssd, 0..user);
    idle(&mut ssd, 2000);
    let at = |slot: u64| ssd.ftl().lookup(Lpn(slot as u32)).0;
    let in_a_row = (1..user).filter(|&slot| at(slot) == at(slot - 1) + 1).count() as u64;
    assert!(in_a_row * 100 > user * 85, "{in_a_row} of {user}");
}

#[test]
fn folding_takes_the_time_of_the_firmware() {
    let mut ssd = dynamic(20, "fold_time = \"400 us\"");
    let half = user_slots(&ssd) / 2;
    fill(&mut ssd, 0..half);
    // The drive folds one slot for each written slot, and mapping takes no time.
    let done = stream_in(&mut ssd, half, 200);
    assert_near(rate(&done, 40, 180), 4096.0 / 400.0, "while the cache is folded");
}

#[test]
fn a_dynamic_cache_that_is_not_passed_by_folds_two_slots_for_each() {
    let mut ssd = dynamic(20, "bypass = false");
    let half = user_slots(&ssd) / 2;
    fill(&mut ssd, 0..half);
    let more = fill(&mut ssd, half..half + 1000);
    assert_eq!((more.bypassed, more.folds), (0, 2000));
    assert_eq!(more.held, half - 1000);
}

#[test]
fn a_full_drive_leaves_the_static_part_of_a_dynamic_cache() {
    let mut ssd = dynamic(20, "static_size = \"1 MiB\"");
    let user = user_slots(&ssd);
    fill(&mut ssd, 0..user);
    idle(&mut ssd, 2000);
    assert_eq!((slc(&ssd).held, ssd.ftl().mapped_slots()), (0, user));
    let before = slc(&ssd);
    let after = fill(&mut ssd, 0..300);
    assert!(after.writes - before.writes >= 256, "what is overwritten is free again");
    assert!(after.held >= 256 && after.held <= 300);
}

#[test]
fn what_a_dynamic_cache_may_say() {
    let keys = "size = \"4 MiB\"\nprogram = \"200 us\"\nread = \"25 us\"\n";
    for (more, what) in [
        ("static_size = \"1 MiB\"", "needs dynamic"),
        ("dynamic = true\nstatic_size = \"5 MiB\"", "more than size"),
        ("dynamic = true\nfold_at = \"50 %\"", "fixed size"),
    ] {
        common::assert_section_refused("slc_cache", &format!("{keys}{more}"), "drive.toml", what);
    }
}
