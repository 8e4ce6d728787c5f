//! One phase of an incident, before and after it was played.

use std::time::Duration;

use tower_spillway_core::Report;

use crate::fake::Behaviour;

/// One phase of an incident.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Phase {
    /// Its name.
    pub name: &'static str,
    /// What Anthropic does.
    pub behaviour: Behaviour,
    /// Calls that start in it.
    pub calls: usize,
}

impl Phase {
    /// A phase of so many calls.
    pub fn new(name: &'static str, behaviour: Behaviour, calls: usize) -> Self {
        Self {
            name,
            behaviour,
            calls,
        }
    }

    /// The behaviour with its times divided.
    pub(super) fn at_speed(&self, speed: u32) -> Behaviour {
        match self.behaviour {
            Behaviour::Throttle { retry_after } => Behaviour::Throttle {
                retry_after: retry_after / speed.max(1),
            },
            other => other,
        }
    }

    pub(super) fn does(&self) -> String {
        match self.behaviour {
            Behaviour::Answer => "answers".into(),
            Behaviour::Slow { factor } => format!("{factor}x slower"),
            Behaviour::Throttle { retry_after } => format!("429, wait {retry_after:?}"),
            Behaviour::Fail { status } => status.to_string(),
            Behaviour::Hang => "hangs".into(),
            Behaviour::Reset => "resets".into(),
            Behaviour::Cut => "cuts off".into(),
        }
    }
}

/// What came of the calls of a phase. Durations are as in the incident, not as played.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Played {
    /// Which phase.
    pub phase: Phase,
    /// Calls that were answered.
    pub answered: usize,
    /// Calls that Opus answered.
    pub by_opus: usize,
    /// Calls that Gemini answered.
    pub by_gemini: usize,
    /// Requests sent, to both.
    pub attempts: usize,
    /// Latencies of all calls, sorted.
    latencies: Vec<Duration>,
}

impl Played {
    pub(super) fn new(phase: Phase) -> Self {
        Self {
            phase,
            answered: 0,
            by_opus: 0,
            by_gemini: 0,
            attempts: 0,
            latencies: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, answered: bool, report: &Report, speed: u32) {
        self.attempts += report.sends();
        let latency = report.latency.saturating_mul(speed);
        let place = self.latencies.partition_point(|l| *l <= latency);
        self.latencies.insert(place, latency);
        if !answered {
            return;
        }
        self.answered += 1;
        match report.target.as_ref().map(|t| t.as_str()) {
            Some("opus") => self.by_opus += 1,
            Some("gemini") => self.by_gemini += 1,
            _ => {}
        }
    }

    /// Calls that ended.
    pub fn calls(&self) -> usize {
        self.latencies.len()
    }

    /// The exact quantile of the latencies by nearest rank, `percent` from 1 to 100; zero without
    /// calls.
    pub fn quantile(&self, percent: usize) -> Duration {
        let rank = (self.latencies.len() * percent).div_ceil(100);
        let at = self.latencies.get(rank.saturating_sub(1));
        at.copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_nearest_ranks() {
        let mut played = Played::new(Phase::new("any", Behaviour::Answer, 0));
        assert_eq!(played.quantile(50), Duration::ZERO);
        played.latencies = (1..=10).map(Duration::from_secs).collect();
        assert_eq!(played.quantile(50), Duration::from_secs(5));
        assert_eq!(played.quantile(99), Duration::from_secs(10));
        assert_eq!(played.quantile(1), Duration::from_secs(1));
    }
}
