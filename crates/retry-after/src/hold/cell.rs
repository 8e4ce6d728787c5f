//! One hold: until when, in one atomic word. No clock and no lock; time is whole microseconds from
//! any origin, given with each question.

use super::sync::{AtomicU64, Ordering};

/// Microseconds from an origin that the caller chose.
pub(crate) type Micros = u64;

/// The low bits of the word hold what may be added to the wait, in milliseconds; the others the
/// end. So the greater of two words is the later end, and `fetch_max` extends a hold and never
/// shortens it.
const SPREAD_BITS: u32 = 13;
const MOST_SPREAD: u64 = (1 << SPREAD_BITS) - 1;
/// Seventy years.
const MOST_UNTIL: Micros = (1 << (64 - SPREAD_BITS)) - 1;
const FREE: u64 = 0;

/// A hold as it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hold {
    /// What is left of it.
    pub(crate) left: Micros,
    /// The most that may be added, in milliseconds.
    pub(crate) spread: u64,
}

/// What a question found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    Free,
    /// It has ended, and this question was the first to see it.
    Over,
    Held(Hold),
}

/// What became of a wish to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nobody was held.
    Began,
    /// Nobody was held, but nobody had seen the end of the hold before either.
    Renewed,
    /// It ends later than before.
    Extended,
    /// It ends later anyway.
    Within,
}

#[derive(Debug)]
pub(crate) struct Cell(AtomicU64);

impl Cell {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(FREE))
    }

    /// Holds for `wait` from `now` on, unless it is held for longer.
    pub(crate) fn hold(&self, now: Micros, wait: Micros, spread: u64) -> Change {
        // Never zero, which would read as free.
        let until = now.saturating_add(wait).clamp(1, MOST_UNTIL);
        let word = (until << SPREAD_BITS) | spread.min(MOST_SPREAD);
        let before = self.0.fetch_max(word, Ordering::AcqRel);
        if before == FREE {
            Change::Began
        } else if before >= word {
            Change::Within
        } else if before >> SPREAD_BITS <= now {
            Change::Renewed
        } else {
            Change::Extended
        }
    }

    /// Whether it is held. `now` is asked only where the answer depends on it.
    pub(crate) fn look(&self, now: impl FnOnce() -> Micros) -> Look {
        let mut word = self.0.load(Ordering::Acquire);
        if word == FREE {
            return Look::Free;
        }
        let now = now();
        loop {
            let until = word >> SPREAD_BITS;
            if now < until {
                return Look::Held(Hold {
                    left: until - now,
                    spread: word & MOST_SPREAD,
                });
            }
            // Freed, so that the calls to come need no clock. Not a plain store: it may have been
            // extended since.
            match self
                .0
                .compare_exchange(word, FREE, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return Look::Over,
                Err(FREE) => return Look::Free,
                Err(other) => word = other,
            }
        }
    }

    /// Frees it; `false` if it was free.
    pub(crate) fn release(&self) -> bool {
        self.0.swap(FREE, Ordering::AcqRel) != FREE
    }
}

#[cfg(test)]
#[cfg(not(spillway_loom))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::Barrier;

    fn left(cell: &Cell, now: Micros) -> Option<Micros> {
        match cell.look(|| now) {
            Look::Held(hold) => Some(hold.left),
            Look::Free | Look::Over => None,
        }
    }

    #[test]
    fn never_held_needs_no_clock() {
        let cell = Cell::new();
        assert_eq!(cell.look(|| panic!("asked for the time")), Look::Free);
        cell.hold(5, 10, 0);
        assert_eq!(cell.look(|| 15), Look::Over, "the end itself is free");
        assert_eq!(cell.look(|| panic!("asked for the time")), Look::Free);
    }

    #[test]
    fn a_shorter_wish_changes_nothing_and_a_longer_one_extends() {
        let cell = Cell::new();
        assert_eq!(cell.hold(0, 100, 7), Change::Began);
        assert_eq!(cell.hold(10, 50, 9), Change::Within);
        assert_eq!(
            cell.look(|| 10),
            Look::Held(Hold {
                left: 90,
                spread: 7
            })
        );
        assert_eq!(cell.hold(20, 100, 9), Change::Extended);
        assert_eq!(
            cell.look(|| 20),
            Look::Held(Hold {
                left: 100,
                spread: 9
            })
        );
        assert_eq!(cell.hold(200, 1, 0), Change::Renewed);
        assert!(cell.release());
        assert!(!cell.release());
        assert_eq!(left(&cell, 200), None);
    }

    #[test]
    fn extended_at_its_very_end_it_stays_held() {
        // One thread sees the end while another extends: whoever is first, the longer hold stays.
        for _ in 0..500 {
            let cell = Cell::new();
            cell.hold(0, 10, 0);
            let start = Barrier::new(2);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    start.wait();
                    cell.look(|| 10)
                });
                scope.spawn(|| {
                    start.wait();
                    cell.hold(10, 10, 0)
                });
            });
            assert_eq!(left(&cell, 15), Some(5));
        }
    }

    proptest! {
        #[test]
        fn the_end_is_that_of_the_longest_wish(
            wishes in prop::collection::vec((any::<u32>(), any::<u64>(), any::<u64>()), 1..20),
        ) {
            let cell = Cell::new();
            let mut until = 0;
            for (now, wait, spread) in wishes {
                cell.hold(now.into(), wait, spread);
                until = until.max(u64::from(now).saturating_add(wait).clamp(1, MOST_UNTIL));
            }
            prop_assert_eq!(left(&cell, until - 1), Some(1));
            prop_assert_eq!(cell.look(|| until), Look::Over);
        }
    }
}

#[cfg(test)]
#[cfg(spillway_loom)]
mod model {
    use super::*;
    use loom::{sync::Arc, thread};

    /// The end is seen by two while a third extends: the longer hold stays, and one at most says
    /// that the one before is over.
    #[test]
    fn a_hold_extended_at_its_end_stays() {
        loom::model(|| {
            let cell = Arc::new(Cell::new());
            cell.hold(0, 10, 0);
            let looks: Vec<_> = (0..2)
                .map(|_| {
                    let cell = Arc::clone(&cell);
                    thread::spawn(move || cell.look(|| 10))
                })
                .collect();
            let change = cell.hold(10, 10, 0);
            let seen: Vec<_> = looks.into_iter().map(|look| look.join().unwrap()).collect();
            let over = seen.iter().filter(|look| **look == Look::Over).count();
            // What was counted in was counted out.
            assert_eq!(over, usize::from(change == Change::Began));
            let hold = Hold { left: 5, spread: 0 };
            assert_eq!(cell.look(|| 15), Look::Held(hold));
        });
    }

    #[test]
    fn of_a_release_and_an_end_one_frees_it() {
        loom::model(|| {
            let cell = Arc::new(Cell::new());
            cell.hold(0, 10, 0);
            let other = Arc::clone(&cell);
            let look = thread::spawn(move || other.look(|| 10) == Look::Over);
            let released = cell.release();
            assert!(released != look.join().unwrap());
            assert_eq!(cell.look(|| 0), Look::Free);
        });
    }
}
