//! What one call does from target to target, without the futures in between.

use std::{error::Error, sync::Arc, time::Duration};

use tokio::time::Instant;
use tower_spillway_core::{
    BoxError, Carry, Cause, Class, Classified, Ledger, NotReplayable, Read, Reading, Refusal,
    Refused, Resend, Verdict, clock,
    ledger::{LegMark, Part},
};

use crate::{
    behind::{Behind, Kept},
    error::{AllRefused, NotPrepared},
    fleet::Fleet,
};

/// What follows from an outcome.
pub(crate) enum Next<Req, Res> {
    /// The caller gets this.
    Done(Result<Res, BoxError>),
    /// This goes to the next target.
    Hop(Req),
}

/// The state of a call between and during its legs.
pub(crate) struct Journey<S, Req, Res, A> {
    fleet: Arc<Fleet<S, Req>>,
    adapter: A,
    ledger: Part,
    index: usize,
    /// The leg under way, from its sending on.
    leg: Option<LegMark>,
    /// The request as it came, while there is a later target to send it to.
    pristine: Result<Option<Req>, NotReplayable>,
    resend_safe: bool,
    /// Boxed: only a call that hops pays for it, and a future that is moved is copied.
    behind: Option<Box<Behind<Res>>>,
}

impl<S, Req, Res, A> Journey<S, Req, Res, A>
where
    A: Resend<Req> + Carry<Req> + Read<Res>,
{
    /// A call at its start, and the request for the first target.
    pub(crate) fn new(fleet: Arc<Fleet<S, Req>>, adapter: A, mut request: Req) -> (Self, Req) {
        let ledger = Ledger::enter(&adapter, &mut request);
        let pristine = if fleet.specs.len() > 1 {
            adapter.try_clone(&request).map(Some)
        } else {
            Ok(None)
        };
        let journey = Self {
            fleet,
            adapter,
            ledger,
            index: 0,
            leg: None,
            pristine,
            resend_safe: false,
            behind: None,
        };
        (journey, request)
    }

    /// The time, without a clock read where the chain of `call`s has just made one.
    pub(crate) fn now(&self) -> Instant {
        self.ledger.now()
    }

    /// The time when the call was opened, if this opened it.
    pub(crate) fn begun(&self) -> Instant {
        self.ledger.begun()
    }

    /// Until when the target under way may take to become ready.
    pub(crate) fn ready_by(&self, within: Duration) -> Instant {
        let by = clock::after(clock::now(), within);
        self.ledger
            .deadline()
            .map_or(by, |deadline| by.min(deadline))
    }

    /// A fresh service of the target under way.
    pub(crate) fn service(&self) -> Option<S>
    where
        S: Clone,
    {
        self.fleet.service(self.index)
    }

    /// Makes the request fit the target under way. The copy of a request is made before, so that
    /// nothing set here is seen by another target.
    pub(crate) fn prepare(&mut self, request: &mut Req) -> Result<(), NotPrepared> {
        let Some(spec) = self.fleet.specs.get(self.index) else {
            return Ok(());
        };
        spec.fit(&self.adapter, request)?;
        self.resend_safe = self.adapter.resend_safe(request, spec.plan.terms);
        Ok(())
    }

    /// Opens the leg and runs `call` on it.
    pub(crate) fn send<T>(
        &mut self,
        mut request: Req,
        now: Instant,
        call: impl FnOnce(Req) -> T,
    ) -> T {
        if let Some(spec) = self.fleet.specs.get(self.index) {
            // Unmarked: a driver above the failover does not drive below it.
            let plan = Arc::clone(&spec.plan);
            let leg = (self.ledger).open_leg_in(plan, now, &self.adapter, &mut request);
            self.leg = Some(leg);
        }
        self.ledger.during(now, || call(request))
    }

    /// The target under way could not be asked: a refusal, except that nobody is to be told to
    /// come back when no target could be asked because of the request itself.
    pub(crate) fn not_prepared(&mut self, error: NotPrepared) -> Next<Req, Res> {
        tracing::warn!(
            spillway.target = self.target(),
            "the request could not be prepared for a target"
        );
        self.behind().not_prepared.get_or_insert(error);
        let reading = Reading::new(Class::Refused).with_reason("not_prepared");
        let leg = self.record_unsent(&reading, Cause::NotHere);
        self.after_refusal(leg, None)
    }

    /// The target under way was not ready in time, or failed to become so.
    pub(crate) fn not_ready(&mut self) -> Next<Req, Res> {
        let reading = Reading::new(Class::Refused).with_reason("not_ready");
        let leg = self.record_unsent(&reading, Cause::NotReady);
        self.after_refusal(leg, None)
    }

    fn record_unsent(&mut self, reading: &Reading, cause: Cause) -> Option<Ledger> {
        let spec = self.fleet.specs.get(self.index)?;
        let leg = self.ledger.open_leg(Arc::clone(&spec.plan), clock::now());
        leg.end_leg(reading);
        leg.stop(cause);
        Some(leg)
    }

    /// An outcome of the target under way.
    pub(crate) fn arrived(&mut self, out: Result<Res, BoxError>) -> Next<Req, Res> {
        let view = out.as_ref().map_err(|e| &**e as &(dyn Error + 'static));
        let reading = self.adapter.read(view);
        let Some(leg) = self.leg.take() else {
            return Next::Done(out);
        };
        self.ledger.end_leg_at(leg, &reading);
        if reading.class() == Class::Success {
            return Next::Done(self.finish(out));
        }
        let leg = self.ledger.on_leg(leg);
        // A refusal of a further send ends a leg on which something was sent: it is an outcome like
        // any other, and nobody may be told that nothing was sent.
        if reading.class() == Class::Refused && !leg.was_sent() {
            let error = out.err();
            let refused = error.as_deref().and_then(|e| Refused::find(e).copied());
            if let Some(wait) = refused.and_then(|r| r.wait()) {
                self.behind().back_in(wait, clock::now());
            }
            return self.after_refusal(Some(leg), error);
        }
        let kept = Kept { out, reading, leg };
        match kept.reading.class() {
            Class::Cancelled => self.done(kept),
            Class::CallerFault => self.caller_fault(kept),
            _ => match self.may_hop(&kept) {
                Ok(request) => {
                    #[cfg(feature = "metrics")]
                    if let (true, Some(target)) = (kept.in_doubt(), self.target()) {
                        crate::figures::possible_duplicate(target);
                    }
                    let cause = kept.leg.cause().map(Cause::as_str);
                    self.hop(kept.reading.class(), cause);
                    if self.index == 1 {
                        self.behind().primary = Some(kept);
                    } else {
                        self.behind().later = Some(kept);
                    }
                    Next::Hop(request)
                }
                Err(cause) => {
                    if let Some(cause) = cause {
                        kept.leg.stop(cause);
                    }
                    self.advise_stop(&kept);
                    self.done(kept)
                }
            },
        }
    }

    /// Whether the next target may be asked after a real outcome; the request for it if so.
    fn may_hop(&mut self, kept: &Kept<Res>) -> Result<Req, Option<Cause>> {
        if kept.in_doubt() && !self.resend_safe && !self.is_last() {
            return Err(Some(Cause::MayHaveBeenProcessed));
        }
        self.onward(Some(&kept.leg), kept.out.is_ok())
    }

    /// The request for the next target; else why it cannot be asked, and nothing where there is none.
    fn onward(&mut self, leg: Option<&Ledger>, answered: bool) -> Result<Req, Option<Cause>> {
        if self.is_last() {
            return Err(None);
        }
        if !self.in_time() {
            return Err(Some(Cause::DeadlineWouldPass));
        }
        if !self.ledger.may_send() {
            return Err(Some(Cause::AttemptsExhausted));
        }
        self.next_request(answered).map_err(|why| {
            if let Some(leg) = leg {
                leg.not_replayable(why);
            }
            Some(Cause::NotReplayable)
        })
    }

    fn behind(&mut self) -> &mut Behind<Res> {
        self.behind.get_or_insert_default()
    }

    fn is_last(&self) -> bool {
        self.index.saturating_add(1) >= self.fleet.specs.len()
    }

    /// Whether a request that is sent now is sent before the deadline.
    pub(crate) fn may_begin(&self, now: Instant) -> bool {
        self.ledger.deadline().is_none_or(|deadline| now < deadline)
    }

    fn in_time(&self) -> bool {
        self.ledger
            .deadline()
            .is_none_or(|deadline| self.ledger.last_seen() < deadline)
    }

    /// The pristine request, and a copy kept while there is a target after the next. Whether it can
    /// still be sent depends on how the last send ended: in a response if `answered`.
    fn next_request(&mut self, answered: bool) -> Result<Req, NotReplayable> {
        let request = self
            .pristine
            .as_mut()
            .map_err(|why| *why)?
            .take()
            .ok_or(NotReplayable::new("it was sent to the last target"))?;
        self.adapter.still_replayable(&request, answered)?;
        if self.index.saturating_add(2) < self.fleet.specs.len() {
            self.pristine = self.adapter.try_clone(&request).map(Some);
        }
        Ok(request)
    }

    /// A refusal is free: nothing was sent.
    fn after_refusal(&mut self, leg: Option<Ledger>, error: Option<BoxError>) -> Next<Req, Res> {
        let cut = match self.onward(leg.as_ref(), false) {
            Ok(request) => {
                self.hop(Class::Refused, None);
                return Next::Hop(request);
            }
            Err(cut) => cut,
        };
        if let (Some(leg), Some(cause)) = (leg, cut) {
            leg.stop(cause);
        }
        let mut behind = self.behind.take().map(|behind| *behind).unwrap_or_default();
        if let Some(kept) = behind.later.take().or_else(|| behind.primary.take()) {
            self.advise_stop(&kept);
            return self.done(kept);
        }
        let error: BoxError = match (behind.not_prepared.take(), cut) {
            (Some(error), _) => Classified::new(Reading::new(Class::CallerFault), error).into(),
            // Not every target was asked: this is the refusal of one.
            (None, Some(cause)) => {
                self.ledger.advise(Verdict::Stop(cause));
                error.unwrap_or_else(|| Refused::new(Refusal::NotReady).into())
            }
            (None, None) => {
                let retry_in = behind.retry_in(clock::now);
                // Waiting for the first target to come back is for a layer outside.
                self.ledger.advise(match retry_in {
                    Some(after) => Verdict::Retry { after },
                    None => Verdict::Stop(Cause::Refused),
                });
                tracing::warn!(
                    spillway.retry_in_ms = retry_in.map(clock::millis),
                    "every target refused; nothing was sent"
                );
                AllRefused::new(retry_in).into()
            }
        };
        Next::Done(self.finish(Err(error)))
    }

    /// The request is at fault. After a primary that answered otherwise the fault is more likely
    /// in how the request was made to fit this target: the caller gets the primary's outcome.
    fn caller_fault(&mut self, kept: Kept<Res>) -> Next<Req, Res> {
        kept.leg.stop(Cause::CallerFault);
        let primary = self.behind.as_mut().and_then(|b| b.primary.take());
        match primary {
            Some(primary) => {
                tracing::warn!(
                    spillway.target = self.target(),
                    http.response.status_code = kept.reading.status(),
                    "a fallback calls the request wrong: does it need another `prepare`?"
                );
                self.advise_stop(&primary);
                self.done(primary)
            }
            None => self.done(kept),
        }
    }

    /// All targets failed: another round by a layer outside would multiply the sends.
    fn advise_stop(&self, kept: &Kept<Res>) {
        let cause = kept.leg.cause().unwrap_or(Cause::AttemptsExhausted);
        self.ledger.advise(Verdict::Stop(cause));
    }

    fn hop(&mut self, class: Class, cause: Option<&'static str>) {
        let from = self.index;
        self.index = self.index.saturating_add(1);
        #[cfg(feature = "metrics")]
        if let (Some(from), Some(to)) = (self.fleet.specs.get(from), self.target()) {
            let from = from.plan.target.as_str();
            crate::figures::hop(from, to, cause.unwrap_or(class.as_str()));
        }
        tracing::info!(
            spillway.from = self.fleet.specs.get(from).map(|s| s.plan.target.as_str()),
            spillway.to = self.target(),
            error.type = class.as_str(),
            spillway.cause = cause,
            "going to the next target"
        );
    }

    fn target(&self) -> Option<&str> {
        let spec = self.fleet.specs.get(self.index)?;
        Some(spec.plan.target.as_str())
    }

    fn done(&mut self, kept: Kept<Res>) -> Next<Req, Res> {
        kept.leg.serve();
        Next::Done(self.finish(kept.out))
    }

    fn finish(&mut self, mut out: Result<Res, BoxError>) -> Result<Res, BoxError> {
        self.ledger.finish(&self.adapter, &mut out);
        out
    }
}

impl<S, Req, Res, A> Journey<S, Req, Res, A> {
    /// The caller left while a leg was under way.
    pub(crate) fn cancelled(&mut self) {
        if let Some(leg) = self.leg.take() {
            self.ledger.end_leg_at(leg, &Reading::new(Class::Cancelled));
        }
    }
}
