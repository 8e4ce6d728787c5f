//! A plain answer counts once its last byte is here.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{Extensions, Response, response::Parts};
use http_body::Body;
use http_body_util::{BodyExt, Either, Full, Limited, combinators::Collect};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;
use tower_spillway_core::BoxError;
use tower_spillway_llm::stream::is_event_stream;

use super::prepare::whole;

/// A longer answer is an error, so that a vendor gone mad cannot fill the memory.
const MOST: usize = 32 * 1024 * 1024;

/// Reads plain answers whole, within the attempt.
///
/// Without it an attempt is over with its response head: a body that breaks off, or stalls, is the
/// caller's trouble, although nothing of it was used and another target could answer. Streams
/// (`text/event-stream`) of a success pass as they are; an error is read whole whatever its type, or
/// it could come for ever.
#[derive(Clone, Copy, Debug, Default)]
pub struct WholeAnswerLayer;

impl<S> Layer<S> for WholeAnswerLayer {
    type Service = WholeAnswer<S>;

    fn layer(&self, inner: S) -> Self::Service {
        WholeAnswer { inner }
    }
}

/// Reads plain answers whole, within the attempt. See [`WholeAnswerLayer`].
#[derive(Clone, Debug)]
pub struct WholeAnswer<S> {
    inner: S,
}

impl<S> WholeAnswer<S> {
    /// The wrapped service.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The wrapped service, to change.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// The wrapped service alone.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S, Req, B> Service<Req> for WholeAnswer<S>
where
    S: Service<Req, Response = Response<B>>,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Response = Response<Either<Full<Bytes>, B>>;
    type Error = BoxError;
    type Future = WholeFuture<S::Future, B>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Req) -> Self::Future {
        WholeFuture {
            state: State::Head {
                call: self.inner.call(request),
            },
        }
    }
}

pin_project! {
    /// The future of [`WholeAnswer`].
    pub struct WholeFuture<F, B>
    where
        B: Body,
        B::Error: Into<BoxError>,
    {
        #[pin]
        state: State<F, B>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F, B>
    where
        B: Body,
        B::Error: Into<BoxError>,
    {
        Head { #[pin] call: F },
        Body { head: Option<Parts>, #[pin] body: Collect<Limited<B>> },
    }
}

impl<F, B, E> Future for WholeFuture<F, B>
where
    F: Future<Output = Result<Response<B>, E>>,
    E: Into<BoxError>,
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Output = Result<Response<Either<Full<Bytes>, B>>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            match this.state.as_mut().project() {
                StateProj::Head { call } => {
                    let response = ready!(call.poll(cx)).map_err(Into::into)?;
                    if is_stream(&response) {
                        return Poll::Ready(Ok(response.map(Either::Right)));
                    }
                    let (head, body) = response.into_parts();
                    this.state.set(State::Body {
                        head: Some(head),
                        body: Limited::new(body, MOST).collect(),
                    });
                }
                StateProj::Body { head, body } => {
                    let whole = ready!(body.poll(cx))?.to_bytes();
                    // Polled after completion.
                    let Some(head) = head.take() else {
                        return Poll::Pending;
                    };
                    let body = Either::Left(Full::new(whole));
                    return Poll::Ready(Ok(Response::from_parts(head, body)));
                }
            }
        }
    }
}

/// Whether an answer comes as a stream of events that can be read as they come.
pub(crate) fn is_stream<B>(response: &Response<B>) -> bool {
    response.status().is_success() && is_event_stream(response.headers())
}

/// Puts on a plain success what `look` finds in its body.
pub(super) fn looked_into<B>(
    mut response: Response<Either<Full<Bytes>, B>>,
    look: impl FnOnce(&[u8], &mut Extensions),
) -> Response<Either<Full<Bytes>, B>> {
    let body = match response.body() {
        Either::Left(body) if response.status().is_success() => whole(&mut body.clone()),
        _ => return response,
    };
    look(&body, response.extensions_mut());
    response
}

impl<F, B> fmt::Debug for WholeFuture<F, B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WholeFuture").finish_non_exhaustive()
    }
}
