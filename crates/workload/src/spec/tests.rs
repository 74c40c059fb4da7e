//! The workload across the seam: keys, defaults, shares of a drive.

use super::*;

/// What `Workload("w", (Job(ios=1),)).to_json()` of the Python model writes.
const FROM_PYTHON: &str = r#"{"name":"w","jobs":[{"name":"job","pattern":"random",
    "read_pct":0.0,"trim_pct":0.0,"sequential_read_pct":0.0,"sequential_write_pct":0.0,
    "block_sizes":[{"bytes":4096,"weight":1.0,"sequential_pct":0.0}],"writes":null,
    "trims":null,"threads":1,
    "queue_depth":1,"offset_bytes":0,"range_bytes":null,"segments":null,
    "thread_stride_bytes":0,"start_bytes":0,"write_start_bytes":null,"align_bytes":null,
    "addresses":{"kind":"uniform","theta":null,"hot_pct":null,"deviation_pct":null,"zones":[],
    "blocks":[],"advancing":false,"spare_pct":null,"regions":null},
    "run_ios":1,"hole_bytes":0,"hole_after_bytes":0,"files":1,
    "one_position":false,"trim_first":false,"host_zones":null,"log":null,"model":null,
    "compressible_pct":0.0,"duplicate_pct":0.0,"stream":0,"streams":[],"stream_order":"in_turn",
    "rate_iops":null,"rate_bytes_per_s":null,
    "arrival":"linear","think_ns":0,"think_after_ios":1,
    "burst_ns":0,"pause_ns":0,"start_delay_ns":0,
    "flush_every_writes":0,"dsync":false,"duration_ns":null,
    "volume_bytes":null,"ios":1,"ends_all":false,"flow_weight":0,"flow_group":0,
    "until_steady":null,"latency_target":null,"least_rates":[]}],
    "seed":1,"interval_ns":1000000000}"#;

#[test]
fn defaults_are_those_of_the_python_model() {
    let spec = WorkloadSpec::from_json(FROM_PYTHON).unwrap();
    let job = JobSpec { ios: Some(1), ..JobSpec::default() };
    assert_eq!(spec.jobs, [job]);
    let short = WorkloadSpec::from_json(r#"{"name":"w","jobs":[{"ios":1}]}"#).unwrap();
    assert_eq!(short, spec);
}

/// Python builds its classes from these keys, so none may be new, missing or renamed.
#[test]
fn json_has_the_keys_of_the_python_model_and_no_others() {
    let ours = WorkloadSpec::from_json(FROM_PYTHON).unwrap().to_json();
    let ours: serde_json::Value = serde_json::from_str(&ours).unwrap();
    let theirs: serde_json::Value = serde_json::from_str(FROM_PYTHON).unwrap();
    assert_eq!(ours, theirs);
}

#[test]
fn unknown_and_mistyped_fields_are_rejected() {
    for (json, part) in [
        (r#"{"name":"w","jobs":[{"ios":1,"iops":5}]}"#, "unknown field `iops`"),
        (r#"{"name":"w","jobs":[{"ios":-1}]}"#, "-1"),
        (r#"{"name":"w","jobs":[{"ios":1,"pattern":"rnd"}]}"#, "unknown variant `rnd`"),
        ("{", "EOF"),
    ] {
        let error = WorkloadSpec::from_json(json).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn shares_of_the_drive_become_bytes() {
    let job = JobSpec {
        offset_pct: Some(25.0),
        range_pct: Some(50.0),
        volume_pct: Some(200.0),
        ..JobSpec::default()
    };
    let job = job.resolved(Bytes(1 << 30));
    assert_eq!((job.offset_bytes, job.range_bytes), (1 << 28, Some(1 << 29)));
    assert_eq!(job.volume_bytes, Some(2 << 30));
    assert_eq!((job.offset_pct, job.range_pct, job.volume_pct), (None, None, None));
    let odd = JobSpec { range_pct: Some(33.3), ..JobSpec::default() };
    assert_eq!(odd.range_on(Bytes(120_034_123_776)).0 % 4096, 0);
}
