//! Sessions: each session is the request queue of one client.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLockWriteGuard};

use writecliff_contents::Contents;
use writecliff_host_interface::Operation;

use super::{Batch, Served, locked};
use crate::core::Client;
use crate::request::{Failure, Refusal, Replies, Request};

impl Served {
    /// Opens a session that sends its replies to `replies`, after any power cut in progress. Panics
    /// if the simulator has panicked, because only earlier sessions were severed.
    pub fn session(&self, replies: Arc<dyn Replies>) -> Session {
        let _core = self.core();
        self.shared.sessions.fetch_add(1, Ordering::Relaxed);
        let number = self.shared.next_session.fetch_add(1, Ordering::Relaxed);
        let epoch = locked(&self.shared.open_sessions).push(Arc::downgrade(&replies));
        let client = Client { number, replies };
        Session { served: self.clone(), client, epoch, stored: AtomicU64::new(NOTHING) }
    }
}

/// Request queue of one client. Dropping a session does not cancel outstanding requests.
pub struct Session {
    pub(crate) served: Served,
    client: Client,
    /// Number of power cuts before the session.
    epoch: u64,
    /// Number of purges before the first data that are stored but not submitted.
    stored: AtomicU64,
}

const NOTHING: u64 = u64::MAX;

impl Session {
    /// Stores the data of a write that will be submitted.
    pub fn store(&self, offset: u64, data: &[u8]) -> Result<(), Failure> {
        Ok(self.powered()?.write(offset, data)?)
    }

    /// Stores zeros, like [`Self::store`].
    pub(crate) fn store_zeros(&self, offset: u64, length: u64) -> Result<(), Failure> {
        Ok(self.powered()?.deallocate(offset, length)?)
    }

    /// Returns the contents, or an error if the power was cut since the start of the session.
    fn powered(&self) -> Result<RwLockWriteGuard<'_, Contents>, Failure> {
        let contents = self.served.contents();
        if !self.has_power() {
            return Err(Failure::Io);
        }
        if self.served.shared.is_read_only.load(Ordering::Relaxed) {
            return Err(Failure::WriteProtected);
        }
        let purges = self.served.shared.purges.load(Ordering::Relaxed);
        self.stored.fetch_min(purges, Ordering::Relaxed);
        Ok(contents)
    }

    fn has_power(&self) -> bool {
        locked(&self.served.shared.open_sessions).epoch == self.epoch
    }

    /// Submits requests to the drive and returns the rejected requests. If the drive is shut down
    /// or without power, the error `ConnectionAborted` closes the connection without a reply, so
    /// that clients reconnect and repeat their requests. Any error reply would be treated as a
    /// media error by file systems.
    pub(crate) fn submit(
        &self,
        requests: &mut Vec<(Request, Option<Failure>)>,
    ) -> io::Result<Vec<Request>> {
        let (mut refused, mut has_stopped) = (Vec::new(), false);
        if requests.is_empty() {
            return Ok(refused);
        }
        let mut batch = self.batch();
        for (request, failure) in requests.drain(..) {
            match batch.submit(request, failure) {
                Ok(()) => {}
                Err(Refusal::Stopped) => has_stopped = true,
                Err(_) => refused.push(request),
            }
        }
        drop(batch);
        if has_stopped { Err(io::ErrorKind::ConnectionAborted.into()) } else { Ok(refused) }
    }

    /// Starts a batch of newly arrived requests. The drive is locked until the batch is dropped,
    /// which also sends the replies to completed requests.
    pub fn batch(&self) -> SessionBatch<'_> {
        SessionBatch { session: self, batch: self.served.locked() }
    }
}

impl Drop for SessionBatch<'_> {
    fn drop(&mut self) {
        self.session.stored.store(NOTHING, Ordering::Relaxed);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.served.shared.sessions.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Requests of a session that are submitted together.
pub struct SessionBatch<'a> {
    session: &'a Session,
    batch: Batch<'a>,
}

impl SessionBatch<'_> {
    /// Submits a request whose data are stored, or could not be stored because of `failure`. In the
    /// latter case, the drive still executes the request, but the request completes with that
    /// failure. A trim also frees the data in its range.
    pub fn submit(&mut self, request: Request, failure: Option<Failure>) -> Result<(), Refusal> {
        let arrived = self.batch.arrived;
        if !self.session.has_power() {
            return Err(Refusal::Stopped);
        }
        if let Some(refusal) = self.batch.core().refusal(&request) {
            return Err(refusal);
        }
        if request.operation == Operation::Write {
            let purges = self.session.served.shared.purges.load(Ordering::Relaxed);
            if self.session.stored.load(Ordering::Relaxed) < purges {
                return Err(Refusal::Purged);
            }
            let core = self.batch.core();
            core.writes += 1;
            if core.planned.is_at_write(core.writes) && self.session.served.cut(core).is_ok() {
                return Err(Refusal::Stopped);
            }
        }
        let changes = matches!(request.operation, Operation::Write | Operation::Trim);
        let mut failure = failure;
        if changes && self.batch.core().drive.is_read_only() {
            failure = Some(Failure::WriteProtected);
        } else if request.operation == Operation::Trim {
            let freed = self.batch.served.store_zeros(request.offset, request.length);
            failure = failure.or(freed.err().map(Failure::from));
        }
        let client = &self.session.client;
        self.batch.core().submit(client, request, arrived, failure);
        Ok(())
    }
}
