use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use http::Response;
use pin_project_lite::pin_project;
use tokio::time::Instant;

use super::TimedBody;
use crate::{
    BoxError,
    error::{TimeLimit, TimedOut},
    timer::Timer,
};

pin_project! {
    /// Waits for a response head, so long.
    #[derive(Debug)]
    pub struct HeadFuture<F> {
        #[pin]
        inner: F,
        #[pin]
        timer: Timer,
        limit: Duration,
    }
}

impl<F> HeadFuture<F> {
    pub(super) fn new(inner: F, limit: Option<Duration>, now: Instant) -> Self {
        Self {
            inner,
            timer: Timer::new(until(limit, now)),
            limit: limit.unwrap_or_default(),
        }
    }
}

/// A limit too far away to be a time is no limit.
pub(super) fn until(limit: Option<Duration>, now: Instant) -> Option<Instant> {
    limit.and_then(|limit| now.checked_add(limit))
}

impl<F, Res, E> Future for HeadFuture<F>
where
    F: Future<Output = Result<Res, E>>,
    E: Into<BoxError>,
{
    type Output = Result<Res, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(out) = this.inner.poll(cx) {
            return Poll::Ready(out.map_err(Into::into));
        }
        ready!(this.timer.poll(cx));
        Poll::Ready(Err(TimedOut::new(TimeLimit::Head, *this.limit).into()))
    }
}

pin_project! {
    /// Waits for a response head, then limits the body.
    #[derive(Debug)]
    pub struct LastByteFuture<F> {
        #[pin]
        head: HeadFuture<F>,
        limit: Option<Duration>,
        sent: Instant,
    }
}

impl<F> LastByteFuture<F> {
    pub(super) fn new(head: HeadFuture<F>, limit: Option<Duration>, sent: Instant) -> Self {
        Self { head, limit, sent }
    }
}

impl<F, B, E> Future for LastByteFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
    E: Into<BoxError>,
{
    type Output = Result<Response<TimedBody<B>>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let response = ready!(this.head.poll(cx))?;
        let until = until(*this.limit, *this.sent);
        let limit = this.limit.unwrap_or_default();
        Poll::Ready(Ok(response.map(|body| TimedBody::new(body, until, limit))))
    }
}
