//! A key reaches only the target that it belongs to, on first sends, retries and hops.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may"
)]

mod common;

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use common::{
    Req, answer, post,
    server::{Act, Server, client},
};
use http::HeaderValue;
use tower::{Layer, Service, ServiceBuilder, ServiceExt};
use tower_spillway::{core::testing::readiness::Readiness, prelude::*};

#[tokio::test]
async fn neither_server_ever_sees_the_key_of_the_other_nor_of_the_caller() {
    let turn = AtomicUsize::new(0);
    // Throttled, failed, throttled with a wait that does not fit, well.
    let opus = Server::start(move |_| {
        Act::Answer(match turn.fetch_add(1, Ordering::SeqCst) % 4 {
            0 => answer(429, &[("retry-after-ms", "5")]),
            1 => answer(500, &[]),
            2 => answer(429, &[("retry-after", "3600")]),
            _ => answer(200, &[]),
        })
    })
    .await;
    let gemini = Server::start(|_| Act::Answer(answer(200, &[]))).await;

    let target = ServiceBuilder::new()
        .layer(JitterBackoffLayer::constant(Duration::from_millis(1)).unwrap())
        .layer(RetryAfterLayer::new())
        .service(client());
    let to = |server: &Server, key: &'static str| {
        let uri = server.uri("/v1/chat/completions");
        move |request: &mut Req| {
            *request.uri_mut() = uri.clone();
            let mut key = HeaderValue::from_static(key);
            key.set_sensitive(true);
            request.headers_mut().insert("authorization", key);
            Ok(())
        }
    };
    let mut service = FailoverService::new([
        Target::new("opus", target.clone())
            .prepare(to(&opus, "Bearer opus-key"))
            .retry_ambiguous(true),
        Target::new("gemini", target).prepare(to(&gemini, "Bearer gemini-key")),
    ])
    .unwrap();

    const CALLERS: [&str; 5] = [
        "authorization",
        "proxy-authorization",
        "cookie",
        "x-api-key",
        "x-goog-api-key",
    ];
    for _ in 0..20 {
        let mut request = post();
        for name in CALLERS {
            request
                .headers_mut()
                .insert(name, HeaderValue::from_static("caller-key"));
        }
        let response = service.ready().await.unwrap().call(request).await.unwrap();
        assert_eq!(response.status(), 200);
    }

    for (server, own) in [(&opus, "Bearer opus-key"), (&gemini, "Bearer gemini-key")] {
        let log = server.log();
        assert!(
            log.len() >= 10,
            "{} requests: the hop and the retry were seen",
            log.len()
        );
        for seen in log {
            let keys: Vec<_> = CALLERS
                .iter()
                .filter_map(|n| seen.headers.get(*n))
                .collect();
            assert_eq!(keys, [own]);
            assert_eq!(&seen.body[..], b"hi", "the whole body, each time");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_text_of_an_error_of_readiness_is_not_logged() {
    let readiness = Readiness::new();
    readiness.set_failed("connect to https://gemini/?key=planted");
    let upstream = common::always(200, &[]);
    let targets =
        ["opus", "gemini"].map(|name| Target::new(name, readiness.layer(upstream.clone())));
    let service = FailoverService::new(targets).unwrap();
    let lines = common::logged(tracing::Level::TRACE, async {
        assert!(service.oneshot(post()).await.is_err());
    })
    .await;
    assert!(lines.iter().any(|line| line.contains("become ready")));
    assert!(!lines.iter().any(|line| line.contains("planted")));
}
