//! Written traces read back equal.

use writecliff_traces::{Batch, Choice, Operation, Record, WRITTEN, Writer};

use crate::samples::{file, ios, kept, read};

fn written(format: &str, records: &[Record], volumes: &[&str]) -> (Vec<Record>, Writer) {
    let path = file(b"");
    let mut batch = Batch::default();
    for one in records {
        batch.push(one);
    }
    let volumes: Vec<_> = volumes.iter().map(|&name| name.to_owned()).collect();
    let mut writer = Writer::create(&path, format).unwrap();
    writer.add(&batch, &volumes, &[String::new()]).unwrap();
    writer.finish().unwrap();
    let choice = Choice { format: Some(format.to_owned()), ..Choice::default() };
    let (mut found, _) = read(&path, choice).unwrap();
    for one in &mut found {
        one.process = 0;
    }
    (found, writer)
}

/// Numbers of volumes in the order of their appearance, as a reader gives them.
fn renumbered(mut records: Vec<Record>) -> Vec<Record> {
    let first = records[0].volume;
    for one in &mut records {
        one.volume ^= first;
    }
    records
}

#[test]
fn traces_that_are_written_are_read_back() {
    let all = ios(3000);
    for (format, unit_ns, responses) in
        [("msr", 100, true), ("fio-iolog", 1000, false), ("blkparse", 1, true)]
    {
        let (found, writer) = written(format, &all, &["srv.0", "srv.1"]);
        assert_eq!(found, renumbered(kept(&all, unit_ns, responses)), "{format}");
        assert_eq!((writer.records, writer.left_out, writer.moved), (3000, 0, 0));
    }
    assert_eq!(WRITTEN.len(), 3);
}

#[test]
fn what_a_format_cannot_have_is_counted() {
    let mut all = vec![
        Record::new(5_000, Operation::Flush, 0, 0),
        Record::new(4_000, Operation::Discard, 4096, 8192),
        Record::new(6_000, Operation::Write, 4096, 8192),
    ];
    let (found, writer) = written("msr", &all, &["a volume, with blanks"]);
    assert_eq!((found.len(), writer.left_out, writer.moved), (1, 2, 1));
    let (found, writer) = written("fio-iolog", &all, &["a volume, with blanks"]);
    let operations: Vec<_> = found.iter().map(|one| one.operation).collect();
    assert_eq!(operations, [Operation::Flush, Operation::Discard, Operation::Write]);
    assert_eq!((writer.left_out, writer.moved), (0, 1));
    // The kernel counts the sectors of a request in 32 bits.
    let largest = u64::from(u32::MAX) * 512;
    for (length, left_out) in [(largest, 0), (largest + 512, 1)] {
        let all = [Record::new(0, Operation::Discard, 0, length), all[2]];
        let (found, writer) = written("blkparse", &all, &["x"]);
        assert_eq!((found.len(), writer.left_out), (2 - left_out, left_out as u64));
        assert!(left_out == 1 || found[0].length_bytes == length);
        let (found, _) = written("fio-iolog", &all, &["x"]);
        assert_eq!(found[0].length_bytes, length);
    }
    all[1].time_ns = 5_000;
    let (found, _) = written("blkparse", &all, &["x"]);
    assert_eq!(found.iter().map(|one| one.length_bytes).collect::<Vec<_>>(), [0, 8192, 8192]);
}
