//! Tests a drive through its host interface: timing, states, interfaces and device files.
//!
//! All tests are in one program because each additional program would link the whole simulator
//! again.

mod active_dies;
mod attribution;
mod bad_blocks;
mod beyond_page_numbers;
mod cell_care;
mod common;
mod device_files;
mod die_parity;
mod ecc;
mod endurance;
mod fdp_interface;
mod golden;
mod hostile;
mod housekeeping;
mod indirection;
mod integrity;
mod mapping_cache;
#[path = "../../../base/tests/support/mutate.rs"]
mod mutate;
mod patrol;
mod planes;
mod policies;
mod power;
mod power_cut;
mod read_ahead;
mod reclaim_groups;
mod reduction;
mod service_order;
mod slc_cache;
mod state;
mod streams_interface;
mod thermal;
mod timing;
