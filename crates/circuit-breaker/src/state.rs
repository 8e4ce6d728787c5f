//! What a breaker is in, and why.

use std::{fmt, time::Duration};

/// The state of a breaker.
///
/// [`Breaker::is_refusing`](crate::Breaker::is_refusing) says what matters to whoever chooses a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum State {
    /// Calls pass.
    Closed,
    /// Calls are refused until the open time is over.
    Open,
    /// A bounded number of calls pass as probes.
    HalfOpen,
    /// Calls are refused until somebody says otherwise.
    ForcedOpen,
    /// Calls pass and nothing is heard of them.
    Disabled,
    /// Calls pass and are counted, and no rule opens it.
    MetricsOnly,
}

impl State {
    /// Whether every call is refused in this state. Half-open refuses too, while probes of the
    /// breaker's own find out: see [`Breaker::is_refusing`](crate::Breaker::is_refusing).
    pub fn is_refusing(self) -> bool {
        matches!(self, Self::Open | Self::ForcedOpen)
    }

    /// A stable name in snake case, for logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
            Self::ForcedOpen => "forced_open",
            Self::Disabled => "disabled",
            Self::MetricsOnly => "metrics_only",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What opened a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TripReason {
    /// A run of failures with no success between.
    Consecutive,
    /// The share of failed calls in a time, or their number.
    Rate,
    /// The share of failed calls among the last ones, or their number.
    RateOfLast,
    /// The share of slow calls.
    Slow,
    /// Calls took longer than they used to while the target was healthy.
    Brownout,
    /// The target said that it is down, or a vendor's hint was longer than
    /// [`trip_on_hint`](crate::BreakerConfig::trip_on_hint).
    Held,
    /// Probes failed.
    ProbeFailed,
    /// Somebody.
    ByHand,
}

impl TripReason {
    /// A stable name in snake case, for logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Consecutive => "consecutive",
            Self::Rate => "rate",
            Self::RateOfLast => "rate_of_last",
            Self::Slow => "slow",
            Self::Brownout => "brownout",
            Self::Held => "held",
            Self::ProbeFailed => "probe_failed",
            Self::ByHand => "by_hand",
        }
    }
}

impl fmt::Display for TripReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A breaker at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// The state. An open breaker whose open time is over shows as half-open.
    pub state: State,
    /// Counts the changes of state. The result of a call that was admitted in an earlier
    /// generation is not heard.
    pub generation: u64,
    /// What opened it; `None` while closed or forced open.
    pub reason: Option<TripReason>,
    /// The rest of the open time; `None` while it is not open.
    pub retry_in: Option<Duration>,
    /// The rest of the time in which only a share of calls is admitted; `None` outside of it.
    pub ramping_for: Option<Duration>,
    /// While closed: failures since the last success.
    pub failures_in_a_row: u32,
    /// While closed: calls that the first rule over a time or over the last calls looks back on.
    pub calls: u64,
    /// Those among them that the rule counts: failed, or slow.
    pub bad_calls: u64,
    /// A call that takes longer is slow; `None` if no rule asks, or none knows yet.
    pub slow_over: Option<Duration>,
    /// While half-open: probes that are out, without those whose lease ran out.
    pub probes_out: usize,
    /// While half-open: probes that succeeded.
    pub probes_succeeded: u32,
    /// While half-open: probes that failed.
    pub probes_failed: u32,
    /// How often it went from half-open back to open since it was last closed.
    pub reopenings: u32,
    /// How often it opened since it was made or reset.
    pub trips: u64,
    /// Probes that a [`Prober`](crate::Prober) sent, which are no user's call.
    pub own_probes: u64,
    /// Those of them that were good.
    pub own_probes_good: u64,
}
