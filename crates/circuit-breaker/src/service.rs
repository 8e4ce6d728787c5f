use std::{
    fmt,
    marker::PhantomData,
    mem,
    sync::Arc,
    task::{Context, Poll, ready},
};

use tower_service::Service;
use tower_spillway_core::{BoxError, Http, Ledger, MayCarry, Read, Refused};

use crate::{
    breaker::Breaker, future::ResponseFuture, layer::AtHead, machine::Denied, permit::Permit,
    registry::Home,
};

/// Refuses calls to a target that fails. See the [module docs](crate).
///
/// # Clone
///
/// Clones share the state of their target. Readiness is not cloned: what was true of one inner
/// service is not of another.
pub struct CircuitBreaker<S, A = Http, At = AtHead> {
    inner: S,
    adapter: Arc<A>,
    home: Arc<Home>,
    readiness: Readiness,
    at: PhantomData<fn() -> At>,
}

/// What `poll_ready` answered last.
#[derive(Clone, Debug, Default)]
enum Readiness {
    /// Whatever the inner service said.
    #[default]
    Inner,
    /// Ready, without asking the inner service. It must not be called then, even if the open
    /// time has ended since.
    Refusing(Breaker, Denied),
}

impl<S, A, At> CircuitBreaker<S, A, At> {
    pub(crate) fn new(inner: S, adapter: Arc<A>, home: Arc<Home>) -> Self {
        Self {
            inner,
            adapter,
            home,
            readiness: Readiness::Inner,
            at: PhantomData,
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

    /// The right to this call, or why not.
    fn admit<Req>(&mut self, request: &mut Req) -> Result<Permit, Refused>
    where
        A: MayCarry<Req>,
    {
        let readiness = mem::take(&mut self.readiness);
        let ledger = self
            .adapter
            .carrier()
            .and_then(|carrier| carrier.ledger_mut(request))
            .map(|ledger| &*ledger);
        // Before the refusal, so that the service learns its target from every call.
        let breaker = self.home.breaker(ledger.and_then(Ledger::target));
        match readiness {
            Readiness::Inner => breaker.acquire(ledger),
            Readiness::Refusing(breaker, denied) => {
                Err(breaker.refusal(denied, ledger.map(Ledger::now)))
            }
        }
    }
}

impl<S, A, Req> Service<Req> for CircuitBreaker<S, A, AtHead>
where
    S: Service<Req>,
    S::Error: Into<BoxError>,
    A: MayCarry<Req> + Read<S::Response>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future, A>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        let refusing = self.home.expected().and_then(|breaker| {
            let denied = breaker.refuses()?;
            Some(Readiness::Refusing(breaker.clone(), denied))
        });
        if let Some(refusing) = refusing {
            self.readiness = refusing;
            return Poll::Ready(Ok(()));
        }
        // A refusal remembered from before is over: the inner service answers for itself.
        self.readiness = Readiness::Inner;
        ready!(self.inner.poll_ready(cx)).map_err(Into::into)?;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Req) -> Self::Future {
        match self.admit(&mut request) {
            Ok(mut permit) => {
                let call = permit.run(|| self.inner.call(request));
                ResponseFuture::calling(call, permit, Arc::clone(&self.adapter))
            }
            Err(refused) => ResponseFuture::refused(refused),
        }
    }
}

impl<S: Clone, A, At> Clone for CircuitBreaker<S, A, At> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            adapter: Arc::clone(&self.adapter),
            home: Arc::clone(&self.home),
            readiness: Readiness::Inner,
            at: PhantomData,
        }
    }
}

impl<S: fmt::Debug, A, At> fmt::Debug for CircuitBreaker<S, A, At> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CircuitBreaker")
            .field("inner", &self.inner)
            .field("home", &self.home)
            .finish_non_exhaustive()
    }
}
