//! From a model's name to the names of its targets.

use std::cmp::Reverse;

use wildmatch::WildMatch;

use crate::{
    config::{Config, Route},
    pipeline::error::BuildError,
};

/// The names of targets, in order.
type Chain = Vec<String>;

/// Where models go. See [`Fleet`](super::Fleet).
pub(super) struct Routes {
    exact: Vec<(String, Chain)>,
    /// The longest first.
    patterns: Vec<(WildMatch, Chain)>,
    /// By the models and the names of targets.
    own: Vec<(String, Chain)>,
    rest: Option<Chain>,
    chains: Vec<Chain>,
}

impl Routes {
    pub(super) fn new(config: &Config) -> Result<Self, BuildError> {
        let mut routes = Self {
            exact: Vec::new(),
            patterns: Vec::new(),
            own: Vec::new(),
            rest: None,
            chains: named(config)?,
        };
        let mut patterns = Vec::new();
        for (model, route) in &config.routes {
            let chain = targets(config, model, route)?;
            if model == "*" {
                routes.rest = Some(chain);
            } else if is_pattern(model) {
                patterns.push((model, chain));
            } else {
                routes.exact.push((model.clone(), chain));
            }
        }
        patterns.sort_by_key(|(pattern, _)| Reverse(pattern.chars().count()));
        let compiled = |(pattern, chain): (&String, Chain)| (WildMatch::new(pattern), chain);
        routes.patterns = patterns.into_iter().map(compiled).collect();
        let exact = routes.exact.iter().map(|(_, chain)| chain);
        let patterns = routes.patterns.iter().map(|(_, chain)| chain);
        let routed: Vec<Chain> = exact.chain(patterns).chain(&routes.rest).cloned().collect();
        routes.chains.extend(routed);
        routes.add_own(config);
        Ok(routes)
    }

    /// Models as targets call them, then the names of targets.
    fn add_own(&mut self, config: &Config) {
        let names = self.targets();
        let mut add = |key: &str, name: &str| {
            let begins = |chain: &&Chain| chain.first().is_some_and(|first| first == name);
            let alone = || vec![name.to_owned()];
            let chain = self
                .chains
                .iter()
                .find(begins)
                .cloned()
                .unwrap_or_else(alone);
            if !self.own.iter().any(|(known, _)| known == key) {
                self.own.push((key.to_owned(), chain));
            }
        };
        for name in &names {
            if let Some(target) = config.targets.get(name) {
                add(&target.model, name);
            }
        }
        names.iter().for_each(|name| add(name, name));
        self.chains
            .extend(self.own.iter().map(|(_, chain)| chain.clone()));
    }

    /// The names of all targets that something leads to, each once.
    pub(super) fn targets(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for name in self.chains.iter().flatten() {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }

    /// All chains, `default` first.
    pub(super) fn chains(&self) -> &[Chain] {
        &self.chains
    }

    /// The names of routes that are no patterns.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.exact.iter().map(|(model, _)| model.as_str())
    }

    pub(super) fn find(&self, model: &str) -> Option<&Chain> {
        let by_name = |routes: &'_ [(String, Chain)]| routes.iter().position(|(m, _)| m == model);
        let exact = by_name(&self.exact).and_then(|at| self.exact.get(at));
        if let Some((_, chain)) = exact {
            return Some(chain);
        }
        if let Some((_, chain)) = self.patterns.iter().find(|(p, _)| p.matches(model)) {
            return Some(chain);
        }
        let own = by_name(&self.own).and_then(|at| self.own.get(at));
        own.map(|(_, chain)| chain).or(self.rest.as_ref())
    }
}

fn is_pattern(model: &str) -> bool {
    model.contains(['*', '?'])
}

/// The chains that have a name, `default` first.
fn named(config: &Config) -> Result<Vec<Chain>, BuildError> {
    let default = config.chains.keys().filter(|name| *name == "default");
    let others = config.chains.keys().filter(|name| *name != "default");
    let chain = |name: &String| {
        let targets = config.targets_of(name).ok_or_else(|| BuildError::NoChain {
            chain: name.clone(),
        })?;
        Ok(targets.into_iter().map(str::to_owned).collect())
    };
    default.chain(others).map(chain).collect()
}

fn targets(config: &Config, model: &str, route: &Route) -> Result<Chain, BuildError> {
    let targets = config.targets_of_route(route);
    let targets = targets.ok_or_else(|| BuildError::NoRoute {
        model: model.to_owned(),
    })?;
    Ok(targets.into_iter().map(str::to_owned).collect())
}
