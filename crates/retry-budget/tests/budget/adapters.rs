//! The layer alone, over each adapter that carries a ledger.

use http::{Request, Response};
use http_body_util::Full;
use tower::{Layer, ServiceExt};
use tower_retry_budget::{RatioConfig, RetryBudgetLayer};
use tower_spillway_core::{
    Class, Ledger,
    testing::script::{Script, Step},
};

use crate::support::{adapter, down, request};

/// With no retrying layer below it records the call, and changes nothing.
#[tokio::test(start_paused = true)]
async fn over_carried_requests() {
    let budget = RatioConfig::new().ratio(1.0).build().unwrap();
    let upstream = down();
    let service = RetryBudgetLayer::shared(&budget)
        .adapter(adapter())
        .layer(upstream.clone());
    let (request, ledger) = request();
    assert_eq!(service.oneshot(request).await.unwrap(), 503);
    let report = ledger.report();
    assert_eq!(report.attempts[0].class, Class::Transient);
    assert_eq!((report.attempts.len(), upstream.calls()), (1, 1));
    assert_eq!(budget.balance(), 11);
}

#[tokio::test(start_paused = true)]
async fn over_http_with_any_body() {
    type Body = Full<&'static [u8]>;
    let upstream = Script::always(Step::answer_with(|| Response::new(Body::default())));
    let service = RetryBudgetLayer::ratio(RatioConfig::new())
        .unwrap()
        .layer(upstream);
    let request = Request::post("/").body(Body::default()).unwrap();
    let answer = service.oneshot(request).await.unwrap();
    let report = answer.extensions().get::<Ledger>().unwrap().report();
    assert_eq!(report.attempts[0].status, Some(200));
}
