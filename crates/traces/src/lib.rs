//! Block traces in all published formats, which are read in batches, analysed and written.
//!
//! A [`Reader`] opens a file, unpacks it ([`source`]), and detects its format by parsing its first
//! bytes as each format ([`formats`]). The reader returns batches of [`Record`]s in time order.
//! Skipped lines are counted by reason ([`Skipped`]). A [`Writer`] writes I/Os in other formats.

mod error;
mod fields;
pub mod formats;
mod measure;
mod number;
mod order;
mod pairing;
mod parser;
mod reader;
mod record;
mod sink;
mod source;
mod write;

pub use error::TraceError;
pub use formats::FORMATS;
pub use formats::columns::{
    Column, Role, SIZE_UNITS, TIME_UNITS, content_of, operation_of, parse_columns,
};
pub use measure::{MeasureLimits, Measures, RunsOf, StepLength, runs_of};
pub use parser::LINE_MAX_BYTES;
pub use reader::{Choice, OWN_COLUMNS, Reader};
pub use record::{NO_RESPONSE, Operation, Record};
pub use sink::{LENGTH_MAX_BYTES, Reason, Skipped, SkippedLines};
pub use source::packed::{RATIO_MAX, UNPACKED_FREE_BYTES};
pub use write::{WRITTEN, Writer};
pub use writecliff_tracefs::Names;
