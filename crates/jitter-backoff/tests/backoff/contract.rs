//! Readiness, clones and cancellation.

use http::Response;
use tower::{Layer, ServiceExt};
use tower_jitter_backoff::{Jitter, JitterBackoff, JitterBackoffLayer};
use tower_spillway_core::{
    Detached, Retry,
    testing::{
        gate::CountingGate,
        retrying,
        script::{Script, Step},
    },
};

use crate::support::{classify, response};

fn answer() -> Response<String> {
    response(503, "")
}

#[tokio::test(start_paused = true)]
async fn every_send_uses_an_instance_that_was_polled_ready() {
    retrying::every_send_uses_a_ready_instance(&JitterBackoffLayer::new(), answer).await;
}

#[tokio::test(start_paused = true)]
async fn no_readiness_is_held_while_sleeping() {
    retrying::no_readiness_is_held_while_sleeping(&JitterBackoffLayer::new(), answer).await;
}

#[tokio::test(start_paused = true)]
async fn a_readiness_error_before_a_resend_gives_the_answer_in_hand() {
    retrying::a_readiness_error_gives_the_answer_in_hand(&JitterBackoffLayer::new(), answer).await;
}

#[tokio::test(start_paused = true)]
async fn dropped_at_every_await_point_it_leaves_nothing_open() {
    let gate = CountingGate::allowing(usize::MAX);
    let layer = JitterBackoffLayer::new().gate(gate.as_gate());
    retrying::dropped_anywhere_it_leaves_nothing_open(&layer, &gate, answer).await;
}

#[tokio::test(start_paused = true)]
async fn clones_do_not_share_the_state_of_a_call() {
    let upstream = Script::<u8, ()>::always(Step::fail(|| "down"));
    let service = JitterBackoffLayer::new()
        .jitter(Jitter::None)
        .adapter(Detached(classify::<()>))
        .layer(upstream.clone());
    let calls = (0..10).map(|n| tokio::spawn(service.clone().oneshot(n)));
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap().unwrap_err();
    }
    let mut wanted = [[0; 10], [100; 10], [300; 10]].concat();
    wanted.sort_unstable();
    let times: Vec<_> = upstream.times().iter().map(|t| t.as_millis()).collect();
    assert_eq!(times, wanted);
}

#[test]
fn auto_traits() {
    fn all<T: Clone + Send + Sync + Unpin + std::fmt::Debug + 'static>() {}
    all::<JitterBackoffLayer>();
    all::<JitterBackoff>();
    all::<Retry<Script<(), ()>, JitterBackoff>>();
}
