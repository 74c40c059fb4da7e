//! Tests of the stream assignment schemes.

use std::ops::ControlFlow;

use super::*;
use crate::{BlockOp, FileSystem, LayOut, Repeats, deaths, synthetic};

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
    let capacity_blocks = events.footprint(&FileSystem::default(), 1).peak_blocks as u32 + 100;
    let repeats = Repeats::Times(2);
    let file_system = FileSystem::default();
    events
        .lay_out(&LayOut { capacity_blocks, file_system, repeats, copies: 1 }, &mut |_| {
            ControlFlow::Continue(())
        })
        .unwrap()
}

/// Every scheme covers every write, assigns only stream numbers below its stream count, and is
/// deterministic.
#[test]
fn schemes_are_deterministic_and_use_only_their_streams() {
    let trace = store();
    let deaths = deaths(&trace);
    for scheme in Scheme::ALL {
        for streams in [1, 2, 3, 8] {
            for bucketing in [
                Bucketing::Lifetimes,
                Bucketing::Epochs(100),
                Bucketing::Powers(10),
                Bucketing::LeastSpare,
                Bucketing::Given,
            ] {
                let run = || {
                    let mut assigner = scheme.assigner(&trace, streams, bucketing, &deaths);
                    let (mut clock, mut chosen) = (0, Vec::new());
                    for request in &trace.requests {
                        if request.op == BlockOp::Trim {
                            assigner.trim(request, clock);
                        } else {
                            chosen.extend(streams_of(&mut *assigner, request, clock));
                            clock += request.count;
                        }
                    }
                    chosen
                };
                let chosen = run();
                assert_eq!(chosen.len() as u64, trace.written_blocks);
                assert!(chosen.iter().all(|&stream| stream < streams), "{scheme:?}");
                assert_eq!(chosen, run(), "{scheme:?}");
            }
        }
        assert_eq!(Scheme::named(scheme.name()), Some(scheme));
    }
}

#[test]
fn given_streams_beyond_the_drives_fall_back_to_the_default() {
    let mut given = Given { streams: 4 };
    assert_eq!(streams_of(&mut given, &request(0, 2, 3), 0), [3, 3]);
    assert_eq!(streams_of(&mut given, &request(0, 1, 4), 2), [0]);
}

/// Writes `block` `times` times, with `step` blocks between writes on the clock, and returns the
/// streams.
fn rewrite(assigner: &mut dyn Assigner, block: u32, times: u32, from: u32, step: u32) -> Vec<u16> {
    (0..times).map(|n| streams_of(assigner, &request(block, 1, 0), from + step * n)[0]).collect()
}

#[test]
fn sfr_takes_the_logarithm_of_the_count_before_the_write() {
    let mut sfr = Sfr::new(1 << 16, 4);
    // 3 and 8 are the smallest counts whose logarithm exceeds 1 and 2.
    assert_eq!(rewrite(&mut sfr, 7, 10, 0, 1), [0, 0, 0, 1, 1, 1, 1, 1, 2, 2]);
    assert_eq!(rewrite(&mut sfr, 511, 1, 10, 1), [2], "chunks are 2 MiB");
    assert_eq!(rewrite(&mut sfr, 512, 1, 11, 1), [2], "a sequential write keeps its stream");
    assert_eq!(rewrite(&mut sfr, 515, 1, 12, 1), [0]);
}

#[test]
fn sfr_halves_counts_with_every_whole_period() {
    let mut sfr = Sfr::new(1 << 16, 4);
    rewrite(&mut sfr, 7, 16, 0, 0);
    // After slightly less than 64 MiB, the count is still 17 because it has not decayed.
    assert_eq!(rewrite(&mut sfr, 7, 1, 16_383, 0), [2]);
    // After two periods, the count is 17 / 4 + 1 = 5, but the write itself still uses the old
    // stream.
    assert_eq!(rewrite(&mut sfr, 7, 2, 16_383 + 2 * 16_384, 0), [2, 1]);
    // After 40 periods, only the latest write counts.
    assert_eq!(rewrite(&mut sfr, 7, 2, 42 * 16_384 + 16_383, 0), [1, 0]);
}

#[test]
fn sfr_keeps_sequential_writes_in_one_stream() {
    let mut sfr = Sfr::new(1 << 16, 4);
    rewrite(&mut sfr, 10_752, 20, 0, 0);
    // Chunk 20 is new and therefore cold, and a write that continues from chunk 20 retains its
    // stream although the next chunk is hot.
    assert_eq!(streams_of(&mut sfr, &request(10_240, 512, 0), 17), [0; 512]);
    assert_eq!(rewrite(&mut sfr, 10_752, 1, 18, 0), [0]);
    assert_eq!(rewrite(&mut sfr, 10_760, 1, 19, 0), [3]);
}

#[test]
fn multi_queue_promotes_by_powers_of_two() {
    let mut queues = MultiQueue::new(1 << 16, 4);
    let seen = rewrite(&mut queues, 7, 18, 0, 10);
    assert_eq!(seen, [0, 0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3]);
    // Chunks are 1 MiB, so a request across a chunk boundary is split between the streams of both
    // chunks.
    assert_eq!(streams_of(&mut queues, &request(255, 2, 0), 0), [3, 0]);
}

#[test]
fn multi_queue_demotes_idle_chunks_stepwise_and_promotes_them_again() {
    let mut queues = MultiQueue::new(1 << 16, 4);
    rewrite(&mut queues, 7, 8, 0, 1);
    // The hottest chunk is rewritten on every access, so its lifetime is one access. After two
    // accesses to other chunks, the hottest chunk has expired and moves to queue 2. After two more
    // accesses, the hottest chunk moves to queue 1.
    let idle = |queues: &mut MultiQueue, from: u32, n: u32| {
        (from..from + n).for_each(|chunk| {
            rewrite(queues, 256 * chunk, 1, 0, 0);
        });
    };
    let mut fresh = MultiQueue::new(1 << 16, 4);
    rewrite(&mut fresh, 7, 8, 0, 1);
    idle(&mut fresh, 1, 1);
    assert_eq!(rewrite(&mut fresh, 7, 1, 0, 0), [3]);
    idle(&mut queues, 1, 2);
    // An expired chunk retains its count, so one write in the lower queue promotes the chunk again.
    assert_eq!(rewrite(&mut queues, 7, 2, 0, 0), [2, 3]);
    idle(&mut queues, 10, 4);
    assert_eq!(rewrite(&mut queues, 7, 2, 0, 0), [1, 3]);
}

#[test]
fn sepbit_classifies_writes_by_the_age_of_the_overwritten_data() {
    let mut sepbit = SepBit::new(1 << 12, 8);
    assert_eq!(streams_of(&mut sepbit, &request(0, 2048, 0), 0), [0; 2048], "new data");
    // The workload overwrites a hot set of one segment's size cyclically. Initially, all data are
    // younger than the age bound. The age bound then becomes the lifespan of a segment until 15 %
    // of the log (about 360 blocks) is invalid.
    let hot = |sepbit: &mut SepBit, from: u32, rounds: u32| {
        for round in 0..rounds {
            let streams = streams_of(sepbit, &request(0, 16, 0), from + 16 * round);
            assert_eq!(streams, [1; 16], "round {round}");
        }
    };
    hot(&mut sepbit, 2048, 400);
    assert_eq!(streams_of(&mut sepbit, &request(100, 1, 0), 8448), [0], "older than the bound");
    hot(&mut sepbit, 8449, 10);
    assert_eq!(streams_of(&mut sepbit, &request(100, 1, 0), 8609), [1], "younger");
    hot(&mut sepbit, 8610, 100);
    assert_eq!(streams_of(&mut sepbit, &request(100, 1, 0), 10_210), [0]);
}

#[test]
fn the_oracle_finds_the_bounds_that_need_the_least_spare_space() {
    // Nearly all blocks have lifetime 1. With two streams, lifetime 2 shares the stream of lifetime
    // 1, because each block would cost 48 in a bucket with lifetime 50. With three streams,
    // lifetime 2 shares a stream with lifetime 50. This sharing costs less than one additional
    // block for each of the many blocks with lifetime 1. Quantiles of equal size would not find
    // this division.
    let lives = [1, 2, 1, 2, 1, 2, 1, 2, 50, 51, 1000];
    let mut deaths: Vec<u32> =
        (0..).zip(lives).map(|(clock, life): (u32, u32)| clock + life).collect();
    deaths.extend((11..2000).map(|clock| clock + 1));
    let streams = |n: u16| {
        let mut oracle = Oracle::new(&deaths, n, Bucketing::LeastSpare);
        streams_of(&mut oracle, &request(0, 11, 0), 0)
    };
    assert_eq!(streams(1), [0; 11]);
    assert_eq!(streams(2), [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1]);
    assert_eq!(streams(3), [0, 1, 0, 1, 0, 1, 0, 1, 1, 1, 2]);
    let all = [0, 1, 0, 1, 0, 1, 0, 1, 2, 3, 4];
    assert_eq!(streams(8), all, "no more streams than distinct lifetimes");
}

#[test]
fn the_oracle_groups_data_by_death_time() {
    // The epoch length is 10 and there are 4 streams: three streams take turns at the epochs, and
    // the fourth stream receives later deaths.
    let deaths = [10, 10, 30, 30, crate::NEVER, 12];
    let mut epochs = Oracle::new(&deaths, 4, Bucketing::Epochs(10));
    assert_eq!(streams_of(&mut epochs, &request(0, 6, 0), 0), [1, 1, 3, 3, 3, 1]);
    let lives = [1, 2, 3, 4, 104, 105, 106, 107];
    let mut quantiles = Oracle::new(&lives, 2, Bucketing::Lifetimes);
    assert_eq!(streams_of(&mut quantiles, &request(0, 8, 0), 0), [0, 0, 0, 0, 1, 1, 1, 1]);
    // Four blocks have lifetime 1 and four blocks have lifetime 100.
    let mut powers = Oracle::new(&lives, 3, Bucketing::Powers(2));
    assert_eq!(streams_of(&mut powers, &request(0, 8, 0), 0), [0, 0, 0, 0, 2, 2, 2, 2]);
}

#[test]
fn mistagging_changes_the_given_share_to_a_wrong_stream() {
    let tag = |seed| {
        let mut wrong = MisTag::new(Box::new(Given { streams: 4 }), 0.1, 4, seed);
        (0..20_000).map(|n| streams_of(&mut wrong, &request(n, 1, 2), n)[0]).collect::<Vec<_>>()
    };
    let chosen = tag(1);
    let missed = chosen.iter().filter(|&&stream| stream != 2).count();
    assert!((1800..2200).contains(&missed), "{missed} of 20,000");
    assert!([0, 1, 3].iter().all(|other| chosen.contains(other)));
    assert_eq!(chosen, tag(1));
    assert_ne!(chosen, tag(2));
}
