//! The policies that a file sets.

use std::sync::Arc;

use tower::util::Either;
use tower_circuit_breaker::{Breaker, BreakerConfig, Rule};
use tower_jitter_backoff::{Constant, Exponential, JitterBackoff, Schedule};
use tower_retry_after::{
    Holding, RetryAfter, RetryAfterLayer,
    hold::{HoldConfig, SharedHold},
};
use tower_retry_budget::{RatioBudget, RatioConfig};
use tower_spillway_core::{
    Chance, History, Http, InvalidConfig, Outcome, Policy, RetryLayer, Verdict,
};
use tower_spillway_llm::{Commit, Rules, StreamGuardLayer};

use super::{
    own::AnyPolicy,
    stack::{ChatResponse, Layers},
};
use crate::config::{self, BackoffKind, BreakerKind, RetryAfterKind};

/// Has no opinion: what a policy that is not enabled says.
struct Silent;

impl Policy<ChatResponse> for Silent {
    fn judge(&self, _: &History, _: &Outcome<'_, ChatResponse>) -> Verdict {
        Verdict::Pass
    }
}

pub(super) fn backoff(
    config: &config::Backoff,
    chance: &Chance,
) -> Result<AnyPolicy, InvalidConfig> {
    if !config.enabled {
        return Ok(Arc::new(Silent));
    }
    let schedule: Schedule = match config.kind {
        BackoffKind::Exponential => Exponential::new(config.base, config.cap)?.into(),
        BackoffKind::Constant => Constant::new(config.base)?.into(),
    };
    Ok(Arc::new(
        JitterBackoff::new(schedule).chance(chance.clone()),
    ))
}

/// Each call for itself, or one hint for all calls to a target.
pub(super) type RetryAfterEither = Either<RetryAfterLayer<Http, Holding>, RetryLayer<AnyPolicy>>;

/// The layer of a target.
pub(super) fn retry_after(layers: &Layers, hold: Option<&SharedHold>) -> RetryAfterEither {
    let per_call = |policy| Either::Right(RetryLayer::new(policy));
    match (&layers.own.retry_after, hold) {
        (Some(own), _) => per_call(Arc::clone(own)),
        (None, Some(hold)) => Either::Left(
            RetryAfterLayer::new()
                .chance(layers.chance.clone())
                .shared_hold(hold.clone()),
        ),
        (None, None) if layers.config.retry_after.enabled => {
            per_call(Arc::new(RetryAfter::new().chance(layers.chance.clone())))
        }
        (None, None) => per_call(Arc::new(Silent)),
    }
}

/// A target's hold, if a hint holds all calls to it.
pub(super) fn hold(layers: &Layers) -> Result<Option<SharedHold>, InvalidConfig> {
    let config = &layers.config.retry_after;
    let shared = config.enabled && config.kind == RetryAfterKind::Shared;
    match shared && layers.own.retry_after.is_none() {
        true => SharedHold::new(HoldConfig::new().max_hold(config.max_hold)).map(Some),
        false => Ok(None),
    }
}

pub(super) fn stream_guard(
    config: &config::Stream,
    rules: &Rules,
) -> Result<StreamGuardLayer, InvalidConfig> {
    let commit = match config.commit {
        config::Commit::FirstContent => Commit::FirstContent,
        config::Commit::Complete => Commit::Complete,
    };
    let bytes = |bytes: u32| usize::try_from(bytes).unwrap_or(usize::MAX);
    // The limits come with the request: they are the target's.
    StreamGuardLayer::with_rules(rules.clone())
        .commit(commit)
        .most_held(bytes(config.most_held))?
        .most_answer(bytes(config.most_answer))
}

pub(super) fn budget(config: &config::Budget) -> Result<Option<RatioBudget>, InvalidConfig> {
    if !config.enabled {
        return Ok(None);
    }
    let budget = RatioConfig::new()
        .ratio(f64::from(config.percent) / 100.0)
        .reserve(config.reserve)
        .ttl(config.ttl);
    budget.build().map(Some)
}

pub(super) fn breaker(
    target: &str,
    config: &config::Breaker,
    chance: &Chance,
) -> Result<Option<Breaker>, InvalidConfig> {
    if !config.enabled {
        return Ok(None);
    }
    let mut rules = vec![Rule::run(config.failures)];
    if config.kind == BreakerKind::ConsecutiveOrOfLast {
        rules.push(Rule::number_of_last(config.bad, config.of_last).within(config.within));
    }
    let settings = BreakerConfig::new()
        .rules(rules)
        .ramp(config.ramp)
        .open_time(config.open)
        .max_open_time(config.max_open)
        .close_after(config.close_after)
        .abandoned_after(config.abandoned_after)
        .chance(chance.clone());
    Breaker::new(target, settings).map(Some)
}
