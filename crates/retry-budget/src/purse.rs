//! What the handles of one budget share, where what it holds depends on the time.

use tokio::time::Instant;
use tower_spillway_core::gate::{Ask, Receipt};

use crate::{
    Snapshot,
    cell::{Dated, TOKEN},
    clock::Clock,
    meter::Meter,
    weights::charge,
};

/// A cell, the clock that it is asked by, and the metrics that hear of it.
pub(crate) struct Purse<C> {
    clock: Clock,
    pub(crate) cell: C,
    pub(crate) meter: Meter,
}

impl<C: Dated> Purse<C> {
    pub(crate) fn new(cell: C, budget: &'static str) -> Self {
        Self {
            clock: Clock::new(),
            cell,
            meter: Meter::new(budget),
        }
    }

    /// A moment as the cell counts it.
    pub(crate) fn at(&self, now: Instant) -> u64 {
        self.clock.at(now)
    }

    pub(crate) fn snapshot(&self, now: Instant) -> Snapshot {
        let account = self.cell.account(self.at(now));
        Snapshot {
            balance: account.balance / TOKEN,
            granted: account.granted,
            denied: account.denied,
        }
    }

    /// Metrics hear of what it holds, if there are any: `now` is not asked for otherwise.
    pub(crate) fn changed(&self, now: impl FnOnce() -> Instant) {
        self.meter.balance(|| self.snapshot(now()).balance);
    }

    /// Takes the price of a retry.
    pub(crate) fn take(&self, ask: &Ask) -> Option<Receipt> {
        let receipt = self.cell.withdraw(charge(ask), self.at(ask.now));
        self.meter.asked(receipt.is_some());
        self.changed(|| ask.now);
        receipt.map(Receipt)
    }
}
