//! What follows from an outcome: pure, and in one place.

use std::time::Duration;

use crate::{
    Cause, Class, Limits, Reading, Verdict,
    error::NotReplayable,
    hint::Hint,
    ledger::{Situation, Total},
};

/// A held layer may be asked again this often without a send.
const MOST_UNSENT: u32 = 32;

/// What to do with an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Give it to the caller; nobody wanted to send again.
    Return,
    /// Give it to the caller, although somebody may have wanted to send again.
    Stop(Cause),
    /// Give it to the caller: the request cannot be sent twice.
    Once(NotReplayable),
    /// Wait, then send again, if the gates grant.
    Wait(Duration),
}

/// What the class alone says, before any policy is asked.
pub(super) fn by_class(reading: &Reading) -> Option<Decision> {
    Some(match reading.class() {
        Class::Success | Class::Cancelled => Decision::Return,
        Class::TargetDown => Decision::Stop(Cause::TargetDown),
        Class::NotHere => Decision::Stop(Cause::NotHere),
        Class::CallerFault => Decision::Stop(Cause::CallerFault),
        _ if reading.hint() == Some(Hint::Never) => Decision::Stop(Cause::ServerForbids),
        _ => return None,
    })
}

/// A refusal was never sent: only the layer that refused can ask to be asked again.
pub(super) fn after_refusal(copy: Result<(), NotReplayable>, at: &Situation) -> Decision {
    let after = match at.advice {
        Some(Verdict::Retry { after }) => after,
        Some(Verdict::Stop(cause)) => return Decision::Stop(cause),
        Some(Verdict::Pass) | None => return Decision::Stop(Cause::Refused),
    };
    if let Err(why) = copy {
        return Decision::Once(why);
    }
    if at.unsent >= MOST_UNSENT {
        return Decision::Stop(Cause::Refused);
    }
    if at.history.more_targets && after > at.outlook.patience {
        return Decision::Stop(Cause::OtherTargetFirst);
    }
    fits(at, after)
}

/// An outcome that may pass, with what the policies said of it.
pub(super) fn after_failure(
    reading: &Reading,
    verdict: Verdict,
    copy: Result<(), NotReplayable>,
    at: &Situation,
) -> Decision {
    let after = match verdict {
        Verdict::Pass => return Decision::Return,
        Verdict::Stop(cause) => return Decision::Stop(cause),
        Verdict::Retry { after } => after,
    };
    if let Err(why) = copy {
        return Decision::Once(why);
    }
    if !reading.is_unprocessed() && !at.history.resend_safe {
        return Decision::Stop(Cause::MayHaveBeenProcessed);
    }
    let asked = reading.hint().and_then(Hint::after);
    let around = at.around.iter().map(|target| target.limits);
    let all = around.fold(at.leg.merge(at.call), Limits::merge);
    let longest = all.longest_hint.unwrap_or(Limits::DEFAULT_LONGEST_HINT);
    if asked.is_some_and(|asked| asked > longest) {
        return Decision::Stop(Cause::HintTooLong);
    }
    if at.history.more_targets {
        // The bare hint, so that added jitter does not turn an equal wait into a longer one.
        let wait = asked.filter(|w| !w.is_zero()).unwrap_or(after);
        if reading.is_timed_out()
            || wait > at.outlook.patience
            || at.history.sends >= at.outlook.sends
        {
            return Decision::Stop(Cause::OtherTargetFirst);
        }
    }
    let most = at.leg.max_attempts.unwrap_or(Limits::DEFAULT_ATTEMPTS);
    let call_done = at
        .call
        .max_attempts
        .is_some_and(|most| at.call_sends >= most);
    let target_done = at.around.iter().any(Total::is_spent);
    if at.history.sends >= most || call_done || target_done {
        return Decision::Stop(Cause::AttemptsExhausted);
    }
    fits(at, after)
}

/// The drawn wait against the deadline and the total waits of leg and call.
fn fits(at: &Situation, after: Duration) -> Decision {
    if at.history.remaining.is_some_and(|left| after >= left) {
        return Decision::Stop(Cause::DeadlineWouldPass);
    }
    let over = |waited: Duration, most: Option<Duration>| {
        most.is_some_and(|most| waited.saturating_add(after) > most)
    };
    if over(at.history.waited, at.leg.max_total_wait)
        || over(at.call_waited, at.call.max_total_wait)
        || at
            .around
            .iter()
            .any(|t| over(t.waited, t.limits.max_total_wait))
    {
        return Decision::Stop(Cause::BudgetDenied {
            waited: at.call_waited,
            next: after,
        });
    }
    Decision::Wait(after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{History, hint::Source};

    const SECOND: Duration = Duration::from_secs(1);

    fn at(history: impl FnOnce(&mut History)) -> Situation {
        let mut at = Situation::default();
        at.history.sends = 1;
        at.history.resend_safe = true;
        history(&mut at.history);
        at
    }

    fn hinted(wait: Duration) -> Reading {
        Reading::new(Class::Throttled).with_hint(Some(Hint::After {
            wait,
            source: Source::RetryAfterSeconds,
        }))
    }

    fn decide(reading: &Reading, after: Duration, at: &Situation) -> Decision {
        after_failure(reading, Verdict::Retry { after }, Ok(()), at)
    }

    #[test]
    fn equal_to_the_longest_hint_passes_whatever_jitter_added() {
        let longest = Limits::DEFAULT_LONGEST_HINT;
        let drawn = longest + SECOND * 4;
        assert_eq!(
            decide(&hinted(longest), drawn, &at(|_| ())),
            Decision::Wait(drawn)
        );
        let over = longest + Duration::from_millis(1);
        assert_eq!(
            decide(&hinted(over), over, &at(|_| ())),
            Decision::Stop(Cause::HintTooLong)
        );
    }

    #[test]
    fn the_drawn_wait_must_end_before_the_deadline() {
        let at = at(|h| h.remaining = Some(SECOND));
        let just = SECOND - Duration::from_nanos(1);
        let reading = Reading::new(Class::Transient);
        assert_eq!(decide(&reading, just, &at), Decision::Wait(just));
        assert_eq!(
            decide(&reading, SECOND, &at),
            Decision::Stop(Cause::DeadlineWouldPass)
        );
    }

    #[test]
    fn ambiguous_and_unsafe_is_not_sent_again() {
        let mut at = at(|h| h.resend_safe = false);
        let ambiguous = Reading::new(Class::Transient);
        assert_eq!(
            decide(&ambiguous, SECOND, &at),
            Decision::Stop(Cause::MayHaveBeenProcessed)
        );
        let refused_connection = ambiguous.clone().unprocessed(true);
        assert_eq!(
            decide(&refused_connection, SECOND, &at),
            Decision::Wait(SECOND)
        );
        at.history.resend_safe = true;
        assert_eq!(decide(&ambiguous, SECOND, &at), Decision::Wait(SECOND));
    }

    #[test]
    fn while_another_target_is_usable() {
        let mut at = at(|h| h.more_targets = true);
        at.outlook.patience = 2 * SECOND;
        at.outlook.sends = 2;
        let other = Decision::Stop(Cause::OtherTargetFirst);
        let plain = Reading::new(Class::Transient);
        assert_eq!(decide(&plain, SECOND, &at), Decision::Wait(SECOND));
        assert_eq!(decide(&plain.clone().timed_out(true), SECOND, &at), other);
        assert_eq!(
            decide(&hinted(2 * SECOND), 3 * SECOND, &at),
            Decision::Wait(3 * SECOND),
            "patience compares the bare hint, equal passes"
        );
        assert_eq!(decide(&hinted(3 * SECOND), 3 * SECOND, &at), other);
        at.history.sends = 2;
        assert_eq!(decide(&plain, SECOND, &at), other);
    }

    #[test]
    fn unsent_retries_are_bounded() {
        let mut at = at(|_| ());
        assert_eq!(after_refusal(Ok(()), &at), Decision::Stop(Cause::Refused));
        at.advice = Some(Verdict::Retry { after: SECOND });
        assert_eq!(after_refusal(Ok(()), &at), Decision::Wait(SECOND));
        at.unsent = MOST_UNSENT;
        assert_eq!(after_refusal(Ok(()), &at), Decision::Stop(Cause::Refused));
        at.advice = Some(Verdict::Stop(Cause::HintTooLong));
        assert_eq!(
            after_refusal(Ok(()), &at),
            Decision::Stop(Cause::HintTooLong),
            "who refused says why it is not worth waiting for"
        );
    }

    #[test]
    fn total_wait_equal_passes_and_the_cause_carries_the_figures() {
        let mut at = at(|h| h.waited = 4 * SECOND);
        at.call_waited = 4 * SECOND;
        at.call.max_total_wait = Some(5 * SECOND);
        let reading = Reading::new(Class::Transient);
        assert_eq!(decide(&reading, SECOND, &at), Decision::Wait(SECOND));
        assert_eq!(
            decide(&reading, 2 * SECOND, &at),
            Decision::Stop(Cause::BudgetDenied {
                waited: 4 * SECOND,
                next: 2 * SECOND
            })
        );
    }
}
