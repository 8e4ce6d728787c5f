//! The half-open period: bounded probes of users, each under a lease, or probes that no user
//! waits for.

use std::{collections::VecDeque, num::NonZeroU64};

use super::{Denied, Nanos, Rules, Why};
use crate::state::TripReason;

#[derive(Clone, Debug)]
pub(super) struct HalfOpen {
    /// What had opened the breaker.
    pub(super) reason: TripReason,
    pub(super) successes: u32,
    pub(super) failures: u32,
    /// How long a probe keeps its slot; `None` for as long as it takes.
    lease: Option<u64>,
    handed_out: u64,
    /// Probes that hold a slot, oldest first.
    out: VecDeque<Probe>,
    /// Probes are a prober's, and no user's call is one.
    watch: Option<Watch>,
}

#[derive(Clone, Copy, Debug)]
struct Probe {
    number: NonZeroU64,
    /// When its slot may go to another; `None` if never.
    leased_until: Option<Nanos>,
}

/// The verdict over the probes of a prober: a share of the last ones, and the last three.
///
/// A half-broken target passes two probes in a row one time in four; four of five with the last
/// three good seldom, and more are asked for each time that it opens again soon.
#[derive(Clone, Debug)]
struct Watch {
    needed: usize,
    results: VecDeque<bool>,
}

/// Probes that close at the first trip.
const PROBES: usize = 6;
/// The most that close at later ones.
const MOST_PROBES: usize = 40;
/// So many of the last must be good in any case.
const LAST: usize = 3;

impl Watch {
    fn new(recent_trips: u32) -> Self {
        let doublings = recent_trips.saturating_sub(1).min(8);
        Self {
            needed: (PROBES << doublings).min(MOST_PROBES),
            results: VecDeque::new(),
        }
    }

    /// Whether that is enough to close.
    fn hear(&mut self, good: bool) -> bool {
        if self.results.len() == self.needed {
            self.results.pop_front();
        }
        self.results.push_back(good);
        let successes = self.results.iter().filter(|good| **good).count();
        self.results.len() == self.needed
            && self.results.iter().rev().take(LAST).all(|good| *good)
            && successes * 5 >= self.needed * 4
    }
}

impl HalfOpen {
    /// Probed by users.
    pub(super) fn new(reason: TripReason, lease: Option<u64>) -> Self {
        Self {
            reason,
            successes: 0,
            failures: 0,
            lease,
            handed_out: 0,
            out: VecDeque::new(),
            watch: None,
        }
    }

    /// Probed by a prober.
    pub(super) fn watched(reason: TripReason, recent_trips: u32) -> Self {
        Self {
            watch: Some(Watch::new(recent_trips)),
            ..Self::new(reason, None)
        }
    }

    pub(super) fn is_watched(&self) -> bool {
        self.watch.is_some()
    }

    pub(super) fn out(&self) -> usize {
        self.out.len()
    }

    /// Admits a probe of a prober, which sends one at a time.
    pub(super) fn admit_prober(&mut self) -> NonZeroU64 {
        self.hand_out(None)
    }

    /// Admits a probe: never more than the verdict can still need, never more at once than
    /// allowed, and one more for each lease that ran out.
    pub(super) fn admit(&mut self, rules: &Rules, now: Nanos) -> Result<NonZeroU64, Denied> {
        let until = self.lease.map(|lease| now.saturating_add_unsigned(lease));
        let out = u64::try_from(self.out.len()).unwrap_or(u64::MAX);
        let settled = u64::from(self.successes) + u64::from(self.failures);
        let needed = u64::from(rules.close_after) + u64::from(rules.reopen_after) - 1;
        let free = out < u64::from(rules.concurrent) && settled + out < needed;
        if !free {
            let oldest = self.out.front().and_then(|probe| probe.leased_until);
            match oldest {
                Some(over) if now >= over => {
                    // It may still end, and is heard when it does; only its slot is gone.
                    self.out.pop_front();
                    // One more probe for a lease, not one for each probe that hangs.
                    for probe in &mut self.out {
                        probe.leased_until = probe.leased_until.max(until);
                    }
                }
                until => {
                    return Err(Denied {
                        why: Why::ProbesBusy,
                        until,
                        reason: Some(self.reason),
                    });
                }
            }
        }
        Ok(self.hand_out(until))
    }

    fn hand_out(&mut self, leased_until: Option<Nanos>) -> NonZeroU64 {
        let number = NonZeroU64::MIN.saturating_add(self.handed_out);
        self.handed_out += 1;
        self.out.push_back(Probe {
            number,
            leased_until,
        });
        number
    }

    /// A probe ended, in whatever way: its slot is free if it still had one.
    pub(super) fn leave(&mut self, number: Option<NonZeroU64>) {
        self.out.retain(|probe| Some(probe.number) != number);
    }

    /// A probe was good; whether that closes.
    pub(super) fn good(&mut self, rules: &Rules) -> bool {
        self.successes = self.successes.saturating_add(1);
        match &mut self.watch {
            Some(watch) => watch.hear(true),
            None => self.successes >= rules.close_after,
        }
    }

    /// A probe was bad; whether that reopens. A prober goes on probing instead.
    pub(super) fn bad(&mut self, rules: &Rules) -> bool {
        self.failures = self.failures.saturating_add(1);
        match &mut self.watch {
            Some(watch) => {
                watch.hear(false);
                false
            }
            None => self.failures >= rules.reopen_after,
        }
    }
}
