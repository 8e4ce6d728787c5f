//! What each target did so far.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde::Serialize;
use tower_spillway_core::{Class, Report, ledger::Attempt};
use tower_spillway_llm::Cost;

use super::{calls::Entry, wall::now_ms};
use crate::chat::{Tokens, dollars};

/// So many of the last latencies are looked at.
const SAMPLES: usize = 512;

/// Figures of all targets, by name. As many as the files that were taken in name.
#[derive(Debug, Default)]
pub(super) struct Figures(Mutex<BTreeMap<String, Target>>);

#[derive(Debug, Default)]
struct Target {
    counts: BTreeMap<&'static str, u64>,
    served: u64,
    /// Of good answers, to the head of a stream or the end of a plain one.
    latencies: VecDeque<Duration>,
    tokens: Tokens,
    cost: Cost,
    last_failure: Option<Failure>,
}

/// The last attempt at a target that was not good.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Failure {
    at_ms: u64,
    class: &'static str,
    status: Option<u16>,
    reason: Option<String>,
}

/// Figures of one target, to be shown.
#[derive(Debug, Default, Serialize)]
pub(super) struct Shown {
    /// Attempts by class.
    attempts: BTreeMap<&'static str, u64>,
    /// Calls that it answered.
    served: u64,
    latency_p50_ms: Option<f64>,
    latency_p99_ms: Option<f64>,
    tokens: Tokens,
    /// In US dollars, of the answers whose tokens and prices are known.
    cost: f64,
    last_failure: Option<Failure>,
}

impl Figures {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Target>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a call that is over.
    pub(super) fn add(&self, report: &Report, entry: &Entry, cost: Option<Cost>) {
        let mut targets = self.lock();
        for attempt in &report.attempts {
            let Some(name) = &attempt.target else {
                continue;
            };
            let target = of(&mut targets, name.as_str());
            *target.counts.entry(attempt.class.as_str()).or_default() += 1;
            match attempt.class {
                Class::Success => target.took(attempt.elapsed),
                Class::Cancelled | Class::Refused => {}
                _ => target.last_failure = Some(Failure::of(attempt)),
            }
        }
        let Some(name) = entry.target.as_deref().filter(|_| entry.is_answer()) else {
            return;
        };
        let target = of(&mut targets, name);
        target.served += 1;
        if let Some(tokens) = entry.tokens {
            // A vendor's word for it, which may be any number.
            let all = &mut target.tokens;
            all.input = all.input.saturating_add(tokens.input);
            all.cached = all.cached.saturating_add(tokens.cached);
            all.output = all.output.saturating_add(tokens.output);
        }
        target.cost = target.cost + cost.unwrap_or_default();
    }

    pub(super) fn show(&self, name: &str) -> Shown {
        self.lock().get(name).map(Target::show).unwrap_or_default()
    }
}

fn of<'t>(targets: &'t mut BTreeMap<String, Target>, name: &str) -> &'t mut Target {
    targets.entry(name.to_owned()).or_default()
}

impl Target {
    fn took(&mut self, time: Duration) {
        if self.latencies.len() >= SAMPLES {
            self.latencies.pop_front();
        }
        self.latencies.push_back(time);
    }

    fn show(&self) -> Shown {
        let mut sorted: Vec<_> = self.latencies.iter().copied().collect();
        sorted.sort_unstable();
        Shown {
            attempts: self.counts.clone(),
            served: self.served,
            latency_p50_ms: percentile(&sorted, 50),
            latency_p99_ms: percentile(&sorted, 99),
            tokens: self.tokens,
            cost: dollars(self.cost),
            last_failure: self.last_failure.clone(),
        }
    }
}

/// The least of the latencies that so many percent do not exceed.
fn percentile(sorted: &[Duration], percent: usize) -> Option<f64> {
    let rank = (sorted.len() * percent).div_ceil(100);
    let latency = sorted.get(rank.saturating_sub(1))?;
    // In tenths of a millisecond: a target on this machine takes less than one.
    Some((latency.as_secs_f64() * 10_000.0).round() / 10.0)
}

impl Failure {
    fn of(attempt: &Attempt) -> Self {
        Self {
            at_ms: now_ms(),
            class: attempt.class.as_str(),
            status: attempt.status,
            reason: attempt.reason.as_ref().map(ToString::to_string),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_what_was_seen() {
        let sorted: Vec<_> = (1..=100).map(Duration::from_millis).collect();
        assert_eq!(percentile(&sorted, 50), Some(50.0));
        assert_eq!(percentile(&sorted, 99), Some(99.0));
        assert_eq!(percentile(&sorted[..1], 99), Some(1.0));
        assert_eq!(percentile(&[], 50), None);
    }
}
