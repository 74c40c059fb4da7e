//! State of one controller, which each connected host has (dynamic model, Base 2.1, 3.1.3).

use std::collections::BTreeSet;

use writecliff_base::Nanos;

use crate::drive::Identity;
use crate::events::{Event, Events, NAMESPACE_NOTICES};
use crate::logs::kelvin;
use crate::page::milliseconds;

pub(crate) const QUEUE_ENTRIES: u16 = 1024;

// Controller Configuration and Controller Status (Base 2.1, 3.1.4.5 and 3.1.4.6).
const ENABLE: u32 = 1;
const READY: u32 = 1;
const FATAL: u32 = 1 << 1;
const SHUTDOWN_COMPLETE: u32 = 2 << 2;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    Io,
    Discovery,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) nqn: String,
    pub(crate) id: [u8; 16],
}

/// Features with controller scope (Base 2.1, 5.1.25.1).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Features {
    pub(crate) arbitration: u32,
    pub(crate) workload_hint: u32,
    /// Over and under composite temperature thresholds in kelvin.
    pub(crate) over: u16,
    pub(crate) under: u16,
    pub(crate) error_recovery: u32,
    /// Write Atomicity Normal; bit 0 is Disable Normal (DN).
    pub(crate) write_atomicity: u32,
    pub(crate) async_events: u32,
    pub(crate) keep_alive_ms: u32,
    /// Number of I/O queues requested by the host; `None` before the request.
    pub(crate) queues: Option<u16>,
    /// Timestamp set by the host in milliseconds, and the drive's time when it was set.
    pub(crate) timestamp: Option<(u64, Nanos)>,
}

impl Features {
    /// Returns the default features. A discovery controller has no temperature.
    pub(crate) fn new(kind: Kind, identity: &Identity) -> Self {
        let warning = identity.warning_temperature.filter(|_| kind == Kind::Io);
        Self { over: warning.map_or(u16::MAX, kelvin), ..Self::default() }
    }

    /// Returns the timestamp for a time on the drive's clock.
    pub(crate) fn timestamp_of(&self, time: Nanos) -> u64 {
        let (base, set) = self.timestamp.unwrap_or((0, Nanos::ZERO));
        let at = if time >= set {
            base.saturating_add(milliseconds(time - set))
        } else {
            base.saturating_sub(milliseconds(set - time))
        };
        at & ((1 << 48) - 1)
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Controller {
    pub(crate) id: u16,
    pub(crate) kind: Kind,
    pub(crate) host: Host,
    pub(crate) configuration: u32,
    pub(crate) status: u32,
    pub(crate) features: Features,
    pub(crate) events: Events,
    pub(crate) namespace_changed: bool,
    pub(crate) queues: BTreeSet<u16>,
    /// SMART critical warnings that have already been reported.
    pub(crate) warned: u8,
}

impl Controller {
    pub(crate) fn new(id: u16, kind: Kind, host: Host, features: Features) -> Self {
        Self { id, kind, host, features, ..Self::default() }
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.status & READY != 0 && self.status & FATAL == 0
    }

    /// Sets Controller Configuration and returns the resulting change.
    pub(crate) fn configure(&mut self, value: u32) -> Change {
        let was_ready = self.is_ready();
        let (was, is) = (self.configuration & ENABLE != 0, value & ENABLE != 0);
        let notification = |configuration: u32| configuration >> 14 & 3; // SHN
        let shutdown = notification(value) != 0 && notification(self.configuration) == 0;
        self.configuration = value;
        if was && !is {
            self.status = 0;
            self.events = Events::default();
            self.queues.clear();
            return if was_ready { Change::Reset } else { Change::None };
        }
        if !was && is {
            let can = is_supported(value);
            self.status = if can { READY } else { FATAL };
            return if can { Change::Enabled } else { Change::None };
        }
        if shutdown {
            self.status |= SHUTDOWN_COMPLETE;
            return Change::Shutdown;
        }
        Change::None
    }

    /// Raises an event because another controller has changed the namespace.
    pub(crate) fn notice_namespace(&mut self) {
        self.namespace_changed = true;
        if self.features.async_events & NAMESPACE_NOTICES != 0 {
            self.events.raise(Event::NamespaceChanged);
        }
    }

    /// Raises events for new SMART critical warnings.
    pub(crate) fn notice_warnings(&mut self, warnings: u8) {
        let new = warnings & !self.warned & self.features.async_events as u8;
        self.warned = warnings;
        for bit in 0..u8::BITS {
            if new >> bit & 1 == 1 {
                self.events.raise(match bit {
                    0 => Event::Spare,
                    1 => Event::Temperature,
                    _ => Event::Reliability,
                });
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    None,
    Enabled,
    Reset,
    Shutdown,
}

/// Returns `true` if the controller can be enabled with these values: the NVM command set alone or
/// all command sets in CAP, 4 KiB pages, round-robin arbitration, and queue entries of 64 and 16
/// bytes (or 0, if the host has not set the entry sizes yet).
fn is_supported(configuration: u32) -> bool {
    let field = |low: u32, high: u32| configuration >> low & ((1 << (high - low + 1)) - 1);
    matches!(field(4, 6), 0 | 6)
        && field(7, 10) == 0
        && field(11, 13) == 0
        && matches!(field(16, 19), 0 | 6)
        && matches!(field(20, 23), 0 | 4)
}
