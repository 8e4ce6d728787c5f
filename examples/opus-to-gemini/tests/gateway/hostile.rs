//! Vendors that answer what no vendor should.

use std::{convert::Infallible, time::Duration};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use futures_util::stream;
use http_body_util::BodyExt;
use opus_to_gemini::{
    config::{Config, Route},
    fake::FAKE_GEMINI_KEY,
};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::{
    stub::Stub,
    support::{PLENTY, Served, hello, streamed},
};

const TOKEN: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";

fn ask(model: &str, mut chat: Value) -> Value {
    chat["model"] = model.into();
    chat
}

/// `first`, and then a byte now and then, for ever.
fn drip(first: &'static str) -> Body {
    let pieces = stream::unfold(first, |piece| async move {
        if piece == "\n" {
            sleep(Duration::from_millis(20)).await;
        }
        Some((Ok::<_, Infallible>(Bytes::from(piece)), "\n"))
    });
    Body::from_stream(pieces)
}

fn answer(status: u16, kind: &str, body: Body) -> Response<Body> {
    let answer = Response::builder().status(status);
    answer.header("content-type", kind).body(body).unwrap()
}

fn once(config: &mut Config) {
    config.failover.sends = 1;
}

#[tokio::test]
async fn an_error_in_events_that_never_ends_is_over_with_its_attempt() {
    for status in [302, 400, 429, 500] {
        let vendor =
            Stub::start(move |_| answer(status, "text/event-stream", drip(": hm\n"))).await;
        let served = Served::start(|config| {
            once(config);
            vendor.join(config);
            let target = config.targets.get_mut("stub").unwrap();
            target.plain_within = Duration::from_millis(200);
            target.streaming_within = Duration::from_millis(200);
        })
        .await;
        for chat in [hello(), streamed()] {
            let reply = served.send(served.chat(&ask("stub", chat)));
            let reply = timeout(PLENTY, reply).await.unwrap();
            assert_eq!(reply.status, 503, "{status}");
            reply.error();
        }
    }
}

#[tokio::test]
async fn a_success_without_an_answer_in_it_is_for_the_next_target() {
    let whole = r#"{"choices":[{"message":{"content":"hi"}}],"usage":{}}"#;
    for (status, encoding, body) in [
        (200, "", "<html>Log in to this network</html>"),
        (200, "", ""),
        (204, "", ""),
        (200, "", "null"),
        (200, "", r#"{"object":"chat.completion"}"#),
        (200, "", r#"{"choices":[]}"#),
        (200, "", "[[{}]]"),
        (200, "", &whole[..30]),
        (200, "", r#"{"error":{"message":"not now","type":"x"}}"#),
        (200, "gzip", "\u{1f}\u{8}"),
    ] {
        let body = body.to_owned();
        let vendor = Stub::start(move |_| {
            let mut answer = answer(status, "application/json", body.clone().into());
            let headers = answer.headers_mut();
            headers.insert("content-encoding", encoding.parse().unwrap());
            answer
        })
        .await;
        let served = Served::start(|config| {
            once(config);
            vendor.join(config);
            let both = vec!["stub".to_owned(), "gemini".to_owned()];
            config.chains.insert("both".into(), both);
            config
                .routes
                .insert("both".into(), Route::To("both".into()));
        })
        .await;
        let reply = served.send(served.chat(&ask("both", hello()))).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert_eq!(reply.header("x-spillway-target"), Some("gemini"));
        // With nobody else there, it is an error too.
        let reply = served.send(served.chat(&ask("stub", hello()))).await;
        assert_eq!(reply.status, 503, "{}", reply.text());
        reply.error();
    }
}

#[tokio::test]
async fn a_wrong_request_is_400_where_a_vendor_says_so_with_a_200() {
    let said = r#"{"error":{"message":"No role.","type":"invalid_request_error","param":null,"code":"400"}}"#;
    let vendor = Stub::start(move |_| answer(200, "application/json", said.into())).await;
    let served = Served::start(|config| vendor.join(config)).await;
    let reply = served.send(served.chat(&ask("stub", hello()))).await;
    assert_eq!(reply.status, 400, "{}", reply.text());
    assert_eq!(reply.error()["message"], "No role.");
    assert_eq!(reply.header("x-should-retry"), Some("false"));
}

#[tokio::test]
async fn a_key_that_a_vendor_sends_back_is_in_no_header_and_no_event() {
    let vendor = Stub::start(|headers| {
        let key = headers["authorization"].to_str().unwrap();
        let error = json!({"error": {"message": format!("Bad: {key}"), "code": key}});
        let mut answer = match headers["accept"].to_str().unwrap() {
            "text/event-stream" => answer(
                200,
                "text/event-stream",
                format!("{TOKEN}data: {error}\n\n").into(),
            ),
            _ => answer(
                200,
                &format!("application/json; key={key}"),
                r#"{"choices":[{"message":{"content":"hi"}}]}"#.into(),
            ),
        };
        let id = key.parse().unwrap();
        answer.headers_mut().insert("x-request-id", id);
        answer
    })
    .await;
    let served = Served::start(|config| vendor.join(config)).await;
    for (accept, chat) in [
        ("text/event-stream", streamed()),
        ("application/json", hello()),
    ] {
        let mut request = served.chat(&ask("stub", chat));
        let headers = request.headers_mut();
        headers.insert("accept", accept.parse().unwrap());
        let reply = served.send(request).await;
        assert_eq!(reply.status, 200);
        let shown = format!("{:?} {}", reply.headers, reply.text());
        assert!(!shown.contains(FAKE_GEMINI_KEY), "{shown}");
        assert_eq!(
            reply.text().contains("Bad: Bearer [key]"),
            accept != "application/json"
        );
    }
    for path in ["/status", "/metrics"] {
        let shown = served.get(path).await;
        assert!(!shown.text().contains(FAKE_GEMINI_KEY), "{path}");
    }
}

#[tokio::test]
async fn counts_of_tokens_may_be_any_numbers() {
    let body = json!({
        "choices": [{"message": {"content": "hi"}}],
        "usage": {"prompt_tokens": u64::MAX, "completion_tokens": u64::MAX},
    });
    let vendor =
        Stub::start(move |_| answer(200, "application/json", body.to_string().into())).await;
    let served = Served::start(|config| vendor.join(config)).await;
    let mut counted = 0;
    for n in 1..=3 {
        let reply = served.send(served.chat(&ask("stub", hello()))).await;
        assert_eq!(reply.status, 200);
        assert_eq!(served.calls(n).await[0]["outcome"], "answered");
        let before = std::mem::replace(&mut counted, counted_tokens(&served).await);
        assert!(counted > before, "a counter only grows: {counted}");
    }
    let status = served.status().await;
    let targets = status["targets"].as_array().unwrap();
    let stub = targets.iter().find(|t| t["name"] == "stub").unwrap();
    assert_eq!(stub["figures"]["tokens"]["output"], u64::MAX);
}

/// The tokens that went to the stub, of all gateways of this process.
async fn counted_tokens(served: &Served) -> u64 {
    let metrics = served.get("/metrics").await;
    let series = "spillway_gateway_tokens_total{target=\"stub\",kind=\"input\"} ";
    let mut lines = metrics.text().lines();
    let count = lines.find_map(|line| line.strip_prefix(series));
    count.unwrap().parse().unwrap()
}

#[tokio::test]
async fn events_are_events_in_any_case_of_their_type() {
    let vendor = Stub::start(|_| answer(200, "Text/Event-Stream", drip(TOKEN))).await;
    let served = Served::start(|config| vendor.join(config)).await;
    let request = served.chat(&ask("stub", streamed()));
    let mut open = timeout(PLENTY, served.open(request)).await.unwrap();
    assert_eq!(open.status(), 200);
    let first = open.frame().await.unwrap().unwrap().into_data().unwrap();
    assert!(first.starts_with(b"data: "), "{first:?}");
}

#[tokio::test]
async fn an_answer_without_a_body_is_whole_when_its_head_is_sent() {
    let vendor = Stub::start(|_| answer(200, "application/json", Body::empty())).await;
    let served = Served::start(|config| {
        // The status alone counts.
        config.verdict.enabled = false;
        vendor.join(config);
    })
    .await;
    let reply = served.send(served.chat(&ask("stub", hello()))).await;
    assert_eq!(reply.status, 200);
    assert_eq!(served.calls(1).await[0]["outcome"], "answered");
}
