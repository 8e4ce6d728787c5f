//! Calls can be spawned, whatever closures the stack is made of.

use http::{Request, Response};
use tower::ServiceBuilder;
use tower_spillway_core::{
    Carried, Class, Failure, History, Outcome, Plain, RetryLayer, Verdict,
    call::CallLayer,
    classify::ClassifyLayer,
    testing::script::{Script, Step},
};

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn over_a_closure_that_classifies() {
    let adapter = Plain(|out: Result<&u16, Failure<'_>>| match out {
        Ok(200) => Class::Success,
        Err(error) if error.is::<std::fmt::Error>() => Class::CallerFault,
        _ => Class::Transient,
    });
    let policy = |_: &History, _: &Outcome<'_, u16>| Verdict::Retry { after: SECOND };
    let upstream = Script::new([Step::answer(500), Step::fail(|| std::fmt::Error)]);
    let client = ServiceBuilder::new()
        .layer(CallLayer::new().adapter(adapter))
        .layer(RetryLayer::new(policy).adapter(adapter))
        .service(upstream.clone());
    let spawned = tokio::spawn(async move { call(&client, Carried::new(1)).await });
    assert!(spawned.await.unwrap().unwrap_err().is::<std::fmt::Error>());
    assert_eq!(upstream.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn over_a_closure_that_reads_responses() {
    let policy = |_: &History, _: &Outcome<'_, Response<Body>>| Verdict::Retry { after: SECOND };
    let client = ServiceBuilder::new()
        .layer(CallLayer::new())
        .layer(RetryLayer::new(policy))
        .layer(ClassifyLayer::new(
            |out: Result<&Response<Body>, Failure<'_>>| {
                out.is_err().then(|| Class::CallerFault.into())
            },
        ))
        .service(Script::<Request<Body>, _>::always(answer(200, &[])));
    let spawned = tokio::spawn(async move { call(&client, request(http::Method::GET)).await });
    assert_eq!(spawned.await.unwrap().unwrap().status(), 200);
}
