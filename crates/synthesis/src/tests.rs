//! Tests properties of a pass: counts, runs, logs and period lengths; also tests rejected models.

use super::*;

/// Returns a model with two streams: 4 KiB reads at random addresses, and 8 KiB writes in runs of
/// four.
fn model() -> IoModel {
    let kib = 1024;
    IoModel {
        seed: 3,
        range_bytes: 1024 * kib,
        streams: Streams {
            operations: "rw".to_owned(),
            lengths: vec![4096, 8192],
            several: vec![0; 2],
        },
        gaps: Gaps { values_ns: [[1000; 8], [1_000_000; 8]].concat(), idle_ns: 500_000 },
        states: States {
            stream: vec![0, 1, 1],
            continues: vec![0, 0, 1],
            back: vec![0; 3],
            gap: vec![1, 0, 0],
        },
        transitions: Transitions {
            phase: vec![0; 5],
            before: vec![0, 0, 1, 2, 2],
            after: vec![0, 1, 2, 2, 0],
            count: vec![100, 100, 100, 200, 100],
        },
        periods: Periods {
            phase: vec![0, 0],
            ios: vec![200, 400],
            length_ns: vec![1_000_000_000, 50_000_000],
            longest_ns: vec![40_000_000, 10_000_000],
        },
        places: Places {
            stream: vec![0, 1],
            begin: vec![0, 0],
            within: vec![PASS, 0],
            life: vec![PASS / 2, PASS],
            shape: vec![100, 300],
            count: vec![50, 10],
            uses: vec![200, 100],
            run_bytes: vec![4096, 32 * kib],
            offset: vec![512 * kib, 0],
            stride: vec![8192, 96 * kib],
        },
        read_ranks: vec![],
        write_ranks: vec![1],
        ..IoModel::default()
    }
}

fn changed(change: impl Fn(&mut IoModel)) -> String {
    let mut model = model();
    change(&mut model);
    model.check().unwrap_err()
}

/// Asserts that a host can issue the I/Os, which means whole sectors in time order.
pub(crate) fn assert_well_formed(pass: &IoLog) {
    let rows = [pass.offsets.len(), pass.lengths.len(), pass.times_ns.len()];
    assert_eq!(rows, [pass.operations.len(); 3]);
    assert!(pass.times_ns.is_sorted());
    assert!(pass.offsets.iter().chain(&pass.lengths).all(|bytes| bytes.is_multiple_of(512)));
    let moved = pass.operations.bytes().zip(&pass.lengths);
    assert!(moved.into_iter().all(|(letter, length)| (letter == b'f') == (*length == 0)));
}

/// Returns the addresses of an operation's I/Os.
fn offsets(log: &IoLog, operation: u8) -> Vec<u64> {
    let all = log.operations.bytes().zip(&log.offsets);
    all.filter(|io| io.0 == operation).map(|io| *io.1).collect()
}

#[test]
fn a_pass_has_the_counts_of_the_model() {
    let log = model().expand(0);
    let count = |letter| log.operations.bytes().filter(|other| *other == letter).count();
    assert_eq!((count(b'r'), count(b'w'), log.offsets.len()), (200, 400, 600));
    assert_well_formed(&log);
    // Each read address is used four times.
    let reads = offsets(&log, b'r');
    let mut uses = std::collections::BTreeMap::new();
    for offset in reads {
        *uses.entry(offset).or_insert(0) += 1;
    }
    assert_eq!(uses.len(), 50);
    assert!(uses.values().all(|count| *count == 4), "{uses:?}");
}

#[test]
fn writes_that_continue_begin_where_one_ended() {
    let log = model().expand(0);
    let writes = offsets(&log, b'w');
    let mut ends = std::collections::BTreeSet::new();
    let mut sequential = 0;
    for at in writes {
        sequential += u32::from(ends.contains(&at));
        ends.insert(at + 8192);
    }
    // The first I/O cannot continue a run.
    assert!((299..=300).contains(&sequential), "{sequential}");
}

#[test]
fn a_log_writes_its_last_block_again() {
    let mut model = model();
    model.states.back[2] = 4096;
    let log = model.expand(0);
    let writes = offsets(&log, b'w');
    let mut ends = std::collections::BTreeSet::new();
    let mut again = 0;
    for at in writes {
        again += u32::from(ends.contains(&(at + 4096)));
        ends.insert(at + 8192);
    }
    assert!(again > 150, "{again}");
}

#[test]
fn periods_have_their_length_and_bursts_are_not_stretched() {
    let log = model().expand(0);
    let end = |n: usize| log.times_ns[n - 1];
    assert!(end(200).abs_diff(1_000_000_000) <= 200, "{}", end(200));
    assert!(end(600).abs_diff(1_050_000_000) <= 600, "{}", end(600));
    // Gaps of a microsecond do not change; idle gaps are shortened instead.
    let short = log.times_ns.windows(2).filter(|pair| pair[1] - pair[0] == 1000).count();
    assert!((398..=400).contains(&short), "{short}");
}

#[test]
fn the_seed_alone_determines_a_pass() {
    assert_eq!(model().expand(0), model().expand(0));
    let other = IoModel { seed: 4, ..model() };
    assert_ne!(model().expand(0), other.expand(0));
    let moved = model().expand(4096);
    let same = model().expand(0);
    assert!(moved.offsets.iter().zip(&same.offsets).all(|(a, b)| *a == b + 4096));
}

#[test]
fn models_that_make_no_sense_are_refused() {
    assert!(model().check().is_ok());
    for (message, expected) in [
        ("the columns of states differ in length", changed(|m| m.states.gap.push(0))),
        ("an operation is not r, w, t or f", changed(|m| m.streams.operations = "rx".into())),
        ("the columns of streams differ in length", changed(|m| m.streams.several.push(0))),
        ("several must be 0 or 1", changed(|m| m.streams.several[1] = 2)),
        ("a pass has 0 I/Os; it must have 1 to 100000000", changed(|m| m.periods.ios = vec![0, 0])),
        (
            "a number of a stream, gap or state is too large",
            changed(|m| m.transitions.after[0] = 3),
        ),
        ("gaps must have eight values per class", changed(|m| m.gaps.values_ns.truncate(9))),
        ("the phase of a period has no transitions", changed(|m| m.periods.phase[1] = 7)),
        ("group 0 of places ends beyond the range", changed(|m| m.places.offset[0] = 1 << 20)),
        ("50 places with 40 uses", changed(|m| m.places.uses[0] = 40)),
        ("stream 1 has no places", changed(|m| m.places.stream[1] = 0)),
    ] {
        assert_eq!(expected, message);
    }
}
