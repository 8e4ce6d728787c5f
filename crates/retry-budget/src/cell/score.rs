//! The score of gRPC A6: a failure costs a token, a success earns a part of one, retries only above
//! half.

use super::Account;
use crate::sync::{AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};

/// Milli-tokens of one token: the standard cuts the ratio after three digits.
pub(crate) const TOKEN: u64 = 1000;

/// What a budget is set up with, in milli-tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    pub(crate) most: u64,
    pub(crate) credit: u64,
}

#[derive(Debug)]
pub(crate) struct Cell {
    rules: Rules,
    tokens: AtomicU64,
    granted: AtomicU64,
    denied: AtomicU64,
}

impl Cell {
    pub(crate) fn new(rules: Rules) -> Self {
        Self {
            rules,
            tokens: AtomicU64::new(rules.most),
            granted: AtomicU64::new(0),
            denied: AtomicU64::new(0),
        }
    }

    pub(crate) fn success(&self) {
        self.change(|tokens| {
            tokens
                .saturating_add(self.rules.credit)
                .min(self.rules.most)
        });
    }

    pub(crate) fn failure(&self) {
        self.change(|tokens| tokens.saturating_sub(TOKEN));
    }

    pub(crate) fn allows(&self) -> bool {
        // Exactly half is too little.
        self.tokens() > self.rules.most / 2
    }

    /// Whether a retry is allowed. It costs nothing: the failure did.
    pub(crate) fn withdraw(&self) -> bool {
        let allowed = self.allows();
        let tally = match allowed {
            true => &self.granted,
            false => &self.denied,
        };
        tally.fetch_add(1, Relaxed);
        allowed
    }

    /// A retry that was allowed was not sent.
    pub(crate) fn unused(&self) {
        self.granted.fetch_sub(1, Relaxed);
    }

    pub(crate) fn tokens(&self) -> u64 {
        self.tokens.load(Acquire)
    }

    pub(crate) fn account(&self) -> Account {
        Account {
            balance: self.tokens(),
            granted: self.granted.load(Relaxed),
            denied: self.denied.load(Relaxed),
        }
    }

    fn change(&self, to: impl Fn(u64) -> u64) {
        // Never an error: the function always gives a number.
        let _ = self
            .tokens
            .fetch_update(AcqRel, Acquire, |tokens| Some(to(tokens)));
    }
}

#[cfg(test)]
#[cfg(not(spillway_loom))]
mod tests;
