//! The share of calls in flight: Envoy's budget.

use std::sync::Arc;

use tokio::time::Instant;
use tower_spillway_core::{
    Gate, InvalidConfig,
    gate::{Ask, Receipt, Settled},
};

use crate::{
    Snapshot,
    cell::concurrency::{Cell, Rules},
    handle::handle,
    meter::Meter,
};

/// Retries out as a share of calls in flight, and always a few: Envoy's `retry_budget`
/// (`budget_percent`, `min_retry_concurrency`).
///
/// A call is in flight from its beginning to its outcome, while it waits between two attempts too.
/// A retry is out from the moment it is decided, its wait included, to its outcome (Envoy counts
/// them so since its issue 30205). So it never allows more retries at once than
/// `max(least, percent of the calls)`, whatever their rate; it has no window and no clock, and a
/// burst of calls is allowed its share at once.
///
/// ```
/// use tower_retry_budget::ConcurrencyBudget;
///
/// // 20 % of the calls in flight, at least 3.
/// let budget = ConcurrencyBudget::default();
/// assert_eq!((budget.limit(), budget.snapshot().balance), (3, 3));
/// ```
///
/// # Clone
///
/// Clones are handles of one budget: what is shared by a clone is spent by all.
#[derive(Clone)]
pub struct ConcurrencyBudget(Arc<Purse>);

handle!(ConcurrencyBudget);

impl Default for ConcurrencyBudget {
    /// 20 % of the calls in flight, at least 3: the defaults of Envoy.
    fn default() -> Self {
        Self::of(Rules {
            percent: 20,
            least: 3,
        })
    }
}

impl ConcurrencyBudget {
    /// Retries out for each hundred calls in flight, rounded down; and so many always.
    ///
    /// # Errors
    ///
    /// `percent` from 0 to 100.
    pub fn new(percent: u32, least: u32) -> Result<Self, InvalidConfig> {
        if percent > 100 {
            return Err(InvalidConfig::new("percent", "from 0 to 100"));
        }
        Ok(Self::of(Rules { percent, least }))
    }

    fn of(rules: Rules) -> Self {
        Self(Arc::new(Purse {
            cell: Cell::new(rules),
            meter: Meter::new("concurrency"),
        }))
    }

    /// Retries that may be out at once now.
    pub fn limit(&self) -> u32 {
        self.0.cell.limit(self.0.cell.load())
    }

    /// Calls in flight now.
    pub fn calls(&self) -> u32 {
        self.0.cell.load().calls
    }

    /// Retries out now.
    pub fn retries(&self) -> u32 {
        self.0.cell.load().retries
    }
}

/// What the handles share.
struct Purse {
    cell: Cell,
    meter: Meter,
}

impl Purse {
    fn snapshot(&self, _now: Instant) -> Snapshot {
        let account = self.cell.account();
        Snapshot {
            balance: account.balance,
            granted: account.granted,
            denied: account.denied,
        }
    }

    fn changed(&self) {
        self.meter.balance(|| self.cell.account().balance);
    }
}

impl Gate for Purse {
    fn enter(&self, _now: Instant) {
        self.cell.enter();
        self.changed();
    }

    fn leave(&self, _now: Instant) {
        self.cell.leave();
        self.changed();
    }

    fn withdraw(&self, _ask: &Ask) -> Option<Receipt> {
        let granted = self.cell.withdraw();
        self.meter.asked(granted);
        self.changed();
        granted.then(Receipt::default)
    }

    fn settle(&self, _receipt: Receipt, settled: Settled) {
        self.cell.end(settled == Settled::NotSent);
        self.changed();
    }
}
