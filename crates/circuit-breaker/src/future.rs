use std::{
    error::Error,
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use http::Response;
use http_body::Body;
use pin_project_lite::pin_project;
use tower_spillway_core::{BoxError, Read};

use crate::{body::OutcomeBody, home::Share, permit::Guard};

pin_project! {
    /// The future of [`CircuitBreaker`](crate::CircuitBreaker).
    ///
    /// Dropped before its outcome it gives back its permit; that is no failure of the target.
    pub struct ResponseFuture<F, A> {
        #[pin]
        state: State<F, A>,
    }
}

pin_project! {
    /// The future of a [`CircuitBreaker`](crate::CircuitBreaker) whose outcome is read at the end
    /// of the body.
    ///
    /// Dropped before the response head it gives back its permit; that is no failure of the
    /// target.
    pub struct ToBodyEndFuture<F, A> {
        #[pin]
        state: State<F, A>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F, A> {
        Calling {
            #[pin]
            call: F,
            permit: Option<Guard<Share<A>>>,
        },
        /// Never sent.
        NotSent { error: Option<BoxError> },
        Done,
    }
}

impl<F, A> State<F, A> {
    fn calling(call: F, permit: Guard<Share<A>>) -> Self {
        Self::Calling {
            call,
            permit: Some(permit),
        }
    }

    fn not_sent(error: BoxError) -> Self {
        Self::NotSent { error: Some(error) }
    }

    /// What came of it, and `settle`d where it was sent. Once it was ready it is pending.
    fn poll<Res, E, Out>(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        settle: impl FnOnce(Result<Res, BoxError>, Guard<Share<A>>) -> Result<Out, BoxError>,
    ) -> Poll<Result<Out, BoxError>>
    where
        F: Future<Output = Result<Res, E>>,
        E: Into<BoxError>,
    {
        let out = match self.as_mut().project() {
            StateProj::Calling { call, permit } => {
                let Some(running) = permit else {
                    return Poll::Pending;
                };
                let out = ready!(running.run(|| call.poll(cx))).map_err(Into::into);
                match permit.take() {
                    Some(permit) => settle(out, permit),
                    None => return Poll::Pending,
                }
            }
            StateProj::NotSent { error } => match error.take() {
                Some(error) => Err(error),
                None => return Poll::Pending,
            },
            // Polled after completion.
            StateProj::Done => return Poll::Pending,
        };
        self.set(Self::Done);
        Poll::Ready(out)
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Calling { .. } => "calling",
            Self::NotSent { .. } => "not sent",
            Self::Done => "done",
        }
    }
}

impl<F, A> ResponseFuture<F, A> {
    pub(crate) fn calling(call: F, permit: Guard<Share<A>>) -> Self {
        let state = State::calling(call, permit);
        Self { state }
    }

    pub(crate) fn not_sent(error: BoxError) -> Self {
        let state = State::not_sent(error);
        Self { state }
    }
}

impl<F, A, Res, E> Future for ResponseFuture<F, A>
where
    F: Future<Output = Result<Res, E>>,
    E: Into<BoxError>,
    A: Read<Res>,
{
    type Output = Result<Res, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().state.poll(cx, |out, permit| {
            permit.finish(Share::adapter, seen(&out));
            out
        })
    }
}

impl<F, A> fmt::Debug for ResponseFuture<F, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture")
            .field("state", &self.state.name())
            .finish_non_exhaustive()
    }
}

impl<F, A> ToBodyEndFuture<F, A> {
    pub(crate) fn calling(call: F, permit: Guard<Share<A>>) -> Self {
        let state = State::calling(call, permit);
        Self { state }
    }

    pub(crate) fn not_sent(error: BoxError) -> Self {
        let state = State::not_sent(error);
        Self { state }
    }
}

impl<F, A, B, E> Future for ToBodyEndFuture<F, A>
where
    F: Future<Output = Result<Response<B>, E>>,
    E: Into<BoxError>,
    B: Body,
    A: Read<Response<B>>,
{
    type Output = Result<Response<OutcomeBody<B, A>>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().state.poll(cx, |out, permit| match out {
            Ok(response) => Ok(OutcomeBody::wrap(response, permit)),
            Err(error) => {
                permit.finish(Share::adapter, Err::<&Response<B>, _>(&*error));
                Err(error)
            }
        })
    }
}

impl<F, A> fmt::Debug for ToBodyEndFuture<F, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToBodyEndFuture")
            .field("state", &self.state.name())
            .finish_non_exhaustive()
    }
}

/// An outcome as adapters read it.
fn seen<Res>(out: &Result<Res, BoxError>) -> Result<&Res, &(dyn Error + 'static)> {
    out.as_ref().map_err(|error| &**error as _)
}
