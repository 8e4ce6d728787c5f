//! What an attempt gave, in eight classes.

use std::fmt;

/// What an attempt gave. Each class says whether to send again here, whether to go to the next
/// target, and what a circuit breaker hears.
///
/// | class | here again | next target | breaker counts |
/// |---|---|---|---|
/// | Success | – | – | success |
/// | Throttled | after the hint or backoff | when the wait does not fit | rate-limited |
/// | Transient | with backoff | after the leg gave up | failure |
/// | TargetDown | never | at once | trips |
/// | NotHere | never | at once | ignored |
/// | CallerFault | never | never | ignored |
/// | Refused | never | at once, free | not seen |
/// | Cancelled | – | – | ignored |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// It worked.
    Success,
    /// The target asks for fewer requests: 429, 503 with a hint.
    Throttled,
    /// The target failed in a way that may pass: 5xx, timeouts, resets, unknown errors.
    Transient,
    /// The target cannot serve anybody: bad key, credit gone, model gone. Only a vendor table says so.
    TargetDown,
    /// This target cannot serve this request, another may. Only a vendor table says so.
    NotHere,
    /// The request itself is wrong: other 4xx, content policy.
    CallerFault,
    /// It was turned away here and never sent (see [`Refused`](crate::Refused)), or this process had
    /// no file descriptor left to send it.
    Refused,
    /// The caller left before there was an outcome.
    Cancelled,
}

impl Class {
    /// A stable name in snake case, for logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Throttled => "throttled",
            Self::Transient => "transient",
            Self::TargetDown => "target_down",
            Self::NotHere => "not_here",
            Self::CallerFault => "caller_fault",
            Self::Refused => "refused",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether the same target may do better in a while: Throttled or Transient.
    pub fn may_pass(self) -> bool {
        matches!(self, Self::Throttled | Self::Transient)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
