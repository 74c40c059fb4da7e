//! Tests of Get Features and Set Features.

use crate::support::*;
use writecliff_host_interface::placement::FdpEventType;
use writecliff_nvme::{PlacementInterface, Status};

fn get(feature: u32) -> Command {
    Command::new(0x0a).dword(10, feature)
}

fn set(feature: u32, value: u32) -> Command {
    Command::new(0x09).dword(10, feature).dword(11, value)
}

const DEFAULT: u32 = 1 << 8;
const CAPABILITIES: u32 = 3 << 8;
const SAVE: u32 = 1 << 31;

#[test]
fn what_is_set_is_what_is_got_until_a_reset() {
    let mut host = Host::new(PlacementInterface::None);
    let cases = [
        (0x01, 3, 3, 0),
        (0x02, 5 << 5, 5 << 5, 0),
        (0x04, 350, 350, 343),
        (0x0a, u32::MAX, 1, 0),
        (0x0b, u32::MAX, 0x13f, 0),
        (0x0f, 4500, 5000, 0),
    ];
    for (feature, value, expected, default) in cases {
        assert_eq!(host.admin(get(feature)).result as u32, default, "{feature:02x}h");
        assert_eq!(host.admin(set(feature, value)).status, Status::SUCCESS);
        assert_eq!(host.admin(get(feature)).result as u32, expected, "{feature:02x}h");
        assert_eq!(host.admin(get(feature | DEFAULT)).result as u32, default, "{feature:02x}h");
        assert_eq!(host.admin(get(feature | CAPABILITIES)).result, 1 << 2);
    }
    assert_eq!(host.subsystem.keep_alive(host.controller), Some(5000));
    configure(&mut host.subsystem, host.controller, 0);
    configure(&mut host.subsystem, host.controller, ENABLED);
    assert_eq!(host.admin(get(0x04)).result, 343);
    assert_eq!(host.admin(get(0x0f)).result, 5000, "belongs to the association");
}

#[test]
fn over_and_under_thresholds_are_apart() {
    let mut host = Host::new(PlacementInterface::None);
    host.admin(set(0x04, 0x12c | 1 << 20));
    assert_eq!(host.admin(get(0x04).dword(11, 1 << 20)).result, 0x12c);
    assert_eq!(host.admin(get(0x04)).result, 343);
    for sensor in [1 << 16, 8 << 16, 2 << 20] {
        assert_eq!(host.admin(set(0x04, sensor)).status, Status::INVALID_FIELD);
        assert_eq!(host.admin(get(0x04).dword(11, sensor)).status, Status::INVALID_FIELD);
    }
}

#[test]
fn the_write_cache_is_the_drives() {
    let mut host = Host::new(PlacementInterface::None);
    assert_eq!(host.admin(get(0x06)).result, 1);
    host.admin(set(0x06, 0));
    assert!(!host.drive().cache);
    assert_eq!(host.admin(get(0x06)).result, 0);
    assert_eq!(host.admin(get(0x06 | DEFAULT)).result, 1);
    let of_namespace = set(0x06, 1).nsid(1);
    assert_eq!(host.admin(of_namespace).status, Status::FEATURE_NOT_OF_NAMESPACE);
    let mut drive = TestDrive::new(PlacementInterface::None);
    drive.identity.volatile_cache = false;
    assert_eq!(Host::of(drive).admin(get(0x06)).status, Status::INVALID_FIELD);
}

#[test]
fn a_host_gets_the_queues_that_there_are() {
    let mut host = Host::new(PlacementInterface::None);
    assert_eq!(host.admin(get(0x07)).result, 3 | 3 << 16);
    assert_eq!(host.admin(set(0x07, 1)).status, Status::SEQUENCE_ERROR, "queue 1 is connected");
    let mut subsystem = host.subsystem;
    subsystem.disconnect_queue(host.controller, 1);
    let mut host = Host { subsystem, ..host };
    assert_eq!(host.admin(set(0x07, 1 | 1 << 16)).result, 1 | 1 << 16);
    assert_eq!(host.admin(get(0x07)).result, 1 | 1 << 16);
    assert_eq!(host.admin(set(0x07, 0x63 | 0x63 << 16)).result, 3 | 3 << 16);
    assert_eq!(host.admin(set(0x07, 0xffff)).status, Status::INVALID_FIELD);
    assert_eq!(host.admin(set(0x07, 0xffff << 16)).status, Status::INVALID_FIELD);
}

#[test]
fn the_timestamp_goes_on_with_the_drives_clock() {
    let mut host = Host::new(PlacementInterface::None);
    let data = host.page(get(0x0e));
    assert_eq!((number(&data, 0, 6), data[6]), (10_000, 0));
    let reply = host.admin_with(set(0x0e, 0), &1_700_000_000_000u64.to_le_bytes());
    assert_eq!(reply.status, Status::SUCCESS);
    host.drive().now.0 += 2_500_000_000;
    let data = host.page(get(0x0e));
    assert_eq!((number(&data, 0, 6), data[6]), (1_700_000_002_500, 1 << 1));
    let short = host.admin_with(set(0x0e, 0), &[0; 7]);
    assert_eq!(short.status, Status::DATA_SGL_LENGTH);
}

#[test]
fn fdp_is_enabled_for_good() {
    let mut host = Host::fdp();
    assert_eq!(host.admin(get(0x1d).dword(11, 1)).result, 1);
    assert_eq!(host.admin(get(0x1d).dword(11, 2)).status, Status::INVALID_FIELD);
    assert_eq!(host.admin(get(0x1d | CAPABILITIES)).result, 0b101);
    let disable = set(0x1d | SAVE, 1);
    assert_eq!(host.admin(disable).status, Status::SEQUENCE_ERROR);
    let mut plain = Host::new(PlacementInterface::Streams);
    assert_eq!(plain.admin(get(0x1d).dword(11, 1)).status, Status::INVALID_FIELD);
}

#[test]
fn fdp_events_are_enabled_by_placement_handle() {
    let mut host = Host::fdp();
    let enable = set(0x1e, 2 | 2 << 16).nsid(1).dword(12, 1);
    assert_eq!(host.admin_with(enable, &[0x03, 0x80]).status, Status::SUCCESS);
    let enabled = host.drive().fdp.as_ref().unwrap().enabled.clone();
    assert_eq!(
        enabled,
        [(2, FdpEventType::InvalidPlacementId), (2, FdpEventType::MediaReallocated)]
    );
    let reply = host.admin(get(0x1e).nsid(1).dword(11, 2 | 6 << 16));
    assert_eq!((reply.status, reply.result), (Status::SUCCESS, 6));
    assert_eq!(reply.data, [0, 0, 1, 0, 2, 0, 3, 1, 0x80, 1, 0x81, 0]);
    assert_eq!(host.admin_with(enable.dword(12, 0), &[0x03, 0x80]).status, Status::SUCCESS);
    assert!(host.drive().fdp.as_ref().unwrap().enabled.is_empty());
    let cases = [
        (enable.dword(11, 4 | 1 << 16), &[0x03][..], Status::INVALID_FIELD),
        (enable, &[0x03, 0x7f], Status::INVALID_FIELD),
        (enable, &[0x03], Status::DATA_SGL_LENGTH),
        (enable.nsid(0), &[0x03, 0x80], Status::INVALID_NAMESPACE),
        (enable.nsid(2), &[0x03, 0x80], Status::INVALID_NAMESPACE),
    ];
    for (command, data, expected) in cases {
        assert_eq!(host.admin_with(command, data).status, expected);
    }
}

#[test]
fn the_host_identifier_is_that_of_connect() {
    let mut host = Host::new(PlacementInterface::None);
    assert_eq!(host.page(get(0x81).dword(11, 1)), [7; 16]);
    assert_eq!(host.admin(get(0x81)).status, Status::INVALID_FIELD);
    assert_eq!(host.admin(set(0x81, 1)).status, Status::SEQUENCE_ERROR);
}

#[test]
fn malformed_commands_get_the_status_of_the_standard() {
    let mut host = Host::new(PlacementInterface::Streams);
    let cases = [
        (get(0x00), Status::INVALID_FIELD),
        (get(0x03), Status::INVALID_FIELD),
        (get(0x08), Status::INVALID_FIELD),
        (get(0xc0), Status::INVALID_FIELD),
        (get(0x01 | 4 << 8), Status::INVALID_FIELD),
        (get(0x05).nsid(0), Status::INVALID_NAMESPACE),
        (get(0x05).nsid(3), Status::INVALID_NAMESPACE),
        (set(0x00, 0), Status::INVALID_FIELD),
        (set(0x03, 0), Status::INVALID_FIELD),
        (set(0x02, 1), Status::INVALID_FIELD),
        (set(0x01 | SAVE, 0), Status::FEATURE_NOT_SAVEABLE),
        (set(0x06 | SAVE, 0), Status::FEATURE_NOT_SAVEABLE),
        (set(0x0f, 0).nsid(1), Status::FEATURE_NOT_OF_NAMESPACE),
        (set(0x05, 1 << 16).nsid(1), Status::INVALID_FIELD),
        (set(0x05, 0).nsid(0), Status::INVALID_NAMESPACE),
        (set(0x19, 1), Status::COMMAND_SET_REJECTED),
        (set(0x19, 0), Status::SUCCESS),
        (set(0x1e, 0).nsid(1), Status::INVALID_FIELD),
    ];
    for (command, expected) in cases {
        assert_eq!(host.admin(command).status, expected, "{:?}", &command.0[..48]);
    }
}
