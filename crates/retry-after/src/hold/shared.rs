//! The holds of all keys, and their events.

use std::{any::Any, fmt, hash::Hash, sync::Arc, time::Duration};

use tokio::time::Instant;
use tower_spillway_core::{
    Chance, InvalidConfig, TargetName, clock,
    hint::{self, Jitter},
    keyed::States,
};

use super::{
    cell::{Cell, Change, Hold, Look, Micros},
    config::HoldConfig,
    key::HoldKey,
    sync::{AtomicUsize, Ordering},
};
use crate::metrics;

/// Who must wait, and until when: a handle to look at it, to hold and to release by hand, and to
/// share between layers.
///
/// # Clone
///
/// Clones share the holds.
pub struct SharedHold<K = HoldKey>(Arc<Inner<K>>);

struct Inner<K> {
    config: HoldConfig,
    /// What the cells count from.
    origin: Instant,
    /// How many cells are not free, so that while none is nobody looks one up.
    held: AtomicUsize,
    slots: States<K, Slot>,
}

/// The hold of one key.
#[derive(Clone, Debug)]
pub(crate) struct Slot(Arc<(Cell, Option<TargetName>)>);

impl Slot {
    fn new<K: 'static>(key: &K) -> Self {
        // Only a target's name goes into events: a key of the user's own may be a secret.
        let target = (key as &dyn Any)
            .downcast_ref::<HoldKey>()
            .and_then(HoldKey::target);
        Self(Arc::new((Cell::new(), target.cloned())))
    }

    pub(crate) fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    fn cell(&self) -> &Cell {
        &self.0.0
    }

    pub(crate) fn target(&self) -> Option<&str> {
        self.0.1.as_ref().map(TargetName::as_str)
    }
}

impl<K> SharedHold<K> {
    /// Holds for the keys of one or more layers.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the setting of [`HoldConfig`] that is out of bounds.
    pub fn new(config: HoldConfig) -> Result<Self, InvalidConfig> {
        let config = config.check()?;
        Ok(Self(Arc::new(Inner {
            config,
            origin: clock::now(),
            held: AtomicUsize::new(0),
            slots: States::new(config.most_keys),
        })))
    }

    pub(crate) fn config(&self) -> &HoldConfig {
        &self.0.config
    }

    pub(crate) fn anybody_held(&self) -> bool {
        self.0.held.load(Ordering::Relaxed) != 0
    }

    /// What is left of a hold.
    pub(crate) fn look(&self, slot: &Slot) -> Option<Hold> {
        match slot.cell().look(|| self.micros(clock::now())) {
            Look::Held(hold) => Some(hold),
            Look::Free => None,
            Look::Over => {
                self.0.held.fetch_sub(1, Ordering::Relaxed);
                metrics::hold(slot.target(), "over");
                tracing::debug!(spillway.target = slot.target(), "hold is over");
                None
            }
        }
    }

    /// Holds from now on, unless it is held for longer; at most as long as is allowed.
    pub(crate) fn extend(&self, slot: &Slot, asked: Duration) {
        let wait = asked.min(self.0.config.max_hold);
        if wait.is_zero() {
            return;
        }
        // The most that jitter would add to this wait: who is held is spread over that too, also
        // who comes when little of the wait is left.
        let most = hint::wait(wait, &Jitter::Additive, &Chance::fixed(u64::MAX));
        let spread = clock::millis(most.saturating_sub(wait));
        let change = slot
            .cell()
            .hold(self.micros(clock::now()), micros_up(wait), spread);
        match change {
            Change::Began | Change::Renewed => {
                if change == Change::Began {
                    self.0.held.fetch_add(1, Ordering::Relaxed);
                }
                metrics::hold(slot.target(), "began");
                tracing::warn!(
                    spillway.target = slot.target(),
                    spillway.asked_ms = clock::millis(asked),
                    spillway.hold_ms = clock::millis(wait),
                    "everybody is held"
                );
            }
            Change::Extended => {
                metrics::hold(slot.target(), "extended");
                tracing::debug!(
                    spillway.target = slot.target(),
                    spillway.asked_ms = clock::millis(asked),
                    spillway.hold_ms = clock::millis(wait),
                    "hold extended"
                );
            }
            Change::Within => {}
        }
    }

    fn micros(&self, at: Instant) -> Micros {
        // With paused clocks it may be younger than the runtime's time: then all is at its start.
        let since = at.saturating_duration_since(self.0.origin);
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    }
}

impl<K: Eq + Hash + Clone + 'static> SharedHold<K> {
    /// Holds a key by hand, as an answer of the server would.
    pub fn hold(&self, key: impl Into<K>, wait: Duration) {
        self.extend(&self.slot(&key.into()), wait);
    }

    /// Lets the calls of a key pass from now on; `false` if they were not held. Calls that wait
    /// already come when their wait is over. A key that shares its hold with others releases them
    /// too.
    pub fn release(&self, key: impl Into<K>) -> bool {
        let Some(slot) = self.find(&key.into()) else {
            return false;
        };
        let released = slot.cell().release();
        if released {
            self.0.held.fetch_sub(1, Ordering::Relaxed);
            metrics::hold(slot.target(), "released");
            tracing::info!(spillway.target = slot.target(), "hold released");
        }
        released
    }

    /// How long the calls of a key are still held; `None` if they are not. Jitter comes on top.
    pub fn retry_in(&self, key: impl Into<K>) -> Option<Duration> {
        if !self.anybody_held() {
            return None;
        }
        let slot = self.find(&key.into())?;
        self.look(&slot)
            .map(|hold| Duration::from_micros(hold.left))
    }

    pub(crate) fn slot(&self, key: &K) -> Slot {
        self.0.slots.get_or_make(
            key,
            || Slot::new(key),
            |slot| Arc::strong_count(&slot.0) == 1 && self.look(slot).is_none(),
        )
    }

    pub(crate) fn find(&self, key: &K) -> Option<Slot> {
        self.0.slots.get(key)
    }
}

/// Rounded up: a hold must not end before what was asked.
fn micros_up(wait: Duration) -> Micros {
    u64::try_from(wait.as_nanos().div_ceil(1000)).unwrap_or(u64::MAX)
}

impl<K> Clone for SharedHold<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K> fmt::Debug for SharedHold<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedHold")
            .field("config", &self.0.config)
            .field("keys", &self.0.slots.len())
            .finish_non_exhaustive()
    }
}
