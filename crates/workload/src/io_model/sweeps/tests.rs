//! Sweeps keep their order, addresses and sizes; what makes no sense is refused.

use super::super::{IoModel, Streams};
use super::*;

/// A file of eight 16 KiB writes, of which one writes the last block again, and a flush; then every
/// other page of it, read; then two more writes that go on behind it.
fn model() -> IoModel {
    IoModel {
        seed: 7,
        range_bytes: 1 << 20,
        streams: Streams { operations: "wfr".to_owned(), lengths: vec![16_384, 0, 4096] },
        sweeps: Some(Sweeps {
            begin: vec![0, 17, 4, 9],
            end: vec![8, 18, 4, 16],
            offset: vec![65_536, 65_536 + 8 * 16_384, 0, 65_536],
            ios: vec![8, 2, 1, 8],
            mix: vec![0, 0, 1, 2],
            span: vec![15 * 4096],
            steps: vec![7],
        }),
        mixes: Some(Mixes {
            sizes: vec![2, 1, 1],
            stream: vec![0, 0, 1, 2],
            back: vec![0, 16_384, 0, 0],
            count: vec![9, 1, 1, 8],
            first: vec![0, 4, 0, 0],
            last: vec![9, 4, 0, 7],
        }),
        demand: Some(Demand {
            // The first eight writes and the flush, with 16 KiB more for each I/O; the others.
            work: vec![32_768, 8 * 32_768 - 16_384, 8 * 20_480 + 2 * 32_768],
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
    model.check().unwrap_err().message
}

#[test]
fn sweeps_go_up_in_their_part_of_the_pass() {
    let model = model();
    assert!(model.check().is_ok());
    let log = model.expand(4096);
    assert!(log.check().is_ok());
    // The flush is in the middle of the writes, the reads are behind them.
    assert_eq!(log.operations, "wwwwfwwwwrrrrrrrrww");
    let at = |letter: u8| -> Vec<u64> {
        let all = log.operations.bytes().zip(&log.offsets);
        all.filter(|one| one.0 == letter).map(|one| *one.1 - 4096).collect()
    };
    // The fifth one writes the last block again; the last ones go on where the file ends.
    let writes = [0, 1, 2, 3, 3, 4, 5, 6, 7, 8].map(|n| 65_536 + n * 16_384);
    assert_eq!(at(b'w'), writes);
    assert_eq!(at(b'r'), (0..8).map(|n| 65_536 + 8192 * n).collect::<Vec<_>>());
}

#[test]
fn a_burst_is_as_much_work_whatever_its_ios() {
    let demand = Demand { work: vec![65_536; 2], length_ns: vec![1000; 2], shape: vec![1000; 2] };
    let late = |lengths: &[u32]| {
        let times = demand.times_ns(lengths, &mut Prng::derive(1, 1));
        assert_eq!(times.len(), lengths.len());
        times.iter().filter(|time| **time > 1000).count()
    };
    assert_eq!(late(&[16_384; 4]), 2);
    assert_eq!(late(&[49_152, 0, 0, 0, 0]), 4);
    // What is left over comes in the last interval.
    assert_eq!(late(&[16_384; 9]), 7);
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
    for (message, found) in [
        ("the columns of sweeps differ in length", changed(|s, _, _| s.steps.push(0))),
        ("the columns of mixes differ in length", changed(|_, m, _| m.sizes[0] = 1)),
        ("the columns of mixes differ in length", changed(|_, m, _| m.last.push(0))),
        ("the columns of demand differ in length", changed(|_, _, d| d.shape.push(100))),
        ("the shape of an interval of demand is out of range", changed(|_, _, d| d.shape[0] = 9)),
        ("the intervals of demand are too long", changed(|_, _, d| d.length_ns[0] = u64::MAX)),
        ("a mix of an unknown stream", changed(|_, m, _| m.stream[0] = 3)),
        (
            "the last I/O of a stream of a mix is before the first",
            changed(|_, m, _| m.first[1] = 5),
        ),
        ("the mix 0 is of flushes and other I/Os", changed(|_, m, _| m.sizes = vec![3, 1])),
        ("the sweep 0 goes from the I/O 9 to the I/O 8", changed(|s, _, _| s.begin[0] = 9)),
        ("the sweep 3 has 8 I/Os and 8 steps", changed(|s, _, _| s.steps[0] = 8)),
        ("the sweep 2 has 0 I/Os", changed(|s, _, _| s.ios[2] = 0)),
        ("the sweep 3 goes behind the range", changed(|s, _, _| s.offset[3] = 2 << 20)),
        ("the mix of the sweep 0 has too few I/Os", changed(|s, _, _| s.mix[0] = 3)),
        ("the mix of the sweep 1 has too few I/Os", changed(|s, _, _| s.ios[1] = 4)),
        ("a mix has more I/Os than its sweeps", changed(|_, m, _| m.count[0] = 12)),
    ] {
        assert_eq!(found, message);
    }
    let alone = IoModel { demand: None, ..model() };
    let refused = alone.check().unwrap_err().message;
    assert_eq!(refused, "sweeps, mixes and demand belong together");
}
