//! All targets of a configuration, each with its own state, and the chains made of them.

mod routes;

use std::{collections::HashMap, fmt, sync::Arc};

use secrecy::SecretString;
use tower_retry_budget::RatioBudget;
use tower_spillway_core::Chance;

use self::routes::Routes;
use super::{
    error::BuildError,
    keyring,
    member::Member,
    own::Own,
    probe::{Probe, Probing},
    service::Pipeline,
    stack::Layers,
};
use crate::config::Config;

/// The targets that a configuration's chains and routes name, and a [`Pipeline`] for each chain.
///
/// All of them share the budget of retries, and all chains that name a target share how it is: one
/// that is down for one chain is down for every other. Two models at one endpoint are two targets.
///
/// # Which chain a model has
///
/// The first of these that there is:
///
/// 1. the route of exactly that name;
/// 2. the route of the longest pattern that fits, `*` alone left aside;
/// 3. a target that asks for a model of that name, or is called so: the chain that begins with
///    it (`default` before others), else the target alone;
/// 4. the route `*`.
///
/// # Clone
///
/// Clones are the same fleet.
///
/// # Example
///
/// ```
/// use opus_to_gemini::{config::Config, pipeline::Fleet};
///
/// let config = Config::from_toml("[routes]\n\"gpt-4*\" = [\"gemini\"]\n")?;
/// let fleet = Fleet::new(&config, |_| Some("a-key".into()))?;
/// // Of the profile: Opus, then Gemini.
/// assert_eq!(fleet.route("claude-opus").unwrap().breakers().len(), 2);
/// assert_eq!(fleet.route("gpt-4o").unwrap().breakers().len(), 1);
/// assert!(fleet.route("gpt-5").is_none());
/// # Ok::<(), opus_to_gemini::pipeline::BuildError>(())
/// ```
#[derive(Clone)]
pub struct Fleet(Arc<Inner>);

struct Inner {
    layers: Layers,
    members: Vec<Member>,
    routes: Routes,
    /// By the names of their targets.
    pipelines: HashMap<Vec<String>, Pipeline>,
}

/// A chain that a request asked for, and that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoChain {
    /// A model that goes nowhere.
    #[error("there is no model {model}")]
    UnknownModel {
        /// Its name.
        model: String,
    },
    /// None was named.
    #[error("the list of models is empty")]
    Empty,
}

impl Fleet {
    /// With the key that `key` gives for the name of each variable.
    ///
    /// # Errors
    ///
    /// [`BuildError`] names each target or figure that is wrong, and each key that is missing.
    pub fn new(
        config: &Config,
        key: impl Fn(&str) -> Option<SecretString>,
    ) -> Result<Self, BuildError> {
        let layers = Layers::new(config, &Chance::default(), Own::default())?;
        Self::build(layers, key, None)
    }

    /// By another configuration. What its figures leave as it was goes on: breaker, hold,
    /// connections and permits of each target, the budget, and probes that run. This fleet is left
    /// as it is, and what it has under way ends undisturbed.
    ///
    /// | part of a target | is new when there is a change of |
    /// |---|---|
    /// | all | its address, its model, its key and other headers |
    /// | breaker | its figures; whether it is enabled |
    /// | hold | `[retry_after]` |
    /// | connections | `[pool]`, `[tls]` |
    /// | permits | its number of them |
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn reload(
        &self,
        config: &Config,
        key: impl Fn(&str) -> Option<SecretString>,
    ) -> Result<Self, BuildError> {
        let old = &self.0.layers;
        let (chance, own) = (&old.chance, old.own.clone());
        let layers = match old.config.budget == config.budget {
            true => Layers::with_budget(config, chance, own, old.ratio_budget().cloned())?,
            false => Layers::new(config, chance, own)?,
        };
        Self::build(layers, key, Some(self))
    }

    fn build(
        layers: Layers,
        key: impl Fn(&str) -> Option<SecretString>,
        old: Option<&Self>,
    ) -> Result<Self, BuildError> {
        let config = Arc::clone(&layers.config);
        let routes = Routes::new(&config)?;
        let (mut members, mut errors) = (Vec::new(), Vec::new());
        for name in routes.targets() {
            let old = old.and_then(|old| old.member(&name));
            let member = keyring::fetch(&config, &name, &key)
                .and_then(|upstream| Member::new(&layers, upstream, old));
            match member {
                Ok(member) => members.push(member),
                Err(error) => errors.push(error),
            }
        }
        if let Some(error) = BuildError::all(errors) {
            return Err(error);
        }
        let mut fleet = Inner {
            layers,
            members,
            routes,
            pipelines: HashMap::new(),
        };
        for chain in fleet.routes.chains() {
            if fleet.pipelines.contains_key(chain) {
                continue;
            }
            if let Some(pipeline) = fleet.pipeline(chain)? {
                fleet.pipelines.insert(chain.clone(), pipeline);
            }
        }
        Ok(Self(Arc::new(fleet)))
    }

    /// The pipeline for calls that name this model; `None` if it has none, or one whose targets
    /// all drain. See [above](Self#which-chain-a-model-has).
    pub fn route(&self, model: &str) -> Option<Pipeline> {
        let chain = self.0.routes.find(model)?;
        self.0.pipelines.get(chain).cloned()
    }

    /// Whether a model has targets here, and all of them drain.
    pub fn drains(&self, model: &str) -> bool {
        self.0.routes.find(model).is_some() && self.route(model).is_none()
    }

    /// A chain that a request brings: of each model the first target that does not drain, each
    /// once.
    ///
    /// # Errors
    ///
    /// One of the models has none.
    pub fn chain(&self, models: &[String]) -> Result<Pipeline, NoChain> {
        let mut chain: Vec<String> = Vec::new();
        for model in models {
            let names = self.0.routes.find(model).map_or(&[][..], Vec::as_slice);
            let mut enabled = names.iter().filter(|name| self.is_enabled(name));
            let first = enabled.next().ok_or_else(|| NoChain::UnknownModel {
                model: model.clone(),
            })?;
            if !chain.contains(first) {
                chain.push(first.clone());
            }
        }
        if let Some(known) = self.0.pipelines.get(&chain) {
            return Ok(known.clone());
        }
        // Its targets are there, and enabled: it can be built.
        self.0.pipeline(&chain).ok().flatten().ok_or(NoChain::Empty)
    }

    /// The models that a client may be told of: the names of routes that are no patterns, then
    /// the targets' own models, each once. Those whose targets all drain are left out.
    pub fn models(&self) -> Vec<String> {
        let known = |name: &&str| self.route(name).is_some();
        let own = self.0.members.iter().map(Member::model);
        let mut models: Vec<String> = Vec::new();
        for name in self.0.routes.names().chain(own).filter(known) {
            if !models.iter().any(|m| m == name) {
                models.push(name.to_owned());
            }
        }
        models
    }

    /// The targets, in their order: those of the chain `default`, of the other chains, of the
    /// routes.
    pub fn members(&self) -> &[Member] {
        &self.0.members
    }

    /// The target of that name.
    pub fn member(&self, name: &str) -> Option<&Member> {
        self.0.member(name)
    }

    fn is_enabled(&self, name: &str) -> bool {
        self.member(name).is_some_and(Member::is_enabled)
    }

    /// The budget of all retries; `None` if there is none.
    pub fn budget(&self) -> Option<&RatioBudget> {
        self.0.layers.ratio_budget()
    }

    /// Futures that find out whether targets are back, for the user to spawn, as
    /// [`Pipeline::probes`]. After a [`reload`](Self::reload) only those that do not run yet; one
    /// whose target is gone, drains or was changed ends with the old fleet.
    pub fn probes(&self) -> impl Iterator<Item = Probing> + use<> {
        let probes = self.0.members.iter().filter_map(Member::probe);
        let started: Vec<_> = probes.filter_map(|probe| Probe::start(probe)).collect();
        started.into_iter()
    }

    /// Whether some target could serve a call now.
    pub fn usable(&self) -> bool {
        self.0.members.iter().any(Member::is_usable)
    }

    /// What it was built by.
    pub fn config(&self) -> &Config {
        &self.0.layers.config
    }
}

impl Inner {
    fn member(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.name() == name)
    }

    /// `None` if all of its targets drain.
    fn pipeline(&self, chain: &[String]) -> Result<Option<Pipeline>, BuildError> {
        let members: Vec<_> = chain.iter().filter_map(|name| self.member(name)).collect();
        match members.iter().any(|member| member.is_enabled()) {
            true => self.layers.chain(&members).map(Some),
            false => Ok(None),
        }
    }
}

impl fmt::Debug for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fleet")
            .field("members", &self.0.members)
            .field("budget", &self.budget())
            .finish_non_exhaustive()
    }
}
