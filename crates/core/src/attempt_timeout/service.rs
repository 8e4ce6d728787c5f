use std::{
    marker::PhantomData,
    task::{Context, Poll},
};

use http::Response;
use http_body::Body;
use tokio::time::Instant;
use tower_service::Service;

use super::{
    AttemptLimits, HeadFuture, LastByteFuture,
    layer::{ToHead, ToLastByte},
};
use crate::{BoxError, Http, MayCarry, clock};

/// Limits the time of each attempt. See the [module docs](super).
#[derive(Clone, Debug)]
pub struct AttemptTimeout<S, A = Http, To = ToHead> {
    pub(super) inner: S,
    pub(super) limits: AttemptLimits,
    pub(super) adapter: A,
    pub(super) to: PhantomData<fn() -> To>,
}

impl<S, A, To> AttemptTimeout<S, A, To> {
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

    /// The limits of this request, and when it is sent.
    fn limits<Req>(&self, request: &mut Req) -> (AttemptLimits, Instant)
    where
        A: MayCarry<Req>,
    {
        let Some(carrier) = self.adapter.carrier() else {
            return (self.limits, clock::now());
        };
        let limits = carrier.attempt_limits(request).unwrap_or(self.limits);
        let now = carrier
            .ledger_mut(request)
            .map_or_else(clock::now, |ledger| ledger.now());
        (limits, now)
    }
}

impl<S, A, Req> Service<Req> for AttemptTimeout<S, A, ToHead>
where
    S: Service<Req>,
    S::Error: Into<BoxError>,
    A: MayCarry<Req>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = HeadFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut request: Req) -> Self::Future {
        let (limits, now) = self.limits(&mut request);
        HeadFuture::new(self.inner.call(request), limits.head, now)
    }
}

impl<S, A, Req, B> Service<Req> for AttemptTimeout<S, A, ToLastByte>
where
    S: Service<Req, Response = Response<B>>,
    S::Error: Into<BoxError>,
    B: Body,
    B::Error: Into<BoxError>,
    A: MayCarry<Req>,
{
    type Response = Response<super::TimedBody<B>>;
    type Error = BoxError;
    type Future = LastByteFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut request: Req) -> Self::Future {
        let (limits, now) = self.limits(&mut request);
        let head = match (limits.head, limits.last_byte) {
            (Some(head), Some(last)) => Some(head.min(last)),
            (head, last) => head.or(last),
        };
        let call = HeadFuture::new(self.inner.call(request), head, now);
        LastByteFuture::new(call, limits.last_byte, now)
    }
}
