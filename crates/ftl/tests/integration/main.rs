//! Tests of the FTL against simple models and against theory.
//!
//! All tests are in one program because each additional program would link the whole simulator
//! again.

mod against_a_plain_map;
mod bad_blocks;
mod groups;
mod reduction;
mod streams;
mod support;
mod write_amplification;
