//! Tests that an error in a device file is one line with the file, the line and the most similar
//! key.

use crate::common;
use writecliff_ftl::GcPacing;
use writecliff_ftl::gc_destination::GcDestination;
use writecliff_ftl::spare::SparePolicy;
use writecliff_ssd::device_file;

fn error(from: &str, to: &str) -> (String, Option<String>) {
    assert!(common::DRIVE.contains(from), "no '{from}' in the drive");
    let text = common::DRIVE.replace(from, to);
    let error = device_file::read(&text, "drive.toml", 1).unwrap_err();
    (error.to_string(), error.hint)
}

#[test]
fn unknown_keys_name_the_nearest() {
    let (message, hint) =
        error("rated_cycles = 1000", "rated_cycles = 1000\nprogram_suspnd = \"1 us\"");
    assert!(message.starts_with("drive.toml:22: "), "{message}");
    assert!(message.contains("program_suspnd"), "{message}");
    assert!(hint.unwrap().contains("program_suspend"));
}

#[test]
fn impossible_values_name_line_and_limit() {
    let rows = [
        ("channels = 2", "channels = 0", "drive.toml:7: ", "1 to 64"),
        ("page = \"16 KiB\"", "page = \"16k\"", "drive.toml:12: ", "KiB"),
        ("read = [\"50 us\", \"70 us\"]", "read = [\"50 us\"]", "drive.toml:16: ", "must have 2"),
        ("user_capacity = \"40 MiB\"", "user_capacity = \"64 MiB\"", "drive.toml:5: ", "units"),
        (
            "gc_high_watermark = 4",
            "gc_high_watermark = 3",
            "drive.toml:27: ",
            "above gc_low_watermark",
        ),
        ("write_buffer = \"1 MiB\"", "write_buffer = \"64 KiB\"", "drive.toml:31: ", "80 KiB"),
        ("gc = \"greedy\"", "gc = \"gready\"", "drive.toml:24: ", "gready"),
        (
            "gc = \"greedy\"",
            "gc = \"greedy\"\ngc_pacing = \"per-victin\"",
            "toml:25: ",
            "per-victim",
        ),
        ("gc = \"greedy\"", "gc = \"greedy\"\ngc_quantum = \"1 MiB\"", "toml:25: ", "quanta"),
        ("gc = \"greedy\"", "gc = \"greedy\"\ngc_pacing = \"quanta\"", "toml", "gc_quantum"),
        (
            "gc = \"greedy\"",
            "gc = \"greedy\"\ngc_pacing = \"quanta\"\ngc_quantum = \"2 GiB\"",
            "toml:26: ",
            "4 KiB to 1 GiB",
        ),
        ("bus = \"400 MB/s\"", "bus = \"0 MB/s\"", "drive.toml:19: ", "zero"),
    ];
    for (from, to, location, what) in rows {
        let (message, hint) = error(from, to);
        let all = format!("{message} {}", hint.unwrap_or_default());
        assert!(all.contains(location) && all.contains(what), "{to}: {all}");
    }
}

#[test]
fn policies_for_streams_that_do_not_go_together_are_refused_at_their_key() {
    let per_stream = "gc_destination = \"per-stream\"";
    let rows = [
        (
            "gc_destination = \"per-stream\"\nisolated_streams = [1]",
            ":26: ",
            "requires gc_destination",
        ),
        ("gc_destination = \"per-handle\"", "drive.toml", "isolated_streams"),
        ("gc_destination = \"per-handle\"\nisolated_streams = [1.5]", ":26: ", "must be integers"),
        (
            "gc_destination = \"per-handle\"\nisolated_streams = [9]",
            ":26: ",
            "some of the 4 streams",
        ),
        ("gc_destination = \"shared\"\ngc_window = 4", ":26: ", "requires gc"),
        ("gc_destination = \"shared\"\nspare = \"self-tuned\"", ":26: ", "requires gc_destination"),
        ("gc_destination = \"per-stream\"\nspare = \"self-tunned\"", ":26: ", "self-tuned"),
    ];
    for (to, location, what) in rows {
        let (message, hint) = error(per_stream, to);
        let all = format!("{message} {}", hint.unwrap_or_default());
        assert!(all.contains(location) && all.contains(what), "{to}: {all}");
    }
    let read = |to| {
        let text = common::DRIVE.replace(per_stream, to);
        device_file::read(&text, "drive.toml", 1).unwrap().ftl
    };
    let per_handle =
        read("gc_destination = \"per-handle\"\nisolated_streams = [0, 2]").gc_destination;
    assert_eq!(per_handle, GcDestination::PerHandle { isolated: 0b101 });
    assert_eq!(
        read("gc_destination = \"per-stream\"\nspare = \"self-tuned\"").spare,
        SparePolicy::SelfTuned
    );
    assert_eq!(
        read("gc_destination = \"per-stream\"\ngc_pacing = \"per-victim\"").gc_pacing,
        GcPacing::PerVictim
    );
    assert_eq!(read(per_stream).gc_pacing, GcPacing::Incremental);
}

#[test]
fn shipped_presets_are_valid_and_every_number_has_its_source() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/writecliff/devices");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        if text.contains("\n[disk]\n") {
            continue; // The next keys belong to hard disk device files.
        }
        let name = path.file_name().unwrap().to_str().unwrap();
        let config = device_file::read(&text, name, 1).unwrap();
        assert_eq!(format!("{}.toml", config.identity.name), name);
        assert!(config.overprovisioning() > 0.0);
        let toml = writecliff_base::located::LocatedToml::parse(&text, name).unwrap();
        for row in toml.documented() {
            let has_digit = row.value.chars().any(|c| c.is_ascii_digit());
            let is_text = ["name", "description", "model", "vendor", "firmware", "link.interface"]
                .contains(&row.key.as_str());
            assert!(
                is_text || !has_digit || row.comment.len() > 3,
                "{name}:{}: {} has no source beside it",
                row.line,
                row.key
            );
        }
        seen += 1;
    }
    assert!(seen >= 2);
}

#[test]
fn a_wrong_data_placement_section_is_refused_at_its_key() {
    let rows = [
        ("interface = \"nvme-stream\"", ":31: ", "nvme-streams"),
        ("interfaces = \"nvme-fdp\"", ":30: ", "did you mean"),
        ("interface = \"nvme-fdp\"\nopen_streams = 2", ":32: ", "requires interface"),
        ("interface = \"scsi-streams\"\noverflow = \"release\"", ":32: ", "'nvme-streams'"),
        ("interface = \"nvme-streams\"\nhandles = [0]", ":32: ", "'nvme-fdp'"),
        ("interface = \"nvme-streams\"\nopen_streams = 4", ":32: ", "at most 3"),
        ("interface = \"nvme-fdp\"\nhandles = [0, 4]", ":32: ", "0 to 3"),
        ("interface = \"nvme-fdp\"\nhandles = [1, 1]", ":32: ", "twice"),
        ("interface = \"nvme-fdp\"\nhandles = []", ":32: ", "1 to 4"),
        ("interface = \"none\"\nhandles = [0]", ":32: ", "requires interface"),
        ("interface = \"scsi-streams\"\ntime_limit = \"9 s\"", ":32: ", "'nvme-fdp'"),
        ("interface = \"nvme-fdp\"\ntime_limit = \"1500 ms\"", ":32: ", "whole seconds"),
        ("interface = \"nvme-fdp\"\ntime_limit = \"0 s\"", ":32: ", "1 or more"),
        ("interface = \"nvme-fdp\"\nhandels = [0]", ":32: ", "handles"),
    ];
    for (section, location, what) in rows {
        let (message, hint) =
            error("[controller]", &format!("[data_placement]\n{section}\n[controller]"));
        let all = format!("{message} {}", hint.unwrap_or_default());
        assert!(all.contains(location) && all.contains(what), "{section}: {all}");
    }
}
