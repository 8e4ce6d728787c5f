use std::task::{Context, Poll};

use tower_service::Service;

use super::{ResponseFuture, layer::Terms};
use crate::{BoxError, Carry, Http, Ledger, Limits, Read};

/// Bounds a whole call and records it. See the [module docs](super).
#[derive(Clone, Debug)]
pub struct Call<S, A = Http> {
    pub(super) inner: S,
    pub(super) terms: Terms,
    pub(super) adapter: A,
}

impl<S, A> Call<S, A> {
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

impl<S, A, Req> Service<Req> for Call<S, A>
where
    S: Service<Req>,
    S::Error: Into<BoxError>,
    A: Carry<Req> + Read<S::Response> + Clone,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future, A>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut request: Req) -> Self::Future {
        let ledger = Ledger::enter(&self.adapter, &mut request);
        let now = ledger.begun();
        // A deadline too far away to be a time is no deadline.
        let deadline = self.terms.deadline.and_then(|d| now.checked_add(d));
        if let Some(deadline) = deadline {
            ledger.set_deadline(deadline);
        }
        if self.terms.max_sends.is_some() {
            ledger.limit_all(Limits {
                max_attempts: self.terms.max_sends,
                ..Limits::default()
            });
        }
        let future = ledger.during(now, || self.inner.call(request));
        ResponseFuture::new(future, self.adapter.clone(), ledger, self.terms, deadline)
    }
}
