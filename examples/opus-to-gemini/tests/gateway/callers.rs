//! Who may call, and from where.

use http::Method;
use opus_to_gemini::{config::Config, gateway::Gateway};
use tokio::net::TcpListener;

use crate::{
    logs,
    support::{CALLER_KEY, Served, hello, key},
};

fn with_keys(config: &mut Config) {
    config.gateway.inbound_keys_env = "CALLER_KEYS".to_owned();
}

#[tokio::test]
async fn where_keys_are_asked_for_nobody_passes_without_one() {
    let served = Served::start(with_keys).await;
    for path in [
        "/v1/chat/completions",
        "/v1/models",
        "/v1/models/claude-opus",
        "/status",
        "/metrics",
    ] {
        let method = match path.ends_with("completions") {
            true => Method::POST,
            false => Method::GET,
        };
        for bad in [
            None,
            Some("Bearer wrong"),
            Some("Bearer caller-key-"),
            Some("Basic caller-key-1"),
        ] {
            let mut request = served.request(method.clone(), path, hello().to_string());
            if let Some(bad) = bad {
                request
                    .headers_mut()
                    .insert("authorization", bad.parse().unwrap());
            }
            let reply = served.send(request).await;
            assert_eq!(reply.status, 401, "{path} {bad:?}");
            assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
            let error = reply.error();
            assert_eq!(
                (&error["type"], &error["code"]),
                (&"authentication_error".into(), &"invalid_api_key".into())
            );
            assert_eq!(reply.header("x-should-retry"), Some("false"));
        }
        let mut request = served.request(method, path, hello().to_string());
        let value = format!("Bearer {CALLER_KEY}");
        request
            .headers_mut()
            .insert("authorization", value.parse().unwrap());
        let reply = served.send(request).await;
        assert_eq!(reply.status, 200, "{path}");
        assert!(!reply.text().contains(CALLER_KEY));
    }
    assert_eq!(served.fakes.anthropic.log().len(), 1);
    for path in ["/", "/healthz", "/readyz"] {
        assert_eq!(served.get(path).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn every_answer_has_an_id_and_only_routes_with_a_key_ask_for_one() {
    let served = Served::start(with_keys).await;
    for (method, path, origin, status) in [
        (Method::POST, "/v1/chat/completions", None, 401),
        (Method::GET, "/v1/chat/completions", None, 401),
        (Method::DELETE, "/status", None, 401),
        (Method::POST, "/healthz", None, 405),
        (Method::DELETE, "/", None, 405),
        (Method::GET, "/nothing", None, 404),
        (Method::GET, "/readyz", None, 200),
        (Method::HEAD, "/", None, 200),
        (Method::GET, "/status", Some("https://evil.example"), 403),
        (Method::GET, "/healthz", Some("https://evil.example"), 403),
        (Method::GET, "/nothing", Some("https://evil.example"), 403),
    ] {
        let mut request = served.request(method.clone(), path, "");
        let headers = request.headers_mut();
        headers.insert("x-request-id", "mine-7".parse().unwrap());
        if let Some(origin) = origin {
            headers.insert("origin", origin.parse().unwrap());
        }
        let reply = served.send(request).await;
        assert_eq!(reply.status, status, "{method} {path}");
        let id = reply.header("x-request-id");
        assert_eq!(id, Some("mine-7"), "{method} {path}");
    }
}

#[tokio::test]
async fn keys_that_are_named_and_not_there_are_an_error() {
    let served = Served::start(|_| {}).await;
    let mut config = served.config.clone();
    config.gateway.inbound_keys_env = "NO_SUCH_VARIABLE".to_owned();
    let error = Gateway::new(&config, key).unwrap_err();
    assert!(error.to_string().contains("NO_SUCH_VARIABLE"), "{error}");
}

#[tokio::test]
async fn pages_of_other_sites_cannot_spend_the_keys() {
    let served = Served::start(|_| {}).await;
    let with = |name: &'static str, value: &str| {
        let mut request = served.chat(&hello());
        request.headers_mut().insert(name, value.parse().unwrap());
        request
    };
    for request in [
        with("origin", "https://evil.example"),
        with("origin", "null"),
        with("host", "evil.example"),
    ] {
        let reply = served.send(request).await;
        assert_eq!(reply.status, 403);
        assert_eq!(reply.error()["code"], "foreign_origin");
    }
    assert!(served.fakes.anthropic.log().is_empty());
    let own = format!("http://{}", served.address);
    assert_eq!(served.send(with("origin", &own)).await.status, 200);
    assert_eq!(
        served.send(with("host", "localhost:1234")).await.status,
        200
    );
}

#[tokio::test]
async fn an_address_that_others_reach_without_keys_is_warned_of() {
    let log = logs::start();
    let served = Served::start(|_| {}).await;
    for (config, warned) in [
        (served.config.clone(), 1),
        (
            {
                let mut config = served.config.clone();
                with_keys(&mut config);
                config
            },
            0,
        ),
    ] {
        let gateway = Gateway::new(&config, key).unwrap();
        let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let at_once = || std::future::ready(());
        gateway.serve(listener, at_once(), at_once()).await.unwrap();
        let lines = log.lines(&address);
        assert_eq!(lines.len(), warned, "{lines:?}");
    }
}
