//! The handle of one breaker.

use std::{fmt, sync::Arc, time::Duration};

use tokio::time::Instant;
use tower_spillway_core::{InvalidConfig, Ledger, Refusal, Refused, TargetName, clock};

use crate::{
    cell::Cell,
    config::{BreakerConfig, Checked, nanos},
    machine::{Denied, Heard, Nanos, Ticket, Transition, Why},
    permit::Permit,
    state::{Snapshot, State},
};

/// A handle to the state of one breaker: to look at it, and to open or close it by hand.
///
/// [`CircuitBreakerLayer::breaker`](crate::CircuitBreakerLayer::breaker) gives the handle of a
/// target; [`new`](Self::new) makes one to share between layers.
///
/// # Clone
///
/// Clones share the state.
#[derive(Clone)]
pub struct Breaker(Arc<Inner>);

struct Inner {
    cell: Cell,
    target: Option<TargetName>,
    /// What the cell counts from.
    origin: Instant,
    config: Checked,
}

impl Breaker {
    /// A breaker of its own, for
    /// [`CircuitBreakerLayer::with_breaker`](crate::CircuitBreakerLayer::with_breaker). The name
    /// is for events only.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the setting that is out of bounds.
    pub fn new(
        target: impl Into<TargetName>,
        config: BreakerConfig,
    ) -> Result<Self, InvalidConfig> {
        Ok(Self::checked(Some(target.into()), config.check()?))
    }

    pub(crate) fn checked(target: Option<TargetName>, config: Checked) -> Self {
        Self(Arc::new(Inner {
            cell: Cell::new(config.rules),
            target,
            origin: clock::now(),
            config,
        }))
    }

    /// The target's name; `None` for the breaker of calls that name none.
    pub fn target(&self) -> Option<&TargetName> {
        self.0.target.as_ref()
    }

    /// The state now. Looking changes nothing: an open breaker whose open time is over shows as
    /// half-open, and becomes so with the next call.
    pub fn state(&self) -> State {
        self.0.cell.state(|| self.nanos(clock::now()))
    }

    /// The state and its figures now. Looking changes nothing.
    pub fn snapshot(&self) -> Snapshot {
        let now = self.nanos(clock::now());
        let view = self.0.cell.view(now);
        Snapshot {
            state: view.state,
            generation: view.generation,
            reason: view.reason,
            retry_in: view.until.map(|until| between(now, until)),
            failures_in_a_row: view.run,
            probes_out: view.out,
            probes_succeeded: view.successes,
            probes_failed: view.failures,
            reopenings: view.reopenings,
            trips: view.trips,
        }
    }

    /// Refuses every call until [`force_close`](Self::force_close) or [`reset`](Self::reset). No
    /// open time ends it, and what calls under way bring back is not heard.
    pub fn force_open(&self) {
        let change = self.0.cell.change(|machine| machine.force_open());
        self.report(change);
    }

    /// Closes, whatever it was in; it may open again as usual. Open times start again at the
    /// first. Nothing changes where it is closed already.
    pub fn force_close(&self) {
        let change = self.0.cell.change(|machine| machine.force_close());
        self.report(change);
    }

    /// Makes it as new: closed, all counts at zero, results of calls under way not heard.
    pub fn reset(&self) {
        let change = self.0.cell.change(|machine| machine.reset());
        self.report(Some(change));
    }

    // -- for the service ----------------------------------------------------------------------

    pub(crate) fn config(&self) -> &Checked {
        &self.0.config
    }

    /// A permit for one call, or the refusal.
    pub(crate) fn acquire(&self, ledger: Option<&Ledger>) -> Result<Permit, Refused> {
        // Only a layer above, which speaks through the ledger, can cut a call off.
        let started = ledger.map(Ledger::now);
        let mut seen = started;
        let now = || self.nanos(*seen.get_or_insert_with(clock::now));
        let (admitted, change) = self.0.cell.acquire(now);
        self.report(change);
        match admitted {
            Ok(ticket) => Ok(Permit::new(
                self.clone(),
                ticket,
                ledger.cloned().zip(started),
            )),
            Err(denied) => Err(self.refusal(denied, seen)),
        }
    }

    /// Whether any call would be refused now. Changes nothing.
    pub(crate) fn refuses(&self) -> Option<Denied> {
        self.0.cell.refuses(|| self.nanos(clock::now()))
    }

    /// The error of a refusal, and its event.
    pub(crate) fn refusal(&self, denied: Denied, now: Option<Instant>) -> Refused {
        let wait = denied
            .until
            .map(|until| between(self.nanos(now.unwrap_or_else(clock::now)), until));
        let refusal = match denied.why {
            Why::Open => Refusal::Open,
            Why::ProbesBusy => Refusal::ProbesBusy,
            Why::ForcedOpen => Refusal::ForcedOpen,
        };
        let reason = denied.reason.map(|reason| reason.as_str());
        tracing::debug!(
            spillway.target = self.target().map(TargetName::as_str),
            spillway.refusal = refusal.as_str(),
            spillway.reason = reason,
            spillway.retry_in_ms = wait.map(millis),
            "call refused"
        );
        Refused::new(refusal).retry_in(wait).because(reason)
    }

    pub(crate) fn settle(&self, ticket: Ticket, heard: Heard) {
        let now = || self.nanos(clock::now());
        let change = self
            .0
            .cell
            .settle(ticket, heard, now, &self.0.config.chance);
        self.report(change);
    }

    /// Whether nobody holds it and nothing would be lost with it.
    pub(crate) fn is_idle(&self) -> bool {
        let snapshot = self.snapshot();
        Arc::strong_count(&self.0) == 1
            && snapshot.state == State::Closed
            && snapshot.failures_in_a_row == 0
    }

    pub(crate) fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Says what changed: after the lock is gone, since a subscriber may look at the breaker.
    fn report(&self, change: Option<Transition>) {
        let Some(change) = change else { return };
        let target = self.target().map(TargetName::as_str);
        let reason = change.reason.map(|reason| reason.as_str());
        let open = change
            .open_for
            .map(|time| millis(Duration::from_nanos(time)));
        macro_rules! event {
            ($level:ident, $text:literal) => {
                tracing::$level!(
                    spillway.target = target,
                    spillway.breaker.from = change.from.as_str(),
                    spillway.breaker.to = change.to.as_str(),
                    spillway.breaker.generation = change.generation,
                    spillway.breaker.failures = change.failures,
                    spillway.breaker.successes = change.successes,
                    spillway.reason = reason,
                    spillway.open_ms = open,
                    $text
                )
            };
        }
        match change.to {
            State::Open => event!(warn, "circuit breaker opened"),
            State::ForcedOpen => event!(warn, "circuit breaker opened by hand"),
            State::HalfOpen => event!(info, "circuit breaker half-open"),
            State::Closed => event!(info, "circuit breaker closed"),
        }
    }

    fn nanos(&self, at: Instant) -> Nanos {
        // Signed: with paused clocks a breaker may be older or younger than the runtime.
        let signed = |time| i64::try_from(nanos(time)).unwrap_or(i64::MAX);
        match at.checked_duration_since(self.0.origin) {
            Some(after) => signed(after),
            None => -signed(self.0.origin.saturating_duration_since(at)),
        }
    }
}

/// The time to an end; zero once it is over.
fn between(now: Nanos, until: Nanos) -> Duration {
    if until <= now {
        return Duration::ZERO;
    }
    Duration::from_nanos(until.abs_diff(now))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl fmt::Debug for Breaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Breaker")
            .field("target", &self.0.target)
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}
