//! Tests that the canonical text for the device hash contains every device file key, for every
//! drive type.
//!
//! The files next to this test contain every key. The test also checks this property: a reader that
//! rejects an unknown key lists the keys that it knows. These keys must equal the keys of the
//! reference.

use std::collections::BTreeSet;

use writecliff_base::located::Change;
use writecliff_host_interface::Identity;
use writecliff_runner::Device;
use writecliff_runner::device::device_keys;

const SSD: &str = include_str!("device_hash/ssd.toml");
const DISK: &str = include_str!("device_hash/disk.toml");
const SCM: &str = include_str!("device_hash/scm.toml");

/// All words that are values of keys.
const WORDS: [&str; 32] = [
    "SLC",
    "MLC",
    "TLC",
    "greedy",
    "fifo",
    "d-choices",
    "windowed-greedy",
    "per-stream",
    "host-unit",
    "shared",
    "per-handle",
    "per-victim",
    "incremental",
    "overlapped",
    "barrier",
    "commands",
    "on-demand",
    "global",
    "self-tuned",
    "none",
    "block",
    "static",
    "dynamic",
    "half",
    "full",
    "nvme-streams",
    "nvme-fdp",
    "scsi-streams",
    "default",
    "release",
    "journal",
    "scan",
];

/// Returns SSDs with keys that exclude keys of the first SSD.
fn ssds() -> [String; 11] {
    let (plain, _) = SSD.split_once("[slc_cache]").unwrap();
    let default = "gc_destination = \"per-stream\"\nspare = \"global\"";
    assert!(plain.contains(default));
    let per_handle =
        plain.replace(default, "gc_destination = \"per-handle\"\nisolated_streams = [1, 2]");
    // Parity occupies half of the flash, and the simulator does not combine parity with independent
    // plane reads.
    let per_handle = per_handle.replace("\"40 MiB\"", "\"10 MiB\"");
    let per_handle = per_handle.replace("independent_plane_reads = true\n", "");
    let fold_at = "fold_at = \"50 %\"";
    assert!(SSD.contains(fold_at));
    let units = plain.split_once("[integrity]").map_or(plain, |(before, _)| before);
    let units = units
        .replace("[ftl]\n", "[ftl]\nindirection_unit = \"8 KiB\"\nmerged_units = 2\n")
        .replace("power_loss_protection = false", "power_loss_protection = true");
    [
        SSD.to_owned(),
        plain.replace("\"per-victim\"", "\"quanta\"\ngc_quantum = \"64 KiB\""),
        per_handle
            + "[data_placement]\ninterface = \"nvme-fdp\"\nhandles = [0, 2]\n"
            + "time_limit = \"9 s\"\n[die_parity]\nstripe = 2\nrelocate_interval = \"5 s\"\n",
        format!("{plain}[data_placement]\ninterface = \"nvme-streams\"\n")
            + "[bad_blocks]\nfactory = \"1 %\"\nfailed_at_rated = \"2 %\"\nshape = 2.0\n"
            + "found_by_erase = \"40 %\"\nreplacement = \"block\"\n",
        plain.to_owned()
            + "[reduction]\ncompression = true\nduplicates = true\n"
            + "min_stored_size = \"1 KiB\"\n",
        plain.replace("\"d-choices\"\nd = 5", "\"windowed-greedy\"\ngc_window = 5")
            + "[reduction]\ncompression = false\nduplicates = true\n"
            + "[recovery]\nmethod = \"scan\"\n",
        SSD.replace(fold_at, "dynamic = true"),
        SSD.replace(fold_at, "dynamic = true\nstatic_size = \"1 MiB\""),
        units,
        plain.replace("power_loss_protection = false", "power_loss_protection = true")
            + "[data_placement]\ninterface = \"nvme-fdp\"\nreclaim_groups = 2\n",
        plain.to_owned() + "[read_ahead]\nwindow = \"256 KiB\"\nafter = 3\nstreams = 4\n",
    ]
}

fn canonical(text: &str) -> Result<String, String> {
    let device = Device::read(text, "full.toml").map_err(|e| e.to_string())?;
    Ok(device.config().canonical().to_owned())
}

/// Returns other values of the same type as `value`, the most promising first.
fn others(value: &str) -> Vec<String> {
    if let Some(list) = value.strip_prefix('[') {
        let (first, rest) = list.split_once(',').unwrap();
        return others(first).into_iter().map(|other| format!("[{other},{rest}")).collect();
    }
    let quote = if value.starts_with('"') { "\"" } else { "" };
    let bare = value.trim_matches('"');
    let unit = bare.trim_start_matches(|c: char| c.is_ascii_digit() || ".e-".contains(c));
    if let Ok(number) = bare.strip_suffix(unit).unwrap_or(bare).parse::<f64>() {
        let nearby = [number + 1.0, number - 1.0, number * 2.0, number / 2.0, number * 1.1];
        return nearby.map(|other| format!("{quote}{other}{unit}{quote}")).into();
    }
    let words = WORDS.iter().map(|word| format!("{quote}{word}{quote}"));
    ["true".to_owned(), "false".to_owned()].into_iter().chain(words).collect()
}

/// Returns other keys that must change together with a key so that the file stays valid.
fn fellows(key: &str) -> &[(&str, &str)] {
    const THREE: &str = "[\"1 ms\", \"2 ms\", \"3 ms\"]";
    match key {
        "flash.cell" => &[("flash.read", THREE), ("flash.program", THREE)],
        "flash.one_shot" => &[("flash.program", "[\"1 ms\"]")],
        "reduction.compression" => &[("reduction.min_stored_size", "\"1 KiB\"")],
        _ => &[],
    }
}

fn change(key: &str, value: &str) -> Option<Change> {
    Some(Change { key: key.to_owned(), value: value.parse().ok()?, source: None })
}

/// Changes every key of a file in turn, and checks that the canonical text contains the key's
/// value. Returns the keys that can have another value in the file.
fn check_each_key(text: &str) -> BTreeSet<String> {
    let device = Device::read(text, "full.toml").unwrap();
    let base = device.config().canonical();
    let line = |key: &str, text: &str| {
        let start = format!("{key} = ");
        text.lines().find(|line| line.starts_with(&start)).map(str::to_owned)
    };
    let mut tried = BTreeSet::new();
    for row in device.toml().documented() {
        let fellows = fellows(&row.key).iter().filter_map(|(key, value)| change(key, value));
        let fellows: Vec<Change> = fellows.collect();
        let mut accepted = others(&row.value).into_iter().filter_map(|other| {
            let changes = [&fellows[..], &[change(&row.key, &other)?]].concat();
            (other != row.value)
                .then(|| canonical(&device.toml().changed(&changes).unwrap()).ok())?
        });
        let Some(changed) = accepted.next() else { continue };
        if Identity::DOCUMENTARY.contains(&row.key.as_str()) {
            assert_eq!(changed, base, "{} only describes the drive", row.key);
        } else {
            assert_ne!(line(&row.key, &changed), line(&row.key, base), "{}", row.key);
        }
        tried.insert(row.key);
    }
    tried
}

/// Returns the dotted keys that the reader requests from the tables of the file.
fn known_keys(text: &str) -> BTreeSet<String> {
    let tables = text.lines().filter_map(|line| line.strip_prefix('[')?.strip_suffix(']'));
    let mut keys_of_file = BTreeSet::new();
    for table in tables.chain([""]) {
        let header = format!("[{table}]\n");
        let unknown = "qqqqqqqq = 1\n";
        let wrong = match table {
            "" => format!("{unknown}{text}"),
            _ => text.replace(&header, &format!("{header}{unknown}")),
        };
        let hint = Device::read(&wrong, "full.toml").unwrap_err().hint.unwrap();
        let keys = hint.strip_prefix("known keys here: ").unwrap().split(", ");
        keys_of_file
            .extend(keys.map(|key| format!("{table}.{key}").trim_start_matches('.').to_owned()));
    }
    keys_of_file
}

/// Returns the dotted keys in the reference for a drive type.
fn declared_keys(kind: &str) -> BTreeSet<String> {
    let kinds = device_keys().into_iter();
    let sections = kinds.filter(|(name, _)| *name == kind).flat_map(|(_, sections)| sections);
    let keys = sections.flat_map(|section| {
        let keys = section.keys.into_iter();
        keys.map(move |key| format!("{}.{}", section.name, key.name))
    });
    keys.map(|key| key.trim_start_matches('.').to_owned()).collect()
}

fn check_all_keys(kind: &str, texts: &[String]) {
    let tried: BTreeSet<String> = texts.iter().flat_map(|text| check_each_key(text)).collect();
    let is_table = |key: &String| tried.iter().any(|other| other.starts_with(&format!("{key}.")));
    let keys = texts.iter().flat_map(|text| known_keys(text));
    let keys: BTreeSet<String> = keys.filter(|key| !is_table(key)).collect();
    assert_eq!(keys, declared_keys(kind), "each key that is read must be declared");
    assert_eq!(keys, tried, "the files of this test must have every key, and permit a change");
}

#[test]
fn every_key_of_an_ssd_is_in_the_hash() {
    check_all_keys("SSDs", &ssds());
}

#[test]
fn every_key_of_a_disk_is_in_the_hash() {
    check_all_keys("Hard disks", &[DISK.to_owned()]);
}

#[test]
fn every_key_of_a_drive_of_storage_class_memory_is_in_the_hash() {
    check_all_keys("Storage-class memory", &[SCM.to_owned()]);
}

#[test]
fn the_same_value_in_other_units_is_the_same_device() {
    let other = SSD.replace("\"40 MiB\"", "\"40960 KiB\"").replace("\"3 ms\"", "\"3000 us\"");
    assert_eq!(canonical(&other), canonical(SSD));
}
