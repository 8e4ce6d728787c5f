//! The engine as a policy of `tower`'s own retry.

use std::{error::Error, fmt, sync::Arc, time::Duration};

use tokio::time::{Instant, Sleep, sleep};

use super::{
    Engine,
    decide::{Decision, after_failure, after_refusal, by_class},
    wait::Grants,
};
use crate::{
    BoxError, Cause, Class, Outcome, Policy, Read, Reading, Resend, ResendTerms, clock,
    gate::Ask,
    ledger::{Ended, Part},
    metrics,
};

/// A policy of these crates, with its limits and gates, for `tower::retry::Retry`. Feature `tower`.
///
/// It judges and asks as [`Drive`](crate::Drive) does: the class, the policy, whether the request
/// may be sent again, the hint, the limits, then all gates. Errors of the service must be
/// [`BoxError`].
///
/// ```
/// use std::time::Duration;
/// use tower::{Service, ServiceBuilder, ServiceExt, retry::RetryLayer};
/// use tower_spillway_core::{
///     BoxError, Class, Detached, Engine, Failure, History, Outcome, Verdict, retry::TowerPolicy,
/// };
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), BoxError> {
/// let adapter = Detached(|out: Result<&&str, Failure<'_>>| match out {
///     Ok(_) => Class::Success,
///     Err(_) => Class::Transient,
/// });
/// let policy = |past: &History, _: &Outcome<'_, &'static str>| Verdict::Retry {
///     after: Duration::from_millis(10) * past.sends,
/// };
/// let sends = std::sync::atomic::AtomicU32::new(0);
/// let mut client = ServiceBuilder::new()
///     .layer(RetryLayer::new(TowerPolicy::new(Engine::new(policy, adapter))))
///     .service_fn(|_: u8| {
///         sends.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
///         async { Err::<&'static str, BoxError>("down".into()) }
///     });
/// client.ready().await?.call(1).await.unwrap_err();
/// assert_eq!(sends.into_inner(), 3);
/// # Ok(())
/// # }
/// ```
///
/// # Differences from [`RetryLayer`](crate::RetryLayer)
///
/// `tower`'s retry tells a policy less, so where you can, use the layer. It keeps the whole response
/// while it waits. It knows no [`Ledger`](crate::Ledger): no report, no deadline, no mark for other
/// retrying layers, whose sends multiply with these. A request that cannot be copied, and a call that
/// is dropped before its first outcome, are not told to the policy, nor to budgets.
///
/// # Clone
///
/// A clone is for another call: the state of a call stays.
pub struct TowerPolicy<P, A> {
    engine: Arc<Engine<P, A>>,
    /// When the call that the next clone is for was sent.
    called: Option<Instant>,
    call: Option<Call>,
}

impl<P, A> TowerPolicy<P, A> {
    /// The policy, adapter, limits and gates of an engine.
    pub fn new(engine: impl Into<Arc<Engine<P, A>>>) -> Self {
        Self {
            engine: engine.into(),
            called: None,
            call: None,
        }
    }
}

impl<P, A> Clone for TowerPolicy<P, A> {
    fn clone(&self) -> Self {
        // `tower` makes a copy of the request on the policy of the service, sends it, and only then
        // clones the policy for the call.
        Self {
            engine: Arc::clone(&self.engine),
            called: self.called,
            call: None,
        }
    }
}

impl<P, A> fmt::Debug for TowerPolicy<P, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TowerPolicy")
            .field("engine", &self.engine)
            .finish_non_exhaustive()
    }
}

/// One call under way.
struct Call {
    ledger: Part,
    grants: Grants,
    in_flight: bool,
    started: Instant,
}

impl Call {
    fn open<P, A>(engine: &Engine<P, A>, sent: Instant) -> Self {
        let mut ledger = clock::during(sent, Part::unattached);
        ledger.drive(engine.limits, sent);
        for gate in &engine.gates {
            drop(ledger.enter_gate(Arc::clone(gate), sent));
        }
        Self {
            ledger,
            grants: Grants::default(),
            in_flight: true,
            started: sent,
        }
    }

    /// A retry leaves.
    fn send(&mut self, now: Instant) {
        self.grants.sent();
        self.in_flight = true;
        self.started = now;
    }

    /// The wait before the next send, if there is to be one.
    fn ended<P, A, Req, Res>(
        &mut self,
        engine: &Engine<P, A>,
        request: &Req,
        out: Result<&Res, &(dyn Error + 'static)>,
        end: Instant,
    ) -> Option<Duration>
    where
        P: Policy<Res>,
        A: Resend<Req> + Read<Res>,
    {
        let reading = engine.adapter.read(out);
        let class = reading.class();
        self.in_flight = false;
        self.grants.finish(class);
        let mut at = self.ledger.end_attempt(Ended {
            reading: &reading,
            start: self.started,
            end,
        })?;
        at.history.resend_safe = engine.adapter.resend_safe(request, ResendTerms::default());
        let decision = match by_class(&reading) {
            Some(decision) => decision,
            None if class == Class::Refused => after_refusal(Ok(()), &at),
            None => {
                let outcome = Outcome::new(&reading, out);
                let verdict = engine.policy.judge(&at.history, &outcome);
                after_failure(&reading, verdict, Ok(()), &at)
            }
        };
        match decision {
            Decision::Wait(after) => {
                let mut ask = Ask::retry(class, end);
                ask.timed_out = reading.is_timed_out();
                match Grants::withdraw(&self.ledger, &ask) {
                    Some(grants) => self.grants = grants,
                    None => {
                        self.stop(Cause::BudgetDenied {
                            waited: at.call_waited,
                            next: after,
                        });
                        return None;
                    }
                }
                self.ledger.will_wait(after, &reading);
                metrics::retry(None, &reading);
                Some(after)
            }
            Decision::Stop(cause) => {
                self.stop(cause);
                None
            }
            _ => None,
        }
    }

    fn stop(&self, cause: Cause) {
        self.ledger.stop(cause);
        metrics::stop(None, cause);
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let now = clock::now();
        self.grants.release();
        if self.in_flight {
            self.ledger.end_attempt(Ended {
                reading: &Reading::new(Class::Cancelled),
                start: self.started,
                end: now,
            });
        }
        self.ledger.leave_gates(now);
    }
}

impl<P, A, Req, Res> tower::retry::Policy<Req, Res, BoxError> for TowerPolicy<P, A>
where
    P: Policy<Res>,
    A: Resend<Req> + Read<Res>,
{
    type Future = Sleep;

    fn retry(
        &mut self,
        request: &mut Req,
        result: &mut Result<Res, BoxError>,
    ) -> Option<Self::Future> {
        let end = clock::now();
        let sent = self.called.unwrap_or(end);
        let engine = &self.engine;
        let call = self.call.get_or_insert_with(|| Call::open(engine, sent));
        let out = result.as_ref().map_err(|e| &**e as &(dyn Error + 'static));
        let wait = call.ended(engine, request, out, end);
        if wait.is_none() {
            // Over: the gates are left now, not when the future is dropped.
            self.call = None;
        }
        wait.map(sleep)
    }

    fn clone_request(&mut self, request: &Req) -> Option<Req> {
        let now = clock::now();
        match &mut self.call {
            Some(call) => call.send(now),
            None => self.called = Some(now),
        }
        self.engine.adapter.try_clone(request).ok()
    }
}
