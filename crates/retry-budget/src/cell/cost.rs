//! A bucket of tokens from which each retry takes its price, and gets it back when it succeeds.

use std::sync::PoisonError;

use super::{Account, Charge, Dated, Prices, Tally};
use crate::sync::{Mutex, MutexGuard};

const SECOND: u128 = 1_000_000_000;

/// What a budget is set up with, in micro-tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    pub(crate) capacity: u64,
    pub(crate) start: u64,
    /// For a call whose first attempt succeeds.
    pub(crate) credit: u64,
    /// For each second.
    pub(crate) refill: u64,
    pub(crate) prices: Prices,
}

/// A budget under its one lock.
#[derive(Debug)]
pub(crate) struct Cell {
    rules: Rules,
    bucket: Mutex<Bucket>,
}

#[derive(Debug)]
struct Bucket {
    tokens: u64,
    /// The latest time that was seen, up to which it is filled.
    filled: u64,
    /// Billionths of a micro-token that the refill is short of the next whole one.
    rest: u64,
    tally: Tally,
}

impl Cell {
    pub(crate) fn new(rules: Rules) -> Self {
        Self {
            rules,
            bucket: Mutex::new(Bucket {
                tokens: rules.start.min(rules.capacity),
                filled: 0,
                rest: 0,
                tally: Tally::default(),
            }),
        }
    }

    /// The first attempt of a call succeeded.
    pub(crate) fn first_success(&self, now: u64) {
        let mut bucket = self.at(now);
        bucket.put(self.rules.credit, self.rules.capacity);
    }

    /// The price of a retry that succeeded, or that was not sent.
    pub(crate) fn give_back(&self, receipt: u64, unused: bool) {
        let mut bucket = self.lock();
        if unused {
            bucket.tally.taken_back();
        }
        let price = self.rules.prices.of(Charge::of_bits(receipt));
        bucket.put(price, self.rules.capacity);
    }

    /// The bucket, filled up to now. Under the lock: of two who come at once one fills.
    fn at(&self, now: u64) -> MutexGuard<'_, Bucket> {
        let mut bucket = self.lock();
        let passed = now.saturating_sub(bucket.filled);
        if passed == 0 || self.rules.refill == 0 {
            return bucket;
        }
        bucket.filled = now;
        let earned = u128::from(passed) * u128::from(self.rules.refill) + u128::from(bucket.rest);
        bucket.rest = u64::try_from(earned % SECOND).unwrap_or(0);
        let whole = u64::try_from(earned / SECOND).unwrap_or(u64::MAX);
        bucket.put(whole, self.rules.capacity);
        bucket
    }

    fn lock(&self) -> MutexGuard<'_, Bucket> {
        // Nothing that can panic runs under the lock.
        self.bucket.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Dated for Cell {
    fn withdraw(&self, charge: Charge, now: u64) -> Option<u64> {
        let mut bucket = self.at(now);
        // Checked and taken under one lock: two callers never get the same tokens.
        match bucket.tokens.checked_sub(self.rules.prices.of(charge)) {
            Some(rest) => {
                bucket.tokens = rest;
                bucket.tally.granted();
                Some(charge.bits())
            }
            None => {
                bucket.tally.denied();
                None
            }
        }
    }

    fn account(&self, now: u64) -> Account {
        let bucket = self.at(now);
        Account {
            balance: bucket.tokens,
            granted: bucket.tally.granted,
            denied: bucket.tally.denied,
        }
    }
}

impl Bucket {
    fn put(&mut self, tokens: u64, capacity: u64) {
        self.tokens = self.tokens.saturating_add(tokens).min(capacity);
        if self.tokens == capacity {
            // What a full bucket cannot take is not kept beside it.
            self.rest = 0;
        }
    }
}

#[cfg(test)]
#[cfg(not(spillway_loom))]
mod tests;
