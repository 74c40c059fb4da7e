//! Tests which device files of hard disks are rejected, and the error messages.

use crate::common::DISK;
use writecliff_base::located::LocatedToml;
use writecliff_disk::device_file;

/// Returns the message and hint for the device file with one change applied.
fn refused(from: &str, to: &str) -> String {
    assert!(DISK.contains(from), "{from}");
    let error = device_file::read(&DISK.replace(from, to), "disk.toml", 1).unwrap_err();
    format!("{error} | {}", error.hint.as_deref().unwrap_or_default())
}

#[test]
fn unknown_keys_are_rejected_with_line_and_suggestion() {
    let error = refused("heads = 2", "heads = 2\nhead_swich = \"1 ms\"");
    assert!(error.starts_with("disk.toml:9: unknown key 'head_swich' in disk"), "{error}");
    let error = refused("[cache]", "[flash]\nchannels = 8\n[cache]");
    assert!(error.contains("unknown key 'flash'"), "{error}");
    let error = refused("rpm = 6000\n", "");
    assert!(error.starts_with("disk.toml:6: missing key 'rpm' in disk"), "{error}");
}

#[test]
fn invalid_values_are_rejected() {
    for (from, to, says) in [
        ("\"50 MB/s\"", "\"200 MB/s\"", "inner_rate: inner_rate is 200 MB/s, above outer_rate 100"),
        ("\"8 ms\"", "\"14 ms\"", "seek_average must be 6.3333"),
        ("\"17 ms\"", "\"1 ms\"", "seek_full: 1 ms is not above seek_track 1 ms"),
        (
            "\"1 ms\"\nseek_a",
            "\"12 ms\"\nseek_a",
            "seek_track and write_settle take 12.5 ms, longer than a turn",
        ),
        ("\"20 GB\"", "\"20 kB\"", "user_capacity is"),
        ("queue_depth = 64", "queue_depth = 5000", "the queues hold 5000 commands"),
        ("segments = 4", "segments = 0", "0 is outside 1 to 1024"),
        (
            "retries = 3",
            "retries = 3\nrecalibration_radii = 3",
            "recalibration_radii requires recalibration_interval",
        ),
        ("\"0 %\"", "\"90 %\"", "outside 0 % to 50 %"),
    ] {
        let error = refused(from, to);
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn a_disk_is_recognised_by_its_table() {
    let is_disk = |text| device_file::is_disk(&LocatedToml::parse(text, "a.toml").unwrap());
    assert!(is_disk(DISK));
    assert!(!is_disk("[flash]\nchannels = 8\n"));
}
