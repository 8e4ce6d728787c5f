use std::{fmt, sync::Arc, time::Duration};

use tower_layer::Layer;
use tower_spillway_core::{Chance, Engine, Gate, Http, InvalidConfig, Limits, Retry, hint};

use crate::RetryAfter;

/// Waits as long as the server asked, then sends again. See the [crate docs](crate).
#[derive(Clone)]
pub struct RetryAfterLayer<A = Http> {
    policy: RetryAfter,
    limits: Limits,
    gates: Vec<Arc<dyn Gate>>,
    adapter: A,
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
        }
    }
}

impl<A> RetryAfterLayer<A> {
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
    pub fn adapter<B>(self, adapter: B) -> RetryAfterLayer<B> {
        RetryAfterLayer {
            policy: self.policy,
            limits: self.limits,
            gates: self.gates,
            adapter,
        }
    }
}

impl<S, A: Clone> Layer<S> for RetryAfterLayer<A> {
    type Service = Retry<S, RetryAfter, A>;

    fn layer(&self, inner: S) -> Self::Service {
        let engine = Engine::new(self.policy.clone(), self.adapter.clone()).limits(self.limits);
        let engine = self
            .gates
            .iter()
            .fold(engine, |engine, gate| engine.gate(Arc::clone(gate)));
        Retry::new(inner, Arc::new(engine))
    }
}

impl<A> fmt::Debug for RetryAfterLayer<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryAfterLayer")
            .field("policy", &self.policy)
            .field("limits", &self.limits)
            .field("gates", &self.gates.len())
            .finish_non_exhaustive()
    }
}
