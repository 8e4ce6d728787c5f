//! What every request passes on its way to its handler.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use axum::{
    extract::Request,
    response::{IntoResponse, Response},
};
use futures_util::future::{self, Either, Ready};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use super::{Gateway, error::ApiError, headers::REQUEST_ID, id::RequestId, origin};

/// Gives a request its id, and its answer too, whoever gives it; lets no page of another site come
/// further, and nobody without a key where keys are asked for.
// One layer and not one for each: axum boxes a route again for every layer around it.
#[derive(Clone, Debug)]
pub(super) struct EnterLayer {
    gateway: Gateway,
    with_key: bool,
}

impl EnterLayer {
    /// Of routes that anyone may ask.
    pub(super) fn open(gateway: &Gateway) -> Self {
        Self {
            gateway: gateway.clone(),
            with_key: false,
        }
    }

    /// Of routes that ask for a key, if the gateway has keys.
    pub(super) fn with_key(gateway: &Gateway) -> Self {
        Self {
            gateway: gateway.clone(),
            with_key: true,
        }
    }

    fn check(&self, request: &Request) -> Result<(), ApiError> {
        let current = self.gateway.current();
        let open = self.gateway.is_loopback() && current.keys.is_empty();
        origin::check(request, open)?;
        if self.with_key {
            current.keys.check(request)?;
        }
        Ok(())
    }
}

impl<S> Layer<S> for EnterLayer {
    type Service = Enter<S>;

    fn layer(&self, inner: S) -> Enter<S> {
        Enter {
            inner,
            layer: self.clone(),
        }
    }
}

/// See [`EnterLayer`].
#[derive(Clone, Debug)]
pub(super) struct Enter<S> {
    inner: S,
    layer: EnterLayer,
}

impl<S> Service<Request> for Enter<S>
where
    S: Service<Request, Response = Response>,
{
    type Response = Response;
    type Error = S::Error;
    type Future = EnterFuture<S::Future, S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        let id = RequestId::of(request.headers());
        let answer = match self.layer.check(&request) {
            Ok(()) => {
                request.extensions_mut().insert(id.clone());
                Either::Left(self.inner.call(request))
            }
            Err(error) => Either::Right(future::ready(Ok(error.into_response()))),
        };
        EnterFuture { answer, id }
    }
}

pin_project! {
    /// The future of [`Enter`]: of what is inside, or of an answer that is there already.
    pub(super) struct EnterFuture<F, E> {
        #[pin]
        answer: Either<F, Ready<Result<Response, E>>>,
        id: RequestId,
    }
}

impl<F, E> Future for EnterFuture<F, E>
where
    F: Future<Output = Result<Response, E>>,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut response = ready!(this.answer.poll(cx))?;
        response.headers_mut().insert(REQUEST_ID, this.id.value());
        Poll::Ready(Ok(response))
    }
}
