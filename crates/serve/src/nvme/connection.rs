//! An NVMe/TCP connection. The connection's thread parses host commands and submits requests to the
//! drive. The thread on which the drive completes a request sends the completion.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use writecliff_base::{Nanos, StreamId};
use writecliff_host_interface::Operation;
use writecliff_nvme::{Association, Outcome, Placement, Span, Subsystem, Ticket, Work};
use writecliff_nvme_tcp::{Command, Limits, Received, Receiver};

use super::drive::SimulatedDrive;
use super::replier::{Compound, Replier};
use super::target::Target;
use crate::input::Input;
use crate::outbox::Outbox;
use crate::request::{self, Done, Replies, Request, Tag, Then};
use crate::served::{Served, Session};
use crate::socket::is_transient;

/// Time limit for a peer to connect its queue.
const CONNECT: Duration = Duration::from_secs(10);
/// Highest stream number of a drive; higher numbers, which are also invalid, are mapped to it.
const STREAM_MAX: u16 = u16::MAX - 1;

struct Connection<'a> {
    target: &'a Target,
    outbox: &'a Outbox,
    replier: Arc<Replier>,
    session: Session,
    receiver: Receiver,
    association: Option<Association>,
    ready: Vec<(Request, Option<request::Failure>)>,
}

impl Target {
    /// Serves a [`crate::Listener`]'s connection until the host leaves or violates the protocol.
    pub fn connection(&self, outbox: &Arc<Outbox>, served: &Served) {
        let replier = Arc::new(Replier::new(outbox, served, self.now_ms()));
        let session = served.session(Arc::clone(&replier) as Arc<dyn Replies>);
        let (target, receiver, ready) = (self, Receiver::new(Limits::default()), Vec::new());
        let mut connection =
            Connection { target, outbox, replier, session, receiver, association: None, ready };
        let _ = connection.run(); // An error ends the connection.
        if let Some(association) = connection.association {
            self.left(association);
        }
    }
}

impl Connection<'_> {
    fn run(&mut self) -> io::Result<()> {
        let (mut input, mut events) = (Input::default(), Vec::new());
        loop {
            // Checked before sending: all replies of an idle drive are already queued.
            let is_idle = self.outbox.is_idle();
            self.fail_failed();
            let is_sent = self.outbox.send_all()?;
            let looks = is_sent && !self.replier.is_reading_much() && self.io_queue().is_some();
            let served = &self.session.served;
            let looked =
                looks.then(|| input.look(&self.outbox.socket, is_idle, Some(served))).flatten();
            let received = looked.unwrap_or_else(|| {
                input.leave();
                self.receive(&mut input, is_idle, is_sent)
            });
            match received {
                Ok(()) => {
                    if self.io_queue().is_some() {
                        input.attend(&self.session.served);
                    }
                    self.replier.last_received.store(self.target.now_ms(), Ordering::Relaxed);
                    self.take(input.bytes(), &mut events)?;
                    input.consume(input.bytes().len());
                }
                Err(error) if is_transient(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Sleeps until the host sends bytes; returns `WouldBlock` if other work is due first.
    fn receive(&self, input: &mut Input, is_idle: bool, is_sent: bool) -> io::Result<()> {
        // An I/O queue without commands needs no bell. Closing the queue shuts the socket down.
        let is_alone = is_idle && is_sent && self.io_queue().is_some();
        if !is_alone {
            // A thread that completes a read after this point sees that this thread is waiting.
            let is_reading_much = self.replier.is_reading_much();
            self.outbox.wants_bell.store(is_reading_much, Ordering::SeqCst);
            let holds = !is_sent || self.replier.is_reading_much();
            if !self.wait(!holds, !is_sent)? || holds {
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
        input.receive(&self.outbox.socket, is_alone)
    }

    /// Returns the connection's queue if it is not an admin queue.
    fn io_queue(&self) -> Option<Association> {
        self.association.filter(|association| association.queue > 0)
    }

    /// Waits for the host or the bell; returns an error after the host's keep-alive timeout.
    fn wait(&self, receive: bool, send: bool) -> io::Result<bool> {
        let timed_out = || io::Error::from(io::ErrorKind::TimedOut);
        let keep_alive_timeout = match self.association {
            None => CONNECT,
            Some(association) => {
                self.target.keep_alive_timeout(association).ok_or_else(timed_out)?
            }
        };
        let bell = Some(&self.outbox.bell);
        let happened = self.outbox.socket.wait(receive, send, bell, Some(keep_alive_timeout))?;
        match self.association {
            None if !happened => return Err(timed_out()),
            Some(Association { queue: 0, .. }) if !happened => self.target.tend(),
            _ => {}
        }
        Ok(happened)
    }

    fn take(&mut self, bytes: &[u8], events: &mut Vec<Received>) -> io::Result<()> {
        let outcome = self.receiver.receive(bytes, events);
        let mut outcomes = self.outcomes(events).into_iter();
        for event in events.drain(..) {
            match event {
                Received::Send(bytes) => self.outbox.push(|out| out.bytes(&bytes)),
                Received::Began(settings) => self.replier.began(settings, &self.receiver),
                Received::Command(command) => match outcomes.next() {
                    Some(outcome) => self.act(outcome, &command.data),
                    None => self.command(&command)?,
                },
            }
        }
        self.submit()?;
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

    /// Executes the commands of an I/O queue under one lock of the subsystem. Commands of other
    /// connections are executed one at a time because each may affect the next.
    fn outcomes(&self, events: &[Received]) -> Vec<Outcome> {
        let Some(association) = self.io_queue() else { return Vec::new() };
        let mut subsystem = self.target.subsystem();
        let commands = events.iter().filter_map(|event| match event {
            Received::Command(command) => Some(command),
            Received::Send(_) | Received::Began(_) => None,
        });
        commands.map(|command| outcome(&mut subsystem, association, command)).collect()
    }

    fn command(&mut self, command: &Command) -> io::Result<()> {
        let Some(association) = self.association else {
            return self.connect(command);
        };
        let outcome = outcome(&mut self.target.subsystem(), association, command);
        self.act(outcome, &command.data);
        Ok(())
    }

    fn act(&mut self, outcome: Outcome, data: &[u8]) {
        match outcome {
            Outcome::Done(reply) => self.replier.reply(&reply),
            Outcome::Held => {}
            Outcome::Work(ticket, work) => self.work(ticket, work, data),
        }
    }

    fn connect(&mut self, command: &Command) -> io::Result<()> {
        if let Some(reply) = command.refusal(0, 0) {
            self.replier.reply(&reply);
            return Err(io::Error::from(io::ErrorKind::InvalidData));
        }
        let (association, reply) = self.target.subsystem().connect(command.request());
        if let Some(association) = association {
            self.receiver.connected(&association);
            self.replier.connected(association);
            self.association = Some(association);
            self.target.joined(association, &self.replier);
        }
        self.replier.reply(&reply);
        Ok(())
    }

    /// Converts a command's work to requests, and stores write data.
    fn work(&mut self, ticket: Ticket, work: Work, data: &[u8]) {
        let (requests, served) = (&mut self.ready, &self.session.served);
        let first = requests.len();
        let request = |operation, span: Span, stream, durable| {
            let tag = Tag::Nvme(ticket, Then::Reply);
            Request { stream, durable, ..Request::new(tag, operation, span.offset, span.length) }
        };
        let of = StreamId::DEFAULT;
        let (mut reading, mut compared) = (0, None);
        match work {
            Work::Read(span) => {
                let read = request(Operation::Read, span, of, false);
                requests.push((Request { tag: Tag::Nvme(ticket, Then::Read), ..read }, None));
                reading = span.length;
            }
            Work::Verify(span) => {
                requests.push((request(Operation::Read, span, of, false), None));
            }
            Work::Compare(span) => {
                requests.push((request(Operation::Read, span, of, false), None));
                compared = Some(data[..span.length as usize].to_vec());
            }
            Work::Write { span, placement, fua } => {
                let stored = self.session.store(span.offset, &data[..span.length as usize]).err();
                requests.push((request(Operation::Write, span, stream(placement), fua), stored));
            }
            Work::WriteZeroes { span, placement, fua, deallocate } => {
                if deallocate && served.refuses_trim().is_none() {
                    requests.push((request(Operation::Trim, span, of, fua), None));
                } else {
                    let stored = self.session.store_zeros(span.offset, span.length).err();
                    let write = request(Operation::Write, span, stream(placement), fua);
                    requests.push((Request { is_zeros: true, ..write }, stored));
                }
            }
            Work::Deallocate(spans) if served.refuses_trim().is_none() => {
                let each = spans.into_iter().map(|span| request(Operation::Trim, span, of, false));
                requests.extend(each.map(|request| (request, None)));
            }
            Work::Flush => {
                let nothing = Span { offset: 0, length: 0 };
                requests.push((request(Operation::Flush, nothing, of, false), None));
            }
            Work::Deallocate(_) => {}
        }
        let made = &mut requests[first..];
        if made.is_empty() {
            self.replier.reply(&ticket.success());
            return;
        }
        self.replier.expect(reading);
        if made.len() > 1 || compared.is_some() {
            let compound = Compound { left: made.len(), failure: None, compared };
            let tag = Tag::Nvme(ticket, Then::Part(self.replier.expect_parts(compound)));
            for (request, _) in made {
                request.tag = tag;
            }
        }
    }

    fn submit(&mut self) -> io::Result<()> {
        for request in self.session.submit(&mut self.ready)? {
            // The controller has checked the range: only a purge of the data can fail the request.
            let failure = Some(request::Failure::Io);
            self.replier.completed(&Done { request, due: Nanos::ZERO, failure });
        }
        Ok(())
    }

    /// Completes failed commands, which are recorded in the error log.
    fn fail_failed(&self) {
        for (ticket, failure) in self.replier.take_failed() {
            let reply = self.target.subsystem().fail(ticket, failure);
            self.replier.reply(&reply);
        }
    }
}

fn outcome(
    subsystem: &mut Subsystem<SimulatedDrive>,
    association: Association,
    command: &Command,
) -> Outcome {
    let Association { controller, queue, .. } = association;
    match command.refusal(controller, queue) {
        Some(reply) => Outcome::Done(reply),
        None => subsystem.submit(controller, queue, command.request()),
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
