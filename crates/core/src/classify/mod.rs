//! The user's own reading of responses and errors, innermost in a stack.
//!
//! The closure sees every outcome. What it gives overrides the status, for every layer outside:
//! on a response it rides in the extensions, around an error as [`Classified`].
//!
//! # Example
//!
//! ```
//! use http::{Request, Response};
//! use tower::{Service, ServiceBuilder, ServiceExt};
//! use tower_spillway_core::{Class, Reading, classify::ClassifyLayer};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! type Body = String;
//! let client = ServiceBuilder::new()
//!     .layer(ClassifyLayer::new(|out: Result<&Response<Body>, _>| match out {
//!         Ok(response) if response.body().contains("insufficient_quota") => {
//!             Some(Reading::new(Class::TargetDown))
//!         }
//!         _ => None,
//!     }))
//!     .service(tower::service_fn(|_: Request<Body>| async {
//!         let mut response = Response::new("insufficient_quota".to_string());
//!         *response.status_mut() = http::StatusCode::TOO_MANY_REQUESTS;
//!         Ok::<_, std::io::Error>(response)
//!     }));
//!
//! let response = client.oneshot(Request::new(Body::new())).await.unwrap();
//! let reading = response.extensions().get::<Reading>().unwrap();
//! assert_eq!(reading.class(), Class::TargetDown);
//! # }
//! ```

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use http::Response;
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::{
    BoxError, Reading,
    error::{Classified, Failure},
};

/// Puts the user's own [`Reading`] on outcomes. See the [module docs](self).
#[derive(Clone)]
pub struct ClassifyLayer<C> {
    classify: C,
}

impl<C> ClassifyLayer<C> {
    /// `classify` gives a reading, or `None` to leave the outcome as it is.
    pub fn new<B>(classify: C) -> Self
    where
        C: Fn(Result<&Response<B>, Failure<'_>>) -> Option<Reading>,
    {
        Self { classify }
    }
}

impl<C> fmt::Debug for ClassifyLayer<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClassifyLayer")
            .field("classify", &std::any::type_name::<C>())
            .finish()
    }
}

impl<S, C: Clone> Layer<S> for ClassifyLayer<C> {
    type Service = ClassifyService<S, C>;

    fn layer(&self, inner: S) -> Self::Service {
        ClassifyService {
            inner,
            classify: self.classify.clone(),
        }
    }
}

/// Puts the user's own [`Reading`] on outcomes. See the [module docs](self).
#[derive(Clone)]
pub struct ClassifyService<S, C> {
    inner: S,
    classify: C,
}

impl<S, C> ClassifyService<S, C> {
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

impl<S, C, Req, B> Service<Req> for ClassifyService<S, C>
where
    S: Service<Req, Response = Response<B>>,
    S::Error: Into<BoxError>,
    C: Fn(Result<&Response<B>, Failure<'_>>) -> Option<Reading> + Clone,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future, C>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Req) -> Self::Future {
        ResponseFuture {
            inner: self.inner.call(request),
            classify: self.classify.clone(),
        }
    }
}

impl<S: fmt::Debug, C> fmt::Debug for ClassifyService<S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClassifyService")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}

pin_project! {
    /// The future of [`ClassifyService`].
    pub struct ResponseFuture<F, C> {
        #[pin]
        inner: F,
        classify: C,
    }
}

impl<F, C, B, E> Future for ResponseFuture<F, C>
where
    F: Future<Output = Result<Response<B>, E>>,
    E: Into<BoxError>,
    C: Fn(Result<&Response<B>, Failure<'_>>) -> Option<Reading>,
{
    type Output = Result<Response<B>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let out = ready!(this.inner.poll(cx)).map_err(Into::into);
        let view = out.as_ref().map_err(|e| Failure::new(&**e));
        let reading = (this.classify)(view);
        Poll::Ready(match (out, reading) {
            (out, None) => out,
            (Ok(mut response), Some(reading)) => {
                response.extensions_mut().insert(reading);
                Ok(response)
            }
            (Err(error), Some(reading)) => Err(Classified::new(reading, error).into()),
        })
    }
}

impl<F, C> fmt::Debug for ResponseFuture<F, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
