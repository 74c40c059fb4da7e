//! Tests that the power cut check finds no defects in correct drives, and finds every injected
//! defect.

use super::*;

#[test]
fn drives_of_every_kind_keep_what_they_promise() {
    let mut all = PowerCutTally::default();
    for number in 0..KINDS as u64 {
        let tally = run(1, number, 4, Fault::None);
        let tally = tally.unwrap_or_else(|e| panic!("drive {number}, {:?}: {e}", Kind::of(number)));
        all.cuts += tally.cuts;
        all.lost += tally.lost;
        all.survived += tally.survived;
        all.torn_units += tally.torn_units;
        all.saved_slots += tally.saved_slots;
        all.interrupted_erases += tally.interrupted_erases;
    }
    assert_eq!(all.cuts, 4 * KINDS as u64);
    assert!(
        all.lost > 0 && all.survived > 0 && all.torn_units > 0 && all.saved_slots > 0,
        "{all:?}"
    );
    assert!(all.interrupted_erases > 0, "{all:?}");
}

/// Regression test: on this drive, the host once opened the last erased reclaim unit before the
/// data that replace those of the other free units were on flash. A power cut then left no unit to
/// start with.
#[test]
fn an_erased_unit_is_no_way_past_the_reserve() {
    run(3, 49_153, 20, Fault::None).unwrap();
}

fn finds(fault: Fault) {
    for extra in Extra::ALL {
        let is_of_kind = |&number: &u64| Kind::of(number).extra == extra;
        let mut numbers = (0..KINDS as u64).filter(is_of_kind);
        assert!(
            numbers.any(|number| run(2, number, 6, fault).is_err()),
            "{fault:?} is not found: {extra:?}"
        );
    }
}

#[test]
fn a_flush_that_does_nothing_is_found() {
    finds(Fault::IgnoredFlushes);
}

#[test]
fn an_erase_before_the_new_data_are_on_flash_is_found() {
    finds(Fault::EarlyErases);
}

#[test]
fn a_mapping_with_the_oldest_copies_is_found() {
    finds(Fault::OldestCopy);
}

#[test]
fn a_deallocation_that_comes_back_after_a_flush_is_found() {
    finds(Fault::ForgottenTrims);
}
