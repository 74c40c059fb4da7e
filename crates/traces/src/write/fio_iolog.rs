//! fio's I/O log, version 3: `time file action [offset length]`, in microseconds.

use std::io::Write;

use crate::Names;
use crate::number::NS_PER_US;
use crate::record::{Operation, Record};

use super::{RecordFormat, number_of, word};

#[derive(Default)]
pub(super) struct FioIolog {
    files: Names,
    words: Vec<String>,
    last_us: u64,
}

impl RecordFormat for FioIolog {
    fn begin(&mut self, to: &mut dyn Write) -> std::io::Result<()> {
        writeln!(to, "fio version 3 iolog")
    }

    fn record(
        &mut self,
        record: &Record,
        volume: &str,
        _process: &str,
        to: &mut dyn Write,
    ) -> std::io::Result<bool> {
        let us = record.time_ns.unsigned_abs() / NS_PER_US;
        self.last_us = us;
        let number = number_of(&mut self.files, volume) as usize;
        if number == self.words.len() {
            let file = word(volume);
            writeln!(to, "{us} {file} add\n{us} {file} open")?;
            self.words.push(file);
        }
        let file = &self.words[number];
        let action = match record.operation {
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Discard => "trim",
            Operation::Flush => {
                writeln!(to, "{us} {file} sync 0 0")?;
                return Ok(true);
            }
        };
        writeln!(to, "{us} {file} {action} {} {}", record.offset_bytes, record.length_bytes)?;
        Ok(true)
    }

    fn finish(&mut self, to: &mut dyn Write) -> std::io::Result<()> {
        for file in &self.words {
            writeln!(to, "{} {file} close", self.last_us)?;
        }
        Ok(())
    }
}
