//! The share of first attempts: Finagle's, tower's and linkerd's budget.

use std::sync::Arc;

use tokio::time::Instant;
use tower_spillway_core::{
    Class, Gate, clock,
    gate::{Ask, Receipt, Settled},
};

use crate::{
    cell::ratio::{Cell, Rules},
    handle::handle,
    purse::Purse,
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
pub struct RatioBudget(pub(crate) Arc<Purse<Cell>>);

handle!(RatioBudget);

impl RatioBudget {
    pub(crate) fn of(rules: Rules) -> Self {
        Self(Arc::new(Purse::new(Cell::new(rules), "ratio")))
    }

    /// Retries that could be made now.
    pub fn balance(&self) -> u64 {
        self.snapshot().balance
    }

    /// Nobody else has a handle, and a fresh budget would do the same.
    pub(crate) fn is_idle(&self) -> bool {
        Arc::strong_count(&self.0) == 1 && self.0.cell.is_idle(self.0.at(clock::now()))
    }
}

impl Gate for Purse<Cell> {
    fn first_end(&self, _class: Class, now: Instant) {
        self.cell.deposit(self.at(now));
        self.changed(|| now);
    }

    fn withdraw(&self, ask: &Ask) -> Option<Receipt> {
        self.take(ask)
    }

    fn settle(&self, receipt: Receipt, settled: Settled) {
        if settled == Settled::NotSent {
            self.cell.give_back(receipt.0);
            self.changed(clock::now);
        }
    }
}
