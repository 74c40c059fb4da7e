//! The FTL against plain models and against theory.
//!
//! One program, because each would compile the whole simulator again.

mod against_a_plain_map;
mod bad_blocks;
mod groups;
mod reduction;
mod streams;
mod support;
mod write_amplification;
