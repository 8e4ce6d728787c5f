//! `/metrics`: what the layers count through the `metrics` facade, and what the gateway adds.
//!
//! | name | kind | labels | what |
//! |---|---|---|---|
//! | `spillway.gateway.calls` | counter | `target`, `status`, `outcome` | calls that are over |
//! | `spillway.gateway.in_flight` | gauge | | calls that are not, waiting ones included |
//! | `spillway.gateway.latency_seconds` | histogram | `target`, `stream` | of answered calls, from the request to the last byte |
//! | `spillway.gateway.first_content_seconds` | histogram | `target` | of answered streams, to the first content |
//! | `spillway.gateway.tokens` | counter | `target`, `kind` | of answers, as their vendors counted them: `input`, `cached`, `output` |
//! | `spillway.gateway.cost_dollars` | gauge | `target` | what answers cost, where tokens and prices are known |
//!
//! As Prometheus has it, `/metrics` writes names with `_` for `.` and counters with `_total` at their
//! end, each with its help.
//!
//! No label is made of what a caller sent.

use std::{sync::OnceLock, time::Duration};

use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use metrics::{
    Gauge, Label, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

use super::{calls::Entry, error::ApiError};

const LATENCY: &str = "spillway.gateway.latency_seconds";
const FIRST_CONTENT: &str = "spillway.gateway.first_content_seconds";

/// From a fake on this machine to a long answer.
const BUCKETS: [f64; 14] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 180.0,
];

/// As many tokens of one answer are counted, whatever its vendor says: past its end a counter would
/// begin again.
const MOST_TOKENS: u64 = 1 << 40;

static HANDLE: OnceLock<Option<PrometheusHandle>> = OnceLock::new();

/// Takes the facade, if nothing has it yet.
pub(super) fn install() {
    HANDLE.get_or_init(|| {
        let mut builder = PrometheusBuilder::new().with_recommended_naming(true);
        for name in [LATENCY, FIRST_CONTENT] {
            let matcher = Matcher::Full(name.to_owned());
            builder = builder.set_buckets_for_metric(matcher, &BUCKETS).ok()?;
        }
        let recorder = builder.build_recorder();
        let handle = recorder.handle();
        metrics::set_global_recorder(recorder).ok()?;
        describe();
        Some(handle)
    });
}

/// What each figure is, those of the layers included.
fn describe() {
    tower_spillway_core::metrics::describe_metrics();
    tower_retry_after::metrics::describe_metrics();
    tower_circuit_breaker::describe_metrics();
    tower_retry_budget::describe_metrics();
    tower_failover::describe_metrics();
    describe_counter!("spillway.gateway.calls", "Calls that are over.");
    describe_gauge!(
        "spillway.gateway.in_flight",
        "Calls that are not over, waiting ones included."
    );
    describe_histogram!(
        LATENCY,
        "Seconds of answered calls, from the request to the last byte."
    );
    describe_histogram!(
        FIRST_CONTENT,
        "Seconds of answered streams, from the request to the first content."
    );
    describe_counter!(
        "spillway.gateway.tokens",
        "Tokens of answers, as their vendors counted them."
    );
    describe_gauge!(
        "spillway.gateway.cost_dollars",
        "US dollars that answers cost, where tokens and prices are known."
    );
}

fn handle() -> Option<&'static PrometheusHandle> {
    HANDLE.get()?.as_ref()
}

/// Histograms keep every value until somebody asks, or this is called.
pub(super) fn upkeep() {
    if let Some(handle) = handle() {
        handle.run_upkeep();
    }
}

pub(super) async fn render() -> Response {
    let Some(handle) = handle() else {
        let message = "Metrics are collected elsewhere in this process.";
        let error = ApiError::invalid(StatusCode::NOT_FOUND, "not_found", message);
        return error.into_response();
    };
    let kind = [(
        header::CONTENT_TYPE,
        "text/plain; version=0.0.4; charset=utf-8",
    )];
    (kind, handle.render()).into_response()
}

/// Of calls that are not over.
pub(super) fn in_flight() -> Gauge {
    gauge!("spillway.gateway.in_flight")
}

/// A call is over.
pub(super) fn ended(entry: &Entry, took: Duration) {
    let target = Label::new("target", entry.target.clone().unwrap_or_default());
    let status = entry.status.map_or_else(String::new, |s| s.to_string());
    let labels = vec![
        target.clone(),
        Label::new("status", status),
        Label::from_static_parts("outcome", entry.outcome.as_str()),
    ];
    counter!("spillway.gateway.calls", labels).increment(1);
    if !entry.is_answer() {
        return;
    }
    let stream = Label::from_static_parts("stream", if entry.stream { "true" } else { "false" });
    histogram!(LATENCY, vec![target.clone(), stream]).record(took);
    if let Some(millis) = entry.first_content_ms {
        let first = Duration::from_millis(millis);
        histogram!(FIRST_CONTENT, vec![target.clone()]).record(first);
    }
    if let Some(tokens) = entry.tokens {
        let kinds = [
            ("input", tokens.input),
            ("cached", tokens.cached),
            ("output", tokens.output),
        ];
        for (kind, count) in kinds {
            let labels = vec![target.clone(), Label::from_static_parts("kind", kind)];
            counter!("spillway.gateway.tokens", labels).increment(count.min(MOST_TOKENS));
        }
    }
    if let Some(cost) = entry.cost {
        gauge!("spillway.gateway.cost_dollars", vec![target]).increment(cost);
    }
}
