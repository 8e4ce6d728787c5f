//! Readings on responses.

use http::Response;
use tower_spillway_core::{Class, Reading};
use tower_spillway_llm::{Vendor, VendorVerdictLayer};

use crate::body::{Played, Step, answer, response};

fn reading<B>(response: &Response<B>) -> Option<(Class, Option<&str>)> {
    let reading = response.extensions().get::<Reading>()?;
    assert!(reading.is_vendor());
    Some((reading.class(), reading.reason()))
}

async fn read(
    vendor: Vendor,
    status: u16,
    kind: Option<&str>,
    body: Played,
) -> Option<(Class, Option<String>)> {
    let layer = VendorVerdictLayer::new(vendor);
    let response = answer(&layer, response(status, kind, body)).await;
    reading(&response).map(|(class, reason)| (class, reason.map(str::to_owned)))
}

fn is(class: Class, reason: &str) -> Option<(Class, Option<String>)> {
    Some((class, Some(reason.to_owned())))
}

#[tokio::test]
async fn successes_that_are_none() {
    let json = Some("application/json");
    let soft = |text| read(Vendor::OpenRouter, 200, json, Played::text(text));
    assert_eq!(
        soft(r#"{"error":{"code":502,"message":"m"}}"#).await,
        is(Class::Transient, "failed")
    );
    assert_eq!(
        soft(r#"{"error":{"code":"429","message":"m"}}"#).await,
        is(Class::Throttled, "throttled")
    );
    assert_eq!(
        soft(r#"{"error":{"code":"overloaded_error"}}"#).await,
        is(Class::Transient, "overloaded_error")
    );
    assert_eq!(
        soft(r#"{"error":"who knows"}"#).await,
        is(Class::Transient, "failed")
    );
    assert_eq!(
        soft(r#"{"choices":[]}"#).await,
        is(Class::Transient, "empty_choices")
    );
    assert_eq!(
        soft(r#"{"error":{"code":"invalid_prompt"}}"#).await,
        is(Class::CallerFault, "invalid_prompt")
    );
    let page = Played::text("<html><title>Just a moment");
    assert_eq!(
        read(Vendor::OpenAi, 200, Some("text/html"), page).await,
        is(Class::TargetDown, "html_answer")
    );
}

#[tokio::test]
async fn successes_that_are() {
    for body in [
        r#"{"choices":[{"message":{"refusal":"no"}}]}"#,
        r#"{"choices":[{}],"error":{"code":500}}"#,
        r#"{"error":null,"id":"x"}"#,
        r#"{"output":[{}]}"#,
        "",
        "not json",
    ] {
        let read = read(Vendor::OpenAi, 200, None, Played::text(body)).await;
        assert_eq!(read, None, "{body}");
    }
    let grpc = Played::text("<html>");
    assert_eq!(
        read(Vendor::OpenAi, 200, Some("application/grpc"), grpc).await,
        None
    );
}

#[tokio::test]
async fn an_answer_that_is_cut_before_anybody_has_it_may_be_sent_again() {
    let body = Played::new([Step::text("{\"id\":"), Step::Fail("reset")]);
    let json = Some("application/json");
    assert_eq!(
        read(Vendor::OpenAi, 200, json, body).await,
        is(Class::Transient, "answer_cut_short")
    );
    let body = Played::new([Step::text("{\"choices\":[{"), Step::Fail("reset")]);
    assert_eq!(
        read(Vendor::OpenAi, 200, json, body).await,
        None,
        "too late: it was given on"
    );
}

#[tokio::test]
async fn a_compressed_error_is_judged_by_its_status() {
    let mut answered = response(
        429,
        None,
        Played::text(r#"{"error":{"code":"insufficient_quota"}}"#),
    );
    answered
        .headers_mut()
        .insert("content-encoding", "gzip".parse().unwrap());
    let layer = VendorVerdictLayer::new(Vendor::OpenAi);
    let response = answer(&layer, answered).await;
    assert_eq!(
        reading(&response),
        Some((Class::Throttled, Some("throttled")))
    );
}

#[tokio::test]
async fn too_long_goes_elsewhere_only_where_there_is_an_elsewhere() {
    let body = || Played::text(r#"{"error":{"message":"prompt is too long: 210000 tokens"}}"#);
    let layer = VendorVerdictLayer::new(Vendor::AnthropicCompat);
    let here = answer(&layer, response(400, None, body())).await;
    assert_eq!(reading(&here).unwrap().0, Class::CallerFault);
    let layer = layer.larger_context_elsewhere(true);
    let there = answer(&layer, response(400, None, body())).await;
    assert_eq!(reading(&there).unwrap().0, Class::NotHere);
}

#[tokio::test]
async fn bytes_that_are_no_text_leave_it_to_the_status() {
    let body = Played::new([Step::Data(vec![0xff, 0xfe, 0x00, b'{'].into())]);
    assert_eq!(
        read(Vendor::Gemini, 503, None, body).await,
        is(Class::Transient, "failed")
    );
}

#[test]
fn it_crosses_threads() {
    fn check<T: Send + Sync>() {}
    type Service = tower_spillway_llm::VendorVerdict<()>;
    type Body = tower_spillway_llm::PeekedBody<http_body_util::Empty<bytes::Bytes>>;
    check::<(VendorVerdictLayer, Service, tower_spillway_llm::Rules)>();
    check::<(Body, tower_spillway_llm::TargetProfile)>();
}
