//! Tests of the controller through its interface, with commands as bytes and a drive that records
//! its work.

mod admin;
mod arbitrary;
mod fabrics;
mod features;
mod identify;
mod io;
mod logs;
mod support;
