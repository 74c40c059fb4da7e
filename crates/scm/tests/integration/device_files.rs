//! Tests which device files of drives with storage-class memory are rejected, and the error
//! messages.

use crate::common::SCM;
use writecliff_base::located::LocatedToml;
use writecliff_scm::device_file;

/// Returns the message and hint for the device file with one change applied.
fn refused(from: &str, to: &str) -> String {
    assert!(SCM.contains(from), "{from}");
    let error = device_file::read(&SCM.replace(from, to), "scm.toml").unwrap_err();
    format!("{error} | {}", error.hint.as_deref().unwrap_or_default())
}

#[test]
fn unknown_keys_are_rejected_with_line_and_suggestion() {
    let error = refused("banks = 8", "banks = 8\nraed_time = \"1 us\"");
    assert!(error.starts_with("scm.toml:8: unknown key 'raed_time' in media"), "{error}");
    // These sections belong to other drive types.
    for (table, key) in [
        ("[media]", "[flash]\nchannels = 8\n[media]"),
        ("[media]", "[ftl]\ngc = \"greedy\"\n[media]"),
        ("[media]", "[disk]\nrpm = 7200\n[media]"),
        ("[controller]", "[cache]\nsize = \"8 MiB\"\n[controller]"),
        ("[controller]", "[power]\nidle = \"5 W\"\n[controller]"),
    ] {
        let name = key[1..].split(']').next().unwrap();
        let error = refused(table, key);
        assert!(error.contains(&format!("unknown key '{name}'")), "{error}");
    }
    let error = refused("[controller]\n", "[controller]\nwrite_buffer = \"1 MiB\"\n");
    assert!(error.contains("unknown key 'write_buffer' in controller"), "{error}");
    let error = refused("banks = 8\n", "");
    assert!(error.starts_with("scm.toml:6: missing key 'banks' in media"), "{error}");
}

#[test]
fn invalid_values_are_rejected() {
    for (from, to, says) in [
        ("\"1 GB\"", "\"20 kB\"", "user_capacity is"),
        ("\"1 GB\"", "\"65 TiB\"", "it must be 1 MiB to 64 TiB"),
        ("banks = 8", "banks = 0", "0 is outside 1 to 4096"),
        ("\"512 B\"", "\"500 B\"", "unit is 500 B; it must be a multiple of 512 B, at most 64 KiB"),
        ("\"4 KiB\"", "\"256 B\"", "interleave is 256 B; it must be a multiple of 512 B"),
        ("\"4 KiB\"", "\"6400 B\"", "interleave is 6400 B; it must be a multiple"),
        ("\"400 ns\"", "\"0 ns\"", "read_time"),
        ("queue_depth = 1024", "queue_depth = 20000", "the queues hold 80000 commands"),
    ] {
        let error = refused(from, to);
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn a_drive_is_recognised_by_its_table() {
    let is_scm = |text| device_file::is_scm(&LocatedToml::parse(text, "a.toml").unwrap());
    assert!(is_scm(SCM));
    assert!(!is_scm("[flash]\nchannels = 8\n"));
}
