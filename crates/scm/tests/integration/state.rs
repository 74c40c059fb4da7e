//! Tests save and restore, determinism, and that every command completes exactly once.

use crate::common::{CAPACITY, alone, command, keep, random, scm};
use proptest::collection::vec;
use proptest::prelude::*;
use writecliff_base::Nanos;
use writecliff_base::saved_state::RestoreError;
use writecliff_host_interface::Drive;
use writecliff_host_interface::Operation::{self, Flush, Read, Trim, Write};

#[test]
fn a_restored_drive_behaves_like_the_saved_one() {
    let mut saved = scm(&[]);
    keep(&mut saved, 8, 3000, random(1, 70.0, 16_384));
    saved.check_invariants().unwrap();
    let state = saved.save(Vec::new()).unwrap();
    let mut other = scm(&[]);
    keep(&mut other, 4, 100, random(4, 0.0, 4096));
    other.restore_from(&mut state.as_slice()).unwrap();
    assert_eq!(other.counters(), saved.counters());
    assert_eq!(other.save(Vec::new()).unwrap(), state);
    assert_eq!(
        keep(&mut saved, 8, 3000, random(2, 70.0, 16_384)),
        keep(&mut other, 8, 3000, random(2, 70.0, 16_384))
    );
    assert_eq!(saved.save(Vec::new()).unwrap(), other.save(Vec::new()).unwrap());
}

#[test]
fn damaged_states_and_states_of_other_drives_are_rejected() {
    let mut drive = scm(&[]);
    keep(&mut drive, 8, 300, random(1, 50.0, 4096));
    let state = drive.save(Vec::new()).unwrap();
    let refused =
        scm(&[("banks = 8", "banks = 9")]).restore_from(&mut state.as_slice()).unwrap_err();
    assert!(matches!(refused, RestoreError::OtherDevice(_)), "{refused}");
    for at in (20..state.len()).step_by(11) {
        let mut damaged = state.clone();
        damaged[at] ^= 0x10;
        assert!(scm(&[]).restore_from(&mut damaged.as_slice()).is_err(), "byte {at}");
    }
}

#[test]
fn runs_are_deterministic() {
    let run = || keep(&mut scm(&[]), 16, 5000, random(7, 50.0, 4096));
    assert_eq!(run(), run());
}

#[test]
fn fast_forward_counts_what_timed_writes_count() {
    let changes = [("unit = \"512 B\"", "unit = \"4 KiB\"")];
    let (mut timed, mut fast) = (scm(&changes), scm(&changes));
    let mut next = random(9, 0.0, 1536);
    for index in 0..500 {
        let (operation, offset, length) = next(index);
        alone(&mut timed, operation, offset, length);
        fast.fast_forward(&command(operation, offset, length, 0));
    }
    assert_eq!(timed.counters(), fast.counters());
    assert!(fast.counters().media.partial_units > 500);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_command_completes_exactly_once(
        commands in vec((0..4u8, 0..CAPACITY / 512 - 512, 1..512u32), 1..200),
        depth in 1..80usize,
        queue_depth in 1..8u32,
        unit in prop::sample::select(vec!["512 B", "4 KiB"]),
    ) {
        let queues = format!("queue_depth = {queue_depth}");
        let changes = [("queue_depth = 1024", queues.as_str()), ("512 B", unit)];
        let mut drive = scm(&changes);
        let done = keep(&mut drive, depth, commands.len(), |index| {
            let (kind, sector, sectors) = commands[index];
            let operation = [Read, Write, Trim, Flush][usize::from(kind)];
            let length = if operation == Flush { 0 } else { sectors * 512 };
            (operation, sector * 512, length)
        });
        let mut tags: Vec<u32> = done.iter().map(|completion| completion.tag).collect();
        prop_assert!(done.windows(2).all(|pair| pair[0].at <= pair[1].at));
        tags.sort_unstable();
        prop_assert_eq!(tags, (0..commands.len() as u32).collect::<Vec<_>>());
        drive.check_invariants().map_err(TestCaseError::fail)?;
        let bytes = |of: Operation| -> u64 {
            let kind = |completion: u8| [Read, Write, Trim, Flush][usize::from(completion)];
            let all = commands.iter().filter(|command| kind(command.0) == of);
            all.map(|command| u64::from(command.2) * 512).sum()
        };
        prop_assert_eq!(drive.counters().host.write_bytes, bytes(Write));
        prop_assert_eq!(drive.counters().host.read_bytes, bytes(Read));
        drive.idle_until(Nanos(u64::MAX / 2));
    }
}
