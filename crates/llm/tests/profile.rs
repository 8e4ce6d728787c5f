//! Requests made to fit.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may")]

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use proptest::prelude::*;
use serde_json::{Value, json};
use tower_spillway_llm::{Fields, NotInMemory, TargetProfile};

fn opus() -> TargetProfile {
    TargetProfile::anthropic_compat("claude-opus-5")
}

fn gemini() -> TargetProfile {
    TargetProfile::gemini_compat("gemini-2.5-pro")
}

fn fit(profile: &TargetProfile, chat: &Value) -> Value {
    let bytes = profile.rewrite_bytes(&chat.to_string().into());
    serde_json::from_slice(&bytes).unwrap()
}

#[test]
fn what_is_not_rewritten_goes_on_as_it_was_written() {
    let turns = [
        r#"{"role":"user","content":[{"type":"text","text":"caf\u00e9", "n": 1.50}]}"#,
        r#"{"role":"assistant","content":"plain \u2713","x":1e2}"#,
        r#"{"role":"user","content":"then?"}"#,
    ];
    let messages = format!("[{} , {},{}]", turns[0], turns[1], turns[2]);
    let chat = format!(
        r#"{{"messages": {messages}, "seed":12345678901234567890123, "t\u006fp_p":0.90,"n":1.0}}"#
    );
    let fitted = gemini().rewrite_bytes(&Bytes::from(chat.clone()));
    let wanted =
        format!(r#"{{"messages":{messages},"top_p":0.90,"n":1.0,"model":"gemini-2.5-pro"}}"#);
    assert_eq!(fitted, wanted);
    // Only Gemini must not get a seed.
    let wanted = format!(
        r#"{{"messages":{messages},"seed":12345678901234567890123,"n":1.0,"model":"claude-opus-5"}}"#
    );
    assert_eq!(opus().rewrite_bytes(&Bytes::from(chat)), wanted);
}

#[test]
fn fields_are_those_of_one_object() {
    for none in [
        "",
        "[1]",
        "\"x\"",
        "{",
        "{} {}",
        "{\"a\":\"\u{1}\"}",
        "{\"a\":01}",
    ] {
        assert!(Fields::read(none.as_bytes()).is_err(), "{none}");
    }
    assert!(Fields::read(b"{\"a\":\"\xff\"}").is_err());
    let twice = Fields::read(b" {\"a\":1,\"b\":[ ],\"\\u0061\":[2]} ").unwrap();
    assert_eq!(twice.get("a"), Some("[2]"));
    assert!(twice.has_some("a") && !twice.has_some("b") && !twice.has_some("c"));
    assert_eq!(twice.to_bytes(), r#"{"a":[2],"b":[ ]}"#);
}

#[test]
fn messages_that_must_be_read_and_cannot_be_are_told_of() {
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let asks = |role: &str, content: &str| {
        format!(r#"{{"messages":[{{"role":"{role}","content":{content}}},{{"role":"user"}}]}}"#)
    };
    let rewrites = |chat: &str| opus().rewrite(&mut Fields::read(chat.as_bytes()).unwrap());
    assert!(rewrites(&asks("user", &deep)).is_ok());
    assert!(rewrites(&asks("assistant", "\"x\"")).is_ok());
    assert!(rewrites(&asks("assistant", &deep)).is_err());
    let bytes = Bytes::from(asks("assistant", &deep));
    assert_eq!(opus().rewrite_bytes(&bytes), bytes);
}

#[test]
fn escapes_hide_no_role_and_no_thoughts() {
    let chat = br#"{"messages":[
        {"r\u006fle":"assist\u0061nt","content":"a","reas\u006fning":"r"},{"role":"user","content":"b"}]}"#;
    let fitted = opus().rewrite_bytes(&Bytes::from_static(chat));
    assert!(
        !fitted.windows(4).any(|part| part == b"\"r\"}"),
        "{fitted:?}"
    );
}

/// Every field of OpenAI's chat requests.
fn everything() -> Value {
    json!({
        "messages": [{"role": "developer", "content": "d"}, {"role": "user", "content": "u", "name": "n"}],
        "model": "m", "audio": {"voice": "alloy", "format": "mp3"}, "frequency_penalty": 0.5,
        "function_call": "auto", "functions": [{"name": "f"}], "logit_bias": {"1": 1}, "logprobs": true,
        "max_completion_tokens": 9, "max_tokens": 8, "metadata": {"k": "v"}, "modalities": ["text"],
        "n": 2, "parallel_tool_calls": true, "prediction": {"type": "content", "content": "x"},
        "presence_penalty": 0.5, "prompt_cache_key": "p", "reasoning_effort": "low",
        "response_format": {"type": "json_object"}, "safety_identifier": "s", "seed": 1,
        "service_tier": "auto", "stop": ["x"], "store": false, "stream": true,
        "stream_options": {"include_usage": true}, "temperature": 1.5,
        "tool_choice": "auto", "tools": [{"type": "function", "function": {"name": "f"}}],
        "top_logprobs": 2, "top_p": 0.9, "user": "u", "verbosity": "low",
        "web_search_options": {},
    })
}

#[test]
fn every_documented_field_at_gemini() {
    let chat = fit(&gemini(), &everything());
    let names: Vec<&str> = chat
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        names,
        [
            "messages",
            "model",
            "max_completion_tokens",
            "n",
            "parallel_tool_calls",
            "reasoning_effort",
            "response_format",
            "stop",
            "stream",
            "stream_options",
            "temperature",
            "tool_choice",
            "tools",
            "top_p",
        ],
        "the known ones, in their order"
    );
    assert_eq!(chat["model"], "gemini-2.5-pro");
    assert_eq!((&chat["n"], &chat["temperature"]), (&json!(2), &json!(1.5)));
}

#[test]
fn every_documented_field_at_anthropic() {
    let chat = fit(&opus(), &everything());
    for gone in ["temperature", "top_p", "max_tokens"] {
        assert!(chat.get(gone).is_none(), "{gone}");
    }
    assert_eq!((&chat["n"], &chat["seed"]), (&json!(1), &json!(1)));
    let older = TargetProfile::anthropic_compat("claude-opus-4-6").sampling(true);
    let chat = fit(&older, &everything());
    assert_eq!(
        (&chat["temperature"], &chat["top_p"]),
        (&json!(1.0), &json!(0.9))
    );
}

#[test]
fn limits_of_the_answer() {
    let profile = TargetProfile::new()
        .default_max_tokens(500)
        .cap_max_tokens(100);
    assert_eq!(fit(&profile, &json!({})), json!({"max_tokens": 100}));
    assert_eq!(
        fit(&profile, &json!({"max_tokens": 70})),
        json!({"max_tokens": 70})
    );
    let asked = json!({"max_completion_tokens": 4000, "max_tokens": null});
    assert_eq!(fit(&profile, &asked)["max_completion_tokens"], 100);
}

#[test]
fn no_way_of_writing_a_number_is_a_way_around_a_limit() {
    let profile = TargetProfile::gemini_compat("g").cap_max_tokens(100);
    let sent = |fields: &str| {
        let sent = profile.rewrite_bytes(&format!(r#"{{"model":"g",{fields}}}"#).into());
        String::from_utf8(sent.to_vec()).unwrap()
    };
    for huge in ["101", "4e3", "4000.0", "99999999999999999999999", "1e999"] {
        let asked = sent(&format!(r#""max_tokens":{huge}"#));
        assert_eq!(asked, r#"{"model":"g","max_tokens":100}"#);
        assert!(sent(&format!(r#""temperature":{huge}"#)).contains(r#""temperature":2"#));
        assert!(sent(&format!(r#""n":{huge}"#)).contains(r#""n":8"#));
    }
    for fits in ["100", "1e2", "-1e999", "\"4000\"", "[4000]"] {
        let asked = format!(r#""max_tokens":{fits}"#);
        assert_eq!(sent(&asked), format!(r#"{{"model":"g",{asked}}}"#));
    }
}

#[test]
fn fields_renamed_and_clamped() {
    let profile = TargetProfile::new()
        .rename("max_tokens", "max_completion_tokens")
        .clamp("temperature", 0.0..=0.5)
        .unwrap();
    let chat = json!({"max_tokens": 5, "temperature": 2});
    assert_eq!(
        fit(&profile, &chat),
        json!({"max_completion_tokens": 5, "temperature": 0.5})
    );
    let both = json!({"max_tokens": 5, "max_completion_tokens": 6});
    assert_eq!(fit(&profile, &both), json!({"max_completion_tokens": 6}));
    let error = TargetProfile::new().clamp("n", 0.0..=f64::NAN).unwrap_err();
    assert_eq!(error.what(), "clamp");
}

#[test]
fn a_begun_answer_where_it_is_not_taken() {
    let chat = json!({"messages": [{"role": "user", "content": "u"}, {"role": "assistant", "content": "{"}]});
    assert_eq!(
        fit(&gemini(), &chat)["messages"].as_array().unwrap().len(),
        2
    );
    let messages = &fit(&opus(), &chat)["messages"];
    assert_eq!(
        messages[2],
        json!({"role": "user", "content": "Please continue."})
    );
}

#[test]
fn calls_of_another_vendor_become_text() {
    let chat = json!({"messages": [
        {"role": "user", "content": "weather?"},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "toolu_1", "type": "function", "function": {"name": "weather", "arguments": "{\"in\":\"Bern\"}"}},
        ]},
        {"role": "tool", "tool_call_id": "toolu_1", "content": "rain"},
    ]});
    assert_eq!(
        fit(&gemini(), &chat)["messages"],
        json!([
            {"role": "user", "content": "weather?"},
            {"role": "assistant", "content": "[Called weather with {\"in\":\"Bern\"}]"},
            {"role": "user", "content": "[Result of the call: rain]"},
        ])
    );
    assert_eq!(fit(&opus(), &chat)["messages"], chat["messages"]);
}

#[test]
fn calls_of_its_own_stay() {
    let signature = json!({"google": {"thought_signature": "c2ln"}});
    let chat = json!({"messages": [
        {"role": "assistant", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}, "extra_content": signature},
            {"id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}},
        ]},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "b", "content": "2"},
    ]});
    assert_eq!(fit(&gemini(), &chat)["messages"], chat["messages"]);
    let there = fit(&opus(), &chat);
    assert!(
        there["messages"][0]["tool_calls"][0]
            .get("extra_content")
            .is_none()
    );
}

#[test]
fn blocks_of_tools_become_text() {
    let chat = json!({"messages": [
        {"role": "assistant", "content": [
            {"type": "text", "text": "let me see"},
            {"type": "tool_use", "id": "t", "name": "f", "input": {"x": 1}},
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "42"}]},
            {"type": "text", "text": "and?"},
        ]},
    ]});
    assert_eq!(
        fit(&gemini(), &chat)["messages"],
        json!([
            {"role": "assistant", "content": [
                {"type": "text", "text": "let me see"},
                {"type": "text", "text": "[Called f with {\"x\":1}]"},
            ]},
            {"role": "user", "content": [
                {"type": "text", "text": "[Result of the call: 42]"},
                {"type": "text", "text": "and?"},
            ]},
        ])
    );
}

#[test]
fn thoughts_of_another_vendor_are_dropped() {
    let chat = json!({"messages": [
        {"role": "assistant", "reasoning_content": "hm", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "x"},
            {"type": "text", "text": "yes"},
        ]},
        {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "x"}]},
        {"role": "user", "content": [{"type": "text", "text": "why?"}]},
    ]});
    for profile in [opus(), gemini()] {
        assert_eq!(
            fit(&profile, &chat)["messages"],
            json!([
                {"role": "assistant", "content": [{"type": "text", "text": "yes"}]},
                {"role": "user", "content": [{"type": "text", "text": "why?"}]},
            ])
        );
    }
}

#[test]
fn contexts_compare() {
    assert!(gemini().larger_context_than(&opus()));
    assert!(!opus().larger_context_than(&gemini()));
    assert!(
        !gemini().larger_context_than(&TargetProfile::new()),
        "not known to be"
    );
    assert!(opus().context(2_000_000).larger_context_than(&gemini()));
}

#[tokio::test]
async fn a_request_keeps_no_word_of_its_old_body() {
    let text = json!({"model": "m", "messages": [], "user": "u"}).to_string();
    let mut request = Request::post("/")
        .header("content-length", text.len())
        .header("transfer-encoding", "chunked")
        .header("digest", "sha-256=x")
        .header("content-digest", "sha-256=:x:")
        .header("content-type", "application/json")
        .body(Full::<Bytes>::from(text))
        .unwrap();
    gemini().prepare(&mut request).unwrap();
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    assert_eq!(body, r#"{"model":"gemini-2.5-pro","messages":[]}"#);
    assert_eq!(head.headers["content-length"], body.len().to_string());
    assert_eq!(head.headers.len(), 2, "{:?}", head.headers);
}

#[tokio::test]
async fn what_cannot_be_rewritten_is_left_alone() {
    for (body, encoding) in [
        ("not json", None),
        ("[1]", None),
        ("{\"user\":1}", Some("gzip")),
    ] {
        let mut request = Request::post("/").body(Full::<Bytes>::from(body)).unwrap();
        if let Some(encoding) = encoding {
            request
                .headers_mut()
                .insert("content-encoding", encoding.parse().unwrap());
        }
        gemini().prepare(&mut request).unwrap();
        let given = request.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(given, body);
    }
    let mut empty = Request::get("/models")
        .body(Full::<Bytes>::default())
        .unwrap();
    gemini().prepare(&mut empty).unwrap();
    assert!(empty.headers().is_empty());
}

/// A body that is still to come.
struct ToCome;

impl From<Bytes> for ToCome {
    fn from(_: Bytes) -> Self {
        Self
    }
}

impl http_body::Body for ToCome {
    type Data = Bytes;
    type Error = std::io::Error;
    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
        std::task::Poll::Pending
    }
}

#[test]
fn a_body_still_to_come_is_a_typed_error() {
    let error = gemini().prepare(&mut Request::new(ToCome)).unwrap_err();
    assert!(error.is::<NotInMemory>());
}

fn json_value() -> impl Strategy<Value = Value> {
    let names = prop::sample::select(vec![
        "role",
        "assistant",
        "tool",
        "user",
        "content",
        "type",
        "thinking",
        "tool_use",
        "tool_calls",
        "tool_result",
        "id",
        "t",
        "messages",
        "n",
        "temperature",
        "max_tokens",
        "function_call",
        "name",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        names.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::hash_map(names.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|m| Value::Object(m.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Whatever it is given, it ends, and doing it twice changes nothing more.
    #[test]
    fn any_value_is_rewritten_once(chat in json_value()) {
        let mut chat = Bytes::from(chat.to_string());
        for profile in [opus(), gemini().cap_max_tokens(7)] {
            let once = profile.rewrite_bytes(&chat);
            chat = profile.rewrite_bytes(&once);
            prop_assert_eq!(&chat, &once);
        }
    }
}
