//! Data reduction: controllers that store less than the host writes.
//!
//! A compressing controller packs pieces of whole sectors into program units; a deduplicating one
//! stores data that several logical pages share only once. Space is then counted in sectors instead
//! of slots: valid counts, idle space, pacing and victims follow, so GC benefits from whatever
//! space the data leave free. The user capacity is unchanged, as on real drives of this kind. An
//! address is a page and the offset at which a piece starts, finer than a read (Cohen,
//! "Variable-size flash translation layer", US patent 9,495,288, claim 1).
//!
//! | file | content |
//! |---|---|
//! | `mod.rs` | writing and invalidating pieces |
//! | `pack.rs` | packing of pieces into units |
//! | `shared.rs` | data that several logical pages share |
//! | `state.rs` | save, restore, digest |
//! | `check.rs` | invariant checks |
//!
//! Simplifications: sizes are whole sectors; a piece may cross from a program unit into the next
//! but not into another reclaim unit, and reading it costs the read of the page where it starts. A
//! duplicate is detected if the host wrote the same data before and they are still stored.

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

/// Data reduction by the controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReductionConfig {
    /// Minimum size of a piece in sectors: 1, 2, 4 or 8; 8 disables compression.
    pub min_stored_sectors: u32,
    /// Whether data that are already on the drive are not stored again (deduplication).
    pub duplicates: bool,
}

impl ReductionConfig {
    /// The geometry with addresses for as many pieces as the flash may hold.
    ///
    /// # Errors
    /// Fails if `min_stored_sectors` is not one of its values, or if there are too many addresses.
    pub fn addresses(self, geometry: Geometry) -> Result<Geometry, ConfigError> {
        if ![1, 2, 4, 8].contains(&self.min_stored_sectors) {
            let message = format!(
                "min_stored_sectors is {}; it must be 1, 2, 4 or 8",
                self.min_stored_sectors
            );
            return Err(ConfigError { key: "min_stored_size", message });
        }
        Ok(geometry.with_ppas_per_slot(SECTORS_PER_SLOT / self.min_stored_sectors)?)
    }
}

counts! {
    /// Data stored since the drive was new, in sectors (512 B).
    pub struct ReductionCounters {
        /// Stored for the host.
        host_sectors,
        gc_sectors,
        wear_sectors,
        /// Left unused because a unit was closed early.
        padding_sectors,
        /// Host slots whose data were already on the drive.
        duplicate_slots,
    }
}

counters! { |c: ReductionCounters|
    Integer "stored_bytes" Bytes: c.stored_bytes(),
        "host data stored after reduction (`[reduction]`)";
    Integer "duplicate_bytes" Bytes: c.duplicate_slots * u64::from(SLOT_BYTES),
        "host data that were already on the drive (`[reduction]`)";
}

impl ReductionCounters {
    /// Host data stored after reduction, in bytes.
    pub fn stored_bytes(&self) -> u64 {
        self.host_sectors * u64::from(SLOT_BYTES / SECTORS_PER_SLOT)
    }
}

/// State of data reduction.
#[derive(Clone, Debug)]
pub(crate) struct Reduction {
    config: ReductionConfig,
    /// Sectors of a logical page's own piece; undefined if it has none.
    sectors: Vec<u8>,
    /// Indexed by frontier.
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

    /// Returns to the state of "no writes".
    pub(crate) fn forget_data(&mut self) {
        self.packs.fill(Pack::default());
        self.shared = Shared::default();
    }

    /// Pieces that start in the program unit that a frontier is filling.
    pub(crate) fn pieces(&self, frontier: FrontierId) -> u32 {
        self.packs[frontier.index()].pieces
    }

    /// Used sectors of the program unit that a frontier is filling.
    pub(crate) fn used(&self, frontier: FrontierId) -> u32 {
        self.packs[frontier.index()].used
    }

    /// Sectors that data occupy.
    fn stored(&self, content: Content) -> u32 {
        content.sectors.clamp(self.config.min_stored_sectors, SECTORS_PER_SLOT)
    }

    /// Sectors of the piece that a reverse entry refers to.
    #[inline]
    fn size(&self, holder: Lpn) -> u32 {
        match self.shared.get(Ppa(holder.0)) {
            Some(data) => u32::from(data.sectors),
            None => u32::from(self.sectors[holder.index()]),
        }
    }
}

impl Ftl {
    /// Counters of data reduction, if the drive reduces data.
    pub fn reduction(&self) -> Option<&ReductionCounters> {
        self.reduction.as_ref().map(|r| &r.counters)
    }

    /// Allocation units of a logical page's data: sectors, or 1 slot without data reduction.
    #[inline]
    pub fn alloc_units_of(&self, lpn: Lpn) -> u32 {
        let Some(r) = &self.reduction else { return 1 };
        let ppa = self.forward[lpn.index()];
        r.shared.get(ppa).map_or_else(|| r.size(lpn), |data| u32::from(data.sectors))
    }

    /// Whether writing a slot takes space, which it does not if its data are already stored.
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
        // Look up only now, because making room for the new piece may have relocated the old one.
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

    /// Counts sectors relocated by GC or wear levelling.
    pub(crate) fn count_moved(&mut self, sectors: u32) {
        let for_wear = self.collection.is_for_wear();
        let Some(r) = &mut self.reduction else { return };
        let c = &mut r.counters;
        *(if for_wear { &mut c.wear_sectors } else { &mut c.gc_sectors }) += u64::from(sectors);
    }

    /// Removes the reference of `lpn` to `old`, its map entry.
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

    /// Makes `lpn` refer to the data of `original`.
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
