//! Data reduction: controllers that store less than the host writes.
//!
//! A compressing controller packs pieces of whole sectors into program units; one that detects
//! duplicates stores data once that several logical pages hold. Space is then counted in sectors
//! instead of slots: valid counts, idle space, pacing and victims follow, so GC
//! gains from whatever the data leave free. What the host sees keeps its capacity, as on the drives
//! that did so. An address is a page and the offset in it where a piece begins, finer than a read
//! (Cohen, "Variable-size flash translation layer", US patent 9,495,288, claim 1).
//!
//! | file | owns |
//! |---|---|
//! | `mod.rs` | writing and giving up a piece |
//! | `pack.rs` | where in a unit the next piece begins |
//! | `shared.rs` | data that several logical pages hold |
//! | `state.rs` | save, restore, digest |
//! | `check.rs` | the invariants |
//!
//! Simplified: sizes count in sectors, a piece may cross from a program unit into the next but not
//! into another reclaim unit, and to read it costs the read of the page where it begins. A
//! duplicate is found if the host wrote the same data before and they are still there.

mod check;
mod pack;
mod shared;
mod state;

use writecliff_base::{Lpn, Ppa, StreamId, memory};
use writecliff_base::{counters, counts};
use writecliff_flash::Geometry;
use writecliff_flash::geometry::SLOT_BYTES;
use writecliff_host_interface::Content;
use writecliff_host_interface::content::SECTORS_PER_SLOT;

use crate::config::{ConfigError, FtlConfig};
use crate::frontier::FrontierId;
use crate::ftl::Ftl;
use crate::sink::FlashSink;

use pack::Pack;
pub(crate) use shared::{Shared, is_shared};

/// What a controller does to save space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReductionConfig {
    /// Least sectors that a piece takes: 1, 2, 4 or 8; 8: nothing is compressed.
    pub min_stored_sectors: u32,
    /// Data that are on the drive already are not stored again.
    pub duplicates: bool,
}

impl ReductionConfig {
    /// The flash with addresses for as many pieces as may be on it.
    ///
    /// # Errors
    /// Where `min_stored_sectors` is none of its values, or the addresses are too many.
    pub fn addresses(self, geometry: Geometry) -> Result<Geometry, ConfigError> {
        if ![1, 2, 4, 8].contains(&self.min_stored_sectors) {
            let message = format!(
                "min_stored_sectors is {}; it must be 1, 2, 4 or 8",
                self.min_stored_sectors
            );
            return Err(ConfigError { key: "min_stored_size", message });
        }
        geometry
            .with_ppas_per_slot(SECTORS_PER_SLOT / self.min_stored_sectors)
            .map_err(|e| ConfigError { key: e.key, message: e.message })
    }
}

counts! {
    /// What was stored, in sectors (512 B), since the drive was new.
    pub struct ReductionCounters {
        /// For the host.
        host_sectors,
        gc_sectors,
        wear_sectors,
        /// Left empty because a unit was closed early.
        padding_sectors,
        /// Host slots that were on the drive already.
        duplicate_slots,
    }
}

counters! { |c: ReductionCounters|
    Integer "stored_bytes" Bytes: c.stored_bytes(),
        "left to store of what the host wrote (`[reduction]`)";
    Integer "duplicate_bytes" Bytes: c.duplicate_slots * u64::from(SLOT_BYTES),
        "of what the host wrote, on the drive already (`[reduction]`)";
}

impl ReductionCounters {
    /// What was left to store of what the host wrote.
    pub fn stored_bytes(&self) -> u64 {
        self.host_sectors * u64::from(SLOT_BYTES / SECTORS_PER_SLOT)
    }
}

/// The state behind it.
#[derive(Clone, Debug)]
pub(crate) struct Reduction {
    config: ReductionConfig,
    /// Sectors of a logical page's own piece; of no meaning where it has none.
    sectors: Vec<u8>,
    /// By frontier.
    packs: Vec<Pack>,
    pub(crate) shared: Shared,
    pub(crate) counters: ReductionCounters,
}

impl Reduction {
    pub(crate) fn of(config: &FtlConfig) -> Option<Box<Self>> {
        config.reduction.map(|reduction| {
            Box::new(Self {
                config: reduction,
                sectors: memory::filled(SECTORS_PER_SLOT as u8, config.user_slots as usize),
                packs: vec![Pack::default(); 2 * config.streams as usize],
                shared: Shared::default(),
                counters: ReductionCounters::default(),
            })
        })
    }

    /// Back to "no writes".
    pub(crate) fn forget_data(&mut self) {
        self.packs.fill(Pack::default());
        self.shared = Shared::default();
    }

    /// Pieces that begin in the unit which a frontier is filling.
    pub(crate) fn pieces(&self, frontier: FrontierId) -> u32 {
        self.packs[frontier.index()].pieces
    }

    /// Sectors that are taken of it.
    pub(crate) fn used(&self, frontier: FrontierId) -> u32 {
        self.packs[frontier.index()].used
    }

    /// Sectors that data take.
    fn stored(&self, content: Content) -> u32 {
        content.sectors.clamp(self.config.min_stored_sectors, SECTORS_PER_SLOT)
    }

    /// Sectors of the piece that a reverse entry names.
    #[inline]
    fn size(&self, holder: Lpn) -> u32 {
        match self.shared.get(Ppa(holder.0)) {
            Some(data) => u32::from(data.sectors),
            None => u32::from(self.sectors[holder.index()]),
        }
    }
}

impl Ftl {
    /// What the drive has stored, if it reduces data.
    pub fn reduction(&self) -> Option<&ReductionCounters> {
        self.reduction.as_ref().map(|r| &r.counters)
    }

    /// Sectors on flash of the data of a logical page; 1 (a slot) where nothing is reduced.
    #[inline]
    pub fn alloc_units_of(&self, lpn: Lpn) -> u32 {
        let Some(r) = &self.reduction else { return 1 };
        let ppa = self.forward[lpn.index()];
        r.shared.get(ppa).map_or_else(|| r.size(lpn), |data| u32::from(data.sectors))
    }

    /// Will the write of a slot take up space? Not if its data are on the drive already.
    pub fn takes_space(&self, content: Content, bytes: u32) -> bool {
        let Some(r) = &self.reduction else { return true };
        let original = self.forward.get(content.same_as.index());
        let known = r.config.duplicates
            && bytes == SLOT_BYTES
            && original.is_some_and(|ppa| !ppa.is_none());
        !known
    }

    /// [`Ftl::write`] on a drive that reduces data: `content` is that of this slot.
    pub fn write_reduced<S: FlashSink>(
        &mut self,
        lpn: Lpn,
        stream: StreamId,
        bytes: u32,
        content: Content,
        sink: &mut S,
    ) {
        let frontier = self.host_frontier(stream);
        if bytes < SLOT_BYTES {
            self.merge(frontier, lpn, sink);
        }
        if self.takes_space(content, bytes) {
            self.write_piece(frontier, lpn, content, sink);
        } else {
            self.refer(lpn, content.same_as);
        }
        self.counters.host_slots += 1;
        self.counters.host_bytes += u64::from(bytes);
        self.pace(sink);
    }

    fn write_piece<S: FlashSink>(
        &mut self,
        frontier: FrontierId,
        lpn: Lpn,
        content: Content,
        sink: &mut S,
    ) {
        let r = self.reduction.as_ref().expect("a drive that reduces data");
        let sectors = r.stored(content);
        let ppa = self.allocate_packed(frontier, lpn, sectors, sink);
        // Only now: making room for the new piece may have moved the old one.
        let old = self.forward[lpn.index()];
        if old.is_none() {
            self.mapped += 1;
        } else {
            self.release(lpn, old);
        }
        self.forward[lpn.index()] = ppa;
        let r = self.reduction.as_mut().expect("a drive that reduces data");
        r.sectors[lpn.index()] = sectors as u8;
        r.counters.host_sectors += u64::from(sectors);
    }

    /// Count what GC or wear levelling has relocated.
    pub(crate) fn count_moved(&mut self, sectors: u32) {
        let for_wear = self.collection.is_for_wear();
        let Some(r) = &mut self.reduction else { return };
        let c = &mut r.counters;
        *(if for_wear { &mut c.wear_sectors } else { &mut c.gc_sectors }) += u64::from(sectors);
    }

    /// `lpn` no longer holds what is at `old`, its entry of the map.
    pub(crate) fn release(&mut self, lpn: Lpn, old: Ppa) {
        let Some(r) = &mut self.reduction else { return };
        let (ppa, sectors) = match r.shared.get(old) {
            None => (old, r.sectors[lpn.index()]),
            Some(data) => {
                let (ppa, sectors) = (data.ppa, data.sectors);
                if !r.shared.drop_reference(old) {
                    return;
                }
                (ppa, sectors)
            }
        };
        let unit = self.geometry.reclaim_unit_of(ppa).index();
        debug_assert!(self.table.valid[unit] >= u32::from(sectors));
        self.table.valid[unit] -= u32::from(sectors);
    }

    /// `lpn` holds from now on what `original` holds.
    fn refer(&mut self, lpn: Lpn, original: Lpn) {
        let r = self.reduction.as_mut().expect("a drive that reduces data");
        r.counters.duplicate_slots += 1;
        let (ppa, held) = (self.forward[original.index()], self.forward[lpn.index()]);
        if lpn == original || ppa == held {
            return;
        }
        let shared = if r.shared.get(ppa).is_some() {
            ppa
        } else {
            let shared = r.shared.share(ppa, r.sectors[original.index()]);
            self.reverse[ppa.index()] = Lpn(shared.0);
            self.forward[original.index()] = shared;
            shared
        };
        r.shared.add_reference(shared);
        if held.is_none() {
            self.mapped += 1;
        } else {
            self.release(lpn, held);
        }
        self.forward[lpn.index()] = shared;
    }
}
