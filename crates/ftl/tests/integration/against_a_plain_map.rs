//! Compares the FTL with a plain map under random operations. All invariants are checked during the
//! test, and a sink that models the flash checks that the FTL's operations are legal.

use std::collections::BTreeMap;

use proptest::prelude::*;
use writecliff_base::codec::{StateReader, StateWriter};
use writecliff_base::{Bytes, Lpn, Ppa, ReclaimUnitId, StreamId};
use writecliff_flash::{CellType, Geometry, Shape};
use writecliff_ftl::frontier::FrontierId;
use writecliff_ftl::gc_destination::GcDestination;
use writecliff_ftl::gc_policy::GcPolicy;
use writecliff_ftl::spare::SparePolicy;
use writecliff_ftl::wear_leveling::WearPolicy;
use writecliff_ftl::{FlashSink, Ftl, FtlConfig, GcPacing, ProgramUnit};

const STREAMS: u16 = 3;
const USER: u32 = 700;

fn geometry(one_shot: bool) -> Geometry {
    let shape = Shape {
        channels: 2,
        dies_per_channel: 1,
        planes_per_die: 2,
        blocks_per_plane: 40,
        pages_per_block: 6,
        page: Bytes(8192),
        cell: CellType::Tlc,
        multi_plane: true,
        one_shot,
    };
    Geometry::new(shape).unwrap()
}

fn config(gc: GcPolicy, gc_destination: GcDestination, wear: WearPolicy) -> FtlConfig {
    let spare = SparePolicy::Global;
    FtlConfig {
        user_slots: USER.into(),
        streams: STREAMS,
        gc,
        gc_pacing: GcPacing::Incremental,
        gc_destination,
        spare,
        wear,
        gc_high_watermark: 4,
        gc_low_watermark: 3,
        gc_idle_watermark: 8,
        rated_cycles: 100,
        volatile_buffer: false,
        seed: 5,
        reduction: None,
        bad_blocks: None,
    }
}

/// Checks the rules of flash: a unit must be erased before it is programmed, and programmed in
/// order and only once.
#[derive(Default)]
struct Flash {
    /// Units programmed since the last erase, by reclaim unit.
    programmed: BTreeMap<u32, u32>,
    data_slots: u64,
    erases: u64,
}

impl FlashSink for Flash {
    fn read_for(&mut self, _: FrontierId, from: Ppa, slots: u32) {
        assert!(slots > 0);
        assert!(!from.is_none());
    }

    fn program(&mut self, _: FrontierId, unit: ProgramUnit) {
        let done = self.programmed.entry(unit.reclaim_unit.0).or_default();
        assert_eq!(unit.unit, *done, "program units must be programmed in order");
        assert!(unit.data_slots > 0);
        *done += 1;
        self.data_slots += u64::from(unit.data_slots);
    }

    fn erase(&mut self, _: FrontierId, unit: ReclaimUnitId, _: u64) {
        self.erases += 1;
        assert!(
            self.programmed.remove(&unit.0).is_some(),
            "erase of a unit that was never programmed"
        );
    }
}

#[derive(Clone, Debug)]
enum Step {
    Write { lpn: u32, stream: u16, bytes: u32 },
    Trim { lpn: u32, count: u32 },
    Pad { stream: u16 },
    Idle { steps: u32 },
    Early { valid_pct: u32 },
    SaveAndRestore,
    Purge,
}

fn step() -> impl Strategy<Value = Step> {
    let any = 0..USER;
    let hot = 0..USER / 10;
    let length = prop_oneof![9 => Just(4096), 1 => Just(512)];
    prop_oneof![
        60 => (prop_oneof![any.clone(), hot], 0..STREAMS, length)
            .prop_map(|(lpn, stream, bytes)| Step::Write { lpn, stream, bytes }),
        4 => (any, 1..20_u32).prop_map(|(lpn, count)| Step::Trim { lpn, count }),
        2 => (0..STREAMS).prop_map(|stream| Step::Pad { stream }),
        1 => (1..40_u32).prop_map(|steps| Step::Idle { steps }),
        1 => (0..50_u32).prop_map(|valid_pct| Step::Early { valid_pct }),
    ]
}

fn rare_step() -> impl Strategy<Value = Step> {
    prop_oneof![3000 => step(), 2 => Just(Step::SaveAndRestore), 1 => Just(Step::Purge)]
}

struct Bench {
    ftl: Ftl,
    flash: Flash,
    /// Stream of the last write to each mapped page.
    model: BTreeMap<u32, u16>,
}

impl Bench {
    fn apply(&mut self, step: &Step) {
        match *step {
            Step::Write { lpn, stream, bytes } => {
                self.ftl.write(Lpn(lpn), StreamId(stream), bytes, &mut self.flash);
                self.model.insert(lpn, stream);
            }
            Step::Trim { lpn, count } => {
                for page in lpn..(lpn + count).min(USER) {
                    self.ftl.trim(Lpn(page));
                    self.model.remove(&page);
                }
            }
            Step::Pad { stream } => {
                let frontier = self.ftl.host_frontier(StreamId(stream));
                self.ftl.pad(frontier, &mut self.flash);
            }
            Step::Idle { steps } => {
                for _ in 0..steps {
                    if !self.ftl.gc_in_background(&mut self.flash) {
                        break;
                    }
                }
            }
            Step::Early { valid_pct } => {
                self.ftl.gc_early(f64::from(valid_pct) / 100.0, &mut self.flash);
            }
            Step::SaveAndRestore => self.save_and_restore(),
            Step::Purge => {
                self.ftl.purge();
                self.flash.programmed.clear();
                self.model.clear();
            }
        }
    }

    fn save_and_restore(&mut self) {
        let mut out = StateWriter::new(Vec::new()).unwrap();
        self.ftl.save(&mut out).unwrap();
        let data = out.finish().unwrap();
        let mut copy = Ftl::new(self.ftl.geometry().clone(), self.ftl.config().clone()).unwrap();
        copy.restore(&mut StateReader::new(&data[..]).unwrap()).unwrap();
        assert_eq!(copy.digest(), self.ftl.digest());
        self.ftl = copy;
    }

    fn check(&self) {
        self.ftl.check_invariants().unwrap();
        assert_eq!(self.ftl.mapped_slots(), self.model.len() as u64);
        let owners = &self.ftl.table().owner;
        let gc_destination = self.ftl.config().gc_destination;
        for lpn in 0..USER {
            let ppa = self.ftl.lookup(Lpn(lpn));
            assert_eq!(!ppa.is_none(), self.model.contains_key(&lpn), "page {lpn}");
            if ppa.is_none() {
                continue;
            }
            assert_eq!(self.ftl.holder(ppa), Some(Lpn(lpn)));
            let owner = owners[self.ftl.geometry().reclaim_unit_of(ppa).index()];
            if gc_destination.isolates(StreamId(self.model[&lpn])) || !owner.relocated {
                assert_eq!(owner.stream.0, self.model[&lpn], "a unit mixes streams");
            }
        }
        let ppas = self.ftl.table().owner.len() as u32 * self.ftl.geometry().ppas_per_reclaim_unit;
        let holders = (0..ppas).filter_map(|ppa| self.ftl.holder(Ppa(ppa)));
        assert_eq!(holders.count(), self.model.len(), "a superseded slot still has a holder");
        let c = self.ftl.counters();
        assert_eq!(
            c.programmed_slots,
            c.programs * u64::from(self.ftl.geometry().slots_per_program_unit)
        );
        assert!(self.flash.data_slots <= c.host_slots + c.gc_slots + c.wear_slots);
    }
}

/// Returns valid combinations of GC destination and spare policies.
fn stream_policies() -> impl Strategy<Value = (GcDestination, SparePolicy)> {
    prop_oneof![
        Just((GcDestination::PerStream, SparePolicy::Global)),
        Just((GcDestination::PerStream, SparePolicy::SelfTuned)),
        Just((GcDestination::HostUnit, SparePolicy::Global)),
        Just((GcDestination::Shared, SparePolicy::Global)),
        Just((GcDestination::PerHandle { isolated: 0b101 }, SparePolicy::Global)),
        Just((GcDestination::PerHandle { isolated: 0b010 }, SparePolicy::Global)),
    ]
}

type Policies = (GcPolicy, GcPacing, (GcDestination, SparePolicy), WearPolicy, bool);

fn policies() -> impl Strategy<Value = Policies> {
    (
        prop_oneof![
            Just(GcPolicy::Greedy),
            Just(GcPolicy::Fifo),
            Just(GcPolicy::DChoices { d: 3 }),
            Just(GcPolicy::CostBenefit),
            Just(GcPolicy::WindowedGreedy { window: 3 })
        ],
        prop_oneof![
            Just(GcPacing::Incremental),
            (1..200_u32).prop_map(|slots| GcPacing::Quanta { slots }),
            Just(GcPacing::PerVictim),
            Just(GcPacing::OnDemand)
        ],
        stream_policies(),
        prop_oneof![
            Just(WearPolicy::None),
            Just(WearPolicy::Dynamic),
            Just(WearPolicy::Static { threshold: 3 })
        ],
        any::<bool>(),
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn the_ftl_is_a_map(
        (gc, gc_pacing, (gc_destination, spare), wear, one_shot) in policies(),
        steps in prop::collection::vec(rare_step(), 4000..8000),
    ) {
        let config = FtlConfig { gc_pacing, spare, ..config(gc, gc_destination, wear) };
        let ftl = Ftl::new(geometry(one_shot), config).unwrap();
        let mut bench = Bench { ftl, flash: Flash::default(), model: BTreeMap::new() };
        for (n, step) in steps.iter().enumerate() {
            bench.apply(step);
            if n % 97 == 0 {
                bench.check();
            }
        }
        // Overwrite the drive to make GC run even if the steps ended with a purge.
        for n in 0..6 * USER {
            let lpn = n.wrapping_mul(2_654_435_761) % USER;
            bench.apply(&Step::Write { lpn, stream: (n % 3) as u16, bytes: 4096 });
        }
        bench.check();
        // After purges, too few consecutive writes may remain to fill the drive.
        let purged = steps.iter().any(|step| matches!(step, Step::Purge));
        prop_assert!(purged || bench.ftl.counters().collections > 0, "GC did not run");
    }
}

#[test]
fn static_levelling_keeps_cold_blocks_in_use() {
    let spread = |wear: WearPolicy| {
        let mut ftl =
            Ftl::new(geometry(false), config(GcPolicy::Greedy, GcDestination::PerStream, wear))
                .unwrap();
        let mut flash = Flash::default();
        for lpn in 0..USER {
            ftl.write(Lpn(lpn), StreamId(0), 4096, &mut flash);
        }
        for n in 0..400_000_u32 {
            ftl.write(Lpn(n % 40), StreamId(0), 4096, &mut flash);
        }
        ftl.check_invariants().unwrap();
        let summary = ftl.wear().summary();
        (summary, ftl.counters().wear_slots)
    };
    let (none, moved) = spread(WearPolicy::None);
    assert_eq!((none.min, moved), (0, 0), "cold blocks were never erased");
    let (levelled, moved) = spread(WearPolicy::Static { threshold: 20 });
    assert!(moved > 0);
    let gap = levelled.mean - f64::from(levelled.min);
    assert!(gap < 30.0, "gap {gap} exceeds what threshold and relocation rate allow");
    assert!(none.mean > 150.0);
}

#[test]
fn trimmed_data_are_not_relocated() {
    let mut ftl = Ftl::new(
        geometry(false),
        config(GcPolicy::Greedy, GcDestination::PerStream, WearPolicy::Dynamic),
    )
    .unwrap();
    let mut flash = Flash::default();
    for _ in 0..20 {
        for lpn in 0..USER {
            ftl.write(Lpn(lpn), StreamId(0), 4096, &mut flash);
        }
        (0..USER).for_each(|lpn| ftl.trim(Lpn(lpn)));
    }
    assert_eq!(ftl.counters().gc_slots, 0);
    assert_eq!(ftl.mapped_slots(), 0);
    ftl.check_invariants().unwrap();
}
