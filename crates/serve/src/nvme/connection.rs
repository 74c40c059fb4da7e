//! One NVMe/TCP connection: its thread understands what the host sends and gives the drive work;
//! completions go out from whichever thread the drive completes on.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use writecliff_base::StreamId;
use writecliff_host_interface::Operation;
use writecliff_nvme::{Association, Failure, Outcome, Placement, Reply, Span, Ticket, Work};
use writecliff_nvme_tcp::{Command, Limits, Received, Receiver, Sender};

use super::target::{Heard, Target};
use crate::outbox::{Outbox, Sent};
use crate::request::{self, Done, Replies, Request};
use crate::served::{Served, Session};

/// Bytes received at a time.
const INPUT_BYTES: usize = 160 << 10;
/// How long a peer may take to connect its queue.
const CONNECT: Duration = Duration::from_secs(10);
/// Bytes of reads outstanding, of a host that wants data digests: their data are copied before
/// they can be sent.
const DIGESTED_BYTES: u64 = 8 << 20;
/// The highest number of a stream that a drive takes; higher ones are as invalid.
const STREAM_MAX: u16 = u16::MAX - 1;

/// What a command of the host waits for.
struct Pending {
    ticket: Ticket,
    /// Requests that the drive has not completed.
    left: u32,
    failure: Option<Failure>,
    then: Then,
}

/// What follows when the drive is done.
enum Then {
    Reply,
    Read(Span),
    Compare(Span, Vec<u8>),
}

/// The sending half of a connection.
pub(super) struct Replier {
    outbox: Arc<Outbox>,
    served: Served,
    sender: Mutex<Option<Sender>>,
    pending: Mutex<BTreeMap<u64, Pending>>,
    /// Work that failed: its completions are made by the connection's thread.
    failed: Mutex<Vec<(Ticket, Failure)>>,
    reading: AtomicU64,
    has_data_digest: AtomicBool,
    wants_bell: AtomicBool,
    pub(super) heard: Heard,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Replier {
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
        let mut sender = locked(&self.sender);
        let Some(sender) = &mut *sender else { return };
        let mut bytes = Vec::new();
        sender.completion(reply, &mut bytes);
        self.outbox.push(|out| out.bytes(&bytes));
    }

    /// Queues the data of a read and its completion.
    fn read(&self, ticket: Ticket, span: Span) {
        let mut sender = locked(&self.sender);
        let Some(sender) = &mut *sender else { return };
        let (mut first, mut last) = (Vec::new(), Vec::new());
        let reply = ticket.success();
        let is_header = sender.data_header(&reply, span.length as u32, &mut first);
        if !is_header {
            let mut data = vec![0; span.length as usize];
            if self.served.read(span.offset, &mut data).is_err() {
                locked(&self.failed).push((ticket, Failure::UnrecoveredRead));
                self.outbox.bell().ring();
                return;
            }
            sender.data(&reply, &data, &mut first);
        }
        sender.completion_after_data(&reply, &mut last);
        self.outbox.push(|out| {
            out.bytes(&first);
            if is_header {
                out.data(span.offset, span.length);
            }
            out.bytes(&last);
        });
    }

    /// The drive is done with a command.
    fn finish(&self, pending: Pending) {
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
            (Some(failure), _) => {
                locked(&self.failed).push((ticket, failure));
                self.outbox.bell().ring();
            }
            (None, Then::Read(span)) => self.read(ticket, span),
            (None, _) => self.reply(&ticket.success()),
        }
    }
}

impl Replies for Replier {
    fn completed(&self, done: &Done) {
        let mut all = locked(&self.pending);
        let Some(pending) = all.get_mut(&done.request.tag) else { return };
        pending.left -= 1;
        if let Some(failure) = done.failure {
            let is_read = done.request.operation == Operation::Read;
            let failure = match failure {
                request::Failure::Io if is_read => Failure::UnrecoveredRead,
                _ => Failure::WriteFault,
            };
            pending.failure.get_or_insert(failure);
        }
        if pending.left == 0
            && let Some(pending) = all.remove(&done.request.tag)
        {
            drop(all);
            self.finish(pending);
        }
    }

    fn send(&self) {
        self.flush();
        if self.wants_bell.swap(false, Ordering::SeqCst) {
            self.outbox.bell().ring();
        }
    }
}

/// A connection's thread.
struct Connection<'a> {
    target: &'a Target,
    outbox: &'a Outbox,
    replier: Arc<Replier>,
    session: Session,
    receiver: Receiver,
    association: Option<Association>,
    next_tag: u64,
}

/// Serves a connection until the host leaves or misbehaves.
pub(super) fn run(target: &Target, outbox: &Arc<Outbox>, served: &Served) {
    let replier = Arc::new(Replier {
        outbox: Arc::clone(outbox),
        served: served.clone(),
        sender: Mutex::default(),
        pending: Mutex::default(),
        failed: Mutex::default(),
        reading: AtomicU64::new(0),
        has_data_digest: AtomicBool::new(false),
        wants_bell: AtomicBool::new(false),
        heard: Heard::new(target.now_ms()),
    });
    let session = served.session(Arc::clone(&replier) as Arc<dyn Replies>);
    let receiver = Receiver::new(Limits::default());
    let (association, next_tag) = (None, 0);
    let mut connection =
        Connection { target, outbox, replier, session, receiver, association, next_tag };
    let _ = connection.run(); // an error is the end of the connection, and the host knows why
    if let Some(association) = connection.association {
        target.left(association);
    }
}

impl Connection<'_> {
    fn run(&mut self) -> io::Result<()> {
        let mut input = vec![0; INPUT_BYTES];
        let mut found = Vec::new();
        loop {
            self.fail_failed();
            let is_sent = self.outbox.send_all()? == Sent::All;
            // Whoever completes a read later finds that this thread waits for that.
            self.replier.wants_bell.store(self.is_reading_much(), Ordering::SeqCst);
            let holds = !is_sent || self.is_reading_much();
            if !self.wait(!holds, !is_sent)? || holds {
                continue;
            }
            match self.outbox.socket().receive(&mut input, false) {
                Ok(0) => return Ok(()),
                Ok(count) => {
                    self.replier.heard.store(self.target.now_ms(), Ordering::Relaxed);
                    self.take(&input[..count], &mut found)?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn is_reading_much(&self) -> bool {
        self.replier.has_data_digest.load(Ordering::Relaxed)
            && self.replier.reading.load(Ordering::Relaxed) > DIGESTED_BYTES
    }

    /// Waits for the host or the bell; an error if the host has been silent for too long.
    fn wait(&mut self, receive: bool, send: bool) -> io::Result<bool> {
        let timed_out = || io::Error::from(io::ErrorKind::TimedOut);
        let patience = match self.association {
            None => CONNECT,
            Some(association) => self.target.patience(association).ok_or_else(timed_out)?,
        };
        let bell = Some(self.outbox.bell());
        let happened = self.outbox.socket().wait(receive, send, bell, Some(patience))?;
        self.outbox.bell().answer();
        match self.association {
            None if !happened => return Err(timed_out()),
            Some(Association { queue: 0, .. }) if !happened => self.target.tend(),
            _ => {}
        }
        Ok(happened)
    }

    /// Takes bytes of the host.
    fn take(&mut self, bytes: &[u8], found: &mut Vec<Received>) -> io::Result<()> {
        let outcome = self.receiver.receive(bytes, found);
        let mut requests = Vec::new();
        for one in found.drain(..) {
            match one {
                Received::Send(bytes) => self.outbox.push(|out| out.bytes(&bytes)),
                Received::Began(settings) => {
                    self.replier.has_data_digest.store(settings.data_digest, Ordering::Relaxed);
                    *locked(&self.replier.sender) = Some(Sender::new(settings, &self.receiver));
                }
                Received::Command(command) => self.command(&command, &mut requests)?,
            }
        }
        self.submit(&requests);
        if let Err(fatal) = outcome {
            self.outbox.push(|out| out.bytes(&fatal.last_words));
            self.outbox.send_all()?;
            return Err(io::Error::from(io::ErrorKind::InvalidData));
        }
        if self.association.is_some_and(|association| association.queue == 0) {
            self.target.tend();
        }
        Ok(())
    }

    fn command(
        &mut self,
        command: &Command,
        requests: &mut Vec<(Request, Option<request::Failure>)>,
    ) -> io::Result<()> {
        let Some(Association { controller, queue, .. }) = self.association else {
            return self.connect(command);
        };
        if let Some(reply) = command.refusal(controller, queue) {
            self.replier.reply(&reply);
            return Ok(());
        }
        let outcome = self.target.subsystem().submit(controller, queue, command.request());
        match outcome {
            Outcome::Done(reply) => self.replier.reply(&reply),
            Outcome::Held => {}
            Outcome::Work(ticket, Work::Format { lba_format, .. }) => {
                let mut subsystem = self.target.subsystem();
                let outcome = subsystem.drive().format(lba_format);
                let reply = subsystem.complete(ticket, outcome);
                drop(subsystem);
                self.replier.reply(&reply);
            }
            Outcome::Work(ticket, work) => self.work(ticket, work, &command.data, requests),
        }
        Ok(())
    }

    /// The first command of a connection.
    fn connect(&mut self, command: &Command) -> io::Result<()> {
        if let Some(reply) = command.refusal(0, 0) {
            self.replier.reply(&reply);
            return Err(io::Error::from(io::ErrorKind::InvalidData));
        }
        let (association, reply) = self.target.subsystem().connect(command.request());
        if let Some(association) = association {
            self.receiver.connected(&association);
            if let Some(sender) = &mut *locked(&self.replier.sender) {
                sender.connected(&association);
            }
            self.association = Some(association);
            self.target.joined(association, &self.replier);
        }
        self.replier.reply(&reply);
        Ok(())
    }

    /// Makes requests of a command's work, and stores what it writes.
    fn work(
        &mut self,
        ticket: Ticket,
        work: Work,
        data: &[u8],
        requests: &mut Vec<(Request, Option<request::Failure>)>,
    ) {
        let tag = self.next_tag;
        self.next_tag += 1;
        let first = requests.len();
        let served = self.session.served();
        let request = |operation, span: Span, stream, durable| {
            let Span { offset, length } = span;
            Request { tag, operation, offset, length, stream, durable }
        };
        let of = StreamId::DEFAULT;
        let mut then = Then::Reply;
        match work {
            Work::Read { span, .. } => {
                self.replier.reading.fetch_add(span.length, Ordering::Relaxed);
                requests.push((request(Operation::Read, span, of, false), None));
                then = Then::Read(span);
            }
            Work::Verify { span, .. } => {
                requests.push((request(Operation::Read, span, of, false), None));
            }
            Work::Compare { span, .. } => {
                requests.push((request(Operation::Read, span, of, false), None));
                then = Then::Compare(span, data[..span.length as usize].to_vec());
            }
            Work::Write { span, placement, fua } => {
                let stored = served.store(span.offset, &data[..span.length as usize]).err();
                let request = request(Operation::Write, span, stream(placement), fua);
                requests.push((request, stored.map(request::Failure::from)));
            }
            Work::WriteZeroes { span, placement, fua, deallocate } => {
                if deallocate && served.refuses_trim().is_none() {
                    requests.push((request(Operation::Trim, span, of, fua), None));
                } else {
                    let stored = served.store_zeros(span.offset, span.length).err();
                    let request = request(Operation::Write, span, stream(placement), fua);
                    requests.push((request, stored.map(request::Failure::from)));
                }
            }
            Work::Deallocate { spans } if served.refuses_trim().is_none() => {
                let each = spans.into_iter().map(|span| request(Operation::Trim, span, of, false));
                requests.extend(each.map(|request| (request, None)));
            }
            Work::Flush => {
                let nothing = Span { offset: 0, length: 0 };
                requests.push((request(Operation::Flush, nothing, of, false), None));
            }
            Work::Deallocate { .. } | Work::Format { .. } => {} // the caller formats
        }
        let left = (requests.len() - first) as u32;
        let pending = Pending { ticket, left, failure: None, then };
        if left == 0 {
            self.replier.finish(pending);
        } else {
            locked(&self.replier.pending).insert(tag, pending);
        }
    }

    fn submit(&self, requests: &[(Request, Option<request::Failure>)]) {
        if requests.is_empty() {
            return;
        }
        let mut refused = Vec::new();
        let mut batch = self.session.batch();
        for &(request, failure) in requests {
            if batch.submit(request, failure).is_err() {
                refused.push(request);
            }
        }
        drop(batch);
        for request in refused {
            // The controller has checked the range, so the drive is being shut down.
            let failure = Some(request::Failure::Io);
            self.replier.completed(&Done { request, due: writecliff_base::Nanos::ZERO, failure });
        }
    }

    /// Completes what failed, which the error log records.
    fn fail_failed(&self) {
        let failed = std::mem::take(&mut *locked(&self.replier.failed));
        for (ticket, failure) in failed {
            let reply = self.target.subsystem().complete(ticket, Err(failure));
            self.replier.reply(&reply);
        }
    }
}

fn stream(placement: Placement) -> StreamId {
    match placement {
        Placement::Unstated => StreamId::DEFAULT,
        Placement::Stream(number) | Placement::Identifier(number) => {
            StreamId(number.min(STREAM_MAX))
        }
    }
}
