//! The right to one call, which settles itself.

use std::{error::Error, time::Duration};

use tokio::time::Instant;
use tower_spillway_core::{Abandoned, Class, Ledger, Read, Reading, clock};

use crate::{
    breaker::Breaker,
    config::{Checked, nanos},
    machine::{Heard, Ticket},
};

/// The right to one call.
///
/// Dropped without an outcome it is given back and says nothing about the target, unless the call
/// panicked or a layer above said first that its deadline cut it off.
pub(crate) struct Permit {
    breaker: Breaker,
    ticket: Ticket,
    /// The call's ledger and when the call began here.
    call: Option<(Ledger, Instant)>,
    settled: bool,
    /// The inner service is running: a drop now is a panic of its own.
    running: bool,
}

impl Permit {
    pub(crate) fn new(breaker: Breaker, ticket: Ticket, call: Option<(Ledger, Instant)>) -> Self {
        Self {
            breaker,
            ticket,
            call,
            settled: false,
            running: false,
        }
    }

    /// Runs the inner service: if it panics, the call has failed.
    pub(crate) fn run<T>(&mut self, inner: impl FnOnce() -> T) -> T {
        self.running = true;
        let out = inner();
        self.running = false;
        out
    }

    /// The call ended so.
    pub(crate) fn finish<Res, A: Read<Res>>(
        mut self,
        adapter: &A,
        result: Result<&Res, &(dyn Error + 'static)>,
    ) {
        let heard = hear(&adapter.read(result), self.breaker.config());
        self.settle(heard);
    }

    fn settle(&mut self, heard: Heard) {
        self.settled = true;
        self.breaker.settle(self.ticket, heard);
    }

    /// What a call that nobody waited for says.
    fn unanswered(&self) -> Heard {
        if self.running {
            return Heard::Failure { hint: 0 };
        }
        let Some((ledger, started)) = &self.call else {
            return Heard::Ignored;
        };
        // A lost hedge will be a slow result once there is a rule for slow ones.
        if ledger.abandoned() != Some(Abandoned::Deadline) {
            return Heard::Ignored;
        }
        let age = clock::now().saturating_duration_since(*started);
        if age > self.breaker.config().abandoned_after {
            Heard::Failure { hint: 0 }
        } else {
            Heard::Ignored
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if !self.settled {
            let heard = self.unanswered();
            self.settle(heard);
        }
    }
}

/// What a breaker hears of an outcome.
fn hear(reading: &Reading, config: &Checked) -> Heard {
    let hint = reading
        .hint()
        .and_then(|hint| hint.after())
        .filter(|wait| !wait.is_zero());
    let class = reading.class();
    let held = |time: Duration| Heard::Held { time: nanos(time) };
    match (class, hint) {
        (Class::Success, _) => Heard::Success,
        (Class::TargetDown, hint) => held(hint.unwrap_or(config.hold)),
        (Class::Transient | Class::Throttled, Some(hint))
            if reading.is_vendor() && hint > config.trip_on_hint =>
        {
            held(hint)
        }
        (Class::Transient, hint) => Heard::Failure {
            hint: nanos(hint.unwrap_or_default()),
        },
        (Class::Throttled, hint) => Heard::RateLimited {
            hint: nanos(hint.unwrap_or_default()),
        },
        // NotHere, CallerFault, Refused and Cancelled say nothing about the target.
        _ => Heard::Ignored,
    }
}
