//! One budget per target name.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use tower_spillway_core::{
    Gate, Limits, TargetName,
    keyed::{self, States},
};

use crate::{RatioBudget, cell::ratio::Rules};

/// So many names have a budget of their own; the others share one.
const MOST_NAMES: usize = 1024;

/// What a layer does with a call.
#[derive(Clone)]
pub(crate) enum Rule {
    /// Limits for each.
    PerCall(Limits),
    /// One budget for each target name.
    PerTarget(Arc<Registry>),
    /// One budget for all.
    Shared(Arc<dyn Gate>),
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PerCall(limits) => f.debug_tuple("PerCall").field(limits).finish(),
            Self::PerTarget(registry) => f.debug_tuple("PerTarget").field(&registry.named).finish(),
            Self::Shared(_) => f.debug_struct("Shared").finish_non_exhaustive(),
        }
    }
}

pub(crate) struct Registry {
    rules: Rules,
    /// Apart from the others, so that no number of names takes its place.
    unnamed: OnceLock<RatioBudget>,
    named: States<TargetName, RatioBudget>,
}

impl Registry {
    pub(crate) fn new(rules: Rules) -> Self {
        let overflow = RatioBudget::of(rules).named("overflow");
        Self {
            rules,
            unnamed: OnceLock::new(),
            named: States::with_overflow(MOST_NAMES, overflow),
        }
    }

    /// The budget of a target, made where there is none yet.
    pub(crate) fn budget(&self, name: Option<&TargetName>) -> RatioBudget {
        let make = || RatioBudget::of(self.rules);
        match name {
            Some(name) => {
                let mine = || make().named(name.clone());
                self.named.get_or_make(name, mine, RatioBudget::is_idle)
            }
            None => self.unnamed.get_or_init(make).clone(),
        }
    }
}

/// What the clones of one service know: the budget of the target of their first call, so that it is
/// looked up once.
#[derive(Debug)]
pub(crate) struct Home {
    rule: Rule,
    first: keyed::Home<Option<TargetName>, RatioBudget>,
}

/// What a call is bounded by.
pub(crate) enum Bound {
    Limits(Limits),
    Gate(Arc<dyn Gate>),
}

impl Home {
    pub(crate) fn new(rule: Rule) -> Self {
        Self {
            rule,
            first: keyed::Home::new(),
        }
    }

    /// What bounds a call to a target.
    pub(crate) fn bound(&self, name: Option<&TargetName>) -> Bound {
        match &self.rule {
            Rule::PerCall(limits) => Bound::Limits(*limits),
            Rule::Shared(gate) => Bound::Gate(Arc::clone(gate)),
            Rule::PerTarget(registry) => {
                let is = |first: &Option<TargetName>| first.as_ref() == name;
                let key = || name.cloned();
                let budget = self.first.get_by(is, key, || registry.budget(name));
                Bound::Gate(budget.into())
            }
        }
    }
}

#[cfg(test)]
#[cfg(not(spillway_loom))]
mod tests {
    use tower_spillway_core::Class;

    use super::*;
    use crate::RatioConfig;

    fn registry() -> Registry {
        Registry::new(RatioConfig::new().check().unwrap())
    }

    fn name(n: usize) -> TargetName {
        TargetName::from(format!("target {n}"))
    }

    fn same(a: &RatioBudget, b: &RatioBudget) -> bool {
        Arc::ptr_eq(&a.as_gate(), &b.as_gate())
    }

    #[test]
    fn a_name_has_one_budget() {
        let registry = registry();
        let one = registry.budget(Some(&name(1)));
        assert!(same(&one, &registry.budget(Some(&name(1)))));
        assert!(!same(&one, &registry.budget(Some(&name(2)))));
        assert!(!same(&one, &registry.budget(None)));
        assert!(same(&registry.budget(None), &registry.budget(None)));
    }

    #[test]
    fn names_are_bounded_and_only_idle_budgets_make_room() {
        let registry = registry();
        let spent = registry.budget(Some(&name(0))).as_gate();
        spent.first_end(Class::Success, tower_spillway_core::clock::now());
        drop(spent);
        let held: Vec<_> = (1..MOST_NAMES)
            .map(|n| registry.budget(Some(&name(n))))
            .collect();
        let over = registry.budget(Some(&name(MOST_NAMES)));
        assert!(same(&over, &registry.budget(Some(&name(MOST_NAMES + 1)))));
        drop(held);
        let new = registry.budget(Some(&name(MOST_NAMES)));
        assert!(!same(&new, &over));
        assert_eq!(
            registry.named.len(),
            2,
            "the one that is spent, and the new"
        );
    }
}
