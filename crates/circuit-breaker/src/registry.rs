//! One state per target name.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use tower_spillway_core::TargetName;

use crate::{breaker::Breaker, config::Checked};

/// So many names have a state of their own; the others share one.
const MOST_NAMES: usize = 1024;

/// Where the states of a layer are.
#[derive(Clone)]
pub(crate) enum States {
    /// One for each target name.
    ByName(Arc<Registry>),
    /// One for all.
    Shared(Breaker),
}

impl States {
    pub(crate) fn by_name(config: Checked) -> Self {
        Self::ByName(Arc::new(Registry {
            config,
            unnamed: OnceLock::new(),
            overflow: OnceLock::new(),
            named: Mutex::new(HashMap::new()),
        }))
    }

    pub(crate) fn breaker(&self, name: Option<&TargetName>) -> Breaker {
        match self {
            Self::ByName(registry) => registry.breaker(name),
            Self::Shared(breaker) => breaker.clone(),
        }
    }
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ByName(registry) => f
                .debug_struct("ByName")
                .field("names", &registry.lock().len())
                .finish_non_exhaustive(),
            Self::Shared(breaker) => f.debug_tuple("Shared").field(breaker).finish(),
        }
    }
}

pub(crate) struct Registry {
    config: Checked,
    unnamed: OnceLock<Breaker>,
    overflow: OnceLock<Breaker>,
    named: Mutex<HashMap<TargetName, Breaker>>,
}

impl Registry {
    fn breaker(&self, name: Option<&TargetName>) -> Breaker {
        let make = |name| Breaker::checked(name, self.config.clone());
        let Some(name) = name else {
            return self.unnamed.get_or_init(|| make(None)).clone();
        };
        let mut named = self.lock();
        if let Some(breaker) = named.get(name) {
            return breaker.clone();
        }
        if named.len() >= MOST_NAMES {
            named.retain(|_, breaker| !breaker.is_idle());
        }
        if named.len() >= MOST_NAMES {
            return self.overflow.get_or_init(|| make(None)).clone();
        }
        let breaker = make(Some(name.clone()));
        named.insert(name.clone(), breaker.clone());
        breaker
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<TargetName, Breaker>> {
        self.named.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the clones of one service know: the target of their first call, so that they look up no
/// state again.
#[derive(Debug)]
pub(crate) struct Home {
    states: States,
    first: OnceLock<(Option<TargetName>, Breaker)>,
    /// Calls went to more than one target: which state the next call meets is not known before it
    /// is made.
    mixed: AtomicBool,
}

impl Home {
    pub(crate) fn new(states: States) -> Self {
        Self {
            states,
            first: OnceLock::new(),
            mixed: AtomicBool::new(false),
        }
    }

    /// The state of a target.
    pub(crate) fn breaker(&self, name: Option<&TargetName>) -> Breaker {
        if let States::Shared(breaker) = &self.states {
            return breaker.clone();
        }
        let (first, breaker) = self
            .first
            .get_or_init(|| (name.cloned(), self.states.breaker(name)));
        if first.as_ref() == name {
            return breaker.clone();
        }
        self.mixed.store(true, Ordering::Relaxed);
        self.states.breaker(name)
    }

    /// The state that the next call will meet, where that is known.
    pub(crate) fn expected(&self) -> Option<&Breaker> {
        if let States::Shared(breaker) = &self.states {
            return Some(breaker);
        }
        if self.mixed.load(Ordering::Relaxed) {
            return None;
        }
        self.first.get().map(|(_, breaker)| breaker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::BreakerConfig;

    fn states() -> States {
        States::by_name(BreakerConfig::new().check().unwrap())
    }

    fn name(n: usize) -> TargetName {
        TargetName::from(format!("target {n}"))
    }

    #[test]
    fn a_name_has_one_state() {
        let states = states();
        let one = states.breaker(Some(&name(1)));
        assert!(one.same(&states.breaker(Some(&name(1)))));
        assert!(!one.same(&states.breaker(Some(&name(2)))));
        assert!(!one.same(&states.breaker(None)));
        assert!(states.breaker(None).same(&states.breaker(None)));
    }

    #[test]
    fn names_are_bounded_and_the_rest_share_one_state() {
        let states = states();
        let held: Vec<_> = (0..MOST_NAMES)
            .map(|n| states.breaker(Some(&name(n))))
            .collect();
        let over = states.breaker(Some(&name(MOST_NAMES)));
        assert!(over.same(&states.breaker(Some(&name(MOST_NAMES + 1)))));
        assert!(held[7].same(&states.breaker(Some(&name(7)))));
    }

    #[test]
    fn only_closed_states_that_nobody_holds_make_room() {
        let states = states();
        for n in 0..MOST_NAMES {
            states.breaker(Some(&name(n)));
        }
        states.breaker(Some(&name(3))).force_open();
        let held = states.breaker(Some(&name(4)));
        let new = states.breaker(Some(&name(MOST_NAMES)));
        assert!(!new.same(&states.breaker(Some(&name(MOST_NAMES + 1)))));
        assert!(held.same(&states.breaker(Some(&name(4)))));
        let open = states.breaker(Some(&name(3)));
        assert_eq!(open.state(), crate::State::ForcedOpen);
    }
}
