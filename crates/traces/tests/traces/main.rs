//! Traces of every format: samples in their published form, made here.

mod formats;
mod hostile;
mod measures;
mod samples;
mod written;
