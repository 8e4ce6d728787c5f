//! What `/status` tells.

use std::time::Duration;

use opus_to_gemini::fake::Behaviour;
use serde_json::json;

use crate::support::{Served, hello};

#[tokio::test]
async fn each_target_tells_how_it_is_and_what_it_did() {
    let served = Served::start(|config| {
        config.breaker.failures = 2;
        config.breaker.open = Duration::from_secs(30);
        config.breaker.max_open = Duration::from_secs(60);
    })
    .await;
    served.ask().await;
    served.fakes.anthropic.set(Behaviour::Fail { status: 500 });
    served.ask().await;
    served.calls(2).await;

    let status = served.status().await;
    assert_eq!(status["version"], env!("CARGO_PKG_VERSION"));
    assert!(status["uptime_ms"].is_u64() && status["now_at_ms"].is_u64());
    assert_eq!(
        (&status["usable"], &status["serving"]),
        (&true.into(), &"gemini".into())
    );
    assert!(status["budget"]["balance"].is_u64());
    let route = json!({"model": "claude-opus", "targets": ["opus", "gemini"], "serving": "gemini"});
    assert_eq!(status["routes"], json!([route]));

    let opus = &status["targets"][0];
    assert_eq!(
        (&opus["name"], &opus["model"]),
        (&"opus".into(), &"claude-opus-5".into())
    );
    let breaker = &opus["breaker"];
    assert_eq!(
        (&breaker["state"], &breaker["reason"]),
        (&"open".into(), &"consecutive".into())
    );
    let left = breaker["retry_in_ms"].as_u64().unwrap();
    assert!((1..=60_000).contains(&left), "{left}");
    assert!(breaker["since_at_ms"].as_u64() >= status["started_at_ms"].as_u64());
    assert_eq!(opus["usable"], false);
    let figures = &opus["figures"];
    assert_eq!(figures["attempts"]["success"], 1);
    assert_eq!(figures["attempts"]["transient"], 2);
    assert_eq!(
        (&figures["last_failure"]["status"], &figures["served"]),
        (&500.into(), &1.into())
    );
    assert!(figures["latency_p50_ms"].is_number() && figures["latency_p99_ms"].is_number());
    assert!(figures["tokens"]["output"].as_u64().unwrap() > 0);
    assert!(figures["cost"].as_f64().unwrap() > 0.0);

    let gemini = &status["targets"][1];
    assert_eq!(
        (&gemini["usable"], &gemini["figures"]["served"]),
        (&true.into(), &1.into())
    );
    assert!(gemini["most_in_flight"].is_u64());

    let last = &status["last_calls"][0];
    assert_eq!(
        (&last["target"], &last["asked"]),
        (&"gemini".into(), &"claude-opus".into())
    );
    let attempts: Vec<_> = last["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| (a["target"].as_str().unwrap(), a["class"].as_str().unwrap()))
        .collect();
    assert_eq!(
        attempts,
        [
            ("opus", "transient"),
            ("opus", "transient"),
            ("gemini", "success")
        ]
    );
}

#[tokio::test]
async fn a_target_that_asked_for_a_wait_is_held() {
    let served = Served::start(|_| {}).await;
    let retry_after = Duration::from_secs(40);
    served
        .fakes
        .anthropic
        .set(Behaviour::Throttle { retry_after });
    served.ask().await;
    let status = served.status().await;
    let held = status["targets"][0]["held_for_ms"].as_u64().unwrap();
    assert!((30_000..=60_000).contains(&held), "{held}");
    assert_eq!(status["serving"], "gemini");
}

#[tokio::test]
async fn only_the_last_calls_are_kept_the_newest_first() {
    let served = Served::start(|config| config.gateway.last_calls = 3).await;
    for n in 0..5 {
        let mut request = served.chat(&hello());
        let id = format!("number-{n}");
        request
            .headers_mut()
            .insert("x-request-id", id.parse().unwrap());
        served.send(request).await;
    }
    loop {
        let ids: Vec<_> = served
            .calls(3)
            .await
            .iter()
            .map(|c| c["id"].clone())
            .collect();
        if ids[0] == "number-4" {
            assert_eq!(ids, ["number-4", "number-3", "number-2"]);
            return;
        }
    }
}
