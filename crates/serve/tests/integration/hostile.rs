//! Tests NBD with misbehaving clients: the server must not crash or hang, and its memory use is
//! limited.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use writecliff_serve::nbd::REQUESTS_MAX;
use writecliff_serve::{Timing, listener};

use crate::nbd_client::{Client, DISCONNECT, FLUSH, READ, TRIM, WRITE, WRITE_ZEROES};
use crate::support::{CAPACITY, REAL, Server, WAIT_LIMIT, eventually, is_alone};

/// Asserts that a well-behaved client is still served.
fn is_served(server: &Server) {
    let mut client = Client::ready(&server.path, true);
    assert_eq!(client.write(0, 0, &[5; 512]), 0);
    assert_eq!(client.read(0, 512), [5; 512]);
}

/// Returns the memory that this process uses, in bytes.
pub(crate) fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = pages.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// Messages from a client that violates the protocol on purpose.
#[derive(Clone, Debug)]
enum Bit {
    Noise(Vec<u8>),
    Option(u32, u32, Vec<u8>),
    Request(u16, u16, u64, u32, usize),
}

fn bits() -> impl Strategy<Value = Vec<Bit>> {
    let noise = prop::collection::vec(any::<u8>(), 0..64).prop_map(Bit::Noise);
    let data = prop::collection::vec(any::<u8>(), 0..32);
    let length = prop_oneof![4 => 0..32_u32, 1 => any::<u32>()];
    let option = (0..13_u32, length, data).prop_map(|(n, l, d)| Bit::Option(n, l, d));
    let valid = prop::sample::select(vec![READ, WRITE, DISCONNECT, FLUSH, TRIM, WRITE_ZEROES]);
    let command = prop_oneof![8 => valid, 1 => any::<u16>()];
    let offset = prop_oneof![4 => (0..CAPACITY / 512).prop_map(|n| n * 512), 1 => any::<u64>()];
    let length = prop_oneof![4 => (0..64_u32).prop_map(|n| n * 512), 1 => any::<u32>()];
    let request = (0..4_u16, command, offset, length, 0..40_000_usize)
        .prop_map(|(flags, command, o, l, sent)| Bit::Request(flags, command, o, l, sent));
    prop::collection::vec(prop_oneof![1 => noise, 2 => option, 6 => request], 0..30)
}

fn bytes(bits: &[Bit]) -> Vec<u8> {
    let mut all = Vec::new();
    for bit in bits {
        match bit {
            Bit::Noise(noise) => all.extend(noise),
            Bit::Option(number, length, data) => {
                all.extend(b"IHAVEOPT");
                all.extend([number.to_be_bytes(), length.to_be_bytes()].concat());
                all.extend(data);
            }
            Bit::Request(flags, command, offset, length, sent) => {
                all.extend(0x2560_9513_u32.to_be_bytes());
                all.extend([flags.to_be_bytes(), command.to_be_bytes()].concat());
                all.extend([1_u64.to_be_bytes(), offset.to_be_bytes()].concat());
                all.extend(length.to_be_bytes());
                if *command == WRITE {
                    all.resize(all.len() + (*length as usize).min(*sent), 0xa5);
                }
            }
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Tests that, for any bytes in any phase, the connection ends with the client, and other
    /// clients are served.
    #[test]
    fn anything_may_be_sent(
        before in bits(),
        after in bits(),
        phase in 0..3,
        fast: bool,
    ) {
        let timing = if fast { Timing::Fast } else { REAL };
        let server = Server::new(timing);
        let mut stream = match phase {
            0 => UnixStream::connect(&server.path).unwrap(),
            1 => Client::connect(&server.path).stream,
            _ => Client::ready(&server.path, true).stream,
        };
        stream.set_write_timeout(Some(Duration::from_millis(50))).unwrap();
        // The server may have disconnected already, or may be waiting for the client to read its
        // replies.
        let _ = stream.write_all(&bytes(&before));
        let _ = stream.write_all(&bytes(&after));
        is_served(&server);
        drop(stream);
        eventually("sessions end", || server.served.snapshot().sessions == 0);
        server.end();
    }
}

#[test]
fn wrong_first_words_end_the_connection() {
    let server = Server::new(Timing::Fast);
    for flags in [4_u32, u32::MAX] {
        let mut client = Client::connect_silently(&server.path);
        client.send(&flags.to_be_bytes());
        assert!(client.is_closed());
    }
    let mut client = Client::connect(&server.path);
    client.send(&[0; 64]);
    assert!(client.is_closed());
    let mut client = Client::ready(&server.path, false);
    client.send(&[0; 28]);
    assert!(client.is_closed());
    is_served(&server);
    server.end();
}

#[test]
fn an_option_of_any_length_is_skipped() {
    let server = Server::new(Timing::Fast);
    let mut client = Client::connect(&server.path);
    assert_eq!(client.ask(7, &vec![0; 1 << 20])[0].0, (1 << 31) + 9);
    assert_eq!(client.ask(7, &[0; 6]).last().unwrap().0, 1);
    server.end();
}

/// Tests that a client that requests as much data as possible and reads none costs only one buffer.
#[test]
fn slow_readers_hold_no_memory_and_nobody_up() {
    if !is_alone("hostile::slow_readers_hold_no_memory_and_nobody_up") {
        return;
    }
    // In real time, the drive needs a second for the requested data.
    for (timing, requests) in [(Timing::Fast, 100), (REAL, 1)] {
        let server = Server::new(timing);
        let before = resident();
        let mut slow: Vec<_> = (0..20).map(|_| Client::ready(&server.path, true)).collect();
        for client in &mut slow {
            client.stream.set_nonblocking(true).unwrap();
            for cookie in 0..requests {
                let mut request = 0x2560_9513_u32.to_be_bytes().to_vec();
                request.extend([0; 4]);
                request.extend([u64::to_be_bytes(cookie), [0; 8]].concat());
                request.extend((32_u32 << 20).to_be_bytes());
                if client.stream.write_all(&request).is_err() {
                    break;
                }
            }
        }
        is_served(&server);
        std::thread::sleep(Duration::from_millis(100));
        // Other tests in this process also use memory, but only temporarily.
        eventually("unread replies take less than 64 MiB", || {
            resident().saturating_sub(before) < 64 << 20
        });
        // A client that starts to read receives all data.
        let client = &mut slow[7];
        client.stream.set_nonblocking(false).unwrap();
        for cookie in 0..requests.min(3) {
            let (got, error, data) = client.reply(32 << 20);
            assert_eq!((got, error, data.len()), (cookie, 0, 32 << 20));
        }
        server.end();
    }
}

/// Tests that requests beyond the limit are not received.
#[test]
fn outstanding_requests_are_limited() {
    let server = Server::new(Timing::Real { slow_down: 2000.0 });
    let mut client = Client::ready(&server.path, false);
    client.stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    let mut flush = [0; 28];
    flush[..8].copy_from_slice(&[0x25, 0x60, 0x95, 0x13, 0, 0, 0, 3]);
    // The client cannot send all requests because the server stops reading.
    assert!(client.stream.write_all(&flush.repeat(100 * REQUESTS_MAX)).is_err());
    let outstanding = || server.served.snapshot().outstanding;
    eventually("the limit is reached", || outstanding() > REQUESTS_MAX / 2);
    assert!(outstanding() <= REQUESTS_MAX);
    server.end();
}

#[test]
fn half_a_message_holds_nobody_up() {
    let server = Server::new(REAL);
    let halves: Vec<Client> = (0..40)
        .map(|number| {
            let mut client = if number % 2 == 0 {
                Client::connect(&server.path)
            } else {
                Client::ready(&server.path, true)
            };
            match number % 4 {
                0 => client.send_option(7, 4096, &[0; 5]),
                2 => client.send(b"IHAVE"),
                1 => client.request(0, WRITE, 1, (0, 32 << 20)),
                _ => client.send(&[0x25, 0x60]),
            }
            client
        })
        .collect();
    is_served(&server);
    let start = Instant::now();
    server.end();
    assert!(start.elapsed() < WAIT_LIMIT);
    drop(halves);
}

/// Tests that a thousand connections are served. Tests that connections beyond the limit are
/// closed, and that later connections are served again.
#[test]
fn a_thousand_connections() {
    if !is_alone("hostile::a_thousand_connections") {
        return;
    }
    let server = Server::new(Timing::Fast);
    let before = resident();
    let mut clients: Vec<_> = (0..1_000).map(|_| Client::ready(&server.path, true)).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.write(0, number as u64 * 4096, &[number as u8; 4096]), 0);
    }
    for (number, client) in clients.iter_mut().enumerate() {
        assert!(client.read(number as u64 * 4096, 4096) == [number as u8; 4096]);
    }
    eventually("a connection takes less than 128 KiB", || {
        resident().saturating_sub(before) < 1_000 * (128 << 10)
    });
    let silent: Vec<_> = (0..listener::CONNECTIONS_MAX - 1_000)
        .map(|_| UnixStream::connect(&server.path).unwrap())
        .collect();
    let mut refused = Client::connect_unseen(&server.path);
    assert!(refused.is_closed());
    drop((clients, silent));
    eventually("connections end", || server.served.snapshot().sessions == 0);
    eventually("others are served", || {
        let mut client = Client::connect_unseen(&server.path);
        client.stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let mut first = [0; 1];
        std::io::Read::read(&mut client.stream, &mut first).is_ok_and(|count| count == 1)
    });
    server.end();
}
