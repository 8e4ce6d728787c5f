//! Retries as a share of the calls in flight, in one word: no call sees one number of a change and
//! not the other.

use super::Account;
use crate::sync::{AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};

/// What a budget is set up with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    /// Retries out for each hundred calls in flight.
    pub(crate) percent: u32,
    /// Retries out that are always allowed.
    pub(crate) least: u32,
}

#[derive(Debug)]
pub(crate) struct Cell {
    rules: Rules,
    /// Calls in flight in the upper half, retries out in the lower.
    load: AtomicU64,
    granted: AtomicU64,
    denied: AtomicU64,
}

/// How busy it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) calls: u32,
    pub(crate) retries: u32,
}

impl Load {
    fn of(word: u64) -> Self {
        Self {
            calls: (word >> 32) as u32,
            retries: word as u32,
        }
    }

    pub(super) fn word(self) -> u64 {
        u64::from(self.calls) << 32 | u64::from(self.retries)
    }
}

impl Cell {
    pub(crate) fn new(rules: Rules) -> Self {
        Self {
            rules,
            load: AtomicU64::new(0),
            granted: AtomicU64::new(0),
            denied: AtomicU64::new(0),
        }
    }

    pub(crate) fn load(&self) -> Load {
        Load::of(self.load.load(Acquire))
    }

    /// Retries that may be out at once, rounded down as in Envoy.
    pub(crate) fn limit(&self, load: Load) -> u32 {
        let share = u64::from(load.calls) * u64::from(self.rules.percent) / 100;
        u32::try_from(share)
            .unwrap_or(u32::MAX)
            .max(self.rules.least)
    }

    pub(crate) fn enter(&self) {
        self.change(|load| Load {
            calls: load.calls.saturating_add(1),
            ..load
        });
    }

    pub(crate) fn leave(&self) {
        self.change(|load| Load {
            calls: load.calls.saturating_sub(1),
            ..load
        });
    }

    /// Reserves a retry.
    pub(crate) fn withdraw(&self) -> bool {
        let taken = self.load.fetch_update(AcqRel, Acquire, |word| {
            let load = Load::of(word);
            (load.retries < self.limit(load)).then(|| {
                Load {
                    retries: load.retries.saturating_add(1),
                    ..load
                }
                .word()
            })
        });
        let tally = match taken {
            Ok(_) => &self.granted,
            Err(_) => &self.denied,
        };
        tally.fetch_add(1, Relaxed);
        taken.is_ok()
    }

    /// The retry is over; `unused` if it never left.
    pub(crate) fn end(&self, unused: bool) {
        if unused {
            self.granted.fetch_sub(1, Relaxed);
        }
        self.change(|load| Load {
            retries: load.retries.saturating_sub(1),
            ..load
        });
    }

    pub(crate) fn account(&self) -> Account {
        let load = self.load();
        Account {
            balance: self.limit(load).saturating_sub(load.retries).into(),
            granted: self.granted.load(Relaxed),
            denied: self.denied.load(Relaxed),
        }
    }

    fn change(&self, to: impl Fn(Load) -> Load) {
        // Never an error: the function always gives a word.
        let _ = self
            .load
            .fetch_update(AcqRel, Acquire, |word| Some(to(Load::of(word)).word()));
    }
}

#[cfg(test)]
#[cfg(not(spillway_loom))]
mod tests;
