//! After an attempt that timed out, none uses a connection that was open before.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;
use tower_spillway_core::{BoxError, ErrorReader};

use super::client::Pooled;

/// Leaves the pool behind when an attempt times out. Outside the timeout, since nothing inside
/// can tell it from a caller who left.
#[derive(Clone)]
pub(super) struct FreshLayer {
    /// `None` over a client of the user's own.
    pub(super) pool: Option<Pooled>,
}

impl<S> Layer<S> for FreshLayer {
    type Service = Fresh<S>;

    fn layer(&self, inner: S) -> Fresh<S> {
        Fresh {
            inner,
            pool: self.pool.clone(),
        }
    }
}

/// See [`FreshLayer`].
#[derive(Clone)]
pub(super) struct Fresh<S> {
    inner: S,
    pool: Option<Pooled>,
}

impl<S, Req> Service<Req> for Fresh<S>
where
    S: Service<Req, Error = BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = FreshFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Req) -> Self::Future {
        let used = self.pool.clone().map(|pool| (pool.generation(), pool));
        FreshFuture {
            inner: self.inner.call(request),
            used,
        }
    }
}

pin_project! {
    pub(super) struct FreshFuture<F> {
        #[pin]
        inner: F,
        used: Option<(u64, Pooled)>,
    }
}

impl<F, T> Future for FreshFuture<F>
where
    F: Future<Output = Result<T, BoxError>>,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let out = ready!(this.inner.poll(cx));
        if let (Err(error), Some((number, pool))) = (&out, this.used.take()) {
            // An attempt without its head, or a stream without content, in time.
            if ErrorReader::default().read(&**error).is_timed_out() {
                pool.leave(number);
            }
        }
        Poll::Ready(out)
    }
}
