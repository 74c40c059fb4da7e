//! Tests that sweeps preserve order, addresses and sizes, and that invalid models are rejected.

use super::*;
use crate::{IoModel, Streams};

/// Returns the model of a file of eight 16 KiB writes, one of which rewrites the last block, and a
/// flush, followed by reads of every other page and two more writes that continue the file.
fn model() -> IoModel {
    IoModel {
        seed: 7,
        range_bytes: 1 << 20,
        streams: Streams {
            operations: "wfr".to_owned(),
            lengths: vec![16_384, 0, 4096],
            several: vec![0; 3],
        },
        sweeps: Some(Sweeps {
            begin: vec![0, 17, 4, 9],
            end: vec![8, 18, 4, 16],
            offset: vec![65_536, 65_536 + 7 * 16_384, 0, 65_536],
            ios: vec![8, 2, 1, 8],
            mix: vec![0, 0, 1, 2],
            span: vec![7 * 16_384, 2 * 16_384, 0, 15 * 4096],
            steps: vec![7],
            left_out: vec![7 * 4096],
            ..Sweeps::default()
        }),
        mixes: Some(Mixes {
            sizes: vec![2, 1, 1],
            stream: vec![0, 0, 1, 2],
            back: vec![0, 16_384, 0, 0],
            count: vec![9, 1, 1, 8],
            begins: vec![2, 0, 1, 1],
            first: vec![0, 3, 0],
            last: vec![7, 6],
            groups: vec![7, 7],
        }),
        demand: Some(Demand {
            // The first eight writes and the flush belong to mixes, and so do the other I/Os.
            ios: vec![1, 8, 10],
            length_ns: vec![0, 1_000_000, 500],
            shape: vec![1000, 100, 1000],
        }),
        ..IoModel::default()
    }
}

fn changed(change: impl Fn(&mut Sweeps, &mut Mixes, &mut Demand)) -> String {
    let mut model = model();
    let mut sweeps = model.sweeps.take().unwrap();
    let (mut mixes, mut demand) = (model.mixes.take().unwrap(), model.demand.take().unwrap());
    change(&mut sweeps, &mut mixes, &mut demand);
    (model.sweeps, model.mixes, model.demand) = (Some(sweeps), Some(mixes), Some(demand));
    model.check().unwrap_err()
}

#[test]
fn sweeps_go_up_in_their_part_of_the_pass() {
    let model = model();
    assert!(model.check().is_ok());
    let log = model.expand(4096);
    crate::tests::assert_well_formed(&log);
    // The flush lies in the middle of the writes, and the reads follow the writes.
    assert_eq!(log.operations, "wwwwfwwwwrrrrrrrrww");
    let at = |letter: u8| -> Vec<u64> {
        let all = log.operations.bytes().zip(&log.offsets);
        all.filter(|io| io.0 == letter).map(|io| *io.1 - 4096).collect()
    };
    // The fifth write rewrites the last block, and the last writes continue at the end of the file.
    let writes = [0, 1, 2, 3, 3, 4, 5, 6, 7, 8].map(|n| 65_536 + n * 16_384);
    assert_eq!(at(b'w'), writes);
    assert_eq!(at(b'r'), (0..8).map(|n| 65_536 + 8192 * n).collect::<Vec<_>>());
}

/// A log of 4 KiB blocks throughout the pass, and a burst of four large I/Os in the middle.
#[test]
fn nothing_gets_into_a_burst() {
    let mut model = model();
    model.streams =
        Streams { operations: "ww".to_owned(), lengths: vec![4096, 65_536], several: vec![0; 2] };
    model.sweeps = Some(Sweeps {
        begin: vec![0, 9],
        end: vec![19, 12],
        offset: vec![0, 262_144],
        ios: vec![16, 4],
        mix: vec![0, 1],
        span: vec![65_536, 262_144],
        ..Sweeps::default()
    });
    model.mixes = Some(Mixes {
        sizes: vec![1, 1],
        stream: vec![0, 1],
        back: vec![0; 2],
        count: vec![16, 4],
        begins: vec![1; 2],
        first: vec![0; 2],
        last: vec![14, 2],
        groups: vec![15, 3],
    });
    model.demand = Some(Demand { ios: vec![20], length_ns: vec![1000], shape: vec![100] });
    assert!(model.check().is_ok());
    let lengths = model.expand(0).lengths;
    let large: Vec<usize> = (0..20).filter(|n| lengths[*n] == 65_536).collect();
    assert_eq!(large, [9, 10, 11, 12]);
}

/// Tests that one of two files has the large I/Os, and each file gets I/Os that preserve its
/// length.
#[test]
fn sweeps_get_ios_that_make_them_as_long_as_they_were() {
    let mut model = model();
    model.streams =
        Streams { operations: "ww".to_owned(), lengths: vec![4096, 262_144], several: vec![0; 2] };
    model.range_bytes = 8 << 20;
    model.sweeps = Some(Sweeps {
        begin: vec![0, 6],
        end: vec![5, 11],
        offset: vec![0, 4 << 20],
        ios: vec![6, 6],
        mix: vec![0, 0],
        span: vec![6 * 4096, 4096 + 5 * 262_144],
        ..Sweeps::default()
    });
    // Within the mix, every second I/O after the first I/Os is large.
    model.mixes = Some(Mixes {
        sizes: vec![2],
        stream: vec![0, 1],
        back: vec![0; 2],
        count: vec![7, 5],
        begins: vec![2, 0],
        first: vec![0, 1],
        last: vec![8, 9],
        groups: vec![5, 5],
    });
    model.demand = Some(Demand { ios: vec![12], length_ns: vec![1000], shape: vec![100] });
    assert!(model.check().is_ok());
    let lengths = model.expand(0).lengths;
    assert_eq!(lengths[..6], [4096; 6]);
    assert_eq!(lengths[6..], [4096, 262_144, 262_144, 262_144, 262_144, 262_144]);
}

/// Tests a concurrent burst and log: the positions of the log's I/Os are occupied, so later I/Os
/// move back.
#[test]
fn a_sweep_without_places_moves_others_a_little() {
    let mut model = model();
    model.streams =
        Streams { operations: "ww".to_owned(), lengths: vec![4096, 8192], several: vec![0; 2] };
    model.sweeps = Some(Sweeps {
        // The first sweep has all positions from 0 to 9, so no position is free between 4 and 5.
        begin: vec![0, 4, 10],
        end: vec![9, 5, 29],
        offset: vec![0, 65_536, 131_072],
        ios: vec![10, 2, 18],
        mix: vec![0, 1, 0],
        span: vec![40_960, 16_384, 18 * 4096],
        ..Sweeps::default()
    });
    model.mixes = Some(Mixes {
        sizes: vec![1, 1],
        stream: vec![0, 1],
        back: vec![0; 2],
        count: vec![28, 2],
        begins: vec![2, 1],
        first: vec![0, 0],
        last: vec![25],
        groups: vec![26],
    });
    model.demand = Some(Demand { ios: vec![30], length_ns: vec![1000], shape: vec![100] });
    assert!(model.check().is_ok(), "{:?}", model.check());
    let lengths = model.expand(0).lengths;
    let large: Vec<usize> = (0..30).filter(|n| lengths[*n] == 8192).collect();
    assert_eq!(large, [5, 7]);
}

/// Tests that sizes that are the mean of several sizes are adjusted to preserve the sweep length,
/// and that other sizes do not change.
#[test]
fn ios_of_several_sizes_fill_their_sweep() {
    let mut model = model();
    model.range_bytes = 8 << 20;
    model.streams =
        Streams { operations: "ww".to_owned(), lengths: vec![4096, 716_800], several: vec![0, 1] };
    let filled = |bytes: u64, streams: &[usize], backs: &[u64]| {
        lengths_that_fill(bytes, streams, backs, &model)
    };
    assert_eq!(filled(614_400, &[1, 0], &[0, 0]), [610_304, 4096]);
    assert_eq!(filled(1_048_576, &[1, 1, 0], &[0, 4096, 0]), [524_288, 524_288, 4096]);
    // Every length lies between half and twice the mean.
    assert_eq!(filled(4096, &[1], &[0]), [356_352]);
    assert_eq!(filled(8 << 20, &[1, 0], &[0, 0]), [1_433_600, 4096]);
    assert_eq!(filled(8 << 20, &[0, 0], &[0, 0]), [4096, 4096]);
    let small = IoModel { range_bytes: 1 << 20, ..model.clone() };
    assert_eq!(lengths_that_fill(8 << 20, &[1, 0], &[0, 0], &small), [1 << 20, 4096]);
}

/// Four of ten I/Os are large, either single or in two pairs.
#[test]
fn ios_of_a_kind_come_in_their_groups() {
    let places = |groups| {
        let mixes = Mixes {
            sizes: vec![2],
            stream: vec![0, 1],
            back: vec![0; 2],
            count: vec![6, 4],
            begins: vec![0; 2],
            first: vec![0, 2],
            last: vec![9, 7],
            groups: vec![6, groups],
        };
        mixes.others().remove(0)
    };
    assert_eq!(places(4), [0, 0, 1, 0, 1, 1, 0, 1, 0, 0]);
    assert_eq!(places(2), [0, 0, 1, 1, 0, 0, 1, 1, 0, 0]);
}

#[test]
fn intervals_have_their_ios_and_lengths() {
    let log = model().expand(0);
    assert_eq!(log.times_ns.len(), 19);
    assert_eq!(log.times_ns[0], 0);
    assert!(log.times_ns[8].abs_diff(1_000_000) <= 1, "{}", log.times_ns[8]);
    assert!(log.times_ns[18].abs_diff(1_000_500) <= 1, "{}", log.times_ns[18]);
    assert!(log.times_ns.is_sorted());
}

#[test]
fn the_seed_alone_determines_a_pass() {
    assert_eq!(model().expand(0), model().expand(0));
    assert_ne!(model().expand(0), IoModel { seed: 8, ..model() }.expand(0));
}

#[test]
fn sweeps_that_make_no_sense_are_refused() {
    for (message, expected) in [
        ("the columns of sweeps differ in length", changed(|s, _, _| s.steps.push(0))),
        ("the columns of mixes differ in length", changed(|_, m, _| m.sizes[0] = 1)),
        ("mixes position the wrong number of streams", changed(|_, m, _| m.last.push(0))),
        ("a weight of pages is 0", changed(|s, _, _| s.read_weights = vec![1, 0])),
        ("the columns of demand differ in length", changed(|_, _, d| d.shape.push(100))),
        ("the shape of an interval of demand is out of range", changed(|_, _, d| d.shape[0] = 9)),
        ("the intervals of demand are too long", changed(|_, _, d| d.length_ns[0] = u64::MAX)),
        ("a mix has an unknown stream", changed(|_, m, _| m.stream[0] = 3)),
        (
            "the last I/O of a stream of a mix is before the first",
            changed(|_, m, _| m.first[2] = 7),
        ),
        ("mix 0 combines flushes with other I/Os", changed(|_, m, _| m.sizes = vec![3, 1])),
        (
            "a stream of a mix starts more sweeps than it has I/Os",
            changed(|_, m, _| m.begins[1] = 2),
        ),
        (
            "a stream of a mix has more groups than I/Os, or none",
            changed(|_, m, _| m.groups[0] = 8),
        ),
        (
            "a stream of a mix has more groups than I/Os, or none",
            changed(|_, m, _| m.groups[1] = 0),
        ),
        ("the mix of sweep 1 has too few I/Os", changed(|_, m, _| m.begins[0] = 1)),
        ("a mix has more I/Os than its sweeps", changed(|_, m, _| m.count[3] = 9)),
        ("sweep 3 skips more than it spans", changed(|s, _, _| s.left_out[0] = 1 << 20)),
        ("sweep 0 goes from I/O 9 to I/O 8", changed(|s, _, _| s.begin[0] = 9)),
        ("sweep 3 has 8 I/Os and 8 steps", changed(|s, _, _| s.steps[0] = 8)),
        ("sweep 2 has 0 I/Os", changed(|s, _, _| s.ios[2] = 0)),
        ("sweep 3 ends beyond the range", changed(|s, _, _| s.offset[3] = 2 << 20)),
        ("the mix of sweep 0 has too few I/Os", changed(|s, _, _| s.mix[0] = 3)),
        ("the mix of sweep 1 has too few I/Os", changed(|s, _, _| s.ios[1] = 4)),
        ("a mix has more I/Os than its sweeps", changed(|_, m, _| m.count[0] = 12)),
    ] {
        assert_eq!(expected, message);
    }
    let alone = IoModel { demand: None, ..model() };
    let refused = alone.check().unwrap_err();
    assert_eq!(refused, "sweeps, mixes and demand must be given together");
}
