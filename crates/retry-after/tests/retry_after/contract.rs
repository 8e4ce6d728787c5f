//! Readiness, clones and cancellation.

use http::Response;
use tower_retry_after::{RetryAfter, RetryAfterLayer};
use tower_spillway_core::{
    Retry,
    testing::{gate::CountingGate, retrying, script::Script},
};

use crate::support::response;

fn answer() -> Response<String> {
    response(503, "1")
}

#[tokio::test(start_paused = true)]
async fn every_send_uses_an_instance_that_was_polled_ready() {
    retrying::every_send_uses_a_ready_instance(&RetryAfterLayer::new(), answer).await;
}

#[tokio::test(start_paused = true)]
async fn no_readiness_is_held_while_sleeping() {
    retrying::no_readiness_is_held_while_sleeping(&RetryAfterLayer::new(), answer).await;
}

#[tokio::test(start_paused = true)]
async fn a_readiness_error_before_a_resend_gives_the_answer_in_hand() {
    retrying::a_readiness_error_gives_the_answer_in_hand(&RetryAfterLayer::new(), answer).await;
}

#[tokio::test(start_paused = true)]
async fn dropped_at_every_await_point_it_leaves_nothing_open() {
    let gate = CountingGate::allowing(usize::MAX);
    let layer = RetryAfterLayer::new().gate(gate.as_gate());
    retrying::dropped_anywhere_it_leaves_nothing_open(&layer, &gate, answer).await;
}

#[test]
fn auto_traits() {
    fn all<T: Clone + Send + Sync + Unpin + std::fmt::Debug + 'static>() {}
    all::<RetryAfterLayer>();
    all::<RetryAfter>();
    all::<Retry<Script<(), ()>, RetryAfter>>();
}
