//! FDP events: NVMe Base 2.1, log page 23h (5.1.12.1.31) and feature 1Eh (5.1.25.1.21).
//!
//! Events caused by the host are logged immediately. Controller events are taken from the FTL when
//! the log is read and at the end of a step, and have that time stamp. Event 1h, Reclaim Unit Time
//! Limit Exceeded, is also detected late but has the time when the limit was reached.

use std::collections::VecDeque;

use writecliff_base::{Bytes, Nanos, SECTOR_BYTES, saved};
use writecliff_host_interface::placement::{FdpEvent, FdpEventType};

/// Events of each source (host or controller) that the log can hold: a 4 KiB page.
pub const LOG_EVENTS: usize = 63;
/// Maximum amount of moved data that an event can report: Number of LBAs Moved is `FFFFh`
pub(crate) const MOVED_MAX: Bytes = Bytes(u16::MAX as u64 * SECTOR_BYTES);

/// Both event lists, the enabled events, and counts of all events, logged or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventLog {
    host: VecDeque<FdpEvent>,
    controller: VecDeque<FdpEvent>,
    /// Enabled events by FTL stream, which is a reclaim unit handle in a reclaim group: bit n
    /// enables `FdpEventType::ALL[n]`. No events are enabled at power-up.
    enabled: Vec<u8>,
    reclaim_unit_handles: u16,
    pub(crate) happened: [u64; FdpEventType::ALL.len()],
}

saved! { EventLog { host, controller, [enabled], happened } }

impl EventLog {
    pub(crate) fn new(streams: u16, reclaim_unit_handles: u16) -> Self {
        let enabled = vec![0; usize::from(streams)];
        Self { enabled, reclaim_unit_handles, ..Self::default() }
    }

    pub(crate) fn enable(&mut self, handle: u16, kinds: &[FdpEventType], enabled: bool) {
        let bits = kinds.iter().fold(0, |bits, &kind| bits | 1 << kind as u8);
        let set = &mut self.enabled[usize::from(handle)];
        *set = if enabled { *set | bits } else { *set & !bits };
    }

    pub(crate) fn is_enabled(&self, handle: u16, kind: FdpEventType) -> bool {
        self.enabled[usize::from(handle)] >> kind as u8 & 1 == 1
    }

    pub(crate) fn list(&self, of_host: bool) -> Vec<FdpEvent> {
        (if of_host { &self.host } else { &self.controller }).iter().copied().collect()
    }

    pub(crate) fn count(&mut self, kind: FdpEventType, times: u64) {
        self.happened[kind as usize] += times;
    }

    /// Logs an event of an FTL stream if the event is enabled for the stream.
    pub(crate) fn about(
        &mut self,
        kind: FdpEventType,
        time: Nanos,
        stream: u16,
        placement_id: Option<u16>,
        moved: Option<Bytes>,
    ) {
        if self.is_enabled(stream, kind) {
            let handle = Some(stream % self.reclaim_unit_handles);
            self.push(FdpEvent { kind, time, placement_id, handle, moved });
        }
    }

    /// Logs an event that concerns no particular handle, if it is enabled for any handle.
    pub(crate) fn about_all(&mut self, kind: FdpEventType, time: Nanos) {
        let handles = 0..self.enabled.len() as u16;
        if handles.into_iter().any(|handle| self.is_enabled(handle, kind)) {
            self.push(FdpEvent { kind, time, placement_id: None, handle: None, moved: None });
        }
    }

    fn push(&mut self, event: FdpEvent) {
        let list = if event.kind.is_of_host() { &mut self.host } else { &mut self.controller };
        if list.len() == LOG_EVENTS {
            list.pop_front();
        }
        list.push_back(event);
    }
}
