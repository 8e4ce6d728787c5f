//! Calls without an answer.

use std::time::Duration;

use axum::{body::Body, response::Response};
use http::Method;
use opus_to_gemini::{
    config::Route,
    fake::{Behaviour, FAKE_GEMINI_KEY},
};
use serde_json::{Value, json};

use crate::{
    stub::Stub,
    support::{Served, hello, streamed},
};

fn stub() -> Value {
    let mut chat = hello();
    chat["model"] = "stub".into();
    chat
}

#[tokio::test]
async fn a_body_that_is_no_chat_is_the_callers_fault() {
    let served = Served::start(|_| {}).await;
    for body in [
        "",
        "{",
        "[]",
        r#"{"model":"claude-opus"}"#,
        r#"{"messages":[{}]}"#,
    ] {
        let reply = served
            .send(served.request(Method::POST, "/v1/chat/completions", body))
            .await;
        assert_eq!(reply.status, 400, "{body}");
        assert_eq!(reply.error()["type"], "invalid_request_error");
        assert_eq!(reply.header("x-should-retry"), Some("false"));
    }
    let nested = format!(
        r#"{{"model":"claude-opus","messages":[{}{}]}}"#,
        "[".repeat(5000),
        "]".repeat(5000)
    );
    let reply = served
        .send(served.request(Method::POST, "/v1/chat/completions", nested))
        .await;
    assert_eq!(reply.status, 400);
    reply.error();
    assert!(served.fakes.anthropic.log().is_empty());
}

#[tokio::test]
async fn an_unknown_model_is_not_found() {
    let served = Served::start(|_| {}).await;
    let mut chat = hello();
    chat["model"] = "gpt-\"5\"".into();
    let reply = served.send(served.chat(&chat)).await;
    assert_eq!(reply.status, 404);
    let error = reply.error();
    assert_eq!(
        (&error["code"], &error["param"]),
        (&json!("model_not_found"), &json!("model"))
    );
    assert_eq!(reply.header("x-should-retry"), Some("false"));

    chat["model"] = "m".repeat(100_000).into();
    let reply = served.send(served.chat(&chat)).await;
    assert_eq!(reply.status, 404);
    assert!(reply.body.len() < 1000, "{}", reply.body.len());
}

#[tokio::test]
async fn fallbacks_of_a_request_are_refused_unless_allowed() {
    let mut chat = hello();
    chat["fallbacks"] = json!(["gemini-2.5-pro"]);
    let served = Served::start(|_| {}).await;
    let reply = served.send(served.chat(&chat)).await;
    assert_eq!(reply.status, 400);
    let error = reply.error();
    assert_eq!(error["param"], "fallbacks");
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("allow_request_fallbacks")
    );

    let served = Served::start(|config| config.gateway.allow_request_fallbacks = true).await;
    chat["fallbacks"] = json!(["no-such-model"]);
    let reply = served.send(served.chat(&chat)).await;
    assert_eq!(reply.status, 404);
    assert!(
        reply.error()["message"]
            .as_str()
            .unwrap()
            .contains("no-such-model")
    );
}

#[tokio::test]
async fn all_targets_out_is_503_with_the_time_to_come_back() {
    let served = Served::start(|_| {}).await;
    for (name, millis) in [("opus", 60_000), ("gemini", 2_500)] {
        let fleet = served.gateway.fleet();
        let breaker = fleet.member(name).unwrap().breaker().unwrap();
        breaker.force_open_for(Duration::from_millis(millis));
    }
    for chat in [hello(), streamed()] {
        let reply = served.send(served.chat(&chat)).await;
        assert_eq!(reply.status, 503);
        assert_eq!(reply.header("retry-after"), Some("3"));
        assert_eq!(reply.header("x-should-retry"), Some("false"));
        let error = reply.error();
        assert_eq!(error["code"], "all_targets_refused");
        let tried = error["tried"].as_array().unwrap();
        let targets: Vec<_> = tried
            .iter()
            .map(|t| t["target"].as_str().unwrap())
            .collect();
        assert_eq!(targets, ["opus", "gemini"]);
        assert!(tried.iter().all(|t| t["class"] == "refused"), "{error}");
        assert_eq!(reply.header("x-spillway-attempts"), Some("0"));
    }
    assert!(served.fakes.anthropic.log().is_empty() && served.fakes.gemini.log().is_empty());
}

#[tokio::test]
async fn all_targets_failed_is_503_that_lists_what_was_tried() {
    let served = Served::start(|config| {
        config.failover.sends = 1;
        config.failover.sends_while_others = 1;
    })
    .await;
    served.fakes.anthropic.set(Behaviour::Fail { status: 529 });
    served.fakes.gemini.set(Behaviour::Throttle {
        retry_after: Duration::from_millis(6_200),
    });
    let reply = served.ask().await;

    assert_eq!(reply.status, 503);
    assert_eq!(reply.header("retry-after"), Some("7"));
    assert_eq!(reply.header("x-should-retry"), Some("false"));
    let error = reply.error();
    assert_eq!(
        (&error["code"], &error["type"]),
        (&json!("all_targets_failed"), &json!("server_error"))
    );
    let told: Vec<_> = error["tried"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| (t["target"].as_str().unwrap(), t["status"].as_u64().unwrap()))
        .collect();
    assert_eq!(told, [("opus", 529), ("gemini", 429)]);
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("opus answered 529") && message.contains("gemini answered 429"),
        "{message}"
    );
    assert_eq!(reply.header("x-spillway-attempts"), Some("2"));
    assert!(
        reply
            .header("x-spillway-fallback-reason")
            .unwrap()
            .starts_with("opus: ")
    );
}

#[tokio::test]
async fn a_target_that_cannot_be_reached_is_named_by_what_it_came_to() {
    let served = Served::start(|config| {
        config.breaker.failures = 1;
        config.targets.get_mut("gemini").unwrap().url = "http://127.0.0.1:1/chat".into();
    })
    .await;
    served.fakes.anthropic.set(Behaviour::Fail { status: 500 });
    let reply = served.ask().await;
    assert_eq!(reply.status, 503);
    let message = reply.error()["message"].clone();
    let told = "opus answered 500 (transient), gemini: transient.";
    assert!(message.as_str().unwrap().contains(told), "{message}");
}

#[tokio::test]
async fn what_only_the_operator_can_mend_is_no_fault_of_the_callers() {
    // Anthropic says with a 400 that the spend limit is reached, Gemini that the key is bad.
    let served = Served::start(|_| {}).await;
    served.fakes.anthropic.set(Behaviour::Exhausted);
    served.fakes.gemini.set(Behaviour::Exhausted);
    let reply = served.ask().await;
    assert_eq!(reply.status, 503);
    let tried = reply.error()["tried"].clone();
    assert_eq!(tried[0]["class"], "target_down", "{tried}");
    assert!(reply.header("retry-after").is_some());
}

#[tokio::test]
async fn the_deadline_of_a_call_is_504() {
    let served = Served::start(|config| {
        config.call.plain_deadline = Some(Duration::from_millis(300));
        config.call.streaming_deadline = Some(Duration::from_millis(300));
    })
    .await;
    served.fakes.anthropic.set(Behaviour::Hang);
    for chat in [hello(), streamed()] {
        let reply = served.send(served.chat(&chat)).await;
        assert_eq!(reply.status, 504);
        let error = reply.error();
        assert_eq!(error["code"], "deadline_exceeded");
        assert_eq!(error["tried"][0]["target"], "opus");
        assert_eq!(reply.header("x-should-retry"), Some("false"));
    }
}

#[tokio::test]
async fn a_vendors_error_of_another_shape_becomes_openais() {
    let served = Served::start(|_| {}).await;
    let mut chat = hello();
    chat["model"] = "gemini-2.5-pro".into();
    chat["messages"] = json!([{"role": "nobody", "content": "x"}]);
    let reply = served.send(served.chat(&chat)).await;
    assert_eq!(reply.status, 400);
    let error = reply.error();
    assert!(
        error["message"].as_str().unwrap().contains("role"),
        "{error}"
    );
    assert_eq!(reply.header("x-spillway-target"), Some("gemini"));
    assert_eq!(reply.header("x-should-retry"), Some("false"));
}

#[tokio::test]
async fn a_refusal_by_policy_comes_back_as_it_is() {
    let said = r#"{"error":{"message":"No.","type":"invalid_request_error","param":"prompt","code":"content_policy_violation","inner":{"a":[1]}}}"#;
    let vendor = Stub::start(move |_| {
        let answer = Response::builder()
            .status(400)
            .header("content-type", "application/json");
        answer.body(Body::from(said)).unwrap()
    })
    .await;
    let served = Served::start(|config| vendor.join(config)).await;
    let reply = served.send(served.chat(&stub())).await;
    assert_eq!(reply.status, 400);
    assert_eq!(reply.text(), said);
    assert_eq!(vendor.asked().len(), 1);
}

#[tokio::test]
async fn a_key_that_a_vendor_quotes_is_blotted_out() {
    for status in [400, 401, 422, 500] {
        let vendor = Stub::start(move |headers| {
            let key = headers["authorization"].to_str().unwrap();
            let body = json!({"error": {"message": format!("Bad: {key}"), "type": "x"}});
            Response::builder()
                .status(status)
                .body(Body::from(body.to_string()))
                .unwrap()
        })
        .await;
        let served = Served::start(|config| {
            config.failover.sends = 1;
            vendor.join(config);
        })
        .await;
        let reply = served.send(served.chat(&stub())).await;
        assert!(!reply.status.is_success());
        reply.error();
        let status = served.get("/status").await;
        for text in [reply.text(), status.text()] {
            assert!(!text.contains(FAKE_GEMINI_KEY), "{text}");
        }
        assert!(
            reply.text().contains("Bad: Bearer [key]"),
            "{}",
            reply.text()
        );
    }
}

#[tokio::test]
async fn redirects_are_for_the_next_target_not_followed_and_cookies_do_not_pass() {
    let vendor = Stub::start(|_| {
        let answer = Response::builder().status(307);
        let answer = answer.header("location", "http://127.0.0.1:1/");
        answer
            .header("set-cookie", "a=b")
            .body(Body::empty())
            .unwrap()
    })
    .await;
    let served = Served::start(|config| {
        vendor.join(config);
        let both = vec!["stub".to_owned(), "gemini".to_owned()];
        config.routes.insert("both".into(), Route::Chain(both));
    })
    .await;
    let mut chat = stub();
    chat["model"] = "both".into();
    let reply = served.send(served.chat(&chat)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.header("x-spillway-target"), Some("gemini"));
    assert_eq!(vendor.asked().len(), 1);

    // The address is wrong for everybody: the breaker holds the target.
    let reply = served.send(served.chat(&stub())).await;
    assert_eq!(reply.status, 503);
    assert_eq!(reply.error()["code"], "all_targets_refused");
    assert_eq!(vendor.asked().len(), 1);

    // With nobody else there, it is an error, and names itself.
    let served = Served::start(|config| vendor.join(config)).await;
    let reply = served.send(served.chat(&stub())).await;
    assert_eq!(reply.status, 503);
    let error = reply.error();
    assert_eq!(error["code"], "all_targets_failed");
    assert_eq!(error["tried"][0]["status"], 307);
    assert_eq!(error["tried"][0]["reason"], "redirected");
    assert_eq!(
        (reply.header("location"), reply.header("set-cookie")),
        (None, None)
    );
    assert_eq!(vendor.asked().len(), 2);
}

#[tokio::test]
async fn headers_of_callers_stay_here_and_those_of_vendors_there() {
    let vendor = Stub::start(|_| {
        let body = r#"{"choices":[{"message":{"content":"hi"}}]}"#;
        let answer = Response::builder().header("content-type", "application/json");
        let answer = answer
            .header("set-cookie", "a=b")
            .header("x-powered-by", "v");
        answer
            .header("keep-alive", "timeout=5")
            .body(Body::from(body))
            .unwrap()
    })
    .await;
    let served = Served::start(|config| {
        config.gateway.allow_request_fallbacks = true;
        vendor.join(config);
    })
    .await;
    let mut chat = stub();
    chat["fallbacks"] = json!([]);
    let mut request = served.chat(&chat);
    for (name, value) in [
        ("authorization", "Bearer the-callers"),
        ("x-api-key", "the-callers"),
        ("cookie", "the-callers"),
        ("proxy-authorization", "the-callers"),
        ("x-spillway-timeout-ms", "5000"),
        ("x-forwarded-for", "10.0.0.1"),
        ("te", "trailers"),
        ("traceparent", "00-1-2-01"),
    ] {
        request.headers_mut().append(name, value.parse().unwrap());
    }
    let reply = served.send(request).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    for name in ["set-cookie", "x-powered-by", "keep-alive"] {
        assert_eq!(reply.header(name), None, "{name}");
    }
    let (headers, body) = vendor.asked().remove(0);
    assert_eq!(
        headers["authorization"],
        format!("Bearer {FAKE_GEMINI_KEY}").as_str()
    );
    assert_eq!(headers["traceparent"], "00-1-2-01");
    assert!(!format!("{headers:?}").contains("the-callers"));
    for name in ["x-spillway-timeout-ms", "x-forwarded-for", "te", "cookie"] {
        assert!(!headers.contains_key(name), "{name}");
    }
    let sent: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(sent["model"], "stub-model");
    assert!(sent.get("fallbacks").is_none(), "{sent}");
}

#[tokio::test]
async fn an_error_in_a_200_is_an_error() {
    for chat in [hello(), streamed()] {
        let served = Served::start(|_| {}).await;
        served.fakes.anthropic.set(Behaviour::ErrorAs200);
        served.fakes.gemini.set(Behaviour::ErrorAs200);
        let reply = served.send(served.chat(&chat)).await;
        assert_eq!(reply.status, 503);
        assert_eq!(reply.error()["code"], "all_targets_failed");
        assert_eq!(reply.header("x-should-retry"), Some("false"));
    }
}
