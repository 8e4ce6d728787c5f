//! How a pipeline is set up.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Response};
use http_body::Body;
use http_body_util::BodyExt;
use tower::{Service, ServiceExt, util::BoxCloneSyncService};
use tower_circuit_breaker::Breaker;
use tower_spillway_core::{BoxError, Chance, Failure, Gate, Policy, Reading};

use super::{
    error::BuildError,
    member::Member,
    own::Own,
    service::Pipeline,
    stack::{ChatRequest, ChatResponse, Layers},
    upstream::Upstream,
};
use crate::config::Config;

/// Sets up a [`Pipeline`]. Each policy is as the [`Config`] says, unless a setter takes the user's
/// own in its place.
#[derive(Debug, Default)]
#[must_use]
pub struct Builder {
    upstreams: Vec<Upstream>,
    config: Config,
    chance: Chance,
    own: Own,
}

impl Builder {
    /// Adds a target; they are asked in this order.
    pub fn target(mut self, upstream: Upstream) -> Self {
        self.upstreams.push(upstream);
        self
    }

    /// Other figures; [`Config::interactive`] by default. Its targets and chains are not looked
    /// at: see [`Pipeline::from_config`].
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Where all jitter is drawn from.
    pub fn chance(mut self, chance: Chance) -> Self {
        self.chance = chance;
        self
    }

    /// Waits and retries as this policy says; how often and how long at most stays as configured.
    pub fn backoff(mut self, policy: impl Policy<ChatResponse> + Send + Sync + 'static) -> Self {
        self.own.backoff = Some(Arc::new(policy));
        self
    }

    /// Takes servers' hints as this policy says.
    pub fn retry_after(
        mut self,
        policy: impl Policy<ChatResponse> + Send + Sync + 'static,
    ) -> Self {
        self.own.retry_after = Some(Arc::new(policy));
        self
    }

    /// Makes the breaker of each target, by its name.
    pub fn breaker(mut self, make: impl Fn(&str) -> Breaker + Send + Sync + 'static) -> Self {
        self.own.breaker = Some(Arc::new(make));
        self
    }

    /// Asks this budget for each retry.
    pub fn budget(mut self, gate: impl Into<Arc<dyn Gate>>) -> Self {
        self.own.budget = Some(gate.into());
        self
    }

    /// Says what an outcome means where the vendor's table is wrong for this user, and so whether
    /// the call is retried, goes on to the next target, or ends.
    pub fn hop_rule<F>(mut self, rule: F) -> Self
    where
        F: Fn(Result<&ChatResponse, Failure<'_>>) -> Option<Reading> + Send + Sync + 'static,
    {
        self.own.hop_rule = Some(Arc::new(rule));
        self
    }

    /// Makes the idempotency key of each call that brings none.
    pub fn idempotency_key(
        mut self,
        make: impl Fn(&ChatRequest) -> HeaderValue + Send + Sync + 'static,
    ) -> Self {
        self.own.idempotency_key = Some(Arc::new(make));
        self
    }

    /// Sends through this client instead of hyper-util's. The limits of the pool are then its own.
    pub fn client<C, B>(mut self, client: C) -> Self
    where
        C: Service<ChatRequest, Response = Response<B>, Future: Send + 'static>
            + Clone
            + Send
            + Sync
            + 'static,
        C::Error: Into<BoxError>,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let client = client
            .map_response(|response: Response<B>| {
                response.map(|body| body.map_err(Into::into).boxed_unsync())
            })
            .map_err(Into::into);
        self.own.client = Some(BoxCloneSyncService::new(client));
        self
    }

    /// Puts the stack together. Nothing is sent or connected yet.
    ///
    /// # Errors
    ///
    /// [`BuildError`] names the target or the figure that is wrong.
    pub fn build(self) -> Result<Pipeline, BuildError> {
        let layers = Layers::new(&self.config, &self.chance, self.own)?;
        let members = self.upstreams.into_iter();
        let members: Vec<Member> = members
            .map(|upstream| Member::new(&layers, upstream, None))
            .collect::<Result<_, _>>()?;
        layers.chain(&members.iter().collect::<Vec<_>>())
    }
}
