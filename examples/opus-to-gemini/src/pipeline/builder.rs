//! How a pipeline is set up.

use tower_failover::FailoverService;
use tower_spillway_core::Chance;

use super::{
    client::client, error::BuildError, figures::Figures, secret::Secrets, service::Pipeline,
    stack::Layers, upstream::Upstream,
};

/// Sets up a [`Pipeline`].
#[derive(Debug, Default)]
#[must_use]
pub struct Builder {
    upstreams: Vec<Upstream>,
    figures: Figures,
    chance: Chance,
}

impl Builder {
    /// Adds a target; they are asked in this order.
    pub fn target(mut self, upstream: Upstream) -> Self {
        self.upstreams.push(upstream);
        self
    }

    /// Other figures; [`Figures::interactive`] by default.
    pub fn figures(mut self, figures: Figures) -> Self {
        self.figures = figures;
        self
    }

    /// Where all jitter is drawn from.
    pub fn chance(mut self, chance: Chance) -> Self {
        self.chance = chance;
        self
    }

    /// Puts the stack together. Nothing is sent or connected yet.
    ///
    /// # Errors
    ///
    /// [`BuildError`] names the target or the figure that is wrong.
    pub fn build(self) -> Result<Pipeline, BuildError> {
        let layers = Layers::new(&self.figures, &self.chance)?;
        let targets = self
            .upstreams
            .iter()
            .map(|upstream| layers.target(upstream, &self.figures, layers.leg(client()?)))
            .collect::<Result<Vec<_>, BuildError>>()?;
        let failover = FailoverService::new(targets)?;
        let plain = layers.around(failover.clone(), self.figures.plain_deadline);
        let streaming = layers.around(failover, self.figures.streaming_deadline);
        let breakers = self.upstreams.iter().map(|u| u.name.as_str());
        let breakers = breakers.map(|name| layers.breaker.breaker(name)).collect();
        let secrets = Secrets::new(self.upstreams.iter().map(|u| u.key.clone()));
        Ok(Pipeline {
            plain,
            streaming,
            breakers,
            budget: layers.budget,
            secrets,
        })
    }
}
