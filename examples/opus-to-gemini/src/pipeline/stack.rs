//! How the layers are put together.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use rustls::RootCertStore;
use tower::{
    ServiceBuilder,
    layer::util::Stack as Layered,
    util::{BoxCloneSyncService, MapResponseLayer, option_layer},
};
use tower_circuit_breaker::CircuitBreakerLayer;
use tower_failover::{FailoverService, Target};
use tower_retry_budget::{RatioBudget, RetryBudgetLayer};
use tower_spillway_core::{
    BoxError, Chance, Class, Failure, Gate, InvalidConfig, Ledger, Limits, Reading, RetryLayer,
    attempt_timeout::{AttemptLimits, AttemptTimeoutLayer},
    call::CallLayer,
    classify::ClassifyLayer,
    idempotency_key::IdempotencyKeyLayer,
    in_flight::InFlightLayer,
};
use tower_spillway_llm::VendorVerdictLayer;

use super::{
    client::Bottom,
    error::BuildError,
    fresh::FreshLayer,
    hollow::{self, PlainAnswer},
    member::Member,
    own::{AnyPolicy, Own},
    policies, refusal,
    secret::Secrets,
    service::{Parts, Pipeline},
    state::State,
    trust,
    whole::{WholeAnswerLayer, is_stream, looked_into},
};
use crate::config::{Commit, Config, Refusals};

/// A chat request in OpenAI's shape. Its address, credentials and model are set per target.
pub type ChatRequest = Request<Full<Bytes>>;

/// A plain answer, whole, or a stream as it comes.
pub type AnswerBody = UnsyncBoxBody<Bytes, BoxError>;

/// A vendor's answer.
pub type ChatResponse = Response<AnswerBody>;

/// A part of the stack with a type that can be named.
pub(super) type Stack = BoxCloneSyncService<ChatRequest, ChatResponse, BoxError>;

/// Makes a whole stack with a deadline.
pub(super) type Around = Arc<dyn Fn(Option<Duration>) -> Stack + Send + Sync>;

/// The policies, as configured or the user's own.
pub(super) struct Layers {
    pub(super) config: Arc<Config>,
    pub(super) chance: Chance,
    pub(super) own: Own,
    pub(super) roots: Arc<RootCertStore>,
    backoff: AnyPolicy,
    ratio: Option<RatioBudget>,
}

/// What the later targets of a chain can do that one cannot.
#[derive(Clone, Copy, Default)]
pub(super) struct Elsewhere {
    /// More fits.
    larger_context: bool,
    /// What a content policy keeps back is asked for again.
    refusals: bool,
}

impl Layers {
    pub(super) fn new(config: &Config, chance: &Chance, own: Own) -> Result<Self, BuildError> {
        let ratio = match own.budget {
            Some(_) => None,
            None => policies::budget(&config.budget)?,
        };
        Self::with_budget(config, chance, own, ratio)
    }

    /// With a budget that is there already.
    pub(super) fn with_budget(
        config: &Config,
        chance: &Chance,
        own: Own,
        ratio: Option<RatioBudget>,
    ) -> Result<Self, BuildError> {
        let backoff = match &own.backoff {
            Some(backoff) => Arc::clone(backoff),
            None => policies::backoff(&config.backoff, chance)?,
        };
        Ok(Self {
            config: Arc::new(config.clone()),
            chance: chance.clone(),
            own,
            roots: trust::roots(&config.tls)?,
            backoff,
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

    /// These targets as a chain.
    pub(super) fn chain(&self, members: &[&Member]) -> Result<Pipeline, BuildError> {
        let enabled: Vec<&Member> = members.iter().copied().filter(|m| m.is_enabled()).collect();
        let most = match self.config.failover.enabled {
            true => enabled.len(),
            false => 1,
        };
        let asked = enabled.get(..most).unwrap_or_default();
        let targets = asked.iter().enumerate().map(|(index, member)| {
            let later = asked.get(index.saturating_add(1)..).unwrap_or_default();
            self.target(member, self.elsewhere(member, later))
        });
        let targets = targets.collect::<Result<Vec<_>, _>>()?;
        let failover =
            FailoverService::new(targets)?.ready_within(self.config.failover.ready_within);
        let around = self.around(failover);
        Ok(Pipeline::new(Parts {
            plain: around(self.config.call.plain_deadline),
            streaming: around(self.streaming_deadline()),
            around,
            breakers: asked.iter().filter_map(|m| m.breaker()).cloned().collect(),
            probes: asked.iter().filter_map(|m| m.probe()).cloned().collect(),
            budget: self.ratio.clone(),
            secrets: Secrets::new(asked.iter().flat_map(|m| m.state().upstream.secrets())),
        }))
    }

    /// What the targets that follow in this chain can do; the same one may be the last of another.
    fn elsewhere(&self, member: &Member, later: &[&Member]) -> Elsewhere {
        let goes_on = self.config.failover.refusals == Refusals::Next;
        Elsewhere {
            larger_context: later.iter().any(|l| l.has_larger_context_than(member)),
            refusals: goes_on && !later.is_empty(),
        }
    }

    /// A target of the failover.
    fn target(
        &self,
        member: &Member,
        elsewhere: Elsewhere,
    ) -> Result<Target<Stack, ChatRequest>, InvalidConfig> {
        let below = self.below(member.state(), elsewhere)?;
        let leg = self.leg(member, below);
        let failover = &self.config.failover;
        let (fit, watched) = (member.fit(), member.clone());
        Ok(Target::new(member.name(), leg)
            .model(member.model())
            .prepare(move |request| fit.apply(request))
            .usable_if(move || watched.is_usable())
            // A chat changes nothing at the vendor: asked twice, it costs twice.
            .retry_ambiguous(true)
            .sends_while_others(failover.sends_while_others)
            .patience(failover.patience))
    }

    /// What is between the failover and a target's breaker, that included.
    fn leg(&self, member: &Member, below: Stack) -> Stack {
        let breaker = member.breaker().cloned();
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
            .layer(policies::retry_after(self, member.state().hold.as_ref()))
            .layer(option_layer(breaker))
            .service(below);
        BoxCloneSyncService::new(leg)
    }

    /// What is below a target's breaker: what its own probes go through too.
    pub(super) fn below(
        &self,
        state: &State,
        elsewhere: Elsewhere,
    ) -> Result<Stack, InvalidConfig> {
        let Elsewhere {
            larger_context: larger,
            refusals,
        } = elsewhere;
        let Bottom { client, pool } = state.bottom.clone();
        let bodies = self.config.verdict.enabled;
        let rules = state.upstream.reads(bodies, refusals);
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
        let in_flight = InFlightLayer::with_permits(state.permits.clone())
            .ready_within(self.config.failover.ready_within);
        let below = ServiceBuilder::new()
            .layer(option_layer(hop_rule))
            // Outside what holds a stream, which may find that the connection is dead.
            .layer(FreshLayer { pool })
            .layer(option_layer(guard))
            .map_response(boxed)
            .layer(verdict)
            .layer(in_flight)
            // The limits come with the request: they are the target's.
            .layer(AttemptTimeoutLayer::new(AttemptLimits::default()))
            .map_response(move |answer| {
                looked_into(answer, |body, extensions| {
                    let answer = PlainAnswer::read(body);
                    let hollow = (bodies && answer.is_none()).then(hollow::no_answer);
                    let kept_back = || refusals.then(|| refusal::judge(body)).flatten();
                    if let Some(reading) = hollow.or_else(kept_back) {
                        extensions.insert(reading);
                    }
                    if let Some(answer) = answer {
                        extensions.insert(answer);
                    }
                })
            })
            .layer(WholeAnswerLayer)
            .map_request(stamp)
            .service(client);
        Ok(BoxCloneSyncService::new(below))
    }

    fn streaming_deadline(&self) -> Option<Duration> {
        let config = &self.config;
        // The head of a stream that is held to its end comes with its end.
        match (config.stream.enabled, config.stream.commit) {
            (true, Commit::Complete) => config.call.plain_deadline,
            _ => config.call.streaming_deadline,
        }
    }

    /// The outermost layers, around the failover, with a deadline or without.
    fn around(&self, failover: FailoverService<Stack, ChatRequest>) -> Around {
        let own_key =
            self.own.idempotency_key.clone().map(|make| {
                IdempotencyKeyLayer::made_by(move |request: &ChatRequest| make(request))
            });
        let random = self.config.idempotency_key.enabled && own_key.is_none();
        let random = random.then(|| IdempotencyKeyLayer::new().chance(self.chance.clone()));
        let stack = ServiceBuilder::new()
            .layer(option_layer(random))
            .layer(option_layer(own_key))
            .layer(option_layer(self.gate().map(RetryBudgetLayer::shared)))
            .service(failover);
        Arc::new(move |deadline| {
            let call = match deadline {
                Some(deadline) => CallLayer::new().deadline(deadline),
                None => CallLayer::new(),
            };
            let stack = ServiceBuilder::new()
                .map_response(note_content)
                .layer(call)
                .service(stack.clone());
            BoxCloneSyncService::new(stack)
        })
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
