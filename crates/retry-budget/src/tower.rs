//! Both ways between these budgets and those of `tower`'s retry. Feature `tower`.
//!
//! [`RatioBudget`], [`CostBudget`] and [`ScoreBudget`] are budgets of `tower`, which tells a budget
//! less than a [`Gate`] is told: a `deposit` is taken for a first attempt that succeeded, a
//! `withdraw` for a retry after a transient failure that is sent and does not succeed. So a
//! [`CostBudget`] does not get prices back, and a [`ScoreBudget`] counts the failure at `withdraw`.
//! A [`ConcurrencyBudget`](crate::ConcurrencyBudget) is none: `tower` does not say when a retry ends.
//!
//! ```
//! use tower::retry::budget::Budget;
//! use tower_retry_budget::RatioConfig;
//!
//! let budget = RatioConfig::new().ratio(0.75).floor_per_second(0.0).build()?;
//! for _ in 0..4 {
//!     Budget::deposit(&budget);
//! }
//! let granted = (0..4).filter(|_| Budget::withdraw(&budget)).count();
//! assert_eq!(granted, 3);
//! # Ok::<_, tower_spillway_core::InvalidConfig>(())
//! ```

use std::{fmt, sync::Arc};

use tokio::time::Instant;
use tower::retry::budget::Budget;
use tower_spillway_core::{
    Class, Gate, clock,
    gate::{Ask, Receipt},
};

use crate::{CostBudget, RatioBudget, ScoreBudget};

impl Budget for RatioBudget {
    fn deposit(&self) {
        self.0.first_end(Class::Success, clock::now());
    }

    fn withdraw(&self) -> bool {
        withdraw(&*self.0)
    }
}

impl Budget for CostBudget {
    fn deposit(&self) {
        self.0.first_end(Class::Success, clock::now());
    }

    fn withdraw(&self) -> bool {
        withdraw(&*self.0)
    }
}

impl Budget for ScoreBudget {
    fn deposit(&self) {
        self.0.attempt_end(Class::Success, clock::now());
    }

    fn withdraw(&self) -> bool {
        self.0.attempt_end(Class::Transient, clock::now());
        withdraw(&*self.0)
    }
}

fn withdraw(gate: &dyn Gate) -> bool {
    let ask = Ask::retry(Class::Transient, clock::now());
    gate.withdraw(&ask).is_some()
}

/// A budget of `tower` as a gate for these layers.
///
/// Each call deposits once, when its first attempt ends (one that was refused unsent does not). A
/// budget of `tower` takes nothing back: a retry that is dropped before it is sent stays charged.
///
/// ```
/// use tower::retry::budget::TpsBudget;
/// use tower_retry_budget::{RetryBudgetLayer, tower::TowerGate};
///
/// let layer = RetryBudgetLayer::shared(TowerGate::new(TpsBudget::default()));
/// # let _ = layer;
/// ```
///
/// # Clone
///
/// Clones are handles of one budget.
pub struct TowerGate<B>(Arc<Purse<B>>);

impl<B: Budget + Send + Sync + 'static> TowerGate<B> {
    /// Asks `budget`.
    pub fn new(budget: B) -> Self {
        Self(Arc::new(Purse(budget)))
    }

    /// As a gate. Every handle gives the same one.
    pub fn as_gate(&self) -> Arc<dyn Gate> {
        Arc::clone(&self.0) as Arc<dyn Gate>
    }
}

impl<B> TowerGate<B> {
    /// The budget.
    pub fn get_ref(&self) -> &B {
        &self.0.0
    }
}

impl<B> Clone for TowerGate<B> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<B: Budget + Send + Sync + 'static> From<TowerGate<B>> for Arc<dyn Gate> {
    fn from(gate: TowerGate<B>) -> Self {
        gate.as_gate()
    }
}

impl<B: fmt::Debug> fmt::Debug for TowerGate<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TowerGate").field(self.get_ref()).finish()
    }
}

struct Purse<B>(B);

impl<B: Budget + Send + Sync + 'static> Gate for Purse<B> {
    fn first_end(&self, _class: Class, _now: Instant) {
        self.0.deposit();
    }

    fn withdraw(&self, _ask: &Ask) -> Option<Receipt> {
        self.0.withdraw().then(Receipt::default)
    }
}
