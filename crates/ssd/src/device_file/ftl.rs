//! Section `[ftl]` of a device file.

use writecliff_base::keys::{Choice, Count, Numbers, Section, Size, SizeWithin};
use writecliff_base::located::{Answer, Table};
use writecliff_base::{Bytes, SLOT_BYTES, reject, section};
use writecliff_ftl::gc_destination::GcDestination;
use writecliff_ftl::gc_policy::GcPolicy;
use writecliff_ftl::spare::SparePolicy;
use writecliff_ftl::wear_leveling::WearPolicy;
use writecliff_ftl::{FtlConfig, GcPacing};

use crate::mechanisms::indirection_units::MERGED_MAX;

/// Maximum quantum of garbage collection: several blocks of every die of a large drive.
const QUANTUM_MAX: Bytes = Bytes(1 << 30);

// The policy parameters are separate keys that `read` fills in.
section! {
    pub(super) struct Keys {
        d: default Count(1..=1024) = 10, "candidates of `\"d-choices\"`";
        gc: required Choice<GcPolicy>(&[
            ("greedy", GcPolicy::Greedy),
            ("fifo", GcPolicy::Fifo),
            ("d-choices", GcPolicy::DChoices { d: 0 }),
            ("random", GcPolicy::DChoices { d: 1 }),
            ("cost-benefit", GcPolicy::CostBenefit),
            ("windowed-greedy", GcPolicy::WindowedGreedy { window: 0 }),
        ]), "victim selection";
        gc_window: optional Count(1..=1 << 20),
            "required with `\"windowed-greedy\"`: number of oldest units that the policy chooses \
             from";
        gc_pacing: default Choice<GcPacing>(&[
            ("incremental", GcPacing::Incremental),
            ("quanta", GcPacing::Quanta { slots: 0 }),
            ("per-victim", GcPacing::PerVictim),
            ("on-demand", GcPacing::OnDemand),
        ]) = GcPacing::Incremental,
            "when data are relocated: with every write, by `gc_quantum`, by victim, or at the low \
             watermark";
        gc_quantum: optional SizeWithin(Bytes(SLOT_BYTES)..=QUANTUM_MAX),
            "required with `\"quanta\"`; typically a stripe, which is one program unit of every \
             die";
        wear_threshold: default Count(1..=1_000_000) = 50,
            "with `\"static\"`: number of erases by which a unit may lag behind the mean";
        gc_destination: required Choice<GcDestination>(&[
            ("per-stream", GcDestination::PerStream),
            ("host-unit", GcDestination::HostUnit),
            ("shared", GcDestination::Shared),
            ("per-handle", GcDestination::PerHandle { isolated: 0 }),
        ]), "destination of relocated data, see [streams](../guides/streams.md)";
        isolated_streams: optional Numbers(0.0..=127.0),
            "required with `\"per-handle\"`: the streams whose relocated data stay separate";
        streams: required Count(1..=128),
            "number of placement identifiers; each has open reclaim units, which need spare space \
             and buffer";
        spare: default Choice<SparePolicy>(SparePolicy::WORDS) = SparePolicy::Global,
            "division of spare space between streams, see [streams](../guides/streams.md)";
        wear_leveling: required Choice<WearPolicy>(&[
            ("none", WearPolicy::None),
            ("dynamic", WearPolicy::Dynamic),
            ("static", WearPolicy::Static { threshold: 0 }),
        ]), "selection of the free unit to open, and relocation of cold data (`\"static\"`)";
        gc_high_watermark: required Count(1..=1 << 20),
            "number of free units that garbage collection maintains; above `gc_low_watermark`";
        gc_low_watermark: required Count(1..=1 << 20),
            "number of free units at or below which host writes wait; at least 2";
        gc_idle_watermark: required Count(1..=1 << 20),
            "number of free units that background garbage collection maintains while the host is \
             idle";
        indirection_unit: optional Size = "4 KiB",
            "data per map entry; a power of two up to a program unit";
        merged_units: default Count(0..=MERGED_MAX) = 0,
            "maximum number of partly written units above 4 KiB that wait in the buffer for their \
             remaining data, at most until the drive has been idle for `idle_delay`";
    }
}

/// Reads the section. Also returns `indirection_unit` and `merged_units`.
pub(super) fn read(table: &Table<'_>, seed: u64) -> Answer<(FtlConfig, Option<Bytes>, u32)> {
    let keys = Keys::read_keys(table)?;
    let is_windowed = matches!(keys.gc, GcPolicy::WindowedGreedy { .. });
    let refusal = "gc_window requires gc = \"windowed-greedy\"";
    let window = table.needed_if(is_windowed, "gc_window", keys.gc_window, refusal)?;
    let is_paced = matches!(keys.gc_pacing, GcPacing::Quanta { .. });
    let refusal = "gc_quantum requires gc_pacing = \"quanta\"";
    let quantum = table.needed_if(is_paced, "gc_quantum", keys.gc_quantum, refusal)?;
    let is_isolating = matches!(keys.gc_destination, GcDestination::PerHandle { .. });
    let (key, refusal) =
        ("isolated_streams", "isolated_streams requires gc_destination = 'per-handle'");
    let listed = table.needed_if(is_isolating, key, keys.isolated_streams, refusal)?;
    let listed = listed.unwrap_or_default();
    let odd = listed.iter().find(|n| n.fract() != 0.0).copied().unwrap_or(0.0);
    reject! { table,
        key if odd != 0.0 => "{key} contains {odd}; stream numbers must be integers";
    }
    let config = FtlConfig {
        user_slots: 0,
        streams: keys.streams as u16,
        gc: match keys.gc {
            GcPolicy::DChoices { d: 0 } => GcPolicy::DChoices { d: keys.d },
            gc => window.map_or(gc, |window| GcPolicy::WindowedGreedy { window }),
        },
        gc_pacing: quantum.map_or(keys.gc_pacing, |quantum| GcPacing::Quanta {
            slots: (quantum.0 / SLOT_BYTES) as u32,
        }),
        gc_destination: match keys.gc_destination {
            GcDestination::PerHandle { .. } => GcDestination::PerHandle {
                isolated: listed.iter().fold(0, |set, &n| set | 1 << n as u32),
            },
            destination => destination,
        },
        spare: keys.spare,
        wear: match keys.wear_leveling {
            WearPolicy::Static { .. } => WearPolicy::Static { threshold: keys.wear_threshold },
            wear => wear,
        },
        gc_high_watermark: keys.gc_high_watermark,
        gc_low_watermark: keys.gc_low_watermark,
        gc_idle_watermark: keys.gc_idle_watermark,
        rated_cycles: 1,
        volatile_buffer: false,
        seed,
        reduction: None,
        bad_blocks: None,
    };
    Ok((config, keys.indirection_unit, keys.merged_units))
}
