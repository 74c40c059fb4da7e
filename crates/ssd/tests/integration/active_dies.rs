//! A limit on the dies that work at once: what it costs in speed, and what it bounds.

use crate::common::{self, alone, closed_loop, command, drive, read, user_slots, write};
use writecliff_base::Prng;
use writecliff_ssd::{Operation, Ssd};

const SUSPEND: (&str, &str) =
    ("[flash]", "[flash]\nprogram_suspend = \"20 us\"\nerase_suspend = \"40 us\"");

/// A drive of four dies, of which `limit` may work, each with 1 W and the rest of it with none.
fn settled(limit: u32, changes: &[(&str, &str)]) -> Ssd {
    let section = format!(
        "[power]\nidle = \"0 W\"\nread = \"1 W\"\nprogram = \"1 W\"\nerase = \"1 W\"\n\
         active_dies = {limit}\n[link]"
    );
    let mut changes = changes.to_vec();
    changes.push(("[link]", &section));
    let mut ssd = drive(&changes);
    for slot in 0..user_slots(&ssd) {
        ssd.fast_forward(&write(slot, 1));
    }
    ssd.end_fast_forward();
    alone(&mut ssd, command(Operation::Flush, 0, 0, 0));
    ssd.quiesce();
    ssd
}

/// Commands a second, and mean watts, under a mix of `read_pct` % random reads at 16 outstanding.
fn load(ssd: &mut Ssd, read_pct: u64) -> (f64, f64) {
    let (user, mut random) = (user_slots(ssd), Prng::new(5));
    let (from, before) = (ssd.now(), ssd.counters().energy.unwrap().flash);
    closed_loop(ssd, 16, 6_000, |_| {
        let slot = random.below(user);
        if random.below(100) < read_pct { read(slot, 1) } else { write(slot, 1) }
    });
    let seconds = (ssd.now() - from).as_secs_f64();
    (6_000.0 / seconds, (ssd.counters().energy.unwrap().flash - before) / seconds)
}

#[test]
fn dies_that_work_bound_reads_and_power() {
    // A read senses for 50 or 70 us: two dies do 33,000 a second.
    let found = [1, 2, 4].map(|limit| load(&mut settled(limit, &[]), 100));
    for ((iops, watts), limit) in found.into_iter().zip([1.0, 2.0]) {
        let bound = limit / 60e-6;
        assert!(iops < 1.02 * bound && iops > 0.9 * bound, "{iops:.0} of {bound:.0}, {limit} dies");
        assert!(watts <= limit && watts > 0.9 * limit, "{watts} W of {limit} dies");
    }
    assert!(found[2].0 > 1.3 * found[1].0, "all dies: {:.0} IOPS", found[2].0);
}

#[test]
fn every_command_of_any_mix_completes_within_the_power() {
    for changes in [&[][..], &[SUSPEND], &common::SLC] {
        let mut rates = Vec::new();
        for limit in 1..=4 {
            let mut ssd = settled(limit, changes);
            let (iops, watts) = load(&mut ssd, 50);
            // Work in progress at the end counts in full: an erase of each die.
            assert!(watts <= 1.05 * f64::from(limit), "{watts} W of {limit} dies");
            ssd.quiesce();
            ssd.check_invariants().unwrap();
            rates.push(iops);
        }
        assert!(rates.is_sorted(), "{rates:?}");
        assert!(rates[3] > 1.5 * rates[0], "{rates:?}");
    }
}

#[test]
fn a_limit_that_all_dies_keep_changes_nothing() {
    let (mut limited, mut free) = (settled(4, &[]), settled(40, &[]));
    assert_eq!(load(&mut limited, 50), load(&mut free, 50));
}

#[test]
fn a_restored_drive_goes_on_with_its_turns() {
    let mut ssd = settled(1, &[SUSPEND]);
    load(&mut ssd, 50);
    let saved = ssd.save(Vec::new()).unwrap();
    let mut restored = settled(1, &[SUSPEND]);
    restored.restore(&saved[..]).unwrap();
    assert_eq!(load(&mut restored, 50), load(&mut ssd, 50));
}

#[test]
fn errors_name_their_line() {
    let text = "idle = \"1 W\"\nactive_dies = 0";
    common::assert_section_refused("power", text, ":41: ", "outside 1");
}
