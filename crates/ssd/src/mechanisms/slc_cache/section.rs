//! Section `[slc_cache]` of a device file.

use writecliff_base::keys::{Flag, Percent, PositiveTime, Size, Time};
use writecliff_base::located::{Change, Table};
use writecliff_base::{Bytes, Nanos, SLOT_BYTES, reject, section};
use writecliff_flash::{CellType, Geometry};

use crate::device_file::scaled::{size, slots};
use crate::mechanisms::{Checked, Described, MechanismSection, Resizing};

section! {
    /// Cache in flash that stores one bit per cell.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct SlcCacheConfig {
        size: required Size,
            "amount of host data that the cache holds, from one page of every die to \
             `user_capacity`";
        fold_at: optional Percent(0.0..=99.0),
            "fill level, as a percentage of `size`, from which writes fold data, and fold more as \
             the cache fills; not with `dynamic`";
        dynamic: default Flag = false,
            "the cache uses free flash of the drive, and shrinks as the drive fills";
        static_size: optional Size,
            "size of a dynamic cache when the drive is full; up to `size`";
        program: required PositiveTime, "tPROG of a page with one bit per cell";
        read: required PositiveTime, "tR of a page with one bit per cell";
        bypass: default Flag = true,
            "`true`: a full cache sends writes to the main flash; `false`: each write folds as \
             much data as it writes";
        fold_time: optional Time = "`mapping_update_time`",
            "firmware time per slot that a write folds";
    }
}

impl MechanismSection for SlcCacheConfig {
    type Keys = Self;

    fn check(config: Self, table: &Table<'_>, drive: &mut Described<'_>) -> Checked<Self> {
        let Self { size, fold_at, dynamic, static_size, .. } = config;
        let (geometry, user) = (&drive.geometry, drive.user_capacity);
        let least = Bytes(u64::from(geometry.dies * geometry.slots_per_read_group) * SLOT_BYTES);
        reject! { table,
            "size" if geometry.shape.cell == CellType::Slc =>
                "the flash already has one bit per cell; remove the section";
            "size" if size < least || size > user =>
                "size is {size}; it must be {least} (a page of every plane and die) to {user} (the \
                 user capacity)";
            "static_size" if static_size.is_some() && !dynamic =>
                "static_size needs dynamic = true";
            "static_size" if static_size > Some(size) => "static_size is more than size";
            "fold_at" if fold_at.is_some() && dynamic =>
                "fold_at requires a cache of fixed size; remove it or dynamic";
        }
        Ok(Some(config))
    }

    /// Scales the cache with the capacity, but not below one page of every die.
    fn resized(&self, drive: &Resizing<'_>) -> Vec<Change> {
        let least = u64::from(drive.dies) * self.buffer_bytes(&drive.config.geometry);
        let scaled = |size: Bytes| slots(size.0 as f64 * drive.factor) * SLOT_BYTES;
        let whole = Bytes(scaled(self.size).max(least).min(drive.capacity.0));
        let mut changes = vec![size("slc_cache.size", whole)];
        let part = self.static_size;
        changes.extend(part.map(|part| size("slc_cache.static_size", Bytes(scaled(part)))));
        changes
    }

    /// Returns `true` if the caches differ only in timing, which does not affect their decisions.
    fn places_alike(ours: Option<&Self>, theirs: Option<&Self>) -> bool {
        let untimed =
            |slc: &Self| Self { program: Nanos::ZERO, read: Nanos::ZERO, fold_time: None, ..*slc };
        ours.map(untimed) == theirs.map(untimed)
    }

    fn addresses(&self) -> u64 {
        2 * self.size.0 / SLOT_BYTES
    }

    fn move_time(&self) -> Option<Nanos> {
        self.fold_time
    }

    fn open_units(&self, geometry: &Geometry) -> u64 {
        super::block_slots(geometry) / u64::from(geometry.slots_per_read_group)
    }

    /// Returns the size of one program operation on a die.
    fn buffer_bytes(&self, geometry: &Geometry) -> u64 {
        u64::from(geometry.slots_per_read_group) * SLOT_BYTES
    }
}
