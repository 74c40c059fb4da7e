//! Trace of client requests.

use writecliff_base::{Nanos, StreamId};
use writecliff_host_interface::Operation;

use crate::request::Request;

/// Maximum number of requests in a trace (32 MiB). Further requests are only counted.
pub const TRACED_MAX: usize = 1 << 20;

/// A request as submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traced {
    /// Drive time; if timing is disabled, wall time since the start of serving.
    pub time: Nanos,
    /// First byte.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
    /// Session number.
    pub session: u32,
    /// Stream or placement identifier.
    pub stream: StreamId,
    /// Operation of the request.
    pub operation: Operation,
}

/// Requests since the last call of `take_trace`.
#[derive(Debug, Default)]
pub struct Trace {
    /// Requests in submission order.
    pub requests: Vec<Traced>,
    /// Number of requests dropped because the trace was full.
    pub lost: u64,
}

impl Trace {
    #[inline]
    pub(crate) fn record(&mut self, time: Nanos, session: u32, request: &Request) {
        let &Request { offset, length, stream, operation, .. } = request;
        if self.requests.len() == TRACED_MAX {
            self.lost += 1;
            return;
        }
        // Threads may acquire the lock in a different order than they read the clock.
        let time = self.requests.last().map_or(time, |last| last.time.max(time));
        self.requests.push(Traced { time, offset, length, session, stream, operation });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_takes_is_counted_and_time_never_goes_back() {
        let mut trace = Trace::default();
        let mut request = Request {
            tag: crate::Tag::NONE,
            operation: Operation::Write,
            offset: 4096,
            length: 512,
            stream: StreamId(3),
            durable: false,
            is_zeros: false,
        };
        trace.record(Nanos(7), 5, &request);
        request.operation = Operation::Trim;
        trace.record(Nanos(6), 6, &request);
        let (time, offset, length, stream) = (Nanos(7), 4096, 512, StreamId(3));
        let first =
            Traced { time, offset, length, session: 5, stream, operation: Operation::Write };
        let second = Traced { session: 6, operation: Operation::Trim, ..first };
        assert_eq!(trace.requests, [first, second]);
        for _ in 2..TRACED_MAX + 3 {
            trace.record(Nanos(8), 5, &request);
        }
        assert_eq!((trace.requests.len(), trace.lost), (TRACED_MAX, 3));
    }
}
