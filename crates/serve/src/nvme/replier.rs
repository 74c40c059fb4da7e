//! Sending half of an NVMe/TCP connection: completions and data, sent by the thread on which the
//! drive completes the I/O. The sending half takes no lock of the subsystem.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use writecliff_host_interface::Operation;
use writecliff_nvme::{Association, Reply, Span, Status, Ticket};
use writecliff_nvme_tcp::{Receiver, Sender, Settings};

use crate::outbox::Outbox;
use crate::request::{self, Done, Replies, Request, Tag, Then};
use crate::served::{Served, locked};

/// Maximum number of bytes of outstanding reads for a host that uses data digests, because such
/// data are copied before they are sent.
const DIGESTED_BYTES: u64 = 8 << 20;
/// Maximum capacity that the buffer for new PDUs retains.
const KEPT_BYTES: usize = 4096;

/// A command with several requests, or data to compare. Others need no state but their request.
pub(super) struct Compound {
    /// Number of requests that the drive has not completed.
    pub(super) left: usize,
    pub(super) failure: Option<Status>,
    /// Data that the request's range must contain.
    pub(super) compared: Option<Vec<u8>>,
}

/// Builds PDUs in a reused buffer.
struct Sending {
    sender: Sender,
    bytes: Vec<u8>,
}

pub(super) struct Replier {
    outbox: Arc<Outbox>,
    served: Served,
    sending: Mutex<Option<Sending>>,
    compounds: Mutex<BTreeMap<u32, Compound>>,
    /// Failed work, which is completed by the connection's thread.
    failed: Mutex<Vec<(Ticket, Status)>>,
    reading: AtomicU64,
    has_data_digest: AtomicBool,
    /// Time of the last bytes received from the host, in milliseconds of the target's clock.
    pub(super) last_received: AtomicU64,
}

impl Replier {
    pub(super) fn new(outbox: &Arc<Outbox>, served: &Served, now_ms: u64) -> Self {
        Self {
            outbox: Arc::clone(outbox),
            served: served.clone(),
            sending: Mutex::default(),
            compounds: Mutex::default(),
            failed: Mutex::default(),
            reading: AtomicU64::new(0),
            has_data_digest: AtomicBool::new(false),
            last_received: AtomicU64::new(now_ms),
        }
    }

    /// Stores the settings once the connection is initialized.
    pub(super) fn began(&self, settings: Settings, receiver: &Receiver) {
        self.has_data_digest.store(settings.data_digest, Ordering::Relaxed);
        let (sender, bytes) = (Sender::new(settings, receiver), Vec::new());
        *locked(&self.sending) = Some(Sending { sender, bytes });
    }

    pub(super) fn connected(&self, association: Association) {
        if let Some(sending) = &mut *locked(&self.sending) {
            sending.sender.connected(&association);
        }
    }

    /// Registers a command that reads `reading` bytes, before its requests are submitted.
    pub(super) fn expect(&self, reading: u64) {
        self.reading.fetch_add(reading, Ordering::Relaxed);
        self.outbox.outstanding.fetch_add(1, Ordering::SeqCst);
    }

    /// Registers a compound command and returns its number.
    pub(super) fn expect_parts(&self, compound: Compound) -> u32 {
        let mut compounds = locked(&self.compounds);
        let number = compounds.last_key_value().map_or(0, |(&last, _)| last.wrapping_add(1));
        debug_assert!(compound.left > 0, "nothing would complete the command");
        let before = compounds.insert(number, compound);
        debug_assert!(before.is_none(), "the number {number} is in use");
        number
    }

    /// Records that a request of a compound command has completed; returns the command if all have.
    fn part_completed(&self, number: u32, failure: Option<Status>) -> Option<Compound> {
        let mut compounds = locked(&self.compounds);
        let compound = compounds.get_mut(&number)?;
        debug_assert!(compound.left > 0, "a request completes once");
        compound.left -= 1;
        compound.failure = compound.failure.or(failure);
        if compound.left > 0 { None } else { compounds.remove(&number) }
    }

    /// Returns `true` if reads in progress copy so much data that no more data may be requested.
    pub(super) fn is_reading_much(&self) -> bool {
        self.has_data_digest.load(Ordering::Relaxed)
            && self.reading.load(Ordering::Relaxed) > DIGESTED_BYTES
    }

    pub(super) fn take_failed(&self) -> Vec<(Ticket, Status)> {
        std::mem::take(&mut *locked(&self.failed))
    }

    /// Queues a completion with its data.
    pub(super) fn reply(&self, reply: &Reply) {
        let mut sending = locked(&self.sending);
        let Some(Sending { sender, bytes }) = &mut *sending else { return };
        bytes.clear();
        sender.completion(reply, bytes);
        self.outbox.push(|out| out.bytes(bytes));
        bytes.shrink_to(KEPT_BYTES);
    }

    /// Queues a read's data and completion.
    fn read(&self, ticket: Ticket, span: Span) {
        let mut sending = locked(&self.sending);
        let Some(Sending { sender, bytes }) = &mut *sending else { return };
        bytes.clear();
        let reply = ticket.success();
        let is_header = sender.data_header(&reply, span.length as u32, bytes);
        if !is_header {
            let mut data = vec![0; span.length as usize];
            if self.served.read(span.offset, &mut data).is_err() {
                self.fail(ticket, Status::UNRECOVERED_READ);
                return;
            }
            sender.data(&reply, &data, bytes);
        }
        let first = bytes.len();
        sender.completion_after_data(&reply, bytes);
        self.outbox.push(|out| {
            out.bytes(&bytes[..first]);
            if is_header {
                out.data(span.offset, span.length);
            }
            out.bytes(&bytes[first..]);
        });
        bytes.shrink_to(KEPT_BYTES);
    }

    fn fail(&self, ticket: Ticket, failure: Status) {
        locked(&self.failed).push((ticket, failure));
        self.outbox.bell.ring();
    }

    /// Returns the failure of a completed compound command; `None` if it succeeded.
    fn failure_of(&self, compound: Compound, offset: u64) -> Option<Status> {
        let (None, Some(data)) = (compound.failure, compound.compared) else {
            return compound.failure;
        };
        let mut stored = vec![0; data.len()];
        match self.served.read(offset, &mut stored) {
            Err(_) => Some(Status::UNRECOVERED_READ),
            Ok(()) => (stored != data).then_some(Status::COMPARE_FAILURE),
        }
    }
}

impl Replies for Replier {
    fn completed(&self, done: &Done) {
        let Request { tag, operation, offset, length, .. } = done.request;
        let Tag::Nvme(ticket, then) = tag else { return };
        let mut failure = done.failure.map(|failure| match failure {
            request::Failure::Io if operation == Operation::Read => Status::UNRECOVERED_READ,
            request::Failure::UnrecoveredRead => Status::UNRECOVERED_READ,
            request::Failure::WriteProtected => Status::WRITE_PROTECTED,
            _ => Status::WRITE_FAULT,
        });
        if let Then::Part(number) = then {
            let Some(compound) = self.part_completed(number, failure) else { return };
            failure = self.failure_of(compound, offset);
        }
        if then == Then::Read {
            let before = self.reading.fetch_sub(length, Ordering::Relaxed);
            debug_assert!(before >= length, "more bytes were read than expected");
        }
        match (failure, then) {
            (Some(failure), _) => self.fail(ticket, failure),
            (None, Then::Read) => self.read(ticket, Span { offset, length }),
            (None, _) => self.reply(&ticket.success()),
        }
        let before = self.outbox.outstanding.fetch_sub(1, Ordering::SeqCst);
        debug_assert!(before > 0, "a command completes once");
    }

    fn send(&self) {
        self.outbox.deliver();
    }

    fn sever(&self) {
        self.outbox.close();
    }
}
