//! Tests NBD with a well-behaved client.

use writecliff_serve::Timing;

use crate::nbd_client::{
    Client, DISCONNECT, FLUSH, FUA, GO, INFO, INVALID, NO_HOLE, READ, TRIM, WRITE_ZEROES,
};
use crate::support::{CAPACITY, REAL, Server, disk, drive_with, eventually, scm};

fn pattern(seed: u64, length: usize) -> Vec<u8> {
    let word = |n: u64| (seed + n).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    (0..length.div_ceil(8) as u64).flat_map(word).take(length).collect()
}

#[test]
fn the_export_is_described() {
    let server = Server::new(Timing::Fast);
    let mut client = Client::connect(&server.path);
    assert_eq!(client.ask(3, &[]), [(2, b"\0\0\0\x06served".to_vec()), (1, Vec::new())]);
    assert_eq!(client.ask(3, b"data")[0].0, (1 << 31) + 3, "a list has no data");
    assert_eq!(client.ask(5, &[])[0].0, (1 << 31) + 1, "there is no TLS");
    let name_and_description = b"\0\0\0\x06served\0\x02\0\x01\0\x02";
    let replies = client.ask(INFO, name_and_description);
    let size = CAPACITY.to_be_bytes();
    // Flags: has flags, flush, FUA, trim, write zeroes, multiple connections.
    assert_eq!(replies[0], (3, [&[0, 0], &size[..], &[0x01, 0x6d]].concat()));
    let sizes = [512_u32, 4096, 32 << 20].map(u32::to_be_bytes);
    assert_eq!(replies[1], (3, [&[0, 3], sizes.as_flattened()].concat()));
    assert_eq!(replies[2], (3, b"\0\x01served".to_vec()));
    assert!(replies[3].1.starts_with(b"\0\x02small SSD for tests"));
    assert_eq!(replies[4], (1, Vec::new()));
    assert_eq!(client.ask(GO, b"\0\0\0\x05other\0\0")[0].0, (1 << 31) + 6);
    for malformed in [&b""[..], b"\0\0\0\x09short\0\0", b"\0\0\0\0\0\x02\0\0", b"\0\0\0\0\0\0\0"] {
        assert_eq!(client.ask(GO, malformed)[0].0, (1 << 31) + 3, "{malformed:?}");
    }
    assert_eq!(client.ask(2, &[]), [(1, Vec::new())]);
    assert!(client.is_closed());
    server.end();
}

/// Returns the option that requests an export.
fn export(name: &str) -> Vec<u8> {
    [&(name.len() as u32).to_be_bytes()[..], name.as_bytes(), &[0, 1, 0, 1]].concat()
}

#[test]
fn the_export_names_the_stream() {
    let server = Server::new(Timing::Fast);
    for (name, offset) in [("stream-0", 0), ("stream-2", 8192), ("", 0), ("stream-3", 4096)] {
        let mut client = Client::connect(&server.path);
        let replies = client.ask(GO, &export(name));
        let (is_drive, shown) = (!matches!(name, "stream-2" | "stream-3"), name.as_bytes());
        let canonical = if is_drive { b"served" } else { shown };
        assert!(replies.contains(&(3, [b"\0\x01", canonical].concat())), "{name}: {replies:?}");
        assert_eq!(client.write(0, offset, &pattern(offset, 4096)), 0);
        assert_eq!(client.read(offset, 4096), pattern(offset, 4096), "one drive for all exports");
    }
    let mut client = Client::connect(&server.path);
    for unknown in ["stream-4", "stream-02", "stream-", "stream-65536", "stream--1", "stream-+1"] {
        assert_eq!(client.ask(GO, &export(unknown))[0].0, (1 << 31) + 6, "{unknown}");
    }
    let streams = server.served.snapshot().streams;
    let written: Vec<_> = streams.iter().map(|(by, writes)| (by.0.0, writes.1)).collect();
    assert_eq!(written, [(0, 8192), (2, 4096), (3, 4096)]);
    server.end();
}

#[test]
fn old_clients_name_the_export() {
    let server = Server::new(Timing::Fast);
    for (flags, zeroes) in [(1_u32, 124), (3, 0)] {
        let mut client = raw(&server, flags);
        client.send_option(1, 0, &[]);
        assert_eq!(u64::from_be_bytes(client.take()), CAPACITY);
        client.take::<2>();
        if zeroes > 0 {
            assert_eq!(client.take::<124>(), [0; 124]);
        }
        assert_eq!(client.read(0, 512), [0; 512]);
    }
    let mut client = raw(&server, 3);
    client.send_option(1, 5, b"other");
    assert!(client.is_closed());
    server.end();
}

/// Returns a client that has sent these handshake flags.
fn raw(server: &Server, flags: u32) -> Client {
    let mut client = Client::connect_silently(&server.path);
    client.send(&flags.to_be_bytes());
    client
}

#[test]
fn data_are_kept() {
    for timing in [Timing::Fast, REAL] {
        for structured in [false, true] {
            let server = Server::new(timing);
            let mut client = Client::ready(&server.path, structured);
            let data = pattern(1, 3 << 20);
            assert_eq!(client.write(0, 512, &data), 0);
            assert_eq!(client.write(FUA, 4096, &pattern(2, 4096)), 0);
            assert_eq!(client.call(0, FLUSH, (0, 0)).0, 0);
            assert!(client.read(0, 512) == [0; 512]);
            assert!(client.read(512, 3584) == data[..3584]);
            assert!(client.read(4096, 4096) == pattern(2, 4096));
            assert!(client.read(8192, 3 << 20)[..1 << 20] == data[7680..7680 + (1 << 20)]);
            assert_eq!(client.call(0, TRIM, (4096, 4096)), (0, Vec::new()));
            assert!(client.read(4096, 4096) == [0; 4096]);
            for flags in [0, NO_HOLE, NO_HOLE | FUA] {
                assert_eq!(client.write(0, 1 << 20, &pattern(3, 8192)), 0);
                assert_eq!(client.call(flags, WRITE_ZEROES, (1 << 20, 4096)).0, 0);
                let read = client.read(1 << 20, 8192);
                assert!(read[..4096] == [0; 4096] && read[4096..] == pattern(3, 8192)[4096..]);
            }
            assert_eq!(client.read(CAPACITY, 0), [0; 0]);
            client.request(0, DISCONNECT, 0, (0, 0));
            assert!(client.is_closed());
            server.end();
        }
    }
}

#[test]
fn what_is_invalid_is_refused_and_the_connection_goes_on() {
    for structured in [false, true] {
        let server = Server::new(Timing::Fast);
        let mut client = Client::ready(&server.path, structured);
        let beyond = [(CAPACITY, 512), (CAPACITY - 512, 1024), (u64::MAX - 511, 512), (1, 512)];
        for range in beyond.into_iter().chain([(0, 1), (0, u32::MAX - 511), (0, 48 << 20)]) {
            assert_eq!(client.call(0, READ, range).0, INVALID, "{range:?}");
        }
        for (flags, command) in [(0, 5), (0, 7), (0, 99), (16, WRITE_ZEROES), (NO_HOLE, READ)] {
            assert_eq!(client.call(flags, command, (0, 512)).0, INVALID, "{command}");
        }
        assert_eq!(client.call(0, FLUSH, (0, 512)).0, INVALID);
        // The server neither parses the data of an invalid write as requests nor stores them.
        assert_eq!(client.write(0, CAPACITY - 512, &[7; 4096]), INVALID);
        assert_eq!(client.write(NO_HOLE, 0, &[7; 4096]), INVALID);
        assert_eq!(client.write(0, 0, &vec![7; 40 << 20]), INVALID);
        assert_eq!(client.read(CAPACITY - 512, 512), [0; 512]);
        assert_eq!(client.read(0, 512), [0; 512]);
        server.end();
    }
}

#[test]
fn storage_class_memory_does_not_rotate_and_takes_trims() {
    let server = Server::of(scm(), Timing::Fast);
    let mut client = Client::connect(&server.path);
    let flags = u16::from_be_bytes(*client.ask(GO, &[0; 6])[0].1.last_chunk().unwrap());
    assert_eq!(flags & (1 << 5 | 1 << 4), 1 << 5, "trim, and it does not rotate");
    assert_eq!(client.write(0, 4096, &[7; 4096]), 0);
    assert_eq!(client.read(4096, 4096), [7; 4096]);
    assert_eq!(client.call(0, TRIM, (4096, 4096)).0, 0);
    assert_eq!(client.read(4096, 4096), [0; 4096]);
    server.end();
}

#[test]
fn a_disk_has_no_trim() {
    let server = Server::of(disk(), Timing::Fast);
    let mut client = Client::connect(&server.path);
    let flags = u16::from_be_bytes(*client.ask(GO, &[0; 6])[0].1.last_chunk().unwrap());
    assert_eq!(flags & (1 << 5 | 1 << 4), 1 << 4, "no trim, and it rotates");
    assert_eq!(client.call(0, TRIM, (0, 4096)).0, INVALID);
    assert_eq!(client.write(0, 0, &[7; 4096]), 0);
    assert_eq!(client.call(0, WRITE_ZEROES, (0, 4096)).0, 0);
    assert_eq!(client.read(0, 4096), [0; 4096]);
    server.end();
}

#[test]
fn requests_are_answered_as_the_drive_completes_them() {
    // The write takes half a second, so the read arrives before it completes on any machine.
    let slow = Timing::Real { slow_down: 100.0 };
    let server = Server::of(drive_with("write_cache = true", "write_cache = false"), slow);
    let mut client = Client::ready(&server.path, true);
    client.request(0, 1, 1, (0, 4096));
    client.send(&[1; 4096]);
    client.request(0, READ, 2, (1 << 20, 4096)); // The range is unmapped.
    assert_eq!(client.reply(4096), (2, 0, vec![0; 4096]));
    assert_eq!(client.reply(0), (1, 0, Vec::new()));
    server.end();
}

#[test]
fn connections_see_each_others_data() {
    let server = Server::new(Timing::Fast);
    let mut clients: Vec<_> = (0..4).map(|_| Client::ready(&server.path, true)).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.write(0, number as u64 * 4096, &[number as u8; 4096]), 0);
    }
    for client in &mut clients {
        for number in 0..4 {
            assert!(client.read(number * 4096, 4096) == [number as u8; 4096]);
        }
    }
    assert_eq!(server.served.snapshot().sessions, 4);
    drop(clients);
    eventually("the sessions end", || server.served.snapshot().sessions == 0);
    server.end();
}

/// Tests that the server stops while clients are connected and have outstanding requests.
#[test]
fn the_server_ends_under_load() {
    for timing in [REAL, Timing::Fast] {
        let server = Server::new(timing);
        let mut clients: Vec<_> = (0..8).map(|_| Client::ready(&server.path, false)).collect();
        for client in &mut clients {
            for cookie in 0..100 {
                client.request(0, WRITE_ZEROES, cookie, (cookie * 8192, 8192));
            }
        }
        server.end();
        for client in &mut clients {
            assert!(client.is_closed());
        }
    }
}
