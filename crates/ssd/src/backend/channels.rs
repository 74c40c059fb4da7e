//! Channels between controller and dies.

use writecliff_base::{Nanos, saved};
use writecliff_flash::Geometry;

use crate::Recorder;

/// The channels. Each channel serves requests in arrival order, so the time until which it is busy
/// is its complete state.
#[derive(Clone, Debug)]
pub(crate) struct Channels {
    of_die: Vec<u16>,
    busy_until: Vec<Nanos>,
}

saved! { Channels { [busy_until] } }

impl Channels {
    pub(crate) fn new(geometry: &Geometry) -> Self {
        Self {
            of_die: (0..geometry.dies).map(|die| geometry.channel_of(die) as u16).collect(),
            busy_until: vec![Nanos::ZERO; geometry.shape.channels as usize],
        }
    }

    /// Returns the channel of a die.
    #[inline]
    pub(crate) fn of(&self, die: usize) -> u16 {
        self.of_die[die]
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

    /// Drops all transfers, so that the channels are free at time `now`.
    pub(crate) fn clear(&mut self, now: Nanos) {
        self.busy_until.fill(now);
    }

    /// Returns the time when all channels are free.
    pub(crate) fn all_free_at(&self) -> Nanos {
        self.busy_until.iter().copied().fold(Nanos::ZERO, Nanos::max)
    }
}
