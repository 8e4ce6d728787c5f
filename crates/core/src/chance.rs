//! The source of randomness behind jitter: the thread's own, seeded, or fixed.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rand::{Rng, SeedableRng, rngs::StdRng};

/// A source of randomness that can be seeded, so that a whole outage plays the same twice.
///
/// # Clone
///
/// Clones of a seeded source draw from one stream.
#[derive(Clone, Default)]
pub struct Chance(Source);

#[derive(Clone, Default)]
enum Source {
    #[default]
    Thread,
    Seeded(Arc<Mutex<StdRng>>),
    Fixed(u64),
}

impl Chance {
    /// The thread's own generator: the default.
    pub fn thread() -> Self {
        Self(Source::Thread)
    }

    /// A stream that is the same for the same seed.
    pub fn seeded(seed: u64) -> Self {
        Self(Source::Seeded(Arc::new(Mutex::new(StdRng::seed_from_u64(
            seed,
        )))))
    }

    /// Always the same draw: 0 gives the lower end of every range, `u64::MAX` the upper.
    pub fn fixed(draw: u64) -> Self {
        Self(Source::Fixed(draw))
    }

    fn draw(&self) -> u64 {
        match &self.0 {
            Source::Thread => rand::rng().next_u64(),
            Source::Seeded(rng) => rng
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .next_u64(),
            Source::Fixed(draw) => *draw,
        }
    }

    /// A whole number from `0..=max`, each equally likely.
    pub fn up_to(&self, max: u64) -> u64 {
        // 64 random bits as a binary fraction of max + 1: no division, no empty range, and
        // an unevenness below 2^-64 of the range.
        let scaled = (u128::from(self.draw()) * (u128::from(max) + 1)) >> 64;
        u64::try_from(scaled).unwrap_or(max)
    }

    /// A duration from `0..=max` in whole nanoseconds, each equally likely. Above 584 years the
    /// range is cut there.
    pub fn duration_up_to(&self, max: Duration) -> Duration {
        Duration::from_nanos(self.up_to(nanos(max)))
    }
}

/// Whole nanoseconds, at most `u64::MAX` (584 years).
fn nanos(d: Duration) -> u64 {
    u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)
}

impl fmt::Debug for Chance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Source::Thread => "Chance(thread)",
            Source::Seeded(_) => "Chance(seeded)",
            Source::Fixed(_) => "Chance(fixed)",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_the_range_are_reached_and_never_passed() {
        for max in [0, 1, 2, 999, u64::MAX] {
            assert_eq!(Chance::fixed(0).up_to(max), 0);
            assert_eq!(Chance::fixed(u64::MAX).up_to(max), max);
        }
    }

    #[test]
    fn a_seed_gives_one_stream_shared_by_clones() {
        let (a, b) = (Chance::seeded(7), Chance::seeded(7));
        let a2 = a.clone();
        let left = [a.up_to(1 << 40), a2.up_to(1 << 40)];
        let right = [b.up_to(1 << 40), b.up_to(1 << 40)];
        assert_eq!(left, right);
        assert_ne!(left[0], left[1]);
    }

    #[test]
    fn draws_spread_evenly_over_a_small_range() {
        let chance = Chance::seeded(1);
        let mut seen = [0u32; 4];
        for _ in 0..4000 {
            seen[chance.up_to(3) as usize] += 1;
        }
        assert!(seen.iter().all(|n| (850..1150).contains(n)), "{seen:?}");
    }
}
