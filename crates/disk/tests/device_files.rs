//! Device files of disks: what is refused, and where.

mod common;

use common::DISK;
use writecliff_disk::device_file;

/// Message and hint for the description with one change.
fn refused(from: &str, to: &str) -> String {
    assert!(DISK.contains(from), "{from}");
    let error = device_file::read(&DISK.replace(from, to), "disk.toml", 1).unwrap_err();
    format!("{error} | {}", error.hint.as_deref().unwrap_or_default())
}

#[test]
fn unknown_keys_are_refused_with_their_place_and_the_nearest() {
    let error = refused("heads = 2", "heads = 2\nhead_swich = \"1 ms\"");
    assert!(error.starts_with("disk.toml:9: unknown key 'head_swich' in disk"), "{error}");
    let error = refused("[cache]", "[flash]\nchannels = 8\n[cache]");
    assert!(error.contains("unknown key 'flash'"), "{error}");
    let error = refused("rpm = 6000\n", "");
    assert!(error.starts_with("disk.toml:6: missing key 'rpm' in disk"), "{error}");
}

#[test]
fn values_that_cannot_be_are_refused() {
    for (from, to, says) in [
        ("\"50 MB/s\"", "\"200 MB/s\"", "inner_rate: inner_rate is 200 MB/s, above the outer 100"),
        ("\"8 ms\"", "\"14 ms\"", "seek_average must be 6.3333"),
        ("\"17 ms\"", "\"1 ms\"", "seek_full: 1 ms is no more than seek_track 1 ms"),
        (
            "\"1 ms\"\nseek_a",
            "\"12 ms\"\nseek_a",
            "seek_track and write_settle take 12.5 ms, a turn",
        ),
        ("\"20 GB\"", "\"20 kB\"", "user_capacity is"),
        ("queue_depth = 64", "queue_depth = 5000", "the queues hold 5000 commands"),
        ("segments = 4", "segments = 0", "0 is outside 1 to 1024"),
        (
            "retries = 3",
            "retries = 3\nrecalibration_radii = 3",
            "belongs to recalibration_interval",
        ),
        ("\"0 %\"", "\"90 %\"", "outside 0 % to 50 %"),
    ] {
        let error = refused(from, to);
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn every_value_that_changes_behaviour_changes_the_canonical_text() {
    let canonical = |text: &str| device_file::read(text, "disk.toml", 1).unwrap().canonical();
    let base = canonical(DISK);
    for (from, to) in [
        ("rpm = 6000", "rpm = 7200"),
        ("heads = 2", "heads = 4"),
        ("zones = 8", "zones = 9"),
        ("\"100 MB/s\"", "\"101 MB/s\""),
        ("\"50 MB/s\"", "\"51 MB/s\""),
        ("\"8 ms\"", "\"8.1 ms\""),
        ("\"17 ms\"", "\"18 ms\""),
        ("head_switch = \"1 ms\"", "head_switch = \"0.9 ms\""),
        ("\"0.5 ms\"", "\"0.4 ms\""),
        ("\"0.3 ms\"", "\"0.2 ms\""),
        ("\"0 %\"", "\"1 %\""),
        ("retries = 3", "retries = 4"),
        ("retries = 3", "retries = 3\nrecalibration_interval = \"5 s\"\nrecalibration_radii = 3"),
        ("\"8 MiB\"", "\"16 MiB\""),
        ("segments = 4", "segments = 5"),
        ("write_cache = false", "write_cache = true"),
        ("cached_writes = 64", "cached_writes = 65"),
        ("command_time = \"10 us\"", "command_time = \"11 us\""),
        ("latency = \"10 us\"", "latency = \"11 us\""),
        ("\"10 s\"", "\"11 s\""),
        ("\"300 MB/s\"", "\"301 MB/s\""),
        ("\"full\"", "\"half\""),
        ("queue_depth = 64", "queue_depth = 32"),
    ] {
        assert!(DISK.contains(from), "{from}");
        assert_ne!(canonical(&DISK.replace(from, to)), base, "{from}");
    }
    assert_eq!(canonical(&DISK.replace("round numbers", "other words")), base);
}

#[test]
fn a_disk_is_told_by_its_table() {
    assert!(device_file::is_disk(DISK));
    assert!(!device_file::is_disk("[flash]\nchannels = 8\n"));
    assert!(!device_file::is_disk("not toml at all ["));
}
