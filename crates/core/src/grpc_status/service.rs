use std::{
    task::{Context, Poll},
    time::Duration,
};

use http::Response;
use http_body::Body;
use tower_service::Service;

use super::{FirstFrameBody, ResponseFuture};
use crate::{BoxError, hint};

/// Reads a gRPC status that comes in trailers within the attempt. See the [module docs](super).
#[derive(Clone, Debug)]
pub struct GrpcStatus<S> {
    inner: S,
    within: Duration,
    hints: hint::Reader,
}

impl<S> GrpcStatus<S> {
    pub(super) fn new(inner: S, within: Duration, hints: hint::Reader) -> Self {
        Self {
            inner,
            within,
            hints,
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

impl<S, Req, B> Service<Req> for GrpcStatus<S>
where
    S: Service<Req, Response = Response<B>>,
    S::Error: Into<BoxError>,
    B: Body + Unpin,
    B::Error: Into<BoxError>,
{
    type Response = Response<FirstFrameBody<B>>;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future, B>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Req) -> Self::Future {
        ResponseFuture::new(self.inner.call(request), self.within, self.hints.clone())
    }
}
