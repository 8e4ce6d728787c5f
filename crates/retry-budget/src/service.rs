use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll},
};

use tower_service::Service;
use tower_spillway_core::{BoxError, Carry, Http, Ledger, Read};

use crate::{
    ResponseFuture,
    registry::{Bound, Home},
};

/// Bounds what retries may add. See the [crate docs](crate).
///
/// # Clone
///
/// Clones share their budgets.
pub struct RetryBudget<S, A = Http> {
    inner: S,
    adapter: Arc<A>,
    home: Arc<Home>,
}

impl<S, A> RetryBudget<S, A> {
    pub(crate) fn new(inner: S, adapter: Arc<A>, home: Arc<Home>) -> Self {
        Self {
            inner,
            adapter,
            home,
        }
    }

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

impl<S: Clone, A> Clone for RetryBudget<S, A> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            adapter: Arc::clone(&self.adapter),
            home: Arc::clone(&self.home),
        }
    }
}

impl<S, A, Req> Service<Req> for RetryBudget<S, A>
where
    S: Service<Req>,
    S::Error: Into<BoxError>,
    A: Carry<Req> + Read<S::Response>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future, A>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut request: Req) -> Self::Future {
        let ledger = Ledger::enter(&*self.adapter, &mut request);
        let now = ledger.begun();
        let entry = match self.home.bound(ledger.target()) {
            Bound::Limits(limits) => {
                ledger.limit_all(limits);
                None
            }
            Bound::Gate(gate) => ledger.enter_gate(gate, now),
        };
        let future = ledger.during(now, || self.inner.call(request));
        ResponseFuture::new(future, entry, ledger, Arc::clone(&self.adapter))
    }
}

impl<S: fmt::Debug, A> fmt::Debug for RetryBudget<S, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryBudget")
            .field("inner", &self.inner)
            .field("home", &self.home)
            .finish_non_exhaustive()
    }
}
