//! When a closed breaker opens.

use std::time::Duration;

use tower_spillway_core::InvalidConfig;

use super::{ensure, nanos, thousandths};
use crate::{
    machine::{BILLION, Bad, BrownoutRule, EPOCHS, Most, Rules, WindowRule},
    state::TripReason,
};

/// When a closed breaker opens. Rules compose: whichever is reached first opens it, and is named as
/// the [`TripReason`] in events and refusals.
///
/// Failed and rate-limited calls count as failed in a share or a number; a run counts failures
/// only, and a success ends it, a slow one too. What says nothing about the target counts in none.
/// A rule is asked when a call failed or was slow: a fast success opens nothing.
///
/// A time is cut into ten parts, counted from the moment that the breaker closed; a call leaves it
/// with its part.
///
/// ```
/// use std::time::Duration;
/// use tower_circuit_breaker::{BreakerConfig, Rule};
///
/// let minute = Duration::from_secs(60);
/// let config = BreakerConfig::new().rules([
///     Rule::run(3),
///     // 6 of the last 20, none of them older than a minute.
///     Rule::number_of_last(6, 20).within(minute),
///     // Half of the calls of a minute took longer than 8 s.
///     Rule::slow(Duration::from_secs(8), 0.5, 10, minute),
/// ]);
/// # let _ = config;
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Rule(Kind);

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Run(u32),
    Window {
        span: Duration,
        last: Option<u32>,
        slow: Option<Duration>,
        most: Limit,
        reason: TripReason,
    },
    Brownout(Brownout),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    Number(u32),
    Share { share: f64, min_calls: u32 },
}

/// The short window of the brownout rule: 8 of the last 20.
const SHORT: (u32, u32) = (8, 20);
/// So many of them, and nothing is learnt.
const SUSPECT: u64 = 4;
/// The long one: 15 of the last 300 that failed or hung.
const LONG: (u32, u32) = (15, 300);
/// A call hangs that takes so many times the limit.
const HANGS: u32 = 4;
/// The long window is looked at for so many times the time of the short one.
const LONGER: u32 = 30;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Brownout {
    within: Duration,
    quantile: f64,
    margin: f64,
    learn: u32,
}

impl Rule {
    /// So many failures with no success between (at least 1).
    pub fn run(failures: u32) -> Self {
        Self(Kind::Run(failures))
    }

    /// That share (above 0, at most 1; counted in billionths) of at least `min_calls` (at least 1)
    /// calls failed in that time (at least 10 ms).
    pub fn rate(share: f64, min_calls: u32, time: Duration) -> Self {
        Self(Kind::Window {
            span: time,
            last: None,
            slow: None,
            most: Limit::Share { share, min_calls },
            reason: TripReason::Rate,
        })
    }

    /// So many calls (at least 1) failed in that time (at least 10 ms).
    pub fn number(failures: u32, time: Duration) -> Self {
        Self(Kind::Window {
            span: time,
            last: None,
            slow: None,
            most: Limit::Number(failures),
            reason: TripReason::Rate,
        })
    }

    /// That share (above 0, at most 1) of the last `last` calls (1 to 10,000) failed, once there
    /// are `min_calls` (at least 1, at most `last`).
    pub fn rate_of_last(share: f64, min_calls: u32, last: u32) -> Self {
        Self(Kind::Window {
            span: Duration::MAX,
            last: Some(last),
            slow: None,
            most: Limit::Share { share, min_calls },
            reason: TripReason::RateOfLast,
        })
    }

    /// So many (at least 1, at most `last`) of the last `last` calls (1 to 10,000) failed.
    pub fn number_of_last(failures: u32, last: u32) -> Self {
        Self(Kind::Window {
            span: Duration::MAX,
            last: Some(last),
            slow: None,
            most: Limit::Number(failures),
            reason: TripReason::RateOfLast,
        })
    }

    /// That share of at least `min_calls` calls took longer than `over`, in that time; bounds as of
    /// [`rate`](Self::rate). A call of exactly `over` is not slow. A slow probe is a failed one.
    pub fn slow(over: Duration, share: f64, min_calls: u32, time: Duration) -> Self {
        Self(Kind::Window {
            span: time,
            last: None,
            slow: Some(over),
            most: Limit::Share { share, min_calls },
            reason: TripReason::Slow,
        })
    }

    /// Calls take longer than they used to while the target was healthy, or a small share of them
    /// hangs.
    ///
    /// What is normal is learnt from the first 200 calls and then on: 98 % of calls are done in
    /// the baseline, and one that takes a quarter longer than that is slow. It opens
    ///
    /// - when 8 of the last 20 calls of a minute were slow or failed: a target six times slower
    ///   than before is out within 30 calls;
    /// - when 15 of the last 300 calls of half an hour failed or took five times the baseline: one
    ///   that hangs in a tenth of its calls is out within 300.
    ///
    /// While 4 of the last 20 are slow or failed nothing is learnt: a baseline that goes on
    /// learning takes the brownout for the normal. It is kept while the breaker is open, and a
    /// probe that is slow by it is a failed one. A target that stays slower for good is therefore
    /// kept out until [`Breaker::reset`](crate::Breaker::reset) makes the breaker learn afresh.
    ///
    /// [`within`](Self::within) sets the minute, and the half hour with it.
    pub fn brownout() -> Self {
        Self(Kind::Brownout(Brownout {
            within: Duration::from_secs(60),
            quantile: 0.98,
            margin: 1.25,
            learn: 200,
        }))
    }

    /// Looks back on that time (at least 10 ms): for a rule over the last calls, none older.
    #[must_use]
    pub fn within(mut self, time: Duration) -> Self {
        match &mut self.0 {
            Kind::Run(_) => (),
            Kind::Window { span, .. } => *span = time,
            Kind::Brownout(brownout) => brownout.within = time,
        }
        self
    }

    fn check(&self) -> Result<(), InvalidConfig> {
        match &self.0 {
            Kind::Run(failures) => ensure(*failures >= 1, "failures", "at least 1"),
            Kind::Window {
                span, last, most, ..
            } => {
                ensure(*span >= SHORTEST, "time of a rule", "at least 10 ms")?;
                let known = last.unwrap_or(u32::MAX);
                if last.is_some() {
                    let fits = (1..=MOST_CALLS).contains(&known);
                    ensure(fits, "last calls of a rule", "from 1 to 10,000")?;
                }
                match *most {
                    Limit::Number(failures) => ensure(
                        (1..=known).contains(&failures),
                        "failures of a rule",
                        "at least 1, at most the last calls",
                    ),
                    Limit::Share { share, min_calls } => {
                        // A range, so that NaN is not in it.
                        let fits = (f64::MIN_POSITIVE..=1.0).contains(&share);
                        ensure(fits, "share of a rule", "above 0, at most 1")?;
                        ensure(
                            (1..=known).contains(&min_calls),
                            "min_calls of a rule",
                            "at least 1, at most the last calls",
                        )
                    }
                }
            }
            Kind::Brownout(brownout) => ensure(
                brownout.within >= SHORTEST,
                "time of a rule",
                "at least 10 ms",
            ),
        }
    }
}

/// The shortest time of a rule: its tenth is still a millisecond.
const SHORTEST: Duration = Duration::from_millis(10);
const MOST_CALLS: u32 = 10_000;

/// Adds the rules to the figures.
pub(super) fn settle(rules: &[Rule], into: &mut Rules) {
    into.failures = 0;
    for rule in rules {
        match &rule.0 {
            // Of two runs the shorter one trips first.
            Kind::Run(failures) if into.failures == 0 => into.failures = *failures,
            Kind::Run(failures) => into.failures = into.failures.min(*failures),
            Kind::Window {
                span,
                last,
                slow,
                most,
                reason,
            } => {
                let bad = slow.map_or(Bad::Failed, |over| Bad::Slow(nanos(over)));
                let most = most.settled();
                add(into, *span, *last, bad, most, *reason);
            }
            Kind::Brownout(brownout) => add_brownout(into, brownout),
        }
    }
}

fn add_brownout(into: &mut Rules, brownout: &Brownout) {
    let window = into.windows.len();
    let windows = [
        (brownout.within, SHORT, 1),
        (brownout.within.saturating_mul(LONGER), LONG, HANGS),
    ];
    for (span, (most, last), times) in windows {
        let most = Most::Number(u64::from(most));
        let bad = Bad::Brownout { times };
        add(into, span, Some(last), bad, most, TripReason::Brownout);
    }
    into.brownout = Some(BrownoutRule {
        window,
        suspect: SUSPECT,
        quantile: billionths(brownout.quantile),
        margin: thousandths(brownout.margin),
        learn: u64::from(brownout.learn),
    });
}

fn add(
    into: &mut Rules,
    span: Duration,
    last: Option<u32>,
    bad: Bad,
    most: Most,
    reason: TripReason,
) {
    // A tenth that ends beyond all times: then all calls are of one part.
    let span = nanos(span).max(EPOCHS);
    let known = into.spans.iter().position(|known| *known == span);
    let place = known.unwrap_or_else(|| {
        into.spans.push(span);
        into.spans.len() - 1
    });
    into.windows.push(WindowRule {
        span: place,
        last,
        bad,
        most,
        reason,
    });
}

impl Limit {
    fn settled(self) -> Most {
        match self {
            Self::Number(failures) => Most::Number(u64::from(failures)),
            Self::Share { share, min_calls } => Most::Share {
                billionths: billionths(share).max(1),
                min_calls: u64::from(min_calls),
            },
        }
    }
}

/// In bounds already, so that the cast neither cuts nor wraps.
fn billionths(share: f64) -> u32 {
    (share * f64::from(BILLION)).round() as u32
}

pub(super) fn check(rules: &[Rule]) -> Result<(), InvalidConfig> {
    ensure(!rules.is_empty(), "rules", "at least one")?;
    let brownouts = rules.iter().filter(|r| matches!(r.0, Kind::Brownout(_)));
    ensure(brownouts.count() <= 1, "rules", "one brownout rule at most")?;
    rules.iter().try_for_each(Rule::check)
}

/// The defaults: half of at least 20 calls of 30 s, or five in a row. A count catches a dead target
/// at once, a share a half-dead one; either alone misses the other.
pub(super) fn defaults() -> Vec<Rule> {
    vec![Rule::run(5), Rule::rate(0.5, 20, Duration::from_secs(30))]
}

/// Replaces the runs of failures by one.
pub(super) fn set_run(rules: &mut Vec<Rule>, failures: u32) {
    rules.retain(|rule| !matches!(rule.0, Kind::Run(_)));
    rules.insert(0, Rule::run(failures));
}
