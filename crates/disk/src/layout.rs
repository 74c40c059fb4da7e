//! Sector layout: zones, tracks, and the time when each sector passes under its head.
//!
//! Sectors are numbered along a track, then on the next surface of the cylinder, then on the next
//! cylinder inwards. The start of each track is offset from the previous track by `skew`, the track
//! switch time of the drive. A sequential transfer therefore takes one revolution plus one skew per
//! track. A single value per sector determines all timing: the *passage*, which is the time when
//! the sector would pass if all sectors were read from the first sector on. An angle is a passage
//! modulo the revolution time.
//!
//! Bit density is constant, so track capacity is proportional to the radius, and the transfer rate
//! falls in equal steps from zone to zone.

use writecliff_base::{Bytes, Nanos, SECTOR_BYTES};

use crate::config::MechanicsConfig;

/// Consecutive tracks with the same number of sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Zone {
    first_sector: u64,
    first_track: u64,
    sectors_per_track: u64,
}

/// The sector layout of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectorLayout {
    zones: Vec<Zone>,
    heads: u64,
    pub(crate) tracks: u64,
    /// Duration of one revolution.
    pub(crate) turn: Nanos,
    /// Duration of one revolution plus one skew.
    per_track: u64,
}

impl SectorLayout {
    /// Computes the layout; `None` if a track of the innermost zone would hold no sector.
    pub(crate) fn new(capacity: Bytes, mechanics: &MechanicsConfig) -> Option<Self> {
        let MechanicsConfig { heads, zones, outer_rate, inner_rate, .. } = *mechanics;
        let (heads, count) = (u64::from(heads), u64::from(zones));
        let turn = mechanics.turn();
        let per_track = (turn + mechanics.skew()).0;
        let sectors: Vec<u64> = (0..count)
            .map(|zone| {
                let fall = (outer_rate.0 - inner_rate.0) * zone / (count - 1).max(1);
                let bytes = u128::from(outer_rate.0 - fall) * u128::from(per_track);
                (bytes / 1_000_000_000) as u64 / SECTOR_BYTES
            })
            .collect();
        let of_all: u64 = sectors.iter().map(|sectors| sectors * heads).sum();
        if sectors.contains(&0) {
            return None;
        }
        let cylinders = (capacity.0 / SECTOR_BYTES).div_ceil(of_all);
        let mut zones = Vec::with_capacity(sectors.len());
        let (mut first_sector, mut first_track) = (0, 0);
        for sectors_per_track in sectors {
            zones.push(Zone { first_sector, first_track, sectors_per_track });
            first_track += cylinders * heads;
            first_sector += cylinders * heads * sectors_per_track;
        }
        assert!(first_sector >= capacity.0 / SECTOR_BYTES, "the zones hold the capacity");
        Some(Self { zones, heads, tracks: first_track, turn, per_track })
    }

    pub(crate) fn cylinders(&self) -> u64 {
        self.tracks / self.heads
    }

    #[inline]
    fn zone(&self, sector: u64) -> &Zone {
        &self.zones[self.zones.partition_point(|zone| zone.first_sector <= sector) - 1]
    }

    /// Returns the track that contains a sector, numbered from the outermost over all surfaces.
    #[inline]
    pub fn track(&self, sector: u64) -> u64 {
        let zone = self.zone(sector);
        let track = zone.first_track + (sector - zone.first_sector) / zone.sectors_per_track;
        debug_assert!(track < self.tracks, "beyond the disk");
        track
    }

    /// Returns the cylinder that contains `track`.
    #[inline]
    pub fn cylinder(&self, track: u64) -> u64 {
        track / self.heads
    }

    /// Returns the time when a sector starts to pass if all are read from the first one on.
    #[inline]
    pub fn passage(&self, sector: u64) -> u64 {
        self.passage_of(sector, 0)
    }

    /// Returns the time when the sector has passed.
    #[inline]
    pub fn passed(&self, sector: u64) -> u64 {
        self.passage_of(sector, 1)
    }

    #[inline]
    fn passage_of(&self, sector: u64, beyond: u64) -> u64 {
        let zone = self.zone(sector);
        let within = sector - zone.first_sector;
        let (track, index) = (within / zone.sectors_per_track, within % zone.sectors_per_track);
        let along = (index + beyond) * self.turn.0 / zone.sectors_per_track;
        (zone.first_track + track) * self.per_track + along
    }

    /// Returns the first sector that has not completely passed at time `passage`.
    pub fn reached(&self, passage: u64) -> u64 {
        let (track, along) = (passage / self.per_track, passage % self.per_track);
        let number = self.zones.partition_point(|zone| zone.first_track <= track) - 1;
        let zone = &self.zones[number];
        let index = along.min(self.turn.0) * zone.sectors_per_track / self.turn.0;
        let mut sector =
            zone.first_sector + (track - zone.first_track) * zone.sectors_per_track + index;
        // Times are rounded down to whole nanoseconds, so the quotient may be too low by one.
        if index < zone.sectors_per_track && self.passed(sector) <= passage {
            sector += 1;
        }
        sector
    }

    /// Returns the sustained transfer rate at a sector in bytes per second.
    pub fn rate(&self, sector: u64) -> f64 {
        (self.zone(sector).sectors_per_track * SECTOR_BYTES) as f64 * 1e9 / self.per_track as f64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use writecliff_base::BytesPerSecond;

    use super::*;

    fn layout() -> SectorLayout {
        let mechanics = MechanicsConfig {
            rpm: 15_000,
            heads: 3,
            zones: 8,
            outer_rate: BytesPerSecond(93_000_000),
            inner_rate: BytesPerSecond(58_000_000),
            seek_track: Nanos(500_000),
            seek_average: Nanos(4_000_000),
            seek_full: Nanos(8_000_000),
            head_switch: Nanos(600_000),
            write_settle: Nanos(100_000),
            seek_margin: Nanos::ZERO,
            retry_probability: 0.0,
            retries: 0,
            recalibration_interval: None,
            recalibration_radii: None,
        };
        SectorLayout::new(Bytes(10_000_000_000), &mechanics).unwrap()
    }

    #[test]
    fn outer_and_inner_zone_have_the_configured_rates() {
        let layout = layout();
        let last = 10_000_000_000 / SECTOR_BYTES - 1;
        assert!((layout.rate(0) / 93e6 - 1.0).abs() < 0.002, "{}", layout.rate(0));
        assert!((layout.rate(last) / 58e6 - 1.0).abs() < 0.002, "{}", layout.rate(last));
        assert!(layout.track(last) < layout.tracks);
    }

    proptest! {
        #[test]
        fn sectors_pass_in_sequence(sector in 0_u64..19_000_000) {
            let layout = layout();
            let (begin, end) = (layout.passage(sector), layout.passed(sector));
            prop_assert!(begin < end);
            let next = layout.passage(sector + 1);
            let same_track = layout.track(sector) == layout.track(sector + 1);
            prop_assert_eq!(next - end, if same_track { 0 } else { 700_000 });
            prop_assert_eq!(layout.reached(end), sector + 1);
            prop_assert_eq!(layout.reached(end - 1), sector);
        }
    }
}
