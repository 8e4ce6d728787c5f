//! What a caller reads of a call.

use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

use super::{
    plan::{Plans, TargetName},
    record::Record,
};
use crate::{Cause, Class, NotReplayable, clock};

/// What happened to one call. Made on demand by [`Ledger::report`](crate::Ledger::report); of a
/// call still running it tells so far.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// The target whose outcome the caller got; `None` without a failover, or if nothing was sent.
    pub target: Option<TargetName>,
    /// The model of that target, if it was named.
    pub model: Option<Arc<str>>,
    /// From the first layer to the outcome.
    pub latency: Duration,
    /// From the first layer to the first content of a stream; `None` where no layer below looks for
    /// it: see [`Ledger::saw_first_content`](crate::Ledger::saw_first_content).
    pub first_content: Option<Duration>,
    /// Every attempt in the order of their start, refusals (never sent) included.
    pub attempts: Vec<Attempt>,
    /// All waits of the call.
    pub waited: Duration,
    /// The first target that was given up, and why.
    pub fallback_reason: Option<Fallback>,
}

impl Report {
    /// Requests sent: attempts that were not refused here.
    pub fn sends(&self) -> usize {
        self.attempts
            .iter()
            .filter(|a| a.class != Class::Refused)
            .count()
    }

    /// The latency in whole milliseconds.
    pub fn latency_ms(&self) -> u64 {
        clock::millis(self.latency)
    }

    /// The time to the first content in whole milliseconds.
    pub fn first_content_ms(&self) -> Option<u64> {
        self.first_content.map(clock::millis)
    }

    pub(super) fn of(record: &Record, plans: &Plans) -> Self {
        let end = record.finished.unwrap_or(record.seen);
        let mut attempts: Vec<Attempt> = record
            .attempts
            .iter()
            .map(|a| (a, a.story.as_deref()))
            .map(|(a, story)| Attempt {
                target: plans.of(a.leg).map(|plan| plan.target.clone()),
                start: a.start.saturating_duration_since(record.opened),
                elapsed: a.end.saturating_duration_since(a.start),
                class: a.class,
                status: a.status,
                reason: story.and_then(|s| s.reason.clone()),
                wait: story.and_then(|s| s.wait),
                cause: story.and_then(|s| s.cause),
                not_replayable: story.and_then(|s| s.not_replayable),
            })
            .collect();
        attempts.sort_by_key(|a| a.start);
        let plan = record.served.and_then(|leg| plans.of(leg));
        Self {
            target: plan.map(|p| p.target.clone()),
            model: plan.and_then(|p| p.model.clone()),
            latency: end.saturating_duration_since(record.opened),
            first_content: record
                .first_content
                .map(|at| at.saturating_duration_since(record.opened)),
            attempts,
            waited: record.waited,
            fallback_reason: fallback(record, plans),
        }
    }
}

/// The first leg on a named target that another one followed.
fn fallback(record: &Record, plans: &Plans) -> Option<Fallback> {
    let mut legs = (0..).zip(&record.legs).filter(|(_, leg)| leg.named);
    let (number, first) = legs.next()?;
    legs.next()?;
    Some(Fallback {
        target: plans.of(number)?.target.clone(),
        class: first.last_class?,
        cause: first.trouble().cause,
    })
}

/// One attempt of a call.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Attempt {
    /// Where it went.
    pub target: Option<TargetName>,
    /// When, from the opening of the call.
    pub start: Duration,
    /// How long it took to its response head or error.
    pub elapsed: Duration,
    /// What it gave.
    pub class: Class,
    /// The HTTP status, if there was a response.
    pub status: Option<u16>,
    /// The short reason of its reading.
    pub reason: Option<Cow<'static, str>>,
    /// The wait that followed, if it was sent again.
    pub wait: Option<Duration>,
    /// Why it was not sent again, if somebody wanted to.
    pub cause: Option<Cause>,
    /// What kept the request from being sent twice, where that is the cause.
    pub not_replayable: Option<NotReplayable>,
}

/// A target that was given up.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Fallback {
    /// Its name.
    pub target: TargetName,
    /// The class of its last outcome.
    pub class: Class,
    /// Why it was not asked again, if somebody wanted to.
    pub cause: Option<Cause>,
}

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.target, self.class)?;
        match self.cause {
            // A cause of the same name says nothing more.
            Some(cause) if cause.as_str() != self.class.as_str() => write!(f, " ({cause})"),
            _ => Ok(()),
        }
    }
}
