//! FDP events: NVMe Base Specification 2.1, 5.1.12.1.31 (log page 23h), and the feature that
//! enables them (1Eh, 5.1.25.1.21).
//!
//! Events caused by the host are logged immediately. Those of the controller are taken from the FTL
//! when the log is read and at the end of a step, and have that time. Event 1h, Reclaim Unit Time
//! Limit Exceeded, is also detected late but has the time at which the limit was reached.

use std::collections::VecDeque;

use writecliff_base::Nanos;
use writecliff_base::codec::CodecError;

use writecliff_base::words::{WordReader, WordWriter, damaged};

/// Events of one kind (host or controller) that the log can hold: one 4 KiB page with its header.
pub const LOG_EVENTS: usize = 63;
/// The drive's only namespace.
const NSID: u32 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    NotFullyWritten,
    TimeLimitExceeded,
    ResetModifiedHandles,
    InvalidPlacementId,
    MediaReallocated,
    ImplicitlyModified,
}

impl EventType {
    pub const ALL: [Self; 6] = [
        Self::NotFullyWritten,
        Self::TimeLimitExceeded,
        Self::ResetModifiedHandles,
        Self::InvalidPlacementId,
        Self::MediaReallocated,
        Self::ImplicitlyModified,
    ];

    /// The Event Type field.
    pub fn code(self) -> u8 {
        match self {
            Self::NotFullyWritten => 0x00,
            Self::TimeLimitExceeded => 0x01,
            Self::ResetModifiedHandles => 0x02,
            Self::InvalidPlacementId => 0x03,
            Self::MediaReallocated => 0x80,
            Self::ImplicitlyModified => 0x81,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::NotFullyWritten => "reclaim unit not fully written",
            Self::TimeLimitExceeded => "reclaim unit time limit exceeded",
            Self::ResetModifiedHandles => "controller reset modified handles",
            Self::InvalidPlacementId => "invalid placement identifier",
            Self::MediaReallocated => "media reallocated",
            Self::ImplicitlyModified => "implicitly modified handle",
        }
    }

    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.code() == code)
    }

    pub fn is_of_host(self) -> bool {
        self.code() < 0x80
    }
}

/// One event; fields that its flags mark as invalid are `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FdpEvent {
    pub kind: EventType,
    pub time: Nanos,
    pub placement_id: Option<u16>,
    pub namespace: Option<u32>,
    /// Reclaim unit handle, in the reclaim group that the placement identifier names.
    pub handle: Option<u16>,
    /// Media reallocated: Number of LBAs Moved, FFFFh if more.
    pub blocks_moved: Option<u16>,
}

/// Both event lists, enabled events, and counts of all events, logged or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventLog {
    host: VecDeque<FdpEvent>,
    controller: VecDeque<FdpEvent>,
    /// Indexed by FTL stream, a reclaim unit handle in a reclaim group: bit n enables
    /// `EventType::ALL[n]`. None are enabled at power-up.
    enabled: Vec<u8>,
    /// Reclaim unit handles: FTL streams are numbered group after group.
    reclaim_unit_handles: u16,
    pub(crate) happened: [u64; EventType::ALL.len()],
}

impl EventLog {
    pub(crate) fn new(streams: u16, reclaim_unit_handles: u16) -> Self {
        Self {
            host: VecDeque::new(),
            controller: VecDeque::new(),
            enabled: vec![0; usize::from(streams)],
            reclaim_unit_handles,
            happened: [0; EventType::ALL.len()],
        }
    }

    pub(crate) fn enable(&mut self, handle: u16, kinds: &[EventType], enabled: bool) {
        let bits = kinds.iter().fold(0, |bits, &kind| bits | 1 << kind as u8);
        let set = &mut self.enabled[usize::from(handle)];
        *set = if enabled { *set | bits } else { *set & !bits };
    }

    pub(crate) fn is_enabled(&self, handle: u16, kind: EventType) -> bool {
        self.enabled[usize::from(handle)] >> kind as u8 & 1 == 1
    }

    pub(crate) fn list(&self, of_host: bool) -> Vec<FdpEvent> {
        (if of_host { &self.host } else { &self.controller }).iter().copied().collect()
    }

    pub(crate) fn count(&mut self, kind: EventType, times: u64) {
        self.happened[kind as usize] += times;
    }

    /// Logs an event of an FTL stream if it is enabled there.
    pub(crate) fn about(
        &mut self,
        kind: EventType,
        time: Nanos,
        stream: u16,
        placement_id: Option<u16>,
        blocks_moved: Option<u16>,
    ) {
        if self.is_enabled(stream, kind) {
            let namespace = placement_id.map(|_| NSID);
            let handle = Some(stream % self.reclaim_unit_handles);
            self.push(FdpEvent { kind, time, placement_id, namespace, handle, blocks_moved });
        }
    }

    /// Logs an event that concerns no particular handle, if it is enabled for any handle.
    pub(crate) fn about_all(&mut self, kind: EventType, time: Nanos) {
        let handles = 0..self.enabled.len() as u16;
        if handles.into_iter().any(|handle| self.is_enabled(handle, kind)) {
            let (placement_id, namespace, handle) = (None, None, None);
            self.push(FdpEvent { kind, time, placement_id, namespace, handle, blocks_moved: None });
        }
    }

    fn push(&mut self, event: FdpEvent) {
        let list = if event.kind.is_of_host() { &mut self.host } else { &mut self.controller };
        if list.len() == LOG_EVENTS {
            list.pop_front();
        }
        list.push_back(event);
    }

    pub(crate) fn save(&self, out: &mut WordWriter) {
        for list in [&self.host, &self.controller] {
            out.list(list.iter(), |out, event| {
                out.put(event.kind.code());
                out.put(event.time.0);
                let optional = |field: Option<u16>| field.map_or(0, |field| u64::from(field) + 1);
                out.put(optional(event.placement_id));
                out.put(optional(event.handle));
                out.put(optional(event.blocks_moved));
            });
        }
        out.list(self.enabled.iter(), |out, &bits| out.put(bits));
        self.happened.iter().for_each(|&count| out.put(count));
    }

    pub(crate) fn restore(&mut self, input: &mut WordReader<'_>) -> Result<(), CodecError> {
        for list in [&mut self.host, &mut self.controller] {
            *list = input.list(event)?.into();
        }
        let enabled: Vec<u8> = input.list(WordReader::narrow)?;
        if enabled.len() != self.enabled.len() {
            return Err(damaged());
        }
        self.enabled = enabled;
        for count in &mut self.happened {
            *count = input.get()?;
        }
        Ok(())
    }
}

fn event(input: &mut WordReader<'_>) -> Result<FdpEvent, CodecError> {
    let kind = EventType::from_code(input.narrow()?).ok_or_else(damaged)?;
    let time = Nanos(input.get()?);
    let mut optional =
        || Ok::<_, CodecError>(input.get()?.checked_sub(1).map(|field| field as u16));
    let (placement_id, handle, blocks_moved) = (optional()?, optional()?, optional()?);
    let namespace = placement_id.map(|_| NSID);
    Ok(FdpEvent { kind, time, placement_id, namespace, handle, blocks_moved })
}
