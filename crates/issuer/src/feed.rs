//! A bounded I/O queue that lets the reader or generator run ahead of the issuing thread.

use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

use crate::io::Io;

const BATCH: usize = 1 << 12;
/// Maximum number of queued batches, which corresponds to about 260,000 I/Os or 12 MB.
const AHEAD: usize = 64;

/// Sends I/Os to an issue, in time order.
pub struct Feeder {
    sender: SyncSender<Vec<Io>>,
    batch: Vec<Io>,
}

/// Receives I/Os from a [`Feeder`].
pub struct Feed {
    receiver: Receiver<Vec<Io>>,
    batch: std::vec::IntoIter<Io>,
}

/// Returns the two ends of a queue; the queue ends when the feeder is dropped.
pub fn feed() -> (Feeder, Feed) {
    let (sender, receiver) = sync_channel(AHEAD);
    let feed = Feed { receiver, batch: Vec::new().into_iter() };
    (Feeder { sender, batch: Vec::with_capacity(BATCH) }, feed)
}

impl Feeder {
    /// Adds an I/O, waiting while the queue is full. Returns `false` once the receiver is dropped.
    pub fn add(&mut self, io: Io) -> bool {
        self.batch.push(io);
        self.batch.len() < BATCH || self.hand_over()
    }

    /// Sends the added I/Os.
    pub fn hand_over(&mut self) -> bool {
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        batch.is_empty() || self.sender.send(batch).is_ok()
    }
}

impl Drop for Feeder {
    fn drop(&mut self) {
        self.hand_over();
    }
}

/// Next I/O of a [`Feed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Io(Io),
    /// No I/O is available yet.
    Nothing,
    Ended,
}

impl Feed {
    pub(crate) fn look(&mut self) -> Next {
        loop {
            if let Some(io) = self.batch.next() {
                return Next::Io(io);
            }
            match self.receiver.try_recv() {
                Ok(batch) => self.batch = batch.into_iter(),
                Err(TryRecvError::Empty) => return Next::Nothing,
                Err(TryRecvError::Disconnected) => return Next::Ended,
            }
        }
    }

    pub(crate) fn wait(&mut self) {
        if self.batch.as_slice().is_empty()
            && let Ok(batch) = self.receiver.recv()
        {
            self.batch = batch.into_iter();
        }
    }
}
