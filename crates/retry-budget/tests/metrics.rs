//! Names, labels and values of what budgets tell.
#![cfg(feature = "metrics")]
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::{collections::BTreeMap, future::Future, sync::Arc};

use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use tokio::time::Instant;
use tower_retry_budget::{
    ConcurrencyBudget, CostConfig, RatioConfig, RetryBudgetLayer, ScoreBudget, Weights,
};
use tower_spillway_core::{
    Class, Gate,
    gate::{Ask, Grant},
};

/// Every value as `name{budget,name}`.
fn told(run: impl Future) -> BTreeMap<String, f64> {
    let recorder = DebuggingRecorder::new();
    let seen = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || {
        tower_retry_budget::describe_metrics();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build();
        runtime.unwrap().block_on(run);
    });
    let all = seen.snapshot().into_vec().into_iter();
    all.map(|(key, _, help, value)| {
        assert!(help.is_some(), "{key:?} is described");
        let key = key.key();
        let labels: Vec<_> = key.labels().map(|l| l.value().to_owned()).collect();
        let names: Vec<_> = key.labels().map(|l| l.key().to_owned()).collect();
        assert_eq!(names, ["budget", "name"]);
        let value = match value {
            DebugValue::Counter(n) => n as f64,
            DebugValue::Gauge(n) => n.into_inner(),
            DebugValue::Histogram(_) => unreachable!("no histogram"),
        };
        (format!("{}{{{}}}", key.name(), labels.join(",")), value)
    })
    .collect()
}

fn ask(gate: &Arc<dyn Gate>) -> Option<Grant> {
    Grant::withdraw(gate, &Ask::retry(Class::Transient, Instant::now()))
}

fn map<const N: usize>(expected: [(&str, f64); N]) -> BTreeMap<String, f64> {
    expected.map(|(name, n)| (name.to_owned(), n)).into()
}

#[test]
fn a_ratio_by_its_name() {
    let told = told(async {
        let config = RatioConfig::new().ratio(0.0).reserve(2);
        let gate = config
            .build()
            .unwrap()
            .named("shared")
            .named("late")
            .as_gate();
        gate.first_end(Class::Success, Instant::now());
        let grants: Vec<_> = (0..3).map(|_| ask(&gate)).collect();
        assert_eq!(grants.iter().flatten().count(), 2);
    });
    assert_eq!(
        told,
        map([
            ("spillway.budget.granted{ratio,shared}", 2.0),
            ("spillway.budget.denied{ratio,shared}", 1.0),
            ("spillway.budget.balance{ratio,shared}", 2.0),
        ]),
        "what was not sent is back"
    );
}

#[test]
fn a_budget_of_a_target_has_its_name() {
    let told = told(async {
        let layer = RetryBudgetLayer::ratio(RatioConfig::new()).unwrap();
        ask(&layer.budget("opus").unwrap().as_gate())
            .unwrap()
            .finish(Class::Transient);
        ask(&layer.unnamed_budget().unwrap().as_gate())
            .unwrap()
            .finish(Class::Transient);
    });
    assert_eq!(
        told,
        map([
            ("spillway.budget.granted{ratio,opus}", 1.0),
            ("spillway.budget.balance{ratio,opus}", 9.0),
            ("spillway.budget.granted{ratio,unnamed}", 1.0),
            ("spillway.budget.balance{ratio,unnamed}", 9.0),
        ])
    );
}

#[test]
fn the_others_tell_in_their_own_measure() {
    let told = told(async {
        let cost = CostConfig::new()
            .costs(Weights::AWS)
            .build()
            .unwrap()
            .as_gate();
        ask(&cost).unwrap().finish(Class::Transient);
        let score = ScoreBudget::new(10, 0.1).unwrap().as_gate();
        score.attempt_end(Class::Transient, Instant::now());
        assert!(ask(&score).is_some());
        let flight = ConcurrencyBudget::new(100, 0).unwrap().as_gate();
        flight.enter(Instant::now());
        let out = ask(&flight).unwrap();
        assert!(ask(&flight).is_none());
        out.finish(Class::Success);
    });
    assert_eq!(
        told,
        map([
            ("spillway.budget.granted{cost,unnamed}", 1.0),
            ("spillway.budget.balance{cost,unnamed}", 486.0),
            ("spillway.budget.granted{score,unnamed}", 1.0),
            ("spillway.budget.balance{score,unnamed}", 9.0),
            ("spillway.budget.granted{concurrency,unnamed}", 1.0),
            ("spillway.budget.denied{concurrency,unnamed}", 1.0),
            ("spillway.budget.balance{concurrency,unnamed}", 1.0),
        ])
    );
}
