//! What a breaker hears of calls, from their admission to their end.

use std::time::Duration;

use tokio::time::Instant;
use tower_spillway_core::{Ledger, Refusal, Refused, clock};

use super::{Admitted, Breaker, between};
use crate::{
    config::nanos,
    machine::{Denied, Heard, Ticket, Why},
    report,
};

impl Breaker {
    /// The generation that admits a call of which nothing more is to be known, if it is plainly
    /// closed; else [`acquire`](Self::acquire) says.
    #[inline]
    pub(crate) fn plain(&self) -> Option<u64> {
        match self.0.timed {
            true => None,
            false => self.0.cell.closed(),
        }
    }

    /// A ticket for one call, if it is plainly closed; else [`acquire`](Self::acquire) says.
    #[inline]
    pub(crate) fn admit(&self, ledger: Option<&Ledger>) -> Option<Admitted> {
        let ticket = self.0.cell.closed()?.into();
        let started = self.begun(ledger);
        Some(Admitted { ticket, started })
    }

    /// When a call begins, where that matters: only a layer above, which speaks through the
    /// ledger, can cut it off, and only rules over time need to know how long it took.
    #[inline]
    fn begun(&self, ledger: Option<&Ledger>) -> Option<Instant> {
        (ledger.is_some() || self.is_timed()).then(clock::now)
    }

    /// A ticket for one call, or the refusal.
    pub(crate) fn acquire(&self, ledger: Option<&Ledger>) -> Result<Admitted, Refused> {
        let started = self.begun(ledger);
        let mut seen = started;
        let now = || self.nanos(*seen.get_or_insert_with(clock::now));
        let admitted = self.0.cell.acquire(now, &self.0.config.chance);
        self.deliver();
        match admitted {
            Ok(ticket) => Ok(Admitted { ticket, started }),
            Err(denied) => Err(self.refusal(denied, seen)),
        }
    }

    /// Whether a rule asks how long calls take.
    #[inline]
    pub(crate) fn is_timed(&self) -> bool {
        self.0.timed
    }

    /// Whether any call would be refused now. Changes nothing.
    #[inline]
    pub(crate) fn refuses(&self) -> Option<Denied> {
        match self.0.cell.closed() {
            Some(_) => None,
            None => self.refuses_now(),
        }
    }

    #[inline(never)]
    fn refuses_now(&self) -> Option<Denied> {
        self.0.cell.refuses(|| self.now())
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
            Why::Ramping => Refusal::Ramping,
        };
        let reason = denied.reason.map(|reason| reason.as_str());
        report::refusal(self, refusal, reason, wait);
        Refused::new(refusal).retry_in(wait).because(reason)
    }

    /// Runs the inner service: if it panics, the call has failed.
    #[inline]
    pub(crate) fn calling<T>(&self, ticket: Ticket, inner: impl FnOnce() -> T) -> T {
        struct Unwinding<'a>(&'a Breaker, Ticket);
        impl Drop for Unwinding<'_> {
            #[inline(always)]
            fn drop(&mut self) {
                self.0.panicked(self.1);
            }
        }
        let unwinding = Unwinding(self, ticket);
        let out = inner();
        std::mem::forget(unwinding);
        out
    }

    #[cold]
    fn panicked(&self, ticket: Ticket) {
        let admitted = Admitted {
            ticket,
            started: None,
        };
        self.settle(admitted, Heard::Failure { hint: 0 }, None);
    }

    /// Hears that a call succeeded that was admitted in `generation`, where that is all there is
    /// to know: no rule asks how long it took, and it is plainly closed as it was then. Else it is
    /// for [`settle`](Self::settle).
    pub(crate) fn succeed(&self, generation: u64) -> bool {
        let now = || self.nanos(clock::ended());
        let heard = !self.is_timed() && self.0.cell.succeed(generation, now);
        if heard {
            self.deliver();
        }
        heard
    }

    /// Hears how a call ended. `elapsed` where somebody knows better than the clock.
    pub(crate) fn settle(&self, admitted: Admitted, heard: Heard, elapsed: Option<Duration>) {
        let cell = &self.0.cell;
        let mut ended = None;
        let mut now = || *ended.get_or_insert_with(clock::ended);
        let took = match (elapsed, admitted.started) {
            (Some(elapsed), _) => nanos(elapsed),
            (None, Some(started)) if self.is_timed() => {
                nanos(now().saturating_duration_since(started))
            }
            _ => 0,
        };
        let now = || self.nanos(now());
        cell.settle(admitted.ticket, heard, took, now, &self.0.config.chance);
        self.deliver();
    }
}
