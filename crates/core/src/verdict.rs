//! What a policy says of an outcome.

use std::time::Duration;

use crate::Cause;

/// What a policy says of an outcome. "No opinion" and "no" are different things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No opinion: if nobody has one, the outcome goes to the caller.
    Pass,
    /// Send it again after this wait.
    Retry {
        /// How long to wait first.
        after: Duration,
    },
    /// Do not send it again on this target.
    Stop(Cause),
}

impl Verdict {
    /// Joins two verdicts; the order does not matter. Stop beats Retry beats Pass; of two retries
    /// the later; of two stops the stronger cause.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        use Verdict::{Pass, Retry, Stop};
        match (self, other) {
            (Stop(a), Stop(b)) => Stop(a.min(b)),
            (Stop(c), _) | (_, Stop(c)) => Stop(c),
            (Retry { after: a }, Retry { after: b }) => Retry { after: a.max(b) },
            (Retry { after }, Pass) | (Pass, Retry { after }) => Retry { after },
            (Pass, Pass) => Pass,
        }
    }
}
