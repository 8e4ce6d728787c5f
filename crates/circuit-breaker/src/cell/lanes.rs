//! Successes that no rule is waiting for, counted without the lock.
//!
//! They are told to the machine before it hears a failure or anything slow: only then can their
//! number matter. A count is a word of its epoch and so many calls. Epochs never come twice in the
//! life of a breaker, so a count of an earlier period can be told from one of this.

use std::num::NonZeroU64;

#[cfg(not(spillway_loom))]
use crate::machine::EPOCHS;
use crate::{
    machine::{ENDLESS, Machine, Nanos, PLACES, Rules},
    sync::{AtomicU32, AtomicU64, LANES, Ordering, lane},
};

/// The low bits of a count are the calls; beyond 16 million in an epoch and lane they are no
/// longer counted.
const CALL_BITS: u32 = 24;
const MOST_CALLS: u64 = (1 << CALL_BITS) - 1;
/// The last epoch; after 34 years of the shortest, one of 1 ms.
const MOST_EPOCHS: u64 = (1 << (64 - CALL_BITS)) - 1;

#[cfg(not(spillway_loom))]
const SLOTS: usize = EPOCHS as usize;
/// The fewest in which epochs meet.
#[cfg(spillway_loom)]
const SLOTS: usize = 1;

pub(super) struct Lanes {
    lanes: [Lane; LANES],
    /// Some span has an end: which epoch it is depends on the time.
    timed: bool,
}

struct Lane {
    /// One for each span of the rules.
    counts: Box<[Counts]>,
    /// How long calls took, by place; none unless a baseline is learnt.
    times: Box<[AtomicU32]>,
}

/// What one lane counts for one span. Two cache lines, since processors fetch them in pairs.
#[cfg_attr(not(spillway_loom), repr(align(128)))]
pub(super) struct Counts {
    slots: [AtomicU64; SLOTS],
    /// How long an epoch is, or [`ENDLESS`].
    width: NonZeroU64,
    /// How often that goes into `u64::MAX`: a product is cheaper than a quotient.
    inverse: u64,
}

impl Lanes {
    pub(super) fn new(rules: &Rules) -> Self {
        let spans = 0..rules.spans.len();
        let places = if rules.brownout.is_some() { PLACES } else { 0 };
        let lane = |_| Lane {
            counts: spans.clone().map(|n| Counts::new(rules.width(n))).collect(),
            times: (0..places).map(|_| AtomicU32::new(0)).collect(),
        };
        Self {
            lanes: std::array::from_fn(lane),
            timed: spans.clone().any(|n| rules.width(n) != ENDLESS),
        }
    }

    /// Whether the epoch depends on the time.
    #[inline]
    pub(super) fn are_timed(&self) -> bool {
        self.timed
    }

    #[inline]
    fn mine(&self) -> &Lane {
        let [any, ..] = &self.lanes;
        self.lanes.get(lane()).unwrap_or(any)
    }

    /// The counts of this thread, one for each span.
    #[inline]
    pub(super) fn counts(&self) -> &[Counts] {
        &self.mine().counts
    }

    /// How long it took.
    pub(super) fn add_time(&self, place: usize) {
        if let Some(count) = self.mine().times.get(place) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Tells the machine all of it, the oldest first.
    pub(super) fn tell(&self, machine: &mut Machine, spans: usize, now: Nanos) {
        for span in 0..spans {
            let mut told = [(0, 0); LANES * SLOTS];
            let lanes = self.lanes.iter().filter_map(|lane| lane.counts.get(span));
            let slots = lanes.flat_map(|counts| &counts.slots);
            for (slot, told) in slots.zip(&mut told) {
                // A load is cheaper than a swap, and most are empty.
                if slot.load(Ordering::Relaxed) != 0 {
                    *told = decode(slot.swap(0, Ordering::Relaxed));
                }
            }
            told.sort_unstable();
            for (epoch, calls) in told {
                if calls > 0 {
                    machine.add_fast(span, epoch, calls);
                }
            }
        }
        for lane in &self.lanes {
            for (place, count) in lane.times.iter().enumerate() {
                if count.load(Ordering::Relaxed) != 0 {
                    let calls = count.swap(0, Ordering::Relaxed);
                    machine.add_times(place, u64::from(calls), now);
                }
            }
        }
    }
}

impl Counts {
    fn new(width: NonZeroU64) -> Self {
        Self {
            slots: std::array::from_fn(|_| AtomicU64::new(0)),
            width,
            inverse: u64::MAX / width,
        }
    }

    /// How many epochs a closed period of that age is old.
    #[inline]
    pub(super) fn epochs(&self, age: u64) -> u64 {
        let width = self.width.get();
        // What is cut off makes it too few, by one at most while an age is a positive `Nanos`.
        let epochs = (u128::from(age) * u128::from(self.inverse)) >> 64;
        let epochs = epochs as u64;
        let rest = age.wrapping_sub(epochs.wrapping_mul(width));
        epochs.wrapping_add(u64::from(rest >= width))
    }

    /// One more success in an epoch.
    #[inline]
    pub(super) fn add(&self, epoch: u64) {
        let epoch = epoch.min(MOST_EPOCHS);
        let Some(slot) = self.slots.get(slot_of(epoch)) else {
            return;
        };
        let mut seen = slot.load(Ordering::Relaxed);
        loop {
            let next = if seen >> CALL_BITS == epoch {
                if seen & MOST_CALLS == MOST_CALLS {
                    return;
                }
                seen + 1
            } else if seen >> CALL_BITS < epoch {
                // What stood there is over for every rule.
                encode(epoch, 1)
            } else {
                return;
            };
            match slot.compare_exchange_weak(seen, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }
}

#[inline]
fn slot_of(epoch: u64) -> usize {
    usize::try_from(epoch).unwrap_or(0) % SLOTS
}

#[inline]
fn encode(epoch: u64, calls: u64) -> u64 {
    (epoch << CALL_BITS) | calls
}

fn decode(word: u64) -> (u64, u64) {
    (word >> CALL_BITS, word & MOST_CALLS)
}

#[cfg(test)]
#[cfg(not(spillway_loom))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Of any size, and not only of the largest.
    fn any_size() -> impl Strategy<Value = u64> {
        (any::<u64>(), 0..64u32).prop_map(|(n, shift)| n >> shift)
    }

    proptest! {
        #[test]
        fn epochs_are_a_quotient(age in any_size(), width in any_size(), near in -2..=2i64) {
            let width = NonZeroU64::new(width).unwrap_or(NonZeroU64::MIN);
            let edge = (age / width).wrapping_mul(width.get()).saturating_add_signed(near);
            for age in [age >> 1, edge >> 1, edge.min(u64::MAX >> 1), u64::MAX >> 1] {
                prop_assert_eq!(Counts::new(width).epochs(age), age / width);
            }
        }
    }

    #[test]
    fn an_endless_span_is_one_epoch() {
        assert_eq!(Counts::new(ENDLESS).epochs(u64::MAX >> 1), 0);
    }
}
