//! Flash geometry: channels, dies, planes, blocks, pages, and the units of the FTL.
//!
//! ```text
//! slot         one mapping unit (4 KiB)
//! read group   unit of one read operation: a page, or one page of every plane (multi-plane)
//! program unit unit of one program operation: a read group, or all pages of a word line
//!              (one-shot TLC/MLC programming)
//! reclaim unit one block of every plane of every die ("superblock"): written in order, unit after
//!              unit across the dies, and erased as one
//! ```
//!
//! Program unit `u` of a reclaim unit is on die `u % dies`, and die `d` is on channel
//! `d % channels`. Consecutive program units use all channels before a channel's second die.

mod groups;

use std::ops::Range;

use thiserror::Error;
use writecliff_base::keys::{Choice, Count, Flag, Size};
use writecliff_base::{Bytes, Ppa, ReclaimUnitId, reject, section, words};

use crate::die_parity::Stripes;

/// [`writecliff_base::SLOT_BYTES`] as a `u32`, which is the type of command lengths.
pub const SLOT_BYTES: u32 = writecliff_base::SLOT_BYTES as u32;
/// Limit on the slots of one read operation; actual flash parts have 4 to 32.
pub const READ_GROUP_SLOTS_MAX: u32 = 64;
/// Limit on the slots of a drive, 2048 TiB. [`Geometry::check_addresses`] has a lower limit.
const RAW_SLOTS_MAX: u64 = 1 << 39;

words! {
    /// Bits per cell, which is also the number of page types per word line.
    pub enum CellType {
        /// 1 bit per cell.
        Slc = "SLC",
        /// 2 bits per cell.
        Mlc = "MLC",
        /// 3 bits per cell.
        Tlc = "TLC",
        /// 4 bits per cell.
        Qlc = "QLC",
    }
}

impl CellType {
    /// Returns the number of page types per word line.
    pub const fn page_types(self) -> u32 {
        self as u32 + 1
    }
}

section! {
    /// Geometry as specified in a device file.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Shape {
        channels: required Count(1..=64), "channels, each with its own bus";
        dies_per_channel: required Count(1..=64), "dies on each channel";
        planes_per_die: required Count(1..=16),
            "planes per die; one operation moves at most 256 KiB over all planes";
        blocks_per_plane: required Count(1..=1 << 20), "number of reclaim units";
        pages_per_block: required Count(1..=1 << 16),
            "pages per block; with `one_shot`, a multiple of the bits per cell";
        page: required Size, "4 to 128 KiB, in steps of 4 KiB";
        cell: required Choice<CellType>(CellType::WORDS), "bits per cell: 1 to 4 page types";
        multi_plane: required Flag, "one operation works on all planes of a die";
        one_shot: required Flag, "one program operation writes all pages of a word line";
    }
}

/// A value of the device file that is impossible.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{message}")]
pub struct ConfigError {
    /// Key of the device file.
    pub key: &'static str,
    /// Reason, with the values that conflict.
    pub message: String,
}

/// Values without a position in a file, for [`reject!`](writecliff_base::reject).
pub struct Values;

impl Values {
    /// Returns the error of a key.
    pub fn error(&self, key: &'static str, message: String, _hint: Option<String>) -> ConfigError {
        ConfigError { key, message }
    }
}

/// Division by an invariant 32-bit divisor `d` with one 64-bit multiplication and no branch:
/// `(n + 1) m / 2^64`, rounded down, with `m` = `(2^64 - 1) / d`, rounded down.
///
/// The result is exact. Let `2^64 - 1 = m d + r` and `n = q d + k`. The product is then
/// `q + (k + 1) / d` minus `(r + 1) (n + 1) / (d 2^64)`. The subtracted term is positive but at
/// most `1 / d`, because `r + 1` and `n + 1` are at most `2^32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Divider {
    magic: u64,
    divisor: u32,
}

impl Divider {
    pub(crate) const fn new(divisor: u32) -> Self {
        assert!(divisor > 0);
        Self { magic: u64::MAX / divisor as u64, divisor }
    }

    #[inline]
    pub(crate) const fn divide(self, n: u32) -> u32 {
        (((n as u128 + 1) * self.magic as u128) >> 64) as u32
    }

    #[inline]
    pub(crate) const fn split(self, n: u32) -> (u32, u32) {
        let quotient = self.divide(n);
        debug_assert!(quotient <= n && n - quotient * self.divisor < self.divisor);
        (quotient, n - quotient * self.divisor)
    }
}

/// A validated shape, with all values derived from the shape.
///
/// Space is measured in slots. Each slot has one address ([`Ppa`]), unless the controller
/// compresses data. With compression, several pieces may start within one slot, and each piece
/// needs an address; see [`Geometry::with_ppas_per_slot`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Geometry as specified in the device file.
    pub shape: Shape,
    /// Number of dies in the drive, over all channels.
    pub dies: u32,
    /// Slots sensed by one read operation.
    pub slots_per_read_group: u32,
    /// Slots written by one program operation.
    pub slots_per_program_unit: u32,
    /// Program units per reclaim unit.
    pub program_units_per_reclaim_unit: u32,
    /// Slots per reclaim unit.
    pub slots_per_reclaim_unit: u32,
    /// Number of reclaim units in the drive.
    pub reclaim_units: u32,
    /// Physical page addresses per read group.
    pub ppas_per_read_group: u32,
    /// Physical page addresses per program unit.
    pub ppas_per_program_unit: u32,
    /// Physical page addresses per reclaim unit.
    pub ppas_per_reclaim_unit: u32,
    by_reclaim_unit: Divider,
    by_unit: Divider,
    by_group: Divider,
    /// Divider by the number of positions in a row, which equals the number of dies without parity.
    by_die: Divider,
    /// Parity across dies; `None` if the drive has none.
    pub stripes: Option<Box<Stripes>>,
    /// Number of reclaim groups of equal numbers of dies and reclaim units; 1 without groups.
    pub reclaim_groups: u32,
    /// `true` without parity and several reclaim groups: the position in a row is the die number.
    pub is_plain: bool,
}

/// Location of a physical page address on flash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlashLocation {
    /// Reclaim unit that contains the address.
    pub reclaim_unit: ReclaimUnitId,
    /// Program unit within the reclaim unit.
    pub unit: u32,
    /// Die that contains the program unit.
    pub die: u32,
    /// Read group within the program unit.
    pub group: u32,
    /// Page type of the read group (0 = the fastest).
    pub page_type: u32,
}

impl Geometry {
    /// Derives the geometry of `shape`, with one address per slot.
    pub fn new(shape: Shape) -> Result<Self, ConfigError> {
        check(&shape)?;
        let dies = shape.channels * shape.dies_per_channel;
        let slots_per_page = shape.page.0 as u32 / SLOT_BYTES;
        let planes_at_once = if shape.multi_plane { shape.planes_per_die } else { 1 };
        let pages_at_once = if shape.one_shot { shape.cell.page_types() } else { 1 };
        let slots_per_read_group = slots_per_page * planes_at_once;
        let slots_per_program_unit = slots_per_read_group * pages_at_once;
        let slots_per_reclaim_unit =
            dies * shape.planes_per_die * shape.pages_per_block * slots_per_page;
        let geometry = Self {
            dies,
            slots_per_read_group,
            slots_per_program_unit,
            program_units_per_reclaim_unit: slots_per_reclaim_unit / slots_per_program_unit,
            slots_per_reclaim_unit,
            reclaim_units: shape.blocks_per_plane,
            ppas_per_read_group: slots_per_read_group,
            ppas_per_program_unit: slots_per_program_unit,
            ppas_per_reclaim_unit: slots_per_reclaim_unit,
            by_reclaim_unit: Divider::new(slots_per_reclaim_unit),
            by_unit: Divider::new(slots_per_program_unit),
            by_group: Divider::new(slots_per_read_group),
            by_die: Divider::new(dies),
            stripes: None,
            reclaim_groups: 1,
            is_plain: true,
            shape,
        };
        Ok(geometry.consistent())
    }

    /// Uses one of every `dies` dies for parity, which makes reclaim units smaller.
    ///
    /// # Errors
    /// Returns an error unless `dies` is at least 2 and divides the number of dies.
    pub fn with_parity(self, dies: u32) -> Result<Self, ConfigError> {
        reject! { Values,
            "stripe" if dies < 2 || !self.dies.is_multiple_of(dies) =>
                "stripe is {dies}; it must be at least 2 and divide the number of dies ({})",
                self.dies;
        }
        let stripes = Stripes::new(self.dies, dies);
        let slots = self.slots_per_reclaim_unit / dies * (dies - 1);
        let with_parity = Self {
            program_units_per_reclaim_unit: slots / self.slots_per_program_unit,
            slots_per_reclaim_unit: slots,
            ppas_per_reclaim_unit: slots,
            by_reclaim_unit: Divider::new(slots),
            by_die: Divider::new(stripes.data_dies),
            stripes: Some(Box::new(stripes)),
            is_plain: false,
            ..self
        };
        Ok(with_parity.consistent())
    }

    /// Returns the row of a program unit, and its place among the dies with data in the row.
    #[inline]
    pub fn row_and_place(&self, unit: u32) -> (u32, u32) {
        self.by_die.split(unit)
    }

    /// Gives each slot `per_slot` addresses, one for each piece of compressed data.
    ///
    /// # Errors
    /// Returns an error if a read group would hold more than [`READ_GROUP_SLOTS_MAX`] pieces, or if
    /// there are 2^31 addresses or more (bit 31 marks data that several logical pages share).
    pub fn with_ppas_per_slot(self, per_slot: u32) -> Result<Self, ConfigError> {
        let slots = self.slots_per_read_group;
        reject! { Values,
            "min_stored_size" if slots * per_slot > READ_GROUP_SLOTS_MAX =>
                "{per_slot} pieces per slot and {slots} slots per read exceed the limit of \
                 {READ_GROUP_SLOTS_MAX} pieces per read";
            "min_stored_size" if self.raw_slots() * u64::from(per_slot) >= 1 << 31 =>
                "{per_slot} pieces per slot on {} of flash exceed the limit of 2^31 addresses",
                self.raw_bytes();
        }
        let ppas = self.slots_per_reclaim_unit * per_slot;
        let with_ppas = Self {
            ppas_per_read_group: self.slots_per_read_group * per_slot,
            ppas_per_program_unit: self.slots_per_program_unit * per_slot,
            ppas_per_reclaim_unit: ppas,
            by_reclaim_unit: Divider::new(ppas),
            by_unit: Divider::new(self.slots_per_program_unit * per_slot),
            by_group: Divider::new(self.slots_per_read_group * per_slot),
            ..self
        };
        Ok(with_ppas.consistent())
    }

    /// Returns the geometry after asserting the limits that the address arithmetic relies on.
    fn consistent(self) -> Self {
        let per_slot = self.ppas_per_read_group / self.slots_per_read_group;
        assert!(per_slot > 0 && self.ppas_per_read_group <= READ_GROUP_SLOTS_MAX);
        assert!(self.slots_per_program_unit.is_multiple_of(self.slots_per_read_group));
        let units = self.program_units_per_reclaim_unit;
        assert_eq!(units * self.slots_per_program_unit, self.slots_per_reclaim_unit);
        assert_eq!(self.ppas_per_read_group, self.slots_per_read_group * per_slot);
        assert_eq!(self.ppas_per_program_unit, self.slots_per_program_unit * per_slot);
        assert_eq!(self.ppas_per_reclaim_unit, self.slots_per_reclaim_unit * per_slot);
        assert_eq!(self.by_reclaim_unit.divisor, self.ppas_per_reclaim_unit);
        assert_eq!(self.by_unit.divisor, self.ppas_per_program_unit);
        assert_eq!(self.by_group.divisor, self.ppas_per_read_group);
        assert!(units.is_multiple_of(self.by_die.divisor), "a row has a unit on every die");
        assert!(self.dies.is_multiple_of(self.reclaim_groups), "groups are of one size");
        assert!(self.reclaim_units.is_multiple_of(self.reclaim_groups), "groups are of one size");
        assert_eq!(self.is_plain, self.stripes.is_none() && self.reclaim_groups == 1);
        self
    }

    /// Returns the number of physical page addresses.
    pub fn raw_ppas(&self) -> u64 {
        u64::from(self.reclaim_units) * u64::from(self.ppas_per_reclaim_unit)
    }

    /// Returns the number of slots in all blocks, including spare space.
    pub fn raw_slots(&self) -> u64 {
        u64::from(self.reclaim_units) * u64::from(self.slots_per_reclaim_unit)
    }

    /// Returns the number of bytes in all blocks, including spare space.
    pub fn raw_bytes(&self) -> Bytes {
        Bytes(self.raw_slots() * u64::from(SLOT_BYTES))
    }

    /// Checks that a `Ppa` can represent every flash address plus `more` additional addresses. A
    /// drive that exceeds this limit can be described in full and simulated at a reduced scale, so
    /// only the construction of a simulated drive calls this.
    ///
    /// # Errors
    /// Returns an error if there are 2^32 - 1 addresses or more.
    pub fn check_addresses(&self, more: u64) -> Result<(), ConfigError> {
        let addresses = self.raw_ppas() + more;
        let per_slot = u64::from(self.ppas_per_reclaim_unit / self.slots_per_reclaim_unit);
        let flash = Bytes(addresses / per_slot * u64::from(SLOT_BYTES));
        reject! { Values,
            "blocks_per_plane" if addresses >= u64::from(u32::MAX) =>
                "{flash} of flash cannot be simulated at full capacity: 32-bit page numbers of \
                 4 KiB pages address at most 16 TiB";
        }
        Ok(())
    }

    /// Returns the number of bytes that one program operation writes on one die.
    pub fn unit_bytes(&self) -> u64 {
        u64::from(self.slots_per_program_unit) * u64::from(SLOT_BYTES)
    }

    /// Returns the reclaim unit that contains `ppa`.
    #[inline]
    pub fn reclaim_unit_of(&self, ppa: Ppa) -> ReclaimUnitId {
        debug_assert!(u64::from(ppa.0) < self.raw_ppas(), "no address of the flash");
        ReclaimUnitId(self.by_reclaim_unit.divide(ppa.0))
    }

    /// Returns the first address of `unit`.
    #[inline]
    pub fn first_ppa(&self, unit: ReclaimUnitId) -> u32 {
        unit.0 * self.ppas_per_reclaim_unit
    }

    /// Returns the addresses of a reclaim unit.
    #[inline]
    pub fn ppas(&self, unit: ReclaimUnitId) -> Range<u32> {
        debug_assert!(unit.0 < self.reclaim_units, "no reclaim unit of the flash");
        let first = self.first_ppa(unit);
        first..first + self.ppas_per_reclaim_unit
    }

    /// Returns the addresses of program unit `unit` of a reclaim unit.
    #[inline]
    pub fn unit_ppas(&self, reclaim_unit: ReclaimUnitId, unit: u32) -> Range<u32> {
        debug_assert!(unit < self.program_units_per_reclaim_unit, "beyond the reclaim unit");
        let first = self.first_ppa(reclaim_unit) + unit * self.ppas_per_program_unit;
        first..first + self.ppas_per_program_unit
    }

    /// Returns the channel of `die`.
    pub fn channel_of(&self, die: u32) -> u32 {
        debug_assert!(die < self.dies, "no die of the flash");
        die % self.shape.channels
    }

    /// Returns the die of program unit `unit` of any reclaim unit; there is one reclaim group.
    #[inline]
    pub fn die_of_unit(&self, unit: u32) -> u32 {
        let (row, place) = self.by_die.split(unit);
        match &self.stripes {
            None => place,
            Some(stripes) => stripes.die(row, place),
        }
    }

    /// Returns the die of program unit `unit` in a reclaim unit.
    #[inline]
    pub fn die_of(&self, reclaim_unit: ReclaimUnitId, unit: u32) -> u32 {
        if self.is_plain {
            return self.by_die.split(unit).1;
        }
        self.die_otherwise(reclaim_unit, unit)
    }

    #[cold]
    fn die_otherwise(&self, reclaim_unit: ReclaimUnitId, unit: u32) -> u32 {
        let first = if self.stripes.is_some() { 0 } else { self.dies_of(reclaim_unit).start };
        let die = first + self.die_of_unit(unit);
        debug_assert!(die < self.dies, "a program unit is on no die");
        die
    }

    /// Returns the location of `ppa` for any die layout.
    #[inline]
    pub fn locate(&self, ppa: Ppa) -> FlashLocation {
        let location = self.locate_plain(ppa);
        if self.is_plain {
            return location;
        }
        FlashLocation { die: self.die_otherwise(location.reclaim_unit, location.unit), ..location }
    }

    /// Returns the location of `ppa` on a drive without parity across dies and reclaim groups.
    #[inline]
    pub fn locate_plain(&self, ppa: Ppa) -> FlashLocation {
        debug_assert!(u64::from(ppa.0) < self.raw_ppas(), "no address of the flash");
        let (reclaim_unit, within) = self.by_reclaim_unit.split(ppa.0);
        let (unit, in_unit) = self.by_unit.split(within);
        let group = self.by_group.divide(in_unit);
        let (row, die) = self.by_die.split(unit);
        let page_type = self.page_type(row, group);
        FlashLocation { reclaim_unit: ReclaimUnitId(reclaim_unit), unit, die, group, page_type }
    }

    /// Returns the plane of an address in its read group, which contains one page of every plane.
    #[inline]
    pub fn plane_of(&self, ppa: Ppa) -> u32 {
        let (_, within) = self.by_reclaim_unit.split(ppa.0);
        let (_, in_unit) = self.by_unit.split(within);
        let (_, in_group) = self.by_group.split(in_unit);
        let plane = in_group / (self.ppas_per_read_group / self.shape.planes_per_die);
        debug_assert!(plane < self.shape.planes_per_die, "a read group is on more planes");
        plane
    }

    /// Returns the page type of read group `group` of the `row`-th program unit of its die.
    #[inline]
    pub fn page_type(&self, row: u32, group: u32) -> u32 {
        if self.shape.one_shot {
            debug_assert!(group < self.shape.cell.page_types(), "a word line has fewer pages");
            return group;
        }
        let page = if self.shape.multi_plane { row } else { row / self.shape.planes_per_die };
        page % self.shape.cell.page_types()
    }

    /// Returns the page type that programming unit `unit` writes; of several, the slowest.
    #[inline]
    pub fn program_type(&self, unit: u32) -> u32 {
        if self.shape.one_shot {
            return 0;
        }
        self.page_type(self.by_die.divide(unit), 0)
    }
}

fn check(shape: &Shape) -> Result<(), ConfigError> {
    let counts = [
        ("channels", shape.channels, 64),
        ("dies_per_channel", shape.dies_per_channel, 64),
        ("planes_per_die", shape.planes_per_die, 16),
        ("blocks_per_plane", shape.blocks_per_plane, 1 << 20),
        ("pages_per_block", shape.pages_per_block, 1 << 16),
    ];
    for (key, value, most) in counts {
        reject! { Values,
            key if !(1..=most).contains(&value) => "{key} is {value}; it must be 1 to {most}";
        }
    }
    let (slot, page) = (u64::from(SLOT_BYTES), shape.page.0);
    let planes = if shape.multi_plane { shape.planes_per_die } else { 1 };
    let (types, name) = (shape.cell.page_types(), shape.cell.name());
    reject! { Values,
        "page" if !page.is_multiple_of(slot) || !(4096..=131_072).contains(&page) =>
            "page is {}; it must be 4 to 128 KiB, in multiples of 4 KiB", shape.page;
        "planes_per_die" if page * u64::from(planes) > u64::from(READ_GROUP_SLOTS_MAX) * slot =>
            "{planes} planes of {} pages exceed the 256 KiB limit of one operation", shape.page;
        "pages_per_block" if shape.one_shot && !shape.pages_per_block.is_multiple_of(types) =>
            "pages_per_block is {}; one-shot {name} programs {types} pages at a time, so it must \
             be a multiple of {types}", shape.pages_per_block;
    }
    // The bounds on the factors keep this product within 64 bits.
    let total = counts.iter().map(|&(_, n, _)| u64::from(n)).product::<u64>() * (page / slot);
    reject! { Values,
        "blocks_per_plane" if total > RAW_SLOTS_MAX => "the flash holds more than 2048 TiB";
        "pages_per_block" if total / u64::from(shape.blocks_per_plane) >= u64::from(u32::MAX) =>
            "one block in every plane of every die adds up to 16 TiB or more";
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn shape() -> Shape {
        Shape {
            channels: 4,
            dies_per_channel: 2,
            planes_per_die: 2,
            blocks_per_plane: 16,
            pages_per_block: 12,
            page: Bytes(16_384),
            cell: CellType::Tlc,
            multi_plane: true,
            one_shot: true,
        }
    }

    #[test]
    fn divider_is_exact_at_the_edges() {
        for divisor in [1, 2, 3, 7, 24, 6144, 24_576, 65_537, u32::MAX] {
            let divider = Divider::new(divisor);
            for n in [0, 1, divisor - 1, divisor, divisor.wrapping_add(1), u32::MAX - 1, u32::MAX] {
                assert_eq!(divider.split(n), (n / divisor, n % divisor), "{n} / {divisor}");
            }
        }
    }

    #[test]
    fn one_shot_units_hold_a_word_line_of_all_planes() {
        let g = Geometry::new(shape()).unwrap();
        assert_eq!((g.slots_per_read_group, g.slots_per_program_unit), (8, 24));
        assert_eq!(g.program_units_per_reclaim_unit, 8 * 12 / 3);
        let location = g.locate(Ppa(g.slots_per_reclaim_unit * 3 + 24 * 9 + 17));
        assert_eq!(location.reclaim_unit, ReclaimUnitId(3));
        assert_eq!((location.unit, location.die, location.group, location.page_type), (9, 1, 2, 2));
        assert_eq!(g.channel_of(5), 1);
    }

    #[test]
    fn page_types_alternate_without_one_shot() {
        let g = Geometry::new(Shape { one_shot: false, multi_plane: false, ..shape() }).unwrap();
        assert_eq!((g.slots_per_read_group, g.slots_per_program_unit), (4, 4));
        // The rows of a die are planes 0 and 1 of page 0, followed by planes 0 and 1 of page 1.
        let types: Vec<u32> = (0..6).map(|row| g.page_type(row, 0)).collect();
        assert_eq!(types, [0, 0, 1, 1, 2, 2]);
    }

    #[test]
    fn impossible_shapes_are_rejected_with_their_key() {
        let odd = Geometry::new(Shape { pages_per_block: 13, ..shape() }).unwrap_err();
        assert_eq!(odd.key, "pages_per_block");
        let page = Geometry::new(Shape { page: Bytes(5000), ..shape() }).unwrap_err();
        assert_eq!(page.key, "page");
        let huge = Shape { channels: 64, dies_per_channel: 64, planes_per_die: 16, ..shape() };
        let unit = Shape { pages_per_block: 65_535, blocks_per_plane: 4, ..huge.clone() };
        assert_eq!(Geometry::new(unit).unwrap_err().key, "pages_per_block");
        let flash = Shape { blocks_per_plane: 1 << 20, ..huge };
        assert_eq!(Geometry::new(flash).unwrap_err().key, "blocks_per_plane");
    }

    #[test]
    fn flash_beyond_page_numbers_has_a_geometry_but_no_addresses() {
        let of_blocks = |blocks_per_plane| {
            let dies = Shape { channels: 16, dies_per_channel: 16, ..shape() };
            Geometry::new(Shape { blocks_per_plane, pages_per_block: 768, ..dies }).unwrap()
        };
        // Each reclaim unit has 6 GiB, so the totals are 16 TiB minus 4 GiB and 16 TiB plus 2 GiB.
        let (below, beyond) = (of_blocks(2730), of_blocks(2731));
        assert_eq!(below.check_addresses(0), Ok(()));
        assert!(below.check_addresses(1 << 20).is_err(), "a log of 4 GiB behind it");
        assert_eq!(beyond.raw_bytes(), Bytes(2731 * (6 << 30)));
        let refused = beyond.check_addresses(0).unwrap_err();
        assert!(refused.message.contains("at most 16 TiB"), "{refused}");
    }
}
