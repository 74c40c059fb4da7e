//! The sending half of an NVMe/TCP connection: completions and data, from whichever thread the
//! drive completes on. It takes no lock of the subsystem.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use writecliff_host_interface::Operation;
use writecliff_nvme::{Association, Failure, Reply, Span, Ticket};
use writecliff_nvme_tcp::{Receiver, Sender, Settings};

use super::target::Heard;
use crate::outbox::Outbox;
use crate::request::{self, Done, Replies};
use crate::served::Served;

/// Bytes of reads outstanding, of a host that wants data digests: their data are copied before
/// they can be sent.
const DIGESTED_BYTES: u64 = 8 << 20;
/// Bytes of PDUs in the making whose memory is kept.
const KEPT_BYTES: usize = 4096;

/// What a command of the host waits for.
pub(super) struct Pending {
    pub(super) ticket: Ticket,
    /// Requests that the drive has not completed.
    pub(super) left: u32,
    pub(super) failure: Option<Failure>,
    pub(super) then: Then,
}

/// What follows when the drive is done.
pub(super) enum Then {
    Reply,
    Read(Span),
    Compare(Span, Vec<u8>),
}

/// Commands that the drive works on. Tags are used again, so that none takes memory of its own.
#[derive(Default)]
struct Pendings {
    by_tag: Vec<Option<Pending>>,
    free: Vec<usize>,
}

impl Pendings {
    fn insert(&mut self, pending: Pending) -> u64 {
        let tag = self.free.pop().unwrap_or_else(|| {
            self.by_tag.push(None);
            self.by_tag.len() - 1
        });
        self.by_tag[tag] = Some(pending);
        tag as u64
    }

    /// One of a command's requests is done; returns the command if it was the last.
    fn completed(&mut self, tag: u64, failure: Option<Failure>) -> Option<Pending> {
        let slot = self.by_tag.get_mut(tag as usize)?;
        let pending = slot.as_mut()?;
        pending.left -= 1;
        pending.failure = pending.failure.or(failure);
        if pending.left > 0 {
            return None;
        }
        self.free.push(tag as usize);
        slot.take()
    }
}

/// Makes PDUs, in memory that is used again.
struct Sending {
    sender: Sender,
    bytes: Vec<u8>,
}

/// The sending half of a connection.
pub(super) struct Replier {
    outbox: Arc<Outbox>,
    served: Served,
    sending: Mutex<Option<Sending>>,
    pending: Mutex<Pendings>,
    /// Commands that the drive works on, until their replies or failures are queued.
    outstanding: AtomicUsize,
    /// Work that failed: its completions are made by the connection's thread.
    failed: Mutex<Vec<(Ticket, Failure)>>,
    reading: AtomicU64,
    has_data_digest: AtomicBool,
    pub(super) wants_bell: AtomicBool,
    pub(super) heard: Heard,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Replier {
    pub(super) fn new(outbox: &Arc<Outbox>, served: &Served, now_ms: u64) -> Self {
        Self {
            outbox: Arc::clone(outbox),
            served: served.clone(),
            sending: Mutex::default(),
            pending: Mutex::default(),
            outstanding: AtomicUsize::new(0),
            failed: Mutex::default(),
            reading: AtomicU64::new(0),
            has_data_digest: AtomicBool::new(false),
            wants_bell: AtomicBool::new(false),
            heard: Heard::new(now_ms),
        }
    }

    /// The connection has begun.
    pub(super) fn began(&self, settings: Settings, receiver: &Receiver) {
        self.has_data_digest.store(settings.data_digest, Ordering::Relaxed);
        let (sender, bytes) = (Sender::new(settings, receiver), Vec::new());
        *locked(&self.sending) = Some(Sending { sender, bytes });
    }

    /// The queue is connected.
    pub(super) fn connected(&self, association: Association) {
        if let Some(sending) = &mut *locked(&self.sending) {
            sending.sender.connected(&association);
        }
    }

    /// Takes note of a command whose requests follow; their tag.
    pub(super) fn expect(&self, pending: Pending) -> u64 {
        if let Then::Read(span) = pending.then {
            self.reading.fetch_add(span.length, Ordering::Relaxed);
        }
        self.outstanding.fetch_add(1, Ordering::SeqCst);
        locked(&self.pending).insert(pending)
    }

    /// Whether the drive has nothing to do for the connection. What it has done is queued then.
    pub(super) fn is_idle(&self) -> bool {
        self.outstanding.load(Ordering::SeqCst) == 0
    }

    /// Whether so much is being read that has to be copied that no more may be asked for.
    pub(super) fn is_reading_much(&self) -> bool {
        self.has_data_digest.load(Ordering::Relaxed)
            && self.reading.load(Ordering::Relaxed) > DIGESTED_BYTES
    }

    /// Takes the work that has failed.
    pub(super) fn take_failed(&self) -> Vec<(Ticket, Failure)> {
        std::mem::take(&mut *locked(&self.failed))
    }

    pub(super) fn close(&self) {
        self.outbox.close();
    }

    pub(super) fn flush(&self) {
        if self.outbox.send().is_err() {
            self.outbox.socket().shut_down();
        }
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

    /// Queues the data of a read and its completion.
    fn read(&self, ticket: Ticket, span: Span) {
        let mut sending = locked(&self.sending);
        let Some(Sending { sender, bytes }) = &mut *sending else { return };
        bytes.clear();
        let reply = ticket.success();
        let is_header = sender.data_header(&reply, span.length as u32, bytes);
        if !is_header {
            let mut data = vec![0; span.length as usize];
            if self.served.read(span.offset, &mut data).is_err() {
                self.fail(ticket, Failure::UnrecoveredRead);
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

    fn fail(&self, ticket: Ticket, failure: Failure) {
        locked(&self.failed).push((ticket, failure));
        self.outbox.bell().ring();
    }

    /// The drive is done with a command.
    pub(super) fn finish(&self, pending: Pending) {
        let Pending { ticket, mut failure, then, .. } = pending;
        if let (Then::Compare(span, data), None) = (&then, failure) {
            let mut found = vec![0; data.len()];
            failure = match self.served.read(span.offset, &mut found) {
                Err(_) => Some(Failure::UnrecoveredRead),
                Ok(()) => (found != *data).then_some(Failure::Different),
            };
        }
        if let Then::Read(span) = then {
            self.reading.fetch_sub(span.length, Ordering::Relaxed);
        }
        match (failure, then) {
            (Some(failure), _) => self.fail(ticket, failure),
            (None, Then::Read(span)) => self.read(ticket, span),
            (None, _) => self.reply(&ticket.success()),
        }
    }
}

impl Replies for Replier {
    fn completed(&self, done: &Done) {
        let is_read = done.request.operation == Operation::Read;
        let failure = done.failure.map(|failure| match failure {
            request::Failure::Io if is_read => Failure::UnrecoveredRead,
            request::Failure::UnrecoveredRead => Failure::UnrecoveredRead,
            request::Failure::WriteProtected => Failure::WriteProtected,
            _ => Failure::WriteFault,
        });
        let last = locked(&self.pending).completed(done.request.tag, failure);
        if let Some(pending) = last {
            self.finish(pending);
            self.outstanding.fetch_sub(1, Ordering::SeqCst);
        }
    }

    fn send(&self) {
        self.flush();
        if self.wants_bell.swap(false, Ordering::SeqCst) {
            self.outbox.bell().ring();
        }
    }

    fn sever(&self) {
        self.outbox.close();
    }
}
