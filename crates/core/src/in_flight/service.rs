use std::{
    fmt,
    marker::PhantomData,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::Response;
use http_body::Body;
use tower_service::Service;

use super::{
    PermitBody, ToBodyEndFuture, ToResponseFuture,
    future::Admitted,
    layer::{Source, ToBodyEnd, ToResponse},
    permits::Permits,
};
use crate::{BoxError, Http, Ledger, MayCarry, TargetName, clock, keyed::Home};

/// Bounds the requests in flight at each target. See the [module docs](super).
pub struct InFlight<S, A = Http, To = ToBodyEnd> {
    inner: S,
    settings: Arc<Settings<A>>,
    to: PhantomData<fn() -> To>,
}

/// What the clones of a service share.
pub(super) struct Settings<A> {
    pub(super) adapter: A,
    pub(super) source: Source,
    pub(super) ready_within: Duration,
    pub(super) home: Home<Option<TargetName>, Permits>,
}

impl<S, A, To> InFlight<S, A, To> {
    pub(super) fn new(inner: S, settings: Settings<A>) -> Self {
        Self {
            inner,
            settings: Arc::new(settings),
            to: PhantomData,
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

    fn admit<Req>(&mut self, mut request: Req) -> Admitted<S, Req>
    where
        S: Service<Req> + Clone,
        S::Error: Into<BoxError>,
        A: MayCarry<Req>,
    {
        let settings = &*self.settings;
        let ledger = settings
            .adapter
            .carrier()
            .and_then(|carrier| carrier.ledger_mut(&mut request))
            .map(|ledger| &*ledger);
        let target = ledger.and_then(Ledger::target).cloned();
        let permits = settings
            .home
            .get(&target, || settings.source.permits(&target));
        if let Some(permit) = permits.try_acquire() {
            return Admitted::calling(self.inner.call(request), permit);
        }
        let by = clock::after(clock::now(), settings.ready_within);
        let by = ledger.and_then(Ledger::deadline).map_or(by, |d| d.min(by));
        // The instance that was polled ready has reserved what it needs below; while the call waits
        // here nothing is to be kept from others. A fresh one becomes ready with the permit in hand.
        self.inner = self.inner.clone();
        Admitted::queued(self.inner.clone(), request, &permits, by)
    }
}

impl<S, A, Req, B> Service<Req> for InFlight<S, A, ToBodyEnd>
where
    S: Service<Req, Response = Response<B>> + Clone,
    S::Error: Into<BoxError>,
    B: Body,
    A: MayCarry<Req>,
{
    type Response = Response<PermitBody<B>>;
    type Error = BoxError;
    type Future = ToBodyEndFuture<S, Req>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Req) -> Self::Future {
        ToBodyEndFuture::new(self.admit(request))
    }
}

impl<S, A, Req> Service<Req> for InFlight<S, A, ToResponse>
where
    S: Service<Req> + Clone,
    S::Error: Into<BoxError>,
    A: MayCarry<Req>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = ToResponseFuture<S, Req>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Req) -> Self::Future {
        ToResponseFuture::new(self.admit(request))
    }
}

impl<S: Clone, A, To> Clone for InFlight<S, A, To> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            settings: Arc::clone(&self.settings),
            to: PhantomData,
        }
    }
}

impl<S: fmt::Debug, A, To> fmt::Debug for InFlight<S, A, To> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlight")
            .field("inner", &self.inner)
            .field("source", &self.settings.source)
            .field("ready_within", &self.settings.ready_within)
            .finish_non_exhaustive()
    }
}
