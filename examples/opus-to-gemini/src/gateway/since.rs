//! Since when each breaker is in its state.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tower_circuit_breaker::{Breaker, State};
use tower_spillway_core::clock::millis;

use super::wall::now_ms;

/// The last change of each breaker, by the name of its target.
#[derive(Debug, Default)]
pub(super) struct Since(Mutex<BTreeMap<String, Changed>>);

#[derive(Clone, Copy, Debug)]
struct Changed {
    to: State,
    at_ms: u64,
    /// When an open one begins to be asked again.
    until_ms: Option<u64>,
}

impl Since {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Changed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes down the changes of a breaker for as long as there is one.
    pub(super) async fn watch(&self, name: &str, breaker: Breaker) {
        let mut events = breaker.events(16);
        let state = breaker.state();
        if self.at(name, state).is_none() {
            self.put(name, state, None);
        }
        // A handle kept here would keep the breaker, and the watch, alive.
        drop(breaker);
        while let Some(event) = events.next().await {
            let until = event
                .open_for
                .map(|open| now_ms().saturating_add(millis(open)));
            self.put(name, event.to, until);
        }
    }

    fn put(&self, name: &str, to: State, until_ms: Option<u64>) {
        let at_ms = now_ms();
        self.lock().insert(
            name.to_owned(),
            Changed {
                to,
                at_ms,
                until_ms,
            },
        );
    }

    /// Since when it is in this state, in milliseconds of Unix time; `None` if nobody saw it.
    pub(super) fn at(&self, name: &str, state: State) -> Option<u64> {
        let changed = self.lock().get(name).copied()?;
        match (changed.to, state) {
            (seen, now) if seen == now => Some(changed.at_ms),
            // An open one becomes half-open by time alone.
            (State::Open, State::HalfOpen) => changed.until_ms,
            _ => None,
        }
    }
}
