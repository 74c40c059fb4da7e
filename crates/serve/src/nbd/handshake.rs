//! Handshake, where the client sends options until it enters the transmission phase or disconnects.

use std::io;
use std::time::{Duration, Instant};

use writecliff_base::{SECTOR_BYTES, SLOT_BYTES, StreamId};
use writecliff_runner::AnyConfig;

use super::protocol::{
    FIXED_NEWSTYLE, GREETING, NO_ZEROES, OPTION, OPTION_REPLY, ZEROES, flag, info, option, reply,
};
use super::transmission::PAYLOAD_BYTES_MAX;
use crate::input::Input;
use crate::outbox::Outbox;
use crate::served::Served;

/// Time limit for the handshake, which normally takes milliseconds.
const TIME_MAX: Duration = Duration::from_secs(30);
/// Maximum data length of an option; an export name has at most 4,096 bytes.
const OPTION_BYTES_MAX: u32 = 8 << 10;
/// Preferred block size; smaller writes make the simulated drive merge a mapping unit.
const PREFERRED_BYTES: u32 = SLOT_BYTES as u32;
const OPTION_HEADER_BYTES: usize = 16;

/// Prefix of stream exports: writes through the export `stream-3` belong to stream 3.
const STREAM_PREFIX: &str = "stream-";

/// Options negotiated between client and server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Agreed {
    pub structured_replies: bool,
    /// Stream that receives all writes.
    pub stream: StreamId,
}

struct Handshake<'a> {
    outbox: &'a Outbox,
    input: &'a mut Input,
    served: &'a Served,
    until: Instant,
    no_zeroes: bool,
    agreed: Agreed,
}

enum Next {
    Option,
    Transmission,
    End,
}

/// Returns the negotiated options; `None` if the client has disconnected.
pub(super) fn handshake(
    outbox: &Outbox,
    input: &mut Input,
    served: &Served,
) -> io::Result<Option<Agreed>> {
    let until = Instant::now() + TIME_MAX;
    let agreed = Agreed::default();
    let mut handshake = Handshake { outbox, input, served, until, no_zeroes: false, agreed };
    handshake.greet()?;
    loop {
        match handshake.option()? {
            Next::Option => {}
            Next::Transmission => return Ok(Some(handshake.agreed)),
            Next::End => return Ok(None),
        }
    }
}

fn invalid() -> io::Error {
    io::Error::from(io::ErrorKind::InvalidData)
}

/// Splits the name of an export, which starts with its length, from the remaining data.
fn name_of(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = data.split_first_chunk::<4>()?;
    rest.split_at_checked(u32::from_be_bytes(*length) as usize)
}

fn requested_items(data: &[u8]) -> Option<Vec<u16>> {
    let (count, items) = data.split_first_chunk::<2>()?;
    let (items, []) = items.as_chunks::<2>() else { return None };
    let is_whole = items.len() == usize::from(u16::from_be_bytes(*count));
    is_whole.then(|| items.iter().map(|item| u16::from_be_bytes(*item)).collect())
}

impl Handshake<'_> {
    fn greet(&mut self) -> io::Result<()> {
        let flags = FIXED_NEWSTYLE | NO_ZEROES;
        let words = [GREETING.to_be_bytes(), OPTION.to_be_bytes()];
        self.outbox.push(|reply| {
            reply.bytes(words.as_flattened());
            reply.bytes(&flags.to_be_bytes());
        });
        let theirs = u32::from_be_bytes(*self.take()?.first_chunk().ok_or_else(invalid)?);
        // A client without fixed newstyle support can send only one option, which also works.
        if theirs & !u32::from(flags) != 0 {
            return Err(invalid());
        }
        self.no_zeroes = theirs & u32::from(NO_ZEROES) != 0;
        Ok(())
    }

    fn take(&mut self) -> io::Result<[u8; 4]> {
        self.await_bytes(4)?;
        let bytes = *self.input.head().ok_or_else(invalid)?;
        self.input.consume(4);
        Ok(bytes)
    }

    /// Sends replies, and waits until at least `count` bytes have been received.
    fn await_bytes(&mut self, count: usize) -> io::Result<()> {
        loop {
            let is_sent = self.outbox.send_all()?;
            if is_sent && self.input.bytes().len() >= count {
                return Ok(());
            }
            let left = self.until.saturating_duration_since(Instant::now());
            let socket = &self.outbox.socket;
            // The server receives no input from a client that does not read its replies.
            if left.is_zero() || !socket.wait(is_sent, !is_sent, None, Some(left))? {
                return Err(io::Error::from(io::ErrorKind::TimedOut));
            }
            if is_sent {
                match self.input.receive(socket, false) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    other => other?,
                }
            }
        }
    }

    fn option(&mut self) -> io::Result<Next> {
        self.await_bytes(OPTION_HEADER_BYTES)?;
        let header: &[u8; OPTION_HEADER_BYTES] = self.input.head().ok_or_else(invalid)?;
        let (words, []) = header.as_chunks::<4>() else { return Err(invalid()) };
        let [high, low, number, length] = [0, 1, 2, 3].map(|n| u32::from_be_bytes(words[n]));
        if u64::from(high) << 32 | u64::from(low) != OPTION {
            return Err(invalid());
        }
        self.input.consume(OPTION_HEADER_BYTES);
        if length > OPTION_BYTES_MAX {
            self.skip(length)?;
            self.answer(number, reply::TOO_BIG, &[]);
            return Ok(Next::Option);
        }
        self.await_bytes(length as usize)?;
        let data = self.input.bytes()[..length as usize].to_vec();
        self.input.consume(data.len());
        self.answer_option(number, &data)
    }

    fn skip(&mut self, length: u32) -> io::Result<()> {
        let mut left = length as usize;
        while left > 0 {
            self.await_bytes(1)?;
            let count = left.min(self.input.bytes().len());
            self.input.consume(count);
            left -= count;
        }
        Ok(())
    }

    fn answer_option(&mut self, number: u32, data: &[u8]) -> io::Result<Next> {
        match number {
            option::EXPORT_NAME => return self.export_name(data),
            option::ABORT => {
                self.answer(number, reply::ACK, &[]);
                let _ = self.outbox.send_all(); // The client may have closed the connection.
                return Ok(Next::End);
            }
            option::INFO | option::GO => {
                if self.information(number, data) && number == option::GO {
                    // The reply must be sent before any reply to a request.
                    self.await_bytes(0)?;
                    return Ok(Next::Transmission);
                }
            }
            option::LIST if data.is_empty() => {
                let name = self.name().as_bytes();
                let length = (name.len() as u32).to_be_bytes();
                self.answer(number, reply::SERVER, &[&length[..], name].concat());
                self.answer(number, reply::ACK, &[]);
            }
            option::STRUCTURED_REPLY if data.is_empty() => {
                self.agreed.structured_replies = true;
                self.answer(number, reply::ACK, &[]);
            }
            option::LIST | option::STRUCTURED_REPLY => self.answer(number, reply::INVALID, &[]),
            _ => self.answer(number, reply::UNSUPPORTED, &[]),
        }
        Ok(Next::Option)
    }

    /// Handles `EXPORT_NAME` from old clients; only closing the connection can reject it.
    fn export_name(&mut self, name: &[u8]) -> io::Result<Next> {
        let Some(stream) = self.stream_of(name) else { return Ok(Next::End) };
        self.agreed.stream = stream;
        let zeroes = if self.no_zeroes { 0 } else { ZEROES };
        let (size, flags) = (self.served.capacity().0, self.flags());
        self.outbox.push(|reply| {
            reply.bytes(&size.to_be_bytes());
            reply.bytes(&flags.to_be_bytes());
            reply.bytes(&[0; ZEROES][..zeroes]);
        });
        self.await_bytes(0)?;
        Ok(Next::Transmission)
    }

    /// Replies to `INFO` and `GO`; returns `true` if the reply was a success.
    fn information(&mut self, number: u32, data: &[u8]) -> bool {
        let parts = name_of(data).and_then(|(name, rest)| Some((name, requested_items(rest)?)));
        let Some((name, asked)) = parts else {
            self.answer(number, reply::INVALID, &[]);
            return false;
        };
        let Some(stream) = self.stream_of(name) else {
            let message =
                b"unknown export; the exports are the drive (named '') and 'stream-N' for each of \
                    its streams";
            self.answer(number, reply::UNKNOWN, message);
            return false;
        };
        self.agreed.stream = stream;
        let mut export = info::EXPORT.to_be_bytes().to_vec();
        export.extend(self.served.capacity().0.to_be_bytes());
        export.extend(self.flags().to_be_bytes());
        self.answer(number, reply::INFO, &export);
        let mut sizes = info::BLOCK_SIZE.to_be_bytes().to_vec();
        for size in [SECTOR_BYTES as u32, PREFERRED_BYTES, PAYLOAD_BYTES_MAX] {
            sizes.extend(size.to_be_bytes());
        }
        self.answer(number, reply::INFO, &sizes);
        let is_drive = stream == StreamId::DEFAULT;
        let name = if is_drive { self.name().as_bytes() } else { name };
        let description = self.description().as_bytes();
        for (item, text) in [(info::NAME, name), (info::DESCRIPTION, description)] {
            if asked.contains(&item) {
                self.answer(number, reply::INFO, &[&item.to_be_bytes()[..], text].concat());
            }
        }
        self.answer(number, reply::ACK, &[]);
        true
    }

    fn answer(&self, number: u32, kind: u32, data: &[u8]) {
        self.outbox.push(|reply| {
            reply.bytes(&OPTION_REPLY.to_be_bytes());
            for word in [number, kind, data.len() as u32] {
                reply.bytes(&word.to_be_bytes());
            }
            reply.bytes(data);
        });
    }

    /// Returns the stream of the export with this name; `None` if the export does not exist.
    fn stream_of(&self, name: &[u8]) -> Option<StreamId> {
        if name.is_empty() || name == self.name().as_bytes() {
            return Some(StreamId::DEFAULT);
        }
        let number = str::from_utf8(name).ok()?.strip_prefix(STREAM_PREFIX)?;
        let number = number.parse().ok().filter(|parsed: &u16| parsed.to_string() == number)?;
        let streams = self.served.with_drive(|drive| drive.streams());
        (number < streams).then_some(StreamId(number))
    }

    fn name(&self) -> &str {
        &self.served.config().identity().name
    }

    fn description(&self) -> &str {
        &self.served.config().identity().description
    }

    fn flags(&self) -> u16 {
        let mut flags =
            flag::HAS_FLAGS | flag::FLUSH | flag::FUA | flag::WRITE_ZEROES | flag::MULTI_CONN;
        if self.served.refuses_trim().is_none() {
            flags |= flag::TRIM;
        }
        if matches!(self.served.config(), AnyConfig::Disk(_)) {
            flags |= flag::ROTATIONAL;
        }
        if self.agreed.structured_replies {
            flags |= flag::DONT_FRAGMENT;
        }
        flags
    }
}
