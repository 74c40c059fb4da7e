//! Derives I/Os from block layer events.
//!
//! On a drive with requests, an I/O lasts from its issue to the driver (D) to its completion (C). A
//! device without requests (RAID, LVM) has only bios, which start when they are queued (Q).

use writecliff_tracefs::{BlockEvent, EventKind, Operation as BlockOperation, Request, Requests};

use crate::number::SECTOR_BYTES;
use crate::record::{NO_RESPONSE, Operation, Record};
use crate::sink::Sink;

/// Number of bios without a request after which the device is assumed to have no requests.
const BIOS_MAX: usize = 4096;
/// Offset of the times in requests, where 0 means "unknown"; traces start at 0.
const LATER_NS: u64 = 1;

/// Events of several devices.
#[derive(Default)]
pub(crate) struct Pairing {
    devices: Vec<Option<Device>>,
}

struct Device {
    requests: Requests,
    /// Device type; `None` while the type is unknown and the first events are buffered.
    has_requests: Option<bool>,
    waiting: Vec<BlockEvent>,
}

impl Pairing {
    /// Adds an event of device number `volume`; events must be added in time order.
    pub(crate) fn add(&mut self, volume: u32, event: &BlockEvent, to: &mut Sink) {
        let at = volume as usize;
        if self.devices.len() <= at {
            self.devices.resize_with(at + 1, || None);
        }
        let device = self.devices[at].get_or_insert_with(|| Device {
            requests: Requests::new(0, u64::MAX),
            has_requests: None,
            waiting: Vec::new(),
        });
        let mut event = *event;
        event.time_ns = event.time_ns.saturating_add(LATER_NS);
        device.add(&event);
        device.give(volume, to);
    }

    /// Passes on the I/Os that are still in progress.
    pub(crate) fn finish(&mut self, to: &mut Sink) {
        for (volume, device) in self.devices.iter_mut().enumerate() {
            if let Some(device) = device {
                let requests = device.has_requests.unwrap_or(false);
                device.decide(requests);
                device.requests.finish();
                device.give(volume as u32, to);
            }
        }
        self.devices.clear();
    }
}

impl Device {
    fn add(&mut self, event: &BlockEvent) {
        match (self.has_requests, event.kind) {
            (Some(true), EventKind::BioQueue) => {}
            (Some(_), _) => self.requests.add(event),
            (None, EventKind::Get | EventKind::Issue) => {
                self.decide(true);
                self.requests.add(event);
            }
            (None, _) => {
                self.waiting.push(*event);
                if self.waiting.len() >= BIOS_MAX {
                    self.decide(false);
                }
            }
        }
    }

    fn decide(&mut self, has_requests: bool) {
        self.has_requests = Some(has_requests);
        for event in std::mem::take(&mut self.waiting) {
            if !has_requests || event.kind != EventKind::BioQueue {
                self.requests.add(&event);
            }
        }
    }

    fn give(&mut self, volume: u32, to: &mut Sink) {
        for request in self.requests.take() {
            if let Err(reason) = give(&request, volume, to) {
                to.skip(reason, false);
            }
        }
    }
}

fn give(request: &Request, volume: u32, to: &mut Sink) -> Result<(), &'static str> {
    let operation = match request.event.operation {
        BlockOperation::Read => Operation::Read,
        BlockOperation::Write => Operation::Write,
        BlockOperation::Discard => Operation::Discard,
        BlockOperation::Flush => Operation::Flush,
        BlockOperation::Other => return Err("command that transfers no data"),
    };
    let begin = if request.issue_ns == 0 { request.event.time_ns } else { request.issue_ns };
    let (mut offset, mut length) = (0, 0);
    if operation != Operation::Flush {
        offset = request.event.sector.checked_mul(SECTOR_BYTES).ok_or("address too large")?;
        length = SECTOR_BYTES * u64::from(request.event.sectors);
    }
    let mut record = Record::new(to.since_begin(begin)?, operation, offset, length);
    if request.complete_ns != 0 {
        let response = request.complete_ns.saturating_sub(begin);
        record.response_ns = i64::try_from(response).unwrap_or(NO_RESPONSE);
    }
    (record.volume, record.process) = (volume, request.event.name);
    to.push(&record)
}
