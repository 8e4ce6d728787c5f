use std::{
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
    pub(crate) enum State<F, A> {
        Calling {
            #[pin]
            call: F,
            permit: Option<Guard<Share<A>>>,
        },
        /// Never sent.
        NotSent { error: Option<BoxError> },
    }
}

impl<F, A> State<F, A> {
    #[inline]
    pub(crate) fn calling(call: F, permit: Guard<Share<A>>) -> Self {
        Self::Calling {
            call,
            permit: Some(permit),
        }
    }

    pub(crate) fn not_sent(error: BoxError) -> Self {
        Self::NotSent { error: Some(error) }
    }

    /// What came of it, and `settle`d where it was sent. Once it was ready it is pending.
    #[inline]
    fn poll<Res, E, Out>(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        settle: impl FnOnce(
            Result<Res, BoxError>,
            &mut Option<Guard<Share<A>>>,
        ) -> Result<Out, BoxError>,
    ) -> Poll<Result<Out, BoxError>>
    where
        F: Future<Output = Result<Res, E>>,
        E: Into<BoxError>,
    {
        let out = match self.project() {
            StateProj::Calling { call, permit } => {
                let running = permit.as_mut().filter(|permit| !permit.is_settled());
                let Some(running) = running else {
                    return Poll::Pending;
                };
                let out = ready!(running.run(|| call.poll(cx))).map_err(Into::into);
                settle(out, permit)
            }
            StateProj::NotSent { error } => match error.take() {
                Some(error) => Err(error),
                None => return Poll::Pending,
            },
        };
        Poll::Ready(out)
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Calling { .. } => "calling",
            Self::NotSent { .. } => "not sent",
        }
    }
}

impl<F, A> ResponseFuture<F, A> {
    #[inline]
    pub(crate) fn new(state: State<F, A>) -> Self {
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

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().state.poll(cx, |out, permit| {
            if let Some(permit) = permit {
                match &out {
                    Ok(response) => permit.answered(Share::adapter, response),
                    Err(error) => permit.failed::<Res, _>(Share::adapter, &**error),
                }
            }
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
    #[inline]
    pub(crate) fn new(state: State<F, A>) -> Self {
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

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().state.poll(cx, |out, permit| match out {
            Ok(response) => Ok(OutcomeBody::wrap(response, permit.take())),
            Err(error) => {
                if let Some(permit) = permit {
                    permit.failed::<Response<B>, _>(Share::adapter, &*error);
                }
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
