//! Tests that each type of invalid workload is rejected with its message.

use super::*;

const LIMITS: Limits = Limits { capacity: Bytes(1 << 30), streams: 4 };

fn outcome(fields: &str) -> Result<(), SpecError> {
    let end = if fields.contains("duration_ns") { "" } else { r#","ios":1"# };
    let json = format!(r#"{{"name":"w","jobs":[{{"name":"j",{fields}{end}}}]}}"#);
    WorkloadSpec::from_json(&json)?.validate(&LIMITS)
}

#[test]
fn invalid_jobs_are_rejected_with_a_message() {
    for (fields, message) in [
        (r#""read_pct":101"#, "read: 101 % is outside 0 % to 100 %"),
        (r#""read_pct":60,"trim_pct":50"#, "trim: 60 % reads and 50 % trims are more than 100 %"),
        (r#""block_sizes":[]"#, "block_sizes: the list is empty"),
        (r#""block_sizes":[{"bytes":1000}]"#, "block_sizes: 1000 B is not a multiple of 512 bytes"),
        (
            r#""block_sizes":[{"bytes":512,"weight":0}]"#,
            "block_sizes: the weight 0 of 512 B is not above 0",
        ),
        (r#""threads":0"#, "threads: 0 is outside 1 to 4096"),
        (
            r#""dsync":true,"flush_every_writes":2"#,
            "dsync: each write is flushed already; leave flush_every_writes out",
        ),
        (r#""queue_depth":0"#, "queue_depth: 0 is outside 1 to 65536"),
        (r#""align_bytes":0"#, "align: 0 is not above 0"),
        (r#""align_bytes":1000"#, "align: 1000 B is not a multiple of 512 bytes"),
        (r#""offset_bytes":7"#, "offset: 7 B is not a multiple of 512 bytes"),
        (r#""offset_bytes":1073741824"#, "offset: 1 GiB is beyond the end of the drive of 1 GiB"),
        (r#""range_bytes":2048"#, "range: 2 KiB is smaller than a block of 4 KiB"),
        (
            r#""align_bytes":1048576,"range_bytes":8192"#,
            "align: 1 MiB is larger than the range of 8 KiB",
        ),
        (
            r#""offset_bytes":1073737728,"range_bytes":8192"#,
            "range: 8 KiB from offset 1048572 KiB exceeds the drive of 1 GiB",
        ),
        (r#""range_pct":50,"range_bytes":8192"#, "range: given in bytes and in percent"),
        (r#""range_pct":150"#, "range: 150 % is outside 0 % to 100 %"),
        (r#""segments":{"count":0,"amount_bytes":8192}"#, "segments: the count 0 is below 1"),
        (
            r#""segments":{"count":2,"amount_bytes":1073741824}"#,
            "segments: 2 segments of 512 MiB do not fit into 1 GiB without touching",
        ),
        (
            r#""segments":{"count":2,"amount_bytes":8192},"pattern":"sequential","files":2"#,
            "segments: segments of the active range need sequences without holes and files",
        ),
        (r#""addresses":{"kind":"zipf"}"#, "addresses: zipf needs a theta"),
        (
            r#""addresses":{"kind":"zipf","theta":0}"#,
            "addresses: theta 0 is not above 0 and up to 10",
        ),
        (r#""addresses":{"theta":1}"#, "addresses: only zipf has a theta"),
        (
            r#""addresses":{"scatter_bytes":4096}"#,
            "addresses: only zoned, hot_cold, zipf, pareto and normal have a scatter",
        ),
        (
            r#""addresses":{"kind":"zipf","theta":0.9,"scatter_bytes":6144}"#,
            "addresses: scatter is 6144 bytes; it must be a multiple of 512 bytes, and a multiple \
             or a divisor of the alignment of 4096 bytes",
        ),
        (
            r#""addresses":{"kind":"zipf","theta":1,"generator":"fio"}"#,
            "addresses: fio has no zipf with theta 1; use 0.99 or 1.01",
        ),
        (
            r#""addresses":{"kind":"zipf","theta":0.9,"generator":"fio","ranks":5}"#,
            "addresses: only zipf with the exact generator has ranks",
        ),
        (r#""addresses":{"generator":"fio"}"#, "addresses: only zipf has a generator"),
        (
            r#""addresses":{"zones":[{"access_pct":5,"size_pct":5}]}"#,
            "addresses: only zoned and hot_cold have zones",
        ),
        (
            r#""addresses":{"kind":"hot_cold"}"#,
            "addresses: hot_cold takes one zone, the hot one, smaller than the range",
        ),
        (
            r#""addresses":{"kind":"zoned","zones":[{"access_pct":50,"size_pct":40}]}"#,
            "addresses: the zones take 50 % of the accesses and 40 % of the range, not 100 %",
        ),
        (
            r#""addresses":{"kind":"hot_cold","zones":[{"access_pct":50,"size_pct":40}]},"range_bytes":4096"#,
            "addresses: 4 KiB is too small for the zones; it must have at least one block per zone",
        ),
        (
            r#""addresses":{"kind":"zipf","theta":1},"pattern":"sequential""#,
            "addresses: a sequential pattern has no distribution of addresses",
        ),
        (r#""rate_iops":0"#, "rate: 0 per second is outside 0.001 to 1000000000000"),
        (r#""rate_iops":5,"rate_bytes_per_s":5"#, "rate: given in I/Os and in bytes per second"),
        (r#""arrival":"poisson""#, "arrival: poisson arrivals require a rate"),
        (r#""think_after_ios":0"#, "think_after_ios: 0 is not above 0"),
        (r#""burst_ns":5"#, "pause: burst and pause must both be above 0 or both be absent"),
        (r#""pause_ns":5"#, "burst: burst and pause must both be above 0 or both be absent"),
        (
            r#""rate_iops":100,"burst_ns":5,"pause_ns":5"#,
            "pause: a job with a rate cannot have bursts and pauses",
        ),
        (r#""duration_ns":0"#, "duration: 0 would end the job before it starts"),
        (r#""duration_ns":null"#, "duration: the job has no stop condition"),
        (r#""stream":4"#, "stream: stream 4 does not exist; the drive has 4 streams"),
    ] {
        let error = outcome(fields).expect_err(fields).to_string();
        assert_eq!(error, format!("job 'j': {message}"), "{fields}");
    }
}

#[test]
fn invalid_courses_sizes_and_ends_are_rejected_with_a_message() {
    for (fields, message) in [
        (r#""writes":{"block_sizes":[]}"#, "writes: the list is empty"),
        (
            r#""trims":{"block_sizes":[{"bytes":2147483648}]}"#,
            "trims: 2 GiB is outside 512 B to 1 GiB",
        ),
        (
            r#""writes":{"block_sizes":[{"bytes":65536}]},"range_bytes":8192"#,
            "range: 8 KiB is smaller than a block of 64 KiB",
        ),
        (r#""addresses":{"kind":"pareto"}"#, "addresses: pareto needs a hot"),
        (r#""addresses":{"kind":"sprandom"}"#, "addresses: sprandom needs a spare"),
        (r#""addresses":{"kind":"sequence"}"#, "addresses: sequence needs blocks"),
        (r#""addresses":{"blocks":[1]}"#, "addresses: only sequence has blocks"),
        (
            r#""addresses":{"kind":"sprandom","spare_pct":7},"threads":2"#,
            "addresses: sprandom needs one thread that only writes",
        ),
        (
            r#""addresses":{"kind":"sequence","blocks":[9]},"range_bytes":4096"#,
            "addresses: block 9 is outside the range of 1 blocks",
        ),
        (r#""flow_group":1"#, "flow_group: it needs a flow_weight"),
        (
            r#""flow_weight":1,"rate_iops":5"#,
            "flow_weight: the rates already determine the shares of the jobs; remove flow_weight",
        ),
        (r#""addresses":{"kind":"normal","theta":1}"#, "addresses: only zipf has a theta"),
        (r#""run_ios":2,"pattern":"sequential""#, "run_ios: runs need a random pattern"),
        (r#""hole_after_bytes":512,"pattern":"sequential""#, "hole_after: it needs a hole"),
        (r#""one_position":true"#, "one_position: it needs a sequential pattern"),
        (r#""start_bytes":512"#, "start: it needs a sequential job without holes and files"),
        (r#""sequential_read_pct":101"#, "sequential_read: 101 % is outside 0 % to 100 %"),
        (
            r#""sequential_write_pct":5,"run_ios":2"#,
            "mix: sequential shares need random addresses without runs, segments, zones, trims \
             first, logs and models",
        ),
        (
            r#""sequential_read_pct":5,"block_sizes":[{"bytes":512,"sequential_pct":5}]"#,
            "block_sizes: sequential shares are given for operations and block sizes; remove one of \
             them",
        ),
        (
            r#""block_sizes":[{"bytes":512,"sequential_pct":-5}]"#,
            "block_sizes: -5 % is outside 0 % to 100 %",
        ),
        (r#""hole_bytes":-512"#, "hole: holes need a sequential pattern"),
        (r#""hole_bytes":7,"pattern":"sequential""#, "hole: 7 B is not a multiple of 512 bytes"),
        (
            r#""files":4096,"pattern":"sequential","range_bytes":8388608"#,
            "addresses: 8 MiB in 4096 files is less than one block of 4 KiB per file",
        ),
        (
            r#""trim_first":true,"read_pct":5"#,
            "trim_first: each block is trimmed and written; leave read and trim out",
        ),
        (r#""streams":[1,9]"#, "stream: stream 9 does not exist; the drive has 4 streams"),
        (
            r#""log":{"operations":"f","offsets":[0],"lengths":[0],"times_ns":[]}"#,
            "log: it has no I/Os",
        ),
        (
            r#""log":{"operations":"r","offsets":[1073741824],"lengths":[512],"times_ns":[]}"#,
            "log: an I/O ends at byte 1073742336; the drive has 1 GiB",
        ),
        (
            r#""least_rates":[{"operation":0,"iops":1,"bytes_per_s":null,"cycle_ns":7}]"#,
            "least_rates: cycle of 7 ns is not a multiple of the interval of 1000000000 ns",
        ),
    ] {
        let error = outcome(fields).expect_err(fields).to_string();
        assert_eq!(error, format!("job 'j': {message}"), "{fields}");
    }
}

#[test]
fn valid_jobs_pass() {
    for fields in [
        r#""stream":3"#,
        r#""offset_bytes":1073737728"#,
        r#""read_pct":33.3,"trim_pct":66.7"#,
        r#""range_pct":25,"offset_pct":75"#,
        r#""addresses":{"kind":"hot_cold","zones":[{"access_pct":80,"size_pct":20}]}"#,
        r#""burst_ns":5000000000,"pause_ns":25000000000"#,
        r#""segments":{"count":2048,"amount_bytes":16777216}"#,
        r#""rate_iops":100,"arrival":"poisson","think_ns":5"#,
    ] {
        assert_eq!(outcome(fields), Ok(()), "{fields}");
    }
}

#[test]
fn workloads_need_jobs_and_an_interval() {
    let none = WorkloadSpec::from_json(r#"{"name":"w","jobs":[]}"#).unwrap_err();
    assert_eq!(none.to_string(), "workload: it has no jobs; add at least one");
    let json = r#"{"name":"w","jobs":[{"ios":1}],"interval_ns":0}"#;
    let still = WorkloadSpec::from_json(json).unwrap_err();
    assert_eq!(still.to_string(), "workload: the series interval is 0; it must be above 0");
}

#[test]
fn a_part_of_a_rate_is_not_too_small() {
    let job = r#""rate_iops":0.001,"read_pct":50,"rate_read_pct":0.01"#;
    let error = outcome(job).unwrap_err().to_string();
    assert!(
        error.contains("rate_read: a part of the rate is below 0.000001 per second"),
        "{error}"
    );
}
