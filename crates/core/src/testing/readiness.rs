//! A service whose readiness is set by hand.

use std::{
    fmt, mem,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, Waker},
};

use tower_layer::Layer;
use tower_service::Service;

use crate::BoxError;

/// What `poll_ready` of the services below says: ready at first, then what was set last. It is also
/// the layer that wraps them.
///
/// # Clone
///
/// Clones share what was set.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    now: Now,
    wakers: Vec<Waker>,
}

#[derive(Clone, Copy, Debug, Default)]
enum Now {
    #[default]
    Ready,
    Pending,
    Failed(&'static str),
}

impl Readiness {
    /// Ready until something else is set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ready when the inner service is.
    pub fn set_ready(&self) {
        self.set(Now::Ready);
    }

    /// Not ready until something else is set.
    pub fn set_pending(&self) {
        self.set(Now::Pending);
    }

    /// `poll_ready` fails with an error of this text.
    pub fn set_failed(&self, error: &'static str) {
        self.set(Now::Failed(error));
    }

    fn set(&self, now: Now) {
        let wakers = {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            state.now = now;
            mem::take(&mut state.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl<S> Layer<S> for Readiness {
    type Service = WithReadiness<S>;

    fn layer(&self, inner: S) -> Self::Service {
        WithReadiness {
            inner,
            readiness: self.clone(),
        }
    }
}

/// A service that is ready when a [`Readiness`] says so and the inner service is.
#[derive(Clone)]
pub struct WithReadiness<S> {
    inner: S,
    readiness: Readiness,
}

impl<S> WithReadiness<S> {
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

impl<S, Req> Service<Req> for WithReadiness<S>
where
    S: Service<Req, Error = BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        let now = {
            let state = &mut *self
                .readiness
                .0
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            if matches!(state.now, Now::Pending) {
                state.wakers.push(cx.waker().clone());
            }
            state.now
        };
        match now {
            Now::Ready => self.inner.poll_ready(cx),
            Now::Pending => Poll::Pending,
            Now::Failed(error) => Poll::Ready(Err(error.into())),
        }
    }

    fn call(&mut self, request: Req) -> Self::Future {
        self.inner.call(request)
    }
}

impl<S: fmt::Debug> fmt::Debug for WithReadiness<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WithReadiness")
            .field("inner", &self.inner)
            .field("readiness", &self.readiness)
            .finish()
    }
}
