//! What the clones of one service share.

use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use tower_spillway_core::TargetName;

use crate::{
    breaker::Breaker,
    permit::Reach,
    registry::States,
    sync::{LANES, lane},
};

/// The adapter, the key, and the state of the target of the first call, so that it is looked up
/// once.
pub(crate) struct Home<A, K> {
    states: States,
    adapter: Arc<A>,
    key: Arc<K>,
    first: OnceLock<First<A>>,
    /// Calls went to more than one target: which state the next call meets is not known before it
    /// is made.
    mixed: AtomicBool,
}

struct First<A> {
    name: Option<TargetName>,
    breaker: Breaker,
    /// One for each lane: a call keeps what it needs by one count of references, and counts that
    /// all threads change are what a shared breaker would be slow by.
    slots: [Arc<Slot<A>>; LANES],
}

/// Two cache lines, since processors fetch them in pairs.
#[repr(align(128))]
pub(crate) struct Slot<A> {
    breaker: Breaker,
    adapter: Arc<A>,
}

/// What one call keeps of its home.
pub(crate) enum Share<A> {
    First(Arc<Slot<A>>),
    Other(Breaker, Arc<A>),
}

impl<A> Share<A> {
    pub(crate) fn adapter(&self) -> &A {
        match self {
            Self::First(slot) => &slot.adapter,
            Self::Other(_, adapter) => adapter,
        }
    }
}

impl<A> Reach for Share<A> {
    fn breaker(&self) -> &Breaker {
        match self {
            Self::First(slot) => &slot.breaker,
            Self::Other(breaker, _) => breaker,
        }
    }
}

impl<A, K> Home<A, K> {
    pub(crate) fn new(states: States, adapter: Arc<A>, key: Arc<K>) -> Self {
        Self {
            states,
            adapter,
            key,
            first: OnceLock::new(),
            mixed: AtomicBool::new(false),
        }
    }

    pub(crate) fn adapter(&self) -> &A {
        &self.adapter
    }

    pub(crate) fn key(&self) -> &K {
        &self.key
    }

    /// The state of a target.
    pub(crate) fn share(&self, name: Option<&TargetName>) -> Share<A> {
        let first = self.first.get_or_init(|| self.first_call(name));
        if self.states.is_shared() || first.name.as_ref() == name {
            let slot = first.slots.get(lane());
            return slot.map_or_else(
                || Share::Other(first.breaker.clone(), Arc::clone(&self.adapter)),
                |slot| Share::First(Arc::clone(slot)),
            );
        }
        self.mixed.store(true, Ordering::Relaxed);
        Share::Other(self.states.breaker(name), Arc::clone(&self.adapter))
    }

    fn first_call(&self, name: Option<&TargetName>) -> First<A> {
        let breaker = self.states.breaker(name);
        let slots = std::array::from_fn(|_| {
            Arc::new(Slot {
                breaker: breaker.clone(),
                adapter: Arc::clone(&self.adapter),
            })
        });
        First {
            name: name.cloned(),
            breaker,
            slots,
        }
    }

    /// The state that the next call will meet, where that is known.
    pub(crate) fn expected(&self) -> Option<&Breaker> {
        if let States::Shared(breaker) = &self.states {
            return Some(breaker);
        }
        if self.mixed.load(Ordering::Relaxed) {
            return None;
        }
        self.first.get().map(|first| &first.breaker)
    }
}

impl<A, K> fmt::Debug for Home<A, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Home")
            .field("states", &self.states)
            .field("first", &self.first.get().map(|first| &first.name))
            .finish_non_exhaustive()
    }
}
