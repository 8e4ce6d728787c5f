use std::{sync::Arc, time::Duration};

use tower_layer::Layer;
use tower_spillway_core::{Gate, Http, InvalidConfig, Limits, TargetName};

use crate::{
    RatioBudget, RatioConfig, RetryBudget,
    registry::{Home, Registry, Rule},
};

/// Bounds what retries may add. See the [crate docs](crate).
///
/// # Clone
///
/// Clones share their budgets.
#[derive(Debug)]
pub struct RetryBudgetLayer<A = Http> {
    rule: Rule,
    adapter: Arc<A>,
}

impl RetryBudgetLayer {
    /// Bounds each call by itself: the sum of its waits (equal passes; zero allows no retry), and
    /// its sends, the first included. Outside a failover over all its targets, inside for one.
    ///
    /// A retry that would pass them is not made; the record names
    /// [`BudgetDenied`](tower_spillway_core::Cause::BudgetDenied) with what was waited and the wait
    /// that was next, or [`AttemptsExhausted`](tower_spillway_core::Cause::AttemptsExhausted).
    ///
    /// # Errors
    ///
    /// `max_attempts` at least 1.
    pub fn per_call(max_total_wait: Duration, max_attempts: u32) -> Result<Self, InvalidConfig> {
        if max_attempts == 0 {
            return Err(InvalidConfig::new("max_attempts", "at least 1"));
        }
        Ok(Self::of(Rule::PerCall(Limits {
            max_attempts: Some(max_attempts),
            max_total_wait: Some(max_total_wait),
            ..Limits::default()
        })))
    }

    /// Bounds retries by a share of all calls: one budget for each target name, which is learnt
    /// from the call, and one for calls without.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the setting that is out of its bounds.
    pub fn ratio(config: RatioConfig) -> Result<Self, InvalidConfig> {
        let registry = Registry::new(config.check()?);
        Ok(Self::of(Rule::PerTarget(Arc::new(registry))))
    }

    /// Bounds retries by one budget for all that passes, whatever its target: a handle such as
    /// [`RatioBudget`], or any [`Gate`].
    pub fn shared(budget: impl Into<Arc<dyn Gate>>) -> Self {
        Self::of(Rule::Shared(budget.into()))
    }

    fn of(rule: Rule) -> Self {
        Self {
            rule,
            adapter: Arc::new(Http::default()),
        }
    }
}

impl<A> RetryBudgetLayer<A> {
    /// Sees requests and responses through another adapter, which must carry a ledger; [`Http`] by
    /// default.
    #[must_use]
    pub fn adapter<B>(self, adapter: B) -> RetryBudgetLayer<B> {
        RetryBudgetLayer {
            rule: self.rule,
            adapter: Arc::new(adapter),
        }
    }

    /// The budget of a target, made where there is none yet; `None` unless this layer keeps one
    /// for each target ([`ratio`](RetryBudgetLayer::ratio)).
    pub fn budget(&self, target: impl Into<TargetName>) -> Option<RatioBudget> {
        self.of_target(Some(&target.into()))
    }

    /// The budget of calls that name no target: all calls, where there is no failover above.
    pub fn unnamed_budget(&self) -> Option<RatioBudget> {
        self.of_target(None)
    }

    fn of_target(&self, name: Option<&TargetName>) -> Option<RatioBudget> {
        match &self.rule {
            Rule::PerTarget(registry) => Some(registry.budget(name)),
            Rule::PerCall(_) | Rule::Shared(_) => None,
        }
    }
}

impl<A> Clone for RetryBudgetLayer<A> {
    fn clone(&self) -> Self {
        Self {
            rule: self.rule.clone(),
            adapter: Arc::clone(&self.adapter),
        }
    }
}

impl<S, A> Layer<S> for RetryBudgetLayer<A> {
    type Service = RetryBudget<S, A>;

    fn layer(&self, inner: S) -> Self::Service {
        let home = Arc::new(Home::new(self.rule.clone()));
        RetryBudget::new(inner, Arc::clone(&self.adapter), home)
    }
}
