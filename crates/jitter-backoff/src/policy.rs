//! The policy: what an outcome is worth.

use std::time::Duration;

use tower_spillway_core::{
    Chance, Class, History, InvalidConfig, Outcome, Policy, Verdict,
    hint::{self, Hint},
};

use crate::{Jitter, Schedule};

/// Asks for another send after a jittered delay, or after the server's hint if that is later. See
/// the [crate docs](crate).
///
/// It is a pure function of the call's history, so one value serves any number of calls. With
/// [`RetryLayer`](tower_spillway_core::RetryLayer) it can be wrapped in a policy of your own.
#[derive(Clone, Debug)]
pub struct JitterBackoff {
    schedule: Schedule,
    jitter: Jitter,
    throttled: bool,
    transient: bool,
    chance: Chance,
}

impl Default for JitterBackoff {
    fn default() -> Self {
        Self::new(Schedule::default())
    }
}

impl JitterBackoff {
    /// Full jitter over a schedule, for outcomes that are Throttled or Transient.
    pub fn new(schedule: impl Into<Schedule>) -> Self {
        Self {
            schedule: schedule.into(),
            jitter: Jitter::default(),
            throttled: true,
            transient: true,
            chance: Chance::default(),
        }
    }

    /// Draws delays in another way.
    #[must_use]
    pub fn jitter(mut self, jitter: Jitter) -> Self {
        self.jitter = jitter;
        self
    }

    /// Draws from another source of randomness.
    #[must_use]
    pub fn chance(mut self, chance: Chance) -> Self {
        self.chance = chance;
        self
    }

    /// Only outcomes of these classes are sent again.
    ///
    /// # Errors
    ///
    /// One or both of Throttled and Transient: nothing else is ever sent again on one target.
    pub fn retry_on(
        mut self,
        classes: impl IntoIterator<Item = Class>,
    ) -> Result<Self, InvalidConfig> {
        (self.throttled, self.transient) = (false, false);
        let error = InvalidConfig::new("retry_on", "one or both of Throttled and Transient");
        for class in classes {
            match class {
                Class::Throttled => self.throttled = true,
                Class::Transient => self.transient = true,
                _ => return Err(error),
            }
        }
        if !(self.throttled || self.transient) {
            return Err(error);
        }
        Ok(self)
    }

    pub(crate) fn with_schedule(mut self, schedule: Schedule) -> Self {
        self.schedule = schedule;
        self
    }

    /// The schedule.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// Draws the delay for a step of the schedule, from 0.
    pub fn delay(&self, step: u32) -> Duration {
        self.jitter.draw(self.schedule.ceiling(step), &self.chance)
    }

    fn retries(&self, class: Class) -> bool {
        match class {
            Class::Throttled => self.throttled,
            Class::Transient => self.transient,
            _ => false,
        }
    }
}

impl<Res> Policy<Res> for JitterBackoff {
    fn judge(&self, past: &History, outcome: &Outcome<'_, Res>) -> Verdict {
        if !self.retries(outcome.class()) {
            return Verdict::Pass;
        }
        // A streak of 0 is an outcome with a hint: the schedule starts again at its base.
        let own = self.delay(past.streak.saturating_sub(1));
        let asked = outcome.hint().and_then(Hint::after).unwrap_or_default();
        let floor = hint::wait(asked, &self.jitter.for_hints(), &self.chance);
        Verdict::Retry {
            after: own.max(floor),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Constant, Exponential};
    use tower_spillway_core::{Reading, hint::Source};

    const SECOND: Duration = Duration::from_secs(1);

    fn judge(policy: &JitterBackoff, streak: u32, reading: &Reading) -> Verdict {
        let mut past = History::default();
        past.streak = streak;
        policy.judge(&past, &Outcome::new(reading, Ok(&())))
    }

    fn after(verdict: Verdict) -> Duration {
        match verdict {
            Verdict::Retry { after } => after,
            other => panic!("{other:?}"),
        }
    }

    fn hinted(wait: Duration) -> Reading {
        Reading::new(Class::Throttled).with_hint(Some(Hint::After {
            wait,
            source: Source::RetryAfterSeconds,
        }))
    }

    #[test]
    fn a_hint_is_a_floor_and_the_cap_does_not_cut_it() {
        let schedule = Exponential::new(SECOND, 4 * SECOND).unwrap();
        let policy = JitterBackoff::new(schedule).jitter(Jitter::None);
        assert_eq!(after(judge(&policy, 0, &hinted(30 * SECOND))), 30 * SECOND);
        let short = hinted(SECOND / 2);
        assert_eq!(
            after(judge(&policy, 0, &short)),
            SECOND,
            "the base is later"
        );
    }

    #[test]
    fn a_hint_of_zero_asks_for_no_minimum() {
        let policy = JitterBackoff::default().jitter(Jitter::None);
        let zero = hinted(Duration::ZERO);
        assert_eq!(after(judge(&policy, 3, &zero)).as_millis(), 400);
    }

    #[test]
    fn jitter_on_a_hint_only_adds() {
        let policy = JitterBackoff::default();
        for draw in [0, 1 << 40, 1 << 63, u64::MAX] {
            let policy = policy.clone().chance(Chance::fixed(draw));
            let wait = after(judge(&policy, 0, &hinted(60 * SECOND)));
            assert!((60 * SECOND..=65 * SECOND).contains(&wait), "{wait:?}");
        }
    }

    /// Row 16: jitter compounds into the next base.
    #[test]
    fn row_16_jitter_must_not_compound() {
        let ceiling = |n: u32| SECOND * 2u32.pow(n - 1);
        let schedule = Exponential::new(SECOND, 600 * SECOND).unwrap();
        let policy = JitterBackoff::new(schedule).chance(Chance::seeded(16));
        let reading = Reading::new(Class::Transient);
        for n in 1..=8 {
            let draws: Vec<_> = (0..500)
                .map(|_| after(judge(&policy, n, &reading)))
                .collect();
            // Around half its own ceiling, whatever was drawn before.
            let mean = draws.iter().sum::<Duration>() / 500;
            let (low, high) = (ceiling(n) * 2 / 5, ceiling(n) * 3 / 5);
            assert!((low..=high).contains(&mean), "step {n}: {mean:?}");
            assert!(draws.iter().all(|d| *d <= ceiling(n)));
        }
    }

    #[test]
    fn only_the_classes_asked_for() {
        let policy = JitterBackoff::new(Constant::new(SECOND).unwrap())
            .retry_on([Class::Throttled])
            .unwrap();
        let transient = Reading::new(Class::Transient);
        assert_eq!(judge(&policy, 1, &transient), Verdict::Pass);
        assert_ne!(judge(&policy, 0, &hinted(SECOND)), Verdict::Pass);
    }

    #[test]
    fn classes_that_are_never_sent_again_are_refused() {
        for classes in [vec![], vec![Class::Throttled, Class::CallerFault]] {
            let error = JitterBackoff::default().retry_on(classes).unwrap_err();
            assert_eq!(error.what(), "retry_on");
        }
    }
}
