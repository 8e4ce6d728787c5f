//! Retries that pay by kind and get their price back on success: the AWS SDKs' budget.

use std::sync::Arc;

use tokio::time::Instant;
use tower_spillway_core::{
    Class, Gate, InvalidConfig, clock,
    gate::{Ask, Receipt, Settled},
};

use crate::{
    Weights,
    cell::{
        Dated, TOKEN,
        cost::{Cell, Rules},
    },
    handle::handle,
    purse::Purse,
    weights::micro,
};

/// How a [`CostBudget`] is set up.
///
/// | setting | default | bound |
/// |---|---|---|
/// | [`capacity`](Self::capacity) | 500 | from 1 to 1,000,000 |
/// | [`costs`](Self::costs) | [`Weights::AWS`] | from 0.001 each, none above the capacity |
/// | [`first_success_credit`](Self::first_success_credit) | 1 | from 0 to 1000 |
/// | [`refill_per_second`](Self::refill_per_second) | 0 | from 0 to 10,000 |
/// | [`start`](Self::start) | the capacity | not above the capacity |
///
/// The defaults are those of the AWS SDKs from 2026 on. Values are checked by
/// [`build`](Self::build). A budget that is not valid is an error, never one without a limit.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct CostConfig {
    capacity: u32,
    costs: Weights,
    credit: f64,
    refill: f64,
    start: Option<u32>,
}

impl Default for CostConfig {
    fn default() -> Self {
        Self {
            capacity: 500,
            costs: Weights::AWS,
            credit: 1.0,
            refill: 0.0,
            start: None,
        }
    }
}

impl CostConfig {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// The most tokens there can be.
    pub fn capacity(mut self, tokens: u32) -> Self {
        self.capacity = tokens;
        self
    }

    /// What a retry costs, by what led to it.
    pub fn costs(mut self, costs: Weights) -> Self {
        self.costs = costs;
        self
    }

    /// Tokens for a call whose first attempt succeeds. Counted in millionths.
    pub fn first_success_credit(mut self, tokens: f64) -> Self {
        self.credit = tokens;
        self
    }

    /// Tokens for each second, whatever happens. Counted in millionths.
    ///
    /// Without it, traffic alone fills the budget again.
    pub fn refill_per_second(mut self, tokens: f64) -> Self {
        self.refill = tokens;
        self
    }

    /// Tokens at the beginning.
    pub fn start(mut self, tokens: u32) -> Self {
        self.start = Some(tokens);
        self
    }

    /// A budget of its own.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the setting that is out of its bounds.
    pub fn build(self) -> Result<CostBudget, InvalidConfig> {
        Ok(CostBudget::of(self.check()?))
    }

    fn check(self) -> Result<Rules, InvalidConfig> {
        let invalid = |what, bound| Err(InvalidConfig::new(what, bound));
        if !(1..=1_000_000).contains(&self.capacity) {
            return invalid("capacity", "from 1 to 1,000,000");
        }
        let capacity = u64::from(self.capacity) * TOKEN;
        let prices = self.costs.prices()?;
        if prices.dearest() > capacity {
            return invalid("costs", "not above the capacity");
        }
        // Written so that NaN fails.
        if !(0.0..=1000.0).contains(&self.credit) {
            return invalid("first_success_credit", "from 0 to 1000");
        }
        if !(0.0..=10_000.0).contains(&self.refill) {
            return invalid("refill_per_second", "from 0 to 10,000");
        }
        let (credit, refill) = (micro(self.credit), micro(self.refill));
        for (what, set, micro) in [
            ("first_success_credit", self.credit, credit),
            ("refill_per_second", self.refill, refill),
        ] {
            if set > 0.0 && micro == 0 {
                return invalid(what, "0, or at least 0.000001");
            }
        }
        let start = u64::from(self.start.unwrap_or(self.capacity)) * TOKEN;
        if start > capacity {
            return invalid("start", "not above the capacity");
        }
        Ok(Rules {
            capacity,
            start,
            credit,
            refill,
            prices,
        })
    }
}

/// Retries that pay by kind and get their price back on success: the retry quota of the AWS SDKs.
///
/// A retry takes [what it costs](Weights) when it is decided. If it succeeds, its price comes back
/// (of several retries of one call: of the one that succeeded); if it is dropped before it is sent,
/// too. A call whose first attempt succeeds earns one token. With the defaults it runs dry where
/// more than about a fifth of the calls fail (a third, of throttled ones), and first attempts are
/// never held back.
///
/// Made by [`CostConfig::build`].
///
/// ```
/// use tower_retry_budget::CostConfig;
///
/// let budget = CostConfig::new().build()?;
/// assert_eq!(budget.tokens(), 500.0);
/// # Ok::<_, tower_spillway_core::InvalidConfig>(())
/// ```
///
/// # Clone
///
/// Clones are handles of one budget: what is shared by a clone is spent by all.
#[derive(Clone)]
pub struct CostBudget(pub(crate) Arc<Purse<Cell>>);

handle!(CostBudget);

impl CostBudget {
    fn of(rules: Rules) -> Self {
        Self(Arc::new(Purse::new(Cell::new(rules), "cost")))
    }

    /// The tokens there are, exact in millionths.
    pub fn tokens(&self) -> f64 {
        let now = self.0.at(clock::now());
        self.0.cell.account(now).balance as f64 / TOKEN as f64
    }
}

impl Gate for Purse<Cell> {
    fn first_end(&self, class: Class, now: Instant) {
        if class == Class::Success {
            self.cell.first_success(self.at(now));
            self.changed(|| now);
        }
    }

    fn withdraw(&self, ask: &Ask) -> Option<Receipt> {
        self.take(ask)
    }

    fn settle(&self, receipt: Receipt, settled: Settled) {
        match settled {
            Settled::NotSent => self.cell.give_back(receipt.0, true),
            Settled::Sent(Class::Success) => self.cell.give_back(receipt.0, false),
            Settled::Sent(_) => return,
        }
        self.changed(clock::now);
    }
}
