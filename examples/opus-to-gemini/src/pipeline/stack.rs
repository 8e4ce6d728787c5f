//! How the layers are put together.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use tower::{Service, ServiceBuilder, util::BoxCloneSyncService};
use tower_circuit_breaker::{BreakerConfig, CircuitBreakerLayer, State};
use tower_failover::{FailoverService, Target};
use tower_jitter_backoff::JitterBackoffLayer;
use tower_retry_after::RetryAfterLayer;
use tower_retry_budget::{RatioBudget, RatioConfig, RetryBudgetLayer};
use tower_spillway_core::{
    BoxError, Chance, InvalidConfig, Ledger,
    attempt_timeout::{AttemptLimits, AttemptTimeoutLayer},
    call::CallLayer,
};

use super::{
    client::HttpClient, error::BuildError, figures::Figures, prepare::Fit, upstream::Upstream,
    whole::WholeAnswerLayer,
};

/// A chat request in OpenAI's shape. Its address, credentials and model are set per target.
pub type ChatRequest = Request<Full<Bytes>>;

/// A plain answer, whole, or a stream as it comes.
pub type AnswerBody = Either<Full<Bytes>, Incoming>;

/// A vendor's answer.
pub type ChatResponse = Response<AnswerBody>;

/// The stack with a type that can be named.
pub(super) type Stack = BoxCloneSyncService<ChatRequest, ChatResponse, BoxError>;

/// All layers but the outermost, which differ between plain and streaming calls.
#[derive(Clone)]
pub(super) struct Layers {
    backoff: JitterBackoffLayer,
    retry_after: RetryAfterLayer,
    pub(super) breaker: CircuitBreakerLayer,
    pub(super) budget: RatioBudget,
}

impl Layers {
    pub(super) fn new(figures: &Figures, chance: &Chance) -> Result<Self, InvalidConfig> {
        let breaker = BreakerConfig::new()
            .failures(figures.breaker_failures)
            .open_time(figures.breaker_open)
            .max_open_time(figures.breaker_open * 6)
            .abandoned_after(figures.patience * 5)
            .chance(chance.clone());
        let budget = RatioConfig::new()
            .ratio(f64::from(figures.retry_percent) / 100.0)
            .reserve(figures.retry_reserve)
            .ttl(figures.retry_ttl);
        Ok(Self {
            backoff: JitterBackoffLayer::exponential(figures.backoff_base, figures.backoff_cap)?
                .max_attempts(figures.sends)?
                .chance(chance.clone()),
            retry_after: RetryAfterLayer::new()
                .longest_wait(figures.longest_hint)
                .chance(chance.clone()),
            breaker: CircuitBreakerLayer::with_config(breaker)?,
            budget: budget.build()?,
        })
    }

    /// What is between the failover and one target. The layers are the same for all targets; what
    /// differs is set in the request.
    pub(super) fn leg(
        &self,
        client: HttpClient,
    ) -> impl Service<ChatRequest, Response = ChatResponse, Error = BoxError, Future: Send + 'static>
    + Clone
    + Send
    + Sync
    + 'static
    + use<> {
        ServiceBuilder::new()
            .layer(self.backoff.clone())
            .layer(self.retry_after.clone())
            .layer(self.breaker.clone())
            // The limits come with the request: they are the target's.
            .layer(AttemptTimeoutLayer::new(AttemptLimits::default()))
            .layer(WholeAnswerLayer)
            .map_request(stamp)
            .service(client)
    }

    /// The outermost layers, around the failover.
    pub(super) fn around<S>(
        &self,
        failover: FailoverService<S, ChatRequest>,
        deadline: Duration,
    ) -> Stack
    where
        S: Service<ChatRequest, Response = ChatResponse, Error = BoxError, Future: Send + 'static>
            + Clone
            + Send
            + Sync
            + 'static,
    {
        let stack = ServiceBuilder::new()
            .layer(CallLayer::new().deadline(deadline))
            .layer(RetryBudgetLayer::shared(&self.budget))
            .service(failover);
        BoxCloneSyncService::new(stack)
    }

    /// A target of the failover.
    pub(super) fn target<S>(
        &self,
        upstream: &Upstream,
        figures: &Figures,
        leg: S,
    ) -> Result<Target<S, ChatRequest>, BuildError> {
        let fit = Fit::new(upstream)?;
        let breaker = self.breaker.breaker(upstream.name.as_str());
        Ok(Target::new(upstream.name.as_str(), leg)
            .model(upstream.model.as_str())
            .prepare(move |request| fit.apply(request))
            .usable_if(move || !matches!(breaker.state(), State::Open | State::ForcedOpen))
            // A chat changes nothing at the vendor: asked twice, it costs twice.
            .retry_ambiguous(true)
            .sends_while_others(figures.sends_while_others)
            .patience(figures.patience))
    }
}

const CALL_ID: HeaderName = HeaderName::from_static("x-call-id");
const ATTEMPT_ID: HeaderName = HeaderName::from_static("x-attempt-id");

/// Names each attempt of a call that the caller named, so that a vendor's or gateway's log can be
/// laid beside the record: `x-call-id: 7` is sent as `x-attempt-id: 7/opus/1`.
fn stamp(mut request: ChatRequest) -> ChatRequest {
    let Some(call) = request.headers_mut().remove(CALL_ID) else {
        return request;
    };
    let Some(ledger) = request.extensions().get::<Ledger>() else {
        return request;
    };
    let target = ledger.target().map_or("", |target| target.as_str());
    let call = call.to_str().unwrap_or("");
    let id = format!("{call}/{target}/{}", ledger.attempt());
    if let Ok(id) = HeaderValue::from_str(&id) {
        request.headers_mut().insert(ATTEMPT_ID, id);
    }
    request
}
