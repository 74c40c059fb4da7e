//! Tests of the events of single requests.

use writecliff_tracefs::{Anomalies, BlockEvent, EventKind, Flags, Operation, Request, Requests};

const FIO: i32 = 10;
const KWORKER: i32 = 20;
const MINUTE_NS: u64 = 60_000_000_000;

fn event(time_ns: u64, kind: EventKind, rwbs: &str, sector: u64, sectors: u32) -> BlockEvent {
    let (operation, flags) = writecliff_tracefs::parse_rwbs(rwbs.as_bytes(), sectors);
    let (thread_id, name, errno) = (FIO, 0, 0);
    BlockEvent { time_ns, kind, operation, flags, sector, sectors, thread_id, name, errno }
}

fn by(thread_id: i32, event: BlockEvent) -> BlockEvent {
    BlockEvent { thread_id, ..event }
}

fn run(events: &[BlockEvent]) -> (Vec<Request>, Anomalies) {
    let mut requests = Requests::new(0, 1 << 40);
    for event in events {
        requests.add(event);
    }
    requests.finish();
    let completed = requests.take().collect();
    (completed, requests.anomalies)
}

use EventKind::{BioComplete, BioQueue, Complete, FrontMerge, Get, Issue, Merge, Requeue};

#[test]
fn the_one_who_asked_is_the_one_who_made_it() {
    let (requests, anomalies) = run(&[
        event(1, Get, "WS", 80, 8),
        by(KWORKER, event(5, Issue, "WS", 80, 8)),
        by(KWORKER, event(9, Complete, "WS", 80, 8)),
    ]);
    assert_eq!(anomalies, Anomalies::default());
    let [request] = requests[..] else { panic!("{requests:?}") };
    assert_eq!((request.event.time_ns, request.issue_ns, request.complete_ns), (1, 5, 9));
    assert_eq!(
        (request.event.thread_id, request.event.sector, request.event.sectors),
        (FIO, 80, 8)
    );
}

#[test]
fn rows_come_in_the_order_in_which_requests_were_made() {
    let (requests, _) = run(&[
        event(1, Get, "R", 8, 8),
        event(2, Get, "R", 16, 8),
        event(3, Issue, "R", 16, 8),
        event(4, Issue, "R", 8, 8),
        event(5, Complete, "R", 16, 8),
        event(6, Complete, "R", 8, 8),
    ]);
    let shown: Vec<_> =
        requests.iter().map(|request| (request.event.sector, request.complete_ns)).collect();
    assert_eq!(shown, [(8, 6), (16, 5)]);
}

#[test]
fn of_two_requests_for_one_sector_the_older_is_done_first() {
    let (requests, _) = run(&[
        event(1, Get, "R", 8, 8),
        event(2, Issue, "R", 8, 8),
        event(3, Get, "R", 8, 8),
        event(4, Issue, "R", 8, 8),
        event(5, Get, "W", 8, 8),
        event(6, Issue, "W", 8, 8),
        event(7, Complete, "W", 8, 8),
        event(8, Complete, "R", 8, 8),
        event(9, Complete, "R", 8, 8),
    ]);
    let shown: Vec<_> =
        requests.iter().map(|request| (request.event.time_ns, request.complete_ns)).collect();
    assert_eq!(shown, [(1, 8), (3, 9), (5, 7)]);
}

#[test]
fn merges_change_what_a_request_covers() {
    let (requests, anomalies) = run(&[
        event(1, Get, "W", 100, 8),
        event(2, FrontMerge, "W", 92, 8),
        event(3, Get, "W", 108, 8),
        event(4, Merge, "W", 108, 8),
        event(5, Issue, "W", 92, 24),
        event(6, Complete, "W", 92, 24),
    ]);
    let [request] = requests[..] else { panic!("{requests:?}") };
    assert_eq!((request.event.time_ns, request.event.sector, request.event.sectors), (1, 92, 24));
    assert_eq!(anomalies, Anomalies { merged: 1, ..Anomalies::default() });
}

#[test]
fn a_request_is_done_when_all_of_it_is() {
    let (requests, _) = run(&[
        event(1, Issue, "R", 0, 24),
        event(2, Complete, "R", 0, 8),
        event(3, Complete, "R", 8, 16),
    ]);
    let [request] = requests[..] else { panic!("{requests:?}") };
    assert_eq!((request.event.sector, request.event.sectors, request.complete_ns), (0, 24, 3));
}

#[test]
fn a_returned_request_is_issued_again() {
    let (requests, anomalies) = run(&[
        event(1, Get, "W", 0, 8),
        event(2, Issue, "W", 0, 8),
        event(3, Requeue, "W", 0, 8),
        event(4, Issue, "W", 0, 8),
        BlockEvent { errno: 5, ..event(5, Complete, "W", 0, 8) },
    ]);
    let [request] = requests[..] else { panic!("{requests:?}") };
    assert_eq!((request.issue_ns, request.complete_ns, request.event.errno), (4, 5, 5));
    assert_eq!(anomalies.requeued, 1);
}

#[test]
fn flushes_are_of_those_who_asked() {
    // The events record a journal commit as the kernel traces it: flush, write, and another flush
    // for FUA.
    let (requests, anomalies) = run(&[
        event(1, Get, "FWFSM", 80, 2),
        by(KWORKER, event(2, Issue, "FF", 0, 0)),
        by(KWORKER, event(3, Complete, "FF", u64::MAX, 0)),
        by(KWORKER, event(4, Issue, "WSM", 80, 2)),
        by(KWORKER, event(5, Complete, "WSM", 80, 2)),
        by(KWORKER, event(6, Issue, "FF", 0, 0)),
        by(KWORKER, event(7, Complete, "FF", u64::MAX, 0)),
        by(KWORKER, event(8, Complete, "WSM", 80, 0)),
        event(10, Get, "FWS", 0, 0),
        by(KWORKER, event(11, Issue, "FF", 0, 0)),
        by(KWORKER, event(12, Complete, "FF", u64::MAX, 0)),
    ]);
    assert_eq!(anomalies, Anomalies::default());
    assert!(requests.iter().all(|request| request.event.thread_id == FIO));
    let shown: Vec<_> =
        requests.iter().map(|request| (request.event.operation, request.complete_ns)).collect();
    let (write, flush) = (Operation::Write, Operation::Flush);
    assert_eq!(shown, [(write, 5), (flush, 3), (flush, 7), (flush, 12)]);
    let all = Flags::PREFLUSH | Flags::FUA | Flags::SYNC | Flags::META;
    assert_eq!(requests[0].event.flags, Flags(all));
}

#[test]
fn devices_without_requests_are_asked_by_bios() {
    let (requests, _) = run(&[
        event(1, BioQueue, "R", 8, 8),
        event(2, BioQueue, "FWS", 0, 0),
        event(3, BioComplete, "FWS", 0, 0),
        event(4, BioComplete, "R", 8, 8),
    ]);
    let shown: Vec<_> = requests
        .iter()
        .map(|request| (request.event.operation, request.issue_ns, request.complete_ns))
        .collect();
    assert_eq!(shown, [(Operation::Read, 1, 4), (Operation::Flush, 2, 3)]);
}

#[test]
fn what_was_open_is_counted() {
    let (requests, anomalies) = run(&[
        event(1, Complete, "R", 8, 8), // Issued before the capture.
        event(2, Complete, "FF", u64::MAX, 0),
        event(3, Get, "R", 16, 8), // This request is never issued.
        event(4, Issue, "W", 24, 8),
        event(5, Issue, "N", 0, 0),
    ]);
    let [request] = requests[..] else { panic!("{requests:?}") };
    assert_eq!((request.event.sector, request.complete_ns), (24, 0));
    let expected =
        Anomalies { unknown_completions: 2, unissued: 1, open: 1, other: 1, ..anomalies };
    assert_eq!(anomalies, expected);
    assert_eq!((anomalies.requeued, anomalies.merged), (0, 0));
}

#[test]
fn a_lost_completion_does_not_hold_up_the_others() {
    let mut requests = Requests::new(0, 1 << 40);
    requests.add(&event(1, Issue, "R", 8, 8)); // The completion event is lost.
    requests.add(&event(2, Issue, "R", 16, 8));
    requests.add(&event(3, Complete, "R", 16, 8));
    assert_eq!(requests.take().count(), 0);
    requests.add(&event(2 * MINUTE_NS, Issue, "R", 8, 8));
    requests.add(&event(2 * MINUTE_NS + 1, Complete, "R", 8, 8));
    let taken: Vec<_> = requests.take().collect();
    let times: Vec<_> = taken.iter().map(|request| request.complete_ns).collect();
    assert_eq!(times, [0, 3, 2 * MINUTE_NS + 1]);
    assert_eq!(requests.anomalies.open, 1);
}

#[test]
fn only_the_part_that_was_asked_for_is_captured() {
    let mut requests = Requests::new(100, 200);
    for sector in [92, 100, 199, 200] {
        requests.add(&event(sector, Issue, "W", sector, 1));
        requests.add(&event(sector, Complete, "W", sector, 1));
    }
    requests.add(&event(300, Issue, "FF", 0, 0));
    requests.add(&event(301, Complete, "FF", 0, 0));
    let shown: Vec<_> =
        requests.take().map(|request| (request.event.operation, request.event.sector)).collect();
    let (write, flush) = (Operation::Write, Operation::Flush);
    assert_eq!(shown, [(write, 100), (write, 199), (flush, 0)]);
    assert_eq!(requests.anomalies, Anomalies::default());
}
