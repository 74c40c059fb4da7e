//! From completions and data to bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use writecliff_nvme::{Association, Reply};

use crate::handshake::Settings;
use crate::pdu::{self, C2H_DATA, HEADER_BYTES, LAST, RESPONSE};
use crate::receiver::Receiver;

/// Head of a submission queue whose host wants no flow control.
const NO_HEAD: u16 = 0xffff;

/// The sending half of a connection. Its bytes must be sent in the order in which they were made.
#[derive(Debug)]
pub struct Sender {
    settings: Settings,
    outstanding: Arc<AtomicU32>,
    /// Entries of the submission queue, and the one that the next command frees.
    entries: u16,
    head: u16,
    flow_control: bool,
}

impl Sender {
    /// The half that belongs to a receiver which has reported that the connection began.
    pub fn new(settings: Settings, receiver: &Receiver) -> Self {
        let outstanding = receiver.outstanding();
        Self { settings, outstanding, entries: 1, head: 0, flow_control: true }
    }

    /// The queue is connected; to be called before the completion of Connect is made.
    pub fn connected(&mut self, association: &Association) {
        self.entries = association.entries;
        self.flow_control = association.flow_control;
    }

    /// Appends a completion, after the data of the reply if it has any.
    pub fn completion(&mut self, reply: &Reply, out: &mut Vec<u8>) {
        if !reply.data.is_empty() {
            self.data(reply.command_id, &reply.data, out);
        }
        self.outstanding.fetch_sub(1, Ordering::Relaxed);
        self.head = (self.head + 1) % self.entries.max(1);
        let head = if self.flow_control { self.head } else { NO_HEAD };
        let mut header = [0; HEADER_BYTES];
        header[0] = RESPONSE;
        header[8..].copy_from_slice(&reply.entry(head));
        pdu::begin(out, &mut header, self.settings.digests(), 1, 0);
    }

    /// Appends all data of a command; its completion must follow.
    pub fn data(&self, command_id: u16, data: &[u8], out: &mut Vec<u8>) {
        self.begin_data(command_id, data.len() as u32, out);
        out.extend_from_slice(data);
        if self.settings.data_digest {
            out.extend_from_slice(&crc32c::crc32c(data).to_le_bytes());
        }
    }

    /// Appends what comes before `length` bytes of data, for data that are copied later; `false`
    /// if the host wants a data digest, which needs the data first.
    pub fn data_header(&self, command_id: u16, length: u32, out: &mut Vec<u8>) -> bool {
        if self.settings.data_digest {
            return false;
        }
        self.begin_data(command_id, length, out);
        true
    }

    fn begin_data(&self, command_id: u16, length: u32, out: &mut Vec<u8>) {
        let mut header = [0; HEADER_BYTES];
        header[0] = C2H_DATA;
        header[1] = LAST;
        header[8..10].copy_from_slice(&command_id.to_le_bytes());
        header[16..20].copy_from_slice(&length.to_le_bytes());
        let alignment = usize::from(self.settings.alignment);
        pdu::begin(out, &mut header, self.settings.digests(), alignment, length as usize);
    }
}
