//! From a model's name to the targets that are asked.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, SeqAccess, Visitor, value::SeqAccessDeserializer},
};

use super::Config;

/// Where calls for a model go.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Route {
    /// To a chain, or to one target, by its name.
    To(String),
    /// To these, in this order: targets, or chains that stand for all of theirs.
    Chain(Vec<String>),
}

impl Route {
    /// The names in it.
    pub fn names(&self) -> &[String] {
        match self {
            Self::To(name) => std::slice::from_ref(name),
            Self::Chain(names) => names,
        }
    }
}

impl Serialize for Route {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::To(name) => name.serialize(to),
            Self::Chain(names) => names.serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for Route {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Route;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a chain or target, or a list of them")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<Route, E> {
                Ok(Route::To(name.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, names: A) -> Result<Route, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(names)).map(Route::Chain)
            }
        }
        from.deserialize_any(Read)
    }
}

/// Why names do not make a list of targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// One of them is neither a target nor a chain.
    Unknown,
    /// These chains name each other, the first one again.
    Cycle(Vec<String>),
}

impl Config {
    /// The targets of a chain, those of the chains that it names included, each once; those that
    /// are not enabled too. `None` if there is no such chain, or if it is wrong.
    pub fn targets_of(&self, chain: &str) -> Option<Vec<&str>> {
        self.expand(self.chains.get(chain)?).ok()
    }

    /// The same for a route.
    pub fn targets_of_route<'c>(&'c self, route: &'c Route) -> Option<Vec<&'c str>> {
        self.expand(route.names()).ok()
    }

    /// The targets that these names stand for, each once.
    pub(super) fn expand<'c>(&'c self, names: &'c [String]) -> Result<Vec<&'c str>, Lost> {
        let mut expansion = Expansion::default();
        expansion.add(self, names)?;
        Ok(expansion.found)
    }
}

#[derive(Default)]
struct Expansion<'c> {
    found: Vec<&'c str>,
    /// The chains that lead to the names that are looked at now.
    within: Vec<&'c str>,
    /// Chains whose targets are all found.
    done: Vec<&'c str>,
}

impl<'c> Expansion<'c> {
    fn add(&mut self, config: &'c Config, names: &'c [String]) -> Result<(), Lost> {
        for name in names {
            if config.targets.contains_key(name) {
                if !self.found.contains(&name.as_str()) {
                    self.found.push(name);
                }
                continue;
            }
            let Some(chain) = config.chains.get(name) else {
                return Err(Lost::Unknown);
            };
            if let Some(from) = self.within.iter().position(|n| n == name) {
                let round = self.within.iter().skip(from).copied();
                let round = round.chain([name.as_str()]).map(str::to_owned);
                return Err(Lost::Cycle(round.collect()));
            }
            if self.done.contains(&name.as_str()) {
                continue;
            }
            self.within.push(name);
            self.add(config, chain)?;
            self.within.pop();
            self.done.push(name);
        }
        Ok(())
    }
}
