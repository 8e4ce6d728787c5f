//! A call that was turned away here and never sent.

use std::{error::Error, fmt, time::Duration};

use crate::error::find;

/// Who turned the call away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// The circuit breaker is open.
    Open,
    /// The circuit breaker is half-open and all its probes are out.
    ProbesBusy,
    /// The circuit breaker was opened by hand.
    ForcedOpen,
    /// The circuit breaker has just closed and lets a growing share of calls through.
    Ramping,
    /// The server asked everybody to wait.
    Held,
    /// The service was not ready in time.
    NotReady,
    /// Too many calls are in flight.
    Overloaded,
    /// Every target refused.
    AllTargets,
}

impl Refusal {
    /// A stable name in snake case, for logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "breaker_open",
            Self::ProbesBusy => "breaker_probes_busy",
            Self::ForcedOpen => "breaker_forced_open",
            Self::Ramping => "breaker_ramping",
            Self::Held => "held",
            Self::NotReady => "not_ready",
            Self::Overloaded => "overloaded",
            Self::AllTargets => "all_targets_refused",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "the circuit breaker is open",
            Self::ProbesBusy => "the circuit breaker is half-open and its probes are out",
            Self::ForcedOpen => "the circuit breaker was opened by hand",
            Self::Ramping => "the circuit breaker lets only a share of calls through yet",
            Self::Held => "the server asked to wait",
            Self::NotReady => "the service was not ready in time",
            Self::Overloaded => "too many calls are in flight",
            Self::AllTargets => "every target refused",
        })
    }
}

/// The error of a call that was turned away before it was sent.
///
/// It is read as [`Class::Refused`](crate::Class::Refused): never retried here, free to go to the
/// next target, and no failure of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    refusal: Refusal,
    detail: Option<&'static str>,
    retry_in: Option<Duration>,
}

impl Refused {
    /// A refusal without a time to come back.
    pub fn new(refusal: Refusal) -> Self {
        Self {
            refusal,
            detail: None,
            retry_in: None,
        }
    }

    /// When it is worth coming back, from now.
    #[must_use]
    pub fn retry_in(mut self, wait: Option<Duration>) -> Self {
        self.retry_in = wait;
        self
    }

    /// What led to it, for instance the rule that tripped a breaker.
    #[must_use]
    pub fn because(mut self, detail: Option<&'static str>) -> Self {
        self.detail = detail;
        self
    }

    /// Who turned the call away.
    pub fn refusal(&self) -> Refusal {
        self.refusal
    }

    /// What led to it, if said.
    pub fn detail(&self) -> Option<&'static str> {
        self.detail
    }

    /// When it is worth coming back, from the moment of the refusal; `None` if not known.
    pub fn wait(&self) -> Option<Duration> {
        self.retry_in
    }

    /// The refusal in an error or its sources.
    pub fn find<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e Self> {
        find(error)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "refused: {}", self.refusal)?;
        if let Some(detail) = self.detail {
            write!(f, " ({detail})")?;
        }
        if let Some(wait) = self.retry_in {
            write!(f, ", retry in {wait:?}")?;
        }
        Ok(())
    }
}

impl Error for Refused {}
