//! Tests of all trace formats with generated samples.

mod formats;
mod hostile;
mod measures;
mod samples;
mod written;
