//! What is played, and how fast.

use std::{borrow::Cow, ops::RangeInclusive, time::Duration};

use serde::{Deserialize, Serialize};
use tower_spillway_core::clock::millis;

use crate::fake::Behaviour;

/// One phase of an incident.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Phase {
    /// Its name.
    pub name: Cow<'static, str>,
    /// What Anthropic does.
    pub behaviour: Behaviour,
    /// What Gemini does meanwhile.
    pub gemini: Behaviour,
    /// How long.
    pub lasts: Duration,
}

impl Phase {
    /// A phase of so many seconds, in which Gemini answers.
    pub fn new(name: &'static str, behaviour: Behaviour, seconds: u64) -> Self {
        Self {
            name: name.into(),
            behaviour,
            gemini: Behaviour::Answer,
            lasts: Duration::from_secs(seconds),
        }
    }

    /// The same with Gemini in trouble too.
    #[must_use]
    pub fn with_gemini(mut self, behaviour: Behaviour) -> Self {
        self.gemini = behaviour;
        self
    }
}

/// A behaviour with its times divided.
pub(super) fn at_speed(behaviour: Behaviour, speed: u32) -> Behaviour {
    match behaviour {
        Behaviour::Throttle { retry_after } => Behaviour::Throttle {
            retry_after: retry_after / speed.max(1),
        },
        other => other,
    }
}

/// What is played, and how fast. All times are as in the incident.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// What the vendors do, one after the other.
    pub phases: Vec<Phase>,
    /// The time between two calls.
    pub every: Duration,
    /// How long Opus takes to the first content of a stream.
    pub opus: RangeInclusive<Duration>,
    /// How long Gemini takes to the first content of a stream.
    pub gemini: RangeInclusive<Duration>,
    /// How long a stream takes from its head to its end.
    pub stream: Duration,
    /// How long an attempt may take to the head at Opus, and at Gemini.
    pub within: (Duration, Duration),
    /// So many times as fast as real.
    pub speed: u32,
    /// Where every latency and every jitter comes from.
    pub seed: u64,
}

impl Settings {
    /// How long the incident is.
    pub fn lasts(&self) -> Duration {
        self.phases.iter().map(|phase| phase.lasts).sum()
    }

    /// Calls that are made.
    pub fn calls(&self) -> usize {
        let each = self.every.as_millis().max(1);
        usize::try_from(self.lasts().as_millis() / each).unwrap_or(usize::MAX)
    }

    /// The phase at a time.
    pub(super) fn phase_at(&self, at: Duration) -> usize {
        let mut end = Duration::ZERO;
        let ends = self.phases.iter().map(|phase| {
            end += phase.lasts;
            end
        });
        let passed = ends.filter(|end| *end <= at).count();
        passed.min(self.phases.len().saturating_sub(1))
    }
}

impl Default for Settings {
    fn default() -> Self {
        let ms = Duration::from_millis;
        let throttle = |seconds| Behaviour::Throttle {
            retry_after: Duration::from_secs(seconds),
        };
        let errors = Behaviour::Fail { status: 529 };
        Self {
            phases: vec![
                Phase::new("healthy", Behaviour::Answer, 30),
                Phase::new("throttled", throttle(30), 60),
                Phase::new("hang", Behaviour::Hang, 120),
                Phase::new("errors", errors, 50),
                Phase::new("both", errors, 5).with_gemini(throttle(5)),
                Phase::new("recovery", Behaviour::Answer, 60),
                Phase::new("quota", Behaviour::Exhausted, 30),
            ],
            every: ms(1_000),
            opus: ms(1_000)..=ms(2_000),
            gemini: ms(800)..=ms(1_600),
            stream: ms(1_500),
            within: (Duration::from_secs(8), Duration::from_secs(15)),
            speed: 15,
            seed: 42,
        }
    }
}

/// What is told of the settings beside the results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Told {
    pub(super) speed: u32,
    pub(super) seed: u64,
    /// Names and lengths in milliseconds.
    pub(super) phases: Vec<(String, u64)>,
}

impl Told {
    pub(super) fn of(settings: &Settings) -> Self {
        let phase = |p: &Phase| (p.name.to_string(), millis(p.lasts));
        Self {
            speed: settings.speed,
            seed: settings.seed,
            phases: settings.phases.iter().map(phase).collect(),
        }
    }
}
