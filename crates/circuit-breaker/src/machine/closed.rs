//! The closed period: what was heard in it, and the rules over it.

use super::{
    Heard, Nanos, Rules,
    baseline::{self, Baseline},
    rules::Bad,
    window::{Counts, EPOCHS, Window},
};
use crate::state::TripReason;

#[derive(Clone, Debug)]
pub(super) struct Closed {
    /// Failures since the last success.
    pub(super) run: u32,
    /// When it began: epochs count from there.
    pub(super) since: Nanos,
    /// The number of its first epoch. Greater than any of an earlier period, so that a count that
    /// comes late cannot be taken for one of this.
    pub(super) base: u64,
    /// Only a share of calls is admitted until then.
    pub(super) ramp_end: Option<Nanos>,
    /// One for each rule.
    windows: Vec<Window>,
}

/// A rule that has been reached, and the counts that did it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tripped {
    pub(super) reason: TripReason,
    pub(super) counts: Counts,
}

impl Closed {
    pub(super) fn new(rules: &Rules, base: u64, since: Nanos) -> Self {
        Self {
            run: 0,
            since,
            base,
            ramp_end: None,
            windows: rules.windows.iter().map(|r| Window::new(r.last)).collect(),
        }
    }

    /// The first epoch of a period after this one.
    pub(super) fn next_base(&self, rules: &Rules, now: Nanos) -> u64 {
        let longest = (0..rules.spans.len())
            .map(|span| rules.epoch(span, self.since, now))
            .max();
        self.base
            .saturating_add(longest.unwrap_or(0))
            .saturating_add(EPOCHS + 1)
    }

    pub(super) fn epoch(&self, rules: &Rules, span: usize, now: Nanos) -> u64 {
        self.base.saturating_add(rules.epoch(span, self.since, now))
    }

    /// Successes that were fast for every rule, counted elsewhere until now.
    pub(super) fn add_fast(&mut self, rules: &Rules, span: usize, epoch: u64, calls: u64) {
        for (rule, window) in rules.windows.iter().zip(&mut self.windows) {
            if rule.span == span && epoch >= self.base {
                window.add(epoch, false, calls);
            }
        }
    }

    /// Hears a call; the rule that it trips, if it does. A fast success trips none.
    pub(super) fn hear(
        &mut self,
        rules: &Rules,
        baseline: &mut Option<Baseline>,
        heard: Heard,
        elapsed: u64,
        now: Nanos,
    ) -> Option<Tripped> {
        let limit = baseline.as_ref().and_then(Baseline::limit);
        match heard {
            Heard::Success => self.run = 0,
            Heard::Failure { .. } => self.run = self.run.saturating_add(1),
            _ => (),
        }
        let mut bad_for_some = matches!(heard, Heard::Failure { .. } | Heard::RateLimited { .. });
        for (place, rule) in rules.windows.iter().enumerate() {
            let Some(bad) = is_bad(rule.bad, heard, elapsed, limit) else {
                continue;
            };
            bad_for_some |= bad;
            let epoch = self.epoch(rules, rule.span, now);
            if let Some(window) = self.windows.get_mut(place) {
                window.add(epoch, bad, 1);
            }
        }
        let suspect = self.suspect(rules, now);
        if let Some(baseline) = baseline {
            let slow = limit.is_some_and(|limit| elapsed > limit);
            match heard {
                Heard::Success if slow => baseline.slow(elapsed),
                Heard::Success => baseline.fast(baseline::place(elapsed), 1, suspect),
                _ => baseline.other(),
            }
            baseline.conclude(suspect);
        }
        if !bad_for_some {
            return None;
        }
        if rules.failures > 0 && self.run >= rules.failures {
            let run = u64::from(self.run);
            return Some(Tripped {
                reason: TripReason::Consecutive,
                counts: Counts {
                    calls: run,
                    bad: run,
                },
            });
        }
        rules.windows.iter().enumerate().find_map(|(place, rule)| {
            let counts = self.counts(rules, place, now);
            rule.most.reached(counts).then_some(Tripped {
                reason: rule.reason,
                counts,
            })
        })
    }

    /// Whether the short window of the brownout rule says that nothing is to be learnt now.
    pub(super) fn suspect(&self, rules: &Rules, now: Nanos) -> bool {
        rules
            .brownout
            .is_some_and(|rule| self.counts(rules, rule.window, now).bad >= rule.suspect)
    }

    /// What a rule sees.
    pub(super) fn counts(&self, rules: &Rules, place: usize, now: Nanos) -> Counts {
        match (rules.windows.get(place), self.windows.get(place)) {
            (Some(rule), Some(window)) => window.counts(self.epoch(rules, rule.span, now)),
            _ => Counts::default(),
        }
    }
}

/// Whether a rule counts the call as bad; `None` if the call is none for it.
fn is_bad(bad: Bad, heard: Heard, elapsed: u64, limit: Option<u64>) -> Option<bool> {
    let failed = match heard {
        Heard::Failure { .. } => true,
        Heard::Success | Heard::RateLimited { .. } | Heard::Lost => false,
        Heard::Held { .. } | Heard::Ignored => return None,
    };
    match (bad, heard) {
        (Bad::Failed, Heard::Lost) => None,
        (Bad::Failed, Heard::RateLimited { .. }) => Some(true),
        (Bad::Failed, _) => Some(failed),
        (Bad::Slow(_), Heard::Lost) => Some(true),
        (Bad::Slow(over), _) => Some(elapsed > over),
        (Bad::Brownout { .. }, Heard::RateLimited { .. }) => None,
        (Bad::Brownout { times }, _) => {
            let limit = limit?.saturating_mul(u64::from(times));
            // A lost attempt says "slow", not how slow it would have been.
            let lost = heard == Heard::Lost && times == 1;
            Some(failed || lost || elapsed > limit)
        }
    }
}
