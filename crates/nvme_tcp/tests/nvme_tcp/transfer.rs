//! Tests of commands, their data, and completions.

use crate::host::*;
use proptest::prelude::*;
use writecliff_nvme::{Reply, Status};
use writecliff_nvme_tcp::{Limits, Received};

fn wishes() -> impl Strategy<Value = Wishes> {
    (any::<bool>(), any::<bool>(), 0..32u8).prop_map(|(header_digest, data_digest, alignment)| {
        Wishes { header_digest, data_digest, alignment }
    })
}

#[test]
fn a_command_without_data() {
    let mut host = Host::new(Wishes::default(), Limits::default());
    let entry = entry(0x00, 5, BY_TRANSPORT, 0);
    let received = host.send(&host.capsule(entry, &[])).unwrap();
    let command = command(&received);
    assert_eq!((command.entry, command.data.len(), command.buffer), (entry, 0, 0));
    assert_eq!(command.refusal(1, 1), None);
    let pdus = host.completed(5);
    assert_eq!((pdus.len(), pdus[0].kind, pdus[0].header.len()), (1, 5, 24));
    assert_eq!((pdus[0].u32(8), pdus[0].u16(16), pdus[0].u16(20)), (7, 1, 5));
}

#[test]
fn a_write_is_asked_for_and_may_come_in_parts() {
    let mut host = Host::new(Wishes::default(), Limits::default());
    let data: Vec<u8> = (0..10_000u32).map(|n| n as u8).collect();
    let received = host.send(&host.capsule(entry(0x01, 6, BY_TRANSPORT, 10_000), &[])).unwrap();
    let asked = host.read(&sent(&received));
    assert_eq!((asked.len(), asked[0].kind), (1, 9));
    assert_eq!((asked[0].u16(8), asked[0].u32(12), asked[0].u32(16)), (6, 0, 10_000));
    assert!(host.receiver.is_in_progress());
    let tag = asked[0].u16(10);
    let first = host.data(6, tag, 0, &data[..4000], false);
    assert!(host.send(&first).unwrap().is_empty());
    let received = host.send(&host.data(6, tag, 4000, &data[4000..], true)).unwrap();
    assert_eq!(command(&received).data, data);
    assert_eq!(command(&received).buffer, 10_000);
    assert!(!host.receiver.is_in_progress());
}

#[test]
fn no_more_is_asked_for_than_the_limit() {
    let limits = Limits { asked_for: 10_000, ..Limits::default() };
    let mut host = Host::new(Wishes::default(), limits);
    let lengths = [20_000, 4000, 4000, 4000, 9000];
    let mut asked = Vec::new();
    for (id, &length) in lengths.iter().enumerate() {
        let capsule = host.capsule(entry(0x01, id as u16, BY_TRANSPORT, length), &[]);
        let received = host.send(&capsule).unwrap();
        asked.extend(host.read(&sent(&received)));
    }
    assert_eq!(asked.len(), 1, "one that is too large is asked for alone");
    let mut done = Vec::new();
    while !asked.is_empty() {
        let next = asked.remove(0);
        let (id, tag, length) = (next.u16(8), next.u16(10), next.u32(16));
        let received = host.send(&host.data(id, tag, 0, &vec![1; length as usize], true)).unwrap();
        asked.extend(host.read(&sent(&received)));
        let open: u32 = asked.iter().map(|pdu| pdu.u32(16)).sum();
        assert!(open <= 10_000, "{open}");
        done.push(id);
    }
    assert_eq!(done, [0, 1, 2, 3, 4]);
}

#[test]
fn the_head_of_the_queue_goes_round() {
    let mut host = Host::new(Wishes::default(), Limits::default());
    for round in 0..300u16 {
        host.send(&host.capsule(entry(0, round, BY_TRANSPORT, 0), &[])).unwrap();
        let pdus = host.completed(round);
        assert_eq!(pdus[0].u16(16), (round + 1) % 128);
    }
    host.sender.connected(&writecliff_nvme::Association { flow_control: false, ..QUEUE });
    host.send(&host.capsule(entry(0, 1, BY_TRANSPORT, 0), &[])).unwrap();
    assert_eq!(host.completed(1)[0].u16(16), 0xffff);
}

#[test]
fn data_are_a_completion_where_nobody_needs_another() {
    for flow_control in [true, false] {
        let mut host = Host::new(Wishes::default(), Limits::default());
        host.sender.connected(&writecliff_nvme::Association { flow_control, ..QUEUE });
        let data = vec![1; 64];
        let failure = Reply { status: Status::INVALID_FIELD, ..success(1, 0, data.clone()) };
        let cases = [
            (success(1, 0, data.clone()), !flow_control),
            (success(1, 3, data), false),
            (success(1, 0, Vec::new()), false),
            (failure, false),
        ];
        // The host may exceed the command limit because each command counts as complete.
        for (reply, is_one) in cases.iter().cycle().take(2000) {
            host.send(&host.capsule(entry(0x02, 1, BY_TRANSPORT, 64), &[])).unwrap();
            let bytes = host.reply(reply);
            let kinds: Vec<_> =
                host.read(&bytes).iter().map(|pdu| (pdu.kind, pdu.header[1] & 0b1100)).collect();
            let expected = match (is_one, reply.data.is_empty()) {
                (true, _) => vec![(7, 0b1100)],
                (false, true) => vec![(5, 0)],
                (false, false) => vec![(7, 0b0100), (5, 0)],
            };
            assert_eq!(kinds, expected, "flow control: {flow_control}, {reply:?}");
        }
    }
}

#[test]
fn commands_with_other_descriptors_are_refused() {
    let mut host = Host::new(Wishes::default(), Limits::default());
    let cases = [
        (entry(0x01, 1, 0x40, 512), Status::SGL_TYPE),
        (entry(0x02, 1, IN_CAPSULE, 512), Status::SGL_TYPE),
        (entry(0x01, 1, IN_CAPSULE, 513), Status::DATA_SGL_LENGTH),
        (entry(0x01, 1, BY_TRANSPORT, u32::MAX), Status::INVALID_FIELD),
    ];
    for (entry, expected) in cases {
        let received = host.send(&host.capsule(entry, &[0; 512])).unwrap();
        let reply = command(&received).refusal(3, 4).unwrap();
        assert_eq!((reply.status, reply.command_id), (expected, 1));
        assert_eq!((reply.controller, reply.queue), (3, 4));
        host.complete(1, Vec::new());
    }
}

#[test]
fn damaged_data_fail_their_command_alone() {
    let wishes = Wishes { data_digest: true, ..Wishes::default() };
    let mut host = Host::new(wishes, Limits::default());
    let mut bytes = host.capsule(entry(0x01, 1, IN_CAPSULE, 512), &[3; 512]);
    *bytes.last_mut().unwrap() ^= 1;
    let received = host.send(&bytes).unwrap();
    assert_eq!(command(&received).refused, Some(Status::TRANSIENT_TRANSPORT));
    let received = host.send(&host.capsule(entry(0x01, 2, BY_TRANSPORT, 1024), &[])).unwrap();
    let tag = host.read(&sent(&received))[0].u16(10);
    let mut bytes = host.data(2, tag, 0, &[3; 512], false);
    bytes[30] ^= 1;
    host.send(&bytes).unwrap();
    let received = host.send(&host.data(2, tag, 512, &[3; 512], true)).unwrap();
    assert_eq!(command(&received).refused, Some(Status::TRANSIENT_TRANSPORT));
    let received = host.send(&host.capsule(entry(0x01, 3, IN_CAPSULE, 512), &[3; 512])).unwrap();
    assert_eq!(command(&received).refused, None);
}

proptest! {
    #[test]
    fn writes_arrive_whatever_the_pieces(
        wishes in wishes(),
        length in 1..20_000usize,
        in_capsule in any::<bool>(),
        part in 1..9000usize,
        piece in 1..3000usize,
    ) {
        let mut host = Host::new(wishes, Limits::default());
        let data: Vec<u8> = (0..length).map(|n| (n * 7) as u8).collect();
        let is_small = in_capsule && length <= 8192;
        let mut commands = Vec::new();
        let mut to_send = if is_small {
            host.capsule(entry(0x01, 9, IN_CAPSULE, length as u32), &data)
        } else {
            host.capsule(entry(0x01, 9, BY_TRANSPORT, length as u32), &[])
        };
        while !to_send.is_empty() {
            let mut asked = Vec::new();
            for piece in to_send.chunks(piece) {
                for event in host.send(piece).unwrap() {
                    match event {
                        Received::Send(bytes) => asked.extend(host.read(&bytes)),
                        Received::Command(command) => commands.push(command),
                        Received::Began(_) => panic!(),
                    }
                }
            }
            to_send.clear();
            for pdu in asked {
                for (n, chunk) in data.chunks(part).enumerate() {
                    let is_last = (n + 1) * part >= length;
                    let offset = (n * part) as u32;
                    to_send.extend(host.data(9, pdu.u16(10), offset, chunk, is_last));
                }
            }
        }
        prop_assert_eq!(commands.len(), 1);
        prop_assert_eq!(&commands[0].data, &data);
        prop_assert_eq!(commands[0].refused, None);
    }

    #[test]
    fn reads_arrive(wishes in wishes(), length in 1..20_000usize) {
        let mut host = Host::new(wishes, Limits::default());
        let capsule = host.capsule(entry(0x02, 9, BY_TRANSPORT, 1 << 20), &[]);
        let received = host.send(&capsule).unwrap();
        prop_assert_eq!(command(&received).buffer, 1 << 20);
        let data: Vec<u8> = (0..length).map(|n| (n * 5) as u8).collect();
        let bytes = host.complete(9, data.clone());
        let pdus = host.read(&bytes);
        prop_assert_eq!((pdus.len(), pdus[0].kind, pdus[1].kind), (2, 7, 5));
        prop_assert_eq!((pdus[0].u16(8), pdus[0].u32(12)), (9, 0));
        prop_assert_eq!(pdus[0].u32(16) as usize, length);
        prop_assert_eq!(pdus[0].header[1] & 0b1100, 0b0100, "last, and a completion follows");
        prop_assert_eq!(&pdus[0].data, &data);
        let mut later = Vec::new();
        if host.sender.data_header(&success(9, 7, Vec::new()), length as u32, &mut later) {
            prop_assert_eq!(&later[..], &bytes[..pdus[0].start]);
        } else {
            prop_assert!(wishes.data_digest && later.is_empty());
        }
    }
}
