//! The budget as a handle.

use std::{fmt, sync::Arc};

use tokio::time::Instant;
use tower_spillway_core::{
    Class, Gate, clock,
    gate::{Ask, Receipt, Settled},
};

use crate::{
    cell::{Cell, Rules, TOKEN},
    config::nanos,
};

/// Retries as a share of first attempts, over a sliding window, with a floor.
///
/// Every call (or leg, inside a failover) deposits [`ratio`](crate::RatioConfig::ratio) of a token
/// when its first attempt ends, whether its request can be sent again or not; one that was refused
/// unsent deposits nothing. A retry takes one token when it is decided, and gives it back if it is
/// dropped before it is sent. Deposits and retries count for
/// one ttl. The ratio holds exactly, in whole micro-tokens: over any time there are no more retries
/// than deposits pay for, plus the floor.
///
/// Made by [`RatioConfig::build`](crate::RatioConfig::build).
///
/// # Clone
///
/// Clones are handles of one budget: what is shared by a clone is spent by all.
#[derive(Clone)]
pub struct RatioBudget(Arc<Purse>);

/// A budget at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// Retries that could be made now.
    pub balance: u64,
    /// Retries granted so far, without those that were given back.
    pub granted: u64,
    /// Retries denied so far.
    pub denied: u64,
}

impl RatioBudget {
    pub(crate) fn of(rules: Rules) -> Self {
        Self(Arc::new(Purse {
            since: clock::now(),
            cell: Cell::new(rules),
        }))
    }

    /// Retries that could be made now.
    pub fn balance(&self) -> u64 {
        self.snapshot().balance
    }

    /// What it holds now, and what it did so far.
    pub fn snapshot(&self) -> Snapshot {
        let account = self.0.cell.account(self.0.time(clock::now()));
        Snapshot {
            balance: account.balance / TOKEN,
            granted: account.granted,
            denied: account.denied,
        }
    }

    /// As a gate, for the `gate` setter of a retrying layer.
    ///
    /// Every handle of one budget gives the same gate, so a call that meets it in several places
    /// is charged once.
    pub fn as_gate(&self) -> Arc<dyn Gate> {
        // A clone of the one `Arc`: a call tells gates apart by address.
        Arc::clone(&self.0) as Arc<dyn Gate>
    }

    /// Nobody else has a handle, and a fresh budget would do the same.
    pub(crate) fn is_idle(&self) -> bool {
        Arc::strong_count(&self.0) == 1 && self.0.cell.is_idle(self.0.time(clock::now()))
    }
}

impl From<RatioBudget> for Arc<dyn Gate> {
    fn from(budget: RatioBudget) -> Self {
        budget.as_gate()
    }
}

impl From<&RatioBudget> for Arc<dyn Gate> {
    fn from(budget: &RatioBudget) -> Self {
        budget.as_gate()
    }
}

impl fmt::Debug for RatioBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Snapshot {
            balance,
            granted,
            denied,
        } = self.snapshot();
        f.debug_struct("RatioBudget")
            .field("balance", &balance)
            .field("granted", &granted)
            .field("denied", &denied)
            .finish()
    }
}

/// What the handles share. It is the gate, not the handle: two handles in two `Arc`s would be two
/// gates, and charge twice.
struct Purse {
    since: Instant,
    cell: Cell,
}

impl Purse {
    fn time(&self, now: Instant) -> u64 {
        nanos(now.saturating_duration_since(self.since))
    }
}

impl Gate for Purse {
    fn first_end(&self, _class: Class, now: Instant) {
        self.cell.deposit(self.time(now));
    }

    fn withdraw(&self, ask: &Ask) -> Option<Receipt> {
        self.cell.withdraw(self.time(ask.now)).map(Receipt)
    }

    fn settle(&self, receipt: Receipt, settled: Settled) {
        if settled == Settled::NotSent {
            self.cell.give_back(receipt.0);
        }
    }
}
