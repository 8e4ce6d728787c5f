//! One key for each call.

use std::collections::HashSet;

use http::{HeaderValue, Method, Request, Response};
use tower::{Layer, ServiceBuilder, ServiceExt};
use tower_spillway_core::{
    BoxError, Chance, Class, ErrorReader, Http, RetryLayer,
    idempotency_key::{IdempotencyKeyLayer, InvalidIdempotencyKey},
    testing::{contract::ReadyProbeLayer, script::Script},
};

use crate::support::*;

const KEY: &str = "idempotency-key";

fn upstream(statuses: &[u16]) -> Script<Request<Body>, Response<Body>> {
    Script::new(statuses.iter().map(|status| answer(*status, &[]))).recording()
}

fn keys(upstream: &Script<Request<Body>, Response<Body>>) -> Vec<String> {
    let requests = upstream.requests();
    let keys = requests.iter().map(|r| {
        let mut all = r.headers().get_all(KEY).iter();
        let key = all.next().unwrap().to_str().unwrap().to_owned();
        assert!(all.next().is_none(), "one key");
        key
    });
    keys.collect()
}

#[tokio::test(start_paused = true)]
async fn each_attempt_has_the_key_of_its_call_and_each_call_its_own() {
    let upstream = upstream(&[503, 503, 200, 503, 503, 200]);
    let client = ServiceBuilder::new()
        .layer(IdempotencyKeyLayer::new())
        .layer(RetryLayer::new(retry(SECOND)).adapter(Http::new().honours_idempotency_key(true)))
        .service(upstream.clone());
    for _ in 0..2 {
        let response = call(&client, request(Method::POST)).await.unwrap();
        assert_eq!(response.status(), 200);
    }
    let keys = keys(&upstream);
    assert_eq!(keys.len(), 6);
    assert!(keys[..3].iter().all(|key| *key == keys[0]));
    assert!(keys[3..].iter().all(|key| *key == keys[3]));
    assert_ne!(keys[0], keys[3]);
}

/// With a key, what may have been processed may be sent again to a server that honours it.
#[tokio::test(start_paused = true)]
async fn a_key_makes_an_ambiguous_post_safe_to_send_again() {
    for (keyed, sends) in [(false, 1), (true, 2)] {
        let upstream = upstream(&[500, 200]);
        let retry =
            RetryLayer::new(retry(SECOND)).adapter(Http::new().honours_idempotency_key(true));
        let client = ServiceBuilder::new()
            .option_layer(keyed.then(IdempotencyKeyLayer::new))
            .layer(retry)
            .service(upstream.clone());
        call(&client, request(Method::POST)).await.unwrap();
        assert_eq!(upstream.calls(), sends);
    }
}

#[tokio::test(start_paused = true)]
async fn the_callers_own_is_kept_and_an_empty_one_is_none() {
    let upstream = upstream(&[200]);
    let client = IdempotencyKeyLayer::new().layer(upstream.clone());
    for own in ["order-17", "order-17", "\"quoted\"", ""] {
        let mut request = request(Method::POST);
        request
            .headers_mut()
            .insert(KEY, HeaderValue::from_str(own).unwrap());
        client.clone().oneshot(request).await.unwrap();
    }
    let keys = keys(&upstream);
    assert_eq!(keys[..3], ["order-17", "order-17", "\"quoted\""]);
    assert_eq!(keys[3].len(), 36);
}

#[tokio::test(start_paused = true)]
async fn random_keys_are_uuids_that_differ_and_a_seed_plays_them_again() {
    let upstream = upstream(&[200]);
    for seed in [1, 1, 2] {
        let layer = IdempotencyKeyLayer::new().chance(Chance::seeded(seed));
        let client = layer.layer(upstream.clone());
        for _ in 0..100 {
            client.clone().oneshot(request(Method::POST)).await.unwrap();
        }
    }
    let keys = keys(&upstream);
    for key in &keys {
        let parts: Vec<_> = key.split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12], "{key}");
        assert_eq!(&key[14..15], "4", "{key}: the version");
        assert!(
            matches!(&key[19..20], "8" | "9" | "a" | "b"),
            "{key}: the variant"
        );
    }
    assert_eq!(keys[..100], keys[100..200], "the same seed");
    let different: HashSet<_> = keys[100..].iter().collect();
    assert_eq!(different.len(), 200);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_key_is_an_error_and_nothing_is_sent() {
    let long = "k".repeat(256);
    for (made, sent) in [
        ("", false),
        (long.as_str(), false),
        (&long[1..], true),
        ("a\tb", false),
        ("item 3", true),
    ] {
        let upstream = upstream(&[200]);
        let value = HeaderValue::from_str(made).unwrap();
        let layer = IdempotencyKeyLayer::made_by(move |_: &Request<Body>| value.clone());
        let out = layer
            .layer(upstream.clone())
            .oneshot(request(Method::POST))
            .await;
        assert_eq!(
            (out.is_ok(), upstream.calls() == 1),
            (sent, sent),
            "{made:?}"
        );
        if let Err(error) = out {
            let error: BoxError = error;
            assert!(tower_spillway_core::error::find::<InvalidIdempotencyKey>(&*error).is_some());
            assert_eq!(
                ErrorReader::default().read(&*error).class(),
                Class::CallerFault
            );
        }
    }
    // Bytes beyond ASCII, which a header value may have.
    let upstream = upstream(&[200]);
    let latin = |_: &Request<Body>| HeaderValue::from_bytes(b"caf\xe9").unwrap();
    let client = IdempotencyKeyLayer::made_by(latin).layer(upstream.clone());
    assert!(client.oneshot(request(Method::POST)).await.is_err());
    assert_eq!(upstream.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn it_calls_the_instance_that_was_polled_ready() {
    for probe in [ReadyProbeLayer::new(), ReadyProbeLayer::pending_once()] {
        let client = IdempotencyKeyLayer::new().layer(probe.layer(upstream(&[200])));
        for _ in 0..3 {
            client.clone().oneshot(request(Method::POST)).await.unwrap();
        }
        assert_eq!(probe.reserved(), 0);
    }
}
