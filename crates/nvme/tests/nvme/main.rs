//! The controller from outside: commands as bytes, a drive that remembers what it was told.

mod admin;
mod arbitrary;
mod fabrics;
mod features;
mod identify;
mod io;
mod logs;
mod support;
