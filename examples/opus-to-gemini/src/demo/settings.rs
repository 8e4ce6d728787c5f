//! What is played, and how fast.

use std::{ops::RangeInclusive, time::Duration};

use super::Phase;
use crate::fake::Behaviour;

/// What is played, and how fast.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// What Anthropic does, one after the other.
    pub phases: Vec<Phase>,
    /// The time between two calls.
    pub every: Duration,
    /// How long Opus takes to answer.
    pub opus: RangeInclusive<Duration>,
    /// How long Gemini takes to answer.
    pub gemini: RangeInclusive<Duration>,
    /// How long an attempt may take at Opus, and at Gemini.
    pub within: (Duration, Duration),
    /// So many times as fast as real.
    pub speed: u32,
    /// Where every latency and every jitter comes from.
    pub seed: u64,
}

impl Settings {
    /// How long it takes to play, without the last answers.
    pub fn duration(&self) -> Duration {
        let calls = self.phases.iter().map(|phase| phase.calls).sum::<usize>();
        self.every * u32::try_from(calls).unwrap_or(u32::MAX) / self.speed.max(1)
    }
}

impl Default for Settings {
    fn default() -> Self {
        let ms = Duration::from_millis;
        let retry_after = Duration::from_secs(30);
        Self {
            phases: vec![
                Phase::new("healthy", Behaviour::Answer, 6),
                Phase::new("throttled", Behaviour::Throttle { retry_after }, 8),
                Phase::new("failing", Behaviour::Fail { status: 529 }, 10),
                Phase::new("back", Behaviour::Answer, 12),
                Phase::new("hanging", Behaviour::Hang, 10),
                Phase::new("recovered", Behaviour::Answer, 14),
            ],
            every: Duration::from_secs(2),
            opus: ms(1_000)..=ms(2_000),
            gemini: ms(800)..=ms(1_600),
            within: (Duration::from_secs(8), Duration::from_secs(15)),
            speed: 15,
            seed: 42,
        }
    }
}
