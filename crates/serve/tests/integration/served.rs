//! Tests of the interface to the transports.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use writecliff_base::{Nanos, StreamId};
use writecliff_host_interface::Operation;
use writecliff_runner::Counters;
use writecliff_serve::{Done, Failure, Refusal, Replies, Request, Served, Session, Tag, Timing};

use crate::support::{CAPACITY, REAL, drive, drive_with, eventually, serve};

/// Collects completed requests.
#[derive(Default)]
pub(crate) struct Kept(Mutex<Vec<(Done, Instant)>>);

impl Replies for Kept {
    fn completed(&self, done: &Done) {
        self.0.lock().unwrap().push((*done, Instant::now()));
    }

    fn send(&self) {}

    fn sever(&self) {}
}

impl Kept {
    pub(crate) fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    fn tags(&self) -> Vec<u64> {
        self.0.lock().unwrap().iter().map(|(done, _)| done.request.tag.number()).collect()
    }
}

fn request(tag: u64, operation: Operation, offset: u64, length: u64) -> Request {
    Request {
        tag: Tag::Number(tag),
        operation,
        offset,
        length,
        stream: StreamId::DEFAULT,
        durable: false,
        is_zeros: false,
    }
}

pub(crate) fn session(served: &Served) -> (Session, Arc<Kept>) {
    let replies = Arc::new(Kept::default());
    (served.session(Arc::clone(&replies) as Arc<dyn Replies>), replies)
}

/// Submits a request, waits for its completion, and returns the wall time that it took.
fn run(session: &Session, replies: &Kept, request: Request) -> Duration {
    let (before, start) = (replies.count(), Instant::now());
    session.batch().submit(request, None).unwrap();
    eventually("the request completes", || replies.count() > before);
    replies.0.lock().unwrap()[before].1.duration_since(start)
}

#[test]
fn nothing_completes_before_the_drive_says_so() {
    for slow_down in [1.0, 20.0] {
        let served = serve(drive(), Timing::Real { slow_down });
        let (session, replies) = session(&served);
        run(&session, &replies, request(0, Operation::Write, 0, 1 << 20));
        run(&session, &replies, request(1, Operation::Flush, 0, 0));
        let took = run(&session, &replies, request(2, Operation::Read, 0, 4096));
        let snapshot = served.snapshot();
        let latency = snapshot.operations.0[0].latency.moments().max().unwrap();
        assert!((50_000..150_000).contains(&latency), "a page read and a transfer: {latency} ns");
        assert!(took.as_nanos() as f64 >= latency as f64 * slow_down, "{took:?}");
        assert_eq!(snapshot.lateness.count(), 3);
        assert_eq!(snapshot.operations.0[1].bytes, 1 << 20);
        let drive_time = snapshot.drive_time.0 as f64;
        assert!(drive_time <= snapshot.wall.0 as f64 / slow_down);
        served.stop();
    }
}

#[test]
fn without_timing_requests_complete_when_they_are_submitted() {
    let served = serve(drive(), Timing::Fast);
    let (session, replies) = session(&served);
    for round in 0..4 {
        let mut batch = session.batch();
        for tag in 0..64 {
            let offset = tag * (CAPACITY / 64);
            batch.submit(request(tag, Operation::Write, offset, CAPACITY / 64), None).unwrap();
        }
        drop(batch);
        assert_eq!(replies.count(), 64 * (round + 1));
    }
    let snapshot = served.snapshot();
    assert_eq!(snapshot.counters.host_write_bytes(), 4 * CAPACITY);
    assert_eq!(snapshot.operations.0[1].requests, 256);
    assert_eq!(snapshot.operations.0[1].latency.count(), 0);
    assert_eq!(snapshot.lateness_share(), None);
    assert_eq!(snapshot.drive_time, Nanos::ZERO, "time stands still");
    drop(session);
    served.stop();
    served.into_parts().unwrap_or_else(|_| panic!("in use")).drive.check_invariants().unwrap();
}

#[test]
fn what_the_drive_cannot_do_is_refused() {
    let served = serve(drive(), REAL);
    let (session, replies) = session(&served);
    let mut batch = session.batch();
    for (offset, length) in [(CAPACITY, 512), (CAPACITY - 512, 1024), (u64::MAX - 511, 512)] {
        let refused = batch.submit(request(1, Operation::Read, offset, length), None);
        assert_eq!(refused, Err(Refusal::OutOfRange));
    }
    let unaligned = batch.submit(request(1, Operation::Read, 1, 512), None);
    assert_eq!(unaligned, Err(Refusal::Unaligned));
    let stream = Request { stream: StreamId(4), ..request(1, Operation::Write, 0, 512) };
    assert_eq!(batch.submit(stream, None), Err(Refusal::NoStream));
    drop(batch);
    served.stop();
    let stopped = session.batch().submit(request(1, Operation::Flush, 0, 0), None);
    assert_eq!(stopped, Err(Refusal::Stopped));
    assert_eq!(replies.count(), 0);
}

#[test]
fn a_request_without_bytes_and_one_that_has_failed_complete_too() {
    for timing in [REAL, Timing::Fast] {
        let served = serve(drive(), timing);
        let (session, replies) = session(&served);
        run(&session, &replies, request(7, Operation::Read, 512, 0));
        let failed = request(8, Operation::Write, 0, 4096);
        session.batch().submit(failed, Some(Failure::NoSpace)).unwrap();
        eventually("it completes", || replies.count() == 2);
        assert_eq!(replies.0.lock().unwrap()[1].0.failure, Some(Failure::NoSpace));
        served.stop();
    }
}

/// Tests that a durable write waits for flash only if the cache is volatile.
#[test]
fn durable_writes_wait_for_what_they_need() {
    let protected = "power_loss_protection = true";
    let latencies =
        [drive(), drive_with("power_loss_protection = false", protected)].map(|drive| {
            let served = serve(drive, REAL);
            let (session, replies) = session(&served);
            let durable = Request { durable: true, ..request(1, Operation::Write, 0, 4096) };
            run(&session, &replies, durable);
            served.stop();
            let latency = &served.snapshot().operations.0[1].latency;
            assert_eq!(latency.count(), 1, "the flush is part of the write");
            latency.moments().max().unwrap()
        });
    assert!(latencies[0] > 400_000, "a program takes 400 us: {} ns", latencies[0]);
    assert!(latencies[1] < 100_000, "{} ns", latencies[1]);
}

#[test]
fn large_and_many_requests_are_split_and_wait_their_turn() {
    let served = serve(drive(), REAL);
    let (session, replies) = session(&served);
    let mut batch = session.batch();
    for tag in 0..20_000 {
        batch.submit(request(tag, Operation::Read, tag % 1000 * 4096, 4096), None).unwrap();
    }
    batch.submit(request(20_000, Operation::Read, 0, CAPACITY), None).unwrap();
    batch.submit(request(20_001, Operation::Trim, 0, CAPACITY), None).unwrap();
    drop(batch);
    served.stop(); // The drive completes the outstanding requests.
    assert_eq!(replies.count(), 20_002);
    let mut tags = replies.tags();
    tags.sort_unstable();
    assert!(tags.iter().copied().eq(0..20_002), "each completes once");
}

#[test]
fn sessions_get_their_own_replies() {
    let served = serve(drive(), REAL);
    let all: Vec<_> = (0..8).map(|_| session(&served)).collect();
    std::thread::scope(|scope| {
        for (number, (session, replies)) in all.iter().enumerate() {
            scope.spawn(move || {
                for round in 0..25 {
                    let tag = number as u64 * 100 + round;
                    run(session, replies, request(tag, Operation::Write, tag * 4096, 4096));
                }
            });
        }
    });
    for (number, (_, replies)) in all.iter().enumerate() {
        let first = number as u64 * 100;
        assert!(replies.tags().into_iter().eq(first..first + 25));
    }
    assert_eq!(served.snapshot().sessions, 8);
    assert_eq!(served.snapshot().outstanding, 0);
    served.stop();
}

#[test]
fn trimmed_data_are_gone() {
    let served = serve(drive(), Timing::Fast);
    let (session, replies) = session(&served);
    served.store(0, &[7; 8192]).unwrap();
    run(&session, &replies, request(0, Operation::Write, 0, 8192));
    run(&session, &replies, request(1, Operation::Trim, 4096, 4096));
    let mut data = [1; 8192];
    served.read(0, &mut data).unwrap();
    assert!(data[..4096] == [7; 4096] && data[4096..] == [0; 4096]);
    assert!(served.snapshot().used.0 > 4096);
    served.stop();
}

/// Tests that administration between requests may take time on the drive, and that later requests
/// start after it.
#[test]
fn the_drive_can_be_administered() {
    let served = serve(drive(), REAL);
    let (session, replies) = session(&served);
    run(&session, &replies, request(0, Operation::Write, 0, 1 << 20));
    served.with_drive(|drive| drive.purge());
    run(&session, &replies, request(1, Operation::Read, 0, 4096));
    let snapshot = served.snapshot();
    assert_eq!(snapshot.counters.unmapped_read_bytes(), 4096, "the purged drive holds nothing");
    served.stop();
}

#[test]
fn writes_and_moves_are_told_by_stream_of_the_drive() {
    let section = "[controller]";
    let with = "[data_placement]\ninterface = \"nvme-streams\"\nopen_streams = 2\n\
        overflow = \"release\"\n[controller]";
    for timing in [Timing::Fast, Timing::Real { slow_down: 1.0 }] {
        let served = serve(drive_with(section, with), timing);
        let (session, replies) = session(&served);
        let write = |stream, offset, length| {
            let stream = StreamId(stream);
            let write = Request { stream, ..request(0, Operation::Write, offset, length) };
            run(&session, &replies, write);
        };
        write(9, 0, CAPACITY);
        let blocks = CAPACITY / 4096;
        for pass in 0..24_u64 {
            let scattered = |n: u64| n * 7919 % blocks * 4096;
            for number in pass * 400..(pass + 1) * 400 {
                write(7, scattered(number), 4096);
            }
            write(7, 0, 4 << 20);
        }
        write(11, 0, 1 << 20); // The drive has two streams, so it releases the oldest stream.
        let seen = served.snapshot();
        let of_stream = |(&(number, drive), &(_, bytes)): (&(StreamId, Option<StreamId>), &_)| {
            (number.0, drive.map(|stream| stream.0), bytes)
        };
        let written: Vec<_> = seen.streams.iter().map(of_stream).collect();
        let of_seven = 24 * (400 * 4096 + (4 << 20));
        let expected = [(7, Some(2), of_seven), (9, Some(1), CAPACITY), (11, Some(1), 1 << 20)];
        assert_eq!(written, expected, "{timing:?}");
        let moved = seen.moved.unwrap();
        let all = moved.bytes.iter().sum::<u64>() + moved.mixed_bytes;
        let Counters::Ssd(counted) = served.with_drive(|drive| drive.counters()) else {
            panic!("the counters of another kind");
        };
        assert!(moved.bytes[1] > 0, "the rest of what was filled is moved");
        let of_last_victim = counted.gc_moved_bytes + counted.wear_moved_bytes - all;
        assert!(of_last_victim < 1 << 20, "a reclaim unit is reported once all of it is moved");
        served.stop();
    }
}
