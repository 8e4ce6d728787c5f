use std::task::{Context, Poll};

use http::{HeaderMap, Request, header};
use http_body::Body;
use tower_service::Service;

use super::ReplayBody;
use crate::BoxError;

/// Makes request bodies replayable. See the [module docs](super).
///
/// Responses, errors and futures are those of the wrapped service.
#[derive(Clone, Copy, Debug)]
pub struct Replay<S> {
    pub(super) inner: S,
    pub(super) limit: usize,
}

impl<S> Replay<S> {
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

impl<S, B> Service<Request<B>> for Replay<S>
where
    S: Service<Request<ReplayBody<B>>>,
    B: Body,
    B::Error: Into<BoxError>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (parts, body) = request.into_parts();
        let body = ReplayBody::announced(body, self.limit, content_length(&parts.headers));
        self.inner.call(Request::from_parts(parts, body))
    }
}

/// A body that does not know its length may still have been announced with one, and then the
/// client stops reading it there.
fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers
        .get(header::CONTENT_LENGTH)?
        .to_str()
        .ok()?
        .parse()
        .ok()
}
