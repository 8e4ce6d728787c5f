//! What chains and routes must lead to.

use std::collections::HashSet;

use super::Found;
use crate::config::{Config, route::Lost};

impl Config {
    pub(super) fn check_chains(&self, found: &mut Found) {
        found.ensure(
            self.chains.contains_key("default"),
            &["chains", "default"],
            "be there",
        );
        for (name, chain) in &self.chains {
            let path = ["chains", name.as_str()];
            found.ensure(
                !self.targets.contains_key(name),
                &path,
                "not have the name of a target",
            );
            self.check_names(found, chain, &path);
            self.check_round(found, name, chain);
        }
        for (model, route) in &self.routes {
            let path = ["routes", model.as_str()];
            found.ensure(!model.is_empty(), &path, "have the name of a model");
            self.check_names(found, route.names(), &path);
        }
        if let Some(default) = self.targets_of("default") {
            found.ensure(
                default.is_empty() || default.iter().any(|name| self.is_enabled(name)),
                &["chains", "default"],
                "have a target that is enabled",
            );
        }
    }

    pub(super) fn is_enabled(&self, target: &str) -> bool {
        self.targets.get(target).is_some_and(|t| t.enabled)
    }

    fn check_names(&self, found: &mut Found, names: &[String], path: &[&str]) {
        found.ensure(!names.is_empty(), path, "name at least one target");
        let mut seen = HashSet::new();
        let once = names.iter().filter(|name| seen.insert(*name));
        let once: Vec<_> = once.collect();
        found.ensure(once.len() == names.len(), path, "name each target once");
        for name in once {
            if !self.targets.contains_key(name) && !self.chains.contains_key(name) {
                found.say(
                    path,
                    format!(
                        "must name targets or chains; there is neither [targets.{name}] nor \
                         chains.{name}"
                    ),
                );
            }
        }
    }

    /// What leads to a wrong chain is not wrong itself: a round is told of the chain that it goes
    /// through, and of none that only leads there.
    fn check_round(&self, found: &mut Found, chain: &str, names: &[String]) {
        if let Err(Lost::Cycle(round)) = self.expand(names)
            && round.iter().any(|name| name == chain)
        {
            let round = round.join(" -> ");
            let said = format!("must not lead to itself: {round}");
            found.say(&["chains", chain], said);
        }
    }
}
