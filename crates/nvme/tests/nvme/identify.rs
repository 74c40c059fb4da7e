//! Tests of Identify: every field is at the offset where nvme-cli and Linux read it (Base 2.1,
//! 5.1.13.2).

use crate::support::*;
use writecliff_nvme::{PlacementInterface, Status};

#[test]
fn identify_controller_says_what_the_drive_is() {
    let mut host = Host::fdp();
    let page = host.page(identify(1));
    assert_eq!(page.len(), 4096);
    assert_eq!(&page[4..24], b"S1                  ");
    assert_eq!(&page[24..64], format!("{:40}", "simulated drive").as_bytes());
    assert_eq!(&page[64..72], b"1.0     ");
    assert_eq!(&page[768..768 + NQN.len()], NQN.as_bytes());
    assert_eq!(page[768 + NQN.len()], 0);
    let controller = u128::from(host.controller);
    assert_fields(
        &page,
        &[
            ("cmic", 76, 1, 2),
            ("mdts", 77, 1, 8),
            ("cntlid", 78, 2, controller),
            ("ver", 80, 4, 0x0002_0100),
            ("oaes", 92, 4, 1 << 8),
            ("ctratt", 96, 4, 1 | 1 << 4 | 1 << 6 | 1 << 19),
            ("cntrltype", 111, 1, 1),
            ("nvmsr", 253, 1, 1),
            ("oacs", 256, 2, 1 << 1 | 1 << 5),
            ("acl", 258, 1, 3),
            ("aerl", 259, 1, 3),
            ("frmw", 260, 1, 0b011),
            ("lpa", 261, 1, 0b10_0110),
            ("elpe", 262, 1, 63),
            ("npss", 263, 1, 0),
            ("wctemp", 266, 2, 343),
            ("tnvmcap", 280, 16, u128::from(CAPACITY)),
            ("kas", 320, 2, 10),
            ("sanicap", 328, 4, 0b11 | 1 << 30),
            ("endgidmax", 340, 2, 1),
            ("megcap", 368, 16, u128::from(CAPACITY)),
            ("sqes", 512, 1, 0x66),
            ("cqes", 513, 1, 0x44),
            ("maxcmd", 514, 2, 1024),
            ("nn", 516, 4, 1),
            ("oncs", 520, 2, 0b1101_1101),
            ("fna", 524, 1, 1 << 2),
            ("vwc", 525, 1, 0b111),
            ("awun", 526, 2, 7),
            ("awupf", 528, 2, 7),
            ("sgls", 536, 4, 1 | 1 << 18 | 1 << 20 | 1 << 21),
            ("ioccsz", 1792, 4, (64 + 8192) / 16),
            ("iorcsz", 1796, 4, 1),
            ("icdoff", 1800, 2, 0),
            ("fcatt", 1802, 1, 0),
            ("msdbd", 1803, 1, 1),
        ],
    );
}

#[test]
fn what_a_drive_lacks_is_not_offered() {
    let mut drive = TestDrive::new(PlacementInterface::None);
    drive.identity.volatile_cache = false;
    drive.identity.block_erase = false;
    drive.identity.crypto_erase = false;
    drive.identity.warning_temperature = None;
    let mut host = Host::of(drive);
    assert_fields(
        &host.page(identify(1)),
        &[
            ("ctratt", 96, 4, 1 | 1 << 4 | 1 << 6),
            ("oacs", 256, 2, 1 << 1),
            ("wctemp", 266, 2, 0),
            ("sanicap", 328, 4, 0),
            ("fna", 524, 1, 0),
            ("vwc", 525, 1, 0b110),
        ],
    );
}

#[test]
fn identify_namespace_follows_the_format() {
    let mut host = Host::new(PlacementInterface::None);
    for (format, block) in [(0, 512), (1, 4096)] {
        host.drive().lba_format = format;
        let page = host.page(identify(0).nsid(1));
        let blocks = u128::from(CAPACITY / block);
        let unit = u128::from((64 << 10) / block - 1);
        assert_fields(
            &page,
            &[
                ("nsze", 0, 8, blocks),
                ("ncap", 8, 8, blocks),
                ("nuse", 16, 8, blocks),
                ("nsfeat", 24, 1, 0b1_0010),
                ("nlbaf", 25, 1, 1),
                ("flbas", 26, 1, u128::from(format)),
                ("nmic", 30, 1, 1),
                ("dlfeat", 33, 1, 0b1001),
                ("nawun", 34, 2, u128::from(4096 / block - 1)),
                ("nawupf", 36, 2, u128::from(4096 / block - 1)),
                ("nvmcap", 48, 16, u128::from(CAPACITY)),
                ("npwg", 64, 2, unit),
                ("npwa", 66, 2, unit),
                ("npdg", 68, 2, unit),
                ("npda", 70, 2, unit),
                ("nows", 72, 2, unit),
                ("endgid", 102, 2, 1),
                ("lbaf0", 128, 4, 9 << 16 | 1 << 24),
                ("lbaf1", 132, 4, 12 << 16),
            ],
        );
        assert_eq!(page[104..120], [9; 16]);
        assert_eq!(page[120..128], [1, 2, 3, 4, 5, 6, 7, 8]);
    }
}

#[test]
fn descriptors_list_all_identifiers() {
    let mut host = Host::new(PlacementInterface::None);
    let page = host.page(identify(3).nsid(1));
    assert_eq!(page[..4], [1, 8, 0, 0]);
    assert_eq!(page[4..12], [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(page[12..16], [2, 16, 0, 0]);
    assert_eq!(page[32..36], [3, 16, 0, 0]);
    assert_eq!(page[36..52], [10; 16]);
    assert_eq!(page[52..57], [4, 1, 0, 0, 0]);
    assert!(page[57..].iter().all(|&byte| byte == 0));
}

#[test]
fn lists_hold_the_namespace_the_controllers_and_the_endurance_group() {
    let mut host = Host::new(PlacementInterface::None);
    for cns in [0x02, 0x07, 0x10, 0x1a] {
        let page = host.page(identify(cns).nsid(0));
        assert_eq!((u32_at(&page, 0), u32_at(&page, 4)), (1, 0), "{cns:02x}h");
        assert_eq!(u32_at(&host.page(identify(cns).nsid(1)), 0), 0, "{cns:02x}h");
    }
    let other = attach(&mut host.subsystem, "another host");
    for cns in [0x12, 0x13] {
        let page = host.page(identify(cns).nsid(1));
        assert_eq!(u16_at(&page, 0), 2);
        assert_eq!([u16_at(&page, 2), u16_at(&page, 4)], [host.controller, other]);
        let page = host.page(identify(cns | u32::from(other) << 16).nsid(1));
        assert_eq!((u16_at(&page, 0), u16_at(&page, 2)), (1, other));
    }
    let page = host.page(identify(0x19));
    assert_eq!((u16_at(&page, 0), u16_at(&page, 2)), (1, 1));
    assert_eq!(u16_at(&host.page(identify(0x19).dword(11, 2)), 0), 0);
}

#[test]
fn structures_of_the_command_set_have_their_limits() {
    let mut host = Host::new(PlacementInterface::None);
    assert_fields(&host.page(identify(6)), &[("vsl", 0, 1, 13), ("wzsl", 1, 1, 13)]);
    assert_fields(&host.page(identify(5).nsid(1)), &[("npdgl", 268, 4, 128)]);
    assert_eq!(host.page(identify(0x1b).nsid(1)), host.page(identify(5).nsid(1)));
    assert_eq!(host.page(identify(0x11).nsid(1)), host.page(identify(0).nsid(1)));
    assert_fields(
        &host.page(identify(8).nsid(1)),
        &[("nmic", 1, 1, 1), ("endgid", 12, 2, 1), ("nstat", 14, 1, 1)],
    );
    assert_eq!(u64_at(&host.page(identify(0x1c)), 0), 1);
}

#[test]
fn other_structures_and_namespaces_are_refused() {
    let mut host = Host::new(PlacementInterface::None);
    let cases = [
        (identify(0x04), Status::INVALID_FIELD),
        (identify(0x14), Status::INVALID_FIELD),
        (identify(0xff), Status::INVALID_FIELD),
        (identify(0).nsid(0), Status::INVALID_NAMESPACE),
        (identify(0).nsid(2), Status::INVALID_NAMESPACE),
        (identify(0).nsid(u32::MAX), Status::INVALID_NAMESPACE),
        (identify(3).nsid(2), Status::INVALID_NAMESPACE),
        (identify(5).nsid(9), Status::INVALID_NAMESPACE),
        (identify(8).nsid(9), Status::INVALID_NAMESPACE),
        (identify(2).nsid(u32::MAX), Status::INVALID_NAMESPACE),
        (identify(2).nsid(u32::MAX - 1), Status::INVALID_NAMESPACE),
        (identify(5).nsid(1).dword(11, 2 << 24), Status::INVALID_FIELD),
        (identify(6).dword(11, 2 << 24), Status::INVALID_FIELD),
        (identify(7).dword(11, 1 << 24), Status::INVALID_FIELD),
    ];
    for (command, expected) in cases {
        assert_eq!(host.admin(command).status, expected, "{:?}", &command.0[..48]);
    }
    assert_eq!(host.status(0, identify(1), &[], 4095), Status::DATA_SGL_LENGTH);
}
