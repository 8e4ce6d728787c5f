//! How the layers are put together.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use tower::{
    ServiceBuilder, ServiceExt,
    layer::util::Stack as Layered,
    util::{BoxCloneSyncService, MapResponseLayer, option_layer},
};
use tower_circuit_breaker::{Breaker, CircuitBreakerLayer, State};
use tower_failover::{FailoverService, Target};
use tower_http::timeout::ResponseBodyTimeoutLayer;
use tower_retry_after::hold::SharedHold;
use tower_retry_budget::{RatioBudget, RetryBudgetLayer};
use tower_spillway_core::{
    BoxError, Chance, Class, Failure, Gate, InvalidConfig, Ledger, Limits, Reading, RetryLayer,
    TargetName,
    attempt_timeout::{AttemptLimits, AttemptTimeoutLayer},
    call::CallLayer,
    classify::ClassifyLayer,
    idempotency_key::IdempotencyKeyLayer,
    in_flight::InFlightLayer,
};
use tower_spillway_llm::VendorVerdictLayer;

use super::{
    client::Pooled,
    error::BuildError,
    fresh::FreshLayer,
    own::{AnyClient, AnyPolicy, Own},
    policies::{self, RetryAfterEither},
    prepare::Fit,
    upstream::Upstream,
    whole::{WholeAnswerLayer, is_stream},
};
use crate::config::{Commit, Config};

/// A chat request in OpenAI's shape. Its address, credentials and model are set per target.
pub type ChatRequest = Request<Full<Bytes>>;

/// A plain answer, whole, or a stream as it comes.
pub type AnswerBody = UnsyncBoxBody<Bytes, BoxError>;

/// A vendor's answer.
pub type ChatResponse = Response<AnswerBody>;

/// A part of the stack with a type that can be named.
pub(super) type Stack = BoxCloneSyncService<ChatRequest, ChatResponse, BoxError>;

/// The policies, as configured or the user's own.
pub(super) struct Layers {
    config: Config,
    chance: Chance,
    own: Own,
    backoff: AnyPolicy,
    retry_after: RetryAfterEither,
    hold: Option<SharedHold>,
    ratio: Option<RatioBudget>,
}

impl Layers {
    pub(super) fn new(config: &Config, chance: &Chance, own: Own) -> Result<Self, InvalidConfig> {
        let backoff = match &own.backoff {
            Some(backoff) => Arc::clone(backoff),
            None => policies::backoff(&config.backoff, chance)?,
        };
        let (retry_after, hold) =
            policies::retry_after(&config.retry_after, chance, own.retry_after.as_ref())?;
        let ratio = match own.budget {
            Some(_) => None,
            None => policies::budget(&config.budget)?,
        };
        Ok(Self {
            config: config.clone(),
            chance: chance.clone(),
            own,
            backoff,
            retry_after,
            hold,
            ratio,
        })
    }

    /// The budget that was configured; the user's own is the user's.
    pub(super) fn ratio_budget(&self) -> Option<&RatioBudget> {
        self.ratio.as_ref()
    }

    fn gate(&self) -> Option<Arc<dyn Gate>> {
        let configured = || self.ratio.as_ref().map(RatioBudget::as_gate);
        self.own.budget.clone().or_else(configured)
    }

    /// The breaker of a target, if it has one.
    pub(super) fn breaker(&self, upstream: &Upstream) -> Result<Option<Breaker>, InvalidConfig> {
        if let Some(make) = &self.own.breaker {
            return Ok(Some(make(&upstream.name)));
        }
        let config = upstream.target.breaker.as_ref();
        let config = config.unwrap_or(&self.config.breaker);
        policies::breaker(&upstream.name, config, &self.chance)
    }

    /// A target of the failover, around what is [below](Self::below) its breaker.
    pub(super) fn target(
        &self,
        upstream: &Upstream,
        fit: Fit,
        below: Stack,
        breaker: Option<Breaker>,
    ) -> Target<Stack, ChatRequest> {
        let leg = self.leg(below, breaker.clone());
        let failover = &self.config.failover;
        let (hold, name) = (self.hold.clone(), TargetName::from(upstream.name.as_str()));
        Target::new(upstream.name.as_str(), leg)
            .model(upstream.target.model.as_str())
            .prepare(move |request| fit.apply(request))
            .usable_if(move || {
                let state = breaker.as_ref().map(Breaker::state);
                let open = state.is_some_and(State::is_refusing);
                let held = || hold.as_ref().and_then(|hold| hold.retry_in(name.clone()));
                !open && held().is_none()
            })
            // A chat changes nothing at the vendor: asked twice, it costs twice.
            .retry_ambiguous(true)
            .sends_while_others(failover.sends_while_others)
            .patience(failover.patience)
    }

    /// What is between the failover and a target's breaker, that included.
    fn leg(&self, below: Stack, breaker: Option<Breaker>) -> Stack {
        let breaker = breaker.map(|breaker| {
            let breaker = CircuitBreakerLayer::new().with_breaker(breaker);
            // A stream that breaks after its head is a failure of its target.
            Layered::new(breaker.outcome_at_body_end(), MapResponseLayer::new(boxed))
        });
        let limits = Limits {
            max_attempts: Some(self.config.failover.sends),
            longest_hint: Some(self.config.retry_after.longest_wait),
            max_total_wait: self.config.backoff.max_total_wait,
        };
        let leg = ServiceBuilder::new()
            .layer(RetryLayer::new(Arc::clone(&self.backoff)).limits(limits))
            .layer(self.retry_after.clone())
            .layer(option_layer(breaker))
            .service(below);
        BoxCloneSyncService::new(leg)
    }

    /// What is below a target's breaker: what its own probes go through too.
    pub(super) fn below(
        &self,
        upstream: &Upstream,
        later: &[Upstream],
    ) -> Result<Stack, BuildError> {
        let (client, pool) = self.client()?;
        let takes = upstream.takes();
        let larger = later.iter().any(|l| l.takes().larger_context_than(&takes));
        let rules = upstream.reads(self.config.verdict.enabled);
        let guard = match self.config.stream.enabled {
            true => Some(policies::stream_guard(&self.config.stream, &rules)?),
            false => None,
        };
        let guard = guard.map(|guard| {
            let guard = guard.larger_context_elsewhere(larger);
            Layered::new(guard, MapResponseLayer::new(boxed))
        });
        let verdict = VendorVerdictLayer::with_rules(rules).larger_context_elsewhere(larger);
        let hop_rule = self.own.hop_rule.clone().map(|rule| {
            ClassifyLayer::new(move |out: Result<&ChatResponse, Failure<'_>>| rule(out))
        });
        let below = ServiceBuilder::new()
            .layer(option_layer(hop_rule))
            // Outside what holds a stream, which may find that the connection is dead.
            .layer(FreshLayer { pool })
            .layer(option_layer(guard))
            .map_response(boxed)
            .layer(verdict)
            .layer(self.in_flight(upstream)?)
            // The limits come with the request: they are the target's.
            .layer(AttemptTimeoutLayer::new(AttemptLimits::default()))
            .layer(WholeAnswerLayer)
            .map_request(stamp)
            .service(client);
        Ok(BoxCloneSyncService::new(below))
    }

    fn in_flight(&self, upstream: &Upstream) -> Result<InFlightLayer, InvalidConfig> {
        /// As good as none: the type of the answer's body is the same with a bound and without.
        const UNBOUNDED: usize = 1 << 24;
        let most = match self.config.in_flight.enabled {
            true => usize::try_from(upstream.target.in_flight).unwrap_or(UNBOUNDED),
            false => UNBOUNDED,
        };
        Ok(InFlightLayer::new(most)?.ready_within(self.config.failover.ready_within))
    }

    /// The client at the bottom, and its pool where it is ours.
    fn client(&self) -> Result<(AnyClient, Option<Pooled>), BuildError> {
        if let Some(client) = &self.own.client {
            return Ok((client.clone(), None));
        }
        let pool = Pooled::new(&self.config.pool)?;
        let client = ServiceBuilder::new()
            .map_response(|response: Response<_>| {
                response.map(|body: tower_http::timeout::TimeoutBody<_>| body.boxed_unsync())
            })
            .layer(ResponseBodyTimeoutLayer::new(self.config.pool.read_idle))
            .service(pool.clone())
            .map_err(BoxError::from);
        Ok((BoxCloneSyncService::new(client), Some(pool)))
    }

    /// The whole stack of streaming calls, as [`around`](Self::around).
    pub(super) fn around_streams(&self, failover: FailoverService<Stack, ChatRequest>) -> Stack {
        let config = &self.config;
        // The head of a stream that is held to its end comes with its end.
        let deadline = match (config.stream.enabled, config.stream.commit) {
            (true, Commit::Complete) => config.call.plain_deadline,
            _ => config.call.streaming_deadline,
        };
        self.around(failover, deadline)
    }

    /// The outermost layers, around the failover.
    pub(super) fn around(
        &self,
        failover: FailoverService<Stack, ChatRequest>,
        deadline: Option<Duration>,
    ) -> Stack {
        let call = match deadline {
            Some(deadline) => CallLayer::new().deadline(deadline),
            None => CallLayer::new(),
        };
        let own_key =
            self.own.idempotency_key.clone().map(|make| {
                IdempotencyKeyLayer::made_by(move |request: &ChatRequest| make(request))
            });
        let random = self.config.idempotency_key.enabled && own_key.is_none();
        let random = random.then(|| IdempotencyKeyLayer::new().chance(self.chance.clone()));
        let stack = ServiceBuilder::new()
            .map_response(note_content)
            .layer(call)
            .layer(option_layer(random))
            .layer(option_layer(own_key))
            .layer(option_layer(self.gate().map(RetryBudgetLayer::shared)))
            .service(failover);
        BoxCloneSyncService::new(stack)
    }
}

fn boxed<B>(response: Response<B>) -> ChatResponse
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    response.map(|body| body.map_err(Into::into).boxed_unsync())
}

/// The first content of a plain answer is all of it; that of a stream its guard has seen.
fn note_content(response: ChatResponse) -> ChatResponse {
    let failed = |reading: &Reading| reading.class() != Class::Success;
    let extensions = response.extensions();
    let answers = response.status().is_success() && !extensions.get().is_some_and(failed);
    if let (true, false, Some(ledger)) = (answers, is_stream(&response), extensions.get::<Ledger>())
    {
        ledger.saw_first_content(ledger.last_seen());
    }
    response
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
