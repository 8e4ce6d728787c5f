//! Names, labels and values of what a failover tells.
#![cfg(feature = "metrics")]
#![allow(clippy::unwrap_used, reason = "a test may")]

use http::{Request, Response, StatusCode};
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use tower::ServiceExt;
use tower_failover::{FailoverService, Target};
use tower_spillway_core::{
    Refusal, Refused,
    testing::script::{Script, Step},
};

type Upstream = Script<Request<String>, Response<String>>;

fn answers(code: u16) -> Upstream {
    let mut response = Response::new(String::new());
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    Script::always(Step::answer(response))
}

/// Every counter of two calls, of one name.
fn counted(name: &str, targets: Vec<Target<Upstream, Request<String>>>) -> Vec<(String, u64)> {
    let client = FailoverService::new(targets).unwrap();
    let recorder = DebuggingRecorder::new();
    let seen = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || {
        tower_failover::describe_metrics();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        runtime.unwrap().block_on(async {
            for _ in 0..2 {
                let request = Request::post("/").body(String::new()).unwrap();
                let response = client.clone().oneshot(request).await.unwrap();
                assert_eq!(response.status(), 200);
            }
        });
    });
    let all = seen.snapshot().into_vec().into_iter();
    let mut counted: Vec<_> = all
        .filter(|(key, ..)| key.key().name() == name)
        .map(|(key, _, help, value)| {
            assert!(help.is_some(), "{key:?} is described");
            let labels = key.key().labels();
            let labels: Vec<_> = labels
                .map(|l| format!("{}={}", l.key(), l.value()))
                .collect();
            let DebugValue::Counter(n) = value else {
                unreachable!("only counters")
            };
            (labels.join(" "), n)
        })
        .collect();
    counted.sort();
    counted
}

#[test]
fn hops_by_where_from_where_to_and_why() {
    let refuses: Upstream = Script::always(Step::fail(|| Refused::new(Refusal::Open)));
    let targets = vec![
        Target::new("opus", refuses),
        Target::new("sonnet", answers(429)),
        Target::new("gemini", answers(200)),
    ];
    let hop = |labels: &str| (labels.to_owned(), 2);
    assert_eq!(
        counted("spillway.failover.hops", targets),
        [
            hop("from=opus to=sonnet cause=refused"),
            hop("from=sonnet to=gemini cause=throttled"),
        ]
    );
}

/// A 502 may hide an answer that is billed; a 429 does not.
#[test]
fn hops_in_doubt_are_possible_duplicates() {
    let targets = vec![
        Target::new("opus", answers(429)).retry_ambiguous(true),
        Target::new("sonnet", answers(502)).retry_ambiguous(true),
        Target::new("gemini", answers(200)),
    ];
    assert_eq!(
        counted("spillway.possible_duplicates", targets),
        [("target=sonnet".to_owned(), 2)]
    );
}
