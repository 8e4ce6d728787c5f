//! How a delay is drawn below its ceiling.

use std::time::Duration;

use tower_spillway_core::{Chance, hint};

/// How a delay is drawn below its ceiling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Jitter {
    /// From 1 ms to the ceiling, each nanosecond equally likely: `(1 - rand) * ceiling`, so it is
    /// never nothing. The choice of the AWS SDKs and of Envoy, since it spreads callers most.
    #[default]
    Full,
    /// The ceiling itself. A hint is then waited out exactly, too.
    None,
}

/// A wait of nothing would be a loop without a pause.
const LEAST: Duration = Duration::from_millis(1);

impl Jitter {
    /// A delay from 1 ms to the ceiling; 1 ms if the ceiling is lower.
    pub(crate) fn draw(self, ceiling: Duration, chance: &Chance) -> Duration {
        let drawn = match self {
            Self::None => ceiling,
            Self::Full => {
                // Taken off from the top: `rand` includes 0 and leaves out 1.
                let most_off = ceiling.saturating_sub(Duration::from_nanos(1));
                ceiling.saturating_sub(chance.duration_up_to(most_off))
            }
        };
        drawn.max(LEAST)
    }

    /// How a hint is waited out under this jitter.
    pub(crate) fn for_hints(self) -> hint::Jitter {
        match self {
            Self::None => hint::Jitter::None,
            Self::Full => hint::Jitter::Additive,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const MS: Duration = Duration::from_millis(1);

    /// Row 15: jitter zero or lost at whole seconds.
    #[test]
    fn row_15_2000_draws_at_one_second_differ_and_none_is_zero() {
        let chance = Chance::seeded(15);
        let ceiling = Duration::from_secs(1);
        let draws: Vec<_> = (0..2000)
            .map(|_| Jitter::Full.draw(ceiling, &chance))
            .collect();
        assert!(draws.iter().all(|d| (MS..=ceiling).contains(d)));
        let distinct: BTreeSet<_> = draws.iter().map(Duration::as_millis).collect();
        assert!(distinct.len() > 100, "{}", distinct.len());
        // Both ends are reached, so the whole range is used.
        assert!(draws.iter().any(|d| *d < 10 * MS));
        assert!(draws.iter().any(|d| *d > 990 * MS));
    }

    /// Row 17: an empty random range panics.
    #[test]
    fn row_17_no_range_is_empty() {
        for ceiling in [Duration::ZERO, Duration::from_nanos(1), MS, Duration::MAX] {
            for draw in [0, 1, u64::MAX] {
                let drawn = Jitter::Full.draw(ceiling, &Chance::fixed(draw));
                assert!(drawn >= MS && drawn <= ceiling.max(MS), "{ceiling:?}");
            }
        }
    }

    #[test]
    fn the_ends_of_the_range() {
        let ceiling = Duration::from_secs(1);
        let full = |draw| Jitter::Full.draw(ceiling, &Chance::fixed(draw));
        assert_eq!((full(0), full(u64::MAX)), (ceiling, MS));
        assert_eq!(Jitter::None.draw(ceiling, &Chance::thread()), ceiling);
    }

    proptest! {
        #[test]
        fn a_draw_is_at_least_1_ms_and_never_above_the_ceiling(
            ceiling in 1_000_000u64..=u64::MAX,
            draw in any::<u64>(),
        ) {
            let ceiling = Duration::from_nanos(ceiling);
            let drawn = Jitter::Full.draw(ceiling, &Chance::fixed(draw));
            prop_assert!((MS..=ceiling).contains(&drawn));
        }
    }
}
