//! What must grant a retry before it is sent.

use std::{fmt, sync::Arc};

use tokio::time::Instant;

use crate::{Class, clock};

/// A budget: what must grant a retry or a hedge before it is sent.
///
/// The engine reserves with [`withdraw`](Self::withdraw) when a retry is decided, last of all
/// checks, and [`settle`](Self::settle)s each receipt exactly once: [`Settled::NotSent`] if the
/// retry never left, [`Settled::Sent`] with the class of its outcome otherwise.
pub trait Gate: Send + Sync + 'static {
    /// A call (or a leg, for a budget inside one) begins.
    fn enter(&self, now: Instant) {
        let _ = now;
    }

    /// It ended, or its future was dropped.
    fn leave(&self, now: Instant) {
        let _ = now;
    }

    /// The first attempt that was really sent since [`enter`](Self::enter) ended in this class, or
    /// was dropped under way ([`Class::Cancelled`]). Told once for each `enter`, before the
    /// [`attempt_end`](Self::attempt_end) of the same attempt; never for a call of which every
    /// attempt was refused here. What a budget earns by traffic it earns here: a call that an open
    /// circuit breaker turned away is no traffic.
    fn first_end(&self, class: Class, now: Instant) {
        let _ = (class, now);
    }

    /// An attempt ended that was really sent, the first ones included.
    fn attempt_end(&self, class: Class, now: Instant) {
        let _ = (class, now);
    }

    /// Reserves one retry or hedge, or says no.
    fn withdraw(&self, ask: &Ask) -> Option<Receipt>;

    /// What became of a reservation.
    fn settle(&self, receipt: Receipt, settled: Settled) {
        let _ = (receipt, settled);
    }
}

/// What is asked of a [`Gate`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ask {
    /// When.
    pub now: Instant,
    /// What is to be sent.
    pub kind: Kind,
    /// What led to it.
    pub class: Class,
    /// Whether a time limit led to it.
    pub timed_out: bool,
}

impl Ask {
    /// A retry after an outcome of `class`.
    pub fn retry(class: Class, now: Instant) -> Self {
        Self {
            now,
            kind: Kind::Retry,
            class,
            timed_out: false,
        }
    }
}

/// What is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The same request on the same target, after an outcome.
    Retry,
    /// The same request while an attempt is still out.
    Hedge,
}

/// A reservation: whatever number the gate needs to know it by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Receipt(pub u64);

/// What became of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It never left.
    NotSent,
    /// It was sent and ended in this class.
    Sent(Class),
}

/// A gate that was entered: left when dropped.
#[must_use = "dropping it leaves the gate"]
pub struct Entry(Option<Arc<dyn Gate>>);

impl Entry {
    pub(crate) fn entered(gate: Arc<dyn Gate>) -> Self {
        Self(Some(gate))
    }

    /// Leaves at a time that is known, without reading the clock.
    pub fn leave(mut self, now: Instant) {
        if let Some(gate) = self.0.take() {
            gate.leave(now);
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if let Some(gate) = self.0.take() {
            gate.leave(clock::now());
        }
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Entry").finish()
    }
}

/// A reservation that settles itself: [`Settled::NotSent`] if dropped before [`sent`](Self::sent),
/// [`Class::Cancelled`] if dropped after it without an outcome.
pub struct Grant {
    gate: Arc<dyn Gate>,
    receipt: Receipt,
    settled: Settled,
}

impl Grant {
    /// Asks a gate.
    pub fn withdraw(gate: &Arc<dyn Gate>, ask: &Ask) -> Option<Self> {
        let receipt = gate.withdraw(ask)?;
        Some(Self {
            gate: Arc::clone(gate),
            receipt,
            settled: Settled::NotSent,
        })
    }

    /// The retry has left.
    pub fn sent(&mut self) {
        self.settled = Settled::Sent(Class::Cancelled);
    }

    /// The retry did not leave after all: it was refused here, and may be tried again.
    pub fn unsent(&mut self) {
        self.settled = Settled::NotSent;
    }

    /// The retry ended. One that was refused here never left.
    pub fn finish(mut self, class: Class) {
        self.settled = match class {
            Class::Refused => Settled::NotSent,
            class => Settled::Sent(class),
        };
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        self.gate.settle(self.receipt, self.settled);
    }
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grant")
            .field("receipt", &self.receipt)
            .field("settled", &self.settled)
            .finish_non_exhaustive()
    }
}
