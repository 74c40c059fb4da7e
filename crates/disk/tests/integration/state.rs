//! Tests save and restore, determinism, and that every command completes exactly once.

use crate::common::{self, CAPACITY, command, config, disk, keep, random_blocks};
use proptest::collection::vec;
use proptest::prelude::*;
use writecliff_base::saved_state::RestoreError;
use writecliff_base::{Nanos, Prng};
use writecliff_disk::Disk;
use writecliff_host_interface::Drive;
use writecliff_host_interface::Operation::{self, Flush, Read, Trim, Write};

const HYBRID: &str = "[flash_cache]\nsize = \"8 MiB\"\nblock = \"64 KiB\"\npromote_after = 2\n\
                      read_time = \"100 us\"\nbandwidth = \"100 MB/s\"\n[link]";
const EVERYTHING: [(&str, &str); 4] = [
    ("write_cache = false", "write_cache = true"),
    ("\"0 %\"", "\"2 %\""),
    ("retries = 3", "retries = 3\nrecalibration_interval = \"1 s\"\nrecalibration_radii = 3"),
    ("[link]", HYBRID),
];

/// Returns a workload of reads and writes, half of them to a few hot blocks.
fn mixed(seed: u64) -> impl FnMut(usize) -> (Operation, u64, u32) {
    let mut random = Prng::new(seed);
    move |_| {
        let operation = if random.unit() < 0.7 { Read } else { Write };
        let blocks = if random.unit() < 0.5 { 300 } else { CAPACITY / 16_384 };
        (operation, random.below(blocks) * 16_384, 16_384)
    }
}

#[test]
fn a_restored_disk_behaves_like_the_saved_one() {
    let mut original = disk(&EVERYTHING);
    keep(&mut original, 8, 3000, mixed(1));
    original.check_invariants().unwrap();
    assert!(original.counters().host.flash_hits > 0 && original.counters().host.cache_hits > 0);
    let state = original.save(Vec::new()).unwrap();
    let mut restored = disk(&EVERYTHING);
    keep(&mut restored, 4, 100, random_blocks(4, Write));
    restored.restore_from(&mut state.as_slice()).unwrap();
    assert_eq!(restored.counters(), original.counters());
    assert_eq!(restored.save(Vec::new()).unwrap(), state);
    assert_eq!(keep(&mut original, 8, 3000, mixed(2)), keep(&mut restored, 8, 3000, mixed(2)));
    original.quiesce();
    restored.quiesce();
    assert_eq!(original.save(Vec::new()).unwrap(), restored.save(Vec::new()).unwrap());
    original.check_invariants().unwrap();
}

#[test]
fn damaged_states_and_states_of_other_disks_are_rejected() {
    let state = disk(&EVERYTHING).save(Vec::new()).unwrap();
    let refused = disk(&[]).restore_from(&mut state.as_slice()).unwrap_err();
    assert!(matches!(refused, RestoreError::OtherDevice(_)), "{refused}");
    for at in (20..state.len()).step_by(41) {
        let mut damaged = state.clone();
        damaged[at] ^= 0x10;
        assert!(disk(&EVERYTHING).restore_from(&mut damaged.as_slice()).is_err(), "byte {at}");
    }
}

#[test]
fn runs_are_deterministic_and_seeds_differ() {
    let run = |seed: u64| {
        let mut config = config(&EVERYTHING);
        config.seed = seed;
        keep(&mut Disk::new(config).unwrap(), 16, 2000, mixed(7))
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn a_hybrid_caches_frequent_reads_and_invalidates_on_writes() {
    let mut disk = disk(&[("[link]", HYBRID), ("segments = 4", "segments = 1")]);
    let far = CAPACITY / 2;
    let mut read = |offset: u64| {
        common::alone(&mut disk, Read, far, 4096);
        common::alone(&mut disk, Read, offset, 4096)
    };
    let times: Vec<Nanos> = (0..4).map(|_| read(1 << 20)).collect();
    let flash = Nanos(200_000);
    assert!(times[..2].iter().all(|&time| time > flash), "{times:?}");
    assert!(times[2..].iter().all(|&time| time < flash), "{times:?}");
    common::alone(&mut disk, Write, 1 << 20, 4096);
    common::alone(&mut disk, Read, far + (1 << 24), 4096);
    assert!(common::alone(&mut disk, Read, 1 << 20, 4096) > flash);
    disk.check_invariants().unwrap();
}

#[test]
fn fast_forward_writes_count_and_invalidate_caches_without_media_accesses() {
    let mut disk = disk(&EVERYTHING);
    keep(&mut disk, 8, 2000, mixed(3));
    disk.quiesce();
    let before = disk.counters();
    for index in 0..300 {
        disk.fast_forward(&command(Write, index * 16_384, 16_384, 0));
    }
    let after = disk.counters();
    assert_eq!(after.host.write_bytes - before.host.write_bytes, 300 * 16_384);
    assert_eq!(after.arm.accesses, before.arm.accesses);
    disk.check_invariants().unwrap();
    common::alone(&mut disk, Read, 16_384, 16_384);
    assert_eq!(disk.counters().host.cache_hits, after.host.cache_hits);
    assert_eq!(disk.counters().host.flash_hits, after.host.flash_hits);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_command_completes_exactly_once(
        commands in vec((0_u8..10, 0_u64..2000, 1_u32..300, 0_u64..9), 1..300),
        cached in any::<bool>(),
        depth in 1_usize..90,
    ) {
        let changes = &EVERYTHING[usize::from(!cached)..];
        let mut disk = disk(changes);
        let mut completed = vec![0; commands.len()];
        let (mut outstanding, mut last) = (0, Nanos::ZERO);
        let take = |disk: &mut Disk, completed: &mut Vec<u32>, last: &mut Nanos| {
            let done = disk.step(Nanos::MAX).expect("a completion");
            completed[done.tag as usize] += 1;
            assert!(done.at >= *last);
            *last = done.at;
        };
        for (index, &(kind, position, sectors, far)) in commands.iter().enumerate() {
            let operation = [Read, Read, Read, Read, Write, Write, Write, Write, Flush, Trim];
            let operation = operation[kind as usize];
            let offset = position * 4096 + far * (CAPACITY / 10 / 512 * 512);
            let length = sectors * 512;
            let length = if operation == Flush { 0 } else { length };
            if outstanding == depth {
                take(&mut disk, &mut completed, &mut last);
                outstanding -= 1;
            }
            disk.submit(last, command(operation, offset, length, index as u32));
            outstanding += 1;
        }
        for _ in 0..outstanding {
            take(&mut disk, &mut completed, &mut last);
        }
        prop_assert!(completed.iter().all(|&times| times == 1));
        prop_assert_eq!(disk.check_invariants(), Ok(()));
        disk.quiesce();
        prop_assert_eq!(disk.check_invariants(), Ok(()));
        let writes = commands.iter().filter(|command| (4..8).contains(&command.0));
        let written: u64 = writes.map(|command| u64::from(command.2) * 512).sum();
        prop_assert_eq!(disk.counters().host.write_bytes, written);
    }
}
