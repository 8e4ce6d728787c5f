//! What is served where.

use std::collections::BTreeMap;

use http::Method;

use crate::support::Served;

#[tokio::test]
async fn models_are_listed_and_found() {
    let served = Served::start(|_| {}).await;
    let list = served.get("/v1/models").await.json();
    assert_eq!(list["object"], "list");
    let ids: Vec<_> = list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["id"].clone())
        .collect();
    assert_eq!(ids, ["claude-opus", "claude-opus-5", "gemini-2.5-pro"]);

    let one = served.get("/v1/models/claude-opus").await.json();
    assert_eq!(
        (&one["id"], &one["object"]),
        (&"claude-opus".into(), &"model".into())
    );
    assert!(one["created"].is_u64() && one["owned_by"].is_string());

    let none = served.get("/v1/models/some/other").await;
    assert_eq!(none.status, 404);
    assert_eq!(none.error()["code"], "model_not_found");
}

#[tokio::test]
async fn it_is_live_always_and_ready_while_some_target_can_serve() {
    let served = Served::start(|_| {}).await;
    let fleet = served.gateway.fleet();
    let breaker = |name| fleet.member(name).unwrap().breaker().unwrap();
    assert_eq!(served.get("/healthz").await.status, 200);
    assert_eq!(served.get("/readyz").await.status, 200);
    breaker("opus").force_open();
    assert_eq!(served.get("/readyz").await.status, 200);
    breaker("gemini").force_open();
    assert_eq!(served.get("/readyz").await.status, 503);
    assert_eq!(served.get("/healthz").await.status, 200);
    breaker("opus").force_close();
    assert_eq!(served.get("/readyz").await.status, 200);
}

#[tokio::test]
async fn another_endpoint_is_told_what_exists() {
    let served = Served::start(|_| {}).await;
    for path in [
        "/v1/embeddings",
        "/v1/completions",
        "/v1",
        "/nothing",
        "/v1/chat/completions/",
    ] {
        let reply = served.get(path).await;
        assert_eq!(reply.status, 404, "{path}");
        let error = reply.error();
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(path), "{message}");
        for there in ["POST /v1/chat/completions", "GET /v1/models", "GET /status"] {
            assert!(message.contains(there), "{message}");
        }
        assert_eq!(reply.header("x-should-retry"), Some("false"));
    }
}

#[tokio::test]
async fn a_wrong_method_is_told_the_right_one() {
    let served = Served::start(|_| {}).await;
    for (method, path, allowed) in [
        (Method::GET, "/v1/chat/completions", "POST"),
        (Method::POST, "/v1/models", "GET,HEAD"),
        (Method::DELETE, "/status", "GET,HEAD"),
        (Method::OPTIONS, "/v1/chat/completions", "POST"),
        (Method::POST, "/", "GET,HEAD"),
    ] {
        let reply = served.send(served.request(method, path, "")).await;
        assert_eq!(reply.status, 405, "{path}");
        assert_eq!(reply.header("allow"), Some(allowed), "{path}");
        assert_eq!(reply.error()["code"], "method_not_allowed");
        // No CORS: a page of another site gets nothing.
        assert_eq!(reply.header("access-control-allow-origin"), None);
    }
}

#[tokio::test]
async fn metrics_are_those_of_the_layers_and_of_the_gateway() {
    let served = Served::start(|_| {}).await;
    served.ask().await;
    served.calls(1).await;
    let reply = served.get("/metrics").await;
    assert_eq!(reply.status, 200);
    assert!(
        reply
            .header("content-type")
            .unwrap()
            .starts_with("text/plain")
    );
    for line in [
        "spillway_attempts_total{target=\"opus\",class=\"success\"}",
        "spillway_breaker_state{target=\"opus\"}",
        "spillway_budget_balance{",
        "spillway_gateway_calls_total{target=\"opus\",status=\"200\",outcome=\"answered\"}",
        "spillway_gateway_latency_seconds_bucket{target=\"opus\",stream=\"false\",le=\"180\"}",
        "spillway_gateway_tokens_total{target=\"opus\",kind=\"output\"}",
        "spillway_gateway_cost_dollars{target=\"opus\"}",
        "spillway_gateway_in_flight",
    ] {
        assert!(
            reply.text().contains(line),
            "{line} is not in {}",
            reply.text()
        );
    }
    let lines = |kind: &str| {
        let lines = reply.text().lines();
        let of_kind = lines.filter_map(|line| line.strip_prefix(kind));
        let named = of_kind.filter_map(|line| line.split_once(' '));
        named
            .map(|(name, said)| (name.to_owned(), said.to_owned()))
            .collect::<BTreeMap<_, _>>()
    };
    let (kinds, helps) = (lines("# TYPE "), lines("# HELP "));
    assert!(kinds.len() > 5);
    for (name, kind) in kinds {
        assert!(helps.contains_key(&name), "{name} has no help");
        assert_eq!(name.ends_with("_total"), kind == "counter", "{name}");
    }
}

#[tokio::test]
async fn the_page_is_one_file_that_asks_nobody_else() {
    let served = Served::start(|_| {}).await;
    let reply = served.get("/").await;
    assert_eq!(reply.status, 200);
    assert!(
        reply
            .header("content-type")
            .unwrap()
            .starts_with("text/html")
    );
    let policy = reply.header("content-security-policy").unwrap();
    assert!(
        policy.starts_with("default-src 'none'; script-src 'nonce-"),
        "{policy}"
    );
    assert!(!policy.contains("unsafe"), "{policy}");
    let nonce = policy
        .split("'nonce-")
        .nth(1)
        .unwrap()
        .split('\'')
        .next()
        .unwrap();
    let page = reply.text();
    assert!(page.contains(&format!("<script nonce=\"{nonce}\">")));
    assert!(!page.contains("{{"));
    for foreign in [
        "http://",
        "https://",
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "src=",
    ] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    let again = served.get("/").await;
    assert_ne!(again.header("content-security-policy"), Some(policy));
}

#[tokio::test]
async fn a_path_that_is_no_text_names_no_model() {
    let served = Served::start(|_| {}).await;
    let reply = served.get("/v1/models/%ff").await;
    assert_eq!(reply.status, 404);
    assert_eq!(reply.error()["code"], "model_not_found");
}

#[tokio::test]
async fn the_router_may_be_nested_in_another_server() {
    let served =
        Served::start(|config| config.gateway.inbound_keys_env = "CALLER_KEYS".into()).await;
    let app = axum::Router::new().nest("/llm", served.gateway.router());
    let ask = |path: &str| {
        let request = http::Request::get(path).body(axum::body::Body::empty());
        tower::ServiceExt::oneshot(app.clone(), request.unwrap())
    };
    for (path, status) in [
        ("/llm", 200),
        ("/llm/healthz", 200),
        ("/llm/v1/models", 401),
        ("/llm/nothing", 404),
        ("/healthz", 404),
    ] {
        let answer = ask(path).await.unwrap();
        assert_eq!(answer.status(), status, "{path}");
        let has_id = answer.headers().contains_key("x-request-id");
        assert_eq!(has_id, path.starts_with("/llm"), "{path}");
    }
    let page = ask("/llm").await.unwrap().into_body();
    let page = http_body_util::BodyExt::collect(page).await.unwrap();
    let page = String::from_utf8(page.to_bytes().to_vec()).unwrap();
    assert!(page.contains("location.pathname") && !page.contains("fetch(\"/"));
}
