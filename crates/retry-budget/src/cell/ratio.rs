//! A ratio budget: whole micro-tokens over a sliding window.
//!
//! What is there at a moment: the reserve, and what the last ten slots took in, less what they gave
//! out. A withdrawal leaves the window just as a deposit does; that is what fills the reserve
//! again. (Finagle's leaky bucket; here slots are aligned, so that nobody's reading moves them.)
//!
//! A withdrawal never leaves the window before a deposit that it could have used. So over any time
//! no more is granted than was deposited, plus the reserve once per window.

use std::sync::PoisonError;

use super::{Account, Charge, Dated, Prices, Tally};
use crate::sync::{Mutex, MutexGuard};

const SLOTS: usize = 10;

/// What a budget is set up with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    /// Micro-tokens for each first attempt.
    pub(crate) deposit: u64,
    /// Micro-tokens that are there without any deposit.
    pub(crate) reserve: u64,
    /// Nanoseconds of the whole window, at least ten.
    pub(crate) ttl: u64,
    /// What retries cost.
    pub(crate) prices: Prices,
}

/// A budget under its one lock.
#[derive(Debug)]
pub(crate) struct Cell {
    rules: Rules,
    /// Nanoseconds of a slot.
    width: u64,
    window: Mutex<Window>,
}

impl Cell {
    pub(crate) fn new(rules: Rules) -> Self {
        Self {
            rules,
            width: (rules.ttl / SLOTS as u64).max(1),
            window: Mutex::new(Window::default()),
        }
    }

    /// A first attempt.
    pub(crate) fn deposit(&self, now: u64) {
        let mut window = self.lock();
        window.move_to(now, self.width);
        let slot = window.newest();
        slot.credit = slot.credit.saturating_add(self.rules.deposit);
    }

    /// What was reserved was not used. What left the window came back that way.
    pub(crate) fn give_back(&self, receipt: u64) {
        let price = self.rules.prices.of(Charge::of_bits(receipt));
        let mut window = self.lock();
        window.tally.taken_back();
        let age = window.latest.saturating_sub(receipt >> 2);
        let slot = usize::try_from(age).ok();
        if let Some(slot) = slot.and_then(|age| window.slots.get_mut(age)) {
            slot.debit = slot.debit.saturating_sub(price);
        }
    }

    /// Whether a fresh budget would do the same.
    pub(crate) fn is_idle(&self, now: u64) -> bool {
        let mut window = self.lock();
        window.move_to(now, self.width);
        let mut slots = window.slots.iter();
        slots.all(|slot| slot.credit == 0 && slot.debit == 0)
    }

    fn lock(&self) -> MutexGuard<'_, Window> {
        // Nothing that can panic runs under the lock.
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Dated for Cell {
    fn withdraw(&self, charge: Charge, now: u64) -> Option<u64> {
        let price = self.rules.prices.of(charge);
        let mut window = self.lock();
        // Checked and taken under one lock: two callers never get the same token.
        window.move_to(now, self.width);
        if window.balance(self.rules.reserve) < price {
            window.tally.denied();
            return None;
        }
        window.tally.granted();
        let slot = window.newest();
        slot.debit = slot.debit.saturating_add(price);
        Some(window.latest << 2 | charge.bits())
    }

    fn account(&self, now: u64) -> Account {
        let mut window = self.lock();
        window.move_to(now, self.width);
        Account {
            balance: window.balance(self.rules.reserve),
            granted: window.tally.granted,
            denied: window.tally.denied,
        }
    }
}

#[derive(Debug, Default)]
struct Window {
    latest: u64,
    /// The first moment of the slot after the newest.
    next: u64,
    /// The newest first.
    slots: [Slot; SLOTS],
    tally: Tally,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    credit: u64,
    debit: u64,
}

impl Window {
    /// Time goes forward only. A clock that goes back would bring expired slots to life; a thread
    /// that was held up with its reading of the clock would empty the window for all others.
    fn move_to(&mut self, now: u64, width: u64) {
        // Nearly always, and without a division.
        if now < self.next {
            return;
        }
        // Two bits of a receipt are the charge's.
        let index = (now / width).min(u64::MAX >> 2);
        self.next = index.saturating_add(1).saturating_mul(width);
        let passed = index.saturating_sub(self.latest);
        // However long the gap, at most all slots are emptied.
        let expired = usize::try_from(passed).map_or(SLOTS, |n| n.min(SLOTS));
        self.slots.rotate_right(expired);
        self.slots
            .iter_mut()
            .take(expired)
            .for_each(|slot| *slot = Slot::default());
        self.latest = self.latest.max(index);
    }

    fn newest(&mut self) -> &mut Slot {
        let [newest, ..] = &mut self.slots;
        newest
    }

    /// Never below zero: what was lent before its deposits left the window is not a debt.
    fn balance(&self, reserve: u64) -> u64 {
        let (mut credit, mut debit) = (u128::from(reserve), 0u128);
        for slot in &self.slots {
            credit += u128::from(slot.credit);
            debit += u128::from(slot.debit);
        }
        u64::try_from(credit.saturating_sub(debit)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
#[cfg(not(spillway_loom))]
mod tests;
