//! The figures that the machine runs on, checked and in whole nanoseconds.

use tower_spillway_core::Chance;

const SECOND: u64 = 1_000_000_000;

/// Growth and jitter are kept in thousandths, so that no open time depends on rounding.
pub(crate) const THOUSAND: u32 = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    /// That run of failures trips; at least 1.
    pub(crate) failures: u32,
    pub(crate) open_time: u64,
    pub(crate) max_open_time: u64,
    /// The open time grows by this for each failed reopening; at least 1000 thousandths.
    pub(crate) growth: u32,
    /// The most that is added to an open time, in thousandths of it.
    pub(crate) jitter: u32,
    /// Probes at once; at least 1.
    pub(crate) concurrent: u32,
    /// Successful probes that close; at least 1.
    pub(crate) close_after: u32,
    /// Failed probes that reopen; at least 1.
    pub(crate) reopen_after: u32,
    /// The most that a hint can hold it open.
    pub(crate) max_hold: u64,
}

impl Rules {
    /// The open time after one more failed reopening.
    pub(super) fn next_open_time(&self, time: u64) -> u64 {
        scale(time, self.growth).min(self.max_open_time)
    }

    /// Jitter comes after the cap: a fleet that has reached it must still spread.
    pub(super) fn jittered(&self, time: u64, chance: &Chance) -> u64 {
        if self.jitter == 0 {
            return time;
        }
        time.saturating_add(chance.up_to(scale(time, self.jitter)))
    }

    pub(super) fn bounded(&self, hint: u64) -> u64 {
        hint.min(self.max_hold)
    }

    /// How long a probe keeps its slot: the open time, at least 1 s. A hint that held the breaker
    /// open for longer says nothing about how long a call takes.
    pub(super) fn lease(&self, open_time: u64) -> u64 {
        open_time.max(SECOND)
    }
}

fn scale(time: u64, thousandths: u32) -> u64 {
    let scaled = u128::from(time) * u128::from(thousandths) / u128::from(THOUSAND);
    u64::try_from(scaled).unwrap_or(u64::MAX)
}
