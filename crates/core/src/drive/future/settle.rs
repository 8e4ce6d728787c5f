//! From the end of an attempt to the next one, or to the caller.

use std::error::Error;

use tokio::time::Instant;
use tower_service::Service;

use super::{DriveProj, copy, mark};
use crate::{
    BoxError, Cause, Class, Limits, Outcome, Policy, Read, Reading, Resend, Verdict, clock,
    drive::{
        decide::{Decision, after_failure, after_refusal, by_class},
        wait::Grants,
    },
    gate::Ask,
    ledger::{Ended, Situation},
    metrics,
};

impl<S, Req, P, A> DriveProj<'_, S, Req, P, A>
where
    S: Service<Req>,
    S::Error: Into<BoxError>,
    P: Policy<S::Response>,
    A: Resend<Req> + Read<S::Response>,
{
    /// What the policy of this layer says.
    fn judge(
        &self,
        at: &mut Situation,
        reading: &Reading,
        out: Result<&S::Response, &(dyn Error + 'static)>,
    ) -> Verdict {
        at.history.resend_safe = *self.resend_safe;
        at.history.more_targets = at.outlook.more_targets();
        self.engine
            .policy
            .judge(&at.history, &Outcome::new(reading, out))
    }

    /// The adviser's part: judge, leave the advice, return the outcome.
    fn advise(&self, reading: &Reading, out: Result<&S::Response, &(dyn Error + 'static)>) {
        if by_class(reading).is_some() || reading.class() == Class::Refused {
            return;
        }
        let mut at = self.ledger.preview(reading, clock::now());
        let verdict = self.judge(&mut at, reading, out);
        self.ledger.advise(verdict);
    }

    /// The driver's part: record, judge, decide. Gates come last.
    fn decide(
        &mut self,
        reading: &Reading,
        out: Result<&S::Response, &(dyn Error + 'static)>,
        end: Instant,
    ) -> Decision {
        *self.in_flight = false;
        match reading.class() {
            Class::Refused => self.grants.unsent(),
            class => self.grants.finish(class),
        }
        let at = self.ledger.end_attempt(Ended {
            reading,
            start: *self.started,
            end,
        });
        let Some(mut at) = at else {
            return Decision::Return;
        };
        *self.next_attempt = at.history.sends.saturating_add(1);
        if let Some(decision) = by_class(reading) {
            return decision;
        }
        let copy = self.spare.usable(&self.engine.adapter, out.is_ok());
        if reading.class() == Class::Refused {
            at.history.more_targets = at.outlook.more_targets();
            let decision = after_refusal(copy, &at);
            if !matches!(decision, Decision::Wait(_)) {
                self.grants.release();
            }
            // Else the reservation is kept: a retry that was granted and then held is still that
            // retry when it is sent.
            return decision;
        }
        let mut verdict = self.judge(&mut at, reading, out);
        if let Some(advice) = at.advice {
            verdict = verdict.merge(advice);
        }
        let decision = after_failure(reading, verdict, copy, &at);
        let Decision::Wait(after) = decision else {
            return decision;
        };
        let mut ask = Ask::retry(reading.class(), end);
        ask.timed_out = reading.is_timed_out();
        match Grants::withdraw(self.ledger, &ask) {
            Some(grants) => *self.grants = grants,
            None => {
                return Decision::Stop(Cause::BudgetDenied {
                    waited: at.call_waited,
                    next: after,
                });
            }
        }
        tracing::info!(
            http.response.status_code = reading.status(),
            http.request.resend_count = *self.attempt,
            error.type = reading.class().as_str(),
            spillway.target = self.ledger.target().map(|t| t.as_str()),
            spillway.attempt = *self.attempt,
            spillway.max_attempts = at.leg.max_attempts.unwrap_or(Limits::DEFAULT_ATTEMPTS),
            spillway.elapsed_ms = clock::millis(end.saturating_duration_since(*self.started)),
            spillway.wait_ms = clock::millis(after),
            spillway.cause = reading.reason(),
            "attempt failed; sending again"
        );
        decision
    }

    /// The outcome of an attempt; if it is kept, when the request will be sent again.
    pub(super) fn settle(
        &mut self,
        out: Result<S::Response, BoxError>,
    ) -> Result<Result<S::Response, BoxError>, Instant> {
        let adapter = &self.engine.adapter;
        let view = out.as_ref().map_err(|e| &**e as &(dyn Error + 'static));
        let reading = adapter.read(view);
        if !*self.driver {
            self.advise(&reading, view);
            return Ok(out);
        }
        let end = clock::ended();
        match self.decide(&reading, view, end) {
            Decision::Return => Ok(self.finish(out, &reading, end)),
            Decision::Stop(cause) => {
                let (out, reading) = self.real(out, reading);
                self.stopped(cause, &reading);
                Ok(self.finish(out, &reading, end))
            }
            Decision::Once(why) => {
                let (out, reading) = self.real(out, reading);
                self.stopped(Cause::NotReplayable, &reading);
                self.ledger.not_replayable(why);
                Ok(self.finish(out, &reading, end))
            }
            Decision::Wait(after) => {
                self.ledger.will_wait(after, &reading);
                metrics::retry(self.ledger.target(), &reading);
                let (out, _) = self.real(out, reading);
                *self.held = match out {
                    Ok(response) if !self.engine.adapter.holdable(&response) => None,
                    small => Some(Box::new(small)),
                };
                Err(clock::after(end, after))
            }
        }
    }

    /// What was really sent and answered outweighs a refusal that came after it: a breaker that
    /// opens between two attempts must not turn an answer into "nothing was sent".
    fn real(
        &mut self,
        out: Result<S::Response, BoxError>,
        reading: Reading,
    ) -> (Result<S::Response, BoxError>, Reading) {
        let held = self.held.take();
        if reading.class() != Class::Refused {
            return (out, reading);
        }
        let Some(held) = held else {
            return (out, reading);
        };
        let view = (*held).as_ref().map_err(|e| &**e as &(dyn Error + 'static));
        let before = self.engine.adapter.read(view);
        match before.class() {
            Class::Refused => (out, reading),
            _ => (*held, before),
        }
    }

    fn stopped(&self, cause: Cause, reading: &Reading) {
        self.ledger.stop(cause);
        metrics::stop(self.ledger.target(), cause);
        tracing::debug!(
            http.response.status_code = reading.status(),
            error.type = reading.class().as_str(),
            spillway.target = self.ledger.target().map(|t| t.as_str()),
            spillway.attempt = *self.attempt,
            spillway.cause = cause.as_str(),
            "not sending again"
        );
    }

    /// Readiness failed before the next send: the outcome in hand, else what failed.
    pub(super) fn give_up(
        &mut self,
        failure: BoxError,
        cause: Cause,
    ) -> Result<S::Response, BoxError> {
        self.grants.release();
        let out = self.held.take().map_or(Err(failure), |held| *held);
        let view = out.as_ref().map_err(|e| &**e as &(dyn Error + 'static));
        let reading = self.engine.adapter.read(view);
        let now = clock::now();
        // The wait for readiness is part of the call's latency.
        self.ledger.saw(now);
        self.stopped(cause, &reading);
        self.finish(out, &reading, now)
    }

    /// The leg is over.
    fn finish(
        &mut self,
        mut out: Result<S::Response, BoxError>,
        reading: &Reading,
        now: Instant,
    ) -> Result<S::Response, BoxError> {
        // A success has ended it already.
        if reading.class() != Class::Success {
            self.ledger.leave_gates(now);
        }
        self.ledger.finish(&self.engine.adapter, &mut out);
        out
    }

    /// Sends the copy, and keeps another one if one more send is allowed.
    pub(super) fn resend(&mut self, now: Instant) -> Option<S::Future> {
        let mut request = self.spare.take()?;
        let adapter = &self.engine.adapter;
        *self.attempt = *self.next_attempt;
        *self.started = now;
        mark(adapter, &mut request, self.ledger, *self.attempt);
        *self.spare = copy(adapter, &request);
        self.grants.sent();
        *self.in_flight = true;
        let inner = &mut *self.inner;
        Some(self.ledger.during(*self.started, || inner.call(request)))
    }
}
