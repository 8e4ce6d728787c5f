//! Names, labels and values of what breakers tell.
#![cfg(feature = "metrics")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

use std::{collections::BTreeMap, convert::Infallible, future::Future, time::Duration};

use http::{Request, Response};
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use tokio::time::advance;
use tower::{Layer, ServiceExt, service_fn};
use tower_circuit_breaker::{Breaker, BreakerConfig, CircuitBreakerLayer};
use tower_spillway_core::TargetName;

/// Every value as `name{label=value,…}`.
fn told(run: impl Future) -> BTreeMap<String, f64> {
    let recorder = DebuggingRecorder::new();
    let seen = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || {
        tower_circuit_breaker::describe_metrics();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build();
        runtime.unwrap().block_on(run);
    });
    let all = seen.snapshot().into_vec().into_iter();
    all.map(|(key, _, help, value)| {
        assert!(help.is_some(), "{key:?} is described");
        let labels = key.key().labels();
        let labels: Vec<_> = labels
            .map(|l| format!("{}={}", l.key(), l.value()))
            .collect();
        let value = match value {
            DebugValue::Counter(n) => n as f64,
            DebugValue::Gauge(n) => n.into_inner(),
            DebugValue::Histogram(_) => panic!("no histogram"),
        };
        let name = key.key().name();
        (format!("{name}{{{}}}", labels.join(",")), value)
    })
    .collect()
}

fn map<const N: usize>(expected: [(&str, f64); N]) -> BTreeMap<String, f64> {
    expected.map(|(name, n)| (name.to_owned(), n)).into()
}

fn config() -> BreakerConfig {
    BreakerConfig::new().failures(1).jitter(0.0)
}

#[test]
fn one_gauge_transitions_and_refusals() {
    let told = told(async {
        let breaker = Breaker::new("opus", config()).unwrap();
        breaker.permit().unwrap().failure();
        breaker.permit().unwrap_err();
        breaker.permit().unwrap_err();
        advance(Duration::from_secs(5)).await;
        breaker.permit().unwrap().failure();
        breaker.force_open();
        breaker.permit().unwrap_err();
    });
    let transitions = |n| format!("spillway.breaker.transitions{{target=opus,{n}}}");
    let refusals = |n| format!("spillway.breaker.refusals{{target=opus,{n}}}");
    assert_eq!(
        told,
        map([
            ("spillway.breaker.state{target=opus}", 3.0),
            (&transitions("from=closed,to=open,reason=consecutive"), 1.0),
            (
                &transitions("from=open,to=half_open,reason=consecutive"),
                1.0
            ),
            (
                &transitions("from=half_open,to=open,reason=probe_failed"),
                1.0
            ),
            (&transitions("from=open,to=forced_open,reason="), 1.0),
            (&refusals("refusal=breaker_open,reason=consecutive"), 2.0),
            (&refusals("refusal=breaker_forced_open,reason="), 1.0),
        ])
    );
}

#[test]
fn the_gauge_says_each_state() {
    let last = |put: fn(&Breaker)| {
        let told = told(async move {
            put(&Breaker::new("opus", config()).unwrap());
        });
        told.get("spillway.breaker.state{target=opus}").copied()
    };
    assert_eq!(last(|_| ()), Some(0.0));
    assert_eq!(last(Breaker::half_open), Some(1.0));
    assert_eq!(last(Breaker::trip), Some(2.0));
    assert_eq!(last(Breaker::force_open), Some(3.0));
    assert_eq!(last(Breaker::metrics_only), Some(-1.0));
    assert_eq!(last(Breaker::disable), Some(-2.0));
}

#[test]
fn probes_without_users() {
    let told = told(async {
        let breaker = Breaker::new("opus", config()).unwrap();
        let mut probes = 0;
        let target = service_fn(move |_: Request<String>| {
            probes += 1;
            let mut response = Response::new(String::new());
            if probes == 1 {
                *response.status_mut() = http::StatusCode::BAD_GATEWAY;
            }
            async { Ok::<_, Infallible>(response) }
        });
        let second = Duration::from_secs(1);
        tokio::spawn(
            breaker
                .probe_with(target, Request::new(String::new()), second)
                .unwrap(),
        );
        breaker.trip();
        tokio::time::sleep(Duration::from_millis(11_300)).await;
    });
    let probes = |outcome: &str| {
        let name = format!("spillway.breaker.probes{{target=opus,outcome={outcome}}}");
        told.get(&name).copied()
    };
    // At 5 s, then 2 s later for the bad one, then each second; closed with the sixth.
    assert_eq!((probes("bad"), probes("good")), (Some(1.0), Some(5.0)));
}

// A key is made of a request: it is in no label.
#[test]
fn keys_are_not_shown() {
    let told = told(async {
        let layer = CircuitBreakerLayer::with_config(config()).unwrap();
        let layer = layer.keyed(|request: &Request<String>| {
            Some(TargetName::from(request.uri().path().to_owned()))
        });
        let service = layer.layer(service_fn(|_: Request<String>| async {
            Err::<Response<String>, _>(std::io::Error::other("down"))
        }));
        for _ in 0..2 {
            let request = Request::get("/secret").body(String::new()).unwrap();
            let _ = service.clone().oneshot(request).await;
        }
    });
    assert_eq!(
        told,
        map([
            (
                "spillway.breaker.transitions{target=,from=closed,to=open,reason=consecutive}",
                1.0
            ),
            (
                "spillway.breaker.refusals{target=,refusal=breaker_open,reason=consecutive}",
                1.0
            ),
        ])
    );
}
