//! Packs pieces of different sizes into program units.
//!
//! A piece gets the first free address of the read group in which it starts, so that its address
//! determines the die and page to read. Addresses at which no piece starts stay unused.

use std::io::{Read, Write};
use std::ops::{Index, IndexMut};

use writecliff_base::codec::{CodecError, StateReader, StateWriter};
use writecliff_base::{Lpn, Ppa};
use writecliff_flash::Geometry;
use writecliff_host_interface::Content;
use writecliff_host_interface::content::SECTORS_PER_SLOT;

use super::{ReductionConfig, ReductionCounters};
use crate::config::FtlConfig;
use crate::frontier::{Frontier, FrontierId};
use crate::groups::Group;
use crate::parts::Parts;
use crate::sink::FlashSink;
use crate::state::damaged;

/// Fill level of a frontier's program unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pack {
    /// Used sectors, including those of a piece that crossed over from the previous unit.
    pub used: u32,
    /// Pieces that start in the unit.
    pub pieces: u32,
}

/// Fill levels of all frontiers, and counters of data that are stored.
#[derive(Clone, Debug)]
pub(crate) struct Packer {
    pub config: ReductionConfig,
    packs: Vec<Pack>,
    pub sectors_per_program_unit: u32,
    sectors_per_read_group: u32,
    pub counters: ReductionCounters,
}

impl Index<FrontierId> for Packer {
    type Output = Pack;

    fn index(&self, frontier: FrontierId) -> &Pack {
        &self.packs[frontier.index()]
    }
}

impl IndexMut<FrontierId> for Packer {
    fn index_mut(&mut self, frontier: FrontierId) -> &mut Pack {
        &mut self.packs[frontier.index()]
    }
}

impl Packer {
    /// `None` for a controller that stores all data as they are.
    pub(crate) fn new(config: &FtlConfig, geometry: &Geometry) -> Option<Box<Self>> {
        let new = |reduction| Self {
            config: reduction,
            packs: vec![Pack::default(); 2 * usize::from(config.streams)],
            sectors_per_program_unit: geometry.slots_per_program_unit * SECTORS_PER_SLOT,
            sectors_per_read_group: geometry.slots_per_read_group * SECTORS_PER_SLOT,
            counters: ReductionCounters::default(),
        };
        config.reduction.map(|reduction| Box::new(new(reduction)))
    }

    pub(crate) fn empty_all(&mut self) {
        self.packs.fill(Pack::default());
    }

    /// Sectors that data occupy.
    pub(crate) fn stored(&self, content: Content) -> u32 {
        content.sectors.clamp(self.config.min_stored_sectors, SECTORS_PER_SLOT)
    }

    /// Sectors left in the reclaim unit of an open frontier.
    pub(crate) fn unwritten(
        &self,
        id: FrontierId,
        f: &Frontier,
        ppas_per_program_unit: u32,
    ) -> i64 {
        let units = (f.end - f.fill_end) / ppas_per_program_unit + 1;
        i64::from(units * self.sectors_per_program_unit) - i64::from(self[id].used)
    }

    /// Whether a piece does not fit into the rest of an open reclaim unit.
    fn is_short(&self, id: FrontierId, f: &Frontier, sectors: u32) -> bool {
        !f.needs_unit()
            && f.fill_end == f.end
            && self[id].used + sectors > self.sectors_per_program_unit
    }

    /// Closes the partly filled program unit of a frontier. Returns its pieces and empty sectors.
    fn close(&mut self, id: FrontierId) -> (u32, u32) {
        let size = self.sectors_per_program_unit;
        let Pack { used, pieces } = self[id];
        // Sectors beyond the unit's end have crossed over into the next one.
        self[id] = Pack { used: used.saturating_sub(size), pieces: 0 };
        let empty = size.saturating_sub(used);
        self.counters.padding_sectors += u64::from(empty);
        (pieces, empty)
    }

    /// Adds a piece to the program unit of a frontier. Returns its address, and whether the unit is
    /// full.
    fn add(
        &mut self,
        id: FrontierId,
        f: &Frontier,
        sectors: u32,
        geometry: &Geometry,
    ) -> (u32, bool) {
        let first = f.fill_end - geometry.ppas_per_program_unit;
        let group = self[id].used / self.sectors_per_read_group;
        let ppa = f.next.max(first + group * geometry.ppas_per_read_group);
        debug_assert!(ppa < f.fill_end, "more pieces than addresses");
        let size = self.sectors_per_program_unit;
        let pack = &mut self[id];
        debug_assert!(pack.used < size, "a full program unit is closed");
        pack.used += sectors;
        pack.pieces += 1;
        (ppa, pack.used >= size)
    }

    /// Counts sectors relocated by GC or wear levelling.
    pub(crate) fn count_moved(&mut self, sectors: u32, for_wear: bool) {
        let c = &mut self.counters;
        *(if for_wear { &mut c.wear_sectors } else { &mut c.gc_sectors }) += u64::from(sectors);
    }

    /// The fill levels as words, for saving and for digests.
    pub(crate) fn pack_words(&self) -> impl Iterator<Item = u32> + '_ {
        self.packs.iter().flat_map(|p| [p.used, p.pieces])
    }

    pub(crate) fn save_packs<W: Write>(&self, out: &mut StateWriter<W>) -> Result<(), CodecError> {
        out.u32s("ftl.packs", &self.pack_words().collect::<Vec<u32>>())
    }

    pub(crate) fn restore_packs<R: Read>(
        &mut self,
        input: &mut StateReader<R>,
    ) -> Result<(), CodecError> {
        let packs = input.u32s("ftl.packs", 2 * self.packs.len())?;
        self.packs = packs.chunks_exact(2).map(|p| Pack { used: p[0], pieces: p[1] }).collect();
        Ok(())
    }

    pub(crate) fn save_counters<W: Write>(
        &self,
        out: &mut StateWriter<W>,
    ) -> Result<(), CodecError> {
        out.u64s("ftl.reduction", &self.counters.to_array())
    }

    pub(crate) fn restore_counters<R: Read>(
        &mut self,
        input: &mut StateReader<R>,
    ) -> Result<(), CodecError> {
        let counters = input.u64s("ftl.reduction", ReductionCounters::FIELDS)?;
        let counters = counters.try_into().map_err(|_| damaged("ftl.reduction"))?;
        self.counters = ReductionCounters::from_array(counters);
        Ok(())
    }
}

const NO_PACKER: &str = "a drive that reduces data";

impl Group {
    /// Appends a piece that the host writes to `frontier`; `holder` is its reverse entry. The
    /// caller updates the map.
    pub(crate) fn allocate_packed<S: FlashSink>(
        &mut self,
        parts: &mut Parts,
        frontier: FrontierId,
        holder: Lpn,
        sectors: u32,
        sink: &mut S,
    ) -> Ppa {
        self.close_if_short(parts, frontier, sectors, sink);
        if parts.frontiers[frontier].needs_unit() {
            self.open_for_host(parts, frontier, sink);
        }
        self.append(parts, frontier, holder, sectors, sink)
    }

    /// Closes a reclaim unit that has less space left than `sectors`.
    pub(crate) fn close_if_short<S: FlashSink>(
        &mut self,
        parts: &mut Parts,
        frontier: FrontierId,
        sectors: u32,
        sink: &mut S,
    ) {
        let packer = parts.packer.as_ref().expect(NO_PACKER);
        if packer.is_short(frontier, &parts.frontiers[frontier], sectors) {
            self.close_packed(parts, frontier, sink);
        }
    }

    /// Closes the partly filled program unit of a frontier.
    pub(crate) fn close_packed<S: FlashSink>(
        &mut self,
        parts: &mut Parts,
        frontier: FrontierId,
        sink: &mut S,
    ) {
        let (pieces, empty) = parts.packer.as_mut().expect(NO_PACKER).close(frontier);
        self.idle -= i64::from(empty);
        self.program_filled(parts, frontier, pieces, sink);
    }

    /// Appends a piece to a frontier whose reclaim unit has space for it.
    fn append<S: FlashSink>(
        &mut self,
        parts: &mut Parts,
        frontier: FrontierId,
        holder: Lpn,
        sectors: u32,
        sink: &mut S,
    ) -> Ppa {
        let packer = parts.packer.as_mut().expect(NO_PACKER);
        let f = &mut parts.frontiers[frontier];
        let (ppa, is_full) = packer.add(frontier, f, sectors, &parts.geometry);
        f.next = ppa + 1;
        self.idle -= i64::from(sectors);
        parts.table.valid[f.unit.index()] += sectors;
        parts.map.hold(ppa, holder);
        if is_full {
            self.close_packed(parts, frontier, sink);
        }
        Ppa(ppa)
    }

    /// Reads the pieces that start in the read group at `first` and relocates them to `frontier`.
    /// Returns the number of sectors that they occupy.
    #[cold]
    pub(crate) fn relocate_packed<S: FlashSink>(
        &mut self,
        parts: &mut Parts,
        frontier: FrontierId,
        first: Ppa,
        live: &[Lpn],
        sink: &mut S,
    ) -> u32 {
        let all = live.iter().map(|&holder| parts.map.piece_size(holder)).sum();
        sink.read_for(frontier, first, parts.config.slots_of(all));
        for &holder in live {
            let sectors = parts.map.piece_size(holder);
            self.close_if_short(parts, frontier, sectors, sink);
            if parts.frontiers[frontier].needs_unit() {
                self.open(parts, frontier, sink);
            }
            // Count before appending, because a full unit is programmed with its count.
            if parts.frontiers.is_of_host(frontier) {
                parts.frontiers[frontier].moved += 1;
            }
            let ppa = self.append(parts, frontier, holder, sectors, sink);
            parts.map.move_piece(holder, ppa);
        }
        parts.packer.as_mut().expect(NO_PACKER).count_moved(all, self.collection.is_for_wear());
        all
    }
}
