//! The score of failures and successes: gRPC's retry throttling.

use std::sync::Arc;

use tokio::time::Instant;
use tower_spillway_core::{
    Class, Gate, InvalidConfig,
    gate::{Ask, Receipt, Settled},
};

use crate::{
    Snapshot,
    cell::score::{Cell, Rules, TOKEN},
    handle::handle,
    meter::Meter,
};

/// Retries only while things go well: the retry throttling of gRPC (proposal A6, `maxTokens` and
/// `tokenRatio`).
///
/// It starts with `max_tokens`. Each attempt that fails in a way that may pass (Throttled, Transient,
/// whether it will be sent again or not) costs one token, each success earns `ratio` of one; other
/// outcomes change nothing. Retries are allowed while there is more than half: exactly half is too
/// little. A retry itself costs nothing.
///
/// Of many calls that fail at once it lets all retry that come before the score falls; it bounds no
/// single moment but the long run.
///
/// ```
/// use tower_retry_budget::ScoreBudget;
///
/// let budget = ScoreBudget::new(10, 0.1)?;
/// assert_eq!((budget.tokens(), budget.allows()), (10.0, true));
/// # Ok::<_, tower_spillway_core::InvalidConfig>(())
/// ```
///
/// # Clone
///
/// Clones are handles of one budget: what is shared by a clone is spent by all.
#[derive(Clone)]
pub struct ScoreBudget(pub(crate) Arc<Purse>);

handle!(ScoreBudget);

impl ScoreBudget {
    /// At most `max_tokens`, and `ratio` of one for each success, of which three decimals count.
    ///
    /// # Errors
    ///
    /// `max_tokens` from 1 to 1000, `ratio` from 0.001 to 1000.
    pub fn new(max_tokens: u32, ratio: f64) -> Result<Self, InvalidConfig> {
        if !(1..=1000).contains(&max_tokens) {
            return Err(InvalidConfig::new("max_tokens", "from 1 to 1000"));
        }
        if !(0.001..=1000.0).contains(&ratio) {
            return Err(InvalidConfig::new("ratio", "from 0.001 to 1000"));
        }
        // Cut, as the standard says; of 0.003 * 1000 = 2.9999... too, which is meant as 3.
        let credit = (ratio * TOKEN as f64 + 1e-6) as u64;
        Ok(Self(Arc::new(Purse {
            cell: Cell::new(Rules {
                most: u64::from(max_tokens) * TOKEN,
                credit,
            }),
            meter: Meter::new("score"),
        })))
    }

    /// The tokens there are, exact in thousandths.
    pub fn tokens(&self) -> f64 {
        self.0.cell.tokens() as f64 / TOKEN as f64
    }

    /// Whether a retry would be allowed now.
    pub fn allows(&self) -> bool {
        self.0.cell.allows()
    }
}

/// What the handles share.
pub(crate) struct Purse {
    cell: Cell,
    meter: Meter,
}

impl Purse {
    fn snapshot(&self, _now: Instant) -> Snapshot {
        let account = self.cell.account();
        Snapshot {
            balance: account.balance / TOKEN,
            granted: account.granted,
            denied: account.denied,
        }
    }
}

impl Gate for Purse {
    fn attempt_end(&self, class: Class, _now: Instant) {
        match class {
            Class::Success => self.cell.success(),
            Class::Throttled | Class::Transient => self.cell.failure(),
            _ => return,
        }
        self.meter.balance(|| self.cell.account().balance / TOKEN);
    }

    fn withdraw(&self, _ask: &Ask) -> Option<Receipt> {
        let granted = self.cell.withdraw();
        self.meter.asked(granted);
        granted.then(Receipt::default)
    }

    fn settle(&self, _receipt: Receipt, settled: Settled) {
        if settled == Settled::NotSent {
            self.cell.unused();
        }
    }
}
