//! The figures that the machine runs on, checked and in whole nanoseconds.

use std::num::NonZeroU64;

use tower_spillway_core::Chance;

use super::{
    Nanos,
    window::{Counts, EPOCHS},
};
use crate::state::TripReason;

const SECOND: u64 = 1_000_000_000;

/// Growth and jitter are kept in thousandths, so that no open time depends on rounding.
pub(crate) const THOUSAND: u32 = 1000;

/// Shares are kept in billionths.
pub(crate) const BILLION: u32 = 1_000_000_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    /// That run of failures trips; 0 for none.
    pub(crate) failures: u32,
    /// Asked in order, after the run.
    pub(crate) windows: Vec<WindowRule>,
    /// The times that the rules look back on, each once.
    pub(crate) spans: Vec<u64>,
    pub(crate) brownout: Option<BrownoutRule>,
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
    /// For so long after closing only a share of calls is admitted; 0 for none.
    pub(crate) ramp: u64,
}

/// A rule over what was heard in a time or of the last calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WindowRule {
    /// Which of [`Rules::spans`] it looks back on.
    pub(crate) span: usize,
    /// Only the last so many calls.
    pub(crate) last: Option<u32>,
    pub(crate) bad: Bad,
    pub(crate) most: Most,
    pub(crate) reason: TripReason,
}

/// What a rule counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bad {
    /// Failed or rate-limited.
    Failed,
    /// Took longer than so many nanoseconds.
    Slow(u64),
    /// Failed, or took longer than so many times the limit that was learnt.
    Brownout { times: u32 },
}

/// When a rule trips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Most {
    /// At so many.
    Number(u64),
    /// At that share in billionths, of at least so many calls.
    Share { billionths: u32, min_calls: u64 },
}

impl Most {
    pub(super) fn reached(self, counts: Counts) -> bool {
        match self {
            Self::Number(most) => counts.bad >= most,
            Self::Share {
                billionths,
                min_calls,
            } => {
                counts.calls >= min_calls
                    && counts.bad > 0
                    && u128::from(counts.bad) * u128::from(BILLION)
                        >= u128::from(counts.calls) * u128::from(billionths)
            }
        }
    }
}

/// How a baseline of latency is learnt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BrownoutRule {
    /// Which of [`Rules::windows`] says whether the target is suspect.
    pub(crate) window: usize,
    /// So many slow or failed calls in it make the target suspect.
    pub(crate) suspect: u64,
    /// The baseline is this share of calls, in billionths.
    pub(crate) quantile: u32,
    /// A call is slow above so many thousandths of the baseline.
    pub(crate) margin: u32,
    /// Calls to learn from before the rule acts.
    pub(crate) learn: u64,
}

/// An epoch that is never over.
pub(crate) const ENDLESS: NonZeroU64 = NonZeroU64::MAX;

/// How far a closed period is that began at `since`; a clock that went back is at its beginning.
#[inline]
pub(crate) fn age(since: Nanos, now: Nanos) -> u64 {
    u64::try_from(now.saturating_sub(since)).unwrap_or(0)
}

impl Rules {
    /// How long an epoch of a span is: [`ENDLESS`] for a span without end, so that all of a closed
    /// period is one.
    pub(crate) fn width(&self, span: usize) -> NonZeroU64 {
        match self.spans.get(span) {
            Some(&u64::MAX) => ENDLESS,
            span => {
                NonZeroU64::new(span.map_or(1, |span| span / EPOCHS)).unwrap_or(NonZeroU64::MIN)
            }
        }
    }

    /// The epoch of a moment in a closed period that began at `since`.
    pub(crate) fn epoch(&self, span: usize, since: Nanos, now: Nanos) -> u64 {
        age(since, now) / self.width(span)
    }

    /// A call is slow for some rule of fixed figures above this.
    pub(super) fn slow_over(&self) -> Option<u64> {
        let slow = self.windows.iter().filter_map(|rule| match rule.bad {
            Bad::Slow(over) => Some(over),
            Bad::Failed | Bad::Brownout { .. } => None,
        });
        slow.min()
    }

    /// Whether it matters how long a call took.
    pub(crate) fn timed(&self) -> bool {
        self.brownout.is_some() || self.slow_over().is_some()
    }

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

    /// Whether a call is let through while the admitted share grows from a tenth to all of them,
    /// which it reaches at `end`.
    pub(crate) fn ramp_admits(&self, end: Nanos, now: Nanos, chance: &Chance) -> bool {
        let left = u64::try_from(end.saturating_sub(now)).unwrap_or(0);
        let left = left.min(self.ramp);
        let withheld = u128::from(left) * 900 / u128::from(self.ramp.max(1));
        u128::from(chance.up_to(999)) < 1000 - withheld
    }
}

pub(super) fn scale(time: u64, thousandths: u32) -> u64 {
    let scaled = u128::from(time) * u128::from(thousandths) / u128::from(THOUSAND);
    u64::try_from(scaled).unwrap_or(u64::MAX)
}
