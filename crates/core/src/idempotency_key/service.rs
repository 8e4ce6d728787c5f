use std::{
    any::type_name,
    fmt,
    task::{Context, Poll},
};

use http::Request;
use tower_service::Service;

use super::{InvalidIdempotencyKey, MakeKey, RandomKey, ResponseFuture, make::is_key};
use crate::{BoxError, Class, Classified, Reading, adapter::IDEMPOTENCY_KEY};

/// Gives each call an `Idempotency-Key`. See the [module docs](super).
#[derive(Clone)]
pub struct IdempotencyKey<S, M = RandomKey> {
    inner: S,
    make: M,
}

impl<S, M> IdempotencyKey<S, M> {
    pub(super) fn new(inner: S, make: M) -> Self {
        Self { inner, make }
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

impl<S, M, B> Service<Request<B>> for IdempotencyKey<S, M>
where
    S: Service<Request<B>>,
    S::Error: Into<BoxError>,
    M: MakeKey<B>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let own = request.headers().get(IDEMPOTENCY_KEY);
        if own.is_none_or(|key| key.is_empty()) {
            let key = self.make.make(&request);
            if !is_key(&key) {
                let reading = Reading::new(Class::CallerFault).with_reason("idempotency_key");
                let error = Classified::new(reading, InvalidIdempotencyKey::new());
                return ResponseFuture::not_sent(error.into());
            }
            request.headers_mut().insert(IDEMPOTENCY_KEY, key);
        }
        ResponseFuture::calling(self.inner.call(request))
    }
}

impl<S: fmt::Debug, M> fmt::Debug for IdempotencyKey<S, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdempotencyKey")
            .field("inner", &self.inner)
            .field("make", &type_name::<M>())
            .finish()
    }
}
