//! A body that does not come, and a future that is dropped.

use std::time::Duration;

use http::{Request, Response};
use http_body_util::BodyExt;
use tokio::time::Instant;
use tower::{ServiceExt, service_fn};
use tower_layer::Layer;
use tower_spillway_core::{BoxError, Class, Reading, testing::drops};
use tower_spillway_llm::{Vendor, VendorVerdictLayer};

use crate::body::{Played, Step, answer, response};

const HOUR: Duration = Duration::from_secs(3600);

fn class<B>(response: &Response<B>) -> Option<Class> {
    response.extensions().get::<Reading>().map(Reading::class)
}

#[tokio::test(start_paused = true)]
async fn an_error_whose_body_stalls_is_judged_by_what_came() {
    let layer = VendorVerdictLayer::new(Vendor::OpenAi);
    let start = Instant::now();
    let body = Played::new([
        Step::text("{\"error\":"),
        Step::Wait(HOUR),
        Step::text("{}}"),
    ]);
    let response = answer(&layer, response(429, None, body)).await;
    assert_eq!(start.elapsed(), Duration::from_secs(5));
    assert_eq!(class(&response), Some(Class::Throttled));
    let whole = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(whole, "{\"error\":{}}");
}

#[tokio::test(start_paused = true)]
async fn a_slow_success_passes_on() {
    let layer = VendorVerdictLayer::new(Vendor::DeepSeek)
        .read_within(Duration::from_secs(1))
        .unwrap();
    let start = Instant::now();
    let body = Played::new([
        Step::text("\n\n"),
        Step::Wait(HOUR),
        Step::text("{\"choices\":[{}]}"),
    ]);
    let response = answer(&layer, response(200, Some("application/json"), body)).await;
    assert_eq!(start.elapsed(), Duration::from_secs(1));
    assert_eq!(class(&response), None);
    let whole = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(whole, "\n\n{\"choices\":[{}]}");
}

#[tokio::test(start_paused = true)]
async fn a_success_is_given_on_at_its_first_choice() {
    let layer = VendorVerdictLayer::new(Vendor::OpenAi);
    let start = Instant::now();
    let body = Played::new([
        Step::text("{\"choices\":[{"),
        Step::Wait(HOUR),
        Step::text("}]}"),
    ]);
    let response = answer(&layer, response(200, None, body)).await;
    assert_eq!((start.elapsed(), class(&response)), (Duration::ZERO, None));
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_not_read() {
    let layer = VendorVerdictLayer::new(Vendor::OpenAi);
    let start = Instant::now();
    let body = Played::new([
        Step::Wait(HOUR),
        Step::text("data: {\"error\":{\"code\":500}}\n\n"),
    ]);
    let kind = Some("text/event-stream; charset=utf-8");
    let response = answer(&layer, response(200, kind, body)).await;
    assert_eq!((start.elapsed(), class(&response)), (Duration::ZERO, None));
}

#[tokio::test(start_paused = true)]
async fn a_future_dropped_at_any_await_point_takes_the_body_with_it() {
    use tower_spillway_core::testing::script::{Script, Step as Call};

    let script = Script::always(Call::answer(()).after(Duration::from_millis(5)));
    let inner = script.clone();
    let layer = VendorVerdictLayer::new(Vendor::OpenAi);
    let drops = drops::walk(
        || {
            let inner = inner.clone();
            let service = service_fn(move |_: Request<()>| {
                let inner = inner.clone();
                async move {
                    inner.oneshot(()).await?;
                    let wait = Step::Wait(Duration::from_secs(1));
                    let body = Played::new([wait.clone(), Step::text("{"), wait, Step::text("}")]);
                    Ok::<_, BoxError>(response(500, None, body))
                }
            });
            layer.layer(service).oneshot(Request::new(()))
        },
        |_| assert_eq!(script.in_flight(), 0),
    )
    .await;
    assert_eq!(
        drops, 4,
        "unpolled, at the head, and at either part of the body"
    );
}

#[test]
fn no_time_at_all_is_refused() {
    let error = VendorVerdictLayer::new(Vendor::OpenAi)
        .read_within(Duration::ZERO)
        .unwrap_err();
    assert_eq!(error.to_string(), "read_within must be above zero");
}
