//! NBD client for measurements.

use std::io;

use writecliff_host_interface::Operation;
use writecliff_serve::Address;
use writecliff_serve::nbd::protocol::{
    FIXED_NEWSTYLE, GREETING, NO_ZEROES, OPTION, REQUEST, SIMPLE_REPLY, command, option,
};

use crate::{Channel, LoadOutcome, LoadRequest, Protocol, malformed};

const SIMPLE_REPLY_BYTES: usize = 16;

/// A connection in the transmission phase.
pub struct Client {
    channel: Channel,
    /// Size of the export in bytes.
    pub size: u64,
}

impl Client {
    /// Connects to the default export of a server.
    pub fn connect(address: &Address) -> io::Result<Self> {
        let mut channel = Channel::connect(address)?;
        let greeting: [u8; 18] = channel.head()?;
        let expected = [GREETING.to_be_bytes(), OPTION.to_be_bytes()];
        if greeting[..16] != *expected.as_flattened() {
            return Err(malformed("does not support newstyle negotiation"));
        }
        let mut request = u32::from(NO_ZEROES | FIXED_NEWSTYLE).to_be_bytes().to_vec();
        request.extend(OPTION.to_be_bytes());
        request.extend([option::EXPORT_NAME, 0].map(u32::to_be_bytes).as_flattened());
        channel.send(&request)?;
        let export: [u8; 10] = channel.head()?; // The export size and its flags.
        let size = u64::from_be_bytes(*export.first_chunk().expect("10 bytes"));
        Ok(Self { channel, size })
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
        requests.extend(u32::from(command).to_be_bytes()); // The flags are 0.
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
