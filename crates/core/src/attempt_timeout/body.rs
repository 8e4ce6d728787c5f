use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::time::Instant;

use crate::{
    BoxError,
    error::{TimeLimit, TimedOut},
    timer::Timer,
};

pin_project! {
    /// A response body that must end in time.
    ///
    /// When its limit runs out it yields one [`TimedOut`] error and ends.
    #[derive(Debug)]
    pub struct TimedBody<B> {
        #[pin]
        inner: B,
        #[pin]
        timer: Timer,
        limit: Duration,
        done: bool,
    }
}

impl<B> TimedBody<B> {
    pub(super) fn new(inner: B, until: Option<Instant>, limit: Duration) -> Self {
        Self {
            inner,
            timer: Timer::new(until),
            limit,
            done: false,
        }
    }
}

impl<B> Body for TimedBody<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let mut this = self.project();
        if *this.done {
            return Poll::Ready(None);
        }
        if let Poll::Ready(frame) = this.inner.as_mut().poll_frame(cx) {
            // A body that always has more would never be waited for, and so never be late. The end
            // may come late, if the caller reads late.
            if matches!(frame, Some(Ok(_))) && this.timer.is_past() && !this.inner.is_end_stream() {
                *this.done = true;
                let error = TimedOut::new(TimeLimit::LastByte, *this.limit);
                return Poll::Ready(Some(Err(error.into())));
            }
            *this.done = !matches!(frame, Some(Ok(_)));
            if *this.done {
                this.timer.set(Timer::new(None));
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        match this.timer.as_mut().poll(cx) {
            Poll::Ready(()) => {
                *this.done = true;
                let error = TimedOut::new(TimeLimit::LastByte, *this.limit);
                Poll::Ready(Some(Err(error.into())))
            }
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.done || self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
