//! The future.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep_until};
use tower_service::Service;
use tower_spillway_core::{BoxError, Carry, Read, Resend};

use crate::{
    journey::{Journey, Next},
    service::Readiness,
};

pin_project! {
    /// The future of [`FailoverService`](crate::FailoverService).
    pub struct ResponseFuture<S, Req, A>
    where
        S: Service<Req>,
    {
        journey: Journey<S, Req, S::Response, A>,
        ready_within: Duration,
        #[pin]
        state: State<S, Req, S::Future, S::Response>,
    }

    impl<S, Req, A> PinnedDrop for ResponseFuture<S, Req, A>
    where
        S: Service<Req>,
    {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            // The leg's own layers settle first: a driver among them records the attempt, and what
            // it recorded must not be recorded twice.
            this.state.set(State::Done);
            this.journey.cancelled();
        }
    }
}

pin_project! {
    #[project = StateProj]
    enum State<S, Req, F, Res> {
        /// The target under way must become ready in time.
        Readying {
            service: S,
            request: Option<Req>,
            // Boxed: made only where a target is waited for.
            limit: Option<Pin<Box<Sleep>>>,
        },
        Calling { #[pin] call: F },
        /// The outcome was known before the first poll.
        Known { out: Option<Result<Res, BoxError>> },
        Done,
    }
}

impl<S, Req, A> ResponseFuture<S, Req, A>
where
    S: Service<Req> + Clone,
    S::Error: Into<BoxError>,
    A: Resend<Req> + Carry<Req> + Read<S::Response>,
{
    /// Sends to the primary at once: it is ready.
    pub(crate) fn at_once(
        mut journey: Journey<S, Req, S::Response, A>,
        mut request: Req,
        primary: &mut S,
        ready_within: Duration,
    ) -> Self {
        if let Err(error) = journey.prepare(&mut request) {
            let next = journey.not_prepared(error);
            return Self::go_on(journey, next, ready_within);
        }
        let now = journey.begun();
        let call = journey.send(request, now, |request| primary.call(request));
        Self {
            journey,
            ready_within,
            state: State::Calling { call },
        }
    }

    /// Waits for the primary, which was not ready yet; goes on to the next target if it failed.
    pub(crate) fn start(
        mut journey: Journey<S, Req, S::Response, A>,
        mut request: Req,
        primary: S,
        readiness: Readiness,
        ready_within: Duration,
    ) -> Self {
        let next = match (journey.prepare(&mut request), readiness) {
            (Err(error), _) => journey.not_prepared(error),
            (Ok(()), Readiness::Failed) => {
                report_not_ready();
                journey.not_ready()
            }
            (Ok(()), _) => {
                let state = State::Readying {
                    service: primary,
                    request: Some(request),
                    limit: None,
                };
                return Self {
                    journey,
                    ready_within,
                    state,
                };
            }
        };
        Self::go_on(journey, next, ready_within)
    }

    fn go_on(
        mut journey: Journey<S, Req, S::Response, A>,
        next: Next<Req, S::Response>,
        ready_within: Duration,
    ) -> Self {
        let state = next_state(&mut journey, next);
        Self {
            journey,
            ready_within,
            state,
        }
    }
}

/// From target to target until one can be asked, or there is an outcome.
fn next_state<S, Req, A>(
    journey: &mut Journey<S, Req, S::Response, A>,
    mut next: Next<Req, S::Response>,
) -> State<S, Req, S::Future, S::Response>
where
    S: Service<Req> + Clone,
    A: Resend<Req> + Carry<Req> + Read<S::Response>,
{
    loop {
        let mut request = match next {
            Next::Done(out) => return State::Known { out: Some(out) },
            Next::Hop(request) => request,
        };
        next = match (journey.prepare(&mut request), journey.service()) {
            (Err(error), _) => journey.not_prepared(error),
            (Ok(()), Some(service)) => {
                return State::Readying {
                    service,
                    request: Some(request),
                    limit: None,
                };
            }
            (Ok(()), None) => journey.not_ready(),
        };
    }
}

impl<S, Req, A> Future for ResponseFuture<S, Req, A>
where
    S: Service<Req> + Clone,
    S::Error: Into<BoxError>,
    A: Resend<Req> + Carry<Req> + Read<S::Response>,
{
    type Output = Result<S::Response, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let next = match this.state.as_mut().project() {
                StateProj::Readying {
                    service,
                    request,
                    limit,
                } => {
                    let ready = match service.poll_ready(cx) {
                        Poll::Ready(Ok(())) => true,
                        Poll::Ready(Err(_)) => {
                            report_not_ready();
                            false
                        }
                        Poll::Pending => {
                            let limit = limit.get_or_insert_with(|| {
                                let by = this.journey.ready_by(*this.ready_within);
                                Box::pin(sleep_until(by))
                            });
                            ready!(limit.as_mut().poll(cx));
                            false
                        }
                    };
                    // Ready, but perhaps long after the deadline: on a machine that slept.
                    let now = this.journey.now();
                    let ready = ready && this.journey.may_begin(now);
                    match request.take().filter(|_| ready) {
                        Some(request) => {
                            let call = this
                                .journey
                                .send(request, now, |request| service.call(request));
                            State::Calling { call }
                        }
                        None => {
                            let next = this.journey.not_ready();
                            next_state(this.journey, next)
                        }
                    }
                }
                StateProj::Calling { call } => {
                    let out = ready!(call.poll(cx)).map_err(Into::into);
                    match this.journey.arrived(out) {
                        Next::Done(out) => {
                            this.state.set(State::Done);
                            return Poll::Ready(out);
                        }
                        hop => next_state(this.journey, hop),
                    }
                }
                StateProj::Known { out } => {
                    let out = out.take();
                    this.state.set(State::Done);
                    return match out {
                        Some(out) => Poll::Ready(out),
                        None => Poll::Pending,
                    };
                }
                // Polled after completion.
                StateProj::Done => return Poll::Pending,
            };
            this.state.set(next);
        }
    }
}

/// Without the error's text: it may name an address with a key in it.
fn report_not_ready() {
    tracing::debug!("a target failed to become ready");
}

impl<S, Req, A> fmt::Debug for ResponseFuture<S, Req, A>
where
    S: Service<Req>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
