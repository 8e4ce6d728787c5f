//! The user's own reading of outcomes.

use http::{Method, Response};
use tower::{Layer, ServiceBuilder};
use tower_spillway_core::{
    Cause, Class, Classified, Failure, Ledger, Reading, RetryLayer,
    classify::ClassifyLayer,
    testing::script::{Script, Step},
};

use crate::support::*;

type Out<'a, 'e> = Result<&'a Response<Body>, Failure<'e>>;

async fn sends_of<C>(classify: C, step: Step<Response<Body>>) -> (usize, Ledger)
where
    C: Fn(Out<'_, '_>) -> Option<Reading> + Clone,
{
    let upstream = Script::new([step, answer(200, &[])]);
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(retry(SECOND)))
        .layer(ClassifyLayer::new(classify))
        .service(upstream.clone());
    let ledger = Ledger::new();
    let mut request = request(Method::GET);
    request.extensions_mut().insert(ledger.clone());
    // The error, if there is one, is the step's own.
    drop(call(&client, request).await);
    (upstream.calls(), ledger)
}

#[tokio::test(start_paused = true)]
async fn a_reading_overrides_the_status() {
    let quota = |out: Out<'_, '_>| {
        (out.ok()?.status() == 429)
            .then(|| Reading::new(Class::TargetDown).with_reason("insufficient_quota"))
    };
    let (sends, ledger) = sends_of(quota, answer(429, &[])).await;
    assert_eq!(sends, 1);
    let attempt = &ledger.report().attempts[0];
    assert_eq!(attempt.cause, Some(Cause::TargetDown));
    assert_eq!(attempt.status, Some(429), "the status is still told");
    assert_eq!(attempt.reason.as_deref(), Some("insufficient_quota"));

    let empty = |out: Out<'_, '_>| {
        out.ok()?.headers().get("x-empty")?;
        Some(Reading::new(Class::Transient))
    };
    let (sends, _) = sends_of(empty, answer(200, &[("x-empty", "1")])).await;
    assert_eq!(sends, 2, "a 200 that is none");
}

#[tokio::test(start_paused = true)]
async fn no_reading_leaves_the_outcome_as_it_is() {
    for (status, sent) in [(503, 2), (404, 1), (200, 1)] {
        let (sends, _) = sends_of(|_: Out<'_, '_>| None, answer(status, &[])).await;
        assert_eq!(sends, sent, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reading_goes_around_an_error_and_keeps_it_inside() {
    let give_up = |out: Out<'_, '_>| out.is_err().then(|| Reading::new(Class::CallerFault));
    let upstream = Script::<_, Response<Body>>::always(Step::fail(|| {
        std::io::Error::other("certificate expired")
    }));
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(retry(SECOND)))
        .layer(ClassifyLayer::new(give_up))
        .service(upstream.clone());
    let error = call(&client, request(Method::GET)).await.unwrap_err();
    assert_eq!(upstream.calls(), 1);
    let classified = error.downcast::<Classified>().unwrap();
    assert_eq!(classified.reading().class(), Class::CallerFault);
    assert!(classified.into_inner().is::<std::io::Error>());
}

#[tokio::test(start_paused = true)]
async fn a_class_of_ones_own_does_not_unsay_what_the_server_asked() {
    let throttled =
        |out: Out<'_, '_>| (out.ok()?.status() == 403).then(|| Reading::new(Class::Throttled));
    let vendor = |out: Out<'_, '_>| throttled(out).map(Reading::from_vendor);
    let forbidden = || answer(403, &[("retry-after", "3600")]);

    let (sends, ledger) = sends_of(throttled, forbidden()).await;
    assert_eq!(sends, 1);
    assert_eq!(ledger.report().attempts[0].cause, Some(Cause::HintTooLong));
    let (sends, _) = sends_of(vendor, forbidden()).await;
    assert_eq!(sends, 2, "a vendor table has read the headers itself");
}

#[tokio::test(start_paused = true)]
async fn the_layer_alone_changes_nothing_for_the_caller() {
    let client = ClassifyLayer::new(|_: Out<'_, '_>| Some(Reading::new(Class::Transient)))
        .layer(Script::always(answer(200, &[])));
    let out = call(&client, request(Method::GET)).await.unwrap();
    assert_eq!(out.status(), 200);
    assert_eq!(text(out.into_body()).await, "body of a 200");
}
