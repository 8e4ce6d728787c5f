//! The share of first attempts: Finagle's, tower's and linkerd's budget.

use std::sync::Arc;

use tokio::time::Instant;
use tower_spillway_core::{
    Class, Gate, clock,
    gate::{Ask, Receipt, Settled},
};

use crate::{
    Snapshot,
    cell::{
        TOKEN,
        ratio::{Cell, Rules},
    },
    clock::Clock,
    handle::handle,
    meter::Meter,
    weights::charge,
};

/// Retries as a share of first attempts, over a sliding window, with a floor.
///
/// Every call (or leg, inside a failover) deposits [`ratio`](crate::RatioConfig::ratio) of a token
/// when its first attempt ends, whether its request can be sent again or not; one that was refused
/// unsent deposits nothing. A retry takes one token (or [what it weighs](crate::Weights)) when it is
/// decided, and gives it back if it is dropped before it is sent. Deposits and retries count for one
/// ttl. The ratio holds exactly, in whole micro-tokens: over any time there are no more retries than
/// deposits pay for, plus the floor.
///
/// Made by [`RatioConfig::build`](crate::RatioConfig::build).
///
/// # Clone
///
/// Clones are handles of one budget: what is shared by a clone is spent by all.
#[derive(Clone)]
pub struct RatioBudget(pub(crate) Arc<Purse>);

handle!(RatioBudget);

impl RatioBudget {
    pub(crate) fn of(rules: Rules) -> Self {
        Self(Arc::new(Purse {
            clock: Clock::new(),
            cell: Cell::new(rules),
            meter: Meter::new("ratio"),
        }))
    }

    /// Retries that could be made now.
    pub fn balance(&self) -> u64 {
        self.snapshot().balance
    }

    /// Nobody else has a handle, and a fresh budget would do the same.
    pub(crate) fn is_idle(&self) -> bool {
        Arc::strong_count(&self.0) == 1 && self.0.cell.is_idle(self.0.clock.at(clock::now()))
    }
}

/// What the handles share.
pub(crate) struct Purse {
    clock: Clock,
    cell: Cell,
    meter: Meter,
}

impl Purse {
    fn snapshot(&self, now: Instant) -> Snapshot {
        let account = self.cell.account(self.clock.at(now));
        Snapshot {
            balance: account.balance / TOKEN,
            granted: account.granted,
            denied: account.denied,
        }
    }

    fn changed(&self, now: Instant) {
        self.meter.balance(|| self.snapshot(now).balance);
    }
}

impl Gate for Purse {
    fn first_end(&self, _class: Class, now: Instant) {
        self.cell.deposit(self.clock.at(now));
        self.changed(now);
    }

    fn withdraw(&self, ask: &Ask) -> Option<Receipt> {
        let receipt = self.cell.withdraw(charge(ask), self.clock.at(ask.now));
        self.meter.asked(receipt.is_some());
        self.changed(ask.now);
        receipt.map(Receipt)
    }

    fn settle(&self, receipt: Receipt, settled: Settled) {
        if settled == Settled::NotSent {
            self.cell.give_back(receipt.0);
            self.meter.balance(|| self.snapshot(clock::now()).balance);
        }
    }
}
