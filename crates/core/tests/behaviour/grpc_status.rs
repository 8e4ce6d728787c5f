//! A gRPC status in trailers: what the attempt came to, and what the body still yields.

mod frames;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Method, Response, StatusCode, Version};
use http_body::{Body as _, SizeHint};
use http_body_util::{BodyExt, Full};
use tower::{Layer, ServiceBuilder};
use tower_spillway_core::{
    BoxError, Cause, Class, ErrorReader, Http, Ledger, Read, Reading, RetryLayer, TimedOut,
    attempt_timeout::AttemptTimeoutLayer,
    classify::ClassifyLayer,
    grpc_status::{FirstFrameBody, GrpcStatusLayer},
    hint::{self, Hint, Source},
    in_flight::InFlightLayer,
    ledger::Report,
    testing::{
        drops,
        script::{Script, Step},
    },
};

use self::frames::{Do, Frames};
use crate::support::{SECOND, call, request, retry};

type Upstream = Script<http::Request<Full<Bytes>>, Response<Frames>>;
type Fields = &'static [(&'static str, &'static str)];

const MS: Duration = Duration::from_millis(1);
const OK: Fields = &[("grpc-status", "0")];
const UNAVAILABLE: Fields = &[("grpc-status", "14")];
const BUSY: Fields = &[("grpc-status", "14"), ("grpc-retry-pushback-ms", "5000")];
const NEVER: Fields = &[("grpc-status", "8"), ("grpc-retry-pushback-ms", "-1")];

fn trailers(fields: Fields) -> Do {
    let field = |(name, value): &(&'static str, &str)| {
        (
            http::HeaderName::from_static(name),
            value.parse::<http::HeaderValue>().unwrap(),
        )
    };
    Do::Trailers(fields.iter().map(field).collect())
}

/// A head as that of a success, and these frames.
fn grpc(steps: &[Do]) -> Response<Frames> {
    Response::builder()
        .version(Version::HTTP_2)
        .header("content-type", "application/grpc+proto")
        .body(Frames::new(steps))
        .unwrap()
}

fn over(responses: impl IntoIterator<Item = Response<Frames>>) -> Upstream {
    let step = |response: Response<Frames>| Step::answer(response);
    Script::new(responses.into_iter().map(step))
}

/// What the layer makes of this response.
async fn peeked(response: Response<Frames>) -> Result<Response<FirstFrameBody<Frames>>, BoxError> {
    let client = GrpcStatusLayer::new().layer(over([response]));
    call(&client, request(Method::POST)).await
}

fn read<B: http_body::Body>(response: &Response<B>) -> Reading {
    Http::new().read(Ok(response))
}

/// What a stack with retries makes of these responses, and its upstream.
async fn retried(
    responses: impl IntoIterator<Item = Response<Frames>>,
) -> (Response<FirstFrameBody<Frames>>, Report, Upstream) {
    let upstream = over(responses);
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(retry(SECOND)))
        .layer(GrpcStatusLayer::new())
        .service(upstream.clone());
    let response = call(&client, request(Method::POST)).await.unwrap();
    let report = response.extensions().get::<Ledger>().unwrap().report();
    (response, report, upstream)
}

fn served() -> Response<Frames> {
    grpc(&[Do::Data("message"), trailers(OK)])
}

#[tokio::test(start_paused = true)]
async fn a_status_in_trailers_reads_as_one_in_the_head() {
    for fields in [UNAVAILABLE, BUSY, NEVER, &[("grpc-status", "3")], OK] {
        let mut head = grpc(&[]);
        for (name, value) in fields {
            head.headers_mut().insert(*name, value.parse().unwrap());
        }
        let response = peeked(grpc(&[trailers(fields)])).await.unwrap();
        assert_eq!(read(&response), read(&head), "{fields:?}");
        assert!(response.headers().get("grpc-status").is_none(), "as it was");
        // It reaches the caller all the same.
        let mut body = response.into_body();
        assert!(!body.is_end_stream());
        let given = body
            .frame()
            .await
            .unwrap()
            .unwrap()
            .into_trailers()
            .unwrap();
        for (name, value) in fields {
            assert_eq!(given[*name], *value);
        }
        assert!(body.frame().await.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_before_the_first_message_is_sent_again() {
    let (response, report, _) = retried([grpc(&[trailers(BUSY)]), served()]).await;
    assert_eq!(report.sends(), 2);
    assert_eq!(report.attempts[0].class, Class::Throttled);
    assert_eq!(
        report.attempts[0].wait,
        Some(SECOND),
        "as the policy has it"
    );
    let body = response.into_body().collect().await.unwrap();
    assert_eq!(body.trailers().unwrap()["grpc-status"], "0");
    assert_eq!(body.to_bytes(), "message");
}

#[tokio::test(start_paused = true)]
async fn what_may_have_been_processed_keeps_to_the_terms_of_a_post() {
    let (_, report, _) = retried([grpc(&[trailers(UNAVAILABLE)]), served()]).await;
    assert_eq!(report.sends(), 1);
    assert_eq!(report.attempts[0].cause, Some(Cause::MayHaveBeenProcessed));
}

#[tokio::test(start_paused = true)]
async fn a_pushback_that_forbids_ends_it() {
    let (response, report, _) = retried([grpc(&[trailers(NEVER)]), served()]).await;
    assert_eq!(report.sends(), 1);
    assert_eq!(report.attempts[0].cause, Some(Cause::ServerForbids));
    let body = response.into_body().collect().await.unwrap();
    assert_eq!(body.trailers().unwrap()["grpc-retry-pushback-ms"], "-1");
}

#[tokio::test(start_paused = true)]
async fn after_a_message_an_error_is_the_callers() {
    let (response, report, upstream) =
        retried([grpc(&[Do::Data("message"), trailers(BUSY)]), served()]).await;
    assert_eq!((report.sends(), upstream.calls()), (1, 1));
    let body = response.into_body().collect().await.unwrap();
    assert_eq!(body.trailers().unwrap()["grpc-status"], "14");
    assert_eq!(body.to_bytes(), "message");
}

#[tokio::test(start_paused = true)]
async fn one_frame_is_peeked_and_no_more() {
    let response = peeked(grpc(&[Do::Data("one"), Do::Data("two"), trailers(OK)])).await;
    let mut body = response.unwrap().into_body();
    assert_eq!(body.get_ref().left(), 2);
    for text in ["one", "two"] {
        let frame = body.frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), text);
    }
    assert!(body.frame().await.unwrap().unwrap().is_trailers());
    assert!(body.frame().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_body_that_breaks_before_any_frame_is_the_attempts_error() {
    let error = peeked(grpc(&[Do::Wait, Do::Fail])).await.unwrap_err();
    assert_eq!(error.to_string(), "the connection broke");
    assert_eq!(
        ErrorReader::default().read(&*error).class(),
        Class::Transient
    );
    let late = peeked(grpc(&[Do::Data("message"), Do::Fail]))
        .await
        .unwrap();
    assert_eq!(read(&late).class(), Class::Success);
    assert!(late.into_body().collect().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_status_failed() {
    let none: &[(Response<Frames>, usize)] = &[
        (grpc(&[]), 0),
        (grpc(&[Do::Wait]), 0),
        (grpc(&[]).map(Frames::knows_its_end), 0),
        (grpc(&[trailers(&[("server-timing", "db")])]), 1),
    ];
    for (response, frames) in none {
        let response = peeked(response.clone()).await.unwrap();
        let reading = read(&response);
        assert_eq!(reading.class(), Class::Transient);
        assert_eq!(reading.reason(), Some("no_grpc_status"));
        assert!(!reading.is_unprocessed());
        let mut body = response.into_body();
        assert_eq!(body.is_end_stream(), *frames == 0);
        for _ in 0..*frames {
            assert!(body.frame().await.unwrap().is_ok());
        }
        // Polled past its end, a body may panic: this one would.
        assert!(body.frame().await.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_open_grpc_call_passes_untouched() {
    type Change = fn(&mut Response<Frames>);
    let changes: &[Change] = &[
        |response| *response.version_mut() = Version::HTTP_11,
        |response| *response.status_mut() = StatusCode::BAD_GATEWAY,
        |response| _ = response.headers_mut().remove("content-type"),
        |response| set(response, "content-type", "application/json"),
        |response| set(response, "content-type", "application/grpc-web"),
        |response| set(response, "grpc-status", "0"),
        |response| {
            _ = response
                .extensions_mut()
                .insert(Reading::new(Class::NotHere))
        },
    ];
    for change in changes {
        // It would be waited for.
        let mut response = grpc(&[Do::Stall]);
        change(&mut response);
        let before = tokio::time::Instant::now();
        let response = peeked(response).await.unwrap();
        assert_eq!(before.elapsed(), Duration::ZERO);
        assert_eq!(response.body().get_ref().polls(), 0);
    }
}

fn set(response: &mut Response<Frames>, name: &'static str, value: &str) {
    response.headers_mut().insert(name, value.parse().unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_late_first_message_holds_the_head_no_longer_than_the_limit() {
    let late = || grpc(&[Do::After(3 * SECOND), Do::Data("message"), trailers(BUSY)]);
    for (within, took) in [
        (None, SECOND),
        (Some(20 * MS), 20 * MS),
        (Some(Duration::ZERO), Duration::ZERO),
        (Some(Duration::MAX), 3 * SECOND),
    ] {
        let layer = match within {
            Some(within) => GrpcStatusLayer::new().within(within),
            None => GrpcStatusLayer::default(),
        };
        let client = layer.layer(over([late()]));
        let before = tokio::time::Instant::now();
        let response = call(&client, request(Method::POST)).await.unwrap();
        assert_eq!(before.elapsed(), took, "{within:?}");
        assert_eq!(read(&response).class(), Class::Success);
        let body = response.into_body().collect().await.unwrap();
        assert_eq!(before.elapsed(), 3 * SECOND, "{within:?}");
        assert_eq!(body.trailers().unwrap()["grpc-status"], "14");
        assert_eq!(body.to_bytes(), "message");
    }
}

#[tokio::test(start_paused = true)]
async fn a_timeout_outside_bounds_the_wait() {
    let client = ServiceBuilder::new()
        .layer(AttemptTimeoutLayer::to_head(5 * SECOND))
        .layer(GrpcStatusLayer::new().within(Duration::MAX))
        .service(over([grpc(&[Do::Stall])]));
    let error = call(&client, request(Method::POST)).await.unwrap_err();
    assert_eq!(
        error.downcast_ref::<TimedOut>().unwrap().after(),
        5 * SECOND
    );
}

#[tokio::test(start_paused = true)]
async fn sizes_are_those_of_the_body() {
    let sized = |steps: &[Do], hint| grpc(steps).map(|body| body.hint(hint));
    let both = [Do::Data("message"), trailers(OK)];
    for hint in [SizeHint::with_exact(7), SizeHint::new()] {
        let response = peeked(sized(&both, hint)).await.unwrap();
        let mut body = response.into_body();
        assert_eq!(body.size_hint().exact(), hint.exact());
        assert_eq!(body.size_hint().upper(), hint.upper());
        body.frame().await.unwrap().unwrap();
        assert_eq!(body.size_hint().lower(), body.get_ref().size_hint().lower());
    }
    // Small enough to be held, and not exact: a server would send a length and no trailers.
    let body = peeked(grpc(&[trailers(BUSY)])).await.unwrap().into_body();
    assert_eq!(
        (body.size_hint().lower(), body.size_hint().upper()),
        (0, Some(1))
    );
    let body = peeked(grpc(&[])).await.unwrap().into_body();
    assert_eq!(body.size_hint().exact(), Some(0));
    let whole = grpc(&[trailers(OK)]).map(|body| body.hint(SizeHint::with_exact(0)));
    assert_eq!(
        peeked(whole).await.unwrap().body().size_hint().exact(),
        Some(0)
    );
}

#[tokio::test(start_paused = true)]
async fn signals_of_ones_own_are_read_in_trailers() {
    let own = Hint::After {
        wait: SECOND,
        source: Source::Custom("x_busy"),
    };
    let reader = hint::Reader::new().with(move |status, fields: &HeaderMap| {
        assert_eq!(status, StatusCode::OK);
        fields.contains_key("x-busy").then_some(own)
    });
    let layer = GrpcStatusLayer::new().read_hints(reader);
    let fields = &[("grpc-status", "14"), ("x-busy", "1")];
    let client = layer.layer(over([grpc(&[trailers(fields)])]));
    let response = call(&client, request(Method::POST)).await.unwrap();
    assert_eq!(read(&response).hint(), Some(own));
    assert_eq!(read(&response).class(), Class::Throttled);
}

#[tokio::test(start_paused = true)]
async fn a_layer_outside_may_read_it_otherwise() {
    let client = ServiceBuilder::new()
        .layer(ClassifyLayer::new(
            |out: Result<&Response<FirstFrameBody<Frames>>, _>| {
                let reading = out.ok()?.extensions().get::<Reading>()?;
                (reading.reason() == Some("INTERNAL")).then(|| Reading::new(Class::CallerFault))
            },
        ))
        .layer(GrpcStatusLayer::new())
        .service(over([grpc(&[trailers(&[("grpc-status", "13")])])]));
    let response = call(&client, request(Method::POST)).await.unwrap();
    assert_eq!(read(&response).class(), Class::CallerFault);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_a_driver_holds_keeps_no_permit_from_its_retry() {
    let in_flight = InFlightLayer::new(1).unwrap();
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(retry(30 * SECOND)))
        .layer(in_flight.clone())
        .layer(GrpcStatusLayer::new())
        .service(over([grpc(&[trailers(BUSY)]), served()]));
    let response = call(&client, request(Method::POST)).await.unwrap();
    assert_eq!(read(&response).class(), Class::Success);
    assert_eq!(in_flight.unnamed_permits().in_flight(), 1);
    response.into_body().collect().await.unwrap();
    assert_eq!(in_flight.unnamed_permits().in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn dropped_at_every_await_point_it_drops_the_body() {
    let open = Arc::new(());
    let steps = [Do::Wait, Do::After(SECOND), Do::Wait, trailers(BUSY)];
    let response = grpc(&steps).map(|body| body.keeping(open.clone()));
    let upstream = Script::always(Step::answer(response).after(SECOND));
    let client = GrpcStatusLayer::new()
        .within(9 * SECOND)
        .layer(upstream.clone());
    let kept = Arc::strong_count(&open);
    let drops = drops::walk(
        || call(&client, request(Method::POST)),
        |polls| {
            assert_eq!(upstream.in_flight(), 0, "after {polls} polls");
            assert_eq!(Arc::strong_count(&open), kept, "after {polls} polls");
        },
    )
    .await;
    assert!(drops >= 5, "{drops}");
}
