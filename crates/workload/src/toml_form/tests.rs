//! Tests valid workload files, and the messages and hints for invalid ones.

use super::*;
use crate::spec::{Arrival, StreamOrder};

const JESD219: &str = r#"
name = "JESD219 enterprise"
seed = 7
interval = "500 ms"

[[job]]
name = "mix"
read = "40 %"
block_sizes = [{ size = "4 KiB", weight = 67 }, { size = "8 KiB", weight = 10 }]
align = "4 KiB"
threads = 4
queue_depth = 256
addresses = { kind = "zoned", zones = [
    { access = "50 %", size = "5 %" },
    { access = "30 %", size = "15 %" },
    { access = "20 %", size = "80 %" },
] }
range = "75 %"
volume = "200 %"
compressible = "50 %"

[[job]]
name = "scan"
pattern = "sequential"
read = "100 %"
block_size = "128 KiB"
offset = "1 GiB"
range = "8 GiB"
thread_stride = "1 GiB"
rate = "200 MB/s"
think = "5 ms"
think_after_ios = 8
start_delay = "2 s"
flush_every_writes = 32
stream = 1
duration = "60 s"

[[job]]
rate = "1_000.5 IOPS"
arrival = "poisson"
dsync = true
segments = { count = 2048, amount = "8 GiB" }
ios = 5
"#;

/// Returns the workload of a file that is one step.
fn only(text: &str) -> WorkloadSpec {
    let mut file = read(text, "w.toml").unwrap();
    assert_eq!(file.steps.len(), 1);
    file.steps.remove(0).workload
}

#[test]
fn a_full_file_reads() {
    let spec = only(JESD219);
    assert_eq!(
        (spec.name.as_str(), spec.seed, spec.interval_ns),
        ("JESD219 enterprise", 7, 500_000_000)
    );
    let [mix, scan, paced] = &spec.jobs[..] else { panic!("three jobs") };
    assert_eq!((mix.read_pct, mix.threads, mix.queue_depth), (40.0, 4, 256));
    assert_eq!((mix.range_pct, mix.range_bytes, mix.volume_pct), (Some(75.0), None, Some(200.0)));
    assert_eq!(mix.block_sizes[1], BlockSize { bytes: 8192, weight: 10.0, sequential_pct: 0.0 });
    assert_eq!(mix.addresses.zones[2], Zone { access_pct: 20.0, size_pct: 80.0 });
    assert_eq!(scan.block_sizes, [BlockSize { bytes: 131_072, weight: 1.0, sequential_pct: 0.0 }]);
    assert_eq!((scan.offset_bytes, scan.range_bytes), (1 << 30, Some(8 << 30)));
    assert_eq!((scan.rate_bytes_per_s, scan.think_ns), (Some(200e6), 5_000_000));
    assert_eq!((scan.duration_ns, scan.start_delay_ns), (Some(60_000_000_000), 2_000_000_000));
    assert_eq!((paced.rate_iops, paced.arrival), (Some(1000.5), Arrival::Poisson));
    let segments = SegmentSpec { count: 2048, amount_bytes: 8 << 30, seed: 1 };
    assert_eq!(paced.segments, Some(segments));
    assert!(paced.dsync && !scan.dsync);
}

#[test]
fn what_was_read_survives_json() {
    let spec = only(JESD219);
    assert_eq!(WorkloadSpec::from_json(&spec.to_json()).unwrap(), spec);
}

#[test]
fn courses_of_addresses_read() {
    let lines = r#"
name = "courses"
[[job]]
read = "50 %"
block_size = "4 KiB"
writes = { block_sizes = [{ size = "8 KiB" }, { size = "64 KiB" }], align = "8 KiB" }
addresses = { kind = "pareto", hot = "20 %" }
run_ios = 16
streams = [1, 2]
stream_order = "random"
ios = 1
[[job]]
pattern = "sequential"
back = "8 KiB"
files = 4
trim_first = true
ios = 1
[[job]]
pattern = "sequential"
hole = "2 MiB"
hole_after = "1 MiB"
one_position = true
ios = 1
ends_all = true
[[job]]
addresses = { kind = "sequence", blocks = [2, 0, 1], advancing = true }
ios = 1
flow_weight = 3
flow_group = 7
[[job]]
addresses = { kind = "sprandom", spare = "7 %", regions = 40 }
volume = "107 %"
[[job]]
host_zones = { size = "1 MiB", capacity = "640 KiB", max_open = 4, reset_above = "70 %" }
range = "64 MiB"
ios = 1
"#;
    let spec = only(lines);
    let [random, sequential, strided, ordered, filling, by_host] = &spec.jobs[..] else {
        panic!("6 jobs")
    };
    let zones = by_host.host_zones.unwrap();
    assert_eq!((zones.size_bytes, zones.capacity_bytes), (1 << 20, Some(640 << 10)));
    assert_eq!((zones.max_open, zones.reset_above_pct), (4, 70.0));
    assert_eq!(
        (&ordered.addresses.blocks[..], ordered.addresses.advancing),
        (&[2, 0, 1][..], true)
    );
    assert_eq!((ordered.flow_weight, ordered.flow_group), (3, 7));
    assert_eq!((filling.addresses.spare_pct, filling.addresses.regions), (Some(7.0), Some(40)));
    assert_eq!((strided.hole_bytes, strided.hole_after_bytes), (2 << 20, 1 << 20));
    assert!(strided.one_position && !sequential.one_position);
    assert!(strided.ends_all && !sequential.ends_all);
    let writes = random.writes.as_ref().unwrap();
    assert_eq!((writes.block_sizes.len(), writes.align_bytes), (2, Some(8192)));
    assert_eq!((random.addresses.hot_pct, random.run_ios), (Some(20.0), 16));
    assert_eq!((&random.streams[..], random.stream_order), (&[1, 2][..], StreamOrder::Random));
    assert_eq!((sequential.hole_bytes, sequential.files), (-8192, 4));
    assert!(sequential.trim_first);
    let both = refusal("pattern = \"sequential\"\nhole = \"4 KiB\"\nback = \"4 KiB\"\nios = 1");
    assert!(both.0.contains("hole and back are both given"), "{}", both.0);
}

fn refusal(lines: &str) -> (String, Option<String>) {
    let error = read(&format!("name = \"w\"\n[[job]]\n{lines}\n"), "w.toml").unwrap_err();
    (error.to_string(), error.hint().map(str::to_owned))
}

#[test]
fn a_mix_has_four_shares() {
    let shares = |mix: &str| {
        let text = format!("name = \"w\"\n[[job]]\nios = 1\n{mix}\n");
        read(&text, "w.toml").map(|file| {
            let job = &file.steps[0].workload.jobs[0];
            [job.read_pct, job.sequential_read_pct, job.sequential_write_pct]
                .map(|pct| (pct * 1e6).round() as u64)
        })
    };
    let all = "mix = { sequential_read = \"24 %\", random_read = \"71 %\", \
               sequential_write = \"1 %\", random_write = \"4 %\" }";
    assert_eq!(shares(all).unwrap(), [95_000_000, 25_263_158, 20_000_000]); // 24 of 95
    let table = "[job.mix]\nsequential_write = \"56 %\"\nrandom_write = \"44 %\"";
    assert_eq!(shares(table).unwrap(), [0, 0, 56_000_000]);
    let short = shares("mix = { random_read = \"90 %\" }").unwrap_err().to_string();
    assert!(short.contains("the shares add up to 90 %; they must add up to 100 %"), "{short}");
    let twice = shares("read = \"5 %\"\nmix = { random_read = \"100 %\" }").unwrap_err();
    assert!(twice.to_string().contains("mix and read are both given"), "{twice}");
}

#[test]
fn errors_name_the_line_and_suggest_a_correction() {
    for (lines, message, hint) in [
        (
            "ios = 1\nblok_size = \"4 KiB\"",
            "w.toml:4: unknown key 'blok_size' in job[0]",
            "did you mean 'block_size'?",
        ),
        (
            "durations = \"60 s\"",
            "w.toml:3: unknown key 'durations' in job[0]",
            "did you mean 'duration'?",
        ),
        (
            "ios = 1\nread_pct = 30",
            "w.toml:4: unknown key 'read_pct' in job[0]",
            "did you mean 'read'?",
        ),
        (
            "ios = 1\nblock_size = \"4k\"",
            "w.toml:4: block_size: '4k' has the unit 'k'",
            "\"4 KiB\"",
        ),
        (
            "ios = 1\n\nblock_size = 4096",
            "w.toml:5: block_size: a number with a unit must be a quoted string",
            "\"16 KiB\"",
        ),
        (
            "ios = 1\nblock_size = \"1000 B\"",
            "w.toml:4: block_size: 1000 B is not a multiple of 512",
            "",
        ),
        (
            "ios = 1\nblock_sizes = [\n{ size = \"1 KiB\" },\n{ sice = \"1 KiB\" }]",
            "w.toml:6: missing key 'size' in job[0].block_sizes[1]",
            "did you mean 'size'?",
        ),
        (
            "ios = 1\nblock_sizes = []\nblock_size = \"4 KiB\"",
            "w.toml:4: block_sizes: block_size and block_sizes are both given",
            "",
        ),
        (
            "read = \"30 %\"",
            "w.toml:2: duration: the job has no stop condition",
            "set duration, volume or ios",
        ),
        ("ios = 1\nread = \"130 %\"", "w.toml:4: read: 130 % is outside 0 % to 100 %", ""),
        (
            "ios = 1\nread = 0.3",
            "w.toml:4: read: a number with a unit must be a quoted string",
            "\"30 %\"",
        ),
        ("ios = 1\nrange = \"120 %\"", "w.toml:4: range: 120 % is outside 0 % to 100 %", ""),
        (
            "ios = 1\nrange = \"8 Gib\"",
            "w.toml:4: range: '8 Gib' has the unit 'Gib'",
            "did you mean \"8 GiB\"?",
        ),
        (
            "ios = 1\npattern = \"seq\"",
            "w.toml:4: pattern: 'seq' is not one of random, sequential",
            "did you mean 'sequential'?",
        ),
        (
            "ios = 1\nrate = \"many IOPS\"",
            "w.toml:4: rate: 'many IOPS' is not a number of IOPS",
            "1000 IOPS",
        ),
        (
            "ios = 1\nrate = 1000",
            "w.toml:4: rate: a number with a unit must be a quoted string",
            "MB/s",
        ),
        (
            "ios = 1\nrate_iops = 5\nrate = \"5 IOPS\"",
            "w.toml:5: rate: rate and rate_iops are both given",
            "",
        ),
        ("ios = 1\nthreads = 0", "w.toml:4: threads: 0 is outside 1 to 4096", ""),
        (
            "ios = 1\n[job.addresses]\nkind = \"zip\"",
            "w.toml:5: kind: 'zip' is not one of uniform, zipf",
            "did you mean 'zipf'?",
        ),
        ("ios = 1\naddresses = { kind = \"zipf\" }", "w.toml:4: addresses: zipf needs a theta", ""),
        ("ios = 1\nduration = \"60\"", "w.toml:4: duration: '60' is not a number with a unit", ""),
    ] {
        let (error, suggestion) = refusal(lines);
        assert!(error.starts_with(message), "{lines}: {error}");
        assert!(suggestion.unwrap_or_default().contains(hint), "{lines}: hint");
    }
}

#[test]
fn files_without_jobs_are_rejected() {
    let misspelt = read("name = \"w\"\n[[jobs]]\nios = 1\n", "w.toml").unwrap_err();
    assert_eq!(misspelt.to_string(), "w.toml:2: unknown key 'jobs'");
    assert_eq!(misspelt.hint(), Some("did you mean 'job'?"));
    let none = read("name = \"w\"\n", "w.toml").unwrap_err();
    assert_eq!(none.to_string(), "w.toml:1: missing key 'job'");
    let nameless = read("[[job]]\nios = 1\n", "w.toml").unwrap_err();
    assert_eq!(nameless.to_string(), "w.toml:1: missing key 'name'");
}

const STEPS: &str = r#"
name = "a mix on a used drive"
seed = 7
precondition = "used:40%"

[[step]]
name = "fill"
measure = false
[[step.job]]
volume = "100 %"

[[step]]
rest = "10 min"

[[step]]
name = "mix"
until = "steady"
[[step.job]]
read = "70 %"
duration = "60 s"
"#;

#[test]
fn steps_are_loads_and_rests() {
    let aged = read(STEPS, "w.toml").unwrap();
    assert_eq!(aged.precondition.as_deref(), Some("used:40%"));
    let [fill, rest, mix] = &aged.steps[..] else { panic!("three steps") };
    assert_eq!((fill.measured, fill.until_steady, fill.max_rounds), (false, false, 1));
    assert_eq!((rest.rest_ns, rest.workload.name.as_str()), (600_000_000_000, "step 2"));
    let pause = &rest.workload.jobs[0];
    assert_eq!((pause.start_delay_ns, pause.ios, pause.read_pct), (rest.rest_ns, Some(1), 100.0));
    assert_eq!((mix.until_steady, mix.max_rounds, mix.measured), (true, 25, true));
    let seeds: Vec<u64> = aged.steps.iter().map(|step| step.workload.seed).collect();
    assert_eq!(seeds, [7, 8, 9]);
}

#[test]
fn steps_that_cannot_be_meant_are_rejected() {
    let job = "[[step.job]]\nios = 1\n";
    for (steps, message) in [
        (
            "[[step]]\nrest = \"1 s\"\n[[step.job]]\nios = 1\n",
            "w.toml:4: unknown key 'job' in step[0]",
        ),
        ("[[step]]\nrest = \"0 s\"\n", "w.toml:3: rest: rest must be above zero"),
        ("[[step]]\nname = \"a\"\n", "w.toml:2: missing key 'job' in step[0]"),
        (&format!("[[step]]\nuntill = \"steady\"\n{job}"), "w.toml:3: unknown key 'untill'"),
        (&format!("[[step]]\nuntil = \"done\"\n{job}"), "w.toml:3: until: 'done' is not one of"),
        (&format!("[[step]]\nmax_rounds = 9\n{job}"), "w.toml:3: max_rounds: it needs rounds"),
        (
            &format!("[[step]]\nuntil = \"steady\"\nmeasure = false\n{job}"),
            "w.toml:4: measure: a step with until",
        ),
        (
            &format!("[[step]]\nname = \"a\"\n{job}[[step]]\nname = \"a\"\n{job}"),
            "w.toml:7: name: another step already has this name",
        ),
        (&format!("[[job]]\nios = 1\n[[step]]\n{job}"), "w.toml:2: job: job and step are both"),
    ] {
        let error = read(&format!("name = \"w\"\n{steps}"), "w.toml").unwrap_err().to_string();
        assert!(error.starts_with(message), "{steps}: {error}");
    }
}

#[test]
fn limits_are_kept_as_text_and_refused_with_their_line() {
    let job = "[[job]]\nread = \"100 %\"\nduration = \"1 s\"\n";
    let limits = "[expect]\niops = \">= 1e5\"\n\"reads/p99.9\" = \"<= 2 ms\"\n";
    let file = read(&format!("name = \"x\"\n{job}{limits}"), "x.toml").unwrap();
    assert_eq!(file.expect, ["iops >= 1e5", "reads/p99.9 <= 2 ms"]);
    for wrong in ["100000", "about 5", ">= much", "== 5"] {
        let text = format!("name = \"x\"\n{job}[expect]\niops = \"{wrong}\"\n");
        let message = read(&text, "x.toml").unwrap_err().to_string();
        assert!(message.contains("x.toml") && message.contains('6'), "{message}");
        assert!(message.contains("is not a limit"), "{message}");
    }
}
