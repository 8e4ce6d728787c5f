use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Request, Response};
use http_body::Body;
use tower_service::Service;
use tower_spillway_core::{BoxError, Ledger, clock};

use super::{GuardedBody, ResponseFuture, StreamLimits, flow::Terms, layer::Guard};

/// Holds a stream until its first content and checks it to its end. See the [module docs](super).
///
/// # Clone
///
/// Clones share the settings.
#[derive(Clone)]
pub struct StreamGuard<S> {
    inner: S,
    guard: Arc<Guard>,
}

impl<S> StreamGuard<S> {
    pub(super) fn new(inner: S, guard: Arc<Guard>) -> Self {
        Self { inner, guard }
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

impl<S, ReqBody, ResBody> Service<Request<ReqBody>> for StreamGuard<S>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
    S::Error: Into<BoxError>,
    ResBody: Body,
    ResBody::Error: Into<BoxError>,
{
    type Response = Response<GuardedBody<ResBody>>;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future, ResBody>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<ReqBody>) -> Self::Future {
        let extensions = request.extensions();
        let terms = Terms {
            guard: Arc::clone(&self.guard),
            limits: extensions.get::<StreamLimits>().copied(),
            ledger: extensions.get::<Ledger>().cloned(),
            sent: clock::now(),
        };
        ResponseFuture::new(self.inner.call(request), terms)
    }
}

impl<S: fmt::Debug> fmt::Debug for StreamGuard<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamGuard")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
