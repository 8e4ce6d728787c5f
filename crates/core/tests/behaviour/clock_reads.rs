//! How often the clock is read: at most twice for a clean attempt, whatever the stack.

use http::Method;
use tower::{Layer, Service, ServiceBuilder};
use tower_spillway_core::{
    Carried, Limits, RetryLayer,
    attempt_timeout::AttemptTimeoutLayer,
    call::CallLayer,
    testing::{
        clock::reads_during,
        script::{Script, Step},
    },
};

use crate::support::*;

/// Reads of a call that is ready at the first poll.
fn reads_of<S, Req>(mut service: S, request: Req) -> u64
where
    S: Service<Req>,
    S::Error: std::fmt::Debug,
{
    let waker = std::task::Waker::noop();
    let mut cx = std::task::Context::from_waker(waker);
    let (out, reads) = reads_during(|| {
        assert!(service.poll_ready(&mut cx).is_ready());
        let mut call = std::pin::pin!(service.call(request));
        call.as_mut().poll(&mut cx)
    });
    assert!(matches!(out, std::task::Poll::Ready(Ok(_))));
    reads
}

#[tokio::test(start_paused = true)]
async fn a_clean_call_over_a_deep_stack_reads_the_clock_twice() {
    let client = ServiceBuilder::new()
        .layer(CallLayer::new().deadline(9 * SECOND))
        .layer(RetryLayer::new(retry(SECOND)))
        .layer(RetryLayer::new(retry(SECOND)))
        .layer(AttemptTimeoutLayer::to_head(SECOND))
        .service(Script::always(answer(200, &[])));
    assert_eq!(reads_of(client, request(Method::GET)), 2);
}

#[tokio::test(start_paused = true)]
async fn so_does_one_layer_alone() {
    let retrying = RetryLayer::new(retry(SECOND)).layer(Script::always(answer(200, &[])));
    assert_eq!(reads_of(retrying, request(Method::GET)), 2);

    let detached = RetryLayer::new(retry(SECOND))
        .adapter(detached())
        .layer(Script::always(Step::answer(200)));
    assert_eq!(reads_of(detached, "ping"), 2);

    let plain = plain_retry(retry(SECOND), Limits::default()).layer(always(200));
    assert_eq!(reads_of(plain, Carried::new(1)), 2);

    let call = CallLayer::new()
        .deadline(SECOND)
        .adapter(crate::support::plain())
        .layer(always(200));
    assert_eq!(reads_of(call, Carried::new(1)), 2);

    let timeout = AttemptTimeoutLayer::to_head(SECOND).layer(Script::always(answer(200, &[])));
    assert_eq!(reads_of(timeout, request(Method::GET)), 1);
}
