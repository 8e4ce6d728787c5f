use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;
use tower_spillway_core::{BoxError, Read, clock, gate::Entry, ledger::Part};

pin_project! {
    /// The future of [`RetryBudget`](crate::RetryBudget).
    pub struct ResponseFuture<F, A> {
        // In the order of their drop: retries give back what they hold, then the budget is left,
        // then the call ends.
        #[pin]
        inner: F,
        entry: Option<Entry>,
        ledger: Part,
        adapter: Arc<A>,
    }
}

impl<F, A> ResponseFuture<F, A> {
    pub(crate) fn new(inner: F, entry: Option<Entry>, ledger: Part, adapter: Arc<A>) -> Self {
        Self {
            inner,
            entry,
            ledger,
            adapter,
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
        let this = self.project();
        let (polled, ended) = clock::ending(|| this.inner.poll(cx));
        let mut out = ready!(polled).map_err(Into::into);
        if let Some(entry) = this.entry.take() {
            // The end of the last attempt: the clock is not read once more.
            entry.leave(ended.unwrap_or_else(|| this.ledger.last_seen()));
        }
        this.ledger.finish(&**this.adapter, &mut out);
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
