use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use http::{Response, Version};
use http_body::Body;
use pin_project_lite::pin_project;

use super::{FirstFrameBody, body::First};
use crate::{
    BoxError, Class, Reading,
    adapter::read_grpc_with,
    clock,
    hint::{self, grpc_status, is_grpc},
    timer::Timer,
};

/// The reason of a gRPC call that ended without a status.
const NO_STATUS: &str = "no_grpc_status";

pin_project! {
    /// The future of [`GrpcStatus`](super::GrpcStatus).
    pub struct ResponseFuture<F, B> {
        #[pin]
        inner: F,
        // The response whose first frame is waited for.
        open: Option<Response<B>>,
        // Set where that frame does not come at once.
        #[pin]
        limit: Option<Timer>,
        within: Duration,
        hints: hint::Reader,
    }
}

impl<F, B> ResponseFuture<F, B> {
    pub(super) fn new(inner: F, within: Duration, hints: hint::Reader) -> Self {
        Self {
            inner,
            open: None,
            limit: None,
            within,
            hints,
        }
    }
}

impl<F, B, E> Future for ResponseFuture<F, B>
where
    F: Future<Output = Result<Response<B>, E>>,
    E: Into<BoxError>,
    B: Body + Unpin,
    B::Error: Into<BoxError>,
{
    type Output = Result<Response<FirstFrameBody<B>>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if this.open.is_none() {
            let response = ready!(this.inner.poll(cx)).map_err(Into::into)?;
            if !wants_status(&response) {
                let untouched = |body| FirstFrameBody::new(body, First::None);
                return Poll::Ready(Ok(response.map(untouched)));
            }
            *this.open = Some(response);
        }
        let Some(response) = this.open.as_mut() else {
            // Not reached: it was set above.
            return Poll::Pending;
        };
        let body = response.body_mut();
        let size = body.size_hint();
        let polled = match body.is_end_stream() {
            // May not be polled.
            true => Poll::Ready(None),
            false => Pin::new(body).poll_frame(cx),
        };
        let first = match polled {
            Poll::Ready(Some(Ok(frame))) => Ok(First::Frame(frame, size)),
            Poll::Ready(Some(Err(error))) => Err(error.into()),
            Poll::Ready(None) => Ok(First::End),
            Poll::Pending if this.within.is_zero() => Ok(First::None),
            Poll::Pending => {
                if this.limit.is_none() {
                    let at = clock::now().checked_add(*this.within);
                    this.limit.set(Some(Timer::new(at)));
                }
                if let Some(limit) = this.limit.as_mut().as_pin_mut() {
                    ready!(limit.poll(cx));
                }
                Ok(First::None)
            }
        };
        // What held a place in the runtime's wheel goes.
        this.limit.set(None);
        let Some(mut response) = this.open.take() else {
            return Poll::Pending;
        };
        let first = first?;
        if let Some(reading) = read(&first, &response, this.hints) {
            response.extensions_mut().insert(reading);
        }
        Poll::Ready(Ok(response.map(|body| FirstFrameBody::new(body, first))))
    }
}

/// Whether the outcome of a gRPC call is still to come. Where a layer inside has read the response,
/// that is the outcome.
fn wants_status<B>(response: &Response<B>) -> bool {
    response.version() == Version::HTTP_2
        && response.status().is_success()
        && is_grpc(response.headers())
        && grpc_status(response.headers()).is_none()
        && response.extensions().get::<Reading>().is_none()
}

/// What the call came to, if it ended and not well.
fn read<D, B>(first: &First<D>, response: &Response<B>, hints: &hint::Reader) -> Option<Reading> {
    let said = match first {
        First::None => return None,
        First::Frame(frame, _) => read_grpc_with(hints, response.status(), frame.trailers_ref()?),
        First::End => None,
    };
    let reading = said.unwrap_or_else(|| Reading::new(Class::Transient).with_reason(NO_STATUS));
    Some(reading).filter(|reading| reading.class() != Class::Success)
}

impl<F, B> fmt::Debug for ResponseFuture<F, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture")
            .field("open", &self.open.is_some())
            .finish_non_exhaustive()
    }
}
