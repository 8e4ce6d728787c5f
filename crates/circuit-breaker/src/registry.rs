//! One state per target name.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use tower_spillway_core::{TargetName, keyed};

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
            named: keyed::States::new(MOST_NAMES),
        }))
    }

    /// The same states for keys of requests, none of which is shown to anybody. Those that were
    /// there are left behind.
    pub(crate) fn by_key(self) -> Self {
        match self {
            Self::ByName(registry) => Self::by_name(Checked {
                secret_names: true,
                ..registry.config.clone()
            }),
            shared @ Self::Shared(_) => shared,
        }
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
                .field("names", &registry.named.len())
                .finish_non_exhaustive(),
            Self::Shared(breaker) => f.debug_tuple("Shared").field(breaker).finish(),
        }
    }
}

pub(crate) struct Registry {
    config: Checked,
    unnamed: OnceLock<Breaker>,
    named: keyed::States<TargetName, Breaker>,
}

impl Registry {
    fn breaker(&self, name: Option<&TargetName>) -> Breaker {
        let make = |name| Breaker::checked(name, self.config.clone());
        match name {
            Some(name) => {
                let mine = || make(Some(name.clone()));
                self.named.get_or_make(name, mine, Breaker::is_idle)
            }
            None => self.unnamed.get_or_init(|| make(None)).clone(),
        }
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
