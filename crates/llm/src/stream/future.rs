use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use http::{HeaderValue, Response, header, response::Parts};
use http_body::Body;
use pin_project_lite::pin_project;
use tower_spillway_core::{BoxError, Class, Reading};

use super::{
    GuardedBody, fault,
    flow::{Failed, Flow, Terms},
};
use crate::media;

pin_project! {
    /// The future of [`StreamGuard`](super::StreamGuard).
    pub struct ResponseFuture<F, B> {
        #[pin]
        inner: F,
        terms: Option<Terms>,
        // The stream that is held, and its head.
        held: Option<(Parts, Pin<Box<Flow<B>>>)>,
    }
}

impl<F, B> ResponseFuture<F, B> {
    pub(super) fn new(inner: F, terms: Terms) -> Self {
        Self {
            inner,
            terms: Some(terms),
            held: None,
        }
    }
}

impl<F, B, E> Future for ResponseFuture<F, B>
where
    F: Future<Output = Result<Response<B>, E>>,
    E: Into<BoxError>,
    B: Body,
    B::Error: Into<BoxError>,
{
    type Output = Result<Response<GuardedBody<B>>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if this.held.is_none() {
            let response = ready!(this.inner.poll(cx)).map_err(Into::into)?;
            let (head, body) = response.into_parts();
            let succeeded = is_success(&head);
            match this.terms.take() {
                Some(terms) if succeeded && media::is_event_stream(&head.headers) => {
                    let flow = Flow::new(body, terms);
                    *this.held = Some((head, Box::pin(flow)));
                }
                terms => {
                    if let Some(terms) = terms.filter(|_| succeeded) {
                        terms.guard.alarms.succeeded(terms.target());
                    }
                    return Poll::Ready(Ok(Response::from_parts(head, GuardedBody::plain(body))));
                }
            }
        }
        let Some((_, flow)) = this.held else {
            // Not reached: it was set above.
            return Poll::Pending;
        };
        let held = ready!(flow.as_mut().poll_hold(cx));
        Poll::Ready(match (this.held.take(), held) {
            (Some((head, flow)), Ok(())) => Ok(given(head, flow)),
            (Some((head, flow)), Err(Failed::InBand(error))) => {
                let verdict = flow.judge(&error, &head.headers);
                Ok(refused(head, verdict))
            }
            (_, Err(Failed::Broken(broken))) => Err(broken.into_error()),
            (None, _) => return Poll::Pending,
        })
    }
}

/// What a layer inside calls failed is left as it is.
fn is_success(head: &Parts) -> bool {
    let failed = |reading: &Reading| reading.class() != Class::Success;
    head.status.is_success() && !head.extensions.get().is_some_and(failed)
}

fn given<B>(mut head: Parts, flow: Pin<Box<Flow<B>>>) -> Response<GuardedBody<B>>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    // The stream may end in an event of ours.
    head.headers.remove(header::CONTENT_LENGTH);
    head.extensions.insert(flow.end().clone());
    head.extensions.insert(flow.usage().clone());
    Response::from_parts(head, GuardedBody::stream(flow))
}

/// What the stream said, as the ordinary answer that it should have been.
fn refused<B>(mut head: Parts, verdict: fault::Verdict) -> Response<GuardedBody<B>> {
    const JSON: HeaderValue = HeaderValue::from_static("application/json");
    head.status = verdict.status;
    for name in [
        header::CONTENT_LENGTH,
        header::TRANSFER_ENCODING,
        header::TRAILER,
        header::CACHE_CONTROL,
    ] {
        head.headers.remove(name);
    }
    head.headers.insert(header::CONTENT_TYPE, JSON);
    head.extensions.insert(verdict.reading);
    Response::from_parts(head, GuardedBody::error(verdict.body))
}

impl<F, B> fmt::Debug for ResponseFuture<F, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture")
            .field("holding", &self.held.is_some())
            .finish_non_exhaustive()
    }
}
