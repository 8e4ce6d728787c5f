//! The changes of breakers over time.

use std::{convert::Infallible, time::Duration};

use tokio::time::{Instant, MissedTickBehavior, interval};
use tower_circuit_breaker::{Breaker, State, TripReason};
use tower_spillway_core::clock;

/// A change of a breaker.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// When, from the start of the incident; as in the incident, not as played.
    pub at: Duration,
    /// Whose breaker.
    pub target: String,
    /// What it was in.
    pub from: State,
    /// What it is in.
    pub to: State,
    /// What opened it.
    pub reason: Option<TripReason>,
}

/// Looks at breakers again and again, and notes what changed. Never ends.
pub(super) async fn watch(
    breakers: &[Breaker],
    start: Instant,
    speed: u32,
    mut note: impl FnMut(Change),
) -> Infallible {
    let mut seen: Vec<State> = breakers.iter().map(Breaker::state).collect();
    let mut ticks = interval(Duration::from_millis(2));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        for (breaker, seen) in breakers.iter().zip(&mut seen) {
            let now = breaker.snapshot();
            if now.state == *seen {
                continue;
            }
            let at = clock::now().saturating_duration_since(start);
            note(Change {
                at: at.saturating_mul(speed),
                target: breaker
                    .target()
                    .map(ToString::to_string)
                    .unwrap_or_default(),
                from: std::mem::replace(seen, now.state),
                to: now.state,
                reason: now.reason.filter(|_| now.state == State::Open),
            });
        }
    }
}
