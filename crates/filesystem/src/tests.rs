//! Tests the file layout against a simple model, and tests rounds, death times and the synthetic
//! store.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use writecliff_base::SLOT_BYTES;

use proptest::prelude::*;

use super::*;

const FILES: u32 = 6;

fn event(op: FileOp, file: u32, offset: u64, length: u64) -> TraceEvent {
    TraceEvent { op, file, offset, length, stream: 0, origin: 0, folder: 0, time_ms: 0 }
}

fn any_event() -> impl Strategy<Value = TraceEvent> {
    let op = prop_oneof![
        6 => Just(FileOp::Write),
        1 => Just(FileOp::Truncate),
        1 => Just(FileOp::Unlink),
        2 => Just(FileOp::Punch),
        1 => Just(FileOp::Sync),
        1 => Just(FileOp::Create),
    ];
    (op, 0..FILES, 0..200_000_u64, 0..60_000_u64)
        .prop_map(|(op, file, offset, length)| event(op, file, offset, length))
}

fn system(write_back: WriteBack) -> FileSystem {
    FileSystem { write_back, ..FileSystem::default() }
}

fn any_write_back() -> impl Strategy<Value = WriteBack> {
    prop_oneof![Just(WriteBack::Immediate), Just(WriteBack::PageCache)]
}

/// Reference model: tracks which blocks of each file hold data, based only on the definition of the
/// operations.
fn apply_to_model(model: &mut BTreeSet<(u32, u64)>, event: &TraceEvent) {
    let whole = |n: u64| n.div_ceil(SLOT_BYTES);
    let end = event.offset + event.length;
    let mut free = |first: u64, end: u64| {
        model.retain(|&(file, block)| file != event.file || block < first || block >= end);
    };
    match event.op {
        FileOp::Write if event.length > 0 => {
            for block in event.offset / SLOT_BYTES..whole(end) {
                model.insert((event.file, block));
            }
        }
        FileOp::Write | FileOp::Sync => {}
        FileOp::Truncate => free(whole(event.offset), u64::MAX),
        FileOp::Punch => free(whole(event.offset), end / SLOT_BYTES),
        FileOp::Unlink | FileOp::Create => free(0, u64::MAX),
    }
}

proptest! {
    /// Tests that the space requirement does not depend on where blocks are allocated.
    #[test]
    fn a_counting_layout_needs_the_same_space_as_a_real_one(
        events in proptest::collection::vec(any_event(), 1..120), write_back in any_write_back(),
    ) {
        let mut real = FileLayout::new(1 << 20, FILES, system(write_back));
        let mut counted = FileLayout::counted(1 << 20, FILES, system(write_back));
        let (mut at, mut of) = (Vec::new(), Vec::new());
        for event in &events {
            prop_assert_eq!(real.apply(event, &mut at), counted.apply(event, &mut of));
            prop_assert_eq!(real.live_blocks, counted.live_blocks);
        }
        prop_assert_eq!(real.peak_blocks, counted.peak_blocks);
        let written = |requests: &[BlockRequest]| -> u32 {
            requests.iter().filter(|r| r.op == BlockOp::Write).map(|r| r.count).sum()
        };
        prop_assert_eq!(written(&at), written(&of));
    }

    /// Tests that no block belongs to two files at the same time, that freed blocks are trimmed,
    /// and that all space is recovered.
    #[test]
    fn files_never_share_blocks_and_freed_blocks_are_trimmed(
        events in proptest::collection::vec(any_event(), 1..120), write_back in any_write_back(),
        allocator in proptest::sample::select(&Allocator::ALL[..]),
    ) {
        let system = FileSystem { allocator, ..system(write_back) };
        let mut layout = FileLayout::new(2000, FILES, system);
        let mut model = BTreeSet::new();
        // File that last wrote each drive block.
        let mut owner: BTreeMap<u32, u32> = BTreeMap::new();
        let mut out = Vec::new();
        for event in &events {
            out.clear();
            layout.apply(event, &mut out).unwrap();
            apply_to_model(&mut model, event);
            for request in &out {
                for block in request.block..request.block + request.count {
                    let before = match request.op {
                        BlockOp::Write => owner.insert(block, event.file),
                        BlockOp::Trim => owner.remove(&block),
                    };
                    prop_assert!(before.is_none_or(|file| file == event.file));
                    prop_assert!(request.op == BlockOp::Write || before.is_some());
                }
            }
            if write_back == WriteBack::Immediate {
                prop_assert_eq!(layout.live_blocks, owner.len() as u64);
            }
            prop_assert_eq!(layout.live_blocks, model.len() as u64);
            prop_assert_eq!(layout.free_blocks() + layout.live_blocks, 2000);
        }
        out.clear();
        layout.write_back_all(0..FILES, &mut out).unwrap();
        for request in &out {
            prop_assert_eq!(request.op, BlockOp::Write);
            owner.extend((request.block..request.block + request.count).map(|block| (block, 0)));
        }
        prop_assert_eq!(layout.live_blocks, owner.len() as u64);
        for file in 0..FILES {
            layout.unlink(file, &mut out);
        }
        prop_assert_eq!(layout.free_blocks(), 2000);
    }

    #[test]
    fn layout_is_deterministic(
        events in proptest::collection::vec(any_event(), 1..80), times in 1_u32..4,
    ) {
        let mut trace = Events::default();
        // The trace also writes to a file that no other operation accesses, because a trace without
        // writes is an error.
        trace.add(event(FileOp::Write, FILES, 0, 1));
        for &event in &events {
            trace.add(event);
        }
        let how = LayOut {
            capacity_blocks: 1 << 12,
            file_system: system(WriteBack::PageCache),
            repeats: Repeats::Times(times),
            copies: 1,
        };
        let laid = trace.lay_out(&how, &mut |_| ControlFlow::Continue(())).unwrap();
        let again = trace.lay_out(&how, &mut |_| ControlFlow::Continue(())).unwrap();
        prop_assert_eq!(&laid.requests, &again.requests);
        prop_assert_eq!(laid.rounds, times);
    }
}

fn trace_of(events: &[TraceEvent]) -> Events {
    let mut trace = Events::default();
    for &event in events {
        trace.add(event);
    }
    trace
}

fn laid(events: &[TraceEvent], capacity_blocks: u32, write_back: WriteBack) -> BlockTrace {
    let file_system = system(write_back);
    let how = LayOut { capacity_blocks, file_system, repeats: Repeats::Times(1), copies: 1 };
    trace_of(events).lay_out(&how, &mut |_| ControlFlow::Continue(())).unwrap()
}

#[test]
fn files_that_grow_alternately_stay_contiguous() {
    let turns: Vec<TraceEvent> = (0..40)
        .flat_map(|n| [0, 1].map(|file| event(FileOp::Write, file, n * 4096, 4096)))
        .collect();
    let trace = laid(&turns, 4096, WriteBack::Immediate);
    let of = |file: usize| trace.requests.iter().skip(file).step_by(2).map(|r| r.block);
    for file in 0..2 {
        let first = of(file).next().unwrap();
        assert!(of(file).eq(first..first + 40));
    }
}

#[test]
fn overwrites_stay_in_place_and_partial_blocks_are_written_whole() {
    let trace = laid(
        &[event(FileOp::Write, 0, 0, 16_384), event(FileOp::Write, 0, 5_000, 4_000)],
        64,
        WriteBack::Immediate,
    );
    let shape: Vec<(u32, u32)> = trace.requests.iter().map(|r| (r.block, r.count)).collect();
    assert_eq!(shape, [(0, 4), (1, 2)]);
}

#[test]
fn the_page_cache_holds_writes_until_fsync() {
    let appends: Vec<TraceEvent> = (0..80).map(|n| event(FileOp::Write, 0, n * 512, 512)).collect();
    let written = |events: &[TraceEvent]| laid(events, 64, WriteBack::PageCache).written_blocks;
    assert_eq!(laid(&appends, 64, WriteBack::Immediate).written_blocks, 80);
    assert_eq!(written(&appends), 10);
    let mut synced = appends[..4].to_vec();
    synced.insert(2, event(FileOp::Sync, 0, 0, 0));
    assert_eq!(written(&synced), 2);
    let overwrites = [event(FileOp::Write, 0, 0, 8192); 9];
    assert_eq!(written(&overwrites), 2);
    // A file that is removed before its write-back causes no requests, not even a TRIM.
    let gone = [event(FileOp::Unlink, 0, 0, 0), event(FileOp::Write, 1, 0, 1)];
    let trace = laid(&[&overwrites[..], &gone].concat(), 64, WriteBack::PageCache);
    assert_eq!((trace.written_blocks, trace.requests.len()), (1, 1));
}

#[test]
fn what_is_dirty_for_30_s_is_written_back() {
    let at = |seconds: u32, file| TraceEvent {
        time_ms: seconds * 1000,
        ..event(FileOp::Write, file, 0, 4096)
    };
    let written = |seconds: &[u32]| {
        let mut events: Vec<_> = seconds.iter().map(|&second| at(second, 0)).collect();
        events.push(at(*seconds.last().unwrap(), 1));
        laid(&events, 64, WriteBack::PageCache).written_blocks - 1
    };
    assert_eq!(written(&[0, 10, 20, 29]), 1);
    assert_eq!(written(&[1, 34]), 2);
    // The cache measures the age of dirty data from the first write and checks it every 5 s.
    assert_eq!(written(&[1, 20, 32, 33, 35, 36]), 2);
}

#[test]
fn what_waits_is_limited() {
    let whole = |file| event(FileOp::Write, file, 0, 1 << 29);
    let blocks = (1 << 29) / SLOT_BYTES;
    let events = [0, 1, 0, 2, 0].map(whole);
    // The third file raises the total above 1 GiB, so the first file, which has waited longest, is
    // written back.
    assert_eq!(laid(&events, 1 << 20, WriteBack::PageCache).written_blocks, 4 * blocks);
}

#[test]
fn a_full_drive_error_names_the_capacity_needed() {
    let how = LayOut {
        capacity_blocks: 100,
        file_system: FileSystem::default(),
        repeats: Repeats::Times(1),
        copies: 1,
    };
    let trace = trace_of(&[
        event(FileOp::Create, 0, 0, 0),
        event(FileOp::Write, 0, 0, 300 * 4096),
        event(FileOp::Unlink, 0, 0, 0),
        event(FileOp::Create, 1, 0, 0),
        event(FileOp::Write, 1, 0, 200 * 4096),
    ]);
    let error = trace.lay_out(&how, &mut |_| ControlFlow::Continue(())).unwrap_err();
    assert_eq!(
        error,
        TraceError::OutOfSpace { needed_bytes: 300 * 4096, capacity_bytes: 100 * 4096 }
    );
    assert_eq!(error.hint().unwrap(), "use a drive of at least 0.001 GB");
}

#[test]
fn files_of_old_rounds_are_deleted_one_at_a_time() {
    let mut events = Vec::new();
    for file in 0..8 {
        events.push(event(FileOp::Create, file, 0, 0));
        events.push(event(FileOp::Write, file, 0, 10 * 4096));
    }
    let trace = trace_of(&events);
    assert_eq!(trace.footprint(&FileSystem::default(), 1).peak_blocks, 80);
    let how = LayOut {
        capacity_blocks: 80,
        file_system: FileSystem::default(),
        repeats: Repeats::Fills(3.0),
        copies: 1,
    };
    let laid = trace.lay_out(&how, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!((laid.rounds, laid.written_blocks, laid.peak_blocks), (3, 240, 80));
    let trims = laid.requests.iter().filter(|r| r.op == BlockOp::Trim);
    assert!(trims.clone().all(|r| r.count == 10));
    assert_eq!(trims.count(), 16);
}

#[test]
fn invalid_rows_are_rejected_with_their_number() {
    let mut events = Events::default();
    let batch = Batch {
        op: &[0, 1],
        file: &[0, 0],
        offset: &[0, 0],
        length: &[1, 1],
        time: &[],
        class: &[0, 1],
        ops: &[0, 9],
        stream: &[3, 4],
        origin: &[1, 2],
        folder: &[],
    };
    let message = "operation 9 is outside 0 to 5".to_owned();
    assert_eq!(events.push(&batch), Err(TraceError::Row { row: 1, message }));
    let right = Batch { ops: &[0, 2], ..batch };
    for wrong in [
        Batch { op: &[0, 2], ..right },
        Batch { op: &[0, -1], ..right },
        Batch { file: &[0, -1], ..right },
        Batch { offset: &[0, -1], ..right },
        Batch { offset: &[0, (1 << 44) + 1], ..right },
        Batch { length: &[0, -1], op: &[0, 0], ..right },
        Batch { class: &[0, 2], ..right },
    ] {
        assert!(matches!(events.push(&wrong), Err(TraceError::Row { row: 1, .. })), "{wrong:?}");
        assert!(events.all.is_empty());
        assert_eq!(events.files, 0);
    }
    assert!(matches!(events.push(&Batch { op: &[0], ..right }), Err(TraceError::Trace(_))));
    events.push(&right).unwrap();
    events.push(&Batch { ops: &[LEFT_OUT, 2], ..right }).unwrap();
    let unlink = TraceEvent { stream: 4, origin: 2, ..event(FileOp::Unlink, 0, 0, 0) };
    let write = TraceEvent { stream: 3, origin: 1, ..event(FileOp::Write, 0, 0, 1) };
    assert_eq!(events.all, [write, unlink, unlink]);
}

#[test]
fn data_die_at_overwrites_and_trims() {
    let trace = laid(
        &[
            event(FileOp::Write, 0, 0, 8192),
            event(FileOp::Write, 0, 0, 4096),
            event(FileOp::Unlink, 0, 0, 0),
            event(FileOp::Write, 1, 0, 4096),
        ],
        64,
        WriteBack::Immediate,
    );
    assert_eq!(deaths(&trace), [2, 3, 3, NEVER]);
}

#[test]
fn the_synthetic_store_reaches_steady_state() {
    let store = |logged| synthetic::Store {
        table_bytes: 32 << 10,
        chunk_bytes: 16 << 10,
        logged_bytes: logged,
        seed: 3,
    };
    let footprint = synthetic::events(&store(64 << 20)).footprint(&FileSystem::default(), 1);
    let tables = footprint.peak_blocks / 8;
    assert!((584..800).contains(&tables), "{tables} tables; the levels hold 584");
    let amplification = footprint.written_blocks as f64 * 4096.0 / (64 << 20) as f64;
    assert!((10.0..30.0).contains(&amplification), "{amplification}");
}

/// Writes two files of 300 blocks, deletes the first, then writes a third file of 200 blocks.
fn freed_and_written_again(folders: [u16; 3]) -> Events {
    let mut trace = Events::default();
    let mut add = |op, file: u32, length| {
        trace.add(TraceEvent { folder: folders[file as usize], ..event(op, file, 0, length) });
    };
    add(FileOp::Write, 0, 300 * 4096);
    add(FileOp::Write, 1, 300 * 4096);
    add(FileOp::Unlink, 0, 0);
    add(FileOp::Write, 2, 200 * 4096);
    trace
}

/// Returns the start block of each file, and the number of requests.
fn block_positions(folders: [u16; 3], allocator: Allocator, trim: bool) -> (Vec<u32>, usize) {
    let how = LayOut {
        capacity_blocks: 8192,
        file_system: FileSystem { allocator, trim, ..FileSystem::default() },
        repeats: Repeats::Times(1),
        copies: 1,
    };
    let laid =
        freed_and_written_again(folders).lay_out(&how, &mut |_| ControlFlow::Continue(())).unwrap();
    let writes = laid.requests.iter().filter(|r| r.op == BlockOp::Write);
    (writes.map(|r| r.block).collect(), laid.requests.len())
}

#[test]
fn allocators_differ_in_where_they_reuse_freed_space() {
    // The next-fit allocator continues after the second file, at a multiple of 256 blocks.
    assert_eq!(block_positions([0; 3], Allocator::NextFit, true), (vec![0, 512, 1024], 4));
    assert_eq!(block_positions([0; 3], Allocator::FirstFit, true), (vec![0, 512, 0], 4));
    // Folders 0 to 3 start at the quarters of the drive, and folder 5 shares a quarter with folder
    // 1.
    assert_eq!(block_positions([0, 1, 3], Allocator::Folders, true), (vec![0, 2048, 6144], 4));
    assert_eq!(block_positions([1, 5, 1], Allocator::Folders, true), (vec![2048, 2560, 2048], 4));
}

#[test]
fn without_trim_files_get_the_same_blocks_and_only_writes_are_issued() {
    for allocator in Allocator::ALL {
        let (trimmed, requests) = block_positions([0, 1, 2], allocator, true);
        assert_eq!(block_positions([0, 1, 2], allocator, false), (trimmed, requests - 1));
    }
    assert_eq!(Allocator::ALL.map(|a| Allocator::named(a.name())), Allocator::ALL.map(Some));
    assert_eq!(Allocator::named("best-fit"), None);
}

/// Writes eight files of ten blocks each, then deletes the first four.
fn grows_and_shrinks() -> Events {
    let mut events = Vec::new();
    for file in 0..8 {
        events.push(event(FileOp::Create, file, 0, 0));
        events.push(event(FileOp::Write, file, 0, 10 * 4096));
    }
    events.extend((0..4).map(|file| event(FileOp::Unlink, file, 0, 0)));
    trace_of(&events)
}

#[test]
fn copies_write_at_the_same_rate_and_are_staggered() {
    let (events, system) = (grows_and_shrinks(), FileSystem::default());
    let single = events.footprint(&system, 1);
    let four = events.footprint(&system, 4);
    assert_eq!((single.peak_blocks, single.written_blocks), (80, 80));
    assert_eq!(four.written_blocks, 4 * 80);
    // Without staggering, all copies would reach 80 blocks at the same time.
    assert!((200..320).contains(&four.peak_blocks), "{four:?}");
    let how = LayOut {
        capacity_blocks: four.peak_blocks as u32,
        file_system: system,
        repeats: Repeats::Times(5),
        copies: 4,
    };
    let laid = events.lay_out(&how, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(laid.rounds, 5);
    // Meanwhile, the leading copy has advanced by three quarters of a round in whole files.
    assert!((4 * 5 * 80..4 * 5 * 80 + 4 * 80).contains(&laid.written_blocks), "{laid:?}");
    assert!(laid.mean_blocks <= laid.peak_blocks && laid.peak_blocks <= four.peak_blocks);
    assert!(laid.mean_blocks >= 4 * 40, "{laid:?}");
    let none = LayOut { copies: 0, ..how };
    assert!(matches!(
        events.lay_out(&none, &mut |_| ControlFlow::Continue(())),
        Err(TraceError::Trace(_))
    ));
}

#[test]
fn mean_blocks_averages_live_blocks_over_blocks_written() {
    let how = LayOut {
        capacity_blocks: 200,
        file_system: FileSystem::default(),
        repeats: Repeats::Times(1),
        copies: 1,
    };
    // The files occupy 10, 20, ... 80 blocks, rising by ten blocks with every ten blocks written.
    assert_eq!(
        grows_and_shrinks().lay_out(&how, &mut |_| ControlFlow::Continue(())).unwrap().mean_blocks,
        45
    );
}

#[test]
fn long_work_says_how_far_it_is_and_can_be_stopped() {
    let (events, file_system) = (grows_and_shrinks(), FileSystem::default());
    let how = |repeats, copies| LayOut { capacity_blocks: 400, file_system, repeats, copies };
    for (repeats, copies) in
        [(Repeats::Times(20_000), 1), (Repeats::Times(20_000), 3), (Repeats::Fills(4000.0), 1)]
    {
        let mut shares = Vec::new();
        let mut watch = |share| {
            shares.push(share);
            ControlFlow::Continue(())
        };
        let laid = events.lay_out(&how(repeats, copies), &mut watch).unwrap();
        assert_eq!(
            laid.requests,
            events
                .lay_out(&how(repeats, copies), &mut |_| ControlFlow::Continue(()))
                .unwrap()
                .requests
        );
        assert!(shares.len() > 4 && shares.is_sorted_by(|a, b| a < b), "{shares:?}");
        assert!(shares[0] < 0.25 && shares[shares.len() - 1] > 0.8, "{shares:?}");
    }
    let stop = events.lay_out(&how(Repeats::Times(20_000), 1), &mut |_| ControlFlow::Break(()));
    assert_eq!(stop.unwrap_err(), TraceError::Stopped);

    let many: Vec<_> = (0..300_000).map(|_| event(FileOp::Write, 0, 0, 4096)).collect();
    let many = trace_of(&many);
    for copies in [1, 2] {
        let mut shares = Vec::new();
        let outcome = many.footprint_watched(&file_system, copies, &mut |share| {
            shares.push(share);
            ControlFlow::Continue(())
        });
        assert_eq!(outcome, ControlFlow::Continue(many.footprint(&file_system, copies)));
        assert!(shares.len() > 8 && shares.is_sorted_by(|a, b| a < b), "{shares:?}");
        assert!(shares[0] < 0.2 && shares[shares.len() - 1] > 0.85, "{shares:?}");
    }
    let stop = many.footprint_watched(&file_system, 2, &mut |_| ControlFlow::Break(()));
    assert_eq!(stop, ControlFlow::Break(()));
}
