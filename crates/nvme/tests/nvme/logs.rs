//! Tests of log pages: every field is at its offset (Base 2.1, 5.1.12).

use crate::support::*;
use writecliff_host_interface::placement::FdpConfiguration;
use writecliff_nvme::{PlacementInterface, Status};

#[test]
fn smart_counts_what_the_drive_counted() {
    let mut host = Host::new(PlacementInterface::None);
    host.admin(Command::new(0xff)); // The invalid opcode adds an entry to the error log.
    assert_fields(
        &host.page(log(2, 512)),
        &[
            ("critical_warning", 0, 1, 0),
            ("temperature", 1, 2, 313),
            ("avail_spare", 3, 1, 99),
            ("spare_thresh", 4, 1, 10),
            ("percent_used", 5, 1, 12),
            ("data_units_read", 32, 16, 3),
            ("data_units_written", 48, 16, 5),
            ("host_reads", 64, 16, 31),
            ("host_writes", 80, 16, 41),
            ("ctrl_busy_time", 96, 16, 2),
            ("power_cycles", 112, 16, 5),
            ("power_on_hours", 128, 16, 2),
            ("unsafe_shutdowns", 144, 16, 3),
            ("media_errors", 160, 16, 2),
            ("num_err_log_entries", 176, 16, 1),
            ("warning_temp_time", 192, 4, 0),
            ("critical_comp_time", 196, 4, 0),
            ("temp_sensor 1", 200, 2, 313),
            ("temp_sensor 2", 202, 2, 0),
            ("thm_temp1_trans_count", 216, 4, 0),
            ("thm_temp1_total_time", 224, 4, 9),
        ],
    );
}

#[test]
fn a_drive_without_a_sensor_has_a_nominal_temperature() {
    let mut host = Host::new(PlacementInterface::None);
    host.drive().health.temperature = None;
    let temperatures =
        [("critical_warning", 0, 1, 0), ("temperature", 1, 2, 313), ("temp_sensor 1", 200, 2, 0)];
    assert_fields(&host.page(log(2, 512)), &temperatures);
    // The warning depends on the reported value, so a host that sets its threshold to this
    // temperature is warned.
    host.admin(Command::new(0x09).dword(10, 0x04).dword(11, 313));
    assert_eq!(host.page(log(2, 512))[0], 1 << 1);
}

#[test]
fn critical_warnings_follow_the_drive() {
    let mut host = Host::new(PlacementInterface::None);
    let warning = |host: &mut Host| host.page(log(2, 512))[0];
    host.drive().health.temperature = Some(70.0);
    assert_eq!(warning(&mut host), 1 << 1);
    host.drive().health.temperature = None;
    assert_eq!(warning(&mut host), 0);
    host.drive().health.available_spare = 9;
    host.drive().health.is_read_only = true;
    assert_eq!(warning(&mut host), 1 | 1 << 3);
    host.drive().health.percentage_used = 300.0;
    assert_eq!(host.page(log(2, 512))[5], 255);
}

#[test]
fn the_endurance_group_counts_in_billions() {
    let mut host = Host::fdp();
    assert_fields(
        &host.page(log(9, 512).dword(11, 1 << 16)),
        &[
            ("avl_spare", 3, 1, 99),
            ("avl_spare_threshold", 4, 1, 10),
            ("percent_used", 5, 1, 12),
            ("endurance_estimate", 32, 16, 1_752_000),
            ("data_units_read", 48, 16, 1),
            ("data_units_written", 64, 16, 1),
            ("media_units_written", 80, 16, 3),
            ("host_read_cmds", 96, 16, 31),
            ("host_write_cmds", 112, 16, 41),
            ("media_data_integrity_err", 128, 16, 2),
            ("num_err_info_log_entries", 144, 16, 0),
            ("total_end_grp_cap", 160, 16, u128::from(CAPACITY)),
        ],
    );
    assert_eq!(host.admin(log(9, 512)).status, Status::INVALID_FIELD);
}

#[test]
fn the_error_log_has_the_newest_error_first() {
    let mut host = Host::new(PlacementInterface::None);
    let reply = host.admin(Command::new(0xfe).id(7).nsid(5));
    assert_eq!(reply.entry(0)[15] & 0xc0, 0xc0, "more and do not retry");
    host.status(1, blocks(0x02, CAPACITY / 512, 1).id(8), &[], 512);
    let page = host.page(log(1, 128));
    assert_fields(
        &page,
        &[
            ("error_count", 0, 8, 2),
            ("sqid", 8, 2, 1),
            ("cmdid", 10, 2, 8),
            ("status_field", 12, 2, (0x80 | 1 << 14) << 1),
            ("parm_error_location", 14, 2, 40),
            ("lba", 16, 8, u128::from(CAPACITY / 512)),
            ("nsid", 24, 4, 1),
            ("opcode", 31, 1, 2),
            ("log_page_version", 63, 1, 1),
            ("older error_count", 64, 8, 1),
            ("older sqid", 72, 2, 0),
            ("older cmdid", 74, 2, 7),
            ("older status_field", 76, 2, (1 | 1 << 14) << 1),
            ("older nsid", 88, 4, 5),
            ("older opcode", 95, 1, 0xfe),
        ],
    );
    for _ in 0..100 {
        host.admin(Command::new(0xfe));
    }
    let page = host.page(log(1, 4096));
    assert_eq!((u64_at(&page, 0), u64_at(&page, 63 * 64)), (102, 39));
}

#[test]
fn small_log_pages() {
    let mut host = Host::new(PlacementInterface::Streams);
    let page = host.page(log(3, 512));
    assert_eq!((page[0], &page[8..16]), (1, &b"1.0     "[..]));
    let listed = |page: &[u8], bytes: usize| {
        let all = (0..256usize).filter(|id| page[id * bytes] == 1);
        all.collect::<Vec<_>>()
    };
    let page = host.page(log(0, 1024));
    assert_eq!(listed(&page, 4), [0, 1, 2, 3, 4, 5, 9, 0x12, 0x13, 0x81]);
    let page = Host::fdp().page(log(0, 1024));
    assert_eq!(listed(&page, 4), [0, 1, 2, 3, 4, 5, 9, 0x12, 0x13, 0x20, 0x21, 0x22, 0x23, 0x81]);
}

#[test]
fn supported_commands_are_those_that_work() {
    for mut host in [Host::fdp(), Host::new(PlacementInterface::None)] {
        let page = host.page(log(5, 4096));
        let effects = |at: usize| u32_at(&page, at);
        for opcode in 0..=255u8 {
            let command = Command::new(opcode).nsid(1);
            let at = 4 * usize::from(opcode);
            for (queue, at) in [(0, at), (1, 1024 + at)] {
                // Fabrics commands do not belong to a command set. Format is skipped because it
                // would change later results.
                if opcode == 0x7f || (queue, opcode) == (0, 0x80) {
                    continue;
                }
                let status = host.status(queue, command, &[0; 4096], 4096);
                let is_known = status != Status::INVALID_OPCODE;
                assert_eq!(effects(at) & 1 == 1, is_known, "queue {queue}, {opcode:02x}h");
            }
        }
        assert_eq!(effects(4 * 0x80), 1 | 1 << 1 | 1 << 2 | 1 << 16 | 1 << 20);
        assert_eq!(effects(4 * 0x84), 1 | 1 << 1 | 2 << 16 | 1 << 25);
        assert_eq!(effects(4 * 0x06), 1 | 1 << 21);
        assert_eq!(effects(1024 + 4), 0b11 | 1 << 20);
        let zoned = host.page(log(5, 4096).dword(14, 2 << 24));
        assert_eq!((&zoned[..1024], &zoned[1024..]), (&page[..1024], &[0; 3072][..]));
    }
}

#[test]
fn supported_features_are_those_that_work() {
    // I/O controllers with message-based transports must support these commands (Base 2.1, 3.1.3.6;
    // NVM Command Set 1.1, 4.1.3).
    const MANDATORY: [u32; 8] = [0x01, 0x02, 0x04, 0x05, 0x07, 0x0a, 0x0b, 0x0f];
    // Interrupt coalescing and vectors are prohibited for message-based transports but mandatory
    // over PCIe.
    const PROHIBITED: [u32; 2] = [0x08, 0x09];
    for mut host in [Host::fdp(), Host::new(PlacementInterface::None)] {
        let page = host.page(log(0x12, 1024));
        for feature in 0..=255u32 {
            let entry = u32_at(&page, 4 * feature as usize);
            // Reading the capabilities of a feature has no preconditions.
            let capabilities = Command::new(0x0a).nsid(1).dword(10, feature | 3 << 8);
            let answer = host.admin(capabilities);
            assert_eq!(entry & 1 == 1, answer.status == Status::SUCCESS, "{feature:02x}h");
            let scope = match (feature, answer.result >> 1 & 1) {
                _ if entry & 1 == 0 => 0,
                (0x1d, _) => 1 << 23,
                (_, is_of_namespace) => {
                    if is_of_namespace == 1 {
                        1 << 20
                    } else {
                        1 << 21
                    }
                }
            };
            assert_eq!(entry >> 1 << 1, scope, "{feature:02x}h");
        }
        assert!(MANDATORY.iter().all(|&feature| u32_at(&page, 4 * feature as usize) & 1 == 1));
        for feature in PROHIBITED {
            assert_eq!(u32_at(&page, 4 * feature as usize), 0);
            for opcode in [0x09, 0x0a] {
                let command = Command::new(opcode).dword(10, feature);
                assert_eq!(host.admin(command).status, Status::INVALID_FIELD);
            }
        }
        assert_eq!(host.page(log(0x13, 4096)), [0; 4096]);
    }
}

#[test]
fn fdp_log_pages() {
    let mut host = Host::fdp();
    let group = |id, bytes| log(id, bytes).dword(11, 1 << 16);
    assert_fields(
        &host.page(group(0x20, 512)),
        &[
            ("n", 0, 2, 0),
            ("version", 2, 1, 0),
            ("size", 4, 4, 16 + 64 + 32),
            ("desc.size", 16, 2, 96),
            ("desc.fdpa", 18, 1, 1 << 7 | 1 << 4),
            ("desc.nrg", 20, 4, 1),
            ("desc.nruh", 24, 2, 8),
            ("desc.maxpids", 26, 2, 3),
            ("desc.nnss", 28, 4, 1),
            ("desc.runs", 32, 8, 8 << 20),
            ("desc.erutl", 40, 4, 3600),
            ("ruhs[0]", 80, 4, 1),
            ("ruhs[7]", 108, 4, 2),
        ],
    );
    let page = host.page(group(0x21, 72));
    assert_eq!(u16_at(&page, 0), 8);
    let used: Vec<u8> = page[8..].chunks(8).map(|handle| handle[0]).collect();
    assert_eq!(used, [0, 0, 0, 0, 1, 1, 1, 1]);
    let page = host.page(group(0x22, 64));
    assert_fields(&page, &[("hbmw", 0, 16, 1000), ("mbmw", 16, 16, 2000), ("mbe", 32, 16, 3000)]);
    let of_host = group(0x23, 256).dword(10, 0x23 | 1 << 8 | 63 << 16);
    assert_fields(
        &host.page(of_host),
        &[
            ("n", 0, 4, 1),
            ("type", 64, 1, 0),
            ("flags", 65, 1, 0b111),
            ("pid", 66, 2, 2),
            ("ts", 68, 8, 5000),
            ("nsid", 76, 4, 1),
            ("ruhid", 98, 1, 6),
        ],
    );
    let of_controller = host.page(group(0x23, 256));
    assert_fields(&of_controller, &[("type", 64, 1, 0x80), ("nlbam", 82, 2, 128)]);
    for id in 0x20..0x24 {
        assert_eq!(host.admin(log(id, 64)).status, Status::INVALID_FIELD);
        let mut plain = Host::new(PlacementInterface::Streams);
        assert_eq!(plain.admin(group(id, 64)).status, Status::INVALID_LOG_PAGE);
    }
}

#[test]
fn the_configuration_of_a_drive_with_reclaim_groups() {
    let fdp = FdpConfiguration { reclaim_groups: 3, rgif: 2, ..fdp_configuration() };
    let (split, has) = (|id| fdp.split(id), |id| fdp.has(id));
    assert_eq!((split(0x8002), split(3), fdp.identifiers()), ((2, 2), (0, 3), 12));
    assert!(has(0) && has(0x8003) && !has(4) && !has(0x8004) && !has(0xc000));
    assert!(!fdp_configuration().has(0x8000));
    let mut host = Host::new(PlacementInterface::Fdp(fdp));
    let page = host.page(log(0x20, 512).dword(11, 1 << 16));
    let fields = [
        ("desc.fdpa", 18, 1, 1 << 7 | 1 << 4 | 2),
        ("desc.nrg", 20, 4, 3),
        ("desc.nruh", 24, 2, 8),
        ("desc.maxpids", 26, 2, 3),
    ];
    assert_fields(&page, &fields);
}

#[test]
fn a_part_of_a_log_page_can_be_read() {
    let mut host = Host::new(PlacementInterface::None);
    let whole = host.page(log(5, 4096));
    assert_eq!(host.page(log(5, 64).dword(12, 1024)), whole[1024..1088]);
    assert_eq!(host.page(log(5, 64).dword(12, 4064))[32..], [0; 32], "zeros beyond the end");
    let cases = [
        (log(5, 64).dword(12, 2), Status::INVALID_FIELD),
        (log(5, 64).dword(12, 4100), Status::INVALID_FIELD),
        (log(5, 64).dword(13, 1), Status::INVALID_FIELD),
        (log(5, 64).dword(14, 1 << 23), Status::INVALID_FIELD),
        (log(5, 64).dword(11, 0xffff), Status::INVALID_FIELD),
        (log(2, 64).nsid(1), Status::INVALID_FIELD),
        (log(0x0d, 64), Status::INVALID_LOG_PAGE),
        (log(0x70, 64), Status::INVALID_LOG_PAGE),
        (log(0xc0, 64), Status::INVALID_LOG_PAGE),
    ];
    for (command, expected) in cases {
        assert_eq!(host.admin(command).status, expected, "{:?}", &command.0[40..60]);
    }
    assert_eq!(host.status(0, log(2, 512), &[], 508), Status::DATA_SGL_LENGTH);
}
