use std::{fmt, marker::PhantomData, sync::Arc};

use tower_layer::Layer;
use tower_spillway_core::{Http, InvalidConfig, TargetName};

use crate::{
    breaker::Breaker,
    config::BreakerConfig,
    home::Home,
    key::{ByTarget, Keyed},
    registry::States,
    service::CircuitBreaker,
};

/// The outcome is read when the response head is there; the body is left alone.
#[derive(Clone, Copy, Debug)]
pub struct AtHead;

/// The outcome is read when the response body has ended. See
/// [`CircuitBreakerLayer::outcome_at_body_end`].
#[derive(Clone, Copy, Debug)]
pub struct AtBodyEnd;

/// Refuses calls to a target that fails, and lets probes find out when it is back. See the
/// [module docs](crate).
///
/// `A` is how requests and responses are read; `At` says when the outcome is; `K` which state a
/// call meets.
///
/// # Clone
///
/// Clones share the states of their targets.
pub struct CircuitBreakerLayer<A = Http, At = AtHead, K = ByTarget> {
    adapter: Arc<A>,
    states: States,
    key: Arc<K>,
    at: PhantomData<fn() -> At>,
}

impl CircuitBreakerLayer {
    /// A breaker for `http` requests with the defaults of [`BreakerConfig`].
    pub fn new() -> Self {
        Self::from_states(States::by_name(BreakerConfig::defaults()))
    }

    /// A breaker for `http` requests that is set up as `config` says.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the setting that is out of bounds.
    pub fn with_config(config: BreakerConfig) -> Result<Self, InvalidConfig> {
        Ok(Self::from_states(States::by_name(config.check()?)))
    }

    fn from_states(states: States) -> Self {
        Self {
            adapter: Arc::new(Http::default()),
            states,
            key: Arc::new(ByTarget),
            at: PhantomData,
        }
    }
}

impl Default for CircuitBreakerLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl<A, K> CircuitBreakerLayer<A, AtHead, K> {
    /// Hears a success when the response body has ended, and not when its head is there: a stream
    /// that breaks is a failure. Responses are `http::Response`s, and their body becomes an
    /// [`OutcomeBody`](crate::OutcomeBody), which keeps the slot of a probe until then. See [the
    /// crate's docs](crate#at-the-end-of-the-body).
    #[must_use]
    pub fn outcome_at_body_end(self) -> CircuitBreakerLayer<A, AtBodyEnd, K> {
        CircuitBreakerLayer {
            adapter: self.adapter,
            states: self.states,
            key: self.key,
            at: PhantomData,
        }
    }
}

impl<A, At, K> CircuitBreakerLayer<A, At, K> {
    /// Sees requests and responses through another adapter.
    #[must_use]
    pub fn adapter<B>(self, adapter: B) -> CircuitBreakerLayer<B, At, K> {
        CircuitBreakerLayer {
            adapter: Arc::new(adapter),
            states: self.states,
            key: self.key,
            at: PhantomData,
        }
    }

    /// One state for each key that `extract` finds in a request, for instance the model or the
    /// host; for a request without one (`None`) that of its target.
    ///
    /// There are 1024 at most. When none of them is closed and idle, further keys share one state.
    /// Handles that were taken before are of other states. Keys are in no tracing event and no
    /// metric.
    #[must_use]
    pub fn keyed<F>(self, extract: F) -> CircuitBreakerLayer<A, At, Keyed<F>> {
        CircuitBreakerLayer {
            adapter: self.adapter,
            states: self.states.by_key(),
            key: Arc::new(Keyed(extract)),
            at: PhantomData,
        }
    }

    /// One state for everything that passes, whatever its target: that of `breaker`. It brings
    /// its own configuration.
    #[must_use]
    pub fn with_breaker(mut self, breaker: Breaker) -> Self {
        self.states = States::Shared(breaker);
        self
    }

    /// The handle of a target's or key's state, which is made where there is none yet; with
    /// [`with_breaker`](Self::with_breaker) that of the breaker that was given.
    pub fn breaker(&self, target: impl Into<TargetName>) -> Breaker {
        self.states.breaker(Some(&target.into()))
    }

    /// The handle of the state of calls that name no target: all calls, where there is no
    /// failover above.
    pub fn unnamed_breaker(&self) -> Breaker {
        self.states.breaker(None)
    }
}

impl<A, At, K> Clone for CircuitBreakerLayer<A, At, K> {
    fn clone(&self) -> Self {
        Self {
            adapter: Arc::clone(&self.adapter),
            states: self.states.clone(),
            key: Arc::clone(&self.key),
            at: PhantomData,
        }
    }
}

impl<A, At, K> fmt::Debug for CircuitBreakerLayer<A, At, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CircuitBreakerLayer")
            .field("states", &self.states)
            .finish_non_exhaustive()
    }
}

impl<S, A, At, K> Layer<S> for CircuitBreakerLayer<A, At, K> {
    type Service = CircuitBreaker<S, A, At, K>;

    fn layer(&self, inner: S) -> Self::Service {
        let home = Home::new(
            self.states.clone(),
            Arc::clone(&self.adapter),
            Arc::clone(&self.key),
        );
        CircuitBreaker::new(inner, Arc::new(home))
    }
}
