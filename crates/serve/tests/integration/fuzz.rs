//! Fuzzing with almost valid conversations, sent to a server over both protocols.
//!
//! Each case takes a conversation from the corpus (`tests/corpus`, one message in hexadecimal
//! digits per line). A case adds commands composed of known opcodes, fields and limits, mutates
//! bytes, numbers, lengths and order, and sends the conversation in pieces. The server must neither
//! crash nor hang. The server must end the session, free its memory, and continue to serve
//! well-behaved clients.
//!
//! `WRITECLIFF_FUZZ_SECONDS=3600 cargo test -p writecliff-serve --test integration fuzz` runs for
//! an hour, starting with the seed `WRITECLIFF_FUZZ_SEED` (default 1). A failure prints its case.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use writecliff_base::Prng;
use writecliff_serve::{Address, Listener, Timing, nbd};

use crate::hostile::resident;
use crate::nbd_client::Client;
use crate::nvme::Server;
use crate::nvme_host::{Entry, Host};
use crate::support::{CAPACITY, REAL, drive_with, eventually, is_alone, scratch, serve};

/// Number of cases per clock if no duration is set.
const CASES: u64 = 250;
/// Approximate maximum number of messages in a conversation.
const PIECES: usize = 32;
/// Number of cases per server if a duration is set.
const ROUND: u64 = 5_000;
/// Number of cases between two checks that other clients are served.
const CHECK_EVERY: u64 = 50;
/// Time that a case waits for server replies.
const LISTEN: Duration = Duration::from_millis(1);
/// Maximum number of such waits, because a client may request gigabytes.
const LISTENED: u32 = 64;
/// Boundary values of fields.
const LIMITS: [u64; 20] = [
    0,
    1,
    2,
    3,
    7,
    8,
    15,
    23,
    24,
    72,
    127,
    128,
    255,
    511,
    512,
    4095,
    4096,
    65_535,
    CAPACITY / 512,
    u64::MAX,
];

type Message = Vec<u8>;

/// Reads the conversations of a protocol from the files whose names start with the protocol name.
fn corpus(protocol: &str) -> Vec<Vec<Message>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    files.retain(|path| path.file_name().unwrap().to_str().unwrap().starts_with(protocol));
    assert!(files.len() > 1, "conversations of {protocol}");
    let digits = |line: &str| -> Message {
        let pairs = line.as_bytes().chunks(2).map(|pair| str::from_utf8(pair).unwrap());
        pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
    };
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().filter(|line| !line.starts_with('#')).map(digits).collect()
    };
    files.iter().map(read).collect()
}

fn pick<'a, T>(random: &mut Prng, from: &'a [T]) -> &'a T {
    &from[random.below(from.len() as u64) as usize]
}

/// Returns a random choice of a boundary value or any other number.
fn number(random: &mut Prng) -> u64 {
    match random.below(4) {
        0 => random.next_u64(),
        1 => random.below(1 << 12),
        2 => 1 << random.below(64),
        _ => *pick(random, &LIMITS),
    }
}

/// Generates a command capsule with a known opcode and arbitrary fields.
fn capsule(random: &mut Prng) -> Message {
    const OPCODES: [u8; 28] = [
        0x00, 0x01, 0x02, 0x04, 0x05, 0x08, 0x09, 0x0c, 0x0d, 0x12, 0x1d, 0x06, 0x0a, 0x10, 0x14,
        0x18, 0x19, 0x1a, 0x80, 0x81, 0x84, 0x7f, 0x7f, 0x7f, 0x01, 0x02, 0x01, 0x02,
    ];
    let mut pdu = vec![4, 0, 72, 0, 72, 0, 0, 0];
    pdu.resize(72, 0);
    pdu[8] = *pick(random, &OPCODES);
    pdu[9] = *pick(random, &[0x40, 0x40, 0x40, 0, 0x80, 0xff]);
    pdu[10..12].copy_from_slice(&(random.below(256) as u16).to_le_bytes());
    pdu[12..16].copy_from_slice(&(*pick(random, &[0_u32, 1, 1, 1, 2, u32::MAX])).to_le_bytes());
    for at in [48, 52, 56, 60, 64, 68] {
        let value = if random.below(2) == 0 { random.below(64) } else { number(random) };
        pdu[at..at + 4].copy_from_slice(&(value as u32).to_le_bytes());
    }
    let data = *pick(random, &[0, 0, 64, 512, 1024, 4096, 8192]);
    let length = if random.below(8) == 0 { number(random) as u32 } else { data as u32 };
    pdu[40..44].copy_from_slice(&length.to_le_bytes());
    let is_inside = data > 0 && random.below(2) == 0;
    pdu[47] = if is_inside { 0x01 } else { 0x5a };
    if is_inside {
        pdu[3] = 72;
        pdu[4..8].copy_from_slice(&(72 + data as u32).to_le_bytes());
        pdu.resize(72 + data, 0xa5);
    }
    pdu
}

/// Generates an NBD request.
fn request(random: &mut Prng) -> Message {
    let command = *pick(random, &[0_u16, 0, 1, 1, 2, 3, 4, 5, 6, 7, 99]);
    let (flags, cookie) = (random.below(8) as u16, random.next_u64());
    let offset = if random.below(4) == 0 { number(random) } else { random.below(8192) * 512 };
    let length =
        if random.below(4) == 0 { number(random) as u32 } else { random.below(64) as u32 * 512 };
    let mut all = 0x2560_9513_u32.to_be_bytes().to_vec();
    all.extend([flags.to_be_bytes(), command.to_be_bytes()].concat());
    all.extend([cookie.to_be_bytes(), offset.to_be_bytes()].concat());
    all.extend(length.to_be_bytes());
    if command == 1 {
        all.resize(28 + (length as usize).min(40_000), 0x5a);
    }
    all
}

/// Generates an option of the NBD handshake.
fn option(random: &mut Prng) -> Message {
    let data = vec![random.next_u64() as u8; random.below(40) as usize];
    let length = if random.below(4) == 0 { number(random) as u32 } else { data.len() as u32 };
    let number = random.below(13) as u32;
    [&b"IHAVEOPT"[..], &number.to_be_bytes(), &length.to_be_bytes(), &data].concat()
}

/// Mutates a conversation at one position.
fn mutate(random: &mut Prng, talk: &mut Vec<Message>, others: &[Vec<Message>]) {
    if talk.is_empty() {
        talk.push(vec![0; 8]);
    }
    let at = random.below(talk.len() as u64) as usize;
    let message = &mut talk[at];
    let byte = random.below(message.len().max(1) as u64) as usize;
    match random.below(10) {
        0 if !message.is_empty() => message[byte] ^= 1 << random.below(8),
        1 if !message.is_empty() => message[byte] = number(random) as u8,
        2..=4 if message.len() >= 8 => {
            let width = *pick(random, &[2, 4, 8]);
            let byte = byte.min(message.len() - width) / width * width;
            let value = number(random);
            let big = value.to_be_bytes();
            let little = value.to_le_bytes();
            let bytes = if random.below(2) == 0 { &little[..width] } else { &big[8 - width..] };
            message[byte..byte + width].copy_from_slice(bytes);
        }
        5 => message.truncate(byte),
        6 => {
            let noise = random.next_u64().to_le_bytes();
            message.splice(byte..byte, noise);
        }
        7 => {
            let again = message.clone();
            talk.insert(at, again);
        }
        8 => {
            talk.remove(at);
        }
        _ => {
            let other = pick(random, others);
            talk.insert(at, pick(random, other).clone());
        }
    }
}

/// A connection of either protocol.
enum Line {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Line {
    fn write(&mut self, data: &[u8]) -> std::io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.write_all(data),
            Self::Unix(stream) => stream.write_all(data),
        }
    }

    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(into),
            Self::Unix(stream) => stream.read(into),
        }
    }

    fn set_timeouts(&self, read: Duration, write: Duration) {
        let set = match self {
            Self::Tcp(stream) => {
                (stream.set_read_timeout(Some(read)), stream.set_write_timeout(Some(write)))
            }
            Self::Unix(stream) => {
                (stream.set_read_timeout(Some(read)), stream.set_write_timeout(Some(write)))
            }
        };
        assert!(set.0.is_ok() && set.1.is_ok());
    }

    /// Shuts down the sending side; the connection can still receive.
    fn half_close(&self) {
        let _ = match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Self::Unix(stream) => stream.shutdown(Shutdown::Write),
        };
    }
}

struct Fuzz {
    server: Server,
    nbd: Listener,
    path: PathBuf,
    nvme: Vec<Vec<Message>>,
    nbd_talks: Vec<Vec<Message>>,
}

impl Fuzz {
    fn new(timing: Timing) -> Self {
        let with_fdp = "[data_placement]\ninterface = \"nvme-fdp\"\n[controller]";
        let drive = serve(drive_with("[controller]", with_fdp), timing);
        drive.keep_trace();
        let path = scratch("fuzz");
        let nbd = Listener::new(&drive, &Address::Unix(path.clone()), nbd::connection).unwrap();
        let server = Server::of(drive, None);
        Self { server, nbd, path, nvme: corpus("nvme"), nbd_talks: corpus("nbd") }
    }

    /// Sends a conversation in pieces, and receives some of the replies.
    fn send(random: &mut Prng, mut line: Line, talk: &[Message]) {
        line.set_timeouts(LISTEN, Duration::from_millis(20));
        let all = talk.concat();
        let piece = (1 + random.below(3000) as usize).max(all.len() / PIECES);
        let listens = random.below(4) > 0;
        let mut into = [0; 8192];
        for piece in all.chunks(piece) {
            if line.write(piece).is_err() {
                return; // The server has disconnected or waits for a reader.
            }
            if listens && random.below(8) == 0 {
                let _ = line.read(&mut into);
            }
        }
        if random.below(4) == 0 {
            line.half_close();
        }
        for _ in 0..LISTENED {
            if !listens || !line.read(&mut into).is_ok_and(|count| count > 0) {
                return;
            }
        }
    }

    fn case(&self, seed: u64) {
        let random = &mut Prng::new(seed);
        let is_nvme = random.below(2) == 0;
        let talks = if is_nvme { &self.nvme } else { &self.nbd_talks };
        let mut talk = pick(random, talks).clone();
        for _ in 0..random.below(12) {
            let made = match (is_nvme, random.below(4)) {
                (true, _) => capsule(random),
                (false, 0) => option(random),
                (false, _) => request(random),
            };
            talk.push(made);
        }
        for _ in 0..random.below(5) {
            mutate(random, &mut talk, talks);
        }
        let line = match (is_nvme, random.below(2)) {
            // On an I/O queue, the conversation continues after Connect.
            (true, 0) => {
                let (_admin, io) = Host::both(self.server.port, &self.server.nqn, false);
                Self::send(random, Line::Tcp(io.stream), &talk[talk.len().min(3)..]);
                return;
            }
            (true, _) => {
                let stream = TcpStream::connect(("127.0.0.1", self.server.port)).unwrap();
                stream.set_nodelay(true).unwrap();
                Line::Tcp(stream)
            }
            (false, 0) => {
                let ready = Client::ready(&self.path, true).stream;
                Self::send(random, Line::Unix(ready), &talk[talk.len().min(2)..]);
                return;
            }
            (false, _) => Line::Unix(UnixStream::connect(&self.path).unwrap()),
        };
        Self::send(random, line, &talk);
    }

    /// Checks that other clients are served over both protocols, and that ended sessions leave no
    /// resources behind.
    fn check(&self, memory: u64) {
        eventually("sessions end", || self.server.served.snapshot().sessions == 0);
        let mut client = Client::ready(&self.path, true);
        // A connection that the server has not yet accepted may still format the drive.
        eventually("data that were written are read", || {
            assert_eq!(client.write(0, 4096, &[7; 4096]), 0);
            client.read(4096, 4096) == [7; 4096]
        });
        let (mut admin, mut io) = Host::both(self.server.port, &self.server.nqn, true);
        assert_eq!(&admin.read(Entry::new(0x06).dword(10, 1), 4096)[4..7], b"SN1");
        assert!(io.read(Entry::blocks(0x02, 0, 1), self.block()).len() >= 512);
        drop((client, admin, io));
        // Take the trace as a server with a run directory does.
        self.server.served.take_trace(writecliff_serve::Trace::default());
        let most = memory + CAPACITY + (64 << 20);
        eventually("memory is bounded", || resident() < most);
    }

    fn block(&self) -> u32 {
        self.server.served.logical_block().0 as u32
    }

    fn end(self) {
        self.server.served.stop();
        drop(self.nbd);
        self.server.end();
    }
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a whole number"))
}

/// Runs cases until `is_over` returns `true` for their count, and returns the count.
fn fuzz(timing: Timing, first: u64, is_over: impl Fn(u64) -> bool) -> u64 {
    let fuzz = Fuzz::new(timing);
    fuzz.check(resident());
    let (memory, mut count) = (resident(), 0);
    while !is_over(count) {
        let seed = first + count;
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            fuzz.case(seed);
            if count.is_multiple_of(CHECK_EVERY) {
                fuzz.check(memory);
            }
        }));
        if let Err(panic) = outcome {
            eprintln!("case {seed} failed, or one of the {CHECK_EVERY} before it ({timing:?})");
            resume_unwind(panic);
        }
        count += 1;
    }
    fuzz.check(memory);
    fuzz.end();
    count
}

#[test]
fn nearly_right_conversations_do_no_harm() {
    if !is_alone("fuzz::nearly_right_conversations_do_no_harm") {
        return;
    }
    let first = setting("WRITECLIFF_FUZZ_SEED").unwrap_or(1);
    match setting("WRITECLIFF_FUZZ_SECONDS") {
        None => {
            fuzz(Timing::Fast, first, |count| count == CASES);
            fuzz(REAL, first + CASES, |count| count == CASES);
        }
        Some(seconds) => {
            let (start, mut seed) = (Instant::now(), first);
            let is_over = || start.elapsed() >= Duration::from_secs(seconds);
            while !is_over() {
                // Start a new server after each round, alternating between the two timing modes.
                let timing = if (seed / ROUND).is_multiple_of(2) { Timing::Fast } else { REAL };
                seed += fuzz(timing, seed, |count| count == ROUND || is_over());
                eprintln!("{} cases in {} s", seed - first, start.elapsed().as_secs());
            }
        }
    }
}
