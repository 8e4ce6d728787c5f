//! The policy: what an outcome is worth.

use std::time::Duration;

use tower_spillway_core::{
    Chance, Class, History, InvalidConfig, Outcome, Policy, Verdict,
    hint::{self, Hint},
};

use crate::{Delays, FromFn, Jitter, Schedule};

/// Asks for another send after a jittered delay, or after the server's hint if that is later. See
/// the [crate docs](crate).
///
/// It is a pure function of the call's history, so one value serves any number of calls. With
/// [`RetryLayer`](tower_spillway_core::RetryLayer) it can be wrapped in a policy of your own.
#[derive(Clone, Debug)]
pub struct JitterBackoff<D = Schedule> {
    delays: D,
    /// For throttled outcomes, where they have a schedule of their own.
    throttled: Option<Schedule>,
    jitter: Jitter,
    retry_throttled: bool,
    retry_transient: bool,
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
        Self::over(schedule.into())
    }

    pub(crate) fn with_cap(mut self, cap: Duration) -> Result<Self, InvalidConfig> {
        self.delays = self.delays.with_cap(cap)?;
        self.throttled = self.throttled.map(|s| s.with_cap(cap)).transpose()?;
        Ok(self)
    }

    /// The schedule.
    pub fn schedule(&self) -> &Schedule {
        &self.delays
    }

    /// Draws the delay for a step of the schedule, from 0.
    pub fn delay(&self, step: u32) -> Duration {
        self.delay_after(step, None)
    }

    /// Draws the delay for a step of the schedule, from 0, after a wait:
    /// [`Decorrelated`](Jitter::Decorrelated) jitter goes by it.
    pub fn delay_after(&self, step: u32, last_wait: Option<Duration>) -> Duration {
        self.jitter
            .draw(&self.delays.at(step), last_wait, &self.chance)
    }
}

impl<F> JitterBackoff<FromFn<F>> {
    /// Full jitter below what a function says, which sees the history of the call and the outcome:
    /// a [`Duration`], or a [`Delay`](crate::Delay) with a base and a cap.
    ///
    /// ```
    /// use std::time::Duration;
    /// use http::Response;
    /// use tower_jitter_backoff::JitterBackoff;
    /// use tower_spillway_core::{History, Outcome};
    ///
    /// // The server names a pace; else 100 ms more with every send.
    /// let policy = JitterBackoff::from_fn(|past: &History, outcome: &Outcome<'_, Response<String>>| {
    ///     let pace = outcome.response().and_then(|r| r.headers().get("x-pace-ms"));
    ///     let pace = pace.and_then(|v| v.to_str().ok()?.parse().ok());
    ///     Duration::from_millis(pace.unwrap_or(100 * u64::from(past.sends)))
    /// });
    /// # let _ = policy;
    /// ```
    pub fn from_fn(delays: F) -> Self {
        Self::over(FromFn(delays))
    }
}

impl<D> JitterBackoff<D> {
    fn over(delays: D) -> Self {
        Self {
            delays,
            throttled: None,
            jitter: Jitter::default(),
            retry_throttled: true,
            retry_transient: true,
            chance: Chance::default(),
        }
    }

    /// Another schedule for outcomes that are Throttled, which keep a streak of their own: the AWS
    /// SDKs begin at 1 s after a throttled answer, at 50 ms after a failure.
    #[must_use]
    pub fn throttled(mut self, schedule: impl Into<Schedule>) -> Self {
        self.throttled = Some(schedule.into());
        self
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
        (self.retry_throttled, self.retry_transient) = (false, false);
        let error = InvalidConfig::new("retry_on", "one or both of Throttled and Transient");
        for class in classes {
            match class {
                Class::Throttled => self.retry_throttled = true,
                Class::Transient => self.retry_transient = true,
                _ => return Err(error),
            }
        }
        if !(self.retry_throttled || self.retry_transient) {
            return Err(error);
        }
        Ok(self)
    }

    fn retries(&self, class: Class) -> bool {
        match class {
            Class::Throttled => self.retry_throttled,
            Class::Transient => self.retry_transient,
            _ => false,
        }
    }
}

impl<Res, D: Delays<Res>> Policy<Res> for JitterBackoff<D> {
    fn judge(&self, past: &History, outcome: &Outcome<'_, Res>) -> Verdict {
        let class = outcome.class();
        if !self.retries(class) {
            return Verdict::Pass;
        }
        let delay = match &self.throttled {
            Some(schedule) if class == Class::Throttled => schedule.delay(past, outcome),
            _ => self.delays.delay(past, outcome),
        };
        let own = self.jitter.draw(&delay, past.last_wait, &self.chance);
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

    /// The AWS SDKs from 2026 on: 50 ms after a failure, 1 s after a throttled answer.
    #[test]
    fn throttled_outcomes_have_a_base_and_a_streak_of_their_own() {
        let exponential = |base| Exponential::new(base, 20 * SECOND).unwrap();
        let policy = JitterBackoff::new(exponential(SECOND / 20))
            .throttled(exponential(SECOND))
            .jitter(Jitter::None);
        let transient = Reading::new(Class::Transient);
        let throttled = Reading::new(Class::Throttled);
        for n in 0..4 {
            let times = 2u32.pow(n);
            assert_eq!(
                after(judge(&policy, n + 1, &transient)),
                SECOND / 20 * times
            );
            assert_eq!(after(judge(&policy, n + 1, &throttled)), SECOND * times);
        }
    }

    #[test]
    fn a_function_sees_history_and_outcome() {
        let policy = JitterBackoff::from_fn(|past: &History, outcome: &Outcome<'_, &str>| {
            let name = outcome.response().map_or(0, |r| r.len() as u32);
            Duration::from_millis(u64::from(past.sends * 1000 + name))
        })
        .jitter(Jitter::None);
        let reading = Reading::new(Class::Transient);
        let mut past = History::default();
        past.sends = 2;
        let verdict = policy.judge(&past, &Outcome::new(&reading, Ok(&"four")));
        assert_eq!(after(verdict), Duration::from_millis(2004));
    }

    #[test]
    fn a_function_may_say_base_and_cap() {
        let policy = JitterBackoff::from_fn(|_: &History, _: &Outcome<'_, ()>| {
            crate::Delay::new(8 * SECOND).base(SECOND).cap(2 * SECOND)
        });
        let reading = Reading::new(Class::Transient);
        let policy = policy.jitter(Jitter::Decorrelated);
        let policy = policy.chance(Chance::fixed(u64::MAX));
        assert_eq!(after_of(&policy, &reading), 2 * SECOND);
        let policy = policy.chance(Chance::fixed(0));
        assert_eq!(after_of(&policy, &reading), SECOND);
    }

    fn after_of(policy: &impl Policy<()>, reading: &Reading) -> Duration {
        after(policy.judge(&History::default(), &Outcome::new(reading, Ok(&()))))
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
