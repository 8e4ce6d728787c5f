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

#[test]
fn hops_by_where_from_where_to_and_why() {
    let refuses: Upstream = Script::always(Step::fail(|| Refused::new(Refusal::Open)));
    let targets = [
        Target::new("opus", refuses),
        Target::new("sonnet", answers(429)),
        Target::new("gemini", answers(200)),
    ];
    let client = FailoverService::new(targets).unwrap();
    let recorder = DebuggingRecorder::new();
    let seen = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        runtime.unwrap().block_on(async {
            for _ in 0..2 {
                let request = Request::new(String::new());
                let response = client.clone().oneshot(request).await.unwrap();
                assert_eq!(response.status(), 200);
            }
        });
    });
    let all = seen.snapshot().into_vec().into_iter();
    let mut hops: Vec<_> = all
        .filter(|(key, ..)| key.key().name() == "spillway.failover.hops")
        .map(|(key, _, _, value)| {
            let labels = key.key().labels();
            let labels: Vec<_> = labels
                .map(|l| format!("{}={}", l.key(), l.value()))
                .collect();
            (labels.join(" "), value)
        })
        .collect();
    hops.sort_by(|a, b| a.0.cmp(&b.0));
    let hop = |labels: &str| (labels.to_owned(), DebugValue::Counter(2));
    assert_eq!(
        hops,
        [
            hop("from=opus to=sonnet cause=refused"),
            hop("from=sonnet to=gemini cause=throttled"),
        ]
    );
}
