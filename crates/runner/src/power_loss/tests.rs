//! Tests the losses of drives that collect garbage, where relocated data also occupy the buffer.

use super::*;
use writecliff_ssd::device_file;

const DRIVE: &str = include_str!("collecting.toml");
/// Slots in a buffer of 2 MiB.
const BUFFER_SLOTS: u64 = 512;
/// Number of writes, which exceeds the drive's slots so that garbage is collected.
const WRITES: u64 = 12_000;

fn cuts(changes: &[(&str, &str)]) -> Vec<Loss> {
    let mut text = DRIVE.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    let config = device_file::read(&text, "collecting.toml", 1).unwrap();
    losses(config, 1, 32, &[WRITES, WRITES, 100, WRITES, 700, WRITES, 2000, WRITES]).unwrap()
}

#[test]
fn a_cut_takes_no_more_confirmed_writes_than_the_buffer_holds() {
    let losses = cuts(&[]);
    assert!(losses.iter().all(|loss| loss.lost <= BUFFER_SLOTS.min(loss.confirmed)), "{losses:?}");
    assert!(losses.iter().any(|loss| loss.lost > BUFFER_SLOTS / 4), "{losses:?}");
}

#[test]
fn what_was_confirmed_without_a_cache_or_with_capacitors_is_kept() {
    let uncached = ("write_cache = true", "write_cache = false");
    let protected = ("power_loss_protection = false", "power_loss_protection = true");
    for change in [uncached, protected] {
        let losses = cuts(&[change]);
        assert!(losses.iter().all(|loss| loss.lost == 0), "{losses:?}");
    }
}

/// The dies program 4 program units in each tPROG period. Power cuts must not let the drive accept
/// writes faster than the dies program, except for writes that fit into the buffer.
#[test]
fn cuts_do_not_make_the_drive_faster_than_its_flash() {
    let (slots_per_round, round) = (4 * 24, 1_500_000);
    for loss in cuts(&[]) {
        let rounds = (loss.confirmed - loss.confirmed.min(BUFFER_SLOTS)) / slots_per_round;
        assert!(loss.elapsed >= Nanos(rounds * round), "{loss:?}");
    }
}
