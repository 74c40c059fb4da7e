//! Tests that each reclaim group behaves like a drive of the group's size.

use std::collections::BTreeMap;

use proptest::prelude::*;
use writecliff_base::codec::{StateReader, StateWriter};
use writecliff_base::{Bytes, Lpn, Prng, StreamId};
use writecliff_flash::{CellType, Geometry, Shape};
use writecliff_ftl::gc_destination::GcDestination;
use writecliff_ftl::gc_policy::GcPolicy;
use writecliff_ftl::wear_leveling::WearPolicy;
use writecliff_ftl::{FastForward, Ftl, FtlConfig, GcPacing, theory};

use crate::support::plain;

/// Returns a geometry of single-plane dies with SLC pages of one slot, where a reclaim unit has
/// `pages` slots on each die.
fn geometry(dies: u32, blocks: u32, pages: u32, groups: u32) -> Geometry {
    let shape = Shape {
        channels: 2,
        dies_per_channel: dies / 2,
        planes_per_die: 1,
        blocks_per_plane: blocks,
        pages_per_block: pages,
        page: Bytes(4096),
        cell: CellType::Slc,
        multi_plane: false,
        one_shot: false,
    };
    Geometry::new(shape).unwrap().with_reclaim_groups(groups).unwrap()
}

/// Writes a slot as a drive does, and returns the stream that received it.
fn write(ftl: &mut Ftl, lpn: u32, stream: u16) -> u16 {
    let chosen = ftl.choose_stream(StreamId(stream));
    ftl.write(Lpn(lpn), chosen, 4096, &mut FastForward);
    chosen.0
}

fn group_of(ftl: &Ftl, lpn: u32) -> u32 {
    ftl.geometry().group_of(ftl.geometry().reclaim_unit_of(ftl.lookup(Lpn(lpn))))
}

const UNITS: u32 = 1024;
const SLOTS: u32 = 64;

/// Returns two groups of 1024 units with 64 slots each, filled to the over-provisioning `op`; their
/// logical pages are consecutive.
fn two_groups(op: [f64; 2]) -> (Ftl, [u32; 2]) {
    // Garbage collection keeps four units of each group idle.
    let pages = op.map(|op| (f64::from((UNITS - 4) * SLOTS) / (1.0 + op)) as u32);
    let geometry = geometry(2, UNITS, SLOTS, 2);
    let mut ftl = Ftl::new(geometry, plain(pages[0] + pages[1], 2)).unwrap();
    for lpn in 0..pages[0] + pages[1] {
        let stream = u16::from(lpn >= pages[0]);
        assert_eq!(write(&mut ftl, lpn, stream), stream, "a group is full");
    }
    (ftl, pages)
}

#[test]
fn each_group_amplifies_writes_as_a_drive_of_its_own_size() {
    let op = [0.28, 0.10];
    let (mut ftl, pages) = two_groups(op);
    let mut random = Prng::new(3);
    let mut overwrite = |ftl: &mut Ftl, group: u16, times: u32| {
        let before = *ftl.counters();
        let first = if group == 0 { 0 } else { pages[0] };
        for _ in 0..times * pages[usize::from(group)] {
            let lpn = first + random.below(u64::from(pages[usize::from(group)])) as u32;
            write(ftl, lpn, group);
        }
        ftl.counters().write_amplification_since(&before).unwrap()
    };
    for (group, op) in (0..).zip(op) {
        overwrite(&mut ftl, group, 8);
        let erases = ftl.wear().total();
        let waf = overwrite(&mut ftl, group, 6);
        let expected = theory::greedy(1.0 / (1.0 + op), SLOTS);
        assert!((waf / expected - 1.0).abs() < 0.03, "group {group}: {waf} v {expected}");
        assert!(ftl.wear().total() > erases);
    }
    ftl.check_invariants().unwrap();
    let place = |lpn: u32| group_of(&ftl, lpn);
    assert!((0..pages[0]).all(|lpn| place(lpn) == 0), "data have left their group");
    assert!((pages[0]..pages[0] + pages[1]).all(|lpn| place(lpn) == 1));
}

#[test]
fn a_group_that_is_not_written_is_not_erased() {
    let (mut ftl, pages) = two_groups([0.2, 0.2]);
    let units = ftl.geometry().units_of_group(0);
    let erases = |ftl: &Ftl| {
        let mut sum = [0_u64; 2];
        let each = ftl.wear().erases.iter().zip(0_u32..);
        each.for_each(|(&n, unit)| sum[usize::from(!units.contains(&unit))] += u64::from(n));
        sum
    };
    let (before, mut random) = (erases(&ftl), Prng::new(4));
    for _ in 0..4 * pages[1] {
        write(&mut ftl, pages[0] + random.below(u64::from(pages[1])) as u32, 1);
    }
    let after = erases(&ftl);
    assert_eq!(before[0], after[0]);
    assert!(after[1] > before[1] + u64::from(UNITS));
}

#[test]
fn what_a_full_group_cannot_hold_goes_to_the_one_with_most_room() {
    let geometry = geometry(4, 64, 8, 4);
    // Each group has 512 slots; 15 units are reserved for garbage collection and open units.
    let mut ftl = Ftl::new(geometry, plain(4 * 8 * 48, 8)).unwrap();
    let user = ftl.user_slots();
    // All writes go to handle 1 of group 2.
    let streams: Vec<u16> = (0..user).map(|lpn| write(&mut ftl, lpn, 5)).collect();
    let inside = streams.iter().filter(|&&stream| stream == 5).count();
    assert!((350..=512).contains(&inside), "{inside} slots in the group of the stream");
    assert!(streams.iter().all(|stream| stream % 2 == 1), "all are of handle 1");
    for lpn in 0..user {
        assert_eq!(group_of(&ftl, lpn), u32::from(streams[lpn as usize] / 2));
    }
    let mut random = Prng::new(2);
    for _ in 0..20 * user {
        write(&mut ftl, random.below(u64::from(user)) as u32, random.below(8) as u16);
    }
    ftl.check_invariants().unwrap();
    assert_eq!(ftl.mapped_slots(), u64::from(user));
}

/// The selection scans all reclaim units, so it is not repeated for each slot.
#[test]
fn data_stay_in_the_chosen_group_until_the_reclaim_unit_is_full() {
    const UNIT: u32 = 8;
    let mut ftl = Ftl::new(geometry(4, 64, UNIT, 4), plain(4 * 8 * 48, 8)).unwrap();
    let mut lpn = 0;
    while write(&mut ftl, lpn, 5) == 5 {
        lpn += 1;
    }
    (0..lpn).for_each(|lpn| ftl.trim(Lpn(lpn)));
    let mut later = (1..=UNIT).map(|n| write(&mut ftl, lpn + n, 5));
    let redirected: Vec<u16> = later.by_ref().take(UNIT as usize - 1).collect();
    assert!(redirected.iter().all(|&stream| stream != 5 && stream % 2 == 1), "{redirected:?}");
    assert_eq!(later.next(), Some(5), "its own group has room again");
}

fn policies() -> impl Strategy<Value = (GcPolicy, GcDestination, GcPacing, WearPolicy)> {
    let gc = prop_oneof![
        Just(GcPolicy::Greedy),
        Just(GcPolicy::Fifo),
        Just(GcPolicy::DChoices { d: 3 }),
        Just(GcPolicy::CostBenefit),
        Just(GcPolicy::WindowedGreedy { window: 9 }),
    ];
    let destination = prop_oneof![
        Just(GcDestination::PerStream),
        Just(GcDestination::HostUnit),
        Just(GcDestination::Shared),
        Just(GcDestination::PerHandle { isolated: 0b10 }),
    ];
    let pacing = prop_oneof![
        Just(GcPacing::Incremental),
        Just(GcPacing::PerVictim),
        Just(GcPacing::OnDemand),
        Just(GcPacing::Quanta { slots: 16 }),
    ];
    let wear = prop_oneof![
        Just(WearPolicy::None),
        Just(WearPolicy::Dynamic),
        Just(WearPolicy::Static { threshold: 3 }),
    ];
    (gc, destination, pacing, wear)
}

/// Regression test: a victim of background collection used to wait while the host filled the unit
/// that receives its data. In this case, no unit was free for the remaining data of the victim.
#[test]
fn background_collection_leaves_the_host_its_reserve() {
    let (user, streams) = (1024, 8);
    let config = FtlConfig {
        gc: GcPolicy::DChoices { d: 3 },
        gc_destination: GcDestination::HostUnit,
        gc_pacing: GcPacing::OnDemand,
        ..plain(user, streams)
    };
    let mut ftl = Ftl::new(geometry(4, 48, 8, 4), config).unwrap();
    let mut random = Prng::new(11_248_348_248_112_176_574);
    for _ in 0..12_000 {
        let lpn = random.below(u64::from(user)) as u32;
        match random.below(100) {
            0 => ftl.trim(Lpn(lpn)),
            1 => drop(random.below(u64::from(streams))),
            2 => drop(ftl.gc_in_background(&mut FastForward)),
            3 => drop(ftl.gc_early(0.3, &mut FastForward)),
            _ => drop(write(&mut ftl, lpn, random.below(u64::from(streams)) as u16)),
        }
    }
    ftl.check_invariants().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Tests under any load that data stay in their group until the host overwrites them in
    /// another, that no data are lost, and that a restored drive continues like the saved drive.
    #[test]
    fn groups_keep_their_data(
        (gc, gc_destination, gc_pacing, wear) in policies(),
        groups in prop_oneof![Just(2_u32), Just(4)],
        seed in any::<u64>(),
    ) {
        const HANDLES: u16 = 2;
        let streams = HANDLES * groups as u16;
        let geometry = geometry(4, 48, 8, groups);
        let user = 32 * 32;
        let config = FtlConfig { gc, gc_destination, gc_pacing, wear, ..plain(user, streams) };
        let new = || Ftl::new(geometry.clone(), config.clone()).unwrap();
        let (mut ftl, mut random, mut model) = (new(), Prng::new(seed), BTreeMap::new());
        for n in 0..12_000 {
            let lpn = random.below(u64::from(user)) as u32;
            match random.below(100) {
                0 => {
                    ftl.trim(Lpn(lpn));
                    model.remove(&lpn);
                }
                1 => {
                    let frontier = ftl.host_frontier(StreamId(random.below(streams.into()) as u16));
                    ftl.pad(frontier, &mut FastForward);
                }
                2 => {
                    ftl.gc_in_background(&mut FastForward);
                }
                3 => {
                    ftl.gc_early(0.3, &mut FastForward);
                }
                _ => {
                    let chosen = write(&mut ftl, lpn, random.below(streams.into()) as u16);
                    model.insert(lpn, chosen);
                }
            }
            if n % 1500 == 0 {
                ftl.check_invariants().unwrap();
                for (&lpn, &stream) in &model {
                    prop_assert_eq!(group_of(&ftl, lpn), u32::from(stream / HANDLES));
                }
                let mut out = StateWriter::new(Vec::new()).unwrap();
                ftl.save(&mut out).unwrap();
                let saved = out.finish().unwrap();
                let mut other = new();
                other.restore(&mut StateReader::new(&saved[..]).unwrap()).unwrap();
                prop_assert_eq!(other.digest(), ftl.digest());
                ftl = other;
            }
        }
        prop_assert_eq!(ftl.mapped_slots(), model.len() as u64);
        ftl.purge();
        ftl.check_invariants().unwrap();
        write(&mut ftl, 5, streams - 1);
        prop_assert_eq!(group_of(&ftl, 5), groups - 1);
    }
}
