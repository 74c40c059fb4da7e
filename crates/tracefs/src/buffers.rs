//! Reads the ring buffers of a tracing instance.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::page::{PageLayout, Records};

const O_NONBLOCK: i32 = 0o4000;
/// Pages of one processor that are read before those of the next, so that none is left to overflow.
const PAGES_AT_ONCE: usize = 4096;

/// The buffers of all processors, open for reading.
#[derive(Debug)]
pub struct Buffers {
    files: Vec<File>,
    layout: PageLayout,
    page: Vec<u8>,
    /// Bytes read so far.
    pub read_bytes: u64,
    /// Events that the pages say were lost before them.
    pub lost: u64,
}

impl Buffers {
    /// Open `per_cpu/cpu*/trace_pipe_raw` of an instance.
    pub fn open(instance: &Path, layout: PageLayout) -> io::Result<Self> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(instance.join("per_cpu"))? {
            let path = entry?.path().join("trace_pipe_raw");
            files.push(OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(path)?);
        }
        Ok(Self { files, layout, page: vec![0; layout.size], read_bytes: 0, lost: 0 })
    }

    /// Hand over all events that are in the buffers. `each` gets the time and the event.
    pub fn drain(&mut self, mut each: impl FnMut(u64, &[u8])) -> io::Result<()> {
        for file in &mut self.files {
            for _ in 0..PAGES_AT_ONCE {
                let count = match file.read(&mut self.page) {
                    Ok(0) => break,
                    Ok(count) => count,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Err(error) => return Err(error),
                };
                self.read_bytes += count as u64;
                let records = Records::of(&self.page[..count], self.layout);
                self.lost += records.lost;
                for (time_ns, event) in records {
                    each(time_ns, event);
                }
            }
        }
        Ok(())
    }

    /// Close the buffers: the kernel does not remove an instance that is open.
    pub fn close(&mut self) {
        self.files.clear();
    }
}
