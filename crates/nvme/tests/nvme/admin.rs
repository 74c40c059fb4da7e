//! Tests of format, sanitize, directives, abort and asynchronous events.

use crate::support::*;
use writecliff_nvme::{Outcome, PlacementInterface, Reply, Status};

fn format(dword10: u32) -> Command {
    Command::new(0x80).nsid(1).dword(10, dword10)
}

fn event_request(id: u16) -> Command {
    Command::new(0x0c).id(id)
}

fn results(replies: &[Reply]) -> Vec<(u16, u64)> {
    replies.iter().map(|reply| (reply.command_id, reply.result)).collect()
}

#[test]
fn a_format_erases_the_drive_and_sets_its_block_size() {
    let mut host = Host::new(PlacementInterface::None);
    let mut erasures = 0;
    for (dword10, lba_format) in [(0, 0), (1 | 1 << 9, 1), (1 | 2 << 9, 1)] {
        for nsid in [1, u32::MAX] {
            assert_eq!(host.admin(format(dword10).nsid(nsid)).status, Status::SUCCESS);
            erasures += 1;
            assert_eq!((host.drive().lba_format, host.drive().erasures), (lba_format, erasures));
        }
    }
    let cases = [
        (format(2), Status::INVALID_FORMAT),
        (format(1 | 1 << 12), Status::INVALID_FORMAT),
        (format(1 | 1 << 5), Status::INVALID_FORMAT),
        (format(3 << 9), Status::INVALID_FIELD),
        (format(0).nsid(0), Status::INVALID_NAMESPACE),
        (format(0).nsid(2), Status::INVALID_NAMESPACE),
    ];
    for (command, expected) in cases {
        assert_eq!(host.admin(command).status, expected);
    }
    host.drive().is_broken = true;
    assert_eq!(host.admin(format(0)).status, Status::INTERNAL_ERROR);
    assert_eq!((host.drive().lba_format, host.drive().erasures), (1, erasures));
}

#[test]
fn a_sanitize_operation_has_ended_when_its_command_completes() {
    let mut host = Host::new(PlacementInterface::None);
    let status = |host: &mut Host| {
        let page = host.page(log(0x81, 512));
        (u16_at(&page, 0), u16_at(&page, 2), u32_at(&page, 4))
    };
    assert_eq!(status(&mut host), (0xffff, 0, 0));
    assert!(matches!(host.send(0, event_request(9), &[], 0), Outcome::Held));
    assert_eq!(host.admin(Command::new(0x84).dword(10, 4)).status, Status::SUCCESS);
    assert_eq!(host.drive().erasures, 1);
    assert_eq!(results(&host.subsystem.poll()), [(9, 0x81_01_06)]);
    assert_eq!(status(&mut host), (0xffff, 1 | 1 << 8, 4), "all data are erased");
    host.work(blocks(0x01, 0, 1), &[0; 512]);
    assert_eq!(status(&mut host), (0xffff, 1, 4));
    assert_eq!(host.admin(Command::new(0x84).dword(10, 1)).status, Status::SUCCESS);
    for action in [0, 3, 5, 7] {
        let refused = host.admin(Command::new(0x84).dword(10, action));
        assert_eq!(refused.status, Status::INVALID_FIELD);
    }
    assert_eq!(host.drive().erasures, 1);
    host.drive().is_broken = true;
    assert_eq!(host.admin(Command::new(0x84).dword(10, 2)).status, Status::INTERNAL_ERROR);
    assert_eq!(status(&mut host), (0xffff, 1, 4));
}

#[test]
fn a_drive_that_cannot_sanitize_has_no_such_command() {
    let mut drive = TestDrive::new(PlacementInterface::None);
    (drive.identity.block_erase, drive.identity.crypto_erase) = (false, false);
    let mut host = Host::of(drive);
    assert_eq!(host.admin(Command::new(0x84).dword(10, 2)).status, Status::INVALID_OPCODE);
    assert_eq!(host.admin(log(0x81, 512)).status, Status::INVALID_LOG_PAGE);
    assert_eq!(host.admin(format(2 << 9)).status, Status::INVALID_FIELD);
}

fn receive(directive: u32, operation: u32, bytes: u32) -> Command {
    let command = Command::new(0x1a).nsid(1).dword(10, bytes / 4 - 1);
    command.dword(11, operation | directive << 8)
}

fn send(directive: u32, operation: u32, specific: u32) -> Command {
    Command::new(0x19).nsid(1).dword(11, operation | directive << 8 | specific << 16)
}

#[test]
fn the_streams_directive_has_parameters_status_and_resources() {
    let mut host = Host::new(PlacementInterface::Streams);
    let page = host.page(receive(0, 1, 4096));
    assert_eq!((page[0], page[32], page[64]), (0b11, 0b01, 0b01));
    assert_eq!(host.admin(receive(1, 1, 32)).status, Status::INVALID_FIELD, "not enabled");
    assert_eq!(host.admin(send(0, 1, 0).dword(12, 1 | 1 << 8)).status, Status::SUCCESS);
    let page = host.page(receive(0, 1, 4096));
    assert_eq!((page[0], page[32], page[64]), (0b11, 0b11, 0b01));
    assert_fields(
        &host.page(receive(1, 1, 32)),
        &[
            ("msl", 0, 2, 8),
            ("nssa", 2, 2, 8),
            ("nsso", 4, 2, 2),
            ("sws", 16, 4, 256),
            ("sgs", 20, 2, 9),
            ("nsa", 22, 2, 0),
            ("nso", 24, 2, 2),
        ],
    );
    let page = host.page(receive(1, 2, 8));
    assert_eq!((u16_at(&page, 0), u16_at(&page, 2), u16_at(&page, 4)), (2, 3, 9));
    assert_eq!(host.admin(send(1, 1, 3)).status, Status::SUCCESS);
    assert_eq!(host.drive().streams.as_ref().unwrap().open, [9]);
    assert_eq!(host.admin(receive(1, 3, 4).dword(12, 5)).result, 5);
    let again = host.admin(receive(1, 3, 4).dword(12, 5));
    assert_eq!(again.status, Status::STREAM_ALLOCATION_FAILED);
    assert_eq!(host.admin(send(1, 2, 0)).status, Status::SUCCESS);
    assert_eq!(host.drive().streams.as_ref().unwrap().allocated, 0);
    let cases = [
        (send(1, 1, 0), Status::INVALID_FIELD),
        (send(1, 3, 0), Status::INVALID_FIELD),
        (send(2, 1, 0), Status::INVALID_FIELD),
        (send(0, 1, 0).dword(12, 1 | 2 << 8), Status::INVALID_FIELD),
        (send(0, 1, 0).nsid(2), Status::INVALID_NAMESPACE),
        (receive(1, 4, 32), Status::INVALID_FIELD),
        (receive(7, 1, 32), Status::INVALID_FIELD),
        (receive(1, 1, 32).nsid(7), Status::INVALID_NAMESPACE),
    ];
    for (command, expected) in cases {
        assert_eq!(host.admin(command).status, expected, "{:?}", &command.0[40..52]);
    }
    assert_eq!(host.status(0, receive(0, 1, 4096), &[], 4092), Status::DATA_SGL_LENGTH);
}

#[test]
fn fdp_is_a_directive_that_stays_enabled() {
    let mut host = Host::fdp();
    let page = host.page(receive(0, 1, 4096));
    assert_eq!((page[0], page[32], page[64]), (0b101, 0b101, 0b101));
    assert_eq!(host.admin(receive(1, 1, 32)).status, Status::INVALID_FIELD);
    let mut plain = Host::new(PlacementInterface::None);
    assert_eq!(plain.admin(receive(0, 1, 4096)).status, Status::INVALID_OPCODE);
}

#[test]
fn warnings_are_events() {
    let mut host = Host::new(PlacementInterface::None);
    assert!(matches!(host.send(0, event_request(1), &[], 0), Outcome::Held));
    host.drive().health.temperature = Some(75.0);
    assert!(host.subsystem.poll().is_empty(), "the host has not asked for them");
    host.drive().health.temperature = Some(40.0);
    host.subsystem.poll();
    host.admin(Command::new(0x09).dword(10, 0x0b).dword(11, 0xff));
    host.drive().health.temperature = Some(75.0);
    assert_eq!(results(&host.subsystem.poll()), [(1, 0x02_01_01)]);
    assert!(matches!(host.send(0, event_request(2), &[], 0), Outcome::Held));
    host.drive().health.available_spare = 1;
    assert!(host.subsystem.poll().is_empty(), "the log page has not been read");
    host.page(log(2, 512).dword(10, 2 | 1 << 15 | 127 << 16));
    assert!(host.subsystem.poll().is_empty(), "nor does this reading count");
    host.page(log(2, 512));
    host.drive().health.is_read_only = true;
    assert_eq!(results(&host.subsystem.poll()), [(2, 0x02_00_01)]);
}

#[test]
fn other_hosts_learn_that_the_namespace_has_changed() {
    let mut host = Host::new(PlacementInterface::None);
    let mut other = Host { controller: attach(&mut host.subsystem, "other"), ..host };
    other.admin(Command::new(0x09).dword(10, 0x0b).dword(11, 1 << 8));
    assert!(matches!(other.send(0, event_request(5), &[], 0), Outcome::Held));
    let (first, second) = (host.controller, other.controller);
    let mut host = Host { controller: first, ..other };
    host.admin(format(1));
    let replies = host.subsystem.poll();
    assert_eq!(results(&replies), [(5, 0x04_00_02)]);
    assert_eq!(replies[0].controller, second);
    assert_eq!(u32_at(&host.page(log(4, 4096)), 0), 0);
    let mut other = Host { controller: second, ..host };
    assert_eq!(u32_at(&other.page(log(4, 4096)), 0), 1);
    assert_eq!(u32_at(&other.page(log(4, 4096)), 0), 0, "reading clears it");
}

#[test]
fn only_event_requests_can_be_aborted() {
    let mut host = Host::new(PlacementInterface::None);
    for id in 0..4 {
        assert!(matches!(host.send(0, event_request(id), &[], 0), Outcome::Held));
    }
    let fifth = host.status(0, event_request(4), &[], 0);
    assert_eq!(fifth, Status::ASYNC_LIMIT_EXCEEDED);
    assert_eq!(host.admin(Command::new(0x08).dword(10, 2 << 16)).result, 0);
    let replies = host.subsystem.poll();
    assert_eq!((replies.len(), replies[0].command_id), (1, 2));
    assert_eq!(replies[0].status, Status::ABORT_REQUESTED);
    assert_eq!(host.admin(Command::new(0x08).dword(10, 2 << 16)).result, 1);
    assert_eq!(host.admin(Command::new(0x08).dword(10, 1 | 1 << 16)).result, 1);
}
