//! The pure function behind a retrying layer, and what it is told.

use std::{sync::Arc, time::Duration};

use crate::{Outcome, Verdict};

/// Decides whether an outcome is worth another send.
///
/// A policy is a pure function of the call's [`History`] and the [`Outcome`]; it keeps no counter
/// of its own. Closures are policies:
///
/// ```
/// use std::time::Duration;
/// use tower_spillway_core::{Class, RetryLayer, Verdict};
///
/// let layer = RetryLayer::new(|past: &_, outcome: &_| {
///     # let (past, outcome): (&tower_spillway_core::History, &tower_spillway_core::Outcome<'_, u8>) = (past, outcome);
///     match outcome.class() {
///         Class::Transient if past.sends < 3 => Verdict::Retry { after: Duration::from_millis(50) },
///         _ => Verdict::Pass,
///     }
/// });
/// # let _ = layer;
/// ```
///
/// It is not asked about a success, nor where the class alone forbids another send here
/// (TargetDown, NotHere, CallerFault, Refused, or a hint that says never). What it asks for is
/// still bounded by the limits of the leg and of the call, the deadline and the budgets.
pub trait Policy<Res> {
    /// Judges one outcome.
    fn judge(&self, past: &History, outcome: &Outcome<'_, Res>) -> Verdict;
}

impl<Res, F> Policy<Res> for F
where
    F: Fn(&History, &Outcome<'_, Res>) -> Verdict,
{
    fn judge(&self, past: &History, outcome: &Outcome<'_, Res>) -> Verdict {
        self(past, outcome)
    }
}

impl<Res, P: Policy<Res> + ?Sized> Policy<Res> for Arc<P> {
    fn judge(&self, past: &History, outcome: &Outcome<'_, Res>) -> Verdict {
        (**self).judge(past, outcome)
    }
}

/// What happened on this leg so far, the outcome at hand included. Small, `Copy`, taken outside
/// any lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct History {
    /// Requests sent on this leg, the first included.
    pub sends: u32,
    /// Outcomes of this class without a hint since the last hinted wait, this one included; each
    /// class keeps its own. A schedule's step is `streak - 1`. 0 if this outcome has a hint.
    pub streak: u32,
    /// The last wait that a schedule chose; `None` at first and after a wait that a hint set.
    pub last_wait: Option<Duration>,
    /// All waits of this leg so far.
    pub waited: Duration,
    /// Time since the call was opened.
    pub elapsed: Duration,
    /// Time until the deadline; `None` without one.
    pub remaining: Option<Duration>,
    /// Whether a request that may have been processed may be sent again.
    pub resend_safe: bool,
    /// Whether another target could serve this call now.
    pub more_targets: bool,
}

/// Limits that travel with a layer's advice. `None` means "no opinion"; of two opinions the
/// stricter holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Sends, the first included.
    pub max_attempts: Option<u32>,
    /// The longest wait that a server may ask for, compared with the bare hint; equal passes.
    pub longest_hint: Option<Duration>,
    /// The sum of all waits; equal passes.
    pub max_total_wait: Option<Duration>,
}

impl Limits {
    /// Sends a leg where no layer sets a limit, the first included.
    pub const DEFAULT_ATTEMPTS: u32 = 3;
    /// The longest hint waited out where no layer sets a limit.
    pub const DEFAULT_LONGEST_HINT: Duration = Duration::from_secs(60);

    /// The stricter of each pair.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        fn stricter<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
            match (a, b) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            }
        }
        Self {
            max_attempts: stricter(self.max_attempts, other.max_attempts),
            longest_hint: stricter(self.longest_hint, other.longest_hint),
            max_total_wait: stricter(self.max_total_wait, other.max_total_wait),
        }
    }
}
