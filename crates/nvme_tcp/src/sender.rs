//! Sending half of a connection, which encodes completions and data into bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use writecliff_nvme::{Association, Reply, Status};

use crate::pdu::{self, C2H_DATA, HEADER_BYTES, LAST, RESPONSE, SUCCEEDED, Settings};
use crate::receiver::Receiver;

/// Queue head value if flow control is disabled.
const NO_HEAD: u16 = 0xffff;

/// The sending half of a connection. The encoded bytes must be sent in the order of the calls.
#[derive(Debug)]
pub struct Sender {
    settings: Settings,
    outstanding: Arc<AtomicU32>,
    /// Submission queue size in entries, and the entry that the next command frees.
    entries: u16,
    head: u16,
    flow_control: bool,
}

impl Sender {
    /// Returns the sender for a receiver that has reported connection initialization.
    pub fn new(settings: Settings, receiver: &Receiver) -> Self {
        let outstanding = Arc::clone(&receiver.outstanding);
        Self { settings, outstanding, entries: 1, head: 0, flow_control: true }
    }

    /// Records that the queue is connected, before the completion of Connect is written.
    pub fn connected(&mut self, association: &Association) {
        self.entries = association.entries;
        self.flow_control = association.flow_control;
    }

    /// Appends a completion, preceded by the reply's data if it has any.
    pub fn completion(&mut self, reply: &Reply, out: &mut Vec<u8>) {
        if reply.data.is_empty() {
            self.count();
            self.capsule(reply, out);
        } else {
            self.data(reply, &reply.data, out);
            self.completion_after_data(reply, out);
        }
    }

    /// Appends the completion of a command whose data have been appended; appends nothing if the
    /// last data PDU was also the completion.
    pub fn completion_after_data(&mut self, reply: &Reply, out: &mut Vec<u8>) {
        self.count();
        if !self.data_say(reply) {
            self.capsule(reply, out);
        }
    }

    /// Returns `true` if a command's last data PDU may also be its completion. Without flow
    /// control, the response capsule of a success without a result contains no information.
    fn data_say(&self, reply: &Reply) -> bool {
        !self.flow_control && reply.status == Status::SUCCESS && reply.result == 0
    }

    fn count(&mut self) {
        let before = self.outstanding.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(before > 0, "a command completes once");
        self.head = (self.head + 1) % self.entries.max(1);
    }

    fn capsule(&self, reply: &Reply, out: &mut Vec<u8>) {
        let head = if self.flow_control { self.head } else { NO_HEAD };
        let mut header = [0; HEADER_BYTES];
        header[0] = RESPONSE;
        header[8..].copy_from_slice(&reply.entry(head));
        pdu::begin(out, &mut header, self.settings, 0);
    }

    /// Appends all data of a command, before [`Self::completion_after_data`] with this reply.
    pub fn data(&self, reply: &Reply, data: &[u8], out: &mut Vec<u8>) {
        let mut header = self.header_of_data(reply, data.len() as u32);
        pdu::append(out, &mut header, self.settings, data);
    }

    /// Appends the header for `length` bytes of data that are copied later; returns `false` if the
    /// host uses data digests, which require the data first.
    pub fn data_header(&self, reply: &Reply, length: u32, out: &mut Vec<u8>) -> bool {
        if self.settings.data_digest {
            return false;
        }
        let mut header = self.header_of_data(reply, length);
        pdu::begin(out, &mut header, self.settings, length as usize);
        true
    }

    fn header_of_data(&self, reply: &Reply, length: u32) -> [u8; HEADER_BYTES] {
        debug_assert!(length > 0, "a data PDU without data");
        let mut header = [0; HEADER_BYTES];
        header[0] = C2H_DATA;
        header[1] = if self.data_say(reply) { LAST | SUCCEEDED } else { LAST };
        header[8..10].copy_from_slice(&reply.command_id.to_le_bytes());
        header[16..20].copy_from_slice(&length.to_le_bytes());
        header
    }
}
