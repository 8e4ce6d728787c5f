//! The policy: what an outcome is worth.

use std::time::Duration;

use tower_spillway_core::{
    Chance, History, Outcome, Policy, Verdict, clock,
    hint::{self, Hint},
};

/// Asks for another send once the server's hint is over. See the [crate docs](crate).
///
/// It is a pure function of the outcome, so one value serves any number of calls.
#[derive(Clone, Debug, Default)]
pub struct RetryAfter {
    jitter: hint::Jitter,
    chance: Chance,
}

/// Of a hint that asks for no minimum: a wait of nothing would be a loop without a pause.
pub(crate) const LEAST: Duration = Duration::from_millis(1);

impl RetryAfter {
    /// Waits out hints, with jitter that only adds.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether waits are spread.
    #[must_use]
    pub fn jitter(mut self, jitter: hint::Jitter) -> Self {
        self.jitter = jitter;
        self
    }

    /// Draws from another source of randomness.
    #[must_use]
    pub fn chance(mut self, chance: Chance) -> Self {
        self.chance = chance;
        self
    }

    /// What is added to the wait of a call that another call's hint holds: at most `most`.
    pub(crate) fn spread(&self, most: Duration) -> Duration {
        match self.jitter {
            hint::Jitter::None => Duration::ZERO,
            _ => {
                let most = clock::millis(most);
                Duration::from_millis(self.chance.up_to(most))
            }
        }
    }
}

impl<Res> Policy<Res> for RetryAfter {
    fn judge(&self, _past: &History, outcome: &Outcome<'_, Res>) -> Verdict {
        if !outcome.class().may_pass() {
            return Verdict::Pass;
        }
        match outcome.hint().and_then(Hint::after) {
            None => Verdict::Pass,
            Some(asked) => Verdict::Retry {
                after: hint::wait(asked, &self.jitter, &self.chance).max(LEAST),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tower_spillway_core::{Class, Reading, hint::Source};

    fn judge(policy: &RetryAfter, class: Class, asked: Option<Duration>) -> Verdict {
        let reading = Reading::new(class).with_hint(asked.map(|wait| Hint::After {
            wait,
            source: Source::RetryAfterSeconds,
        }));
        policy.judge(&History::default(), &Outcome::new(&reading, Ok(&())))
    }

    #[test]
    fn only_outcomes_that_may_pass_and_have_a_hint() {
        let policy = RetryAfter::new().jitter(hint::Jitter::None);
        let second = Duration::from_secs(1);
        for class in [Class::Throttled, Class::Transient] {
            let retry = Verdict::Retry { after: second };
            assert_eq!(judge(&policy, class, Some(second)), retry);
            assert_eq!(judge(&policy, class, None), Verdict::Pass);
        }
        for class in [Class::Success, Class::CallerFault, Class::TargetDown] {
            assert_eq!(judge(&policy, class, Some(second)), Verdict::Pass);
        }
    }

    #[test]
    fn a_hint_of_zero_asks_for_no_minimum() {
        let verdict = judge(&RetryAfter::new(), Class::Throttled, Some(Duration::ZERO));
        assert_eq!(verdict, Verdict::Retry { after: LEAST });
        let schedule = Verdict::Retry {
            after: Duration::from_millis(100),
        };
        assert_eq!(verdict.merge(schedule), schedule);
    }

    proptest! {
        #[test]
        fn never_early_and_at_most_half_or_5_s_late(asked in any::<u64>(), draw in any::<u64>()) {
            let asked = Duration::from_millis(asked);
            let policy = RetryAfter::new().chance(Chance::fixed(draw));
            let Verdict::Retry { after } = judge(&policy, Class::Throttled, Some(asked)) else {
                return Err(TestCaseError::fail("a hint was not acted on"));
            };
            let most = (asked / 2).min(Duration::from_secs(5));
            prop_assert!(after >= asked && after <= asked.saturating_add(most).max(LEAST));
            prop_assert_eq!((after - asked).subsec_nanos() % 1_000_000, 0);
        }
    }
}
