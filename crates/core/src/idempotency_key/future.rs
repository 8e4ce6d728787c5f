use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use pin_project_lite::pin_project;

use crate::BoxError;

pin_project! {
    /// The future of [`IdempotencyKey`](super::IdempotencyKey).
    pub struct ResponseFuture<F> {
        #[pin]
        call: Option<F>,
        error: Option<BoxError>,
    }
}

impl<F> ResponseFuture<F> {
    pub(super) fn calling(call: F) -> Self {
        Self {
            call: Some(call),
            error: None,
        }
    }

    pub(super) fn not_sent(error: BoxError) -> Self {
        Self {
            call: None,
            error: Some(error),
        }
    }
}

impl<F, Res, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Res, E>>,
    E: Into<BoxError>,
{
    type Output = Result<Res, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        match (this.call.as_pin_mut(), this.error.take()) {
            (Some(call), _) => call.poll(cx).map_err(Into::into),
            (None, Some(error)) => Poll::Ready(Err(error)),
            // Polled after completion.
            (None, None) => Poll::Pending,
        }
    }
}

impl<F> fmt::Debug for ResponseFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture")
            .field("sent", &self.call.is_some())
            .finish_non_exhaustive()
    }
}
