//! What is longer, deeper or more than anybody needs, from callers and from vendors.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, Method};
use opus_to_gemini::config::{Config, Route};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    stub::Stub,
    support::{Reply, Served, hello, streamed},
};

const DEEP: usize = 100_000;

const MIB: usize = 1 << 20;

fn nested() -> String {
    format!("{}{}", "[".repeat(DEEP), "]".repeat(DEEP))
}

/// The model `both` is the stub's, then Gemini's.
fn before_gemini(vendor: &Stub, config: &mut Config) {
    config.failover.sends = 1;
    vendor.join(config);
    let both = vec!["stub".to_owned(), "gemini".to_owned()];
    config.routes.insert("both".into(), Route::Chain(both));
}

async fn ask(served: &Served, model: &str, mut chat: Value) -> Reply {
    chat["model"] = model.into();
    served.send(served.chat(&chat)).await
}

#[tokio::test]
async fn a_request_that_is_nested_deeply_is_400_and_where_it_must_be_read_sent_to_nobody() {
    let served = Served::start(|config| config.gateway.allow_request_fallbacks = true).await;
    let deep = nested();
    for body in [
        format!(r#"{{"model":"claude-opus","messages":[{deep}]}}"#),
        format!(r#"{{"model":"claude-opus","messages":[1],"fallbacks":{deep}}}"#),
        format!(r#"{{"model":{deep},"messages":[1]}}"#),
        "{\"a\":".repeat(DEEP),
    ] {
        let request = served.request(Method::POST, "/v1/chat/completions", body);
        let reply = served.send(request).await;
        assert_eq!(reply.status, 400);
        assert_eq!(reply.error()["code"], "invalid_request");
    }
    assert!(served.fakes.anthropic.log().is_empty());
    assert!(served.fakes.gemini.log().is_empty());
    // What nobody reads on the way is the vendor's to refuse.
    for body in [
        format!(r#"{{"model":"claude-opus","messages":[1],"x":{deep}}}"#),
        format!(r#"{{"model":"claude-opus","messages":[1],"x":{deep},"fallbacks":["gemini"]}}"#),
    ] {
        let request = served.request(Method::POST, "/v1/chat/completions", body);
        let reply = served.send(request).await;
        assert_eq!(reply.status, 400);
        assert_eq!(reply.header("x-spillway-target"), Some("opus"));
    }
    assert_eq!(served.ask().await.status, 200);
}

#[tokio::test]
async fn an_answer_that_is_nested_deeply_is_passed_on_unread_or_for_the_next_target() {
    let deep = nested();
    let event = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":{deep}}}}}]}}\n\n");
    for (target, status, kind, body) in [
        (
            "stub",
            200,
            "application/json",
            format!(r#"{{"choices":{deep}}}"#),
        ),
        ("gemini", 200, "application/json", deep.clone()),
        (
            "gemini",
            200,
            "application/json",
            format!(r#"{{"error":{deep}}}"#),
        ),
        (
            "gemini",
            429,
            "application/json",
            format!(r#"{{"error":{{"details":{deep}}}}}"#),
        ),
        ("gemini", 500, "application/json", deep.clone()),
        ("gemini", 200, "text/event-stream", event),
        (
            "gemini",
            200,
            "text/event-stream",
            format!("data: {{\"error\":{deep}}}\n\n"),
        ),
    ] {
        let body = Bytes::from(body);
        let vendor = Stub::start(move |_| {
            let answer = Response::builder().status(status);
            let answer = answer.header("content-type", kind);
            answer.body(body.clone().into()).unwrap()
        })
        .await;
        let served = Served::start(|config| before_gemini(&vendor, config)).await;
        for chat in [hello(), streamed()] {
            let reply = ask(&served, "both", chat).await;
            assert_eq!(reply.status, 200, "{status} {kind}");
            assert_eq!(reply.header("x-spillway-target"), Some(target));
        }
    }
}

#[tokio::test]
async fn ten_thousand_headers_of_a_request_are_431() {
    let served = Served::start(|_| {}).await;
    for header in ["x: y\r\n", "authorization: Bearer x\r\n"] {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n";
        let request = format!("{head}{}\r\n", header.repeat(10_000));
        // It may be answered, and closed, before all of it is sent.
        stream.write_all(request.as_bytes()).await.ok();
        let mut said = [0; 12];
        if stream.read_exact(&mut said).await.is_ok() {
            assert_eq!(&said, b"HTTP/1.1 431");
        }
    }
    assert_eq!(served.ask().await.status, 200);
}

#[tokio::test]
async fn ten_thousand_headers_of_an_answer_are_for_the_next_target() {
    let vendor = Stub::start(|_| {
        let mut answer = Response::new(Body::from(r#"{"choices":[{"message":{}}]}"#));
        for _ in 0..10_000 {
            let value = HeaderValue::from_static("y");
            answer.headers_mut().append("x", value);
        }
        answer
    })
    .await;
    let served = Served::start(|config| before_gemini(&vendor, config)).await;
    let reply = ask(&served, "both", hello()).await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("x-spillway-target"), Some("gemini"));
}

#[tokio::test]
async fn a_wait_of_ten_to_the_thirty_is_not_waited_out_nor_passed_on() {
    let huge = "1".to_owned() + &"0".repeat(30);
    for name in ["retry-after", "retry-after-ms"] {
        let huge = huge.clone();
        let vendor = Stub::start(move |_| {
            let answer = Response::builder().status(429).header(name, &huge);
            answer.body("{}".into()).unwrap()
        })
        .await;
        let served = Served::start(|config| before_gemini(&vendor, config)).await;
        let reply = ask(&served, "both", hello()).await;
        assert_eq!(reply.header("x-spillway-target"), Some("gemini"));
        for _ in 0..2 {
            let reply = ask(&served, "stub", hello()).await;
            assert_eq!(reply.status, 503);
            let wait: u64 = reply.header("retry-after").unwrap().parse().unwrap();
            assert!((1..=15 * 60).contains(&wait), "{wait} s");
        }
        assert_eq!(vendor.asked().len(), 1, "it is held");
    }
}

/// A line without an end, in pieces, and how much of it was taken.
async fn endless(first: &'static str, taken: &Arc<AtomicUsize>) -> Stub {
    let taken = Arc::clone(taken);
    Stub::start(move |_| {
        let taken = Arc::clone(&taken);
        let piece = Bytes::from(vec![b'a'; 64 * 1024]);
        let rest = stream::repeat_with(move || {
            taken.fetch_add(piece.len(), Ordering::Relaxed);
            Ok::<_, Infallible>(piece.clone())
        });
        let line = futures_util::StreamExt::chain(
            stream::iter([Ok(Bytes::from_static(first.as_bytes()))]),
            rest,
        );
        let answer = Response::builder().header("content-type", "text/event-stream");
        answer.body(Body::from_stream(line)).unwrap()
    })
    .await
}

#[tokio::test]
async fn a_line_without_an_end_that_holds_no_content_is_given_up_early() {
    for first in [": ", "x", "event: "] {
        let taken = Arc::default();
        let vendor = endless(first, &taken).await;
        let served = Served::start(|config| before_gemini(&vendor, config)).await;
        let reply = ask(&served, "both", streamed()).await;
        assert_eq!(reply.status, 200);
        assert_eq!(reply.header("x-spillway-target"), Some("gemini"));
        // What was held, and what was on its way.
        let taken = taken.load(Ordering::Relaxed);
        assert!(taken < 64 * MIB, "{taken} bytes");
    }
}

#[tokio::test]
async fn a_line_of_data_of_a_hundred_mebibytes_is_given_on_as_it_comes() {
    let taken = Arc::default();
    let vendor = endless("data: ", &taken).await;
    let served = Served::start(|config| before_gemini(&vendor, config)).await;
    let mut chat = streamed();
    chat["model"] = "both".into();
    let mut open = served.open(served.chat(&chat)).await;
    assert_eq!(open.status(), 200);
    let mut got = 0;
    while got < 100 * MIB {
        let frame = http_body_util::BodyExt::frame(&mut open).await.unwrap();
        got += frame.unwrap().into_data().unwrap().len();
        let ahead = taken.load(Ordering::Relaxed) - got;
        assert!(ahead < 64 * MIB, "{ahead} bytes are somewhere");
    }
    drop(open);
    assert!(served.fakes.gemini.log().is_empty());
    assert_eq!(served.calls(1).await[0]["outcome"], "left");
}

#[tokio::test]
async fn what_nobody_asked_to_be_compressed_is_not_unpacked() {
    let vendor = Stub::start(|headers| {
        assert!(!headers.contains_key("accept-encoding"));
        let answer = Response::builder().header("content-encoding", "gzip");
        let kind = headers["accept"].clone();
        let answer = answer.header("content-type", kind);
        answer.body(Body::from(vec![0x1f; 1000])).unwrap()
    })
    .await;
    let served = Served::start(|config| before_gemini(&vendor, config)).await;
    for (accept, mut chat) in [
        ("application/json", hello()),
        ("text/event-stream", streamed()),
    ] {
        chat["model"] = "both".into();
        let mut request = served.chat(&chat);
        let headers = request.headers_mut();
        headers.insert("accept", accept.parse().unwrap());
        headers.insert("accept-encoding", "gzip".parse().unwrap());
        let reply = served.send(request).await;
        assert_eq!(reply.status, 200, "{accept}");
        assert_eq!(
            reply.header("x-spillway-target"),
            Some("gemini"),
            "{accept}"
        );
    }
}
