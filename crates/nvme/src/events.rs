//! Asynchronous events (Base 2.1, 5.1.2): the host's open requests, and pending events.
//!
//! An event of a type is reported once; the next waits until the host has read its log page.

use std::collections::VecDeque;

use crate::status::{Refusal, Status};

/// Asynchronous Event Request Limit: maximum number of open requests per controller.
pub(crate) const LIMIT: usize = 4;
/// Number of event types: three of health, a changed namespace, and the end of a sanitize.
const KINDS: usize = 5;
/// Asynchronous Event Configuration and OAES: Namespace Attribute Notices.
pub(crate) const NAMESPACE_NOTICES: u32 = 1 << 8;
/// Asynchronous Event Configuration: SMART critical warnings.
pub(crate) const SMART_WARNINGS: u32 = 0x3f;

/// An asynchronous event. The value is dword 0 of the completion: from the lowest byte on, the
/// type, the information, and the log page that the host must read before the next such event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Event {
    // SMART / Health Status events.
    Reliability = 0x02_00_01,
    Temperature = 0x02_01_01,
    Spare = 0x02_02_01,
    NamespaceChanged = 0x04_00_02,
    SanitizeCompleted = 0x81_01_06,
}

impl Event {
    fn log_page(self) -> u8 {
        (self as u32 >> 16) as u8
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Events {
    /// Command identifiers of open requests.
    requests: VecDeque<u16>,
    pending: VecDeque<Event>,
    /// Log pages of reported events that the host has not yet read.
    masked: Vec<u8>,
    /// Aborted requests that have not been completed.
    aborted: Vec<u16>,
}

impl Events {
    pub(crate) fn request(&mut self, command_id: u16) -> Result<(), Refusal> {
        if self.requests.len() == LIMIT {
            return Err(Status::ASYNC_LIMIT_EXCEEDED.into());
        }
        self.requests.push_back(command_id);
        Ok(())
    }

    /// Aborts an open request; returns `false` if no request has the identifier.
    pub(crate) fn abort(&mut self, command_id: u16) -> bool {
        let position = self.requests.iter().position(|&open| open == command_id);
        let Some(request) = position.and_then(|at| self.requests.remove(at)) else { return false };
        self.aborted.push(request);
        true
    }

    pub(crate) fn take_aborted(&mut self) -> Vec<u16> {
        std::mem::take(&mut self.aborted)
    }

    /// Adds an event, unless an event of the same type is pending.
    pub(crate) fn raise(&mut self, event: Event) {
        if !self.pending.contains(&event) {
            debug_assert!(self.pending.len() < KINDS, "each kind of event is pending once");
            self.pending.push_back(event);
        }
    }

    /// Records that the host has read a log page without Retain Asynchronous Event.
    pub(crate) fn acknowledge(&mut self, log_page: u8) {
        self.masked.retain(|&page| page != log_page);
        self.pending.retain(|event| event.log_page() != log_page);
    }

    /// Returns the next request that an event completes, with the result.
    pub(crate) fn report(&mut self) -> Option<(u16, u64)> {
        if self.requests.is_empty() {
            return None;
        }
        let is_open = |event: &Event| !self.masked.contains(&event.log_page());
        let at = self.pending.iter().position(is_open)?;
        let event = self.pending.remove(at)?;
        self.masked.push(event.log_page());
        self.requests.pop_front().map(|command_id| (command_id, u64::from(event as u32)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WARM: Event = Event::Temperature;

    #[test]
    fn an_event_waits_for_a_request_and_a_request_for_an_event() {
        let mut events = Events::default();
        events.raise(WARM);
        assert_eq!(events.report(), None);
        events.request(7).unwrap();
        assert_eq!(events.report(), Some((7, 0x02_01_01)));
        events.request(8).unwrap();
        assert_eq!(events.report(), None);
        events.raise(Event::NamespaceChanged);
        assert_eq!(events.report(), Some((8, 0x04_00_02)));
    }

    #[test]
    fn a_type_is_reported_again_only_after_its_log_page_was_read() {
        let mut events = Events::default();
        for command in 0..3 {
            events.request(command).unwrap();
        }
        events.raise(WARM);
        assert!(events.report().is_some());
        events.raise(Event::Spare);
        assert_eq!(events.report(), None);
        events.acknowledge(0x81);
        assert_eq!(events.report(), None);
        events.acknowledge(0x02);
        // The event that this page caused has already notified the host of the second event.
        assert_eq!(events.report(), None);
        events.raise(WARM);
        assert_eq!(events.report(), Some((1, 0x02_01_01)));
    }

    #[test]
    fn requests_are_limited_and_can_be_aborted() {
        let mut events = Events::default();
        for command in 0..LIMIT as u16 {
            events.request(command).unwrap();
        }
        let refused = events.request(9).unwrap_err();
        assert_eq!(refused.status, Status::ASYNC_LIMIT_EXCEEDED);
        assert!(events.abort(2));
        assert!(!events.abort(2));
        assert_eq!(events.take_aborted(), [2]);
        events.request(9).unwrap();
    }
}
