//! Tests of Connect, properties, discovery, and the removal of controllers.

use crate::support::*;
use writecliff_nvme::{
    Access, Association, Entry, PlacementInterface, Reply, Request, Status, Subsystem,
};

fn subsystem() -> Subsystem<TestDrive> {
    Subsystem::new(TestDrive::new(PlacementInterface::None), access())
}

fn try_connect(
    subsystem: &mut Subsystem<TestDrive>,
    command: Command,
    data: &[u8],
) -> (Option<Association>, Reply) {
    subsystem.connect(Request { entry: Entry(&command.0), data, buffer: data.len() as u32 })
}

#[test]
fn connect_says_what_is_wrong() {
    let mut subsystem = subsystem();
    let good = connect_data(0xffff, NQN, HOST_NQN);
    let with = |at: usize, bytes: &[u8]| {
        let mut data = good.clone();
        data[at..at + bytes.len()].copy_from_slice(bytes);
        data
    };
    let admin = connect_command(0, 32);
    let parameters = Status::CONNECT_PARAMETERS;
    let cases = [
        (admin, connect_data(0xffff, "nqn.other", HOST_NQN), parameters, 256 | 1 << 16),
        (admin, connect_data(0xffff, "", HOST_NQN), parameters, 256 | 1 << 16),
        (admin, connect_data(0xffff, NQN, ""), parameters, 512 | 1 << 16),
        (admin, with(512, &[b'x'; 256]), parameters, 512 | 1 << 16),
        (admin, with(512, &[0xff, 0xfe, 0]), parameters, 512 | 1 << 16),
        (admin, with(16, &[5, 0]), parameters, 16 | 1 << 16),
        (connect_command(0, 1), good.clone(), parameters, 44),
        (connect_command(1, 128), with(16, &[5, 0]), parameters, 16 | 1 << 16),
        (connect_command(1, 2000), good.clone(), parameters, 44),
        (admin, good[..1023].to_vec(), Status::DATA_SGL_LENGTH, 0),
        (admin.dword(10, 1), good.clone(), Status::CONNECT_FORMAT, 0),
        (identify(1), good.clone(), Status::SEQUENCE_ERROR, 0),
        (Command::new(0x7f).dword(11, 0x14), good.clone(), Status::SEQUENCE_ERROR, 0),
    ];
    for (command, data, status, result) in cases {
        let (association, reply) = try_connect(&mut subsystem, command, &data);
        assert_eq!((association, reply.status, reply.result), (None, status, result));
    }
}

#[test]
fn only_listed_hosts_connect_and_not_too_many() {
    let hosts = Some(vec!["a".into(), "b".into()]);
    let access = Access { hosts, controllers: 2, ..access() };
    let mut subsystem = Subsystem::new(TestDrive::new(PlacementInterface::None), access);
    let mut status = |host: &str| {
        let data = connect_data(0xffff, NQN, host);
        try_connect(&mut subsystem, connect_command(0, 32), &data).1.status
    };
    assert_eq!(status("c"), Status::CONNECT_HOST);
    assert_eq!(status("a"), Status::SUCCESS);
    assert_eq!(status("b"), Status::SUCCESS);
    assert_eq!(status("a"), Status::CONNECT_BUSY);
}

#[test]
fn queues_join_their_hosts_controller_once_it_is_enabled() {
    let mut subsystem = subsystem();
    let data = connect_data(0xffff, NQN, HOST_NQN);
    let (association, reply) = try_connect(&mut subsystem, connect_command(0, 32), &data);
    let association = association.unwrap();
    assert_eq!((association.queue, association.entries, association.flow_control), (0, 32, true));
    assert_eq!(reply.result, u64::from(association.controller));
    let id = association.controller;
    let join = |subsystem: &mut Subsystem<TestDrive>, queue, host: &str| {
        let data = connect_data(id, NQN, host);
        try_connect(subsystem, connect_command(queue, 128), &data).1
    };
    assert_eq!(join(&mut subsystem, 1, HOST_NQN).status, Status::SEQUENCE_ERROR, "not enabled");
    configure(&mut subsystem, id, ENABLED);
    let cases = [
        (1, HOST_NQN, Status::SUCCESS, u64::from(id)),
        (1, HOST_NQN, Status::SEQUENCE_ERROR, 0),
        (4, HOST_NQN, Status::SUCCESS, u64::from(id)),
        (5, HOST_NQN, Status::CONNECT_PARAMETERS, 42),
        (2, "somebody else", Status::CONNECT_PARAMETERS, 512 | 1 << 16),
    ];
    for (queue, host, status, result) in cases {
        let reply = join(&mut subsystem, queue, host);
        assert_eq!((reply.status, reply.result), (status, result), "queue {queue} of {host}");
    }
    let mut without = connect_command(2, 128);
    without.0[46] = 1 << 2;
    let data = connect_data(id, NQN, HOST_NQN);
    let (association, _) = try_connect(&mut subsystem, without, &data);
    assert!(!association.unwrap().flow_control);
    assert!(subsystem.is_connected(id, 4));
    configure(&mut subsystem, id, 0);
    assert!(!subsystem.is_connected(id, 4), "a reset ends I/O queues");
    assert!(subsystem.is_connected(id, 0));
}

#[test]
fn properties_describe_and_control() {
    let mut host = Host::new(PlacementInterface::None);
    let get = |offset: u32, wide: u32| {
        let mut command = Command::new(0x7f).dword(10, wide).dword(11, offset);
        command.0[4] = 4;
        command
    };
    let cap = host.admin(get(0, 1)).result;
    assert_eq!(cap & 0xffff, 1023, "MQES");
    assert_eq!(cap >> 16 & 1, 1, "CQR");
    assert_eq!(cap >> 37 & 0xff, 0b100_0001, "CSS: NVM, more than one");
    assert_eq!(cap >> 48 & 0xff, 0, "MPSMIN and MPSMAX");
    assert_eq!(cap >> 59 & 3, 1, "CRMS");
    assert_eq!(host.admin(get(0x08, 0)).result, 0x0002_0100);
    assert_eq!(host.admin(get(0x14, 0)).result, u64::from(ENABLED));
    assert_eq!(host.admin(get(0x1c, 0)).result, 1);
    assert_eq!(host.admin(get(0x68, 0)).result, 30);
    for (offset, wide) in [(0, 0), (8, 1), (0x1c, 1), (0x20, 0), (0x24, 0), (0x1000, 0), (4, 0)] {
        assert_eq!(host.admin(get(offset, wide)).status, Status::INVALID_FIELD);
    }
    let set = |offset: u32, value: u32| Command::new(0x7f).dword(11, offset).dword(12, value);
    assert_eq!(host.admin(set(0x1c, 1)).status, Status::INVALID_FIELD);
    assert_eq!(host.admin(set(0x14, 1).dword(10, 1)).status, Status::INVALID_FIELD);
    let mut unknown = set(0, 0);
    unknown.0[4] = 0x99;
    assert_eq!(host.admin(unknown).status, Status::INVALID_FIELD);
    assert_eq!(host.status(1, get(0, 1), &[], 0), Status::INVALID_OPCODE);

    assert_eq!(host.drive().shutdowns, 0);
    host.admin(set(0x14, ENABLED | 1 << 14));
    assert_eq!(host.admin(get(0x1c, 0)).result, 1 | 2 << 2, "shutdown complete");
    assert_eq!((host.drive().shutdowns, host.drive().resets), (1, 0));
    host.admin(set(0x14, 0));
    assert_eq!(host.admin(get(0x1c, 0)).result, 0);
    assert_eq!(host.drive().resets, 1);
    assert_eq!(host.admin(identify(1)).status, Status::SEQUENCE_ERROR);
    for unsupported in [1 | 1 << 7, 1 | 1 << 11, 1 | 3 << 4, 1 | 7 << 16, 1 | 5 << 20] {
        host.admin(set(0x14, unsupported));
        assert_eq!(host.admin(get(0x1c, 0)).result, 2, "fatal: {unsupported:x}");
        host.admin(set(0x14, 0));
    }
    assert_eq!(host.drive().resets, 1);
}

#[test]
fn the_drive_is_reset_with_its_last_controller() {
    let mut subsystem = subsystem();
    let first = attach(&mut subsystem, "a");
    let second = attach(&mut subsystem, "b");
    assert_ne!(first, second);
    subsystem.disconnect(first);
    assert_eq!(subsystem.drive.resets, 0);
    subsystem.disconnect(first);
    subsystem.disconnect(second);
    assert_eq!(subsystem.drive.resets, 1);
    let third = attach(&mut subsystem, "a");
    assert!(third > second, "identifiers are not reused at once");
    let mut host = Host { subsystem, controller: second };
    assert_eq!(host.status(0, identify(1), &[], 4096), Status::SEQUENCE_ERROR);
    assert!(host.subsystem.is_connected(third, 0));
    assert!(!host.subsystem.is_connected(second, 0));
}

#[test]
fn discovery_lists_the_addresses() {
    let mut subsystem = subsystem();
    let data = connect_data(0xffff, DISCOVERY_NQN, HOST_NQN);
    let (association, _) = try_connect(&mut subsystem, connect_command(0, 32), &data);
    let controller = association.unwrap().controller;
    configure(&mut subsystem, controller, ENABLED);
    let mut host = Host { subsystem, controller };
    let page = host.page(identify(1));
    assert_eq!((page[111], page[261]), (2, 1 << 2));
    assert_eq!(&page[768..768 + DISCOVERY_NQN.len()], DISCOVERY_NQN.as_bytes());
    let page = host.page(log(0x70, 2048));
    assert_fields(
        &page,
        &[
            ("genctr", 0, 8, 1),
            ("numrec", 8, 8, 1),
            ("recfmt", 16, 2, 0),
            ("trtype", 1024, 1, 3),
            ("adrfam", 1025, 1, 1),
            ("subtype", 1026, 1, 2),
            ("portid", 1028, 2, 1),
            ("cntlid", 1030, 2, 0xffff),
            ("asqsz", 1032, 2, 32),
            ("tsas", 1792, 1, 0),
        ],
    );
    assert_eq!(&page[1056..1088], format!("{:32}", "4420").as_bytes());
    assert_eq!(&page[1280..1280 + NQN.len()], NQN.as_bytes());
    assert_eq!(&page[1536..1792], format!("{:256}", "127.0.0.1").as_bytes());
    let cases = [
        (identify(0).nsid(1), Status::INVALID_FIELD),
        (log(2, 512), Status::INVALID_LOG_PAGE),
        (Command::new(0x80).nsid(1), Status::INVALID_OPCODE),
        (Command::new(0x08), Status::INVALID_OPCODE),
        (Command::new(0x0a).dword(10, 6), Status::INVALID_FIELD),
        (Command::new(0x09).dword(10, 0x0f).dword(11, 1), Status::SUCCESS),
        (Command::new(0x18), Status::SUCCESS),
    ];
    for (command, expected) in cases {
        assert_eq!(host.admin(command).status, expected);
    }
    assert_eq!(host.subsystem.keep_alive(controller), Some(1000));
    let data = connect_data(controller, DISCOVERY_NQN, HOST_NQN);
    let (_, reply) = try_connect(&mut host.subsystem, connect_command(1, 32), &data);
    assert_eq!((reply.status, reply.result), (Status::CONNECT_PARAMETERS, 42));
    host.subsystem.disconnect(controller);
    assert_eq!(host.drive().resets, 0);
}

#[test]
fn connect_sets_the_keep_alive_timeout() {
    let mut subsystem = subsystem();
    let command = connect_command(0, 32).dword(12, 5000);
    let data = connect_data(0xffff, NQN, HOST_NQN);
    let (association, _) = try_connect(&mut subsystem, command, &data);
    assert_eq!(subsystem.keep_alive(association.unwrap().controller), Some(5000));
    assert_eq!(subsystem.keep_alive(999), None);
}
