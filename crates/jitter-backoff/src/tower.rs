//! These schedules as backoffs of `tower`'s retry. Feature `tower`.
//!
//! ```
//! use std::time::Duration;
//! use tokio::time::Instant;
//! use tower::retry::backoff::{Backoff, MakeBackoff};
//! use tower_jitter_backoff::{Exponential, Jitter, JitterBackoff};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), tower_spillway_core::InvalidConfig> {
//! let schedule = Exponential::new(Duration::from_millis(100), Duration::from_secs(20))?;
//! let mut maker = JitterBackoff::new(schedule).jitter(Jitter::None);
//! let mut backoff = maker.make_backoff();
//! let started = Instant::now();
//! backoff.next_backoff().await;
//! backoff.next_backoff().await;
//! assert_eq!(started.elapsed(), Duration::from_millis(100 + 200));
//! # Ok(())
//! # }
//! ```

use std::time::Duration;

use tokio::time::{Sleep, sleep};
use tower::retry::backoff::{Backoff, MakeBackoff};

use crate::JitterBackoff;

/// The backoff of one call under `tower`'s retry, made by [`MakeBackoff`].
///
/// # Clone
///
/// A clone starts again at the base, as `tower` asks of a [`Backoff`].
#[derive(Debug)]
pub struct TowerBackoff {
    policy: JitterBackoff,
    step: u32,
    last_wait: Option<Duration>,
}

impl TowerBackoff {
    fn new(policy: JitterBackoff) -> Self {
        Self {
            policy,
            step: 0,
            last_wait: None,
        }
    }
}

impl Clone for TowerBackoff {
    fn clone(&self) -> Self {
        Self::new(self.policy.clone())
    }
}

impl MakeBackoff for JitterBackoff {
    type Backoff = TowerBackoff;

    fn make_backoff(&mut self) -> Self::Backoff {
        TowerBackoff::new(self.clone())
    }
}

impl Backoff for TowerBackoff {
    type Future = Sleep;

    fn next_backoff(&mut self) -> Self::Future {
        let wait = self.policy.delay_after(self.step, self.last_wait);
        self.step = self.step.saturating_add(1);
        self.last_wait = Some(wait);
        sleep(wait)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;
    use tower_spillway_core::Chance;

    use super::*;
    use crate::{Exponential, Jitter};

    const SECOND: Duration = Duration::from_secs(1);

    async fn wait(backoff: &mut TowerBackoff) -> Duration {
        let started = Instant::now();
        backoff.next_backoff().await;
        started.elapsed()
    }

    fn policy(jitter: Jitter, draw: u64) -> JitterBackoff {
        JitterBackoff::new(Exponential::new(SECOND, 20 * SECOND).unwrap())
            .jitter(jitter)
            .chance(Chance::fixed(draw))
    }

    #[tokio::test(start_paused = true)]
    async fn each_session_has_its_steps_and_a_clone_starts_again() {
        let mut backoff = policy(Jitter::None, 0).make_backoff();
        for expected in [1, 2, 4, 8, 16, 20, 20] {
            assert_eq!(wait(&mut backoff).await, expected * SECOND);
        }
        assert_eq!(wait(&mut backoff.clone()).await, SECOND);
        assert_eq!(wait(&mut backoff).await, 20 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn decorrelated_goes_by_the_last_wait() {
        let mut backoff = policy(Jitter::Decorrelated, u64::MAX).make_backoff();
        for expected in [3, 9, 20, 20] {
            assert_eq!(wait(&mut backoff).await, expected * SECOND);
        }
    }

    /// Tower's own loses jitter at whole seconds.
    #[tokio::test(start_paused = true)]
    async fn full_jitter_is_full_at_whole_seconds() {
        let mut maker = JitterBackoff::new(Exponential::new(SECOND, SECOND).unwrap());
        let mut waits = std::collections::BTreeSet::new();
        for _ in 0..200 {
            waits.insert(wait(&mut maker.make_backoff()).await.as_millis());
        }
        assert!(waits.len() > 50, "{}", waits.len());
    }
}
