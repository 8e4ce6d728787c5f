//! How a delay is drawn below its ceiling.

use std::time::Duration;

use tower_spillway_core::{Chance, InvalidConfig, hint};

use crate::Delay;

/// How a delay is drawn from its [`Delay`]: whole nanoseconds, each equally likely, at least 1 ms
/// and never above the cap. `c` is the ceiling of the step, before jitter.
///
/// | | from | to | source |
/// |---|---|---|---|
/// | [`Full`](Self::Full) | 0 | c | AWS SDKs, Envoy |
/// | [`None`](Self::None) | c | c | |
/// | [`Equal`](Self::Equal) | c / 2 | c | AWS post of 2015 |
/// | [`Decorrelated`](Self::Decorrelated) | the base | 3 × the last wait | AWS post of 2015 |
/// | [`PlusMinus`](Self::PlusMinus) | c - spread | c + spread | Polly, resilience4j, gRPC A6 |
/// | [`Additive`](Self::Additive) | c | c + spread | tower, linkerd |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Jitter {
    /// From 1 ms to the ceiling: `(1 - rand) * ceiling`, so it is never nothing. The choice of the
    /// AWS SDKs and of Envoy, since it spreads callers most.
    #[default]
    Full,
    /// The ceiling itself. A hint is then waited out exactly, too.
    None,
    /// From half of the ceiling to the ceiling.
    Equal,
    /// From the schedule's base to three times the last wait of the call, cut at the cap. The step
    /// does not count, and the delay may go down again. The last wait is the base at first, and
    /// again after a wait that the server asked for.
    Decorrelated,
    /// Around the ceiling by the spread on each side, cut at the cap.
    PlusMinus(Spread),
    /// The ceiling and from 1 ns to the spread more, cut at the cap.
    Additive(Spread),
}

/// How far jitter goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread(Reach);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    Percent(u32),
    Amount(Duration),
}

impl Spread {
    /// So many hundredths of the ceiling.
    ///
    /// # Errors
    ///
    /// `percent` from 1 to 100. For no spread there is [`Jitter::None`].
    pub fn percent(percent: u32) -> Result<Self, InvalidConfig> {
        match percent {
            1..=100 => Ok(Self(Reach::Percent(percent))),
            _ => Err(InvalidConfig::new("percent", "from 1 to 100")),
        }
    }

    /// The same at every step.
    ///
    /// # Errors
    ///
    /// `amount` above zero. For no spread there is [`Jitter::None`].
    pub fn amount(amount: Duration) -> Result<Self, InvalidConfig> {
        match amount.is_zero() {
            false => Ok(Self(Reach::Amount(amount))),
            true => Err(InvalidConfig::new("amount", "above zero")),
        }
    }

    fn of(self, ceiling: Duration) -> Duration {
        match self.0 {
            Reach::Amount(amount) => amount,
            // Of the whole duration at once: seconds and nanoseconds apart would cut the part of
            // the seconds to whole ones.
            Reach::Percent(percent) => {
                crate::schedule::duration(ceiling.as_nanos() * u128::from(percent) / 100)
            }
        }
    }
}

/// A wait of nothing would be a loop without a pause.
const LEAST: Duration = Duration::from_millis(1);

impl Jitter {
    /// A delay from 1 ms to the cap; 1 ms if the cap is lower.
    pub(crate) fn draw(
        self,
        delay: &Delay,
        last_wait: Option<Duration>,
        chance: &Chance,
    ) -> Duration {
        let ceiling = delay.ceiling.min(delay.cap);
        let drawn = match self {
            Self::None => ceiling,
            Self::Full => {
                // Taken off from the top: `rand` includes 0 and leaves out 1.
                let most_off = ceiling.saturating_sub(Duration::from_nanos(1));
                ceiling.saturating_sub(chance.duration_up_to(most_off))
            }
            Self::Equal => between(ceiling / 2, ceiling, chance),
            Self::Decorrelated => {
                let last = last_wait.unwrap_or(delay.base);
                between(delay.base, last.saturating_mul(3), chance)
            }
            Self::PlusMinus(spread) => {
                let spread = spread.of(ceiling);
                let (from, to) = (
                    ceiling.saturating_sub(spread),
                    ceiling.saturating_add(spread),
                );
                between(from, to, chance)
            }
            Self::Additive(spread) => {
                let spread = spread.of(ceiling);
                // Never nothing, as in tower: a jitter of zero would be lost jitter.
                let least = spread.min(Duration::from_nanos(1));
                let (from, to) = (
                    ceiling.saturating_add(least),
                    ceiling.saturating_add(spread),
                );
                between(from, to, chance)
            }
        };
        drawn.min(delay.cap).max(LEAST)
    }

    /// How a hint is waited out under this jitter.
    pub(crate) fn for_hints(self) -> hint::Jitter {
        match self {
            Self::None => hint::Jitter::None,
            _ => hint::Jitter::Additive,
        }
    }
}

/// Both ends included; `from` where there is nothing between.
fn between(from: Duration, to: Duration, chance: &Chance) -> Duration {
    from.saturating_add(chance.duration_up_to(to.saturating_sub(from)))
}

#[cfg(test)]
mod tests;
