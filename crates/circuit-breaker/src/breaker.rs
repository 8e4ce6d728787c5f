//! The handle of one breaker.

mod calls;
mod hands;

use std::{
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;
use tower_spillway_core::{InvalidConfig, TargetName, clock};

use crate::{
    cell::Cell,
    config::{BreakerConfig, Checked, nanos},
    event::{Event, Events, Listeners},
    machine::{Machine, Nanos, Order, Ticket, Transition},
    report,
    state::{Snapshot, State},
};

/// A handle to the state of one breaker: to look at it, and to open or close it by hand.
///
/// [`CircuitBreakerLayer::breaker`](crate::CircuitBreakerLayer::breaker) gives the handle of a
/// target; [`new`](Self::new) makes one to share between layers, or to guard by hand what is no
/// service ([`permit`](Self::permit)).
///
/// # Clone
///
/// Clones share the state.
#[derive(Clone)]
pub struct Breaker(Arc<Inner>);

/// A handle that does not keep the state.
#[derive(Clone)]
pub(crate) struct WeakBreaker(Weak<Inner>);

struct Inner {
    cell: Cell,
    target: Option<TargetName>,
    /// What the cell counts from.
    origin: Instant,
    config: Checked,
    /// A rule asks how long calls take.
    timed: bool,
    listeners: Listeners,
    own_probes: AtomicU64,
    own_probes_good: AtomicU64,
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
        let breaker = Self(Arc::new(Inner {
            cell: Cell::new(Arc::clone(&config.rules)),
            target,
            origin: clock::now(),
            timed: config.rules.timed(),
            config,
            listeners: Listeners::default(),
            own_probes: AtomicU64::new(0),
            own_probes_good: AtomicU64::new(0),
        }));
        report::state(&breaker, State::Closed);
        if let Some(control) = &breaker.0.config.control {
            control.add(&breaker);
        }
        breaker
    }

    /// The target's name; `None` for the breaker of calls that name none.
    pub fn target(&self) -> Option<&TargetName> {
        self.0.target.as_ref()
    }

    /// The state now. Looking changes nothing: an open breaker whose open time is over shows as
    /// half-open, and becomes so with the next call.
    pub fn state(&self) -> State {
        self.0.cell.state(|| self.now())
    }

    /// Whether every call would be refused now: it is open, or half-open while [probes of its
    /// own](Self::probe_with) find out. Looking changes nothing.
    ///
    /// This is what a failover has to know of a target, turned round.
    pub fn is_refusing(&self) -> bool {
        self.refuses().is_some()
    }

    /// The state and its figures now. Looking changes nothing.
    pub fn snapshot(&self) -> Snapshot {
        let now = self.now();
        let view = self.0.cell.view(now);
        Snapshot {
            state: view.state,
            generation: view.generation,
            reason: view.reason,
            retry_in: view.until.map(|until| between(now, until)),
            ramping_for: view.ramp_end.map(|end| between(now, end)),
            failures_in_a_row: view.run,
            calls: view.calls,
            bad_calls: view.bad,
            slow_over: view.slow_over.map(Duration::from_nanos),
            probes_out: view.out,
            probes_succeeded: view.successes,
            probes_failed: view.failures,
            reopenings: view.reopenings,
            trips: view.trips,
            own_probes: self.0.own_probes.load(Ordering::Relaxed),
            own_probes_good: self.0.own_probes_good.load(Ordering::Relaxed),
        }
    }

    /// What happens from now on, at most so many events waiting (at least 1); when more come the
    /// oldest is dropped and counted.
    ///
    /// Events come in the order of the changes. [`BreakerConfig::on_event`] gives them to a
    /// function as they happen.
    pub fn events(&self, most: usize) -> Events {
        self.0.listeners.listen(most)
    }

    // -- for the service ----------------------------------------------------------------------

    pub(crate) fn config(&self) -> &Checked {
        &self.0.config
    }

    pub(crate) fn downgrade(&self) -> WeakBreaker {
        WeakBreaker(Arc::downgrade(&self.0))
    }

    /// Whether nobody holds it and nothing would be lost with it.
    pub(crate) fn is_idle(&self) -> bool {
        let snapshot = self.snapshot();
        Arc::strong_count(&self.0) == 1
            && snapshot.state == State::Closed
            && snapshot.failures_in_a_row == 0
            && snapshot.bad_calls == 0
            && snapshot.ramping_for.is_none()
    }

    /// The name for events and figures that leave the process.
    pub(crate) fn shown_name(&self) -> Option<&str> {
        let name = self.target().filter(|_| !self.is_secret());
        name.map(TargetName::as_str)
    }

    /// Its name is a key of requests.
    pub(crate) fn is_secret(&self) -> bool {
        self.0.config.secret_names
    }

    pub(crate) fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    // -- for the prober -----------------------------------------------------------------------

    pub(crate) fn attach_prober(&self) {
        self.change(|machine, _| {
            machine.attach_prober();
            None
        });
    }

    pub(crate) fn detach_prober(&self) {
        self.change(|machine, _| {
            machine.detach_prober();
            None
        });
    }

    /// What a prober is to do now.
    pub(crate) fn order(&self) -> Result<Option<Admitted>, Duration> {
        let started = clock::now();
        let now = self.nanos(started);
        let order = self.0.cell.order(now);
        self.deliver();
        match order {
            Order::Wait(until) => Err(between(now, until)),
            Order::Rest => Ok(None),
            Order::Probe(ticket) => {
                self.0.own_probes.fetch_add(1, Ordering::Relaxed);
                Ok(Some(Admitted {
                    ticket,
                    started: Some(started),
                }))
            }
        }
    }

    /// A probe of a prober ended; the next is due after `interval`.
    pub(crate) fn probed(&self, good: bool, interval: Duration) {
        if good {
            self.0.own_probes_good.fetch_add(1, Ordering::Relaxed);
        }
        report::probe(self, good);
        let at = self.now().saturating_add_unsigned(nanos(interval));
        self.change(|machine, _| {
            machine.next_probe(at);
            None
        });
    }

    /// Whether a call that took so long is slow for some rule.
    pub(crate) fn is_slow(&self, elapsed: Duration) -> bool {
        let over = self.0.cell.view(self.now()).slow_over;
        over.is_some_and(|over| nanos(elapsed) > over)
    }

    // -----------------------------------------------------------------------------------------

    fn change(&self, change: impl FnOnce(&mut Machine, Nanos) -> Option<Transition>) {
        let now = self.now();
        self.0.cell.change(now, |machine| change(machine, now));
        self.deliver();
    }

    /// Says what happened: after the lock is gone, since whoever hears it may look at the breaker.
    fn deliver(&self) {
        self.0.cell.deliver(|change| {
            let event = Event {
                target: self.0.target.clone(),
                from: change.from,
                to: change.to,
                generation: change.generation,
                reason: change.reason,
                open_for: change.open_for.map(Duration::from_nanos),
                calls: change.calls,
                bad: change.bad,
            };
            report::change(self, &event);
            if let Some(callback) = &self.0.config.on_event {
                callback(&event);
            }
            self.0.listeners.tell(&event);
        });
    }

    fn now(&self) -> Nanos {
        self.nanos(clock::now())
    }

    fn nanos(&self, at: Instant) -> Nanos {
        // Signed: with paused clocks a breaker may be older or younger than the runtime.
        match at.checked_duration_since(self.0.origin) {
            Some(after) => signed(after),
            None => self.before(at),
        }
    }

    #[cold]
    fn before(&self, at: Instant) -> Nanos {
        -signed(self.0.origin.saturating_duration_since(at))
    }
}

impl WeakBreaker {
    pub(crate) fn upgrade(&self) -> Option<Breaker> {
        self.0.upgrade().map(Breaker)
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.0.strong_count() > 0
    }
}

/// A ticket, and when its call began where that matters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admitted {
    pub(crate) ticket: Ticket,
    pub(crate) started: Option<Instant>,
}

#[inline]
fn signed(time: Duration) -> Nanos {
    let seconds = Nanos::try_from(time.as_secs()).ok();
    seconds
        .and_then(|seconds| seconds.checked_mul(1_000_000_000))
        .and_then(|whole| whole.checked_add(Nanos::from(time.subsec_nanos())))
        .unwrap_or(Nanos::MAX)
}

/// The time to an end; zero once it is over.
fn between(now: Nanos, until: Nanos) -> Duration {
    if until <= now {
        return Duration::ZERO;
    }
    Duration::from_nanos(until.abs_diff(now))
}

impl fmt::Debug for Breaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Breaker")
            .field("target", &self.0.target)
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}
