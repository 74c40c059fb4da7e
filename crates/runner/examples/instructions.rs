//! Small fixed cases whose instructions are counted: `instructions DEVICE.toml CASE`.
//!
//! `tools/instruction-counts` runs the cases under callgrind, which counts only the instructions
//! inside `measured_case`. The preset is reduced to a drive that reaches steady state quickly.

use std::error::Error;

use writecliff_runner::outcome::Unobserved;
use writecliff_runner::{drive, fast_forward};
use writecliff_ssd::{Ssd, device_file};
use writecliff_workload::{JobSpec, WorkloadSpec};

const IOS: u64 = 100_000;
const CUT: [(&str, &str); 3] = [
    ("user_capacity = \"120 GB\"", "user_capacity = \"960 MB\""),
    ("blocks_per_plane = 1366", "blocks_per_plane = 183"),
    ("pages_per_block = 384", "pages_per_block = 24"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, case] = arguments.as_slice() else {
        return Err("usage: instructions DEVICE.toml CASE".into());
    };
    let mut text = std::fs::read_to_string(file)?;
    for (from, to) in CUT {
        if !text.contains(from) {
            return Err(format!("{file}: no '{from}'").into());
        }
        text = text.replace(from, to);
    }
    let mut ssd = Ssd::new(device_file::read(&text, file, 1)?)?;
    let capacity = ssd.config().user_capacity.0;
    let churn = JobSpec { volume_bytes: Some(3 * capacity), ..load(0.0, 1) };
    fast_forward::run(&mut ssd, &workload(churn, 9), &mut Unobserved)?;
    let (read_pct, timed) = match case.as_str() {
        "fast-forward" => (0.0, false),
        "timed-reads" => (100.0, true),
        "timed-writes" => (0.0, true),
        "timed-mix" => (70.0, true),
        other => return Err(format!("no case '{other}'").into()),
    };
    measured_case(&mut ssd, &workload(load(read_pct, 32), 1), timed)
}

#[inline(never)]
fn measured_case(ssd: &mut Ssd, spec: &WorkloadSpec, timed: bool) -> Result<(), Box<dyn Error>> {
    let clock = if timed { drive::run } else { fast_forward::run };
    clock(ssd, spec, &mut Unobserved)?;
    Ok(())
}

fn load(read_pct: f64, queue_depth: u32) -> JobSpec {
    JobSpec { read_pct, queue_depth, ios: Some(IOS), ..JobSpec::default() }
}

fn workload(job: JobSpec, seed: u64) -> WorkloadSpec {
    let job = JobSpec { ios: job.ios.filter(|_| job.volume_bytes.is_none()), ..job };
    WorkloadSpec { name: "case".to_owned(), jobs: vec![job], seed, interval_ns: 1_000_000_000 }
}
