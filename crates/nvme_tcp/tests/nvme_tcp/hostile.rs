//! Tests of peers that violate the protocol, by accident or on purpose.

use crate::host::*;
use proptest::collection::vec;
use proptest::prelude::*;
use writecliff_nvme_tcp::{Fault, Limits, Received, Receiver};

const DIGESTS: Wishes = Wishes { header_digest: true, data_digest: true, alignment: 0 };

/// Returns the fault that ends the connection after `bytes`, and checks the termination request.
fn fault(host: &mut Host, bytes: &[u8]) -> Fault {
    let fatal = host.send(bytes).unwrap_err();
    let words = &fatal.last_words;
    if let Fault::Terminated(_) = fatal.fault {
        assert!(words.is_empty());
    } else {
        assert_eq!((words[0], words[1], words[2], words[3]), (3, 0, 24, 0));
        assert_eq!(u32::from_le_bytes(words[4..8].try_into().unwrap()) as usize, words.len());
        assert!((24..=152).contains(&words.len()));
        assert!((1..=6).contains(&words[8]));
        assert_eq!(words[24], bytes[0], "it quotes the PDU");
    }
    fatal.fault
}

fn plain() -> Host {
    Host::new(Wishes::default(), Limits::default())
}

/// Returns a host whose 1024-byte write has been requested (R2T), and the transfer tag.
fn asked(wishes: Wishes) -> (Host, u16) {
    let mut host = Host::new(wishes, Limits::default());
    let events = host.send(&host.capsule(entry(0x01, 6, BY_TRANSPORT, 1024), &[])).unwrap();
    let tag = host.read(&sent(&events))[0].u16(10);
    (host, tag)
}

#[test]
fn wrong_headers_end_the_connection() {
    let capsule = plain().capsule(entry(0x01, 1, IN_CAPSULE, 512), &[0; 512]);
    let with = |at: usize, value: u8| {
        let mut pdu = capsule.clone();
        pdu[at] = value;
        pdu
    };
    let mut too_short = with(5, 0);
    too_short[4] = 68;
    let too_long = plain().capsule(entry(0x01, 1, IN_CAPSULE, 8196), &[0; 8196]);
    let cases = [
        (with(0, 5), Fault::Header(0)),
        (with(0, 9), Fault::Header(0)),
        (with(0, 0xff), Fault::Header(0)),
        (with(1, 1), Fault::Header(1)),
        (with(1, 2), Fault::Header(1)),
        (with(2, 24), Fault::Header(2)),
        (with(3, 71), Fault::Header(3)),
        (with(3, 74), Fault::Header(3)),
        (too_short, Fault::Header(4)),
        (with(7, 0x7f), Fault::DataLimit),
        (too_long, Fault::DataLimit),
    ];
    for (bytes, expected) in cases {
        assert_eq!(fault(&mut plain(), &bytes), expected, "{:?}", &bytes[..8]);
        // The host rejects the PDU after its common header, before the remaining bytes arrive.
        assert_eq!(plain().send(&bytes[..8]).unwrap_err().fault, expected);
    }
}

/// Builds a data PDU for a transfer tag.
type Make = fn(&Host, u16) -> Vec<u8>;

#[test]
fn data_that_were_not_asked_for_end_the_connection() {
    let cases: [(Make, Fault); 9] = [
        (|host, tag| host.data(6, tag + 1, 0, &[0; 1024], true), Fault::Header(10)),
        (|host, tag| host.data(7, tag, 0, &[0; 1024], true), Fault::Header(8)),
        (|host, tag| host.data(6, tag, 4, &[0; 1020], true), Fault::DataRange),
        (|host, tag| host.data(6, tag, 0, &[0; 1028], true), Fault::DataRange),
        (|host, tag| host.data(6, tag, u32::MAX, &[0; 8], true), Fault::DataRange),
        (|host, tag| host.data(6, tag, 0, &[0; 1024], false), Fault::Sequence),
        (|host, tag| host.data(6, tag, 0, &[0; 512], true), Fault::Sequence),
        (|host, tag| host.data(6, tag, 0, &vec![0; (256 << 10) + 4], true), Fault::DataLimit),
        (
            |host, tag| {
                let mut pdu = host.data(6, tag, 0, &[0; 512], false);
                pdu[16] = 1;
                pdu
            },
            Fault::Header(16),
        ),
    ];
    for (number, (make, expected)) in cases.into_iter().enumerate() {
        let (mut host, tag) = asked(Wishes::default());
        let bytes = make(&host, tag);
        assert_eq!(fault(&mut host, &bytes), expected, "case {number}");
    }
    let (mut host, tag) = asked(Wishes::default());
    let data = host.data(6, tag, 0, &[0; 1024], true);
    host.send(&data).unwrap();
    assert_eq!(fault(&mut host, &data), Fault::Header(10), "twice");
}

#[test]
fn a_wrong_header_digest_ends_the_connection() {
    let (mut host, tag) = asked(DIGESTS);
    let mut bytes = host.data(6, tag, 0, &[0; 1024], true);
    bytes[9] ^= 1;
    let sent = u32::from_le_bytes(bytes[24..28].try_into().unwrap());
    assert_eq!(fault(&mut host, &bytes), Fault::HeaderDigest(sent));
}

#[test]
fn the_host_may_end_the_connection() {
    let mut request = vec![0; 24];
    (request[0], request[2], request[4], request[8]) = (2, 24, 24, 3);
    assert_eq!(fault(&mut plain(), &request), Fault::Terminated(3));
    request[4] = 200;
    assert_eq!(fault(&mut plain(), &request), Fault::Header(4));
}

#[test]
fn more_commands_than_the_queue_holds_end_the_connection() {
    let mut host = plain();
    for id in 0..128 {
        host.send(&host.capsule(entry(0, id, BY_TRANSPORT, 0), &[])).unwrap();
    }
    let next = host.capsule(entry(0, 128, BY_TRANSPORT, 0), &[]);
    host.complete(5, Vec::new());
    host.send(&next).unwrap();
    assert_eq!(fault(&mut host, &next), Fault::Sequence);

    let mut receiver = Receiver::new(Limits::default());
    let mut events = Vec::new();
    receiver.receive(&initialize(Wishes::default()), &mut events).unwrap();
    receiver.receive(&next, &mut events).unwrap();
    let second = receiver.receive(&next, &mut events).unwrap_err();
    assert_eq!(second.fault, Fault::Sequence, "before Connect is answered");
}

/// Returns bytes that resemble PDUs.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let pdu = (
        prop_oneof![Just(4u8), Just(6), Just(2), Just(0), any::<u8>()],
        0..8u8,
        prop_oneof![Just(72u8), Just(24), any::<u8>()],
        prop_oneof![Just(0u8), Just(72), Just(24), Just(76), any::<u8>()],
        prop_oneof![0..1000u32, 0..300_000u32, any::<u32>()],
        vec(any::<u8>(), 0..300),
    );
    let pdu = pdu.prop_map(|(kind, flags, header, start, length, body)| {
        let mut pdu = vec![kind, flags, header, start];
        pdu.extend(length.to_le_bytes());
        pdu.extend(body);
        pdu
    });
    let capsule = (any::<u8>(), any::<u16>(), 0..2000u32, vec(any::<u8>(), 0..600));
    let capsule = capsule.prop_map(|(opcode, id, length, data)| {
        let sgl = if data.len() % 2 == 0 { IN_CAPSULE } else { BY_TRANSPORT };
        make(4, 0, &entry(opcode, id, sgl, length), &data, Wishes::default())
    });
    prop_oneof![1 => pdu, 1 => vec(any::<u8>(), 0..100), 6 => capsule]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_bytes_are_taken(
        digests in any::<bool>(),
        parts in vec(bytes(), 1..30),
        piece in 1..700usize,
    ) {
        let wishes = if digests { DIGESTS } else { Wishes::default() };
        let mut host = Host::new(wishes, Limits::default());
        let all = parts.concat();
        let mut ended = false;
        for piece in all.chunks(piece) {
            match host.send(piece) {
                Ok(events) => {
                    for event in events {
                        if let Received::Command(command) = event {
                            prop_assert!(command.data.len() <= 8192);
                            host.complete(0, Vec::new());
                        }
                    }
                }
                Err(fatal) => {
                    prop_assert!(fatal.last_words.len() <= 152);
                    ended = true;
                    break;
                }
            }
        }
        // A connection that is still open works unless a PDU or transfer is in progress.
        if !ended && !host.receiver.is_in_progress() {
            host.send(&host.capsule(entry(0, 1, BY_TRANSPORT, 0), &[])).unwrap();
        }
    }

    #[test]
    fn any_beginning_is_taken(bytes in vec(any::<u8>(), 0..300), piece in 1..300usize) {
        let mut receiver = Receiver::new(Limits::default());
        let mut events = Vec::new();
        for piece in bytes.chunks(piece) {
            if receiver.receive(piece, &mut events).is_err() {
                break;
            }
        }
        prop_assert!(!events.iter().any(|event| matches!(event, Received::Command(_))));
    }
}
