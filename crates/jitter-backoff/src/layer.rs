use std::{fmt, sync::Arc, time::Duration};

use tower_layer::Layer;
use tower_spillway_core::{Chance, Class, Engine, Gate, Http, InvalidConfig, Limits, Retry};

use crate::{Constant, Exponential, FromFn, Jitter, JitterBackoff, Linear, Schedule};

/// Retries with jittered backoff. See the [crate docs](crate).
#[derive(Clone)]
pub struct JitterBackoffLayer<A = Http, D = Schedule> {
    policy: JitterBackoff<D>,
    limits: Limits,
    gates: Vec<Arc<dyn Gate>>,
    adapter: A,
}

impl Default for JitterBackoffLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl JitterBackoffLayer {
    /// 100 ms doubling up to 20 s, full jitter, 3 sends.
    pub fn new() -> Self {
        Self::with_policy(JitterBackoff::default())
    }

    /// `base`, doubling up to `cap`, full jitter, 3 sends.
    ///
    /// # Errors
    ///
    /// `base` above zero; `cap` at least 1 ms and not below `base`.
    pub fn exponential(base: Duration, cap: Duration) -> Result<Self, InvalidConfig> {
        Ok(Self::with_schedule(Exponential::new(base, cap)?))
    }

    /// `delay` at first, so much more before each further send, up to `cap`; full jitter, 3 sends.
    ///
    /// # Errors
    ///
    /// `delay` above zero; `cap` at least 1 ms.
    pub fn linear(delay: Duration, cap: Duration) -> Result<Self, InvalidConfig> {
        Ok(Self::with_schedule(Linear::new(delay, cap)?))
    }

    /// The same ceiling before each send, full jitter, 3 sends.
    ///
    /// # Errors
    ///
    /// `delay` above zero.
    pub fn constant(delay: Duration) -> Result<Self, InvalidConfig> {
        Ok(Self::with_schedule(Constant::new(delay)?))
    }

    /// Another schedule, full jitter, 3 sends.
    pub fn with_schedule(schedule: impl Into<Schedule>) -> Self {
        Self::with_policy(JitterBackoff::new(schedule))
    }
}

impl<F> JitterBackoffLayer<Http, FromFn<F>> {
    /// Full jitter below what a function says, 3 sends. See [`JitterBackoff::from_fn`].
    pub fn from_fn(delays: F) -> Self {
        Self::with_policy(JitterBackoff::from_fn(delays))
    }
}

impl<D> JitterBackoffLayer<Http, D> {
    /// A policy that is set up already.
    pub fn with_policy(policy: JitterBackoff<D>) -> Self {
        Self {
            policy,
            limits: Limits::default(),
            gates: Vec::new(),
            adapter: Http::default(),
        }
    }
}

impl<A> JitterBackoffLayer<A> {
    /// The longest delay of the schedule, of that of [`throttled`](Self::throttled) outcomes too.
    /// It bounds the schedule only, never a hint of the server.
    ///
    /// # Errors
    ///
    /// At least 1 ms; of an exponential schedule not below its base.
    pub fn cap(mut self, cap: Duration) -> Result<Self, InvalidConfig> {
        self.policy = self.policy.with_cap(cap)?;
        Ok(self)
    }
}

impl<A, D> JitterBackoffLayer<A, D> {
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

    /// The most that all waits of one call on one target may add up to; equal passes. No wait is
    /// begun that would pass it. Without a limit by default; zero allows no retry.
    #[must_use]
    pub fn max_total_wait(mut self, most: Duration) -> Self {
        self.limits.max_total_wait = Some(most);
        self
    }

    /// Another schedule for outcomes that are Throttled, which keep a streak of their own. By
    /// default they share the schedule.
    #[must_use]
    pub fn throttled(mut self, schedule: impl Into<Schedule>) -> Self {
        self.policy = self.policy.throttled(schedule);
        self
    }

    /// Draws delays in another way; full jitter by default.
    #[must_use]
    pub fn jitter(mut self, jitter: Jitter) -> Self {
        self.policy = self.policy.jitter(jitter);
        self
    }

    /// Sends again only after outcomes of these classes; Throttled and Transient by default.
    ///
    /// # Errors
    ///
    /// One or both of Throttled and Transient: nothing else is ever sent again on one target.
    pub fn retry_on(
        mut self,
        classes: impl IntoIterator<Item = Class>,
    ) -> Result<Self, InvalidConfig> {
        self.policy = self.policy.retry_on(classes)?;
        Ok(self)
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
    pub fn adapter<B>(self, adapter: B) -> JitterBackoffLayer<B, D> {
        JitterBackoffLayer {
            policy: self.policy,
            limits: self.limits,
            gates: self.gates,
            adapter,
        }
    }
}

impl<S, A: Clone, D: Clone> Layer<S> for JitterBackoffLayer<A, D> {
    type Service = Retry<S, JitterBackoff<D>, A>;

    fn layer(&self, inner: S) -> Self::Service {
        let engine = Engine::new(self.policy.clone(), self.adapter.clone()).limits(self.limits);
        let engine = self
            .gates
            .iter()
            .fold(engine, |engine, gate| engine.gate(Arc::clone(gate)));
        Retry::new(inner, Arc::new(engine))
    }
}

impl<A, D: fmt::Debug> fmt::Debug for JitterBackoffLayer<A, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JitterBackoffLayer")
            .field("policy", &self.policy)
            .field("limits", &self.limits)
            .field("gates", &self.gates.len())
            .finish_non_exhaustive()
    }
}
