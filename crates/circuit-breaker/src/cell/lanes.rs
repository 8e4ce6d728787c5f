//! Successes that no rule is waiting for, counted without the lock.
//!
//! They are told to the machine before it hears a failure or anything slow: only then can their
//! number matter. A count is a word of its epoch and so many calls. Epochs never come twice in the
//! life of a breaker, so a count of an earlier period can be told from one of this.

use crate::{
    machine::{Machine, Nanos, PLACES, Rules},
    sync::{AtomicU32, AtomicU64, LANES, Ordering, lane},
};

/// The low bits of a count are the calls; beyond 16 million in an epoch and lane they are no
/// longer counted.
const CALL_BITS: u32 = 24;
const MOST_CALLS: u64 = (1 << CALL_BITS) - 1;
/// The last epoch; after 34 years of the shortest, one of 1 ms.
const MOST_EPOCHS: u64 = (1 << (64 - CALL_BITS)) - 1;

#[cfg(not(spillway_loom))]
const SLOTS: usize = crate::machine::EPOCHS as usize;
/// The fewest in which epochs meet.
#[cfg(spillway_loom)]
const SLOTS: usize = 1;

pub(super) struct Lanes {
    lanes: Box<[Lane]>,
}

struct Lane {
    /// One for each span of the rules.
    spans: Box<[Slots]>,
    /// How long calls took, by place; none unless a baseline is learnt.
    times: Box<[AtomicU32]>,
}

/// Two cache lines, since processors fetch them in pairs.
#[cfg_attr(not(spillway_loom), repr(align(128)))]
struct Slots([AtomicU64; SLOTS]);

impl Lanes {
    pub(super) fn new(rules: &Rules) -> Self {
        let places = if rules.brownout.is_some() { PLACES } else { 0 };
        let lane = |_| Lane {
            spans: rules
                .spans
                .iter()
                .map(|_| Slots(std::array::from_fn(|_| AtomicU64::new(0))))
                .collect(),
            times: (0..places).map(|_| AtomicU32::new(0)).collect(),
        };
        Self {
            lanes: (0..LANES).map(lane).collect(),
        }
    }

    /// One more success in an epoch.
    pub(super) fn add(&self, span: usize, epoch: u64) {
        let epoch = epoch.min(MOST_EPOCHS);
        let Some(slots) = self.lanes.get(lane()).and_then(|lane| lane.spans.get(span)) else {
            return;
        };
        let Some(slot) = slots.0.get(slot_of(epoch)) else {
            return;
        };
        let mut seen = slot.load(Ordering::Relaxed);
        loop {
            let (of, calls) = decode(seen);
            let next = if of < epoch {
                // What stood there is over for every rule.
                encode(epoch, 1)
            } else if of == epoch && calls < MOST_CALLS {
                encode(epoch, calls + 1)
            } else {
                return;
            };
            match slot.compare_exchange_weak(seen, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    /// How long it took.
    pub(super) fn add_time(&self, place: usize) {
        let times = self.lanes.get(lane()).map(|lane| &lane.times);
        if let Some(count) = times.and_then(|times| times.get(place)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Tells the machine all of it, the oldest first.
    pub(super) fn tell(&self, machine: &mut Machine, spans: usize, now: Nanos) {
        for span in 0..spans {
            let mut told = [(0, 0); LANES * SLOTS];
            let slots = self
                .lanes
                .iter()
                .filter_map(|lane| lane.spans.get(span))
                .flat_map(|slots| &slots.0);
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

fn slot_of(epoch: u64) -> usize {
    usize::try_from(epoch).unwrap_or(0) % SLOTS
}

fn encode(epoch: u64, calls: u64) -> u64 {
    (epoch << CALL_BITS) | calls
}

fn decode(word: u64) -> (u64, u64) {
    (word >> CALL_BITS, word & MOST_CALLS)
}
