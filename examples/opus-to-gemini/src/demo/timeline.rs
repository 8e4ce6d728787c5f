//! The changes of breakers over time.

use std::{
    mem,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::time::Instant;
use tower_circuit_breaker::{Breaker, State, TripReason};
use tower_spillway_core::clock::{self, millis};

use super::Change;

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

/// Notes what a breaker does, until it is gone.
pub(super) async fn listen(breaker: Breaker, notes: Notes) {
    // The handle would keep it.
    let mut events = breaker.events(64);
    drop(breaker);
    while let Some(event) = events.next().await {
        let target = event.target.as_ref().map_or("", |target| target.as_str());
        let reason = event.reason.filter(|_| event.to == State::Open);
        notes.note(
            target,
            event.from.as_str(),
            event.to.as_str(),
            reason.map(TripReason::as_str),
        );
    }
}
