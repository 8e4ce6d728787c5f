use std::{
    fmt, mem,
    sync::Arc,
    task::{Context, Poll},
};

use tower_service::Service;

use crate::{BoxError, Drive, Engine, Http, Policy, Read, Resend};

/// A retrying service of any [`Policy`]. See the [module docs](super).
pub struct Retry<S, P, A = Http> {
    inner: S,
    engine: Arc<Engine<P, A>>,
}

impl<S, P, A> Retry<S, P, A> {
    /// Retries `inner` as the engine's policy says.
    pub fn new(inner: S, engine: Arc<Engine<P, A>>) -> Self {
        Self { inner, engine }
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

impl<S: Clone, P, A> Clone for Retry<S, P, A> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            engine: Arc::clone(&self.engine),
        }
    }
}

impl<S, P, A, Req> Service<Req> for Retry<S, P, A>
where
    S: Service<Req> + Clone,
    S::Error: Into<BoxError>,
    P: Policy<S::Response>,
    A: Resend<Req> + Read<S::Response>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Drive<S, Req, P, A>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    #[inline]
    fn call(&mut self, request: Req) -> Self::Future {
        // The instance that was polled ready goes into the call; the clone that stays is polled
        // before its own.
        let clone = self.inner.clone();
        let ready = mem::replace(&mut self.inner, clone);
        Drive::new(ready, request, Arc::clone(&self.engine))
    }
}

impl<S: fmt::Debug, P, A> fmt::Debug for Retry<S, P, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retry")
            .field("inner", &self.inner)
            .field("engine", &self.engine)
            .finish()
    }
}
