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
/// once; where all share one state, that.
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
    /// Of whatever name.
    serves_all: bool,
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

/// What one call keeps of its home: the adapter, and the state of the target of the first call,
/// which is that of nearly all.
pub(crate) struct Share<A>(Arc<Slot<A>>);

impl<A> Share<A> {
    #[inline]
    pub(crate) fn adapter(&self) -> &A {
        &self.0.adapter
    }
}

impl<A> Reach for Share<A> {
    #[inline]
    fn breaker(&self) -> &Breaker {
        &self.0.breaker
    }
}

impl<A> Slot<A> {
    #[inline]
    pub(crate) fn breaker(&self) -> &Breaker {
        &self.breaker
    }

    #[inline]
    pub(crate) fn share(self: &Arc<Self>) -> Share<A> {
        Share(Arc::clone(self))
    }
}

impl<A> First<A> {
    fn new(name: Option<TargetName>, breaker: Breaker, adapter: &Arc<A>) -> Self {
        let slots = std::array::from_fn(|_| {
            Arc::new(Slot {
                breaker: breaker.clone(),
                adapter: Arc::clone(adapter),
            })
        });
        Self {
            name,
            serves_all: false,
            breaker,
            slots,
        }
    }

    #[inline]
    fn serves(&self, name: Option<&TargetName>) -> bool {
        match (&self.name, name) {
            _ if self.serves_all => true,
            (None, None) => true,
            // Names come from one plan as a rule.
            (Some(own), Some(name)) => std::ptr::eq(own.as_str(), name.as_str()) || own == name,
            _ => false,
        }
    }

    /// That of this thread.
    #[inline]
    fn slot(&self) -> &Arc<Slot<A>> {
        let [any, ..] = &self.slots;
        self.slots.get(lane()).unwrap_or(any)
    }
}

impl<A, K> Home<A, K> {
    pub(crate) fn new(states: States, adapter: Arc<A>, key: Arc<K>) -> Self {
        let first = match &states {
            States::Shared(breaker) => OnceLock::from(First {
                serves_all: true,
                ..First::new(None, breaker.clone(), &adapter)
            }),
            States::ByName(_) => OnceLock::new(),
        };
        Self {
            states,
            adapter,
            key,
            first,
            mixed: AtomicBool::new(false),
        }
    }

    #[inline]
    pub(crate) fn adapter(&self) -> &A {
        &self.adapter
    }

    #[inline]
    pub(crate) fn key(&self) -> &K {
        &self.key
    }

    /// The state of a target, if it is the one of the first call.
    #[inline]
    pub(crate) fn near(&self, name: Option<&TargetName>) -> Option<&Arc<Slot<A>>> {
        let first = self.first.get()?;
        first.serves(name).then(|| first.slot())
    }

    /// What a call of any target keeps, and its state where that is another than that of the first.
    pub(crate) fn share(&self, name: Option<&TargetName>) -> (Share<A>, Option<Breaker>) {
        let first = self.first.get_or_init(|| {
            let breaker = self.states.breaker(name);
            First::new(name.cloned(), breaker, &self.adapter)
        });
        let other = (!first.serves(name)).then(|| {
            self.mixed.store(true, Ordering::Relaxed);
            self.states.breaker(name)
        });
        (first.slot().share(), other)
    }

    /// The state that the next call will meet, where that is known.
    #[inline]
    pub(crate) fn expected(&self) -> Option<&Breaker> {
        if self.mixed.load(Ordering::Relaxed) {
            return None;
        }
        self.first.get().map(|first| &first.breaker)
    }

    /// Whether it is the state of the first call.
    pub(crate) fn is_first(&self, breaker: &Breaker) -> bool {
        let first = self.first.get();
        first.is_some_and(|first| first.breaker.same(breaker))
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
