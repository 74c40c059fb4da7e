//! Benchmark cases from the command line, for profilers: `bench DEVICE.toml SCALE CASE...`
#![allow(clippy::print_stdout)]

use std::error::Error;

use writecliff_runner::bench::Bench;
use writecliff_ssd::device_file;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, scale, cases @ ..] = arguments.as_slice() else {
        return Err("usage: bench DEVICE.toml SCALE CASE...".into());
    };
    let device = device_file::read(&std::fs::read_to_string(file)?, file, 1)?;
    let mut bench = Bench::new(device, scale.parse()?);
    for case in cases {
        let row = bench.run(case)?;
        let fields = row.fields().iter().map(|(k, v)| format!("{k} {v:.4}")).collect::<Vec<_>>();
        println!("{}: {}", row.case, fields.join(", "));
    }
    Ok(())
}
