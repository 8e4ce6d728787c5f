//! Names and labels of what the shared hold counts.
#![cfg(feature = "metrics")]
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::{collections::BTreeMap, time::Duration};

use http::{Request, Response};
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use tower::{Layer, ServiceExt};
use tower_retry_after::{RetryAfterLayer, hold::HoldConfig};
use tower_spillway_core::testing::script::{Script, Step};

#[test]
fn holds_and_refusals_without_any_key() {
    let recorder = DebuggingRecorder::new();
    let seen = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || {
        tower_retry_after::metrics::describe_metrics();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build();
        runtime.unwrap().block_on(async {
            let upstream = Script::from_fn(|n, _: &Request<String>| {
                Step::answer_with(move || {
                    let builder = Response::builder();
                    let builder = match n {
                        1 => builder.status(429).header("retry-after", "7"),
                        _ => builder.status(200),
                    };
                    builder.body(String::new()).unwrap()
                })
            });
            let layer = RetryAfterLayer::new().max_attempts(1).unwrap();
            let client = layer.hold(HoldConfig::new()).unwrap().layer(upstream);
            let call = |key: &str| {
                let builder = Request::builder().header("authorization", key);
                client.clone().oneshot(builder.body(String::new()).unwrap())
            };
            assert_eq!(call("key-1").await.unwrap().status(), 429);
            // Held: refused, waits, sent.
            assert_eq!(call("key-2").await.unwrap().status(), 200);
            tokio::time::sleep(Duration::from_secs(60)).await;
            assert_eq!(call("key-2").await.unwrap().status(), 200);
        });
    });
    let all = seen.snapshot().into_vec().into_iter();
    let counted: BTreeMap<_, _> = all
        .filter(|(key, ..)| key.key().name().starts_with("spillway.hold"))
        .map(|(key, _, help, value)| {
            assert!(help.is_some(), "{key:?} is described");
            let labels = key.key().labels();
            let labels: Vec<_> = labels
                .map(|l| (l.key().to_owned(), l.value().to_owned()))
                .collect();
            let DebugValue::Counter(n) = value else {
                unreachable!("only counters")
            };
            ((key.key().name().to_owned(), labels), n)
        })
        .collect();
    let target = || ("target".to_owned(), String::new());
    let event = |event: &str| vec![target(), ("event".to_owned(), event.to_owned())];
    let expected = [
        (("spillway.hold.refused".to_owned(), vec![target()]), 1),
        (("spillway.holds".to_owned(), event("began")), 1),
        (("spillway.holds".to_owned(), event("over")), 1),
    ];
    assert_eq!(counted, expected.into());
}
