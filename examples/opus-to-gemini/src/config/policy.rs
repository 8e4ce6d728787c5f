//! The tables of policies.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::kind::kind;

kind! {
    /// Where idempotency keys come from.
    IdempotencyKeyKind {
        /// Drawn at random, unless the caller brings one.
        #[default]
        Random = "random",
    }
}

/// One key per call, the same on every attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IdempotencyKey {
    /// Whether calls get one.
    pub enabled: bool,
    /// Where it comes from.
    pub kind: IdempotencyKeyKind,
}

kind! {
    /// How retries are bounded.
    BudgetKind {
        /// A share of all calls.
        #[default]
        Ratio = "ratio",
    }
}

/// What all retries together may add.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// Whether retries are bounded at all.
    pub enabled: bool,
    /// How.
    pub kind: BudgetKind,
    /// Retries for each hundred calls, over all targets.
    pub percent: u32,
    /// Retries that are allowed within [`ttl`](Self::ttl) whatever the traffic.
    pub reserve: u32,
    /// How long a call and a retry count, from 1 s to 60 s.
    #[serde(with = "super::duration")]
    pub ttl: Duration,
}

kind! {
    /// How the next target is chosen.
    FailoverKind {
        /// The next one of the chain.
        #[default]
        Ordered = "ordered",
    }
}

kind! {
    /// What becomes of an answer that a vendor's content policy keeps back.
    Refusals {
        /// It comes back as it is: the next vendor would refuse it too, as a rule.
        #[default]
        Return = "return",
        /// The next target is asked, if there is one. Of a stream what has begun stays.
        Next = "next",
    }
}

/// When a call goes on to the next target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Failover {
    /// Whether it does at all; else the first target of the chain is the only one.
    pub enabled: bool,
    /// How the next one is chosen.
    pub kind: FailoverKind,
    /// Sends on a target while a later one is usable, the first included.
    pub sends_while_others: u32,
    /// Sends on the last target, the first included.
    pub sends: u32,
    /// The longest wait on a target while a later one is usable.
    #[serde(with = "super::duration")]
    pub patience: Duration,
    /// How long a target may take to have room for a call.
    #[serde(with = "super::duration")]
    pub ready_within: Duration,
    /// Whether it does when a vendor's content policy keeps the answer back.
    pub refusals: Refusals,
}

kind! {
    /// How waits grow.
    BackoffKind {
        /// They double.
        #[default]
        Exponential = "exponential",
        /// They do not.
        Constant = "constant",
    }
}

/// Waits that grow, each drawn from nothing to its ceiling.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Backoff {
    /// Whether failures without a hint are retried at all.
    pub enabled: bool,
    /// How they grow.
    pub kind: BackoffKind,
    /// The first ceiling.
    #[serde(with = "super::duration")]
    pub base: Duration,
    /// The highest ceiling.
    #[serde(with = "super::duration")]
    pub cap: Duration,
    /// The most that all waits on a target may add up to.
    #[serde(with = "super::duration::or_none")]
    pub max_total_wait: Option<Duration>,
}

kind! {
    /// How a server's hint is taken.
    RetryAfterKind {
        /// One hint holds all calls to the target.
        #[default]
        Shared = "shared",
        /// Each call waits for itself.
        PerCall = "per_call",
    }
}

/// Waits that a server asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetryAfter {
    /// Whether they are waited out at all.
    pub enabled: bool,
    /// How.
    pub kind: RetryAfterKind,
    /// The longest wait that a server may ask for.
    #[serde(with = "super::duration")]
    pub longest_wait: Duration,
    /// The longest time that one hint holds a target, where it holds all calls.
    #[serde(with = "super::duration")]
    pub max_hold: Duration,
}

kind! {
    /// What opens a breaker.
    BreakerKind {
        /// Failures in a row.
        Consecutive = "consecutive",
        /// Failures in a row, or so many of the last calls.
        #[default]
        ConsecutiveOrOfLast = "consecutive_or_of_last",
    }
}

kind! {
    /// Whose calls find out whether a target is back.
    Probes {
        /// Small ones of the pipeline's own, so that no user waits for one; where they are
        /// spawned, see [`Pipeline::probes`](crate::pipeline::Pipeline::probes).
        #[default]
        Own = "own",
        /// Those of users.
        Users = "users",
    }
}

/// A target's breaker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Breaker {
    /// Whether there is one.
    pub enabled: bool,
    /// What opens it.
    pub kind: BreakerKind,
    /// So many failures in a row.
    pub failures: u32,
    /// So many failures among the last [`of_last`](Self::of_last) calls.
    pub bad: u32,
    /// How many calls are looked back on.
    pub of_last: u32,
    /// None of them older than this.
    #[serde(with = "super::duration")]
    pub within: Duration,
    /// How long it stays open the first time.
    #[serde(with = "super::duration")]
    pub open: Duration,
    /// How long it stays open at most; it doubles each time that probes fail.
    #[serde(with = "super::duration")]
    pub max_open: Duration,
    /// So many probes in a row close it.
    pub close_after: u32,
    /// For so long after that only a rising share of calls is admitted; `"0s"` for none.
    #[serde(with = "super::duration")]
    pub ramp: Duration,
    /// Whose calls find out whether the target is back.
    pub probes: Probes,
    /// How often one of the pipeline's own does.
    #[serde(with = "super::duration")]
    pub probe_every: Duration,
    /// An attempt that the deadline cuts off counts as a failure once it took this long.
    #[serde(with = "super::duration")]
    pub abandoned_after: Duration,
}

kind! {
    /// How answers are read.
    VerdictKind {
        /// By the tables of the target's vendor.
        #[default]
        Vendor = "vendor",
    }
}

/// Reading of vendors' answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Verdict {
    /// Whether bodies are read; else the status alone decides.
    pub enabled: bool,
    /// How.
    pub kind: VerdictKind,
}

kind! {
    /// What a call does that finds no room.
    InFlightKind {
        /// It waits, at most as long as a target may take to be ready, then goes on.
        #[default]
        Wait = "wait",
    }
}

/// Calls at a target at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InFlight {
    /// Whether they are bounded; how far, the targets say.
    pub enabled: bool,
    /// What a call does that finds no room.
    pub kind: InFlightKind,
}

kind! {
    /// What the limit of an attempt is measured to.
    TimeoutKind {
        /// To the last byte of a plain answer, to the head of a stream.
        #[default]
        Whole = "whole_answer",
    }
}

/// The time limit of each attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Timeout {
    /// Whether attempts are limited.
    pub enabled: bool,
    /// What the limit is measured to.
    pub kind: TimeoutKind,
}

kind! {
    /// When a stream is given to the caller.
    Commit {
        /// With its first content.
        #[default]
        FirstContent = "first_content",
        /// When it is complete: no partial answer reaches a caller, and another target can still
        /// serve.
        Complete = "complete",
    }
}

/// Streams, held until there is something in them and checked to their end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Stream {
    /// Whether they are; else they pass as they come.
    pub enabled: bool,
    /// When one is given to the caller.
    pub commit: Commit,
    /// The longest silence: nothing at all, not even a comment.
    #[serde(with = "super::duration")]
    pub idle: Duration,
    /// From sending an attempt to the end of its stream.
    #[serde(with = "super::duration::or_none")]
    pub total: Option<Duration>,
    /// The most bytes that are held before the first content.
    pub most_held: u32,
    /// The longest answer, in bytes, that is held until it is complete.
    pub most_answer: u32,
}
