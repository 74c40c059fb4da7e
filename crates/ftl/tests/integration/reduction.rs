//! Tests data reduction: all invariants under random operations, and write amplification against
//! closed forms.

use std::collections::BTreeMap;

use proptest::prelude::*;
use writecliff_base::codec::{StateReader, StateWriter};
use writecliff_base::{Bytes, Lpn, Prng, StreamId};
use writecliff_flash::{CellType, Geometry, Shape};
use writecliff_ftl::gc_destination::GcDestination;
use writecliff_ftl::gc_policy::GcPolicy;
use writecliff_ftl::spare::SparePolicy;
use writecliff_ftl::wear_leveling::WearPolicy;
use writecliff_ftl::{
    FastForward, Ftl, FtlConfig, GcPacing, ReductionConfig, ReductionCounters, theory,
};
use writecliff_host_interface::Content;

const USER: u32 = 700;
const BOTH: ReductionConfig = ReductionConfig { min_stored_sectors: 1, duplicates: true };

fn shape() -> Shape {
    Shape {
        channels: 2,
        dies_per_channel: 1,
        planes_per_die: 2,
        blocks_per_plane: 40,
        pages_per_block: 6,
        page: Bytes(8192),
        cell: CellType::Tlc,
        multi_plane: true,
        one_shot: true,
    }
}

fn config(user_slots: u32, reduction: Option<ReductionConfig>) -> FtlConfig {
    FtlConfig {
        user_slots: user_slots.into(),
        streams: 2,
        gc: GcPolicy::Greedy,
        gc_pacing: GcPacing::Incremental,
        gc_destination: GcDestination::PerStream,
        spare: SparePolicy::Global,
        wear: WearPolicy::Dynamic,
        gc_high_watermark: 4,
        gc_low_watermark: 3,
        gc_idle_watermark: 8,
        rated_cycles: 100,
        volatile_buffer: false,
        seed: 5,
        reduction,
        bad_blocks: None,
    }
}

fn write(ftl: &mut Ftl, lpn: u32, content: Content) {
    ftl.write_reduced(Lpn(lpn), StreamId(0), 4096, content, &mut FastForward);
}

#[derive(Clone, Debug)]
enum Step {
    Write { lpn: u32, sectors: u32, stream: u16, bytes: u32 },
    Repeat { lpn: u32, of: u32 },
    Trim { lpn: u32, count: u32 },
    Pad,
    Idle,
    SaveAndRestore,
    Purge,
}

fn step() -> impl Strategy<Value = Step> {
    let any = || prop_oneof![0..USER, 0..USER / 10];
    let bytes = prop_oneof![9 => Just(4096), 1 => Just(1024)];
    prop_oneof![
        600 => (any(), 1..=8_u32, 0..2_u16, bytes).prop_map(|(lpn, sectors, stream, bytes)| {
            Step::Write { lpn, sectors, stream, bytes }
        }),
        200 => (any(), any()).prop_map(|(lpn, of)| Step::Repeat { lpn, of }),
        20 => (0..USER, 1..20_u32).prop_map(|(lpn, count)| Step::Trim { lpn, count }),
        20 => Just(Step::Pad),
        10 => Just(Step::Idle),
        2 => Just(Step::SaveAndRestore),
        1 => Just(Step::Purge),
    ]
}

/// Model of the host data: a data ID for each page, and the compressed size.
struct Model {
    pages: BTreeMap<u32, (u32, u32)>,
    written: u32,
}

impl Model {
    fn apply(&mut self, ftl: &mut Ftl, step: &Step) {
        match *step {
            Step::Write { lpn, sectors, stream, bytes } => {
                let content = Content { sectors, ..Content::INCOMPRESSIBLE };
                ftl.write_reduced(Lpn(lpn), StreamId(stream), bytes, content, &mut FastForward);
                self.written += 1;
                self.pages.insert(lpn, (self.written, sectors));
            }
            Step::Repeat { lpn, of } => {
                write(ftl, lpn, Content { same_as: Lpn(of), ..Content::INCOMPRESSIBLE });
                self.written += 1;
                let new = (self.written, 8);
                let data = self.pages.get(&of).copied().unwrap_or(new);
                self.pages.insert(lpn, data);
            }
            Step::Trim { lpn, count } => {
                for page in lpn..(lpn + count).min(USER) {
                    ftl.trim(Lpn(page));
                    self.pages.remove(&page);
                }
            }
            Step::Pad => {
                ftl.pad(ftl.host_frontier(StreamId(0)), &mut FastForward);
            }
            Step::Idle => {
                (0..20).all(|_| ftl.gc_in_background(&mut FastForward));
            }
            Step::SaveAndRestore => save_and_restore(ftl),
            Step::Purge => {
                ftl.purge();
                self.pages.clear();
            }
        }
    }

    /// Checks that exactly the pages with equal data share an address, and that the valid space is
    /// the size of the distinct data.
    fn check(&self, ftl: &Ftl) {
        ftl.check_invariants().unwrap();
        assert_eq!(ftl.mapped_slots(), self.pages.len() as u64);
        let mut ppas = BTreeMap::new();
        for (&lpn, &(data, sectors)) in &self.pages {
            let ppa = ftl.lookup(Lpn(lpn));
            assert!(!ppa.is_none(), "page {lpn}");
            assert_eq!(*ppas.entry(data).or_insert(ppa), ppa, "page {lpn} does not share its data");
            assert_eq!(ftl.alloc_units_of(Lpn(lpn)), sectors);
        }
        let mut distinct: Vec<u32> = ppas.values().map(|p| p.0).collect();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), ppas.len(), "different data share a physical page address");
        let sizes: BTreeMap<u32, u32> = self.pages.values().copied().collect();
        let stored: u32 = sizes.values().sum();
        assert_eq!(ftl.table().valid.iter().sum::<u32>(), stored);
    }
}

fn save_and_restore(ftl: &mut Ftl) {
    let mut out = StateWriter::new(Vec::new()).unwrap();
    ftl.save(&mut out).unwrap();
    let data = out.finish().unwrap();
    let geometry = Geometry::new(shape()).unwrap();
    let mut copy = Ftl::new(geometry, ftl.config().clone()).unwrap();
    copy.restore(&mut StateReader::new(&data[..]).unwrap()).unwrap();
    assert_eq!(copy.digest(), ftl.digest());
    *ftl = copy;
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 32,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn all_reduced_data_are_readable(
        rejoin in any::<bool>(),
        static_wear in any::<bool>(),
        steps in prop::collection::vec(step(), 4000..7000),
    ) {
        let mut config = config(USER, Some(BOTH));
        if rejoin {
            config.gc_destination = GcDestination::HostUnit;
        }
        if static_wear {
            config.wear = WearPolicy::Static { threshold: 3 };
        }
        let mut ftl = Ftl::new(Geometry::new(shape()).unwrap(), config).unwrap();
        let mut model = Model { pages: BTreeMap::new(), written: 0 };
        for (n, step) in steps.iter().enumerate() {
            model.apply(&mut ftl, step);
            if n % 97 == 0 {
                model.check(&ftl);
            }
        }
        // Overwrite the drive several times so that GC always runs.
        for n in 0..6 * USER {
            let lpn = n.wrapping_mul(2_654_435_761) % USER;
            let sectors = 5 + n % 4;
            model.apply(&mut ftl, &Step::Write { lpn, sectors, stream: 0, bytes: 4096 });
        }
        model.check(&ftl);
        prop_assert!(ftl.counters().collections > 0, "GC did not run");
    }
}

#[test]
fn irreducible_data_are_stored_as_without_reduction() {
    let geometry = || Geometry::new(shape()).unwrap();
    let user = 2 * USER;
    let mut plain = Ftl::new(geometry(), config(user, None)).unwrap();
    let mut reducing = Ftl::new(geometry(), config(user, Some(BOTH))).unwrap();
    let mut random = Prng::new(3);
    for n in 0..40 * user {
        let lpn = if n < user { n } else { random.below(u64::from(user)) as u32 };
        plain.write(Lpn(lpn), StreamId(0), 4096, &mut FastForward);
        write(&mut reducing, lpn, Content::INCOMPRESSIBLE);
    }
    assert!(plain.counters().gc_slots > 10 * u64::from(user));
    assert_eq!(plain.counters(), reducing.counters());
    let sectors: Vec<u32> = plain.table().valid.iter().map(|v| 8 * v).collect();
    assert_eq!(sectors, reducing.table().valid);
}

/// Returns a drive of 2,048 units with 256 slots each, whose over-provisioning covers only the
/// space that GC circulates through, as in theory.
fn wide(gc: GcPolicy, overprovision: f64, duplicates: bool) -> Ftl {
    let units = 2048_u32;
    let shape = Shape {
        channels: 1,
        planes_per_die: 1,
        blocks_per_plane: units,
        pages_per_block: 256,
        page: Bytes(4096),
        cell: CellType::Slc,
        multi_plane: false,
        one_shot: false,
        ..shape()
    };
    let user = f64::from((units - 4) * 256) / (1.0 + overprovision);
    let config = FtlConfig {
        streams: 1,
        gc,
        wear: WearPolicy::None,
        gc_low_watermark: 2,
        ..config(user as u32, Some(ReductionConfig { min_stored_sectors: 2, duplicates }))
    };
    Ftl::new(Geometry::new(shape).unwrap(), config).unwrap()
}

/// Returns the number of sectors allocated per sector written by the host, measured over the same
/// number of capacity overwrites as the warm-up.
fn waf(ftl: &mut Ftl, passes: u32, mut content: impl FnMut(&mut Prng, u32) -> Content) -> f64 {
    let user = ftl.user_slots();
    let mut random = Prng::new(11);
    for lpn in 0..user {
        let content = content(&mut random, lpn);
        write(ftl, lpn, content);
    }
    let allocated = |c: &ReductionCounters| c.host_sectors + c.gc_sectors + c.padding_sectors;
    let mut before = 0;
    for n in 0..2 * passes * user {
        if n == passes * user {
            before = allocated(ftl.reduction().unwrap());
        }
        let lpn = random.below(u64::from(user)) as u32;
        let content = content(&mut random, lpn);
        write(ftl, lpn, content);
    }
    (allocated(ftl.reduction().unwrap()) - before) as f64 / f64::from(passes * user) / 8.0
}

fn within(measured: f64, theory: f64, share: f64) {
    let error = measured / theory - 1.0;
    assert!(error.abs() < share, "{measured} for {theory}: {:+.2} %", 100.0 * error);
}

/// If all data have the compressed size `c`, the flash holds 1/c pieces per slot. Greedy GC then
/// has the resulting over-provisioning and 1/c times as many pieces per block.
#[test]
fn compressed_data_of_one_size_follow_the_greedy_theory() {
    for (sectors, pieces) in [(4_u32, 512), (2, 1024)] {
        let mut ftl = wide(GcPolicy::Greedy, 0.07, false);
        let content = Content { sectors, ..Content::INCOMPRESSIBLE };
        let share = f64::from(sectors) / 8.0;
        let measured = waf(&mut ftl, 6, |_, _| content);
        within(measured, share * theory::greedy(share / 1.07, pieces), 0.005);
    }
}

/// For FIFO, only the volume between writes matters, so sizes may be mixed. Space at the end of a
/// unit is lost if no piece fits.
#[test]
fn a_mix_of_sizes_follows_the_fifo_theory() {
    let mut ftl = wide(GcPolicy::Fifo, 0.07, false);
    let measured = waf(&mut ftl, 6, |random, _| {
        let sectors = [8, 7, 6, 5][random.below(4) as usize];
        Content { sectors, ..Content::INCOMPRESSIBLE }
    });
    let c = ftl.reduction().unwrap();
    let lost =
        c.padding_sectors as f64 / (c.host_sectors + c.gc_sectors + c.padding_sectors) as f64;
    let (share, capacity) = (6.5 / 8.0, 1.07 * (1.0 - lost));
    within(measured * (1.0 - lost), share * theory::fifo(share / capacity), 0.003);
}

#[test]
fn duplicates_follow_the_fifo_theory() {
    for (one_in, d) in [(2, 0.5), (4, 0.25)] {
        let mut ftl = wide(GcPolicy::Fifo, 0.07, true);
        let mut original = Lpn::NONE;
        let measured = waf(&mut ftl, 6, |random, lpn| {
            if random.below(one_in) == 0 && !original.is_none() {
                return Content { same_as: original, ..Content::INCOMPRESSIBLE };
            }
            original = Lpn(lpn);
            Content::INCOMPRESSIBLE
        });
        within(measured, theory::fifo_without_duplicates(1.0 / 1.07, d), 0.005);
        let valid: u64 = ftl.table().valid.iter().map(|&v| u64::from(v)).sum();
        let stored = valid as f64 / 8.0 / f64::from(ftl.user_slots());
        within(stored, theory::different_data(d), 0.005);
        ftl.check_invariants().unwrap();
    }
}
