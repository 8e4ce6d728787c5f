//! What goes into a machine and comes out of it.

use std::num::NonZeroU64;

use super::Nanos;
use crate::state::{State, TripReason};

/// The right to one call. A result counts only in the generation that admitted its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) generation: u64,
    /// Which probe of its half-open period, if it is one.
    pub(crate) probe: Option<NonZeroU64>,
}

impl From<u64> for Ticket {
    fn from(generation: u64) -> Self {
        Self {
            generation,
            probe: None,
        }
    }
}

/// A call is not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Denied {
    pub(crate) why: Why,
    /// When it is worth coming back; `None` if not known.
    pub(crate) until: Option<Nanos>,
    pub(crate) reason: Option<TripReason>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    Open,
    ProbesBusy,
    ForcedOpen,
    Ramping,
}

impl Denied {
    pub(crate) const FORCED: Self = Self {
        why: Why::ForcedOpen,
        until: None,
        reason: None,
    };

    pub(crate) fn open(until: Nanos, reason: TripReason) -> Self {
        Self {
            why: Why::Open,
            until: Some(until),
            reason: Some(reason),
        }
    }

    pub(crate) fn ramping(end: Nanos) -> Self {
        Self {
            why: Why::Ramping,
            until: Some(end),
            reason: None,
        }
    }
}

/// What a breaker hears of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Success,
    /// With what the server asked for, in nanoseconds; 0 for nothing.
    Failure {
        hint: u64,
    },
    RateLimited {
        hint: u64,
    },
    /// Trips at once, for so long.
    Held {
        time: u64,
    },
    /// Another attempt was faster: a slow result.
    Lost,
    /// Says nothing about the target.
    Ignored,
}

/// A change of state, with what led to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transition {
    pub(crate) from: State,
    pub(crate) to: State,
    pub(crate) generation: u64,
    pub(crate) reason: Option<TripReason>,
    /// How long it will be open.
    pub(crate) open_for: Option<u64>,
    /// The calls that the rule saw, or the probes that ended in the period that is over.
    pub(crate) calls: u64,
    /// Those among them that it counted: failed or slow ones.
    pub(crate) bad: u64,
}
