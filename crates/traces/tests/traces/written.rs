//! Tests that written traces are read back unchanged.

use writecliff_traces::{Choice, Operation, Record, WRITTEN, Writer};

use crate::samples::{file, ios, read, rounded};

fn written(format: &str, records: &[Record], volumes: &[&str]) -> (Vec<Record>, Writer) {
    let path = file(b"");
    let volumes: Vec<_> = volumes.iter().map(|&name| name.to_owned()).collect();
    let mut writer = Writer::create(&path, format).unwrap();
    writer.add(records, &volumes, &[String::new()]).unwrap();
    writer.finish().unwrap();
    let choice = Choice { format: Some(format.to_owned()), ..Choice::default() };
    let (mut records, _) = read(&path, choice).unwrap();
    for record in &mut records {
        record.process = 0;
    }
    (records, writer)
}

/// Renumbers the volumes in order of appearance, as a reader does.
fn renumbered(mut records: Vec<Record>) -> Vec<Record> {
    let first = records[0].volume;
    for record in &mut records {
        record.volume ^= first;
    }
    records
}

#[test]
fn traces_that_are_written_are_read_back() {
    let all = ios(3000);
    for (format, unit_ns, responses) in
        [("msr", 100, true), ("fio-iolog", 1000, false), ("blkparse", 1, true)]
    {
        let (records, writer) = written(format, &all, &["srv.0", "srv.1"]);
        assert_eq!(records, renumbered(rounded(&all, unit_ns, responses)), "{format}");
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
    let (records, writer) = written("msr", &all, &["a volume, with blanks"]);
    assert_eq!((records.len(), writer.left_out, writer.moved), (1, 2, 1));
    let (records, writer) = written("fio-iolog", &all, &["a volume, with blanks"]);
    let operations: Vec<_> = records.iter().map(|record| record.operation).collect();
    assert_eq!(operations, [Operation::Flush, Operation::Discard, Operation::Write]);
    assert_eq!((writer.left_out, writer.moved), (0, 1));
    // The kernel counts the sectors of a request in a 32-bit integer.
    let largest = u64::from(u32::MAX) * 512;
    for (length, left_out) in [(largest, 0), (largest + 512, 1)] {
        let all = [Record::new(0, Operation::Discard, 0, length), all[2]];
        let (records, writer) = written("blkparse", &all, &["x"]);
        assert_eq!((records.len(), writer.left_out), (2 - left_out, left_out as u64));
        assert!(left_out == 1 || records[0].length_bytes == length);
        let (records, _) = written("fio-iolog", &all, &["x"]);
        assert_eq!(records[0].length_bytes, length);
    }
    all[1].time_ns = 5_000;
    let (records, _) = written("blkparse", &all, &["x"]);
    assert_eq!(
        records.iter().map(|record| record.length_bytes).collect::<Vec<_>>(),
        [0, 8192, 8192]
    );
}
