//! Tests of I/O queue commands: their work for the drive, and rejected commands.

use crate::support::*;
use writecliff_nvme::{Outcome, Placement, PlacementInterface, Span, Status, Work};

const FUA: u32 = 1 << 30;

fn span(offset: u64, length: u64) -> Span {
    Span { offset, length }
}

#[test]
fn reads_and_writes_become_bytes_of_the_drive() {
    let mut host = Host::new(PlacementInterface::None);
    let data = vec![1; 1 << 20];
    let placement = Placement::Unstated;
    let cases = [
        (blocks(0x02, 8, 8), Work::Read(span(4096, 4096))),
        (blocks(0x02, 0, 1).dword(12, FUA), Work::Read(span(0, 512))),
        (blocks(0x01, 3, 2048), Work::Write { span: span(1536, 1 << 20), placement, fua: false }),
        (
            blocks(0x01, 3, 1).dword(12, FUA),
            Work::Write { span: span(1536, 512), placement, fua: true },
        ),
        (blocks(0x05, 1, 2), Work::Compare(span(512, 1024))),
        (blocks(0x0c, 0, 65_536), Work::Verify(span(0, 32 << 20))),
        (
            blocks(0x08, 0, 65_536),
            Work::WriteZeroes { span: span(0, 32 << 20), placement, fua: false, deallocate: false },
        ),
        (
            blocks(0x08, 1, 1).dword(12, 1 << 25 | FUA),
            Work::WriteZeroes { span: span(512, 512), placement, fua: true, deallocate: true },
        ),
        (Command::new(0x00).nsid(1), Work::Flush),
        (Command::new(0x00).nsid(u32::MAX), Work::Flush),
    ];
    for (command, expected) in cases {
        assert_eq!(host.work(command, &data), expected);
    }
    host.drive().lba_format = 1;
    let last = CAPACITY / 4096 - 1;
    let expected = Work::Read(span(last * 4096, 4096));
    assert_eq!(host.work(blocks(0x02, last, 1), &[]), expected);
}

#[test]
fn ranges_are_deallocated_and_hints_ignored() {
    let mut host = Host::new(PlacementInterface::None);
    let mut ranges = vec![0; 48];
    ranges[4..8].copy_from_slice(&8u32.to_le_bytes());
    ranges[8..16].copy_from_slice(&16u64.to_le_bytes());
    ranges[36..40].copy_from_slice(&1u32.to_le_bytes()); // The second range is empty.
    let deallocate = Command::new(0x09).nsid(1).dword(10, 2).dword(11, 1 << 2);
    let spans = vec![span(8192, 4096), span(0, 512)];
    assert_eq!(host.work(deallocate, &ranges), Work::Deallocate(spans));
    let hint = deallocate.dword(11, 1);
    assert_eq!(host.status(1, hint, &ranges, 48), Status::SUCCESS);
    assert!(matches!(host.send(1, hint, &ranges, 48), Outcome::Done(_)));
    ranges[40..48].copy_from_slice(&(CAPACITY / 512).to_le_bytes());
    assert_eq!(host.status(1, deallocate, &ranges, 48), Status::LBA_OUT_OF_RANGE);
    assert_eq!(host.status(1, deallocate, &ranges[..47], 47), Status::DATA_SGL_LENGTH);
}

#[test]
fn malformed_commands_get_the_status_of_the_standard() {
    let mut host = Host::new(PlacementInterface::None);
    let end = CAPACITY / 512;
    let fused = |mut command: Command| {
        command.0[1] = 1;
        command
    };
    let cases = [
        (blocks(0x02, end, 1), Status::LBA_OUT_OF_RANGE),
        (blocks(0x02, end - 1, 2), Status::LBA_OUT_OF_RANGE),
        (blocks(0x02, u64::MAX, 1), Status::LBA_OUT_OF_RANGE),
        (blocks(0x01, end, 1), Status::LBA_OUT_OF_RANGE),
        (blocks(0x05, end, 1), Status::LBA_OUT_OF_RANGE),
        (blocks(0x08, end - 10, 11), Status::LBA_OUT_OF_RANGE),
        (blocks(0x0c, end - 10, 11), Status::LBA_OUT_OF_RANGE),
        (blocks(0x02, 0, 2049), Status::INVALID_FIELD),
        (blocks(0x01, 0, 2049), Status::INVALID_FIELD),
        (blocks(0x05, 0, 2049), Status::INVALID_FIELD),
        (blocks(0x02, 0, 1).nsid(0), Status::INVALID_NAMESPACE),
        (blocks(0x02, 0, 1).nsid(2), Status::INVALID_NAMESPACE),
        (blocks(0x02, 0, 1).nsid(u32::MAX), Status::INVALID_NAMESPACE),
        (blocks(0x01, 0, 1).nsid(u32::MAX), Status::INVALID_NAMESPACE),
        (Command::new(0x00).nsid(2), Status::INVALID_NAMESPACE),
        (Command::new(0x04).nsid(1), Status::INVALID_OPCODE),
        (Command::new(0x0d).nsid(1), Status::INVALID_OPCODE),
        (Command::new(0x12).nsid(1), Status::INVALID_OPCODE),
        (Command::new(0x19).nsid(1), Status::INVALID_OPCODE),
        (Command::new(0x80).nsid(1), Status::INVALID_OPCODE),
        (fused(blocks(0x05, 0, 1)), Status::INVALID_FIELD),
        (blocks(0x01, 0, 1).dword(12, 1 << 20), Status::INVALID_FIELD),
        (blocks(0x01, 0, 1).dword(12, 2 << 20), Status::INVALID_FIELD),
        (blocks(0x08, 0, 1).dword(12, 5 << 20), Status::INVALID_FIELD),
    ];
    let data = vec![0; 1 << 20];
    for (command, expected) in cases {
        let status = host.status(1, command, &data, 1 << 20);
        assert_eq!(status, expected, "{:?}", &command.0[..56]);
    }
    assert_eq!(host.status(1, blocks(0x02, 0, 2), &[], 1023), Status::DATA_SGL_LENGTH);
    assert_eq!(host.status(1, blocks(0x01, 0, 2), &[0; 1023], 1024), Status::DATA_SGL_LENGTH);
    assert_eq!(host.status(2, blocks(0x02, 0, 1), &[], 512), Status::SEQUENCE_ERROR);
    host.drive().lba_format = 1;
    let too_long = blocks(0x08, 0, 65_536);
    assert_eq!(host.status(1, too_long, &[], 0), Status::INVALID_FIELD);
}

#[test]
fn failures_of_the_drive_have_their_status() {
    let mut host = Host::new(PlacementInterface::None);
    let cases = [
        (Status::COMPARE_FAILURE, true),
        (Status::UNRECOVERED_READ, true),
        (Status::WRITE_FAULT, true),
        (Status::INTERNAL_ERROR, false),
    ];
    for (failure, is_final) in cases {
        let reply = host.fail(blocks(0x05, 77, 1), &[0; 512], failure);
        assert_eq!(reply.status, failure);
        assert_eq!(reply.entry(0)[15] & 0x80 != 0, is_final, "{failure:?}: do not retry");
    }
    assert_eq!(u64_at(&host.page(log(1, 64)), 16), 77);
}

#[test]
fn streams_count_while_the_directive_is_enabled() {
    let mut host = Host::new(PlacementInterface::Streams);
    let write = blocks(0x01, 0, 1).dword(12, 1 << 20).dword(13, 5 << 16);
    let placement = |host: &mut Host, command| match host.work(command, &[0; 512]) {
        Work::Write { placement, .. } => placement,
        other => panic!("{other:?}"),
    };
    assert_eq!(placement(&mut host, write), Placement::Unstated);
    let enable = Command::new(0x19).nsid(1).dword(11, 1).dword(12, 1 | 1 << 8);
    assert_eq!(host.admin(enable).status, Status::SUCCESS);
    assert_eq!(placement(&mut host, write), Placement::Stream(5));
    assert_eq!(placement(&mut host, write.dword(13, 0)), Placement::Unstated);
    assert_eq!(placement(&mut host, blocks(0x01, 0, 1)), Placement::Unstated);
    let identifier = write.dword(12, 2 << 20);
    assert_eq!(host.status(1, identifier, &[0; 512], 512), Status::INVALID_FIELD);
}

#[test]
fn placement_identifiers_reach_the_drive_even_if_they_are_not_valid() {
    let mut host = Host::fdp();
    for identifier in [0, 3, 9, 65_535] {
        let write = blocks(0x01, 0, 1).dword(12, 2 << 20).dword(13, identifier << 16);
        let placement = Placement::Identifier(identifier as u16);
        let expected = Work::Write { span: span(0, 512), placement, fua: false };
        assert_eq!(host.work(write, &[0; 512]), expected);
    }
    let stream = blocks(0x01, 0, 1).dword(12, 1 << 20).dword(13, 1 << 16);
    assert_eq!(host.status(1, stream, &[0; 512], 512), Status::INVALID_FIELD);
}

#[test]
fn handle_status_and_update() {
    let mut host = Host::fdp();
    let receive = Command::new(0x12).nsid(1).dword(10, 1).dword(11, 144 / 4 - 1);
    let Outcome::Done(reply) = host.send(1, receive, &[], 144) else { panic!() };
    assert_eq!(reply.status, Status::SUCCESS);
    assert_fields(
        &reply.data,
        &[
            ("nruhsd", 14, 2, 4),
            ("pid", 16, 2, 0),
            ("ruhid", 18, 2, 4),
            ("earutr", 20, 4, 60),
            ("ruamw", 24, 8, 2048),
            ("pid 3", 112, 2, 3),
            ("ruhid 3", 114, 2, 7),
        ],
    );
    let update = |count: u32| Command::new(0x1d).nsid(1).dword(10, 1 | (count - 1) << 16);
    assert_eq!(host.status(1, update(2), &[1, 0, 3, 0], 4), Status::SUCCESS);
    assert_eq!(host.drive().fdp.as_ref().unwrap().updated, [1, 3]);
    let cases = [
        (update(2), &[1, 0, 4, 0][..], Status::INVALID_FIELD),
        (update(5), &[0; 10], Status::INVALID_FIELD),
        (update(2), &[1, 0, 2], Status::DATA_SGL_LENGTH),
        (update(1).dword(10, 9), &[0; 2], Status::INVALID_FIELD),
        (update(1).nsid(2), &[0; 2], Status::INVALID_NAMESPACE),
        (update(1).dword(10, 0), &[], Status::SUCCESS),
        (receive.dword(10, 2), &[], Status::INVALID_FIELD),
        (receive.dword(10, 0), &[], Status::SUCCESS),
        (receive.dword(11, u32::MAX), &[], Status::INVALID_FIELD),
        (receive.dword(11, 255), &[], Status::DATA_SGL_LENGTH),
    ];
    for (command, data, expected) in cases {
        assert_eq!(host.status(1, command, data, 144), expected, "{:?}", &command.0[40..48]);
    }
    assert_eq!(host.drive().fdp.as_ref().unwrap().updated, [1, 3]);
}
