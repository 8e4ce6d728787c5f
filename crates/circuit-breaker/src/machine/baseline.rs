//! How long calls to a healthy target take.
//!
//! Learnt while it is healthy and frozen while it is suspect: a quantile that goes on learning
//! takes a brownout for the normal. What was slow is therefore learnt only once the short window
//! has moved past it without suspicion.

use std::collections::VecDeque;

use super::rules::{BILLION, BrownoutRule, scale};

/// Eight places an octave: a place is at most an eighth wider than the last.
const PER_OCTAVE: u32 = 8;
/// Times are counted in units of 2^14 ns, 16 us.
const UNIT_BITS: u32 = 14;
/// Places up to some five minutes; what takes longer is in the last.
pub(crate) const PLACES: usize = 184;

/// The older half of what was learnt counts half at so many calls.
const MOST: u64 = 4096;

/// Calls that must follow a slow one before it is learnt from.
const QUARANTINE: u64 = 20;

/// The place of a time.
pub(crate) fn place(elapsed: u64) -> usize {
    let units = elapsed >> UNIT_BITS;
    let octave = units.checked_ilog2().unwrap_or(0);
    // Below 2^3 units each unit is a place of its own.
    let place = if octave < 3 {
        units
    } else {
        let within = (units >> (octave - 3)) & u64::from(PER_OCTAVE - 1);
        u64::from((octave - 2) * PER_OCTAVE) + within
    };
    usize::try_from(place).unwrap_or(PLACES).min(PLACES - 1)
}

/// The longest time of a place.
fn longest(place: usize) -> u64 {
    if place + 1 >= PLACES {
        return u64::MAX;
    }
    let next = u64::try_from(place + 1).unwrap_or(0);
    let per = u64::from(PER_OCTAVE);
    let units = if next < per {
        next
    } else {
        let shift = next / per - 1;
        (per + next % per) << shift
    };
    units << UNIT_BITS
}

#[derive(Clone, Debug)]
pub(super) struct Baseline {
    rule: BrownoutRule,
    counts: Vec<u64>,
    total: u64,
    limit: Option<u64>,
    /// Calls heard while closed.
    calls: u64,
    /// Slow calls that are not learnt from yet, with the number of the call.
    held: VecDeque<(u64, usize)>,
}

impl Baseline {
    pub(super) fn new(rule: BrownoutRule) -> Self {
        Self {
            rule,
            counts: vec![0; PLACES],
            total: 0,
            limit: None,
            calls: 0,
            held: VecDeque::new(),
        }
    }

    /// Above this a call is slow; `None` while too little is known.
    pub(super) fn limit(&self) -> Option<u64> {
        self.limit
    }

    /// Calls of one place that succeeded and were not slow.
    pub(super) fn fast(&mut self, place: usize, calls: u64, suspect: bool) {
        self.calls = self.calls.saturating_add(calls);
        if !suspect {
            self.learn(place, calls);
        }
    }

    /// A call that was slow.
    pub(super) fn slow(&mut self, elapsed: u64) {
        self.calls = self.calls.saturating_add(1);
        self.held.push_back((self.calls, place(elapsed)));
    }

    /// A call that says nothing about how long one takes.
    pub(super) fn other(&mut self) {
        self.calls = self.calls.saturating_add(1);
    }

    /// What follows from the calls so far: nothing new is learnt from a suspect target.
    pub(super) fn conclude(&mut self, suspect: bool) {
        if suspect {
            self.held.clear();
            return;
        }
        while let Some((call, place)) = self.held.front().copied() {
            if call.saturating_add(QUARANTINE) > self.calls {
                break;
            }
            self.held.pop_front();
            self.learn(place, 1);
        }
        if self.total >= self.rule.learn {
            self.limit = Some(scale(self.quantile(), self.rule.margin));
        }
    }

    fn learn(&mut self, place: usize, calls: u64) {
        let Some(count) = self.counts.get_mut(place) else {
            return;
        };
        *count = count.saturating_add(calls);
        self.total = self.total.saturating_add(calls);
        if self.total > MOST.max(self.rule.learn.saturating_mul(2)) {
            for count in &mut self.counts {
                *count = count.div_ceil(2);
            }
            self.total = self.counts.iter().sum();
        }
    }

    fn quantile(&self) -> u64 {
        let rank = u128::from(self.total) * u128::from(self.rule.quantile);
        let mut below = 0;
        for (place, count) in self.counts.iter().enumerate() {
            below += count;
            if u128::from(below) * u128::from(BILLION) >= rank {
                return longest(place);
            }
        }
        u64::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_grow_by_an_eighth_at_most_and_cover_all_times() {
        let mut before = 0;
        for place_of in 0..PLACES - 1 {
            let end = longest(place_of);
            assert_eq!(place(end - 1), place_of);
            assert_eq!(place(end), place_of + 1);
            if place_of >= 8 {
                assert!((end - before) * 8 <= end, "place {place_of}");
            }
            before = end;
        }
        assert!(before > 240 * 1_000_000_000);
        assert_eq!(place(u64::MAX), PLACES - 1);
        assert_eq!(place(0), 0);
    }
}
