//! Tests Flexible Data Placement, with one test for each rule of the standard.

use crate::common::{alone, drive, precondition, user_slots, write};
use writecliff_base::{Bytes, Nanos, Prng, SECTOR_BYTES, StreamId};
use writecliff_host_interface::placement::{DataPlacement, FdpEventType, Isolation, Refusal};
use writecliff_ssd::data_placement::events::LOG_EVENTS;
use writecliff_ssd::{Command, Drive, Ssd};

/// Logical blocks per reclaim unit: 16 pages of 16 KiB on 4 dies.
const UNIT_BLOCKS: u64 = 16 * 4 * 32;

fn with(section: &str, more: &[(&str, &str)]) -> Ssd {
    let section = format!("[data_placement]\ninterface = \"nvme-fdp\"\n{section}\n[controller]");
    let changes: Vec<_> = more.iter().copied().chain([("[controller]", &section[..])]).collect();
    drive(&changes)
}

fn fdp() -> Ssd {
    with("", &[])
}

const SHARED: (&str, &str) = ("gc_destination = \"per-stream\"", "gc_destination = \"shared\"");
const REJOIN: (&str, &str) = ("gc_destination = \"per-stream\"", "gc_destination = \"host-unit\"");

fn write_to(ssd: &mut Ssd, id: u16, slot: u64, slots: u32) {
    alone(ssd, Command { stream: StreamId(id), ..write(slot, slots) });
}

fn happened(ssd: &mut Ssd, kind: FdpEventType) -> u64 {
    ssd.data_placement_status().unwrap().fdp.unwrap().events[kind as usize]
}

fn available(ssd: &mut Ssd, id: usize) -> u64 {
    ssd.administration().fdp_handle_status().unwrap()[id].available.0 / SECTOR_BYTES
}

#[test]
fn the_configuration_matches_the_device_file() {
    use Isolation::{Initially, Persistently};
    let mut ssd = with("handles = [1, 3]", &[]);
    let c = ssd.administration().fdp_configuration().unwrap();
    assert_eq!((c.rgif, c.reclaim_groups, c.placement_handles.len(), c.time_limit_s), (0, 1, 2, 0));
    assert_eq!((c.reclaim_unit.0, c.volatile_cache), (UNIT_BLOCKS * 512, true));
    assert_eq!(c.placement_handles, [1, 3]);
    assert_eq!(c.handles, [Persistently; 4]);
    assert_eq!([0, 1, 2, 3].map(|handle| c.specifies(handle)), [false, true, false, true]);
    let per_handle = "gc_destination = \"per-handle\"\nisolated_streams = [1, 3]";
    let kinds = |to| {
        let mut ssd = with("", &[("gc_destination = \"per-stream\"", to)]);
        ssd.administration().fdp_configuration().unwrap().handles
    };
    assert_eq!(kinds("gc_destination = \"shared\""), [Initially; 4]);
    assert_eq!(kinds("gc_destination = \"host-unit\""), [Persistently; 4]);
    assert_eq!(kinds(per_handle), [Initially, Persistently, Initially, Persistently]);
}

#[test]
fn identifiers_go_through_the_namespaces_list() {
    let mut ssd = with("handles = [2, 0]", &[]);
    assert_eq!(
        (ssd.storage().routed(0), ssd.storage().routed(1)),
        (Some(StreamId(2)), Some(StreamId(0)))
    );
    write_to(&mut ssd, 1, 0, 1);
    let status = ssd.administration().fdp_handle_status().unwrap();
    assert_eq!((status[1].placement_id, status[1].handle), (1, 0));
    assert_eq!(status[1].available.0 / SECTOR_BYTES, UNIT_BLOCKS - 8);
    assert_eq!(status[0].available.0 / SECTOR_BYTES, UNIT_BLOCKS);
}

#[test]
fn available_writes_count_down_and_begin_anew_with_the_next_unit() {
    let mut ssd = fdp();
    assert_eq!(available(&mut ssd, 2), UNIT_BLOCKS);
    write_to(&mut ssd, 2, 0, 100);
    assert_eq!(available(&mut ssd, 2), UNIT_BLOCKS - 800);
    write_to(&mut ssd, 2, 100, 156);
    assert_eq!(available(&mut ssd, 2), UNIT_BLOCKS, "full: the handle references an empty unit");
    write_to(&mut ssd, 2, 256, 3);
    assert_eq!(available(&mut ssd, 2), UNIT_BLOCKS - 24);
    assert_eq!(happened(&mut ssd, FdpEventType::ImplicitlyModified), 0, "the host filled it");
}

#[test]
fn an_update_abandons_the_unit_and_logs_one_event() {
    let mut ssd = fdp();
    ssd.administration().fdp_enable_events(1, &[FdpEventType::NotFullyWritten], true).unwrap();
    write_to(&mut ssd, 1, 0, 10);
    write_to(&mut ssd, 3, 20, 10);
    assert_eq!(ssd.administration().fdp_update(&[1]), Ok(1));
    assert_eq!(available(&mut ssd, 1), UNIT_BLOCKS);
    assert_eq!(available(&mut ssd, 3), UNIT_BLOCKS - 80, "others keep their unit");
    assert_eq!(ssd.administration().fdp_update(&[1, 1]), Ok(0), "an empty unit needs no other");
    assert_eq!(ssd.administration().fdp_update(&[3]), Ok(1));
    let events = ssd.administration().fdp_events(true).unwrap();
    assert_eq!(events.len(), 1, "they are not enabled for handle 3");
    assert_eq!((events[0].kind.code(), events[0].placement_id), (0, Some(1)));
    assert_eq!(events[0].handle, Some(1));
    assert_eq!(happened(&mut ssd, FdpEventType::NotFullyWritten), 2, "but it happened twice");
    let status = ssd.data_placement_status().unwrap().fdp.unwrap();
    assert_eq!(status.abandoned_bytes, 2 * (256 - 12) * 4096, "10 slots fill 3 pages of 4");
    ssd.quiesce();
    ssd.ftl().check_invariants().unwrap();
    // The old data are still readable, and new data go to other locations.
    let unit = |ssd: &Ssd, slot| {
        let ppa = ssd.ftl().lookup(writecliff_base::Lpn(slot));
        ssd.ftl().geometry().reclaim_unit_of(ppa)
    };
    let before = unit(&ssd, 9);
    write_to(&mut ssd, 1, 40, 1);
    assert_ne!(unit(&ssd, 40), before);
}

#[test]
fn invalid_identifiers_of_an_update_change_nothing() {
    let mut ssd = fdp();
    write_to(&mut ssd, 1, 0, 10);
    for ids in [&[1_u16, 4][..], &[], &[0, 1, 2, 3, 0]] {
        assert!(matches!(ssd.administration().fdp_update(ids), Err(Refusal::InvalidField(_))));
    }
    assert_eq!(available(&mut ssd, 1), UNIT_BLOCKS - 80);
    assert!(ssd.administration().fdp_enable_events(4, &FdpEventType::ALL, true).is_err());
}

#[test]
fn a_drive_that_is_updated_all_the_time_still_works() {
    let mut ssd = fdp();
    precondition(&mut ssd, 1);
    let (user, mut random) = (user_slots(&ssd), Prng::new(1));
    for round in 0..600 {
        write_to(&mut ssd, round % 4, random.below(user), 1);
        ssd.administration().fdp_update(&[round % 4]).unwrap();
    }
    ssd.quiesce();
    ssd.ftl().check_invariants().unwrap();
    assert_eq!(happened(&mut ssd, FdpEventType::NotFullyWritten), 600);
}

#[test]
fn a_write_with_an_invalid_identifier_goes_to_handle_0_and_is_an_event() {
    let mut ssd = with("handles = [3, 1]", &[]);
    ssd.administration().fdp_enable_events(0, &[FdpEventType::InvalidPlacementId], true).unwrap();
    write_to(&mut ssd, 2, 0, 2);
    assert_eq!(available(&mut ssd, 0), UNIT_BLOCKS - 16);
    let events = ssd.administration().fdp_events(true).unwrap();
    assert_eq!((events.len(), events[0].kind.code()), (1, 3));
    assert_eq!((events[0].placement_id, events[0].handle), (Some(2), Some(3)));
    let status = ssd.data_placement_status().unwrap();
    assert_eq!((status.overflow_writes, status.overflow_bytes), (1, 8192));
    ssd.administration().fdp_enable_events(0, &[FdpEventType::InvalidPlacementId], false).unwrap();
    write_to(&mut ssd, 700, 0, 1);
    assert_eq!(ssd.administration().fdp_events(true).unwrap().len(), 1);
    assert_eq!(happened(&mut ssd, FdpEventType::InvalidPlacementId), 2);
}

#[test]
fn the_status_has_the_log_of_host_and_controller() {
    let mut ssd = with("handles = [0, 2]", &[SHARED]);
    write_to(&mut ssd, 9, 0, 1);
    assert!(ssd.data_placement_status().unwrap().fdp.unwrap().log.is_empty(), "none is enabled");
    ssd.administration().fdp_enable_all_events();
    assert_eq!(ssd.administration().fdp_enabled_events(1).unwrap(), FdpEventType::ALL);
    precondition(&mut ssd, 2);
    write_to(&mut ssd, 9, 0, 1);
    let log = ssd.data_placement_status().unwrap().fdp.unwrap().log;
    let both = [
        ssd.administration().fdp_events(true).unwrap(),
        ssd.administration().fdp_events(false).unwrap(),
    ];
    assert_eq!(both.map(|list| list.len()), [1, LOG_EVENTS]);
    assert_eq!(log.len(), 1 + LOG_EVENTS);
    assert_eq!(log[0].kind, FdpEventType::InvalidPlacementId);
    drive(&[]).administration().fdp_enable_all_events();
}

#[test]
fn the_log_keeps_the_newest() {
    let mut ssd = fdp();
    ssd.administration().fdp_enable_events(0, &FdpEventType::ALL, true).unwrap();
    assert_eq!(ssd.administration().fdp_enabled_events(0).unwrap(), FdpEventType::ALL);
    assert!(ssd.administration().fdp_enabled_events(1).unwrap().is_empty());
    (0..100).for_each(|n| write_to(&mut ssd, 100 + n, 0, 1));
    let events = ssd.administration().fdp_events(true).unwrap();
    let ids: Vec<_> = events.iter().map(|event| event.placement_id.unwrap()).collect();
    assert_eq!(events.len(), LOG_EVENTS);
    assert_eq!(ids, (200 - LOG_EVENTS as u16..200).collect::<Vec<_>>());
    assert!(events.is_sorted_by_key(|event| event.time));
    assert!(ssd.administration().fdp_events(false).unwrap().is_empty());
}

/// Overwrites slots at random with placement identifiers 0 to 3.
fn churn(ssd: &mut Ssd, count: u64) {
    let (user, mut random) = (user_slots(ssd), Prng::new(5));
    for _ in 0..count {
        let stream = StreamId(random.below(4) as u16);
        ssd.fast_forward(&Command { stream, ..write(random.below(user), 1) });
    }
    ssd.end_fast_forward();
}

#[test]
fn media_are_reallocated_for_initially_isolated_handles_only() {
    let mut isolated = fdp();
    precondition(&mut isolated, 1);
    assert_eq!(happened(&mut isolated, FdpEventType::MediaReallocated), 0);

    let mut ssd = with("", &[SHARED]);
    (0..4).for_each(|id| {
        ssd.administration().fdp_enable_events(id, &FdpEventType::ALL, true).unwrap();
    });
    precondition(&mut ssd, 0);
    churn(&mut ssd, 20_000);
    let counted = happened(&mut ssd, FdpEventType::MediaReallocated);
    assert!(counted > LOG_EVENTS as u64, "{counted}");
    assert!(counted <= ssd.ftl().counters().collections);
    let events = ssd.administration().fdp_events(false).unwrap();
    assert_eq!(events.len(), LOG_EVENTS);
    assert!(events.iter().all(|e| e.kind.code() == 0x80 && e.moved.unwrap() >= Bytes(4096)));
    assert!(events.iter().any(|e| e.placement_id != events[0].placement_id));
    // Each event is reported once, so reading the log again returns no new events.
    assert_eq!(ssd.administration().fdp_events(false).unwrap(), events);
    assert_eq!(happened(&mut ssd, FdpEventType::MediaReallocated), counted);
}

#[test]
fn relocated_data_that_fill_the_hosts_unit_modify_its_handle_implicitly() {
    let mut ssd = with("", &[REJOIN]);
    precondition(&mut ssd, 0);
    churn(&mut ssd, 20_000);
    assert!(happened(&mut ssd, FdpEventType::ImplicitlyModified) > 0);
    assert_eq!(happened(&mut ssd, FdpEventType::MediaReallocated), 0);
}

#[test]
fn statistics_are_the_counters_of_the_drive() {
    let mut ssd = fdp();
    precondition(&mut ssd, 1);
    let (s, c) = (ssd.administration().fdp_statistics().unwrap(), ssd.counters());
    assert_eq!((s.host_bytes, s.media_bytes), (c.host_write_bytes, c.nand_write_bytes));
    assert_eq!(
        s.media_bytes - s.host_bytes,
        c.gc_moved_bytes + c.wear_moved_bytes + c.padding_bytes
    );
    let erases: u64 = ssd.ftl().wear().erases.iter().map(|&n| u64::from(n)).sum();
    assert_eq!(s.erased_bytes, erases * UNIT_BLOCKS * 512);
    assert!(s.erased_bytes > 0);
}

#[test]
fn a_reset_modifies_handles_only_where_power_loss_would() {
    let mut ssd = fdp();
    ssd.administration().fdp_enable_events(2, &[FdpEventType::ResetModifiedHandles], true).unwrap();
    ssd.controller_reset();
    assert!(ssd.administration().fdp_events(true).unwrap().is_empty(), "nothing was written");
    write_to(&mut ssd, 1, 0, 5);
    ssd.controller_reset();
    let events = ssd.administration().fdp_events(true).unwrap();
    assert_eq!((events.len(), events[0].kind.code()), (1, 2));
    assert_eq!((events[0].placement_id, events[0].handle), (None, None));
    assert_eq!(available(&mut ssd, 1), UNIT_BLOCKS);

    let mut protected =
        with("", &[("power_loss_protection = false", "power_loss_protection = true")]);
    write_to(&mut protected, 1, 0, 5);
    protected.controller_reset();
    assert_eq!(available(&mut protected, 1), UNIT_BLOCKS - 40);
    assert_eq!(happened(&mut protected, FdpEventType::ResetModifiedHandles), 0);
}

const LIMITED: &str = "time_limit = \"10 s\"";
const LIMIT: Nanos = Nanos::from_secs(10);

/// Leaves the drive idle until `time`, then writes a slot.
fn write_at(ssd: &mut Ssd, time: Nanos, id: u16, slot: u64) {
    ssd.idle_until(time);
    write_to(ssd, id, slot, 1);
}

#[test]
fn a_unit_that_is_open_for_too_long_is_ended_at_the_limit() {
    let mut ssd = with(LIMITED, &[]);
    assert_eq!(ssd.administration().fdp_configuration().unwrap().time_limit_s, 10);
    (0..4).for_each(|id| {
        ssd.administration().fdp_enable_events(id, &FdpEventType::ALL, true).unwrap();
    });
    write_to(&mut ssd, 1, 0, 1);
    // The data arrived slightly before the write completed, and the unit has been open since the
    // data arrived.
    let end = ssd.now() + LIMIT;
    write_at(&mut ssd, Nanos::from_secs(4), 2, 100);
    write_at(&mut ssd, end - Nanos(1_000_000), 1, 1);
    assert_eq!(available(&mut ssd, 1), UNIT_BLOCKS - 16, "a millisecond before");
    assert_eq!(happened(&mut ssd, FdpEventType::TimeLimitExceeded), 0);
    write_at(&mut ssd, end, 1, 2);
    assert_eq!(available(&mut ssd, 1), UNIT_BLOCKS - 8, "in another unit");
    assert_eq!(available(&mut ssd, 2), UNIT_BLOCKS - 8, "the other handle has some seconds left");
    let events = ssd.administration().fdp_events(true).unwrap();
    assert_eq!((events.len(), events[0].kind.code()), (1, 1));
    assert_eq!((events[0].placement_id, events[0].handle), (Some(1), Some(1)));
    assert!(events[0].time <= end && events[0].time + Nanos(100_000) > end);
    assert!(ssd.data_placement_status().unwrap().fdp.unwrap().abandoned_bytes > 0);
    ssd.quiesce();
    ssd.ftl().check_invariants().unwrap();
}

#[test]
fn status_shows_the_remaining_time_and_units_closed_meanwhile() {
    let mut ssd = with(LIMITED, &[]);
    let left = |ssd: &mut Ssd| -> Vec<u32> {
        ssd.administration()
            .fdp_handle_status()
            .unwrap()
            .iter()
            .map(|row| row.time_remaining_s)
            .collect()
    };
    assert_eq!(left(&mut ssd), [10; 4], "nothing is written: all of it");
    ssd.administration().fdp_enable_events(0, &[FdpEventType::TimeLimitExceeded], true).unwrap();
    write_to(&mut ssd, 3, 0, 1);
    write_at(&mut ssd, Nanos::from_secs(6), 0, 1);
    assert_eq!(left(&mut ssd), [10, 10, 10, 4]);
    ssd.idle_until(Nanos::from_secs(9));
    assert_eq!(left(&mut ssd), [8, 10, 10, 2]);
    ssd.idle_until(Nanos::from_secs(60));
    assert_eq!(left(&mut ssd), [10; 4]);
    assert_eq!(happened(&mut ssd, FdpEventType::TimeLimitExceeded), 2);
    // The event is not enabled for handle 3. The event for handle 0 has the time when the handle
    // reached its limit.
    let events = ssd.administration().fdp_events(true).unwrap();
    assert_eq!((events.len(), events[0].handle), (1, Some(0)));
    assert!(events[0].time > Nanos::from_secs(16) && events[0].time < Nanos::from_secs(17));
    ssd.idle_until(Nanos::from_secs(600));
    assert_eq!(happened(&mut ssd, FdpEventType::TimeLimitExceeded), 2, "empty units have no limit");
}

#[test]
fn a_unit_that_was_filled_in_time_is_no_event_and_the_next_has_all_of_it() {
    let mut ssd = with(LIMITED, &[]);
    write_to(&mut ssd, 1, 0, 1);
    ssd.idle_until(Nanos::from_secs(9));
    write_to(&mut ssd, 1, 1, 255); // This write fills the unit.
    write_to(&mut ssd, 1, 256, 1);
    ssd.idle_until(Nanos::from_secs(18));
    assert_eq!(available(&mut ssd, 1), UNIT_BLOCKS - 8);
    assert_eq!(happened(&mut ssd, FdpEventType::TimeLimitExceeded), 0);
    ssd.idle_until(Nanos::from_secs(20));
    assert_eq!(happened(&mut ssd, FdpEventType::TimeLimitExceeded), 1);
    assert_eq!(available(&mut ssd, 1), UNIT_BLOCKS);
}

#[test]
fn a_restored_drive_remembers_since_when_units_are_open() {
    let mut ssd = with(LIMITED, &[]);
    write_to(&mut ssd, 1, 0, 1);
    ssd.idle_until(Nanos::from_secs(9));
    let saved = ssd.save(Vec::new()).unwrap();
    let mut restored = with(LIMITED, &[]);
    restored.restore_from(&mut &saved[..]).unwrap();
    for ssd in [&mut ssd, &mut restored] {
        write_at(ssd, Nanos::from_secs(11), 1, 7);
        assert_eq!(happened(ssd, FdpEventType::TimeLimitExceeded), 1);
        assert_eq!(available(ssd, 1), UNIT_BLOCKS - 8);
    }
    assert_eq!(ssd.save(Vec::new()).unwrap(), restored.save(Vec::new()).unwrap());
}

#[test]
fn a_restored_drive_keeps_events_and_what_is_not_yet_one() {
    let mut ssd = with("", &[SHARED]);
    (0..4).for_each(|id| {
        ssd.administration().fdp_enable_events(id, &FdpEventType::ALL, true).unwrap();
    });
    precondition(&mut ssd, 0);
    write_to(&mut ssd, 9, 0, 1);
    churn(&mut ssd, 12_000);
    let saved = ssd.save(Vec::new()).unwrap();
    let mut restored = with("", &[SHARED]);
    churn(&mut restored, 5_000);
    restored.restore_from(&mut &saved[..]).unwrap();
    assert_eq!(restored.save(Vec::new()).unwrap(), saved);
    for of_host in [true, false] {
        let events = restored.administration().fdp_events(of_host).unwrap();
        assert!(!events.is_empty());
        assert_eq!(events, ssd.administration().fdp_events(of_host).unwrap());
    }
    assert_eq!(restored.data_placement_status(), ssd.data_placement_status());
}
