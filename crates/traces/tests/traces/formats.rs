//! Tests that each format is detected and read correctly.

use std::io::Write;

use writecliff_traces::{Choice, Operation, Reader, Record, parse_columns};

use crate::samples::{self, file, ios, read, read_bytes, rounded};

/// Returns the records with their volume names; volume numbers follow the order of appearance.
fn plain(records: &[Record], volumes: &[String]) -> Vec<(Record, String)> {
    let strip = |record: &Record| Record { volume: 0, process: 0, content: 0, ..*record };
    records.iter().map(|record| (strip(record), volumes[record.volume as usize].clone())).collect()
}

/// Asserts that the bytes are detected as `format` and contain `wanted`, with the names `volumes`
/// for volumes 0 and 1.
fn check(bytes: &[u8], format: &str, wanted: &[Record], volumes: [&str; 2]) {
    let (records, reader) = read_bytes(bytes).unwrap();
    assert_eq!(reader.formats, [format]);
    let names = volumes.map(str::to_owned);
    let records = plain(&records, &reader.volumes().words);
    let wanted = plain(wanted, &names);
    assert_eq!(records.len(), wanted.len(), "{format}");
    for (n, (record, other)) in records.iter().zip(&wanted).enumerate() {
        assert_eq!(record, other, "{format}: I/O {n}");
    }
    assert_eq!(reader.skipped().unexpected(), 0, "{format}: {:?}", reader.skipped());
    assert_eq!(reader.late(), 0);
}

#[test]
fn every_format_is_recognised_and_read() {
    let all = ios(10_000);
    let numbers = ["0", "1"];
    check(samples::msr(&all).as_bytes(), "msr", &rounded(&all, 100, true), ["srv.0", "srv.1"]);
    check(samples::systor(&all).as_bytes(), "systor", &rounded(&all, 1, true), numbers);
    check(samples::alibaba(&all).as_bytes(), "alibaba", &rounded(&all, 1000, false), numbers);
    let seconds = rounded(&all, 1_000_000_000, false);
    check(samples::tencent(&all).as_bytes(), "tencent", &seconds, ["1283", "1284"]);
    check(samples::spc(&all).as_bytes(), "spc", &rounded(&all, 1000, false), numbers);
    check(samples::disksim(&all).as_bytes(), "disksim", &rounded(&all, 1, false), numbers);
    check(samples::fiu(&all).as_bytes(), "fiu", &rounded(&all, 1, false), ["6,0", "6,1"]);
    let files = ["/dev/sda", "/dev/sdb"];
    for version in [2, 3] {
        let log = samples::fio_iolog(&all, version);
        check(log.as_bytes(), "fio-iolog", &rounded(&all, 1000, false), files);
    }
    let (devices, exact) = (["8,0", "8,16"], rounded(&all, 1, true));
    check(samples::blkparse(&all).as_bytes(), "blkparse", &exact, devices);
    check(samples::tracefs(&all).as_bytes(), "tracefs", &rounded(&all, 1000, true), devices);
    check(&samples::blktrace(&all), "blktrace", &exact, devices);
    check(
        samples::biosnoop(&all).as_bytes(),
        "biosnoop",
        &rounded(&all, 1000, true),
        ["sda", "sdb"],
    );
    let one_disk = ["vscsi"; 2];
    check(&samples::vscsi(&all, 1), "vscsi", &rounded(&all, 1000, false), one_disk);
    check(&samples::vscsi(&all, 2), "vscsi", &rounded(&all, 1000, true), one_disk);
}

#[test]
fn scsi_commands_without_data_belong_to_the_format() {
    const COMMAND_AT: usize = 12;
    let mut bytes = samples::vscsi(&ios(100), 1);
    bytes[5 * 32 + COMMAND_AT] = 0x12; // INQUIRY
    let (records, reader) = read_bytes(&bytes).unwrap();
    assert_eq!((records.len(), reader.skipped().lines()), (99, 1));
    assert_eq!(reader.skipped().unexpected(), 0, "{:?}", reader.skipped());
}

#[test]
fn rows_of_the_header_of_etw_are_told_from_events() {
    let all = ios(2000);
    let (records, reader) = read_bytes(samples::etw(&all).as_bytes()).unwrap();
    assert_eq!(reader.formats, ["etw"]);
    let shown = plain(&records, &reader.volumes().words);
    let wanted = plain(&rounded(&all, 1000, true), &["0".to_owned(), "1".to_owned()]);
    assert_eq!(shown, wanted);
    assert_eq!(reader.processes().words, ["", "svchost.exe"]);
    let newer = samples::etw(&all)
        .replace("ThreadID\n", "ThreadID, CPU, IrpPtr\n")
        .replace("4012, 0x", "4012,   3, 0x");
    assert_eq!(read_bytes(newer.as_bytes()).unwrap().0, records);
    // The line that describes the system is not an event.
    assert_eq!(reader.skipped().unexpected(), 1);
}

#[test]
fn hashes_tell_equal_data_and_names_tell_processes() {
    let all = ios(3000);
    let (records, reader) = read_bytes(samples::fiu(&all).as_bytes()).unwrap();
    assert_eq!(reader.processes().words, ["", "syslogd"]);
    for (record, other) in records.iter().zip(records.iter().skip(1)) {
        assert_eq!(record.content == other.content, record.offset_bytes == other.offset_bytes);
    }
    assert!(records.iter().all(|record| record.content != 0 && record.process == 1));
    let (records, reader) = read_bytes(samples::blktrace(&all).as_slice()).unwrap();
    let name = |record: &Record| reader.processes().words[record.process as usize].as_str();
    assert!(records.iter().all(|record| name(record) == "kjournald"));
}

#[test]
fn flushes_and_discards_are_read() {
    let text = "  8,0 0 1 0.000000000 12 D FN [kworker]\n  8,0 0 2 0.000500000 0 C FN 0 [0]\n  \
                8,0 0 3 0.001000000 12 D D 2048 + 1048576 [fstrim]\n  \
                8,0 0 4 0.002000000 0 C D 2048 + 1048576 [0]\n  \
                8,0 0 5 0.003000000 12 D WFS 0 + 8 [jbd2]\n";
    let (records, _) = read_bytes(text.as_bytes()).unwrap();
    let seen: Vec<_> =
        records.iter().map(|record| (record.operation, record.response_ns)).collect();
    let (flush, discard) = ((Operation::Flush, 500_000), (Operation::Discard, 1_000_000));
    assert_eq!(seen, [flush, discard, (Operation::Write, -1)]);
    assert_eq!((records[1].offset_bytes, records[1].length_bytes), (1 << 20, 1 << 29));
}

#[test]
fn a_device_without_requests_is_taken_by_its_bios() {
    let text = "  9,0 0 1 0.000000000 12 Q R 64 + 8 [dd]\n  9,0 0 2 0.000400000 0 C R 64 + 8 [0]\n";
    let (records, _) = read_bytes(text.as_bytes()).unwrap();
    assert_eq!((records.len(), records[0].response_ns), (1, 400_000));
}

#[test]
fn columns_of_ones_own_need_names_or_numbers() {
    let spec =
        "time=ts:us,offset=lba:sectors,length=n:sectors,operation=op,volume=dev,response=rt:ms";
    let choice = |spec: &str| Choice { columns: parse_columns(spec).unwrap(), ..Choice::default() };
    let text =
        "op;\"lba\";n;ts;dev;rt;more\nR;8;2;1000;a;0.5;x\nWS;0;1;1500.5;b;;\nflush;;;1600;a;1;\n";
    let path = file(text.as_bytes());
    let (records, reader) = read(&path, choice(spec)).unwrap();
    let shown: Vec<_> = records
        .iter()
        .map(|record| {
            (
                record.time_ns,
                record.operation,
                record.offset_bytes,
                record.length_bytes,
                record.response_ns,
            )
        })
        .collect();
    let flush = (600_000, Operation::Flush, 0, 0, 1_000_000);
    let write = (500_500, Operation::Write, 0, 512, -1);
    assert_eq!(shown, [(0, Operation::Read, 4096, 1024, 500_000), write, flush]);
    assert_eq!(reader.volumes().words, ["a", "b"]);
    let path = file(b"1 R 0 4096\n2 W 4096 4096\n");
    let (records, _) = read(&path, choice("time=1,operation=2,offset=3,length=4")).unwrap();
    assert_eq!((records.len(), records[1].time_ns), (2, 1_000_000_000));
    for (wrong, why) in [
        ("time=a", "no column has the required meaning 'operation'"),
        ("tim=a", "unknown meaning 'tim'"),
        ("time=a:furlongs", "unknown unit 'furlongs'"),
        ("volume=a:ms", "does not accept a unit"),
        ("time", "is not MEANING=COLUMN"),
    ] {
        assert!(parse_columns(wrong).unwrap_err().contains(why), "{wrong}");
    }
}

#[test]
fn events_of_processors_are_merged_by_time() {
    let all = ios(500);
    let bytes = samples::blktrace(&all);
    let folder = file(b"x").with_extension("blk");
    std::fs::create_dir_all(&folder).unwrap();
    // Requests are created and issued on two alternating processors, and complete on a third
    // processor.
    let mut parts = [Vec::new(), Vec::new(), Vec::new()];
    let mut at = 0;
    while at < bytes.len() {
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let size = 48 + usize::from(half(at + 46));
        let time_ns = u64::from_le_bytes(bytes[at + 8..at + 16].try_into().unwrap());
        let cpu = if half(at + 28) == 8 { 2 } else { time_ns / 1_000_000 % 2 };
        parts[cpu as usize].extend_from_slice(&bytes[at..at + size]);
        at += size;
    }
    for (n, part) in parts.iter().enumerate() {
        std::fs::write(folder.join(format!("sda.blktrace.{n}")), part).unwrap();
    }
    let (records, reader) = read(&folder.join("sda.blktrace.0"), Choice::default()).unwrap();
    let times = |of: &[Record]| -> Vec<_> {
        of.iter().map(|record| (record.time_ns, record.offset_bytes, record.response_ns)).collect()
    };
    assert_eq!(times(&records), times(&all));
    assert_eq!(reader.read_of_file(), (bytes.len() as u64, bytes.len() as u64));
}

fn tar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut all = Vec::new();
    for (name, bytes) in members {
        let mut header = [0_u8; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[124..136].copy_from_slice(format!("{:011o}\0", bytes.len()).as_bytes());
        header[156] = b'0';
        header[257..265].copy_from_slice(b"ustar\x0000");
        all.extend(header);
        all.extend(*bytes);
        all.resize(all.len().next_multiple_of(512), 0);
    }
    all.resize(all.len() + 1024, 0);
    all
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut to = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    to.write_all(bytes).unwrap();
    to.finish().unwrap()
}

#[test]
fn packed_traces_are_read_as_they_come() {
    let all = ios(5000);
    let text = samples::msr(&all);
    let wanted = rounded(&all, 100, true);
    let names = ["srv.0", "srv.1"];
    check(&gz(text.as_bytes()), "msr", &wanted, names);
    // `cat a.gz b.gz` creates a file with several compressed streams.
    let (begin, end) = text.split_at(text.len() / 2);
    check(&[gz(begin.as_bytes()), gz(end.as_bytes())].concat(), "msr", &wanted, names);
    check(&zstd::stream::encode_all(text.as_bytes(), 1).unwrap(), "msr", &wanted, names);
    let mut bz2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    bz2.write_all(text.as_bytes()).unwrap();
    check(&bz2.finish().unwrap(), "msr", &wanted, names);
    let packed = gz(text.as_bytes());
    let members = [("README.txt", &b"About the traces.\n"[..]), ("msr/srv_0.csv.gz", &packed)];
    check(&gz(&tar(&members)), "msr", &wanted, names);
}

#[test]
fn members_that_are_no_traces_are_named() {
    let first = samples::msr(&ios(100));
    let second = samples::spc(&ios(50));
    let members =
        [("a.csv", first.as_bytes()), ("README", b"About.\n"), ("b.csv", second.as_bytes())];
    let path = file(&tar(&members));
    let (records, reader) = read(&path, Choice::default()).unwrap();
    assert_eq!(records.len(), 150);
    assert_eq!(
        (&reader.members[..], &reader.passed_over[..]),
        (&["a.csv".into(), "b.csv".into()][..], &["README".into()][..])
    );
    assert_eq!(reader.formats, ["msr", "spc"]);
    let choice = Choice { member: Some("b.csv".to_owned()), ..Choice::default() };
    assert_eq!(read(&path, choice).unwrap().0.len(), 50);
    let choice = Choice { member: Some("c.csv".to_owned()), ..Choice::default() };
    assert!(read(&path, choice).err().unwrap().message.contains("no member 'c.csv'"));
}

#[test]
fn how_much_of_a_file_is_read_is_counted_as_it_is_packed() {
    let all = ios(60_000);
    let text = samples::msr(&all);
    for bytes in [gz(text.as_bytes()), text.into_bytes()] {
        let path = file(&bytes);
        let mut reader = Reader::open(&path, Choice::default()).unwrap();
        let (mut batch, mut shares) = (Vec::new(), Vec::new());
        while reader.next(&mut batch).unwrap() {
            let (read, size) = reader.read_of_file();
            assert_eq!(size, bytes.len() as u64);
            shares.push(read as f64 / size as f64);
        }
        assert!(shares.is_sorted() && shares[0] < 0.7, "{shares:?}");
        assert_eq!(shares.last(), Some(&1.0));
    }
}
