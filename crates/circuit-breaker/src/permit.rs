//! The right to one call, which settles itself.

use std::{error::Error, num::NonZeroU64, time::Duration};

use tokio::time::Instant;
use tower_spillway_core::{Abandoned, Class, Ledger, Read, Reading, clock, hint::Hint};

use crate::{
    breaker::{Admitted, Breaker},
    config::{Checked, nanos},
    machine::{Heard, Ticket},
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
        Self(Guard::new(breaker, None, admitted, None))
    }

    /// The call succeeded.
    pub fn success(mut self) {
        self.0.succeed();
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
    generation: u64,
    more: Option<More>,
    phase: Phase,
}

/// What is known of a call beyond the generation that admitted it. Most calls have nothing of it,
/// and a future is moved around with all that it holds.
#[derive(Debug)]
struct More {
    /// Its breaker, where that is not the one within reach.
    other: Option<Breaker>,
    probe: Option<NonZeroU64>,
    started: Option<Instant>,
    /// The call's ledger.
    ledger: Option<Ledger>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The call is out.
    Out,
    /// The inner service is running: a drop now is a panic of its own.
    Running,
    Settled,
}

impl<B: Reach> Guard<B> {
    #[inline]
    pub(crate) fn new(
        reach: B,
        other: Option<Breaker>,
        admitted: Admitted,
        ledger: Option<Ledger>,
    ) -> Self {
        let Admitted {
            ticket: Ticket { generation, probe },
            started,
        } = admitted;
        // Where there is a ledger there is a beginning.
        let plain = other.is_none() && probe.is_none() && started.is_none();
        let more = (!plain).then_some(More {
            other,
            probe,
            started,
            ledger,
        });
        Self {
            reach,
            generation,
            more,
            phase: Phase::Out,
        }
    }

    /// The same where there is nothing but a generation.
    #[inline]
    pub(crate) fn plain(reach: B, generation: u64) -> Self {
        Self {
            reach,
            generation,
            more: None,
            phase: Phase::Out,
        }
    }

    #[inline]
    pub(crate) fn is_settled(&self) -> bool {
        self.phase == Phase::Settled
    }

    /// Runs the inner service: if it panics, the call has failed.
    #[inline]
    pub(crate) fn run<T>(&mut self, inner: impl FnOnce() -> T) -> T {
        self.phase = Phase::Running;
        let out = inner();
        self.phase = Phase::Out;
        out
    }

    /// The call was answered. In place: what a future keeps is not moved for it.
    #[inline]
    pub(crate) fn answered<Res, A: Read<Res>>(
        &mut self,
        adapter: impl FnOnce(&B) -> &A,
        response: &Res,
    ) {
        let reading = self.read(adapter, Ok(response));
        match reading.class() {
            Class::Success => self.succeed(),
            class => self.conclude(class, reading.hint(), reading.is_vendor()),
        }
    }

    /// The call ended in an error.
    #[inline(never)]
    pub(crate) fn failed<Res, A: Read<Res>>(
        &mut self,
        adapter: impl FnOnce(&B) -> &A,
        error: &(dyn Error + 'static),
    ) {
        let reading = self.read(adapter, Err::<&Res, _>(error));
        self.conclude(reading.class(), reading.hint(), reading.is_vendor());
    }

    #[inline]
    fn succeed(&mut self) {
        self.phase = Phase::Settled;
        if !self.breaker().succeed(self.generation) {
            self.settle(Heard::Success, None);
        }
    }

    /// What an outcome means.
    #[inline]
    pub(crate) fn read<Res, A: Read<Res>>(
        &self,
        adapter: impl FnOnce(&B) -> &A,
        result: Result<&Res, &(dyn Error + 'static)>,
    ) -> Reading {
        adapter(&self.reach).read(result)
    }

    /// How long the call took to here, if a rule asks for slow calls.
    pub(crate) fn took(&self) -> Option<Duration> {
        let started = self.started()?;
        let timed = self.breaker().is_timed();
        timed.then(|| clock::ended().saturating_duration_since(started))
    }

    /// Nobody waits for it any more. It took so long, where that was measured.
    pub(crate) fn leave(mut self, took: Option<Duration>) {
        let heard = self.unanswered();
        self.settle(heard, took);
    }

    /// How long the call has been under way, where that matters to a rule.
    pub(crate) fn age(&self, now: Instant) -> Option<Duration> {
        let started = self.started()?;
        Some(now.saturating_duration_since(started))
    }

    /// The body of its answer ended so, which the call's record is told of too.
    pub(crate) fn hear_body(self, reading: &Reading, elapsed: Option<Duration>) {
        if let Some(ledger) = self.ledger() {
            if reading.class() != Class::Success {
                ledger.end_body(reading, clock::now());
            }
        }
        self.hear(reading, elapsed);
    }

    pub(crate) fn hear(mut self, reading: &Reading, elapsed: Option<Duration>) {
        let (hint, vendor) = (reading.hint(), reading.is_vendor());
        let heard = hear(reading.class(), hint, vendor, self.breaker().config());
        self.settle(heard, elapsed);
    }

    /// The call ended so. A reading that is only looked at, and not handed on, need not be in memory.
    #[inline(never)]
    fn conclude(&mut self, class: Class, hint: Option<Hint>, vendor: bool) {
        let heard = hear(class, hint, vendor, self.breaker().config());
        self.settle(heard, None);
    }

    #[inline(never)]
    fn settle(&mut self, heard: Heard, elapsed: Option<Duration>) {
        self.phase = Phase::Settled;
        let admitted = Admitted {
            ticket: Ticket {
                generation: self.generation,
                probe: self.more.as_ref().and_then(|more| more.probe),
            },
            started: self.started(),
        };
        self.breaker().settle(admitted, heard, elapsed);
    }

    #[inline]
    fn breaker(&self) -> &Breaker {
        let other = self.more.as_ref().and_then(|more| more.other.as_ref());
        other.unwrap_or(self.reach.breaker())
    }

    fn started(&self) -> Option<Instant> {
        self.more.as_ref()?.started
    }

    fn ledger(&self) -> Option<&Ledger> {
        self.more.as_ref()?.ledger.as_ref()
    }

    #[cold]
    fn drop_unanswered(&mut self) {
        let heard = self.unanswered();
        self.settle(heard, None);
    }

    /// What a call that nobody waited for says.
    fn unanswered(&self) -> Heard {
        if self.phase == Phase::Running {
            return Heard::Failure { hint: 0 };
        }
        let abandoned = self.ledger().and_then(Ledger::abandoned);
        match abandoned {
            Some(Abandoned::HedgeLost) => Heard::Lost,
            Some(Abandoned::Deadline) => {
                let most = self.breaker().config().abandoned_after;
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
    #[inline]
    fn drop(&mut self) {
        if self.phase != Phase::Settled {
            self.drop_unanswered();
        }
    }
}

/// What a breaker hears of an outcome.
fn hear(class: Class, hint: Option<Hint>, vendor: bool, config: &Checked) -> Heard {
    let hint = hint
        .and_then(|hint| hint.after())
        .filter(|wait| !wait.is_zero());
    let held = |time: Duration| Heard::Held { time: nanos(time) };
    match (class, hint) {
        (Class::Success, _) => Heard::Success,
        (Class::TargetDown, hint) => held(hint.unwrap_or(config.hold)),
        (Class::Transient | Class::Throttled, Some(hint))
            if vendor && hint > config.trip_on_hint =>
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
