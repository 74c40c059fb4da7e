//! What each scheme assigns.

use super::*;
use crate::trace::{BlockOp, LayOut, Repeats, WriteBack, deaths, synthetic};

fn request(block: u32, count: u32, stream: u16) -> BlockRequest {
    BlockRequest { block, count, op: BlockOp::Write, stream, origin: 0 }
}

fn streams_of(assigner: &mut dyn Assigner, request: &BlockRequest, clock: u32) -> Vec<u16> {
    let mut pieces = Vec::new();
    assigner.write(request, clock, &mut pieces);
    assert_eq!(pieces.iter().map(|piece| piece.count).sum::<u32>(), request.count);
    pieces.iter().flat_map(|p| std::iter::repeat_n(p.stream, p.count as usize)).collect()
}

fn store() -> BlockTrace {
    let store = synthetic::Store {
        table_bytes: 32 << 10,
        chunk_bytes: 16 << 10,
        logged_bytes: 4 << 20,
        seed: 1,
    };
    let events = synthetic::events(&store);
    let capacity_blocks = events.footprint(WriteBack::Immediate).peak_blocks as u32 + 100;
    let repeats = Repeats::Times(2);
    events.lay_out(&LayOut { capacity_blocks, write_back: WriteBack::Immediate, repeats }).unwrap()
}

/// Every scheme covers every write, stays below its number of streams, and repeats itself.
#[test]
fn schemes_are_deterministic_and_keep_to_their_streams() {
    let trace = store();
    let deaths = deaths(&trace);
    for scheme in Scheme::ALL {
        for streams in [1, 2, 3, 8] {
            for bucketing in [Bucketing::Lifetimes, Bucketing::Epochs(100), Bucketing::Powers(10)] {
                let run = || {
                    let mut assigner = scheme.assigner(&trace, streams, bucketing, &deaths);
                    let (mut clock, mut said) = (0, Vec::new());
                    for request in &trace.requests {
                        if request.op == BlockOp::Trim {
                            assigner.trim(request, clock);
                        } else {
                            said.extend(streams_of(&mut *assigner, request, clock));
                            clock += request.count;
                        }
                    }
                    said
                };
                let said = run();
                assert_eq!(said.len() as u64, trace.written_blocks);
                assert!(said.iter().all(|&stream| stream < streams), "{scheme:?}");
                assert_eq!(said, run(), "{scheme:?}");
            }
        }
        assert_eq!(Scheme::named(scheme.name()), Some(scheme));
    }
}

#[test]
fn given_streams_that_the_drive_lacks_are_the_default() {
    let mut given = Given::new(4);
    assert_eq!(streams_of(&mut given, &request(0, 2, 3), 0), [3, 3]);
    assert_eq!(streams_of(&mut given, &request(0, 1, 4), 2), [0]);
}

#[test]
fn sfr_separates_by_frequency_and_keeps_sequences_together() {
    let mut sfr = Sfr::new(1 << 16, 4);
    for n in 0..16 {
        streams_of(&mut sfr, &request(7, 1, 0), n);
    }
    assert_eq!(streams_of(&mut sfr, &request(7, 1, 0), 16), [3]);
    // Chunk 40 is new, so cold; a write that goes on from there is of the same stream, whatever
    // the count of its own chunk.
    assert_eq!(streams_of(&mut sfr, &request(10_240, 256, 0), 17), [0; 256]);
    assert_eq!(streams_of(&mut sfr, &request(10_496, 1, 0), 18), [0]);
    // Ten drive writes later the hot chunk has cooled down.
    assert_eq!(streams_of(&mut sfr, &request(7, 1, 0), 10 << 16), [0]);
}

#[test]
fn multi_queue_promotes_by_powers_of_two_and_demotes_the_idle() {
    let mut queues = MultiQueue::new(1 << 16, 4);
    let seen: Vec<u16> =
        (0..8).map(|n| streams_of(&mut queues, &request(7, 1, 0), 10 * n)[0]).collect();
    assert_eq!(seen, [0, 1, 1, 2, 2, 2, 2, 3]);
    // The lifetime is 10 blocks: while others write, chunk 0 falls back queue by queue.
    for n in 0..40 {
        streams_of(&mut queues, &request(1000 + 256 * n, 1, 0), 100 + 20 * n);
    }
    assert_eq!(streams_of(&mut queues, &request(7, 1, 0), 1000), [1]);
}

#[test]
fn sepbit_infers_from_the_age_of_what_is_overwritten() {
    let mut sepbit = SepBit::new(1 << 12, 8);
    assert_eq!(streams_of(&mut sepbit, &request(0, 16, 0), 0), [0; 16], "new data are long-lived");
    // Segments are 16 blocks: a hot set of 16 is overwritten in turn and teaches the bound.
    for round in 1..40 {
        assert_eq!(streams_of(&mut sepbit, &request(0, 16, 0), 16 * round), [1; 16]);
    }
    streams_of(&mut sepbit, &request(100, 1, 0), 640);
    // 100 was written long before the bound, which is about 32 blocks.
    for round in 41..400 {
        streams_of(&mut sepbit, &request(0, 16, 0), 16 * round);
    }
    assert_eq!(streams_of(&mut sepbit, &request(100, 1, 0), 6400), [0]);
    assert_eq!(streams_of(&mut sepbit, &request(0, 1, 0), 6401), [1]);
}

#[test]
fn the_oracle_puts_what_dies_together_together() {
    // Deaths at 10, 10, 30, 30, never, 12 with epochs of 10 and 4 streams: 3 in turn, and the rest.
    let deaths = [10, 10, 30, 30, crate::trace::NEVER, 12];
    let mut epochs = Oracle::new(&deaths, 4, Bucketing::Epochs(10));
    assert_eq!(streams_of(&mut epochs, &request(0, 6, 0), 0), [1, 1, 3, 3, 3, 1]);
    let lives = [1, 2, 3, 4, 104, 105, 106, 107];
    let mut quantiles = Oracle::new(&lives, 2, Bucketing::Lifetimes);
    assert_eq!(streams_of(&mut quantiles, &request(0, 8, 0), 0), [0, 0, 0, 0, 1, 1, 1, 1]);
    // Lifetimes are 1 (four times) and 100 (four times).
    let mut powers = Oracle::new(&lives, 3, Bucketing::Powers(2));
    assert_eq!(streams_of(&mut powers, &request(0, 8, 0), 0), [0, 0, 0, 0, 2, 2, 2, 2]);
}

#[test]
fn mistagging_hits_its_share_and_never_the_right_stream() {
    let tag = |seed| {
        let mut wrong = MisTag::new(Box::new(Given::new(4)), 0.1, 4, seed);
        (0..20_000).map(|n| streams_of(&mut wrong, &request(n, 1, 2), n)[0]).collect::<Vec<_>>()
    };
    let said = tag(1);
    let missed = said.iter().filter(|&&stream| stream != 2).count();
    assert!((1800..2200).contains(&missed), "{missed} of 20,000");
    assert!([0, 1, 3].iter().all(|other| said.contains(other)));
    assert_eq!(said, tag(1));
    assert_ne!(said, tag(2));
}
