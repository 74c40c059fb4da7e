//! Tests bad blocks: behaviour with timing and in fast-forward, rejected writes, and the time that
//! block replacement takes.

use crate::common::{self, assert_section_refused, closed_loop, precondition, user_slots, write};
use writecliff_base::Prng;
use writecliff_ssd::{Drive, Ssd};

fn drive(keys: &str) -> Ssd {
    let keys = format!("[bad_blocks]\n{keys}\n[link]");
    common::drive(&[("[link]", &keys), ("rated_cycles = 1000", "rated_cycles = 20")])
}

/// Writes `fills` times the capacity at random.
fn overwrite(ssd: &mut Ssd, fills: u64, timed: bool) {
    let user = user_slots(ssd);
    let mut random = Prng::new(8);
    if timed {
        closed_loop(ssd, 16, (fills * user) as u32, |_| write(random.below(user), 1));
        ssd.quiesce();
    } else {
        (0..fills * user).for_each(|_| ssd.fast_forward(&write(random.below(user), 1)));
        ssd.end_fast_forward();
    }
}

#[test]
fn both_clocks_lose_the_same_blocks() {
    let worn = |timed| {
        let mut ssd = drive("factory = \"1 %\"\nfailed_at_rated = \"25 %\"\nshape = 2");
        precondition(&mut ssd, 1);
        overwrite(&mut ssd, 6, timed);
        ssd.ftl().check_invariants().unwrap();
        (ssd.ftl().digest(), ssd.counters().bad_blocks.unwrap())
    };
    let (timed, fast) = (worn(true), worn(false));
    assert_eq!(timed, fast);
    assert!(timed.1.counts.erase_failures + timed.1.counts.program_failures > 0);
}

#[test]
fn a_read_only_drive_refuses_writes_and_nothing_else() {
    let mut ssd = drive("failed_at_rated = \"90 %\"\nshape = 2");
    precondition(&mut ssd, 0);
    while ssd.counters().bad_blocks.unwrap().counts.read_only == 0 {
        overwrite(&mut ssd, 1, false);
    }
    let before = ssd.counters();
    overwrite(&mut ssd, 1, true);
    overwrite(&mut ssd, 1, false);
    let after = ssd.counters();
    assert_eq!(before.host_write_bytes, after.host_write_bytes);
    assert_eq!(before.nand_write_bytes, after.nand_write_bytes);
    assert_eq!(ssd.ftl().mapped_slots(), user_slots(&ssd));
    common::alone(&mut ssd, common::read(5, 1));
    ssd.ftl().check_invariants().unwrap();
}

#[test]
fn replacing_a_block_takes_time_and_is_counted_as_written() {
    let run = |share: &str| {
        let mut ssd =
            drive(&format!("failed_at_rated = \"{share}\"\nshape = 1\nfound_by_erase = \"0 %\""));
        precondition(&mut ssd, 1);
        let before = ssd.now();
        overwrite(&mut ssd, 4, true);
        let c = ssd.counters();
        let parts = c.host_write_bytes + c.gc_moved_bytes + c.wear_moved_bytes + c.padding_bytes;
        (ssd.now() - before, c.nand_write_bytes - parts)
    };
    let ((good, none), (bad, moved)) = (run("0 %"), run("10 %"));
    assert_eq!(none, 0);
    assert!(moved > 0 && bad > good, "{moved} B moved, {bad:?} against {good:?}");
}

#[test]
fn a_saved_drive_goes_on_as_it_would_have() {
    let new = || drive("factory = \"1 %\"\nfailed_at_rated = \"20 %\"\nshape = 2");
    let mut ssd_a = new();
    precondition(&mut ssd_a, 2);
    closed_loop(&mut ssd_a, 8, 500, |n| write(u64::from(n) * 7, 1));
    let mut other = new();
    let saved = ssd_a.save(Vec::new()).unwrap();
    other.restore_from(&mut saved.as_slice()).unwrap();
    for ssd in [&mut ssd_a, &mut other] {
        overwrite(ssd, 3, true);
    }
    assert_eq!(ssd_a.now(), other.now());
    assert_eq!(ssd_a.ftl().digest(), other.ftl().digest());
    assert_eq!(ssd_a.counters(), other.counters());
}

#[test]
fn mistakes_in_the_section_are_refused_at_their_line() {
    let rows = [
        ("shape = 2", "bad_blocks", "failed_at_rated"),
        ("failed_at_rated = \"100 %\"\nshape = 2", "failed_at_rated", "99"),
        ("failed_at_rated = \"1 %\"\nshape = 0", "shape", "0.1"),
        ("failed_at_rated = \"1 %\"\nshape = 2\nfactory = \"50 %\"", "user_capacity", "factory"),
    ];
    for (keys, location, what) in rows {
        assert_section_refused("bad_blocks", keys, location, what);
    }
}
