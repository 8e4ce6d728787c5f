//! The state of one target, and what of it a change of the figures leaves.

use std::sync::Arc;

use rustls::RootCertStore;
use tower_circuit_breaker::Breaker;
use tower_retry_after::hold::SharedHold;
use tower_spillway_core::{InvalidConfig, in_flight::Permits};

use super::{client::Bottom, error::BuildError, policies, stack::Layers, upstream::Upstream};
use crate::config::{self, Config};

/// What all chains that name a target share.
pub(super) struct State {
    /// The figures that it was made by.
    config: Arc<Config>,
    roots: Arc<RootCertStore>,
    pub(super) upstream: Upstream,
    pub(super) bottom: Bottom,
    pub(super) permits: Permits,
    pub(super) hold: Option<SharedHold>,
    /// `None` too for a target that is not enabled: nothing finds out whether it is back.
    pub(super) breaker: Option<Breaker>,
}

impl State {
    /// Of `old`, each part whose figures are the same is kept; nothing is, if another account is
    /// asked now.
    pub(super) fn new(
        layers: &Layers,
        upstream: Upstream,
        old: Option<&Self>,
    ) -> Result<Self, BuildError> {
        let old = old.filter(|old| old.upstream.is_same_account(&upstream));
        let config = &layers.config;
        let roots = &layers.roots;
        let bottom = match old.filter(|old| old.connects_as(config, roots)) {
            Some(old) => old.bottom.clone(),
            None => Bottom::new(layers.own.client.as_ref(), &config.pool, roots)?,
        };
        let most = most_in_flight(config, &upstream);
        let permits = match old.filter(|old| old.permits.limit() == most) {
            Some(old) => old.permits.clone(),
            None => Permits::new(most)?,
        };
        let hold = match old.filter(|old| old.config.retry_after == config.retry_after) {
            Some(old) => old.hold.clone(),
            None => policies::hold(layers)?,
        };
        Ok(Self {
            config: Arc::clone(config),
            roots: Arc::clone(roots),
            bottom,
            permits,
            hold,
            breaker: breaker(layers, &upstream, old)?,
            upstream,
        })
    }

    /// The figures of its breaker.
    pub(super) fn breaker_figures(&self) -> &config::Breaker {
        breaker_figures(&self.config, &self.upstream)
    }

    /// The file of roots may have changed under its name.
    fn connects_as(&self, config: &Config, roots: &RootCertStore) -> bool {
        self.config.pool == config.pool && self.roots.roots == roots.roots
    }

    /// Whether a probe of the one is a probe of the other: the same breaker, asked the same way.
    pub(super) fn is_probed_as(&self, other: &Self) -> bool {
        self.upstream.is_same(&other.upstream)
            && self.breaker_figures() == other.breaker_figures()
            && self.connects_as(&other.config, &other.roots)
            && self.config.verdict == other.config.verdict
            && self.config.stream == other.config.stream
            && self.config.attempt_timeout == other.config.attempt_timeout
    }
}

fn breaker_figures<'c>(config: &'c Config, upstream: &'c Upstream) -> &'c config::Breaker {
    upstream.target.breaker.as_ref().unwrap_or(&config.breaker)
}

fn breaker(
    layers: &Layers,
    upstream: &Upstream,
    old: Option<&State>,
) -> Result<Option<Breaker>, InvalidConfig> {
    if !upstream.target.enabled {
        return Ok(None);
    }
    if let Some(make) = &layers.own.breaker {
        return Ok(Some(make(&upstream.name)));
    }
    let figures = breaker_figures(&layers.config, upstream);
    let old = old.filter(|old| old.upstream.target.enabled && old.breaker_figures() == figures);
    match old {
        Some(old) => Ok(old.breaker.clone()),
        None => policies::breaker(&upstream.name, figures, &layers.chance),
    }
}

fn most_in_flight(config: &Config, upstream: &Upstream) -> usize {
    /// As good as none: the type of the answer's body is the same with a bound and without.
    const UNBOUNDED: usize = 1 << 24;
    match config.in_flight.enabled {
        true => usize::try_from(upstream.target.in_flight).unwrap_or(UNBOUNDED),
        false => UNBOUNDED,
    }
}
