use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use pin_project_lite::pin_project;
use tokio::time::Instant;

use super::layer::Terms;
use crate::{
    Abandoned, BoxError, Read,
    error::{TimeLimit, TimedOut},
    ledger::Part,
    timer::Timer,
};

pin_project! {
    /// The future of [`Call`](super::Call).
    pub struct ResponseFuture<F, A> {
        // Dropped at the deadline, before the error is given: the mark in the ledger is made first.
        #[pin]
        inner: Option<F>,
        #[pin]
        deadline: Timer,
        adapter: A,
        ledger: Part,
        terms: Terms,
    }
}

impl<F, A> ResponseFuture<F, A> {
    pub(super) fn new(
        inner: F,
        adapter: A,
        ledger: Part,
        terms: Terms,
        deadline: Option<Instant>,
    ) -> Self {
        Self {
            inner: Some(inner),
            deadline: Timer::new(deadline),
            adapter,
            ledger,
            terms,
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
        let mut this = self.project();
        // The inner future first: what it has at the deadline is better than an error.
        let mut out = match this.inner.as_mut().as_pin_mut().map(|f| f.poll(cx)) {
            Some(Poll::Ready(out)) => out.map_err(Into::into),
            Some(Poll::Pending) => match this.deadline.poll(cx) {
                Poll::Ready(()) => {
                    this.ledger.abandon(Abandoned::Deadline);
                    this.inner.set(None);
                    let limit = this.terms.deadline.unwrap_or_default();
                    Err(TimedOut::new(TimeLimit::Call, limit).into())
                }
                Poll::Pending => return Poll::Pending,
            },
            // Polled after completion.
            None => return Poll::Pending,
        };
        this.inner.set(None);
        let detached = this.terms.must_reach_a_leg && this.ledger.is_owner();
        if detached && !this.ledger.reached_a_leg() {
            tracing::warn!(
                "no retrying layer saw the ledger of this call: does a layer in between rebuild \
                 requests without their extensions?"
            );
        }
        this.ledger.finish(this.adapter, &mut out);
        Poll::Ready(out)
    }
}

impl<F, A> fmt::Debug for ResponseFuture<F, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture")
            .field("ledger", &*self.ledger)
            .finish_non_exhaustive()
    }
}
