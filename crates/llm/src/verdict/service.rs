use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Request, Response};
use http_body::Body;
use tower_service::Service;
use tower_spillway_core::{BoxError, Ledger};

use super::{PeekedBody, ResponseFuture, layer::Judge};

/// Reads what a vendor answered. See the [module docs](super).
///
/// # Clone
///
/// Clones share the rules and what was warned of.
#[derive(Clone)]
pub struct VendorVerdict<S> {
    inner: S,
    judge: Arc<Judge>,
}

impl<S> VendorVerdict<S> {
    pub(super) fn new(inner: S, judge: Arc<Judge>) -> Self {
        Self { inner, judge }
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

impl<S, ReqBody, ResBody> Service<Request<ReqBody>> for VendorVerdict<S>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
    S::Error: Into<BoxError>,
    ResBody: Body,
    ResBody::Error: Into<BoxError>,
{
    type Response = Response<PeekedBody<ResBody>>;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future, ResBody>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<ReqBody>) -> Self::Future {
        let ledger = request.extensions().get::<Ledger>();
        let target = ledger.and_then(Ledger::target).cloned();
        ResponseFuture::new(self.inner.call(request), Arc::clone(&self.judge), target)
    }
}

impl<S: fmt::Debug> fmt::Debug for VendorVerdict<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VendorVerdict")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
