//! The changes of breakers over time.

use std::{
    convert::Infallible,
    mem,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::{Instant, MissedTickBehavior, interval};
use tower_circuit_breaker::{self as breaker, State};
use tower_spillway_core::clock;

use super::{Change, settings::millis};

/// Where changes are noted, with the time of the incident.
#[derive(Clone)]
pub(super) struct Notes {
    start: Instant,
    speed: u32,
    all: Arc<Mutex<Vec<Change>>>,
}

impl Notes {
    pub(super) fn new(start: Instant, speed: u32) -> Self {
        Self {
            start,
            speed,
            all: Arc::default(),
        }
    }

    pub(super) fn note(&self, target: &str, from: &str, to: &str, reason: Option<&str>) {
        let at = clock::now().saturating_duration_since(self.start);
        let change = Change {
            at: millis(at.saturating_mul(self.speed)),
            target: target.into(),
            from: from.into(),
            to: to.into(),
            reason: reason.map(Into::into),
        };
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(change);
    }

    pub(super) fn take(&self) -> Vec<Change> {
        mem::take(&mut *self.all.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Looks at breakers again and again, and notes what changed. Never ends.
pub(super) async fn watch(breakers: &[breaker::Breaker], notes: &Notes) -> Infallible {
    let mut seen: Vec<State> = breakers.iter().map(breaker::Breaker::state).collect();
    let mut ticks = interval(Duration::from_millis(2));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        for (breaker, seen) in breakers.iter().zip(&mut seen) {
            let now = breaker.snapshot();
            if now.state == *seen {
                continue;
            }
            let target = breaker.target().map_or("", |target| target.as_str());
            let from = mem::replace(seen, now.state);
            let reason = now.reason.filter(|_| now.state == State::Open);
            notes.note(
                target,
                from.as_str(),
                now.state.as_str(),
                reason.map(breaker::TripReason::as_str),
            );
        }
    }
}
