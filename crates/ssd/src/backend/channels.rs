//! Channels between controller and dies.

use writecliff_base::{Nanos, saved};
use writecliff_flash::Geometry;

use crate::Recorder;

/// The channels. Each serves requests in order of arrival, so the end of its work is its state.
#[derive(Clone, Debug)]
pub(crate) struct Channels {
    pub of_die: Vec<u16>,
    pub busy_until: Vec<Nanos>,
}

saved! { Channels { [busy_until] } }

impl Channels {
    pub(crate) fn new(geometry: &Geometry) -> Self {
        Self {
            of_die: (0..geometry.dies).map(|die| geometry.channel_of(die) as u16).collect(),
            busy_until: vec![Nanos::ZERO; geometry.shape.channels as usize],
        }
    }

    /// Uses the die's channel for `duration` as soon as it is free, and returns the end time.
    #[inline]
    pub(crate) fn take(&mut self, die: usize, now: Nanos, duration: Nanos) -> Nanos {
        let busy_until = &mut self.busy_until[self.of_die[die] as usize];
        *busy_until = (*busy_until).max(now) + duration;
        *busy_until
    }

    /// Blocks new transfers on all channels for `duration`.
    pub(crate) fn stop<R: Recorder>(&mut self, now: Nanos, duration: Nanos, recorder: &mut R) {
        for (channel, busy_until) in self.busy_until.iter_mut().enumerate() {
            let from = (*busy_until).max(now);
            *busy_until = from + duration;
            recorder.channel_stopped(channel as u16, from, *busy_until);
        }
    }
}
