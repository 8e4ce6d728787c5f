//! The future of every retrying layer.

mod settle;

use std::{
    fmt,
    future::Future,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep_until};
use tower_service::Service;

use super::{
    Engine,
    wait::{Grants, Held, Spare},
};
use crate::{
    BoxError, Cause, Class, Ledger, Policy, Read, Reading, Resend, clock,
    error::{TimeLimit, TimedOut},
    ledger::{Ended, Part},
    timer::Timer,
};

pin_project! {
    /// The future of every retrying layer. See the [module docs](super).
    ///
    /// Dropped at any point it leaves nothing open: an attempt under way is recorded as cancelled,
    /// reservations for a retry that was not sent are given back.
    #[project = DriveProj]
    pub struct Drive<S, Req, P, A>
    where
        S: Service<Req>,
        A: Resend<Req>,
    {
        inner: S,
        engine: Arc<Engine<P, A>>,
        ledger: Part,
        driver: bool,
        in_flight: bool,
        resend_safe: bool,
        attempt: u32,
        next_attempt: u32,
        started: Instant,
        spare: Spare<Req>,
        held: Held<S::Response>,
        grants: Grants,
        #[pin]
        state: State<S::Future>,
    }

    impl<S, Req, P, A> PinnedDrop for Drive<S, Req, P, A>
    where
        S: Service<Req>,
        A: Resend<Req>,
    {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            if !*this.driver || matches!(this.state.as_mut().project(), StateProj::Done) {
                return;
            }
            // What is below first: it may read in the ledger why it is dropped. Then in the order of
            // an outcome: the reservation, the attempt, the leg.
            this.state.set(State::Done);
            this.grants.release();
            cancel(this.ledger, this.in_flight.then_some(*this.started));
        }
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F> {
        /// An attempt is out.
        Calling { #[pin] call: F },
        /// Between attempts. No readiness is held while sleeping. What waits is boxed: a call that
        /// is answered at once has none, and is copied wherever it is moved.
        Waiting { sleep: Pin<Box<Sleep>> },
        /// The wait is over; the service must become ready before the deadline.
        Readying { deadline: Pin<Box<Timer>> },
        Done,
    }
}

impl<S, Req, P, A> Drive<S, Req, P, A>
where
    S: Service<Req>,
    A: Resend<Req>,
{
    /// Sends a request through `inner`, which must have been polled ready.
    #[inline]
    pub fn new(mut inner: S, mut request: Req, engine: Arc<Engine<P, A>>) -> Self {
        let adapter = &engine.adapter;
        let mut ledger = match adapter.carrier() {
            Some(carrier) => Ledger::enter(carrier, &mut request),
            None => Part::unattached(),
        };
        let driver = !ledger.is_driven();
        let now = ledger.begun();
        if driver {
            ledger.drive(engine.limits, now);
        } else {
            ledger.limit(engine.limits);
        }
        let resend_safe = adapter.resend_safe(&request, ledger.resend_terms());
        for gate in &engine.gates {
            // Below a driver, which this layer is or has above it, there is no entry to keep: the
            // driver leaves the gate when its leg ends.
            drop(ledger.enter_gate(Arc::clone(gate), now));
        }
        let mut spare = Spare::Taken;
        if driver {
            mark(adapter, &mut request, &ledger, 1);
            // Even where one send is all that is allowed: an attempt that is refused unsent is none.
            spare = copy(adapter, &request);
        }
        let unwinding = Unwinding {
            ledger: &ledger,
            driver,
            started: now,
        };
        let call = ledger.during(now, || inner.call(request));
        mem::forget(unwinding);
        Self {
            inner,
            engine,
            ledger,
            driver,
            in_flight: driver,
            resend_safe,
            attempt: 1,
            next_attempt: 2,
            started: now,
            spare,
            held: None,
            grants: Grants::default(),
            state: State::Calling { call },
        }
    }
}

/// Settles what is open if the first `call` panics: there is no future yet that could.
struct Unwinding<'l> {
    ledger: &'l Ledger,
    driver: bool,
    started: Instant,
}

impl Drop for Unwinding<'_> {
    fn drop(&mut self) {
        if self.driver {
            cancel(self.ledger, Some(self.started));
        }
    }
}

/// The leg is over without an outcome; neither is there one of the attempt that is out.
fn cancel(ledger: &Ledger, out_since: Option<Instant>) {
    let now = clock::now();
    if let Some(start) = out_since {
        ledger.end_attempt(Ended {
            reading: &Reading::new(Class::Cancelled),
            start,
            end: now,
        });
    }
    ledger.leave_gates(now);
}

fn mark<Req, A: Resend<Req>>(adapter: &A, request: &mut Req, ledger: &Ledger, attempt: u32) {
    if let Some(carrier) = adapter.carrier() {
        ledger.mark(carrier, request, attempt);
    }
}

fn copy<Req, A: Resend<Req>>(adapter: &A, request: &Req) -> Spare<Req> {
    match adapter.try_clone(request) {
        Ok(copy) => Spare::Copy(copy),
        Err(why) => Spare::Never(why),
    }
}

impl<S, Req, P, A> Future for Drive<S, Req, P, A>
where
    S: Service<Req>,
    S::Error: Into<BoxError>,
    P: Policy<S::Response>,
    A: Resend<Req> + Read<S::Response>,
{
    type Output = Result<S::Response, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let next = match this.state.as_mut().project() {
                StateProj::Calling { call } => {
                    let (polled, ended) = clock::ending(|| call.poll(cx));
                    let Poll::Ready(out) = polled else {
                        // Not refused at once, so it is under way; a response that was held would
                        // only pin the connection that it may need. An error pins nothing, and is
                        // still better than a refusal that comes later.
                        if matches!(this.held.as_deref(), Some(Ok(_))) {
                            *this.held = None;
                        }
                        return Poll::Pending;
                    };
                    let out = out.map_err(Into::into);
                    let settled = match ended {
                        Some(end) => clock::during(end, || this.settle(out)),
                        None => this.settle(out),
                    };
                    match settled {
                        Ok(out) => {
                            this.state.set(State::Done);
                            return Poll::Ready(out);
                        }
                        Err(until) => State::Waiting {
                            sleep: Box::pin(sleep_until(until)),
                        },
                    }
                }
                StateProj::Waiting { sleep } => {
                    ready!(sleep.as_mut().poll(cx));
                    State::Readying {
                        deadline: Box::pin(Timer::new(this.ledger.deadline())),
                    }
                }
                StateProj::Readying { deadline } => {
                    let readied = match this.inner.poll_ready(cx) {
                        Poll::Ready(readied) => Some(readied),
                        Poll::Pending => {
                            ready!(deadline.as_mut().poll(cx));
                            None
                        }
                    };
                    let now = clock::now();
                    // Asked also where it is ready: a machine that slept, or a runtime that was
                    // late, wakes this long after the deadline, and nobody waits any more.
                    let in_time = deadline.at().is_none_or(|deadline| now < deadline);
                    let ready = match readied.filter(|_| in_time) {
                        Some(readied) => readied.map_err(|e| (e.into(), Cause::NotReady)),
                        None => {
                            let limit = now.saturating_duration_since(this.ledger.opened_at());
                            let error = TimedOut::new(TimeLimit::Call, limit);
                            Err((error.into(), Cause::DeadlineWouldPass))
                        }
                    };
                    let sent = match ready {
                        Ok(()) => this.resend(now).ok_or((
                            // Unreachable: a wait is decided only with a copy in hand.
                            BoxError::from("no copy of the request"),
                            Cause::NotReplayable,
                        )),
                        Err(failed) => Err(failed),
                    };
                    match sent {
                        Ok(call) => State::Calling { call },
                        Err((error, cause)) => {
                            let out = this.give_up(error, cause);
                            this.state.set(State::Done);
                            return Poll::Ready(out);
                        }
                    }
                }
                // Polled after completion.
                StateProj::Done => return Poll::Pending,
            };
            this.state.set(next);
        }
    }
}

impl<S, Req, P, A> fmt::Debug for Drive<S, Req, P, A>
where
    S: Service<Req>,
    A: Resend<Req>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drive")
            .field("ledger", &*self.ledger)
            .field("driver", &self.driver)
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}
