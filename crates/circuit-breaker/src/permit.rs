//! The right to one call, which settles itself.

use std::{error::Error, time::Duration};

use tokio::time::Instant;
use tower_spillway_core::{Abandoned, Class, Ledger, Read, Reading, clock};

use crate::{
    breaker::{Admitted, Breaker},
    config::{Checked, nanos},
    machine::Heard,
};

/// The right to one call, taken by hand. See [`Breaker::permit`].
///
/// Dropped without a word it is given back and says nothing about the target.
///
/// ```
/// use tower_circuit_breaker::{Breaker, BreakerConfig, State};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let breaker = Breaker::new("smtp", BreakerConfig::new().failures(2))?;
/// breaker.permit()?.success();
/// breaker.permit()?.failure();
/// drop(breaker.permit()?);
/// breaker.permit()?.failure();
/// assert_eq!(breaker.state(), State::Open);
/// assert!(breaker.permit().is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "dropped it says nothing about the target"]
pub struct Permit(Guard<Breaker>);

impl Permit {
    pub(crate) fn new(breaker: Breaker, admitted: Admitted) -> Self {
        Self(Guard::new(breaker, admitted, None))
    }

    /// The call succeeded.
    pub fn success(self) {
        self.finish(&Reading::new(Class::Success));
    }

    /// The call failed, and the target is at fault.
    pub fn failure(self) {
        self.finish(&Reading::new(Class::Transient));
    }

    /// The call ended so.
    pub fn finish(self, reading: &Reading) {
        self.0.hear(reading, None);
    }

    /// The call ended so and took so long, by a clock of the caller's.
    pub fn finish_after(self, reading: &Reading, elapsed: Duration) {
        self.0.hear(reading, Some(elapsed));
    }

    /// Another attempt of the same call was faster: a slow result, where a rule asks for slow ones.
    pub fn lost(mut self) {
        self.0.settle(Heard::Lost, None);
    }
}

/// How a guard reaches its breaker.
pub(crate) trait Reach {
    fn breaker(&self) -> &Breaker;
}

impl Reach for Breaker {
    fn breaker(&self) -> &Breaker {
        self
    }
}

/// The right to one call.
///
/// Dropped without an outcome it is given back and says nothing about the target, unless the call
/// panicked or a layer above said first why it was dropped.
#[derive(Debug)]
pub(crate) struct Guard<B: Reach> {
    reach: B,
    admitted: Admitted,
    /// The call's ledger.
    ledger: Option<Ledger>,
    settled: bool,
    /// The inner service is running: a drop now is a panic of its own.
    running: bool,
}

impl<B: Reach> Guard<B> {
    pub(crate) fn new(reach: B, admitted: Admitted, ledger: Option<Ledger>) -> Self {
        Self {
            reach,
            admitted,
            ledger,
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
        self,
        adapter: impl FnOnce(&B) -> &A,
        result: Result<&Res, &(dyn Error + 'static)>,
    ) {
        let reading = self.read(adapter, result);
        self.hear(&reading, None);
    }

    /// What an outcome means.
    pub(crate) fn read<Res, A: Read<Res>>(
        &self,
        adapter: impl FnOnce(&B) -> &A,
        result: Result<&Res, &(dyn Error + 'static)>,
    ) -> Reading {
        adapter(&self.reach).read(result)
    }

    /// How long the call took to here, if a rule asks for slow calls.
    pub(crate) fn took(&self) -> Option<Duration> {
        let started = self.admitted.started?;
        let timed = self.reach.breaker().is_timed();
        timed.then(|| clock::ended().saturating_duration_since(started))
    }

    /// Nobody waits for it any more. It took so long, where that was measured.
    pub(crate) fn leave(mut self, took: Option<Duration>) {
        let heard = self.unanswered();
        self.settle(heard, took);
    }

    /// How long the call has been under way, where that matters to a rule.
    pub(crate) fn age(&self, now: Instant) -> Option<Duration> {
        let started = self.admitted.started?;
        Some(now.saturating_duration_since(started))
    }

    /// The body of its answer ended so, which the call's record is told of too.
    pub(crate) fn hear_body(self, reading: &Reading, elapsed: Option<Duration>) {
        if let Some(ledger) = &self.ledger {
            if reading.class() != Class::Success {
                ledger.end_body(reading, clock::now());
            }
        }
        self.hear(reading, elapsed);
    }

    pub(crate) fn hear(mut self, reading: &Reading, elapsed: Option<Duration>) {
        let heard = hear(reading, self.reach.breaker().config());
        self.settle(heard, elapsed);
    }

    fn settle(&mut self, heard: Heard, elapsed: Option<Duration>) {
        self.settled = true;
        self.reach.breaker().settle(self.admitted, heard, elapsed);
    }

    /// What a call that nobody waited for says.
    fn unanswered(&self) -> Heard {
        if self.running {
            return Heard::Failure { hint: 0 };
        }
        let abandoned = self.ledger.as_ref().and_then(Ledger::abandoned);
        match abandoned {
            Some(Abandoned::HedgeLost) => Heard::Lost,
            Some(Abandoned::Deadline) => {
                let most = self.reach.breaker().config().abandoned_after;
                match self.age(clock::now()) {
                    Some(age) if age > most => Heard::Failure { hint: 0 },
                    _ => Heard::Ignored,
                }
            }
            _ => Heard::Ignored,
        }
    }
}

impl<B: Reach> Drop for Guard<B> {
    fn drop(&mut self) {
        if !self.settled {
            let heard = self.unanswered();
            self.settle(heard, None);
        }
    }
}

/// What a breaker hears of an outcome.
pub(crate) fn hear(reading: &Reading, config: &Checked) -> Heard {
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
