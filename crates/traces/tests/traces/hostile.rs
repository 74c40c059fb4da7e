//! Tests of files that are not traces, damaged files, and lines with invalid values.

use std::io::Write;

use proptest::prelude::*;
use writecliff_traces::{Choice, formats::FORMATS};

use crate::samples::{self, file, ios, read, read_bytes};

#[test]
fn lines_that_are_no_ios_are_counted_by_reason_with_their_first_line() {
    let good = samples::msr(&ios(50));
    let nines = "9".repeat(5000);
    let bad = [
        (format!("{nines},srv,0,Read,0,4096,1\n"), "number too large"),
        ("-5,srv,0,Read,0,4096,1\n".to_owned(), "negative number"),
        ("NaN,srv,0,Read,0,4096,1\n".to_owned(), "not a finite number"),
        ("128166372003061629,srv,0,Read,-4096,4096,1\n".to_owned(), "negative number"),
        ("128166372003061629,srv,0,Trim,0,4096,1\n".to_owned(), "unknown operation"),
        (
            "128166372003061629,srv,0,Read,18446744073709551615,4096,1\n".to_owned(),
            "address too large",
        ),
        ("128166372003061629,srv,0,Read,0,0,1\n".to_owned(), "length of 0"),
        ("128166372003061629,srv,0,Read,0,9999999999,1\n".to_owned(), "length over 1 GiB"),
        ("128166372003061629,srv,0,Read,0\n".to_owned(), "too few fields"),
        ("1,srv,0,Read,0,4096,1,\n".to_owned(), "too many fields"),
        (format!("{}\n", "x".repeat(3 << 20)), "line over 64 KiB"),
    ];
    let mut bytes = good.clone().into_bytes();
    for (line, _) in &bad {
        bytes.extend(line.as_bytes());
    }
    bytes.extend(b"\0\0,\xff\xfe,0,Read\n\n");
    bytes.extend(good.as_bytes());
    let (records, reader) = read_bytes(&bytes).unwrap();
    assert_eq!(records.len(), 100);
    for (n, (_, reason)) in (51..).zip(&bad) {
        let lines =
            reader.skipped().reasons().iter().find(|lines| lines.reason == *reason).unwrap();
        assert!(lines.first_line <= n, "{reason}");
    }
    let of = |reason: &str| {
        let lines = reader.skipped().reasons().iter().find(|lines| lines.reason == reason).unwrap();
        (lines.lines, lines.first_line)
    };
    assert_eq!(of("negative number"), (2, 52));
    assert_eq!(of("line over 64 KiB"), (1, 61));
    assert_eq!(of("too few fields"), (2, 59));
    assert_eq!(reader.skipped().lines(), bad.len() as u64 + 1);
}

#[test]
fn what_is_no_trace_is_refused_with_what_was_tried() {
    let error = read_bytes(b"Dear diary,\ntoday I measured a drive.\n").err().unwrap();
    assert!(error.message.ends_with("not a trace in a known format"), "{error}");
    let hint = error.hint.unwrap();
    for format in FORMATS {
        assert!(hint.contains(&format!("{}: ", format.name)), "{} in {hint}", format.name);
    }
    let mostly = samples::msr(&ios(5)) + &"no I/O\n".repeat(500_000);
    let path = file(mostly.as_bytes());
    let choice = Choice { format: Some("msr".to_owned()), ..Choice::default() };
    let error = read(&path, choice).err().unwrap();
    assert!(
        error.message.contains("could not parse 500000 of 500005 lines as msr (too few"),
        "{error}"
    );
    assert!(error.message.contains("line 6"), "{error}");
    let choice = Choice { format: Some("msrr".to_owned()), ..Choice::default() };
    assert!(read(&path, choice).err().unwrap().message.contains("unknown format"));
}

#[test]
fn files_that_cannot_be_traces_say_so_at_once() {
    for (path, why) in [
        (file(b""), "is empty"),
        (std::env::temp_dir(), "is a folder"),
        (file(b"x").with_extension("gone"), "no such file"),
        ("/dev/null".into(), "not a regular file"),
        (file(b"\xfd7zXZ\0abc"), "packed with xz"),
        (file(b"PK\x03\x04abcdef"), "packed with zip"),
    ] {
        let error = read(&path, Choice::default()).err().unwrap();
        assert!(error.message.contains(why), "{error}");
        assert!(!error.message.contains('\n'));
    }
}

#[test]
fn packed_data_that_are_cut_off_are_an_error() {
    let text = samples::msr(&ios(100_000));
    let mut to = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    to.write_all(text.as_bytes()).unwrap();
    let packed = to.finish().unwrap();
    let error = read_bytes(&packed[..packed.len() / 2]).err().unwrap();
    assert!(error.message.contains("the packed data are truncated after "), "{error}");
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut to = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    to.write_all(bytes).unwrap();
    to.finish().unwrap()
}

/// Returns an archive member whose header declares `size` bytes.
fn member(name: &str, kind: u8, size: u64, data: &[u8]) -> Vec<u8> {
    let mut header = vec![0; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
    header[156] = kind;
    header[257..263].copy_from_slice(b"ustar\0");
    header.extend(data);
    header.resize(header.len().next_multiple_of(512), 0);
    header
}

#[test]
fn small_files_that_stand_for_gigabytes_are_refused() {
    let text = samples::msr(&ios(50));
    let lines = text.repeat((70 << 20) / text.len());
    let zeros = vec![0; 70 << 20];
    let zst = |bytes: &[u8]| zstd::encode_all(bytes, 1).unwrap();
    let in_tar = zst(&member("a.csv", b'0', lines.len() as u64, lines.as_bytes()));
    for (name, bytes, why) in [
        ("lines", zst(lines.as_bytes()), "unpacks to more than 200 times"),
        ("a member", in_tar, "unpacks to more than 200 times"),
        ("zeros", zst(&zeros), "not a trace in a known format"),
        // The reader does not unpack the inner file, which is not a trace.
        ("two layers", zst(&zst(&zeros)), "not a trace in a known format"),
        ("a long name", zst(&member("x", b'x', zeros.len() as u64, &zeros)), ""),
    ] {
        let Err(error) = read_bytes(&bytes).map(|_| ()) else { panic!("{name}: read") };
        assert!(!error.message.contains('\n'), "{name}: {error}");
        assert!(error.message.contains(why), "{name}: {error}");
    }
}

#[test]
fn absurd_archives_are_refused_or_passed_over() {
    let text = samples::msr(&ios(50));
    let good = member("a.csv", b'0', text.len() as u64, text.as_bytes());
    let joined = |parts: &[&[u8]]| parts.concat();
    for (name, bytes, ios) in [
        ("a size beyond the end", member("a.csv", b'0', 1 << 32, text.as_bytes()), None),
        ("a name of gigabytes", member("x", b'L', 1 << 32, b"x"), None),
        ("a way out", member("../../a.csv", b'0', text.len() as u64, text.as_bytes()), Some(50)),
        ("a device first", joined(&[&member("d", b'3', 0, b""), &good]), Some(50)),
        ("a link first", joined(&[&member("l", b'2', 0, b""), &good]), Some(50)),
        ("one name twice", joined(&[&good, &good]), Some(100)),
        ("no members", vec![0; 1024], None),
    ] {
        match (read_bytes(&bytes), ios) {
            (Ok((records, _)), Some(ios)) => assert_eq!(records.len(), ios, "{name}"),
            (Err(error), None) => assert!(!error.message.contains('\n'), "{name}: {error}"),
            (Ok((records, _)), None) => {
                assert!(records.is_empty(), "{name}: {} I/Os", records.len());
            }
            (Err(error), Some(_)) => panic!("{name}: {error}"),
        }
    }
}

#[test]
fn binary_records_that_are_cut_off_or_damaged_are_counted() {
    let all = ios(300);
    let bytes = samples::vscsi(&all, 1);
    let (records, reader) = read_bytes(&bytes[..bytes.len() - 7]).unwrap();
    assert_eq!((records.len(), reader.skipped().unexpected()), (299, 1));
    let bytes = samples::blktrace(&all);
    let (_, reader) = read_bytes(&bytes[..bytes.len() - 7]).unwrap();
    assert_eq!(reader.skipped().reasons().last().unwrap().reason, "truncated event");
    let mut damaged = bytes.clone();
    let half = 48 * 700 + 12;
    damaged[half..half + 4].copy_from_slice(&[0; 4]);
    let (records, reader) = read_bytes(&damaged).unwrap();
    assert!(records.len() < 300);
    assert_eq!(reader.skipped().reasons().last().unwrap().reason, "not a blktrace event");
}

#[test]
fn time_that_goes_back_is_put_in_order_or_counted() {
    let mut all = ios(20_000);
    all.swap(100, 110);
    let late = all.remove(50);
    all.push(late);
    let (records, reader) = read_bytes(samples::msr(&all).as_bytes()).unwrap();
    assert_eq!((records.len(), reader.late()), (20_000, 1));
    let back = records.windows(2).filter(|two| two[1].time_ns < two[0].time_ns).count();
    assert_eq!(back, 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Tests that reading a changed archive, packed or unpacked, ends with a result or an error.
    #[test]
    fn no_archive_does_harm(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
        cut in any::<prop::sample::Index>(),
        kind in 0..4_usize,
    ) {
        let text = samples::msr(&ios(100));
        let good = member("a.csv", b'0', text.len() as u64, text.as_bytes());
        let mut bytes = [&good[..], &member("b.csv.gz", b'0', 99, &gz(b"x")), &good].concat();
        for (at, value) in &changes {
            let at = at.index(bytes.len());
            bytes[at] = *value;
        }
        bytes.truncate(cut.index(bytes.len()).max(1));
        let mut packed = match kind {
            0 => gz(&bytes),
            1 => zstd::encode_all(&bytes[..], 1).unwrap(),
            _ => bytes,
        };
        if let (2, Some((at, value))) = (kind % 3, changes.first()) {
            let at = at.index(packed.len());
            packed[at] = *value;
        }
        let path = file(&packed);
        let _ = read(&path, Choice::default());
        std::fs::remove_file(path).unwrap();
    }

    /// Tests that reading any bytes in any format ends with a result or an error, and returns only
    /// valid I/Os.
    #[test]
    fn no_bytes_do_harm(
        mut bytes in prop::collection::vec(any::<u8>(), 1..2000),
        format in prop::sample::select(FORMATS.map(|format| format.name).to_vec()),
        kind in 0..6_usize,
        at in any::<prop::sample::Index>(),
    ) {
        let all = ios(200);
        let sample = match kind {
            0 => samples::blktrace(&all),
            1 => samples::vscsi(&all, 2),
            2 => samples::blkparse(&all).into_bytes(),
            3 => samples::etw(&all).into_bytes(),
            4 => samples::tracefs(&all).into_bytes(),
            _ => Vec::new(),
        };
        let at = at.index(sample.len() + 1);
        let mut mixed = sample[..at].to_vec();
        mixed.append(&mut bytes);
        mixed.extend_from_slice(&sample[at..]);
        let path = file(&mixed);
        let choice = Choice { format: Some(format.to_owned()), ..Choice::default() };
        for choice in [choice, Choice::default()] {
            if let Ok((records, _)) = read(&path, choice) {
                for format in records {
                    prop_assert!(format.offset_bytes.checked_add(format.length_bytes).is_some());
                }
            }
        }
        std::fs::remove_file(path).unwrap();
    }
}
