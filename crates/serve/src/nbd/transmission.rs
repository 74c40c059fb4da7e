//! Transmission phase: requests and their replies.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use writecliff_base::SECTOR_BYTES;
use writecliff_host_interface::Operation;

use super::handshake::Agreed;
use super::protocol::{Header, REQUEST_BYTES, chunk, command, error, only_chunk, simple_reply};
use crate::input::Input;
use crate::outbox::Outbox;
use crate::request::{Done, Failure, Replies, Request, Tag};
use crate::served::{Served, Session};
use crate::socket::is_transient;

/// Maximum length of a read or write, which clients assume unless the server advertises another.
pub(super) const PAYLOAD_BYTES_MAX: u32 = 32 << 20;
/// Maximum number of outstanding requests per connection; further requests are not received.
pub const REQUESTS_MAX: usize = 1_024;
/// Maximum number of requests that are submitted together.
const BATCH_REQUESTS: usize = 64;

struct Replier {
    outbox: Arc<Outbox>,
    agreed: Agreed,
}

impl Replier {
    fn error(&self, cookie: u64, is_read: bool, number: u32) {
        self.outbox.push(|reply| {
            if is_read && self.agreed.structured_replies {
                reply.bytes(only_chunk(chunk::ERROR, cookie, 6).as_flattened());
                reply.bytes(&number.to_be_bytes());
                reply.bytes(&0_u16.to_be_bytes()); // Message length in bytes.
            } else {
                reply.bytes(simple_reply(number, cookie).as_flattened());
            }
        });
    }

    fn read(&self, request: &Request) {
        let Request { tag, offset, length, .. } = *request;
        let cookie = tag.number();
        self.outbox.push(|reply| {
            if !self.agreed.structured_replies {
                reply.bytes(simple_reply(0, cookie).as_flattened());
            } else if length == 0 {
                reply.bytes(only_chunk(chunk::NONE, cookie, 0).as_flattened());
            } else {
                let bytes = length as u32 + 8;
                reply.bytes(only_chunk(chunk::OFFSET_DATA, cookie, bytes).as_flattened());
                reply.bytes(&offset.to_be_bytes());
            }
            reply.data(offset, length);
        });
    }
}

impl Replies for Replier {
    fn completed(&self, done: &Done) {
        let Done { request, failure, .. } = done;
        let is_read = request.operation == Operation::Read;
        let cookie = request.tag.number();
        match failure {
            Some(Failure::NoSpace) => self.error(cookie, is_read, error::NO_SPACE),
            Some(Failure::Io | Failure::UnrecoveredRead) => self.error(cookie, is_read, error::IO),
            Some(Failure::WriteProtected) => self.error(cookie, is_read, error::NOT_PERMITTED),
            None if is_read => self.read(request),
            None => self.outbox.push(|reply| reply.bytes(simple_reply(0, cookie).as_flattened())),
        }
        let before = self.outbox.outstanding.fetch_sub(1, Ordering::SeqCst);
        debug_assert!(before > 0, "a request completes once");
    }

    fn send(&self) {
        self.outbox.deliver();
    }

    fn sever(&self) {
        self.outbox.close();
    }
}

/// A write whose data are being received.
struct Receiving {
    request: Request,
    /// Destination of the next byte; `None` if the write is invalid.
    at: Option<u64>,
    left: u64,
    failure: Option<Failure>,
}

struct Transmission<'a> {
    outbox: &'a Outbox,
    input: Input,
    session: Session,
    replier: Arc<Replier>,
    receiving: Option<Receiving>,
    /// Requests to be submitted.
    ready: Vec<(Request, Option<Failure>)>,
}

enum Next {
    /// Parse the next request.
    Again,
    /// Receive more input because all complete requests have been parsed.
    Receive,
    /// Wait until the client reads replies or the drive completes a request.
    Hold,
    /// Stop because the client has disconnected.
    End,
}

/// Serves requests until the client disconnects or an error occurs.
pub(super) fn transmit(
    outbox: &Arc<Outbox>,
    input: Input,
    served: &Served,
    agreed: Agreed,
) -> io::Result<()> {
    let replier = Arc::new(Replier { outbox: Arc::clone(outbox), agreed });
    let session = served.session(Arc::clone(&replier) as Arc<dyn Replies>);
    let ready = Vec::with_capacity(BATCH_REQUESTS);
    Transmission { outbox, input, session, replier, receiving: None, ready }.run()
}

impl Transmission<'_> {
    fn run(&mut self) -> io::Result<()> {
        loop {
            let next = self.understand()?;
            self.submit()?;
            match next {
                Next::Again => {}
                Next::Receive => self.receive()?,
                Next::Hold => self.hold()?,
                Next::End => return Ok(()),
            }
        }
    }

    /// Parses requests from the input, up to a full batch.
    fn understand(&mut self) -> io::Result<Next> {
        while self.ready.len() < BATCH_REQUESTS {
            if self.receiving.is_some() {
                if !self.take_data() {
                    return Ok(Next::Receive);
                }
                continue;
            }
            let Some(head) = self.input.head::<REQUEST_BYTES>() else { return Ok(Next::Receive) };
            let outstanding = self.outbox.outstanding.load(Ordering::SeqCst) + self.ready.len();
            if outstanding >= REQUESTS_MAX || self.outbox.is_waiting() {
                return Ok(Next::Hold);
            }
            let header = Header::read(head).ok_or(io::ErrorKind::InvalidData)?;
            self.input.consume(REQUEST_BYTES);
            if header.command == command::DISCONNECT {
                return Ok(Next::End);
            }
            self.begin(&header);
        }
        Ok(Next::Again)
    }

    fn begin(&mut self, header: &Header) {
        let request = self.request(header);
        if header.command == command::WRITE {
            let (at, left) = (request.map(|request| request.offset), u64::from(header.length));
            let invalid = Request::new(Tag::Number(header.cookie), Operation::Write, 0, left);
            let request = request.unwrap_or(invalid);
            self.receiving = Some(Receiving { request, at, left, failure: None });
            return;
        }
        let Some(request) = request else {
            let is_read = header.command == command::READ;
            self.replier.error(header.cookie, is_read, error::INVALID);
            return;
        };
        let mut failure = None;
        if header.command == command::WRITE_ZEROES && request.operation == Operation::Write {
            failure = self.session.store_zeros(request.offset, request.length).err();
        }
        self.ready.push((request, failure));
    }

    /// Returns the request for the drive; `None` if the client's request is invalid.
    fn request(&self, header: &Header) -> Option<Request> {
        let Header { flags, command, cookie, offset, length } = *header;
        let trims = self.session.served.refuses_trim().is_none();
        let (operation, allowed) = match command {
            command::READ => (Operation::Read, command::FUA | command::DF),
            command::WRITE => (Operation::Write, command::FUA),
            command::FLUSH => (Operation::Flush, command::FUA),
            command::TRIM => (Operation::Trim, command::FUA),
            // Zeros that may be stored as holes are trimmed.
            command::WRITE_ZEROES if trims && flags & command::NO_HOLE == 0 => {
                (Operation::Trim, command::FUA)
            }
            command::WRITE_ZEROES => (Operation::Write, command::FUA | command::NO_HOLE),
            _ => return None,
        };
        let has_data = matches!(command, command::READ | command::WRITE);
        let length = u64::from(length);
        let is_valid = flags & !allowed == 0
            && (command != command::TRIM || trims)
            && (offset | length).is_multiple_of(SECTOR_BYTES)
            && offset.checked_add(length)? <= self.session.served.capacity().0
            && (!has_data || length <= u64::from(PAYLOAD_BYTES_MAX))
            && (command != command::FLUSH || (offset == 0 && length == 0));
        is_valid.then_some(Request {
            tag: Tag::Number(cookie),
            operation,
            offset,
            length,
            stream: self.replier.agreed.stream,
            durable: flags & command::FUA != 0 && operation != Operation::Read,
            is_zeros: command == command::WRITE_ZEROES,
        })
    }

    /// Stores received data; returns `true` if the write is complete.
    fn take_data(&mut self) -> bool {
        let Some(receiving) = &mut self.receiving else { return true };
        let count = self.input.bytes().len().min(receiving.left as usize);
        if let Some(at) = &mut receiving.at {
            if receiving.failure.is_none() {
                receiving.failure = self.session.store(*at, &self.input.bytes()[..count]).err();
            }
            *at += count as u64;
        }
        self.input.consume(count);
        receiving.left -= count as u64;
        if receiving.left > 0 {
            return false;
        }
        if let Some(Receiving { request, at, failure, .. }) = self.receiving.take() {
            match at {
                Some(_) => self.ready.push((request, failure)),
                None => self.replier.error(request.tag.number(), false, error::INVALID),
            }
        }
        true
    }

    fn submit(&mut self) -> io::Result<()> {
        self.outbox.outstanding.fetch_add(self.ready.len(), Ordering::SeqCst);
        for request in self.session.submit(&mut self.ready)? {
            self.outbox.outstanding.fetch_sub(1, Ordering::SeqCst);
            let is_read = request.operation == Operation::Read;
            self.replier.error(request.tag.number(), is_read, error::INVALID);
        }
        Ok(())
    }

    /// Waits for more input, and sends as many replies as the client accepts meanwhile.
    fn receive(&mut self) -> io::Result<()> {
        // Checked before sending: the replies to all requests that are not outstanding are queued.
        let is_idle = self.outbox.is_idle();
        let is_sent = self.outbox.send_all()?;
        let served = &self.session.served;
        if is_sent && let Some(count) = self.input.look(&self.outbox.socket, is_idle, Some(served))
        {
            return count;
        }
        self.input.leave();
        match self.input.receive(&self.outbox.socket, is_idle && is_sent) {
            Ok(()) => {
                self.input.attend(served);
                return Ok(());
            }
            Err(error) if is_transient(&error) => {}
            Err(error) => return Err(error),
        }
        self.outbox.socket.wait(true, !is_sent, Some(&self.outbox.bell), None)?;
        Ok(())
    }

    /// Waits until the client reads replies or a request completes.
    fn hold(&mut self) -> io::Result<()> {
        self.input.leave();
        self.outbox.wants_bell.store(true, Ordering::SeqCst);
        let is_sent = self.outbox.send_all()?;
        // A request may have completed before this thread set `wants_bell`.
        let is_full = self.outbox.outstanding.load(Ordering::SeqCst) >= REQUESTS_MAX;
        if is_sent && !is_full {
            return Ok(());
        }
        self.outbox.socket.wait(false, !is_sent, Some(&self.outbox.bell), None)?;
        Ok(())
    }
}
