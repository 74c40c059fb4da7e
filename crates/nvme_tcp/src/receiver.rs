//! Receiving half of a connection, which decodes bytes into commands.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use writecliff_nvme::command::ENTRY_BYTES;
use writecliff_nvme::{Association, Entry, Reply, Request, Status};

use crate::fault::{Fatal, Fault};
use crate::pdu::{self, Settings, u16_at, u32_at};
use crate::sgl::{self, Data};

/// Memory limits of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum length of in-capsule data. Admin queues must accept 8192 bytes.
    pub in_capsule: u32,
    /// Maximum data length of a PDU from the host.
    pub pdu_data: u32,
    /// Limit on the bytes requested at a time; the data of a larger command are requested alone.
    pub asked_for: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { in_capsule: 8192, pdu_data: 256 << 10, asked_for: 4 << 20 }
    }
}

/// A command with all data that the host sends for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Submission queue entry.
    pub entry: [u8; ENTRY_BYTES],
    /// Data from the host, received in the capsule or after R2T PDUs.
    pub data: Vec<u8>,
    /// Size of the host's buffer in bytes.
    pub buffer: u32,
    /// Status used by the transport to reject the command; `None` if the command is accepted.
    pub refused: Option<Status>,
}

impl Command {
    /// Returns the command in the form that the subsystem executes.
    pub fn request(&self) -> Request<'_> {
        Request { entry: Entry(&self.entry), data: &self.data, buffer: self.buffer }
    }

    /// Returns the completion of a command that the transport rejects.
    pub fn refusal(&self, controller: u16, queue: u16) -> Option<Reply> {
        let command_id = Entry(&self.entry).command_id();
        self.refused.map(|status| Reply { status, ..Reply::new(controller, queue, command_id) })
    }
}

/// Event that results from received bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// The connection is initialized, and a `Sender` with these settings can be created.
    Began(Settings),
    /// Bytes to send to the host.
    Send(Vec<u8>),
    /// A command whose data have arrived.
    Command(Command),
}

/// A command whose data have been requested.
#[derive(Debug)]
struct Transfer {
    entry: [u8; ENTRY_BYTES],
    data: Vec<u8>,
    length: u32,
    is_damaged: bool,
}

/// The receiving half of a connection.
#[derive(Debug)]
pub struct Receiver {
    limits: Limits,
    settings: Option<Settings>,
    /// Bytes received so far of an incomplete PDU.
    partial: Vec<u8>,
    /// Transfers in progress, by transfer tag.
    transfers: Vec<Option<Transfer>>,
    /// Commands whose data will be requested once the limit allows it, with their data lengths.
    waiting: VecDeque<([u8; ENTRY_BYTES], u32)>,
    asked_for: u32,
    /// Number of commands that are received but not completed, shared with the sending half.
    pub(crate) outstanding: Arc<AtomicU32>,
    entries: u32,
}

impl Receiver {
    /// Returns the receiver of a new connection.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            settings: None,
            partial: Vec::new(),
            transfers: Vec::new(),
            waiting: VecDeque::new(),
            asked_for: 0,
            outstanding: Arc::default(),
            entries: 1, // Connect alone
        }
    }

    /// Records that the queue is connected and accepts as many commands as it has entries.
    pub fn connected(&mut self, association: &Association) {
        self.entries = u32::from(association.entries);
    }

    /// Returns `true` if the host has sent an incomplete PDU or has not yet sent requested data.
    pub fn is_in_progress(&self) -> bool {
        !self.partial.is_empty() || self.asked_for > 0
    }

    /// Appends the events of any number of received bytes. An error ends the connection.
    pub fn receive(&mut self, mut bytes: &[u8], received: &mut Vec<Received>) -> Result<(), Fatal> {
        while !bytes.is_empty() {
            if self.partial.is_empty()
                && let Some(length) = self.length(bytes)?
                && bytes.len() >= length
            {
                let (pdu, rest) = bytes.split_at(length);
                self.take(pdu, received)?;
                bytes = rest;
                continue;
            }
            let header_bytes = self.partial.len();
            let length = match header_bytes {
                0..pdu::COMMON_BYTES => pdu::COMMON_BYTES,
                _ => u32_at(&self.partial, 4) as usize,
            };
            let (more, rest) = bytes.split_at(bytes.len().min(length - header_bytes));
            self.partial.extend_from_slice(more);
            bytes = rest;
            if self.length(&self.partial)?.is_some_and(|length| self.partial.len() == length) {
                let pdu = std::mem::take(&mut self.partial);
                self.take(&pdu, received)?;
            }
        }
        Ok(())
    }

    /// Returns the length of the PDU that starts with `bytes`, once the common header is complete.
    /// An overlong PDU is rejected before it is received.
    fn length(&self, bytes: &[u8]) -> Result<Option<usize>, Fatal> {
        let Some(&common) = bytes.first_chunk::<{ pdu::COMMON_BYTES }>() else { return Ok(None) };
        match self.check(common) {
            Ok(()) => Ok(Some(u32_at(&common, 4) as usize)),
            Err(fault) => Err(Fatal::new(fault, &common)),
        }
    }

    fn check(&self, common: [u8; pdu::COMMON_BYTES]) -> Result<(), Fault> {
        let (kind, flags, header) = (common[0], common[1], common[2]);
        let (start, length) = (usize::from(common[3]), u32_at(&common, 4) as usize);
        let (expected, most) = match kind {
            pdu::IC_REQUEST => (pdu::INITIALIZE_BYTES, 0),
            pdu::H2C_TERMINATE => (pdu::HEADER_BYTES, 0),
            pdu::COMMAND => (pdu::CAPSULE_BYTES, self.limits.in_capsule),
            pdu::H2C_DATA => (pdu::HEADER_BYTES, self.limits.pdu_data),
            _ => return Err(Fault::Header(0)),
        };
        if (kind == pdu::IC_REQUEST) != self.settings.is_none() {
            return Err(Fault::Sequence);
        }
        if usize::from(header) != expected {
            return Err(Fault::Header(2));
        }
        if kind == pdu::H2C_TERMINATE {
            let fits = (expected..=expected + pdu::QUOTED_BYTES).contains(&length);
            return if fits { Ok(()) } else { Err(Fault::Header(4)) };
        }
        let Settings { header_digest, data_digest, .. } = self.settings.unwrap_or_default();
        if (flags & pdu::HEADER_DIGEST != 0) != header_digest {
            return Err(Fault::Header(1));
        }
        let header_end = expected + if header_digest { pdu::DIGEST_BYTES } else { 0 };
        if length == header_end && kind != pdu::H2C_DATA {
            return Ok(());
        }
        let trailer = if data_digest { pdu::DIGEST_BYTES } else { 0 };
        if (flags & pdu::DATA_DIGEST != 0) != data_digest {
            return Err(Fault::Header(1));
        }
        if start < header_end || !start.is_multiple_of(4) {
            return Err(Fault::Header(3));
        }
        if length <= start + trailer {
            return Err(Fault::Header(4));
        }
        if length - start - trailer > most as usize {
            return Err(if most == 0 { Fault::Header(4) } else { Fault::DataLimit });
        }
        Ok(())
    }

    fn take(&mut self, pdu: &[u8], received: &mut Vec<Received>) -> Result<(), Fatal> {
        debug_assert_eq!(pdu.len(), u32_at(pdu, 4) as usize, "not a whole PDU");
        self.dispatch(pdu, received).map_err(|fault| Fatal::new(fault, pdu))
    }

    fn dispatch(&mut self, pdu: &[u8], received: &mut Vec<Received>) -> Result<(), Fault> {
        match pdu[0] {
            pdu::IC_REQUEST => {
                let settings = Settings::requested(pdu)?;
                self.settings = Some(settings);
                received.push(Received::Send(settings.response(self.limits.pdu_data)));
                received.push(Received::Began(settings));
                Ok(())
            }
            pdu::H2C_TERMINATE => Err(Fault::Terminated(u16_at(pdu, 8))),
            kind => {
                let (data, is_damaged) = self.verified(pdu)?;
                if kind == pdu::COMMAND {
                    self.capsule(pdu, data, is_damaged, received)
                } else {
                    self.data(pdu, data, is_damaged, received)
                }
            }
        }
    }

    /// Verifies a PDU's digests; returns its data, and `true` if the data are damaged.
    fn verified<'a>(&self, pdu: &'a [u8]) -> Result<(&'a [u8], bool), Fault> {
        let header = usize::from(pdu[2]);
        let Settings { header_digest, data_digest, .. } = self.settings.unwrap_or_default();
        if header_digest {
            let sent = u32_at(pdu, header);
            if crc32c::crc32c(&pdu[..header]) != sent {
                return Err(Fault::HeaderDigest(sent));
            }
        }
        if pdu.len() == header + if header_digest { pdu::DIGEST_BYTES } else { 0 } {
            return Ok((&[], false));
        }
        let end = pdu.len() - if data_digest { pdu::DIGEST_BYTES } else { 0 };
        let data = &pdu[usize::from(pdu[3])..end];
        Ok((data, data_digest && crc32c::crc32c(data) != u32_at(pdu, end)))
    }

    fn capsule(
        &mut self,
        pdu: &[u8],
        data: &[u8],
        is_damaged: bool,
        received: &mut Vec<Received>,
    ) -> Result<(), Fault> {
        let Some(&entry) = pdu[pdu::COMMON_BYTES..].first_chunk::<ENTRY_BYTES>() else {
            return Err(Fault::Header(2));
        };
        if self.outstanding.fetch_add(1, Ordering::Relaxed) >= self.entries {
            return Err(Fault::Sequence); // The queue has no room for the command.
        }
        let mut command = Command { entry, data: Vec::new(), buffer: 0, refused: None };
        match sgl::data(Entry(&entry), data.len()) {
            Ok(Data::None) => {}
            Ok(Data::ToHost(length)) => command.buffer = length,
            Ok(Data::InCapsule(length)) => {
                command.buffer = length;
                command.data = data[..length as usize].to_vec();
                command.refused = is_damaged.then_some(Status::TRANSIENT_TRANSPORT);
            }
            Ok(Data::FromHost(length)) => {
                self.waiting.push_back((entry, length));
                self.ask(received);
                return Ok(());
            }
            Err(status) => command.refused = Some(status),
        }
        received.push(Received::Command(command));
        Ok(())
    }

    /// Requests the data of waiting commands (R2T), within the limit.
    fn ask(&mut self, received: &mut Vec<Received>) {
        while let Some(&(entry, length)) = self.waiting.front() {
            if self.asked_for > 0 && self.asked_for + length > self.limits.asked_for {
                return;
            }
            self.waiting.pop_front();
            self.asked_for += length;
            debug_assert!(self.asked_for == length || self.asked_for <= self.limits.asked_for);
            let free = self.transfers.iter().position(Option::is_none);
            let tag = free.unwrap_or(self.transfers.len());
            debug_assert!(u16::try_from(tag).is_ok(), "a transfer tag has 16 bits");
            if free.is_none() {
                self.transfers.push(None);
            }
            let data = Vec::with_capacity(length as usize);
            self.transfers[tag] = Some(Transfer { entry, data, length, is_damaged: false });
            let mut header = [0; pdu::HEADER_BYTES];
            header[0] = pdu::READY_TO_TRANSFER;
            header[8..10].copy_from_slice(&entry[2..4]);
            header[10..12].copy_from_slice(&(tag as u16).to_le_bytes());
            header[16..20].copy_from_slice(&length.to_le_bytes());
            let mut out = Vec::new();
            pdu::begin(&mut out, &mut header, self.settings.unwrap_or_default(), 0);
            received.push(Received::Send(out));
        }
    }

    /// Receives requested data, which must arrive in order.
    fn data(
        &mut self,
        pdu: &[u8],
        data: &[u8],
        is_damaged: bool,
        received: &mut Vec<Received>,
    ) -> Result<(), Fault> {
        let tag = usize::from(u16_at(pdu, 10));
        let slot = self.transfers.get_mut(tag).ok_or(Fault::Header(10))?;
        let transfer = slot.as_mut().ok_or(Fault::Header(10))?;
        if pdu[8..10] != transfer.entry[2..4] {
            return Err(Fault::Header(8));
        }
        let (offset, length) = (u32_at(pdu, 12) as usize, u32_at(pdu, 16) as usize);
        if length != data.len() {
            return Err(Fault::Header(16));
        }
        if offset != transfer.data.len() || length > transfer.length as usize - offset {
            return Err(Fault::DataRange);
        }
        transfer.data.extend_from_slice(data);
        transfer.is_damaged |= is_damaged;
        let is_whole = transfer.data.len() == transfer.length as usize;
        if is_whole != (pdu[1] & pdu::LAST != 0) {
            return Err(Fault::Sequence);
        }
        if is_whole && let Some(Transfer { entry, data, length, is_damaged }) = slot.take() {
            debug_assert!(self.asked_for >= length && data.len() == length as usize);
            self.asked_for -= length;
            let refused = is_damaged.then_some(Status::TRANSIENT_TRANSPORT);
            received.push(Received::Command(Command { entry, data, buffer: length, refused }));
            self.ask(received);
        }
        Ok(())
    }
}
