//! How much, how many and how long.

use std::{convert::Infallible, time::Duration};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use futures_util::stream;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use opus_to_gemini::fake::{Behaviour, Did};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    stub::Stub,
    support::{PLENTY, Reply, Served, hello, streamed},
};

async fn calls(served: &Served, what: &str) -> u64 {
    served.status().await["calls"][what].as_u64().unwrap()
}

/// Waits until so many calls are under way or waiting.
async fn reached(served: &Served, what: &str, so_many: u64) {
    while calls(served, what).await != so_many {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn calls_beyond_the_queue_are_refused_and_those_in_it_have_their_turn() {
    let served = Served::start(|config| {
        config.gateway.in_flight = 1;
        config.gateway.queue = 1;
        config.gateway.queue_within = PLENTY;
    })
    .await;
    served.fakes.anthropic.next(1, Behaviour::Hang);
    let mut first = Box::pin(served.ask());
    let mut second = Box::pin(served.ask());
    tokio::select! {
        biased;
        _ = &mut first => unreachable!(),
        () = reached(&served, "in_flight", 1) => {}
    }
    tokio::select! {
        biased;
        _ = &mut second => unreachable!(),
        () = reached(&served, "waiting", 1) => {}
    }
    let reply = served.ask().await;
    assert_eq!(reply.status, 429);
    assert_eq!(reply.header("retry-after"), Some("1"));
    // Nothing was sent: an SDK may come back.
    assert_eq!(reply.header("x-should-retry"), Some("true"));
    let error = reply.error();
    assert_eq!(
        (&error["type"], &error["code"]),
        (&"rate_limit_error".into(), &"gateway_busy".into())
    );

    // The first leaves.
    drop(first);
    assert_eq!(second.await.status, 200);
    reached(&served, "in_flight", 0).await;
}

#[tokio::test]
async fn nobody_waits_in_the_queue_for_longer_than_its_limit() {
    let served = Served::start(|config| {
        config.gateway.in_flight = 1;
        config.gateway.queue_within = Duration::from_millis(50);
    })
    .await;
    served.fakes.anthropic.set(Behaviour::Hang);
    let mut first = Box::pin(served.ask());
    tokio::select! {
        biased;
        _ = &mut first => unreachable!(),
        () = reached(&served, "in_flight", 1) => {}
    }
    assert_eq!(served.ask().await.status, 429);
    assert_eq!(served.fakes.anthropic.log().len(), 1);
}

#[tokio::test]
async fn a_stream_is_under_way_to_its_last_byte() {
    let served = Served::start(|config| {
        config.gateway.in_flight = 1;
        config.gateway.queue = 0;
    })
    .await;
    served.fakes.anthropic.set_words(60);
    served.fakes.anthropic.set_stream(PLENTY);
    let mut open = served.open(served.chat(&streamed())).await;
    assert_eq!(open.status(), 200);
    open.frame().await.unwrap().unwrap();
    assert_eq!(served.ask().await.status, 429);

    drop(open);
    reached(&served, "in_flight", 0).await;
    served.fakes.anthropic.set_stream(Duration::ZERO);
    assert_eq!(served.ask().await.status, 200);
}

#[tokio::test]
async fn a_client_that_leaves_takes_the_upstream_with_it() {
    let served = Served::start(|_| {}).await;
    // Before the answer.
    served.fakes.anthropic.next(1, Behaviour::Hang);
    let mut asking = Box::pin(served.ask());
    let sent = async {
        served.until(|s| s.fakes.anthropic.log().len() == 1).await;
    };
    tokio::select! {
        _ = &mut asking => unreachable!(),
        () = sent => {}
    }
    assert_eq!(served.fakes.anthropic.connections(), 1);
    drop(asking);
    served.until(|s| s.fakes.anthropic.connections() == 0).await;
    assert_eq!(served.fakes.anthropic.log()[0].did, Did::Left);

    // In the middle of a stream.
    served.fakes.anthropic.set_words(60);
    served.fakes.anthropic.set_stream(PLENTY);
    let mut open = served.open(served.chat(&streamed())).await;
    open.frame().await.unwrap().unwrap();
    assert_eq!(served.fakes.anthropic.connections(), 1);
    drop(open);
    served.until(|s| s.fakes.anthropic.connections() == 0).await;

    let calls = served.calls(2).await;
    let told: Vec<_> = calls
        .iter()
        .map(|c| (c["outcome"].clone(), c["status"].clone()))
        .collect();
    assert_eq!(
        told,
        [
            ("left".into(), 200.into()),
            ("left".into(), serde_json::Value::Null)
        ]
    );
    // Nobody's failure.
    let status = served.status().await;
    assert_eq!(status["targets"][0]["breaker"]["failures_in_a_row"], 0);
    assert!(served.fakes.gemini.log().is_empty());
}

#[tokio::test]
async fn a_body_that_is_too_long_is_413() {
    let served = Served::start(|config| config.gateway.max_body = 1000).await;
    for length in [1001, 100_000, 3_000_000] {
        let request = served.request(Method::POST, "/v1/chat/completions", vec![b' '; length]);
        let reply = served.send(request).await;
        assert_eq!(reply.status, 413, "{length}");
        let error = reply.error();
        assert_eq!(
            (&error["type"], &error["code"]),
            (&"invalid_request_error".into(), &"request_too_large".into())
        );
        assert_eq!(reply.header("x-should-retry"), Some("false"));
    }
    assert_eq!(served.ask().await.status, 200);
}

#[tokio::test]
async fn a_body_that_says_that_it_is_too_long_is_413_before_it_comes() {
    let served = Served::start(|_| {}).await;
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
                content-length: 99999999999\r\n";
    for expects in ["expect: 100-continue\r\n\r\n", "\r\n{"] {
        let (_stream, said) = raw(&served, &format!("{head}{expects}")).await;
        // It is not told to send it, and not waited for.
        assert!(said.starts_with("HTTP/1.1 413 "), "{said}");
    }
}

#[tokio::test]
async fn a_compressed_body_is_415() {
    let served = Served::start(|_| {}).await;
    let mut request = served.chat(&hello());
    request
        .headers_mut()
        .insert("content-encoding", "gzip".parse().unwrap());
    let reply = served.send(request).await;
    assert_eq!(reply.status, 415);
    reply.error();
}

async fn raw(served: &Served, sent: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    stream.write_all(sent.as_bytes()).await.unwrap();
    let mut read = Vec::new();
    let mut piece = [0; 4096];
    loop {
        match stream.read(&mut piece).await.unwrap() {
            0 => break,
            n => read.extend_from_slice(&piece[..n]),
        }
    }
    (stream, String::from_utf8(read).unwrap())
}

#[tokio::test]
async fn a_client_that_is_slow_with_its_body_is_408() {
    let served = Served::start(|config| {
        config.gateway.read_body_within = Duration::from_millis(100);
    })
    .await;
    let head =
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{";
    let (_stream, said) = raw(&served, head).await;
    assert!(said.starts_with("HTTP/1.1 408 "), "{said}");
    assert!(said.contains("\"code\":\"request_timeout\""), "{said}");
}

/// Sends a beginning, and then a byte now and then, until it is let go; gives what it was told.
async fn dripped(served: &Served, sent: &str) -> String {
    let stream = TcpStream::connect(served.address).await.unwrap();
    let (mut read, mut write) = stream.into_split();
    write.write_all(sent.as_bytes()).await.unwrap();
    let drip = async move {
        while write.write_all(b"a").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let mut said = Vec::new();
    // A connection may end in a reset, with bytes on their way to it.
    let (_, ()) = tokio::join!(read.read_to_end(&mut said), drip);
    String::from_utf8(said).unwrap()
}

#[tokio::test]
async fn a_byte_of_a_request_now_and_then_keeps_nothing_open() {
    let served = Served::start(|config| {
        config.gateway.read_header_within = Duration::from_millis(100);
        config.gateway.read_body_within = Duration::from_millis(100);
    })
    .await;
    let said = dripped(&served, "POST /v1/chat/completions HTTP/1.1\r\nx: ").await;
    assert!(!said.contains(" 200 "), "{said}");
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n";
    for body in [
        "content-length: 100000\r\n\r\n{",
        "transfer-encoding: chunked\r\n\r\nffff\r\n{",
        // In what is no part of the body.
        "transfer-encoding: chunked\r\n\r\n1;x=",
        "transfer-encoding: chunked\r\n\r\n0\r\nx: ",
    ] {
        let said = dripped(&served, &format!("{head}{body}")).await;
        assert!(said.starts_with("HTTP/1.1 408 "), "{body}: {said}");
    }
    reached(&served, "in_flight", 0).await;
    reached(&served, "waiting", 0).await;
}

/// A stream of tokens that never ends.
async fn endless() -> Stub {
    Stub::start(|_| {
        let token = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
        let piece = Bytes::from(token.repeat(100));
        let pieces = stream::repeat_with(move || Ok::<_, Infallible>(piece.clone()));
        let answer = Response::builder().header("content-type", "text/event-stream");
        answer.body(Body::from_stream(pieces)).unwrap()
    })
    .await
}

#[tokio::test]
async fn a_client_that_takes_a_little_of_its_answer_now_and_then_is_let_go() {
    let vendor = endless().await;
    let served = Served::start(|config| {
        vendor.join(config);
        config.gateway.write_within = Duration::from_millis(200);
        // More than any reader of pieces takes.
        config.gateway.write_least = 1 << 40;
    })
    .await;
    let mut chat = streamed();
    chat["model"] = "stub".into();
    let mut open = served.open(served.chat(&chat)).await;
    assert_eq!(open.status(), 200);
    let mut taken = 0_usize;
    while let Some(Ok(frame)) = open.frame().await {
        taken += frame.data_ref().map_or(0, Bytes::len);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(taken > 0);
    let calls = served.calls(1).await;
    assert_eq!(calls[0]["outcome"], "left");
    reached(&served, "in_flight", 0).await;
}

#[tokio::test]
async fn a_client_that_is_slow_with_its_head_is_let_go() {
    let served = Served::start(|config| {
        config.gateway.read_header_within = Duration::from_millis(100);
    })
    .await;
    for sent in ["", "POST /v1/chat/completions HTTP/1.1\r\nhost: lo"] {
        // It returns only once the connection is closed.
        let (_stream, said) = raw(&served, sent).await;
        assert!(!said.contains("200"), "{said}");
    }
    assert_eq!(served.ask().await.status, 200);
}

async fn with_timeout(served: &Served, millis: &str) -> Reply {
    let mut request: Request<Full<_>> = served.chat(&hello());
    let name = "x-spillway-timeout-ms";
    request.headers_mut().insert(name, millis.parse().unwrap());
    served.send(request).await
}

#[tokio::test]
async fn a_request_shortens_and_lengthens_its_own_time() {
    let served = Served::start(|config| {
        config.call.plain_deadline = Some(Duration::from_millis(300));
        config.gateway.min_timeout = Duration::from_millis(50);
    })
    .await;
    let second = Duration::from_secs(1);
    served.fakes.anthropic.set_latency(second..=second);
    assert_eq!(served.ask().await.status, 504);
    assert_eq!(with_timeout(&served, "30000").await.status, 200);

    let served = Served::start(|config| {
        config.gateway.min_timeout = Duration::from_millis(50);
    })
    .await;
    served.fakes.anthropic.set(Behaviour::Hang);
    // Below the range: it becomes the least.
    for millis in ["100", "1"] {
        let reply = with_timeout(&served, millis).await;
        assert_eq!(reply.status, 504);
        assert_eq!(reply.error()["code"], "deadline_exceeded");
    }
    for wrong in ["soon", "-5", "1.5"] {
        let reply = with_timeout(&served, wrong).await;
        assert_eq!(reply.status, 400);
        assert_eq!(reply.error()["code"], "invalid_timeout");
    }
}
