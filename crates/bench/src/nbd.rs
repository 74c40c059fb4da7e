//! NBD client for measurements.

use std::io;

use writecliff_host_interface::Operation;
use writecliff_serve::Address;
use writecliff_serve::nbd::protocol::{
    GREETING, NO_ZEROES, OPTION, OPTION_REPLY, REQUEST, SIMPLE_REPLY, command, info, option, reply,
};

use crate::{Channel, LoadOutcome, LoadRequest, Protocol};

const SIMPLE_REPLY_BYTES: usize = 16;
const OPTION_REPLY_BYTES: usize = 20;

/// A connection in the transmission phase.
pub struct Client {
    channel: Channel,
    size: u64,
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the NBD server {what}"))
}

impl Client {
    /// Connects to the first export of a server.
    pub fn connect(address: &Address) -> io::Result<Self> {
        let mut client = Self { channel: Channel::connect(address)?, size: 0 };
        client.handshake()?;
        Ok(client)
    }

    /// Returns the size of the export in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    fn handshake(&mut self) -> io::Result<()> {
        let greeting: [u8; 18] = self.channel.head()?;
        let expected = [GREETING.to_be_bytes(), OPTION.to_be_bytes()];
        if greeting[..16] != *expected.as_flattened() {
            return Err(malformed("does not support newstyle negotiation"));
        }
        let mut go = u32::from(NO_ZEROES | 1).to_be_bytes().to_vec();
        go.extend(OPTION.to_be_bytes());
        go.extend([option::GO, 6].map(u32::to_be_bytes).as_flattened());
        go.extend([0; 6]); // Requests the default export and no further information.
        self.channel.send(&go)?;
        loop {
            let head: [u8; OPTION_REPLY_BYTES] = self.channel.head()?;
            let (magic, rest) = head.split_first_chunk::<8>().expect("20 bytes");
            let (words, _) = rest.as_chunks::<4>();
            let [_, kind, length] = [0, 1, 2].map(|n| u32::from_be_bytes(words[n]));
            if u64::from_be_bytes(*magic) != OPTION_REPLY {
                return Err(malformed("sent an invalid reply to an option"));
            }
            let data = self.channel.take(length as usize)?;
            match kind {
                reply::ACK => return Ok(()),
                reply::INFO if data.starts_with(&info::EXPORT.to_be_bytes()) => {
                    let size = data[2..].first_chunk().ok_or_else(|| malformed("has no size"))?;
                    self.size = u64::from_be_bytes(*size);
                }
                reply::INFO => {}
                _ => return Err(malformed("rejected the default export")),
            }
        }
    }

    /// Keeps `queue_depth` requests outstanding until `next` returns `None`.
    pub fn run(
        &mut self,
        queue_depth: u32,
        next: impl FnMut() -> Option<LoadRequest>,
    ) -> io::Result<LoadOutcome> {
        let mut transmission = Transmission { data: vec![0; queue_depth as usize] };
        crate::run(&mut self.channel, &mut transmission, queue_depth, next)
    }
}

/// Data length of the reply to each outstanding request, by cookie.
struct Transmission {
    data: Vec<u32>,
}

impl Protocol for Transmission {
    const REPLY_BYTES: usize = SIMPLE_REPLY_BYTES;

    fn append(&mut self, requests: &mut Vec<u8>, request: &LoadRequest, slot: u32) {
        let &LoadRequest { operation, offset, length } = request;
        let (command, reply_bytes) = match operation {
            Operation::Read => (command::READ, length),
            Operation::Write => (command::WRITE, 0),
            Operation::Trim => (command::TRIM, 0),
            Operation::Flush => (command::FLUSH, 0),
        };
        self.data[slot as usize] = reply_bytes;
        requests.extend(REQUEST.to_be_bytes());
        requests.extend(u32::from(command).to_be_bytes()); // no flags
        requests.extend(u64::from(slot).to_be_bytes());
        requests.extend(offset.to_be_bytes());
        requests.extend(length.to_be_bytes());
        if operation == Operation::Write {
            requests.resize(requests.len() + length as usize, 0x5a);
        }
    }

    fn reply(&mut self, channel: &mut Channel) -> io::Result<u32> {
        let head: [u8; SIMPLE_REPLY_BYTES] = channel.head()?;
        let (words, _) = head.as_chunks::<4>();
        let [magic, error, high, cookie] = [0, 1, 2, 3].map(|n| u32::from_be_bytes(words[n]));
        if magic != SIMPLE_REPLY || high != 0 {
            return Err(malformed("sent an invalid reply"));
        }
        if error != 0 {
            return Err(malformed(&format!("rejected a request with error {error}")));
        }
        let Some(&data) = self.data.get(cookie as usize) else {
            return Err(malformed("sent a reply that matches no request"));
        };
        channel.skip(data as usize)?;
        Ok(cookie)
    }
}
