//! The mechanisms of a drive, a directory or file each.

pub mod bad_blocks;
pub mod cell_care;
pub mod die_parity;
pub mod ecc;
pub mod endurance;
pub mod housekeeping;
pub mod indirection_units;
pub mod integrity;
pub mod mapping_cache;
pub mod mapping_core;
pub mod plane_reads;
pub mod power;
pub mod power_loss;
pub mod reclaim_groups;
pub mod reduction;
pub mod slc_cache;
pub mod thermal;
