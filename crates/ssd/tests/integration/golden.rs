//! Fixed loads on a drive with each mechanism: completions, counters and the saved state do not
//! change unless the model does. Run with `WRITECLIFF_RECORD=1` to record new digests.

use std::fmt::Write as _;
use std::path::Path;

use writecliff_base::{Nanos, Prng, StreamId};
use writecliff_ssd::attribution::{Recorder, Unrecorded};
use writecliff_ssd::{Attribution, Command, DeviceConfig, DriveCounters, Operation, Ssd, Volatile};

use crate::common;

const SLOTS: u64 = 10_240;
const CAPACITORS: (&str, &str) = ("power_loss_protection = false", "power_loss_protection = true");

/// A drive for each mechanism and for combinations that share code: name, changes to the round
/// drive, keys of `[ftl]` and sections.
const DRIVES: [(&str, &[(&str, &str)], &str, &str); 26] = [
    ("plain", &[], "", ""),
    ("protected", &[CAPACITORS], "", ""),
    ("no-cache", &[("write_cache = true", "write_cache = false")], "", ""),
    (
        "suspends",
        &[(
            "command = \"1 us\"",
            "command = \"1 us\"\nprogram_suspend = \"10 us\"\nerase_suspend = \"20 us\"",
        )],
        "",
        "",
    ),
    (
        "mapping-core",
        &[(
            "latency = \"5 us\"",
            "latency = \"5 us\"\nmapping_update_time = \"50 us\"\nrelocation_time = \"30 us\"\nlookup_time = \"2 us\"\nread_slot_time = \"1 us\"\nmerge_time = \"4 us\"",
        )],
        "",
        "",
    ),
    (
        "barrier",
        &[("latency = \"5 us\"", "latency = \"5 us\"\nservice_order = \"barrier\"")],
        "",
        "",
    ),
    (
        "slc-fixed",
        &[],
        "",
        "[slc_cache]\nsize = \"4 MiB\"\nprogram = \"200 us\"\nread = \"25 us\"\nfold_at = \"50 %\"\nfold_time = \"3 us\"\n",
    ),
    (
        "slc-folding",
        &[CAPACITORS],
        "",
        "[slc_cache]\nsize = \"4 MiB\"\nprogram = \"200 us\"\nread = \"25 us\"\nbypass = false\n",
    ),
    (
        "slc-dynamic",
        &[],
        "",
        "[slc_cache]\nsize = \"8 MiB\"\nprogram = \"200 us\"\nread = \"25 us\"\ndynamic = true\nstatic_size = \"1 MiB\"\n",
    ),
    (
        "slc-no-cache",
        &[("write_cache = true", "write_cache = false")],
        "",
        "[slc_cache]\nsize = \"4 MiB\"\nprogram = \"200 us\"\nread = \"25 us\"\n",
    ),
    (
        "mapping-cache",
        &[],
        "",
        "[mapping_cache]\nsize = \"16 KiB\"\nread = \"30 us\"\nprogram = \"200 us\"\n",
    ),
    (
        "host-memory",
        &[CAPACITORS],
        "",
        "[mapping_cache]\nsize = \"16 KiB\"\npage = \"4 KiB\"\nread = \"30 us\"\nprogram = \"200 us\"\nhost_memory_buffer = \"24 KiB\"\nhost_memory_latency = \"2 us\"\n[slc_cache]\nsize = \"4 MiB\"\nprogram = \"200 us\"\nread = \"25 us\"\n",
    ),
    ("units", &[CAPACITORS], "indirection_unit = \"16 KiB\"\n", ""),
    (
        "integrity",
        &[],
        "",
        "[integrity]\nbuffer_flips = 1e-3\nbus_flips = 1e-3\nmisplaced_writes = 1e-3\nbuffer_ecc = false\nguard = true\nreference_tag = true\n",
    ),
    (
        "ecc",
        &[],
        "",
        "[ecc]\nrber = 1e-3\nrber_at_rated = 2e-2\nrber_spread = 0.3\ncodeword = \"1 KiB\"\ncorrectable = 18\nretry_time = \"60 us\"\nretries_max = 3\n",
    ),
    (
        "cell-care",
        &[],
        "",
        "[ecc]\nrber = 1e-3\nrber_at_rated = 2e-2\ncodeword = \"1 KiB\"\ncorrectable = 18\nretry_time = \"60 us\"\nretries_max = 3\n[cell_care]\nread_disturb = 1e-5\nrefresh_rber = 1e-3\nrefresh_interval = \"1 s\"\n",
    ),
    (
        "bad-blocks",
        &[CAPACITORS],
        "",
        "[bad_blocks]\nfactory = \"2 %\"\nfailed_at_rated = \"30 %\"\nshape = 1.0\n",
    ),
    (
        "housekeeping",
        &[],
        "",
        "[housekeeping]\nmedia_interval = \"20 ms\"\nmedia_time = \"2 ms\"\njournal_interval = \"1 MiB\"\njournal_time = \"1 ms\"\ncheckpoint_interval = \"4 MiB\"\ncheckpoint_time = \"5 ms\"\nhiccup_probability = 0.01\nhiccup_time = \"1 ms\"\npatrol_interval = \"1 s\"\npatrol_length = \"300 ms\"\npatrol_step = \"1 ms\"\npatrol_time = \"20 us\"\n",
    ),
    (
        "power",
        &[],
        "",
        "[power]\nidle = \"1 W\"\nactive = \"2 W\"\nread = \"30 mW\"\nprogram = \"50 mW\"\nerase = \"40 mW\"\ntransfer = \"60 mW\"\nlink = \"500 mW\"\nmax_active_dies = [2]\n[thermal]\nambient = \"35 C\"\nresistance = \"10 C/W\"\ncapacity = \"0.05 J/C\"\nthrottle_at = \"45 C\"\nrecover_at = \"40 C\"\nthrottle_factor = 2.0\nperiod = \"5 ms\"\n",
    ),
    ("endurance", &[], "", "[endurance]\nlife = \"20000 s\"\nreserve = \"0 %\"\n"),
    (
        "die-parity",
        &[CAPACITORS, ("\"40 MiB\"", "\"20 MiB\"")],
        "",
        "[ecc]\nrber = 1e-3\nrber_at_rated = 2e-2\ncodeword = \"1 KiB\"\ncorrectable = 18\nretry_time = \"60 us\"\nretries_max = 3\n[die_parity]\nstripe = 4\n",
    ),
    (
        "reduction",
        &[],
        "",
        "[reduction]\ncompression = true\nmin_stored_size = \"512 B\"\nduplicates = true\n",
    ),
    (
        "groups",
        &[CAPACITORS, ("streams = 4", "streams = 2")],
        "",
        "[data_placement]\ninterface = \"nvme-fdp\"\nreclaim_groups = 2\n",
    ),
    ("fdp", &[], "", "[data_placement]\ninterface = \"nvme-fdp\"\ntime_limit = \"1 s\"\n"),
    (
        "streams",
        &[],
        "",
        "[data_placement]\ninterface = \"nvme-streams\"\nopen_streams = 2\noverflow = \"release\"\n",
    ),
    (
        "planes",
        &[
            ("planes_per_die = 1", "planes_per_die = 2"),
            ("page = \"16 KiB\"", "page = \"8 KiB\""),
            ("cell = \"MLC\"", "cell = \"MLC\"\nindependent_plane_reads = true"),
        ],
        "",
        "[slc_cache]\nsize = \"4 MiB\"\nprogram = \"200 us\"\nread = \"25 us\"\n",
    ),
];

fn config(changes: &[(&str, &str)], ftl: &str, sections: &str) -> DeviceConfig {
    let ftl = format!("[ftl]\n{ftl}");
    let link = format!("{sections}[link]");
    let more = [("[ftl]\n", ftl.as_str()), ("[link]", link.as_str())];
    common::config(&changes.iter().copied().chain(more).collect::<Vec<_>>())
}

/// FNV-1a, which no library and no version of Rust changes.
struct Digest(u64);

impl Digest {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// A host that submits reads, writes, deallocations and flushes of all sizes.
struct Host {
    random: Prng,
    slots: u64,
    streams: u16,
    completions: Digest,
}

impl Host {
    fn command(&mut self, tag: u32) -> Command {
        let operation = match self.random.below(100) {
            0..50 => Operation::Read,
            50..94 => Operation::Write,
            94..98 => Operation::Trim,
            _ => Operation::Flush,
        };
        let sectors = [1, 8, 8, 8, 8, 12, 32, 64][self.random.below(8) as usize];
        let unit = if sectors % 8 == 0 { 8 } else { 1 };
        let first = self.random.below((self.slots * 8 - sectors) / unit) * unit;
        let mut command = common::command(operation, 0, 1, tag);
        command.stream = StreamId(self.random.below(u64::from(self.streams)) as u16);
        command.content.sectors = 1 + self.random.below(8) as u32;
        if operation != Operation::Flush {
            (command.offset, command.length) = (first * 512, sectors as u32 * 512);
        } else {
            (command.offset, command.length) = (0, 0);
        }
        command
    }

    fn run<R: Recorder>(&mut self, ssd: &mut Ssd<R>, depth: u32, count: u32) {
        let mut issued = 0;
        for _ in 0..depth {
            let at = ssd.now();
            let command = self.command(issued);
            ssd.submit(at, command);
            issued += 1;
        }
        for _ in 0..count {
            let done = ssd.step(Nanos::MAX).expect("a command is outstanding");
            let times = ssd.time_by_cause().map(|times| format!("{times:?}")).unwrap_or_default();
            let line = format!("{} {} {:?} {times}", done.at.0, done.tag, done.status);
            self.completions.add(line.as_bytes());
            if issued < count {
                let command = self.command(issued);
                ssd.submit(done.at, command);
                issued += 1;
            }
        }
    }
}

fn digests<R: Recorder>(config: DeviceConfig, cuts: bool) -> String {
    let mut ssd = Ssd::<R>::recording(config).unwrap();
    let slots = ssd.config().user_capacity.0 / 4096;
    assert!(slots <= SLOTS);
    let streams = ssd.config().ftl.streams;
    let mut host = Host { random: Prng::derive(7, 1), slots, streams, completions: Digest::new() };
    for n in 0..slots as u32 {
        let mut command = common::write(u64::from(n), 1);
        command.stream = StreamId(n as u16 / 64 % streams);
        ssd.fast_forward(&command);
    }
    for n in 0..2 * slots as u32 {
        let command = host.command(n);
        if !cuts {
            ssd.fast_forward(&command);
        }
    }
    ssd.end_fast_forward();
    for _ in 0..4 {
        host.run(&mut ssd, 16, 1_500);
        let now = ssd.now();
        ssd.idle_until(Nanos(now.0 + 300_000_000));
        if cuts {
            let cut = format!("{:?}", ssd.cut_power());
            host.completions.add(cut.as_bytes());
        }
    }
    if ssd.config().die_parity.is_some() {
        ssd.lose_die(1).unwrap();
    }
    host.run(&mut ssd, 16, 500);
    let mut counters = Digest::new();
    for reading in DriveCounters::readings(Some(&ssd.counters())) {
        counters.add(format!("{} {:?}\n", reading.name, reading.value).as_bytes());
    }
    let mut state = Digest::new();
    state.add(&ssd.save(Vec::new()).unwrap());
    ssd.quiesce();
    ssd.check_invariants().unwrap();
    ssd.purge();
    host.run(&mut ssd, 4, 200);
    format!("{:016x} {:016x} {:016x}", host.completions.0, counters.0, state.0)
}

#[test]
fn fixed_loads_end_as_recorded() {
    let mut found = String::new();
    for (name, changes, ftl, sections) in DRIVES {
        let config = config(changes, ftl, sections);
        if config.max_active_dies().is_none() {
            let all = digests::<Unrecorded>(config.clone(), false);
            writeln!(found, "{name} unrecorded {all}").unwrap();
        }
        writeln!(found, "{name} attributed {}", digests::<Attribution>(config.clone(), false))
            .unwrap();
        if config.refuses_power_cut().is_none() {
            writeln!(found, "{name} cut {}", digests::<Volatile>(config, true)).unwrap();
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration/golden.txt");
    if std::env::var_os("WRITECLIFF_RECORD").is_some() {
        std::fs::write(&path, &found).unwrap();
    }
    let recorded = std::fs::read_to_string(&path).unwrap();
    for (line, expected) in found.lines().zip(recorded.lines()) {
        assert_eq!(line, expected, "completions, counters, saved state");
    }
    assert_eq!(found.lines().count(), recorded.lines().count());
}
