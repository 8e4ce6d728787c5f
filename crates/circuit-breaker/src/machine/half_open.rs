//! The half-open period: bounded probes, each under a lease.

use std::collections::VecDeque;

use super::{Denied, Nanos, Rules, Why};
use crate::state::TripReason;

#[derive(Clone, Debug)]
pub(super) struct HalfOpen {
    /// What had opened the breaker.
    pub(super) reason: TripReason,
    pub(super) successes: u32,
    pub(super) failures: u32,
    lease: u64,
    next: u64,
    /// Probes that hold a slot, oldest first.
    out: VecDeque<Probe>,
}

#[derive(Clone, Copy, Debug)]
struct Probe {
    number: u64,
    /// When its slot may go to another.
    leased_until: Nanos,
}

impl HalfOpen {
    pub(super) fn new(reason: TripReason, lease: u64) -> Self {
        Self {
            reason,
            successes: 0,
            failures: 0,
            lease,
            next: 0,
            out: VecDeque::new(),
        }
    }

    pub(super) fn out(&self) -> usize {
        self.out.len()
    }

    /// Admits a probe: never more than the verdict can still need, never more at once than
    /// allowed, and one more for each lease that ran out.
    pub(super) fn admit(&mut self, rules: &Rules, now: Nanos) -> Result<u64, Denied> {
        let until = now.saturating_add_unsigned(self.lease);
        let out = u64::try_from(self.out.len()).unwrap_or(u64::MAX);
        let settled = u64::from(self.successes) + u64::from(self.failures);
        let needed = u64::from(rules.close_after) + u64::from(rules.reopen_after) - 1;
        let free = out < u64::from(rules.concurrent) && settled + out < needed;
        if !free {
            match self.out.front() {
                Some(oldest) if now >= oldest.leased_until => {
                    // It may still end, and is heard when it does; only its slot is gone.
                    self.out.pop_front();
                    // One more probe for a lease, not one for each probe that hangs.
                    for probe in &mut self.out {
                        probe.leased_until = probe.leased_until.max(until);
                    }
                }
                oldest => {
                    return Err(Denied {
                        why: Why::ProbesBusy,
                        until: oldest.map(|probe| probe.leased_until),
                        reason: Some(self.reason),
                    });
                }
            }
        }
        let number = self.next;
        self.next += 1;
        self.out.push_back(Probe {
            number,
            leased_until: until,
        });
        Ok(number)
    }

    /// A probe ended, in whatever way: its slot is free if it still had one.
    pub(super) fn leave(&mut self, number: Option<u64>) {
        self.out.retain(|probe| Some(probe.number) != number);
    }
}
