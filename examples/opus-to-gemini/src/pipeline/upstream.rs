//! One vendor's endpoint.

use std::{collections::BTreeMap, time::Duration};

use secrecy::SecretString;
use tower_spillway_core::Class;
use tower_spillway_llm::{Rules, Subclass, TargetProfile};

use super::keyring;
use crate::config::{Config, Takes, Target};

/// One endpoint with its key: a target of a [`Config`], to be asked by a pipeline.
///
/// The key is shown by no `Debug` and no error.
#[derive(Clone, Debug)]
#[must_use]
pub struct Upstream {
    pub(super) name: String,
    pub(super) target: Target,
    /// `None` for one that asks for none.
    pub(super) key: Option<SecretString>,
    /// Headers whose values are in variables or files.
    pub(super) secret_headers: BTreeMap<String, SecretString>,
    profile: Option<TargetProfile>,
    rules: Option<Rules>,
}

impl Upstream {
    /// A target by its name in records.
    pub fn new(name: impl Into<String>, target: Target, key: impl Into<SecretString>) -> Self {
        let key = Some(key.into());
        Self {
            key,
            ..Self::without_key(name, target)
        }
    }

    /// A target that asks for no key, as one on this machine may.
    pub fn without_key(name: impl Into<String>, target: Target) -> Self {
        Self {
            name: name.into(),
            target,
            key: None,
            secret_headers: BTreeMap::new(),
            profile: None,
            rules: None,
        }
    }

    /// Whether they are one account at one model of one endpoint.
    pub(super) fn is_same_account(&self, other: &Self) -> bool {
        let (one, two) = (&self.target, &other.target);
        one.url == two.url
            && one.query == two.query
            && one.model == two.model
            && one.auth_header == two.auth_header
            && one.auth_scheme == two.auth_scheme
            && one.headers == two.headers
            && keyring::same(self, other)
    }

    /// Whether they are asked in the same way too.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.target == other.target && keyring::same(self, other)
    }

    /// What must not be shown.
    pub(super) fn secrets(&self) -> impl Iterator<Item = SecretString> {
        self.key.iter().chain(self.secret_headers.values()).cloned()
    }

    /// Claude Opus at Anthropic's OpenAI-compatible endpoint: 60 s for a plain answer, 8 s to the
    /// first content of a stream.
    pub fn opus(key: impl Into<SecretString>) -> Self {
        Self::built_in("opus", key)
    }

    /// Gemini at its OpenAI-compatible endpoint: 90 s for a plain answer, 15 s to the first
    /// content of a stream.
    pub fn gemini(key: impl Into<SecretString>) -> Self {
        Self::built_in("gemini", key)
    }

    fn built_in(name: &str, key: impl Into<SecretString>) -> Self {
        let target = Config::interactive().targets.remove(name);
        Self::new(name, target.unwrap_or_default(), key)
    }

    /// Another name, for records and the breaker.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Another address of the chat endpoint: `https`, or `http` on the loopback interface.
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.target.url = url.into();
        self
    }

    /// Another model.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.target.model = model.into();
        self
    }

    /// The longest time of one attempt: to the last byte of a plain answer, to the first
    /// content of a stream.
    pub fn within(mut self, plain: Duration, head: Duration) -> Self {
        self.target.plain_within = plain;
        self.target.streaming_within = head;
        self
    }

    /// The most calls at one time.
    pub fn in_flight(mut self, most: u32) -> Self {
        self.target.in_flight = most;
        self
    }

    /// Makes requests fit in the user's own way; address, key, headers and model are set after it.
    pub fn profile(mut self, profile: TargetProfile) -> Self {
        self.profile = Some(profile);
        self
    }

    /// Reads answers by the user's own rules.
    pub fn rules(mut self, rules: Rules) -> Self {
        self.rules = Some(rules);
        self
    }

    /// Its time limits divided by `speed`. At 0 nothing is divided.
    pub fn at_speed(self, speed: u32) -> Self {
        let by = speed.max(1);
        let (plain, head) = (
            self.target.plain_within / by,
            self.target.streaming_within / by,
        );
        self.within(plain, head)
    }

    /// What it takes.
    pub(super) fn takes(&self) -> TargetProfile {
        let model = self.target.model.clone();
        let mut profile = match (&self.profile, self.target.takes) {
            (Some(own), _) => own.clone().model(model),
            (None, Takes::Anthropic) => TargetProfile::anthropic_compat(model),
            (None, Takes::Gemini) => TargetProfile::gemini_compat(model),
            (None, Takes::OpenAi) => TargetProfile::new().model(model),
        };
        if self.target.max_tokens > 0 {
            profile = profile.default_max_tokens(self.target.max_tokens);
        }
        if self.target.context > 0 {
            profile = profile.context(self.target.context);
        }
        if self.target.max_tokens_cap > 0 {
            profile = profile.cap_max_tokens(self.target.max_tokens_cap);
        }
        profile
    }

    /// How its answers are read; `refusals_go_on` if those of its content policy go on to a later
    /// target.
    pub(super) fn reads(&self, bodies: bool, refusals_go_on: bool) -> Rules {
        let rules = match (&self.rules, bodies) {
            (Some(own), _) => own.clone(),
            (None, true) => Rules::of(self.target.vendor),
            // The status alone.
            (None, false) => Rules::only([]),
        };
        match refusals_go_on {
            true => rules.subclass(Subclass::ContentPolicy, Class::NotHere),
            false => rules,
        }
    }
}
