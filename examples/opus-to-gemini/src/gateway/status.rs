//! `/status`: how everything is, as JSON.

use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, header};
use serde_json::{Value, json};
use tower_circuit_breaker::Breaker;
use tower_spillway_core::clock::{self, millis};

use super::{Gateway, gateway::Current, headers, wall::now_ms};
use crate::pipeline::Member;

pub(super) async fn status(State(gateway): State<Gateway>) -> Response {
    let body = shown(&gateway).to_string();
    let headers = [
        (header::CONTENT_TYPE, headers::JSON),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (headers, Body::from(body)).into_response()
}

/// Times are in milliseconds; `*_at_ms` of Unix time.
fn shown(gateway: &Gateway) -> Value {
    let current = gateway.current();
    let (started, started_at_ms) = gateway.started();
    let uptime = clock::now().saturating_duration_since(started);
    let members = current.fleet.members();
    let targets: Vec<Value> = members.iter().map(|m| target(gateway, m)).collect();
    let serving = members.iter().find(|m| m.is_usable()).map(Member::name);
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "now_at_ms": now_ms(),
        "started_at_ms": started_at_ms,
        "uptime_ms": millis(uptime),
        "usable": current.fleet.usable(),
        "serving": serving,
        "targets": targets,
        "models": current.fleet.models(),
        "routes": routes(&current),
        "budget": budget(&current),
        "calls": calls(gateway),
        "last_calls": gateway.calls().show(),
    })
}

/// Where each model or pattern of the file goes, and who of its chain could serve it now.
fn routes(current: &Current) -> Value {
    let config = current.fleet.config();
    let usable = |name: &&str| current.fleet.member(name).is_some_and(Member::is_usable);
    let routes = config.routes.iter().map(|(model, route)| {
        let chain = config.targets_of_route(route).unwrap_or_default();
        let serving = chain.iter().copied().find(usable);
        json!({ "model": model, "targets": chain, "serving": serving })
    });
    Value::Array(routes.collect())
}

fn target(gateway: &Gateway, member: &Member) -> Value {
    let breaker = member.breaker().map(|b| breaker(gateway, member.name(), b));
    json!({
        "name": member.name(),
        "model": member.model(),
        "vendor": member.vendor().as_str(),
        "endpoint": member.endpoint(),
        "enabled": member.is_enabled(),
        "usable": member.is_usable(),
        "breaker": breaker,
        "held_for_ms": member.retry_in().map(millis),
        "in_flight": member.in_flight(),
        "most_in_flight": member.most_in_flight(),
        "figures": gateway.figures().show(member.name()),
    })
}

fn breaker(gateway: &Gateway, name: &str, breaker: &Breaker) -> Value {
    let seen = breaker.snapshot();
    json!({
        "state": seen.state.as_str(),
        "since_at_ms": gateway.since().at(name, seen.state),
        "reason": seen.reason.map(|reason| reason.as_str()),
        "retry_in_ms": seen.retry_in.map(millis),
        "ramping_for_ms": seen.ramping_for.map(millis),
        "failures_in_a_row": seen.failures_in_a_row,
        "calls": seen.calls,
        "bad_calls": seen.bad_calls,
        "trips": seen.trips,
        "reopenings": seen.reopenings,
        "own_probes": seen.own_probes,
        "own_probes_good": seen.own_probes_good,
    })
}

fn budget(current: &Current) -> Value {
    current.fleet.budget().map_or(Value::Null, |budget| {
        let seen = budget.snapshot();
        json!({
            "balance": seen.balance,
            "granted": seen.granted,
            "denied": seen.denied,
        })
    })
}

fn calls(gateway: &Gateway) -> Value {
    let queue = gateway.queue();
    json!({
        "in_flight": queue.in_flight(),
        "most_in_flight": queue.most_in_flight(),
        "waiting": queue.waiting(),
        "most_waiting": queue.most_waiting(),
    })
}
