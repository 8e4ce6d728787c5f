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
use tower_spillway_core::{BoxError, Http, Ledger, MayCarry, Read, Refusal, Refused, TargetName};

use crate::{
    body::OutcomeBody,
    breaker::{Admitted, Breaker},
    future::{ResponseFuture, State, ToBodyEndFuture},
    home::{Home, Share, Slot},
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
#[derive(Clone, Copy, Debug, Default)]
enum Readiness {
    /// Whatever the inner service said.
    #[default]
    Inner,
    /// The state that was expected refuses: ready, without asking the inner service. It must not
    /// be called then, even if the open time has ended since.
    Refusing(Denied),
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
        if let Some(denied) = self.home.expected().and_then(Breaker::refuses) {
            self.readiness = Readiness::Refusing(denied);
            return Poll::Ready(Ok(()));
        }
        // A refusal remembered from before is over: the inner service answers for itself.
        self.readiness = Readiness::Inner;
        ready!(self.inner.poll_ready(cx)).map_err(Into::into)?;
        Poll::Ready(Ok(()))
    }

    /// Calls the inner service, with the right to it; or what is answered instead.
    ///
    /// Always inlined, since a future that is returned is copied, and to copy what was just written
    /// in other pieces costs more than the rest of the call.
    #[inline(always)]
    fn send<Req>(&mut self, mut request: Req) -> State<S::Future, A>
    where
        S: Service<Req>,
        S::Error: Into<BoxError>,
        A: MayCarry<Req>,
        K: KeyOf<Req>,
    {
        let sent = match self.home.key().key(&request) {
            Some(key) => self.send_any(request, Some(&key)),
            None => {
                // The plainest call apart from all others, so that it stays in registers.
                let found = plain(&self.home, self.readiness, &mut request);
                if let Some((slot, generation)) = found {
                    let (breaker, inner) = (slot.breaker(), &mut self.inner);
                    let call = breaker.calling(generation.into(), || inner.call(request));
                    return State::calling(call, Guard::plain(slot.share(), generation));
                }
                self.send_any(request, None)
            }
        };
        match sent {
            Ok((call, permit)) => State::calling(call, permit),
            Err(error) => State::not_sent(error),
        }
    }

    /// The same of a call of any kind: of any target, on record, timed, or not admitted.
    #[inline(never)]
    fn send_any<Req>(
        &mut self,
        mut request: Req,
        key: Option<&TargetName>,
    ) -> Result<(S::Future, Guard<Share<A>>), BoxError>
    where
        S: Service<Req>,
        S::Error: Into<BoxError>,
        A: MayCarry<Req>,
    {
        let ledger = ledger_of(self.home.adapter(), &mut request);
        let target = key.or_else(|| ledger?.target());
        if let Some((slot, admitted)) = usual(&self.home, self.readiness, target, ledger) {
            let ledger = ledger.cloned();
            let breaker = slot.breaker();
            let inner = &mut self.inner;
            let call = breaker.calling(admitted.ticket, || inner.call(request));
            return Ok((call, Guard::new(slot.share(), None, admitted, ledger)));
        }
        let (share, other, admitted) = self.admit(target, ledger)?;
        let ledger = ledger.cloned();
        let breaker = other.as_ref().unwrap_or(share.breaker());
        let call = breaker.calling(admitted.ticket, || self.inner.call(request));
        Ok((call, Guard::new(share, other, admitted, ledger)))
    }

    /// The right to a call of any kind.
    #[inline(never)]
    fn admit<Req>(
        &mut self,
        target: Option<&TargetName>,
        ledger: Option<&Ledger>,
    ) -> Result<(Share<A>, Option<Breaker>, Admitted), BoxError>
    where
        S: Service<Req>,
        S::Error: Into<BoxError>,
    {
        let (share, other) = self.home.share(target);
        let breaker = other.as_ref().unwrap_or(share.breaker());
        if let Readiness::Refusing(denied) = mem::take(&mut self.readiness) {
            if self.home.is_first(breaker) {
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
        Ok((share, other, admitted))
    }
}

/// The state that a call meets and its generation, where that is all there is to know.
#[inline]
fn plain<'h, A: MayCarry<Req>, K, Req>(
    home: &'h Home<A, K>,
    readiness: Readiness,
    request: &mut Req,
) -> Option<(&'h Arc<Slot<A>>, u64)> {
    if matches!(readiness, Readiness::Refusing(_)) || ledger_of(home.adapter(), request).is_some() {
        return None;
    }
    let slot = home.near(None)?;
    Some((slot, slot.breaker().plain()?))
}

/// The state of a call and the right to it, where the service is ready and the breaker of its usual
/// target plainly closed.
#[inline]
fn usual<'h, A, K>(
    home: &'h Home<A, K>,
    readiness: Readiness,
    target: Option<&TargetName>,
    ledger: Option<&Ledger>,
) -> Option<(&'h Arc<Slot<A>>, Admitted)> {
    if matches!(readiness, Readiness::Refusing(_)) {
        return None;
    }
    let slot = home.near(target)?;
    Some((slot, slot.breaker().admit(ledger)?))
}

#[inline]
fn ledger_of<'r, Req>(adapter: &impl MayCarry<Req>, request: &'r mut Req) -> Option<&'r Ledger> {
    let carrier = adapter.carrier()?;
    carrier.ledger_mut(request).map(|ledger| &*ledger)
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

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.poll_admission(cx)
    }

    #[inline(always)]
    fn call(&mut self, request: Req) -> Self::Future {
        ResponseFuture::new(self.send(request))
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

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.poll_admission(cx)
    }

    #[inline(always)]
    fn call(&mut self, request: Req) -> Self::Future {
        ToBodyEndFuture::new(self.send(request))
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
