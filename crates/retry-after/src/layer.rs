use std::{fmt, sync::Arc, time::Duration};

use tower_layer::Layer;
use tower_spillway_core::{
    Chance, Engine, Gate, Http, InvalidConfig, Limits, Retry, hint, keyed::Home,
};

use crate::{
    RetryAfter,
    hold::{ByRequest, ByTarget, Held, HoldConfig, HoldKey, Settings, SharedHold},
};

/// Waits as long as the server asked, then sends again. See the [crate docs](crate).
///
/// `A` is how requests and responses are read; `H` is [`NoHold`] or [`Holding`].
#[derive(Clone)]
pub struct RetryAfterLayer<A = Http, H = NoHold> {
    policy: RetryAfter,
    limits: Limits,
    gates: Vec<Arc<dyn Gate>>,
    adapter: A,
    hold: H,
}

/// A hint holds only the call that heard it.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHold;

/// A hint holds all calls of its key. See [`hold`](crate::hold).
#[derive(Clone, Debug)]
pub struct Holding<K = HoldKey, X = ByTarget> {
    shared: SharedHold<K>,
    by: X,
}

impl Default for RetryAfterLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl RetryAfterLayer {
    /// Hints up to 60 s, additive jitter, 3 sends.
    pub fn new() -> Self {
        Self {
            policy: RetryAfter::new(),
            limits: Limits::default(),
            gates: Vec::new(),
            adapter: Http::default(),
            hold: NoHold,
        }
    }
}

impl<A> RetryAfterLayer<A> {
    /// One hint holds all calls to its target: see [`hold`](crate::hold).
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the setting of [`HoldConfig`] that is out of bounds.
    pub fn hold(self, config: HoldConfig) -> Result<RetryAfterLayer<A, Holding>, InvalidConfig> {
        Ok(self.shared_hold(SharedHold::new(config)?))
    }

    /// The same with holds that other layers share.
    #[must_use]
    pub fn shared_hold(self, shared: SharedHold) -> RetryAfterLayer<A, Holding> {
        self.holding(shared, ByTarget)
    }

    /// One hint holds all calls that have its key: what `key` finds in the request.
    ///
    /// ```
    /// use http::{HeaderValue, Request};
    /// use tower_retry_after::{RetryAfterLayer, hold::{HoldConfig, SharedHold}};
    ///
    /// let hold = SharedHold::<Option<HeaderValue>>::new(HoldConfig::new())?;
    /// let layer = RetryAfterLayer::new().keyed_hold(hold.clone(), |request: &Request<String>| {
    ///     request.headers().get("x-tenant").cloned()
    /// });
    /// # let _ = layer;
    /// assert_eq!(hold.retry_in(HeaderValue::from_static("acme")), None);
    /// # Ok::<(), tower_spillway_core::InvalidConfig>(())
    /// ```
    #[must_use]
    pub fn keyed_hold<Req, K, F>(
        self,
        shared: SharedHold<K>,
        key: F,
    ) -> RetryAfterLayer<A, Holding<K, ByRequest<F>>>
    where
        F: Fn(&Req) -> K,
    {
        self.holding(shared, ByRequest(key))
    }

    fn holding<K, X>(self, shared: SharedHold<K>, by: X) -> RetryAfterLayer<A, Holding<K, X>> {
        RetryAfterLayer {
            policy: self.policy,
            limits: self.limits,
            gates: self.gates,
            adapter: self.adapter,
            hold: Holding { shared, by },
        }
    }
}

impl<A, K, X> RetryAfterLayer<A, Holding<K, X>> {
    /// The handle of its holds.
    pub fn hold_handle(&self) -> &SharedHold<K> {
        &self.hold.shared
    }
}

impl<A, H> RetryAfterLayer<A, H> {
    /// The longest wait that a server may ask for; equal passes. It compares what was asked, before
    /// jitter. A longer one is not waited out at all. 60 s where no retrying layer of the stack
    /// sets it; where several do, the least holds.
    #[must_use]
    pub fn longest_wait(mut self, most: Duration) -> Self {
        self.limits.longest_hint = Some(most);
        self
    }

    /// The most sends of one call on one target, the first included. 3 where no retrying layer of
    /// the stack sets it; where several do, the least holds.
    ///
    /// # Errors
    ///
    /// At least 1.
    pub fn max_attempts(mut self, sends: u32) -> Result<Self, InvalidConfig> {
        if sends == 0 {
            return Err(InvalidConfig::new("max_attempts", "at least 1"));
        }
        self.limits.max_attempts = Some(sends);
        Ok(self)
    }

    /// The most that all waits of one call on one target may add up to, jitter included; equal
    /// passes. No wait is begun that would pass it. Without a limit by default; zero allows no
    /// retry.
    #[must_use]
    pub fn max_total_wait(mut self, most: Duration) -> Self {
        self.limits.max_total_wait = Some(most);
        self
    }

    /// Whether waits are spread; by default they are, and only ever longer than asked.
    #[must_use]
    pub fn jitter(mut self, jitter: hint::Jitter) -> Self {
        self.policy = self.policy.jitter(jitter);
        self
    }

    /// Draws from another source of randomness, for instance a seeded one.
    #[must_use]
    pub fn chance(mut self, chance: Chance) -> Self {
        self.policy = self.policy.chance(chance);
        self
    }

    /// Adds a budget that each retry must pass. It is asked last of all, and once for each retry
    /// that is really made.
    #[must_use]
    pub fn gate(mut self, gate: Arc<dyn Gate>) -> Self {
        self.gates.push(gate);
        self
    }

    /// Sees requests and responses through another adapter; [`Http`] by default.
    #[must_use]
    pub fn adapter<B>(self, adapter: B) -> RetryAfterLayer<B, H> {
        RetryAfterLayer {
            policy: self.policy,
            limits: self.limits,
            gates: self.gates,
            adapter,
            hold: self.hold,
        }
    }

    fn around<S>(&self, inner: S) -> Retry<S, RetryAfter, A>
    where
        A: Clone,
    {
        let engine = Engine::new(self.policy.clone(), self.adapter.clone()).limits(self.limits);
        let engine = self
            .gates
            .iter()
            .fold(engine, |engine, gate| engine.gate(Arc::clone(gate)));
        Retry::new(inner, Arc::new(engine))
    }
}

impl<S, A: Clone> Layer<S> for RetryAfterLayer<A> {
    type Service = Retry<S, RetryAfter, A>;

    fn layer(&self, inner: S) -> Self::Service {
        self.around(inner)
    }
}

impl<S, A: Clone, K, X: Clone> Layer<S> for RetryAfterLayer<A, Holding<K, X>> {
    type Service = Retry<Held<S, A, K, X>, RetryAfter, A>;

    fn layer(&self, inner: S) -> Self::Service {
        // Below the engine: whoever drives, this layer or one outside, waits and asks again.
        self.around(Held::new(
            inner,
            Settings {
                adapter: self.adapter.clone(),
                hold: self.hold.shared.clone(),
                by: self.hold.by.clone(),
                policy: self.policy.clone(),
                home: Home::new(),
            },
        ))
    }
}

impl<A, H: fmt::Debug> fmt::Debug for RetryAfterLayer<A, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryAfterLayer")
            .field("policy", &self.policy)
            .field("limits", &self.limits)
            .field("gates", &self.gates.len())
            .field("hold", &self.hold)
            .finish_non_exhaustive()
    }
}
