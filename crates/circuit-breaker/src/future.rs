use std::{
    error::Error,
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;
use tower_spillway_core::{BoxError, Read};

use crate::{home::Share, permit::Guard};

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

impl<F, A> ResponseFuture<F, A> {
    pub(crate) fn calling(call: F, permit: Guard<Share<A>>) -> Self {
        Self {
            state: State::Calling {
                call,
                permit: Some(permit),
            },
        }
    }

    pub(crate) fn not_sent(error: BoxError) -> Self {
        Self {
            state: State::NotSent { error: Some(error) },
        }
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
        let mut state = self.project().state;
        let out = match state.as_mut().project() {
            StateProj::Calling { call, permit } => {
                let polled = match permit {
                    Some(permit) => permit.run(|| call.poll(cx)),
                    None => call.poll(cx),
                };
                let out = ready!(polled).map_err(Into::into);
                if let Some(permit) = permit.take() {
                    let view = out.as_ref().map_err(|e| &**e as &(dyn Error + 'static));
                    permit.finish(Share::adapter, view);
                }
                out
            }
            StateProj::NotSent { error } => match error.take() {
                Some(error) => Err(error),
                None => return Poll::Pending,
            },
            // Polled after completion.
            StateProj::Done => return Poll::Pending,
        };
        state.set(State::Done);
        Poll::Ready(out)
    }
}

impl<F, A> fmt::Debug for ResponseFuture<F, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Calling { .. } => "calling",
            State::NotSent { .. } => "not sent",
            State::Done => "done",
        };
        f.debug_struct("ResponseFuture")
            .field("state", &state)
            .finish_non_exhaustive()
    }
}
