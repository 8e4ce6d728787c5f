//! The finance of each budget: whole numbers, time as a number, nothing of tokio.
//!
//! Times are nanoseconds since any fixed moment; one that goes back is taken for the latest that
//! was seen.

pub(crate) mod concurrency;
pub(crate) mod cost;
pub(crate) mod ratio;
pub(crate) mod score;

#[cfg(test)]
#[cfg(spillway_loom)]
mod model;
#[cfg(test)]
#[cfg(not(spillway_loom))]
mod testing;

/// Micro-tokens of one token.
pub(crate) const TOKEN: u64 = 1_000_000;

/// What a retry is charged as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Charge {
    Throttled,
    Transient,
    TimedOut,
    Hedge,
}

impl Charge {
    #[cfg(test)]
    pub(crate) const ALL: [Self; 4] = [
        Self::Throttled,
        Self::Transient,
        Self::TimedOut,
        Self::Hedge,
    ];

    /// Two bits of a receipt, and back.
    fn bits(self) -> u64 {
        self as u64
    }

    fn of_bits(bits: u64) -> Self {
        match bits & 3 {
            0 => Self::Throttled,
            1 => Self::Transient,
            2 => Self::TimedOut,
            _ => Self::Hedge,
        }
    }
}

/// Micro-tokens for each charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prices {
    pub(crate) throttled: u64,
    pub(crate) transient: u64,
    pub(crate) timed_out: u64,
    pub(crate) hedge: u64,
}

impl Prices {
    #[cfg(test)]
    pub(crate) const EQUAL: Self = Self {
        throttled: TOKEN,
        transient: TOKEN,
        timed_out: TOKEN,
        hedge: TOKEN,
    };

    pub(crate) fn of(&self, charge: Charge) -> u64 {
        match charge {
            Charge::Throttled => self.throttled,
            Charge::Transient => self.transient,
            Charge::TimedOut => self.timed_out,
            Charge::Hedge => self.hedge,
        }
    }

    pub(crate) fn dearest(&self) -> u64 {
        let Self {
            throttled,
            transient,
            timed_out,
            hedge,
        } = *self;
        throttled.max(transient).max(timed_out).max(hedge)
    }
}

/// What a budget holds at one moment, and what it did so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    /// In the cell's own unit.
    pub(crate) balance: u64,
    pub(crate) granted: u64,
    pub(crate) denied: u64,
}

/// A cell whose balance depends on the time.
pub(crate) trait Dated {
    /// Takes the price of a retry; gives what giving it back needs to know.
    fn withdraw(&self, charge: Charge, now: u64) -> Option<u64>;

    /// What it holds, in micro-tokens.
    fn account(&self, now: u64) -> Account;
}

/// How often a budget said yes and no.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    granted: u64,
    denied: u64,
}

impl Tally {
    fn granted(&mut self) {
        self.granted = self.granted.saturating_add(1);
    }

    fn denied(&mut self) {
        self.denied = self.denied.saturating_add(1);
    }

    fn taken_back(&mut self) {
        self.granted = self.granted.saturating_sub(1);
    }
}
