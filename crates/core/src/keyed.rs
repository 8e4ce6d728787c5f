//! State kept per key, for layers that keep one for each target: bounded, and found without a
//! lock by the services that always go to the same one.
//!
//! ```
//! use std::sync::{Arc, atomic::{AtomicU32, Ordering}};
//! use tower_spillway_core::keyed::{Home, States};
//!
//! let states = States::new(2);
//! let count = |key: &str| states.get_or_make(&key.to_owned(), Arc::<AtomicU32>::default, |_| false);
//! count("opus").fetch_add(1, Ordering::Relaxed);
//! count("gemini");
//! // Full, and nothing is idle: these two share one state.
//! assert!(Arc::ptr_eq(&count("mistral"), &count("groq")));
//!
//! let home = Home::new();
//! for _ in 0..3 {
//!     // Looked up once.
//!     home.get(&"opus".to_owned(), || count("opus")).fetch_add(1, Ordering::Relaxed);
//! }
//! assert_eq!(count("opus").load(Ordering::Relaxed), 4);
//! ```

use std::{
    collections::HashMap,
    fmt,
    hash::Hash,
    sync::{
        Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

/// States by key, at most so many. When full, those that are idle make room; where none is, the
/// keys that come share one.
pub struct States<K, T> {
    most: usize,
    overflow: OnceLock<T>,
    named: Mutex<HashMap<K, T>>,
}

impl<K, T> States<K, T> {
    /// States for at most so many keys.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            overflow: OnceLock::new(),
            named: Mutex::new(HashMap::new()),
        }
    }

    /// The same, where the state that the others share is made now, and may be another than those
    /// of keys.
    pub fn with_overflow(most: usize, overflow: T) -> Self {
        Self {
            overflow: OnceLock::from(overflow),
            ..Self::new(most)
        }
    }

    /// How many keys have a state of their own.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether no key has one.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, T>> {
        self.named.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash + Clone, T: Clone> States<K, T> {
    /// The state of a key, made where there is none. `idle` says of a state that nothing would be
    /// lost with it; it and `make` run under a lock and must not come back here.
    pub fn get_or_make(
        &self,
        key: &K,
        make: impl FnOnce() -> T,
        mut idle: impl FnMut(&T) -> bool,
    ) -> T {
        let mut named = self.lock();
        if let Some(state) = named.get(key) {
            return state.clone();
        }
        if named.len() >= self.most {
            named.retain(|_, state| !idle(state));
        }
        if named.len() >= self.most {
            return self.overflow.get_or_init(make).clone();
        }
        let state = make();
        named.insert(key.clone(), state.clone());
        state
    }

    /// The state that calls of a key meet now: its own, else the shared one where there is no room
    /// for its own.
    pub fn get(&self, key: &K) -> Option<T> {
        let named = self.lock();
        named.get(key).cloned().or_else(|| {
            let full = named.len() >= self.most;
            self.overflow.get().filter(|_| full).cloned()
        })
    }
}

impl<K, T> fmt::Debug for States<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("States")
            .field("keys", &self.len())
            .field("most", &self.most)
            .finish_non_exhaustive()
    }
}

/// What the clones of one service know: the key of their first call and its state, so that they
/// look it up once.
#[derive(Debug)]
pub struct Home<K, T> {
    first: OnceLock<(K, T)>,
    /// Calls had more than one key: which state the next one meets is not known before it is made.
    mixed: AtomicBool,
}

impl<K, T> Home<K, T> {
    /// Knows nothing yet.
    pub fn new() -> Self {
        Self {
            first: OnceLock::new(),
            mixed: AtomicBool::new(false),
        }
    }

    /// The state that the next call will meet, where that is known.
    pub fn expected(&self) -> Option<&T> {
        if self.mixed.load(Ordering::Relaxed) {
            return None;
        }
        self.first.get().map(|(_, state)| state)
    }
}

impl<K, T: Clone> Home<K, T> {
    /// The state of a key; `find` is asked unless it is the key of the first call.
    pub fn get(&self, key: &K, find: impl FnOnce() -> T) -> T
    where
        K: Eq + Clone,
    {
        self.get_by(|first| first == key, || key.clone(), find)
    }

    /// The same of a key that is made only where it is kept: `is` says whether one is the same.
    pub fn get_by(
        &self,
        is: impl Fn(&K) -> bool,
        key: impl FnOnce() -> K,
        find: impl FnOnce() -> T,
    ) -> T {
        if let Some((first, state)) = self.first.get() {
            if is(first) {
                return state.clone();
            }
            self.mixed.store(true, Ordering::Relaxed);
            return find();
        }
        let state = find();
        // If another clone was faster, its key is the one that is kept.
        if self.first.set((key(), state.clone())).is_err() {
            let same = self.first.get().is_some_and(|(first, _)| is(first));
            self.mixed.fetch_or(!same, Ordering::Relaxed);
        }
        state
    }
}

impl<K, T> Default for Home<K, T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn idle_states_make_room_and_others_stay() {
        let states = States::new(2);
        let state = |key: u8| states.get_or_make(&key, || Arc::new(key), |s| **s == 1);
        state(1);
        state(2);
        assert_eq!(*state(3), 3, "the idle one made room");
        assert!(states.get(&1).is_none());
        let shared = state(4);
        assert!(Arc::ptr_eq(&shared, &state(5)), "no room: one for both");
        assert!(Arc::ptr_eq(&shared, &states.get(&6).unwrap()));
        assert_eq!((*state(2), states.len()), (2, 2));
    }

    #[test]
    fn the_shared_state_may_be_one_of_its_own() {
        let states = States::with_overflow(1, "shared");
        let state = |key: u8| states.get_or_make(&key, || "own", |_| false);
        assert_eq!((state(1), state(2), state(3)), ("own", "shared", "shared"));
    }

    #[test]
    fn a_home_expects_what_its_first_call_met_until_another_key_comes() {
        let home = Home::new();
        assert_eq!(home.expected(), None);
        assert_eq!(home.get(&"a", || 1), 1);
        assert_eq!(home.get(&"a", || 9), 1);
        assert_eq!(home.expected(), Some(&1));
        assert_eq!(home.get(&"b", || 2), 2);
        assert_eq!(home.expected(), None);
    }
}
