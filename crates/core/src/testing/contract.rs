//! A probe of the contract between `poll_ready` and `call`.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
};

use tower_layer::Layer;
use tower_service::Service;

/// Wraps services in a [`ReadyProbe`].
///
/// # Clone
///
/// Clones count the readiness of all their services together.
#[derive(Clone, Debug, Default)]
pub struct ReadyProbeLayer {
    pending_once: bool,
    reserved: Arc<AtomicUsize>,
}

impl ReadyProbeLayer {
    /// A probe that is ready when its inner service is.
    pub fn new() -> Self {
        Self::default()
    }

    /// A probe that is pending once before each readiness, and wakes.
    pub fn pending_once() -> Self {
        Self {
            pending_once: true,
            ..Self::default()
        }
    }

    /// How many instances said that they are ready and were neither called nor dropped since: what
    /// a caller reserves and does not use.
    pub fn reserved(&self) -> usize {
        self.reserved.load(Ordering::SeqCst)
    }
}

impl<S> Layer<S> for ReadyProbeLayer {
    type Service = ReadyProbe<S>;

    fn layer(&self, inner: S) -> Self::Service {
        ReadyProbe {
            inner,
            layer: self.clone(),
            delayed: false,
            readiness: None,
        }
    }
}

/// Fails the test when `call` is made without a `Ready` from `poll_ready` of this very instance,
/// or twice for one `Ready`.
///
/// # Panics
///
/// `call` panics on a breach.
///
/// # Clone
///
/// A clone is not ready: it must be polled before its own call.
#[derive(Debug)]
pub struct ReadyProbe<S> {
    inner: S,
    layer: ReadyProbeLayer,
    delayed: bool,
    readiness: Option<Reserved>,
}

impl<S> ReadyProbe<S> {
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

impl<S: Clone> Clone for ReadyProbe<S> {
    fn clone(&self) -> Self {
        // Readiness belongs to the instance that was polled.
        self.layer.layer(self.inner.clone())
    }
}

impl<S: Service<Req>, Req> Service<Req> for ReadyProbe<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        if self.readiness.is_none() && self.layer.pending_once && !self.delayed {
            self.delayed = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        ready!(self.inner.poll_ready(cx))?;
        if self.readiness.is_none() {
            self.readiness = Some(Reserved::new(&self.layer.reserved));
        }
        Poll::Ready(Ok(()))
    }

    #[expect(clippy::panic, reason = "a breach must fail the test that causes it")]
    fn call(&mut self, request: Req) -> Self::Future {
        if self.readiness.take().is_none() {
            panic!("contract breach: `call` without a `Ready` from this instance's `poll_ready`");
        }
        self.delayed = false;
        self.inner.call(request)
    }
}

/// One readiness that was given and not used yet.
#[derive(Debug)]
struct Reserved(Arc<AtomicUsize>);

impl Reserved {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::script::{Script, Step};
    use tower::ServiceExt;

    fn probe(layer: &ReadyProbeLayer) -> ReadyProbe<Script<(), u8>> {
        layer.layer(Script::always(Step::answer(7)))
    }

    #[tokio::test]
    async fn a_readied_call_passes() {
        for layer in [ReadyProbeLayer::new(), ReadyProbeLayer::pending_once()] {
            assert_eq!(probe(&layer).oneshot(()).await.unwrap(), 7);
        }
    }

    #[tokio::test]
    #[should_panic(expected = "contract breach")]
    async fn a_call_without_readiness_fails() {
        drop(probe(&ReadyProbeLayer::new()).call(()));
    }

    #[tokio::test]
    #[should_panic(expected = "contract breach")]
    async fn readiness_serves_one_call() {
        let mut probe = probe(&ReadyProbeLayer::new());
        probe.ready().await.unwrap();
        drop(probe.call(()));
        drop(probe.call(()));
    }

    #[tokio::test]
    #[should_panic(expected = "contract breach")]
    async fn a_clone_is_not_ready() {
        let mut probe = probe(&ReadyProbeLayer::new());
        probe.ready().await.unwrap();
        drop(probe.clone().call(()));
    }

    #[tokio::test]
    async fn unused_readiness_is_counted() {
        let layer = ReadyProbeLayer::pending_once();
        let mut first = probe(&layer);
        let mut second = first.clone();
        first.ready().await.unwrap();
        second.ready().await.unwrap();
        assert_eq!(layer.reserved(), 2);
        drop(first.call(()));
        drop(second);
        assert_eq!(layer.reserved(), 0);
    }
}
