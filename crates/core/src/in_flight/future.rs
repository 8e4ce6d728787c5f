use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use http::Response;
use http_body::Body;
use pin_project_lite::pin_project;
use tokio::{
    sync::{AcquireError, OwnedSemaphorePermit},
    time::{Instant, Sleep, sleep_until},
};
use tower_service::Service;

use super::{
    PermitBody,
    permits::{Permits, Waiting},
};
use crate::{BoxError, Class, Reading, Refusal, Refused, adapter::is_small, clock};

/// The semaphore's own future has no name. It is made only where a call must wait.
type Acquire =
    Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send + Sync>>;

pin_project! {
    /// A call with its permit, once it has one.
    pub(super) struct Admitted<S, Req>
    where
        S: Service<Req>,
    {
        #[pin]
        state: State<S, Req, S::Future>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<S, Req, F> {
        Queued {
            acquire: Acquire,
            waiting: Waiting,
            next: Option<(S, Req)>,
            #[pin]
            limit: Sleep,
        },
        /// With a permit; the service below must become ready.
        Readying {
            permit: Option<OwnedSemaphorePermit>,
            next: Option<(S, Req)>,
            #[pin]
            limit: Sleep,
        },
        Calling {
            #[pin]
            call: F,
            permit: Option<OwnedSemaphorePermit>,
        },
        Done,
    }
}

impl<S, Req> Admitted<S, Req>
where
    S: Service<Req>,
{
    pub(super) fn calling(call: S::Future, permit: OwnedSemaphorePermit) -> Self {
        Self {
            state: State::Calling {
                call,
                permit: Some(permit),
            },
        }
    }

    pub(super) fn queued(service: S, request: Req, permits: &Permits, by: Instant) -> Self {
        Self {
            state: State::Queued {
                acquire: Box::pin(permits.semaphore().acquire_owned()),
                waiting: permits.wait(),
                next: Some((service, request)),
                limit: sleep_until(by),
            },
        }
    }
}

impl<S, Req> Future for Admitted<S, Req>
where
    S: Service<Req>,
    S::Error: Into<BoxError>,
{
    type Output = Result<(S::Response, Option<OwnedSemaphorePermit>), BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            let next = match state.as_mut().project() {
                StateProj::Queued {
                    acquire,
                    waiting,
                    next,
                    limit,
                } => match acquire.as_mut().poll(cx) {
                    Poll::Ready(Ok(permit)) => State::Readying {
                        permit: Some(permit),
                        next: next.take(),
                        limit: sleep_until(limit.deadline()),
                    },
                    // Closed: nobody closes it.
                    Poll::Ready(Err(_)) => {
                        let error = refused(Refusal::Overloaded, Some(waiting.permits()));
                        state.set(State::Done);
                        return Poll::Ready(Err(error));
                    }
                    Poll::Pending => {
                        ready!(limit.poll(cx));
                        let error = refused(Refusal::Overloaded, Some(waiting.permits()));
                        state.set(State::Done);
                        return Poll::Ready(Err(error));
                    }
                },
                StateProj::Readying {
                    permit,
                    next,
                    limit,
                } => {
                    let readied = match next.as_mut().map(|(service, _)| service.poll_ready(cx)) {
                        Some(Poll::Ready(out)) => out.map_err(Into::into),
                        Some(Poll::Pending) => {
                            ready!(limit.poll(cx));
                            Err(refused(Refusal::NotReady, None))
                        }
                        None => return Poll::Pending,
                    };
                    let called = readied.map(|()| {
                        next.take().map(|(mut service, request)| {
                            // A chain of its own: the time of the waiting is not that of the
                            // sending.
                            clock::during(clock::now(), || service.call(request))
                        })
                    });
                    match called {
                        Ok(Some(call)) => State::Calling {
                            call,
                            permit: permit.take(),
                        },
                        Ok(None) => return Poll::Pending,
                        Err(error) => {
                            state.set(State::Done);
                            return Poll::Ready(Err(error));
                        }
                    }
                }
                StateProj::Calling { call, permit } => {
                    let out = ready!(call.poll(cx)).map_err(Into::into);
                    let permit = permit.take();
                    state.set(State::Done);
                    return Poll::Ready(out.map(|response| (response, permit)));
                }
                // Polled after completion.
                StateProj::Done => return Poll::Pending,
            };
            state.set(next);
        }
    }
}

fn refused(refusal: Refusal, full: Option<&Permits>) -> BoxError {
    tracing::debug!(
        spillway.refusal = refusal.as_str(),
        spillway.in_flight = full.map(Permits::in_flight),
        spillway.waiting = full.map(Permits::waiting),
        "call refused"
    );
    Refused::new(refusal).into()
}

pin_project! {
    /// The future of [`InFlight`](super::InFlight) that hands its permit to the response body.
    pub struct ToBodyEndFuture<S, Req>
    where
        S: Service<Req>,
    {
        #[pin]
        inner: Admitted<S, Req>,
    }
}

impl<S, Req> ToBodyEndFuture<S, Req>
where
    S: Service<Req>,
{
    pub(super) fn new(inner: Admitted<S, Req>) -> Self {
        Self { inner }
    }
}

impl<S, Req, B> Future for ToBodyEndFuture<S, Req>
where
    S: Service<Req, Response = Response<B>>,
    S::Error: Into<BoxError>,
    B: Body,
{
    type Output = Result<Response<PermitBody<B>>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let (response, permit) = ready!(self.project().inner.poll(cx))?;
        // A driver may hold a small answer that is no success through its whole wait. With the
        // permit in it, the answer would keep out the very retry that it is held for.
        let over = is_failure(&response) && is_small(response.body());
        let permit = permit.filter(|_| !over);
        Poll::Ready(Ok(response.map(|body| PermitBody::new(body, permit))))
    }
}

/// By its status, or by what a layer inside read.
fn is_failure<B>(response: &Response<B>) -> bool {
    let read = response.extensions().get::<Reading>();
    !response.status().is_success() || read.is_some_and(|read| read.class() != Class::Success)
}

impl<S, Req> fmt::Debug for ToBodyEndFuture<S, Req>
where
    S: Service<Req>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToBodyEndFuture").finish_non_exhaustive()
    }
}

pin_project! {
    /// The future of [`InFlight`](super::InFlight) that gives its permit back with the response.
    pub struct ToResponseFuture<S, Req>
    where
        S: Service<Req>,
    {
        #[pin]
        inner: Admitted<S, Req>,
    }
}

impl<S, Req> ToResponseFuture<S, Req>
where
    S: Service<Req>,
{
    pub(super) fn new(inner: Admitted<S, Req>) -> Self {
        Self { inner }
    }
}

impl<S, Req> Future for ToResponseFuture<S, Req>
where
    S: Service<Req>,
    S::Error: Into<BoxError>,
{
    type Output = Result<S::Response, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let (response, _permit) = ready!(self.project().inner.poll(cx))?;
        Poll::Ready(Ok(response))
    }
}

impl<S, Req> fmt::Debug for ToResponseFuture<S, Req>
where
    S: Service<Req>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToResponseFuture").finish_non_exhaustive()
    }
}
