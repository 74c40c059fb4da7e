//! Tests of connection initialization.

use crate::host::*;
use writecliff_nvme_tcp::{Fault, Limits, Received, Receiver};

fn begin(bytes: &[u8]) -> Result<Vec<Received>, Fault> {
    let mut events = Vec::new();
    let mut receiver = Receiver::new(Limits::default());
    receiver.receive(bytes, &mut events).map_err(|fatal| fatal.fault)?;
    Ok(events)
}

#[test]
fn the_host_gets_the_digests_and_the_alignment_that_it_wants() {
    for (header_digest, data_digest, alignment) in
        [(false, false, 0), (true, false, 1), (false, true, 31), (true, true, 3)]
    {
        let events = begin(&initialize(Wishes { header_digest, data_digest, alignment })).unwrap();
        let [Received::Send(response), Received::Began(settings)] = &events[..] else { panic!() };
        assert_eq!(response.len(), 128);
        assert_eq!(
            response[..12],
            [
                1,
                0,
                128,
                0,
                128,
                0,
                0,
                0,
                0,
                0,
                0,
                u8::from(header_digest) | u8::from(data_digest) << 1
            ]
        );
        assert_eq!(response[12..16], (256u32 << 10).to_le_bytes());
        assert_eq!(settings.alignment, (alignment + 1) * 4);
    }
}

#[test]
fn other_beginnings_are_refused() {
    let with = |at: usize, value: u8| {
        let mut pdu = initialize(Wishes::default());
        pdu[at] = value;
        pdu
    };
    let cases = [
        (with(0, 4), Fault::Sequence),
        (with(0, 6), Fault::Sequence),
        (with(0, 2), Fault::Sequence),
        (with(0, 1), Fault::Header(0)),
        (with(0, 0x47), Fault::Header(0)),
        (with(1, 1), Fault::Header(1)),
        (with(2, 72), Fault::Header(2)),
        (with(4, 132), Fault::Header(3)),
        (with(4, 64), Fault::Header(3)),
        (with(8, 1), Fault::Unsupported(8)),
        (with(10, 32), Fault::Header(10)),
        (with(11, 4), Fault::Unsupported(11)),
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), Fault::Header(0)),
        (b"SSH-2.0-OpenSSH_9.2".to_vec(), Fault::Header(0)),
    ];
    for (bytes, expected) in cases {
        assert_eq!(begin(&bytes), Err(expected), "{bytes:?}");
    }
}

#[test]
fn a_connection_begins_once() {
    let mut host = Host::new(Wishes::default(), Limits::default());
    let again = host.send(&initialize(Wishes::default()));
    assert_eq!(again.unwrap_err().fault, Fault::Sequence);
}
