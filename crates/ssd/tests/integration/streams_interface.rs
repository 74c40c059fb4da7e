//! Tests NVMe and SCSI streams, with one test for each rule of the standards.

use crate::common::{alone, command, config, drive, write};
use writecliff_base::StreamId;
use writecliff_host_interface::placement::{DataPlacement, Directives, Refusal};
use writecliff_ssd::{Command, Drive, Operation, Ssd};

/// Returns the drive with round numbers, with this section added. The drive has 4 streams,
/// including the default stream.
fn with(section: &str) -> Ssd {
    drive(&[("[controller]", &format!("[data_placement]\n{section}\n[controller]"))])
}

fn nvme() -> Ssd {
    with("interface = \"nvme-streams\"")
}

fn scsi() -> Ssd {
    with("interface = \"scsi-streams\"")
}

fn write_in(ssd: &mut Ssd, stream: u16, slot: u64) {
    alone(ssd, Command { stream: StreamId(stream), ..write(slot, 1) });
}

fn overflow(ssd: &mut Ssd) -> (u64, u64) {
    let status = ssd.data_placement_status().unwrap();
    (status.overflow_writes, status.overflow_bytes)
}

fn is_invalid_field<T: std::fmt::Debug>(answer: Result<T, Refusal>) -> bool {
    matches!(answer.unwrap_err(), Refusal::InvalidField(_))
}

#[test]
fn return_parameters_follow_from_geometry_and_what_is_open() {
    let mut ssd = nvme();
    let p = ssd.administration().stream_parameters().unwrap();
    assert_eq!((p.limit, p.available, p.open, p.allocated, p.namespace_open), (3, 3, 0, 0, 0));
    // A program unit is a 16 KiB page; a reclaim unit is 16 pages on each of 4 dies.
    assert_eq!((p.write_size.0, p.granularity), (16 * 1024, 16 * 4));
    assert_eq!(
        ssd.administration().directives().unwrap().supported,
        Directives::IDENTIFY | Directives::STREAMS
    );
    write_in(&mut ssd, 9, 0);
    let p = ssd.administration().stream_parameters().unwrap();
    assert_eq!((p.available, p.open, p.namespace_open), (3, 1, 1));
}

#[test]
fn a_stream_opens_with_the_first_write_that_names_it_and_ids_may_be_sparse() {
    let mut ssd = nvme();
    assert!(ssd.administration().stream_status().unwrap().is_empty());
    write_in(&mut ssd, 0, 0);
    for id in [65_535, 7, 300] {
        write_in(&mut ssd, id, 1);
        write_in(&mut ssd, id, 2);
    }
    assert_eq!(ssd.administration().stream_status().unwrap(), [7, 300, 65_535]);
    assert_eq!(ssd.storage().routed(65_535), Some(StreamId(1)));
    assert_eq!(ssd.data_placement_status().unwrap().streams_opened, 3);
    assert_eq!(overflow(&mut ssd), (0, 0));
}

#[test]
fn writes_beyond_the_limit_go_to_the_default_stream_and_are_counted() {
    let mut ssd = nvme();
    (1..=5).for_each(|id| write_in(&mut ssd, id, u64::from(id)));
    write_in(&mut ssd, 5, 9);
    assert_eq!(ssd.administration().stream_status().unwrap(), [1, 2, 3]);
    assert_eq!(ssd.storage().routed(4), None);
    let status = ssd.data_placement_status().unwrap();
    assert_eq!((status.overflow_writes, status.overflow_bytes), (3, 3 * 4096));
    assert_eq!(status.overflow_by_number, [(4, 4096), (5, 8192)]);
    // A released stream makes room for the next stream.
    assert!(ssd.administration().release_stream(2).unwrap());
    write_in(&mut ssd, 5, 10);
    assert_eq!(ssd.administration().stream_status().unwrap(), [1, 3, 5]);
}

#[test]
fn or_the_controller_releases_the_stream_that_is_open_longest() {
    let mut ssd = with("interface = \"nvme-streams\"\noverflow = \"release\"");
    (1..=5).for_each(|id| write_in(&mut ssd, id, u64::from(id)));
    assert_eq!(ssd.administration().stream_status().unwrap(), [3, 4, 5]);
    assert_eq!(overflow(&mut ssd), (0, 0));
    assert_eq!(ssd.data_placement_status().unwrap().streams_released, 2);
    assert_eq!(ssd.storage().routed(1), None);
}

#[test]
fn releasing_an_identifier_that_is_not_open_is_no_error_but_0_is_none() {
    let mut ssd = nvme();
    write_in(&mut ssd, 1, 0);
    assert_eq!(ssd.administration().release_stream(1), Ok(true));
    assert_eq!(ssd.administration().release_stream(1), Ok(false));
    assert_eq!(ssd.administration().release_stream(12), Ok(false));
    assert!(is_invalid_field(ssd.administration().release_stream(0)));
    assert!(ssd.administration().stream_status().unwrap().is_empty());
}

#[test]
fn resources_are_granted_as_far_as_there_are_any_and_once() {
    let mut ssd = nvme();
    assert_eq!(ssd.administration().allocate_streams(2), Ok(2));
    let p = ssd.administration().stream_parameters().unwrap();
    assert_eq!((p.allocated, p.available, p.open), (2, 1, 0));
    assert!(is_invalid_field(ssd.administration().allocate_streams(1)), "release first");
    (1..=3).for_each(|id| write_in(&mut ssd, id, u64::from(id)));
    assert_eq!(ssd.administration().stream_status().unwrap(), [1, 2], "no more than are allocated");
    ssd.administration().release_stream_resources().unwrap();
    ssd.administration().release_stream_resources().unwrap();
    assert!(ssd.administration().stream_status().unwrap().is_empty());
    assert_eq!(ssd.administration().allocate_streams(100), Ok(3));
    let mut none = with("interface = \"nvme-streams\"\nopen_streams = 0");
    assert_eq!(none.administration().allocate_streams(1), Err(Refusal::AllocationFailed));
    write_in(&mut none, 1, 0);
    assert_eq!(overflow(&mut none), (1, 4096));
}

#[test]
fn streams_that_are_open_take_of_what_is_allocated() {
    let mut ssd = nvme();
    (1..=3).for_each(|id| write_in(&mut ssd, id, u64::from(id)));
    assert_eq!(ssd.administration().allocate_streams(2), Ok(2));
    assert_eq!(ssd.administration().stream_status().unwrap(), [2, 3]);
}

#[test]
fn disabling_and_reset_release_everything_and_writes_are_plain_then() {
    let mut ssd = nvme();
    for reset in [false, true] {
        write_in(&mut ssd, 1, 0);
        let before = overflow(&mut ssd).0;
        if reset {
            ssd.controller_reset();
        } else {
            ssd.administration().enable_streams(false).unwrap();
        }
        assert_eq!(ssd.administration().directives().unwrap().enabled, Directives::IDENTIFY);
        assert!(is_invalid_field(ssd.administration().stream_status()));
        assert!(is_invalid_field(ssd.administration().allocate_streams(1)));
        write_in(&mut ssd, 1, 0);
        assert_eq!(overflow(&mut ssd).0, before + 1);
        ssd.administration().enable_streams(true).unwrap();
        assert!(ssd.administration().stream_status().unwrap().is_empty());
    }
}

#[test]
fn a_purge_releases_all_streams() {
    for mut ssd in [nvme(), scsi()] {
        write_in(&mut ssd, 1, 0);
        ssd.purge();
        assert!(ssd.data_placement_status().unwrap().open_streams.is_empty());
    }
}

#[test]
fn scsi_streams_are_opened_by_the_host_and_numbered_by_the_drive() {
    let mut ssd = scsi();
    let limits = ssd.administration().scsi_block_limits().unwrap();
    assert_eq!(limits.maximum_number_of_streams, 3);
    assert_eq!((limits.optimal_stream_write_size, limits.stream_granularity_size), (32, 64));
    assert_eq!(
        (ssd.administration().scsi_open_stream(), ssd.administration().scsi_open_stream()),
        (Ok(1), Ok(2))
    );
    ssd.administration().scsi_close_stream(1).unwrap();
    assert_eq!(ssd.administration().scsi_open_stream(), Ok(1), "the lowest that is not assigned");
    assert_eq!(ssd.administration().scsi_open_stream(), Ok(3));
    assert_eq!(ssd.administration().scsi_stream_status(0).unwrap(), [1, 2, 3]);
    assert_eq!(ssd.administration().scsi_stream_status(2).unwrap(), [2, 3]);
    let full = ssd.administration().scsi_open_stream().unwrap_err().to_string();
    assert!(full.contains("MAXIMUM NUMBER OF STREAMS OPEN (55h/10h)"), "{full}");
}

#[test]
fn scsi_identifiers_that_are_not_open_are_refused() {
    let mut ssd = scsi();
    let id = ssd.administration().scsi_open_stream().unwrap();
    ssd.administration().scsi_close_stream(id).unwrap();
    for id in [id, 0, 3, 4] {
        let message = ssd.administration().scsi_close_stream(id).unwrap_err().to_string();
        assert!(message.contains("INVALID FIELD IN CDB"), "{message}");
    }
    assert!(
        ssd.administration().scsi_stream_status(4).is_err(),
        "beyond the maximum number of streams"
    );
}

#[test]
fn a_scsi_load_opens_its_streams_and_overflows_to_plain_writes() {
    let mut ssd = scsi();
    write_in(&mut ssd, 2, 0);
    assert_eq!(ssd.administration().scsi_stream_status(0).unwrap(), [1, 2]);
    assert_eq!(ssd.storage().routed(2), Some(StreamId(2)));
    write_in(&mut ssd, 4, 0);
    assert_eq!(overflow(&mut ssd), (1, 4096));
}

#[test]
fn commands_of_another_interface_are_refused() {
    let message = nvme().administration().scsi_open_stream().unwrap_err().to_string();
    assert_eq!(message, "the drive has nvme-streams, not scsi-streams");
    assert!(
        scsi().administration().stream_status().is_err()
            && drive(&[]).administration().fdp_statistics().is_err()
    );
    assert!(drive(&[]).data_placement_status().is_none());
    assert!(is_invalid_field(
        with("interface = \"nvme-fdp\"").administration().enable_streams(true)
    ));
}

#[test]
fn streams_keep_their_data_in_units_of_their_own() {
    let mut ssd = nvme();
    for slot in 0..2048 {
        write_in(&mut ssd, 1 + (slot % 2) as u16, slot);
    }
    ssd.quiesce();
    let unit = |slot: u64| {
        let ppa = ssd.ftl().lookup(writecliff_base::Lpn(slot as u32));
        ssd.ftl().geometry().reclaim_unit_of(ppa)
    };
    let units = |first: u64| (first..2048).step_by(2).map(unit).collect::<Vec<_>>();
    assert!(units(0).iter().all(|unit| !units(1).contains(unit)));
    ssd.ftl().check_invariants().unwrap();
}

#[test]
fn both_clocks_route_alike_and_a_restored_drive_keeps_its_streams() {
    let sections = [
        "interface = \"nvme-streams\"",
        "interface = \"nvme-streams\"\nopen_streams = 2\noverflow = \"release\"",
        "interface = \"scsi-streams\"\nopen_streams = 2",
        "interface = \"nvme-fdp\"\nhandles = [2, 0]",
    ];
    for section in sections {
        let commands: Vec<Command> = (0..5000_u64)
            .map(|n| Command { stream: StreamId((n * n % 11) as u16), ..write(n * 37 % 9000, 1) })
            .collect();
        let (mut timed, mut fast) = (with(section), with(section));
        for &command in &commands {
            alone(&mut timed, command);
            fast.fast_forward(&command);
        }
        timed.quiesce();
        fast.end_fast_forward();
        assert_eq!(timed.ftl().digest(), fast.ftl().digest(), "{section}");
        let status = timed.data_placement_status();
        assert_eq!(status, fast.data_placement_status(), "{section}");
        assert!(status.as_ref().unwrap().overflow_writes > 0 || section.contains("release"));

        let saved = timed.save(Vec::new()).unwrap();
        let mut restored = with(section);
        alone(&mut restored, Command { stream: StreamId(9), ..command(Operation::Write, 1, 1, 0) });
        restored.restore_from(&mut &saved[..]).unwrap();
        assert_eq!(restored.data_placement_status(), status, "{section}");
        assert_eq!(restored.save(Vec::new()).unwrap(), saved, "{section}");
        assert_eq!(restored.storage().routed(9), timed.storage().routed(9));
    }
}

#[test]
fn a_drive_with_the_interface_none_has_none() {
    let none = [("[controller]", "[data_placement]\ninterface = \"none\"\n[controller]")];
    assert_eq!(config(&none).data_placement, None);
    assert_eq!(config(&[]).data_placement, None);
}
