use std::{
    fmt,
    marker::PhantomData,
    mem,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
};

use http::Response;
use http_body::Body;
use tower_service::Service;
use tower_spillway_core::{BoxError, Http, Ledger, MayCarry, Read, Refusal, Refused};

use crate::{
    body::OutcomeBody,
    breaker::Breaker,
    future::{ResponseFuture, ToBodyEndFuture},
    home::{Home, Share},
    key::{ByTarget, KeyOf},
    layer::{AtBodyEnd, AtHead},
    machine::Denied,
    permit::{Guard, Reach},
};

/// Refuses calls to a target that fails. See the [module docs](crate).
///
/// # Clone
///
/// Clones share the state of their target. Readiness is not cloned: what was true of one inner
/// service is not of another.
pub struct CircuitBreaker<S, A = Http, At = AtHead, K = ByTarget> {
    inner: S,
    home: Arc<Home<A, K>>,
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

impl<S, A, At, K> CircuitBreaker<S, A, At, K> {
    pub(crate) fn new(inner: S, home: Arc<Home<A, K>>) -> Self {
        Self {
            inner,
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

    /// Ready when the inner service is, or to refuse.
    fn poll_admission<Req>(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>>
    where
        S: Service<Req>,
        S::Error: Into<BoxError>,
    {
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

    /// The right to this call, or what is answered instead.
    fn admit<Req>(&mut self, request: &mut Req) -> Result<Guard<Share<A>>, BoxError>
    where
        S: Service<Req>,
        S::Error: Into<BoxError>,
        A: MayCarry<Req>,
        K: KeyOf<Req>,
    {
        let readiness = mem::take(&mut self.readiness);
        let key = self.home.key().key(request);
        let carrier = self.home.adapter().carrier();
        let ledger = carrier
            .and_then(|carrier| carrier.ledger_mut(request))
            .map(|ledger| &*ledger);
        let share = self
            .home
            .share(key.as_ref().or_else(|| ledger.and_then(Ledger::target)));
        let breaker = share.breaker();
        if let Readiness::Refusing(refusing, denied) = readiness {
            if refusing.same(breaker) {
                return Err(breaker.refusal(denied, ledger.map(Ledger::now)).into());
            }
            // The first call of this service for another target: what was remembered is not
            // about it. If the inner service is not ready at once there is nobody to wait.
            let mut nobody = Context::from_waker(Waker::noop());
            match self.inner.poll_ready(&mut nobody) {
                Poll::Ready(Ok(())) => (),
                Poll::Ready(Err(error)) => return Err(error.into()),
                Poll::Pending => return Err(Refused::new(Refusal::NotReady).into()),
            }
        }
        let admitted = breaker.acquire(ledger)?;
        let ledger = ledger.cloned();
        Ok(Guard::new(share, admitted, ledger))
    }
}

impl<S, A, K, Req> Service<Req> for CircuitBreaker<S, A, AtHead, K>
where
    S: Service<Req>,
    S::Error: Into<BoxError>,
    A: MayCarry<Req> + Read<S::Response>,
    K: KeyOf<Req>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future, A>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.poll_admission(cx)
    }

    fn call(&mut self, mut request: Req) -> Self::Future {
        match self.admit(&mut request) {
            Ok(mut permit) => {
                let call = permit.run(|| self.inner.call(request));
                ResponseFuture::calling(call, permit)
            }
            Err(error) => ResponseFuture::not_sent(error),
        }
    }
}

impl<S, A, K, Req, B> Service<Req> for CircuitBreaker<S, A, AtBodyEnd, K>
where
    S: Service<Req, Response = Response<B>>,
    S::Error: Into<BoxError>,
    B: Body,
    A: MayCarry<Req> + Read<Response<B>>,
    K: KeyOf<Req>,
{
    type Response = Response<OutcomeBody<B, A>>;
    type Error = BoxError;
    type Future = ToBodyEndFuture<S::Future, A>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.poll_admission(cx)
    }

    fn call(&mut self, mut request: Req) -> Self::Future {
        match self.admit(&mut request) {
            Ok(mut permit) => {
                let call = permit.run(|| self.inner.call(request));
                ToBodyEndFuture::calling(call, permit)
            }
            Err(error) => ToBodyEndFuture::not_sent(error),
        }
    }
}

impl<S: Clone, A, At, K> Clone for CircuitBreaker<S, A, At, K> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            home: Arc::clone(&self.home),
            readiness: Readiness::Inner,
            at: PhantomData,
        }
    }
}

impl<S: fmt::Debug, A, At, K> fmt::Debug for CircuitBreaker<S, A, At, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CircuitBreaker")
            .field("inner", &self.inner)
            .field("home", &self.home)
            .finish_non_exhaustive()
    }
}
