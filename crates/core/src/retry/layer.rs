use std::sync::Arc;

use tower_layer::Layer;

use super::Retry;
use crate::{Engine, Http, Limits, gate::Gate};

/// A retrying layer of any [`Policy`](crate::Policy). See the [module docs](super).
#[derive(Clone, Debug)]
pub struct RetryLayer<P, A = Http> {
    engine: Arc<Engine<P, A>>,
}

impl<P> RetryLayer<P> {
    /// A layer that retries as `policy` says, over `http` requests.
    pub fn new(policy: P) -> Self {
        Self::from_engine(Engine::new(policy, Http::default()))
    }
}

impl<P, A> RetryLayer<P, A> {
    /// A layer around an engine that is set up already.
    pub fn from_engine(engine: Engine<P, A>) -> Self {
        Self {
            engine: Arc::new(engine),
        }
    }
}

impl<P: Clone, A: Clone> RetryLayer<P, A> {
    /// Sees requests and responses through another adapter.
    #[must_use]
    pub fn adapter<B>(self, adapter: B) -> RetryLayer<P, B> {
        RetryLayer::from_engine(Arc::unwrap_or_clone(self.engine).with_adapter(adapter))
    }

    /// Adds limits; of two the stricter holds.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        Self::from_engine(Arc::unwrap_or_clone(self.engine).limits(limits))
    }

    /// Adds a budget that each retry must pass.
    #[must_use]
    pub fn gate(self, gate: Arc<dyn Gate>) -> Self {
        Self::from_engine(Arc::unwrap_or_clone(self.engine).gate(gate))
    }
}

impl<S, P, A> Layer<S> for RetryLayer<P, A> {
    type Service = Retry<S, P, A>;

    fn layer(&self, inner: S) -> Self::Service {
        Retry::new(inner, Arc::clone(&self.engine))
    }
}
