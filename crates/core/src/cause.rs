//! Why a leg ended without another send.

use std::{cmp::Ordering, fmt, time::Duration};

/// Why there was no further send on a target. Where several layers stop a call, the strongest
/// cause is kept; they are listed here strongest first, and [`Ord`] agrees: stronger is less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// The request itself is wrong.
    CallerFault,
    /// The target cannot serve anybody.
    TargetDown,
    /// The target cannot serve this request.
    NotHere,
    /// The server said never to send it again.
    ServerForbids,
    /// The body can be read only once.
    NotReplayable,
    /// The server may have done the work, and doing it twice is not allowed.
    MayHaveBeenProcessed,
    /// The server asked for a longer wait than is allowed.
    HintTooLong,
    /// The wait would pass the deadline.
    DeadlineWouldPass,
    /// A budget said no.
    BudgetDenied {
        /// What the call had waited so far.
        waited: Duration,
        /// The wait that was denied.
        next: Duration,
    },
    /// All sends that are allowed were made.
    AttemptsExhausted,
    /// Another target can serve at once.
    OtherTargetFirst,
    /// The service did not become ready again.
    NotReady,
    /// It was turned away here and never sent.
    Refused,
}

impl Cause {
    fn rank(self) -> u8 {
        match self {
            Self::CallerFault => 0,
            Self::TargetDown => 1,
            Self::NotHere => 2,
            Self::ServerForbids => 3,
            Self::NotReplayable => 4,
            Self::MayHaveBeenProcessed => 5,
            Self::HintTooLong => 6,
            Self::DeadlineWouldPass => 7,
            Self::BudgetDenied { .. } => 8,
            Self::AttemptsExhausted => 9,
            Self::OtherTargetFirst => 10,
            Self::NotReady => 11,
            Self::Refused => 12,
        }
    }

    /// A stable name in snake case, for logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CallerFault => "caller_fault",
            Self::TargetDown => "target_down",
            Self::NotHere => "not_here",
            Self::ServerForbids => "server_forbids",
            Self::NotReplayable => "not_replayable",
            Self::MayHaveBeenProcessed => "may_have_been_processed",
            Self::HintTooLong => "hint_too_long",
            Self::DeadlineWouldPass => "deadline_would_pass",
            Self::BudgetDenied { .. } => "budget_denied",
            Self::AttemptsExhausted => "attempts_exhausted",
            Self::OtherTargetFirst => "other_target_first",
            Self::NotReady => "not_ready",
            Self::Refused => "refused",
        }
    }
}

impl PartialOrd for Cause {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Cause {
    /// By rank, then by the figures, so that it agrees with `==`.
    fn cmp(&self, other: &Self) -> Ordering {
        let figures = |c: &Self| match *c {
            Self::BudgetDenied { waited, next } => (waited, next),
            _ => Default::default(),
        };
        self.rank()
            .cmp(&other.rank())
            .then_with(|| figures(self).cmp(&figures(other)))
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BudgetDenied { waited, next } => {
                write!(f, "budget_denied (waited {waited:?}, next wait {next:?})")
            }
            other => f.write_str(other.as_str()),
        }
    }
}
