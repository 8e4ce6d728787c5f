//! What a breaker is in, and why.

use std::{fmt, time::Duration};

/// The state of a breaker.
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
}

impl State {
    /// A stable name in snake case, for logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
            Self::ForcedOpen => "forced_open",
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
    /// The target said that it is down, or a vendor's hint was longer than
    /// [`trip_on_hint`](crate::BreakerConfig::trip_on_hint).
    Held,
    /// Probes failed.
    ProbeFailed,
}

impl TripReason {
    /// A stable name in snake case, for logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Consecutive => "consecutive",
            Self::Held => "held",
            Self::ProbeFailed => "probe_failed",
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
    /// While closed: failures since the last success.
    pub failures_in_a_row: u32,
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
}
