//! Streams through the pipeline, over real HTTP: what a caller gets when the primary fails at any
//! point of its answer.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may")]

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use opus_to_gemini::{
    chat::{Chat, ChatError, ask_streaming},
    config::{Commit, Config},
    fake::{Behaviour, Did, FAKE_ANTHROPIC_KEY, FAKE_GEMINI_KEY, FakeVendor, Fakes},
    pipeline::{ChatResponse, Pipeline, Upstream},
};
use serde_json::{Value, json};
use tower::ServiceExt;
use tower_circuit_breaker::State;
use tower_spillway_core::{Cause, Chance, Class, Ledger, Report};
use tower_spillway_llm::StreamUsage;

const PLENTY: Duration = Duration::from_secs(30);
const WORDS: usize = 60;

/// Long enough for any answer on loopback, short enough to wait for.
const LIMIT: Duration = Duration::from_millis(400);

struct Stack {
    fakes: Fakes,
    pipeline: Pipeline,
}

impl Stack {
    async fn start(commit: Commit) -> Self {
        let chance = Chance::seeded(3);
        let fakes = Fakes::start(&chance).await.unwrap();
        fakes.anthropic.set_words(WORDS);
        fakes.gemini.set_words(WORDS);
        let mut config = Config::interactive().at_speed(100);
        config.call.plain_deadline = Some(PLENTY);
        config.call.streaming_deadline = Some(PLENTY);
        config.stream.commit = commit;
        config.stream.idle = LIMIT;
        config.breaker.failures = 2;
        config.breaker.open = PLENTY;
        config.breaker.max_open = PLENTY;
        let target = |upstream: Upstream, vendor: &FakeVendor| {
            upstream.url(vendor.url()).within(PLENTY, LIMIT)
        };
        let pipeline = Pipeline::builder()
            .target(target(Upstream::opus(FAKE_ANTHROPIC_KEY), &fakes.anthropic))
            .target(target(Upstream::gemini(FAKE_GEMINI_KEY), &fakes.gemini))
            .config(config)
            .chance(chance)
            .build()
            .unwrap();
        Self { fakes, pipeline }
    }

    async fn send(&self) -> (ChatResponse, Ledger) {
        let body = json!({
            "messages": [{"role": "user", "content": "hi"}],
            "stream": true,
            "stream_options": {"include_usage": true},
        });
        let mut request = Request::new(Full::from(Bytes::from(body.to_string())));
        let ledger = Ledger::new();
        request.extensions_mut().insert(ledger.clone());
        let response = self.pipeline.clone().oneshot(request).await.unwrap();
        (response, ledger)
    }

    async fn ask(&self) -> Got {
        let (response, ledger) = self.send().await;
        let (head, body) = response.into_parts();
        // A stream never ends in a broken connection: what went wrong is told in it.
        let body = body.collect().await.unwrap().to_bytes();
        Got {
            status: head.status.as_u16(),
            text: String::from_utf8(body.to_vec()).unwrap(),
            tokens: head
                .extensions
                .get::<StreamUsage>()
                .and_then(|u| u.get())
                .map(|u| u.output),
            report: ledger.report(),
        }
    }
}

struct Got {
    status: u16,
    text: String,
    tokens: Option<u64>,
    report: Report,
}

impl Got {
    fn events(&self) -> Vec<Value> {
        let data = self.text.lines().filter_map(|l| l.strip_prefix("data: "));
        let events = data.filter(|data| *data != "[DONE]");
        events
            .map(|data| serde_json::from_str(data).unwrap())
            .collect()
    }

    /// The words of the answer.
    fn words(&self) -> Vec<String> {
        let events = self.events();
        let text: String = events
            .iter()
            .filter_map(|e| e.pointer("/choices/0/delta/content")?.as_str())
            .collect();
        text.split_whitespace().map(str::to_owned).collect()
    }

    /// All of one model's answer and nothing else.
    fn is_whole(&self, model: &str) -> bool {
        let expected = (1..=WORDS).map(|n| format!("{model}:{n}"));
        self.status == 200 && self.error().is_none() && self.words().into_iter().eq(expected)
    }

    /// The code of the one error event at the end.
    fn error(&self) -> Option<String> {
        let events = self.events();
        let of = |event: &Value| Some(event.get("error")?.get("code")?.as_str()?.to_owned());
        let errors: Vec<_> = events.iter().filter_map(of).collect();
        assert!(errors.len() <= 1);
        let error = errors.into_iter().next()?;
        assert_eq!(
            of(events.last().unwrap()).as_ref(),
            Some(&error),
            "nothing follows"
        );
        assert!(!self.text.contains("[DONE]"));
        Some(error)
    }

    fn served(&self) -> &str {
        self.report.target.as_ref().unwrap().as_str()
    }
}

/// All ways in which a stream can go wrong before its first content.
fn before_content() -> [Behaviour; 4] {
    [
        Behaviour::RefuseInStream { status: 529 },
        Behaviour::Silent,
        Behaviour::CutAfter { words: 0 },
        Behaviour::ErrorAs200,
    ]
}

/// The same after it, with how many words come and what the caller is told.
fn after_content() -> [(Behaviour, usize, &'static str); 3] {
    [
        (Behaviour::CutAfter { words: 40 }, 40, "stream_failed"),
        (Behaviour::StallAfter { words: 20 }, 20, "stream_idle"),
        (Behaviour::Garble { words: 30 }, 30, "stream_unreadable"),
    ]
}

#[tokio::test]
async fn a_healthy_stream_comes_from_opus_with_its_tokens_and_first_content() {
    for commit in [Commit::FirstContent, Commit::Complete] {
        let stack = Stack::start(commit).await;
        let got = stack.ask().await;
        assert!(got.is_whole("claude-opus-5"), "{}", got.text);
        assert!(got.text.ends_with("data: [DONE]\n\n"));
        assert_eq!((got.served(), got.report.sends()), ("opus", 1));
        assert!(got.report.first_content.unwrap() <= got.report.latency);
        assert!(got.tokens.unwrap() > 0);
        assert!(stack.fakes.gemini.log().is_empty());
    }
}

#[tokio::test]
async fn what_fails_before_its_first_content_is_answered_by_gemini() {
    for commit in [Commit::FirstContent, Commit::Complete] {
        for behaviour in before_content() {
            let stack = Stack::start(commit).await;
            stack.fakes.anthropic.set(behaviour);
            let got = stack.ask().await;
            assert!(
                got.is_whole("gemini-2.5-pro"),
                "{behaviour:?}: {}",
                got.text
            );
            assert_eq!(got.served(), "gemini");
            let reason = got.report.fallback_reason.unwrap();
            assert_eq!(reason.class, Class::Transient, "{behaviour:?}");
            assert_ne!(got.report.attempts[0].class, Class::Success);
        }
    }
}

#[tokio::test]
async fn a_silence_is_not_repeated_where_another_target_is() {
    let stack = Stack::start(Commit::FirstContent).await;
    stack.fakes.anthropic.set(Behaviour::Silent);
    let got = stack.ask().await;
    assert_eq!(got.report.sends(), 2);
    assert_eq!(
        got.report.fallback_reason.unwrap().cause,
        Some(Cause::OtherTargetFirst)
    );
}

#[tokio::test]
async fn what_breaks_after_its_first_content_ends_in_one_error() {
    for (behaviour, words, code) in after_content() {
        let stack = Stack::start(Commit::FirstContent).await;
        stack.fakes.anthropic.set(behaviour);
        let got = stack.ask().await;
        assert_eq!(
            got.error().as_deref(),
            Some(code),
            "{behaviour:?}: {}",
            got.text
        );
        assert_eq!(got.words().len(), words, "{behaviour:?}");
        assert_eq!((got.served(), got.report.sends()), ("opus", 1));
        // The record tells how it ended, and not how it began.
        let attempt = &got.report.attempts[0];
        assert_eq!(attempt.class, Class::Transient);
        assert_eq!(attempt.reason.as_deref(), Some(code));
        assert!(stack.fakes.gemini.log().is_empty());
    }
}

#[tokio::test]
async fn held_to_its_end_no_answer_is_ever_a_part_of_one() {
    for (behaviour, ..) in after_content() {
        let stack = Stack::start(Commit::Complete).await;
        stack.fakes.anthropic.set(behaviour);
        let got = stack.ask().await;
        assert!(
            got.is_whole("gemini-2.5-pro"),
            "{behaviour:?}: {}",
            got.text
        );
        assert_eq!(got.served(), "gemini");
    }
}

#[tokio::test]
async fn an_answer_without_its_marker_is_whole() {
    for commit in [Commit::FirstContent, Commit::Complete] {
        let stack = Stack::start(commit).await;
        stack.fakes.anthropic.set(Behaviour::NoDone);
        let got = stack.ask().await;
        assert!(got.is_whole("claude-opus-5"), "{}", got.text);
        assert_eq!(got.report.attempts[0].class, Class::Success);
        assert_eq!(stack.pipeline.breakers()[0].state(), State::Closed);
    }
}

#[tokio::test]
async fn streams_that_break_open_the_breaker_and_callers_who_leave_do_not() {
    let stack = Stack::start(Commit::FirstContent).await;
    stack.fakes.anthropic.set_stream(Duration::from_secs(5));
    for _ in 0..4 {
        let (response, _) = stack.send().await;
        let mut body = response.into_body();
        body.frame().await.unwrap().unwrap();
        drop(body);
    }
    assert_eq!(stack.pipeline.breakers()[0].state(), State::Closed);

    stack.fakes.anthropic.set_stream(Duration::ZERO);
    stack.fakes.anthropic.set(Behaviour::CutAfter { words: 40 });
    for _ in 0..2 {
        assert!(stack.ask().await.error().is_some());
    }
    assert_eq!(stack.pipeline.breakers()[0].state(), State::Open);
    assert!(stack.ask().await.is_whole("gemini-2.5-pro"));
}

#[tokio::test]
async fn a_caller_who_leaves_cancels_the_upstream_at_once() {
    let stack = Stack::start(Commit::FirstContent).await;
    stack.fakes.anthropic.set_stream(Duration::from_secs(10));
    let (response, _) = stack.send().await;
    let mut body = response.into_body();
    body.frame().await.unwrap().unwrap();
    assert_eq!(stack.fakes.anthropic.connections(), 1);
    drop(body);
    until(|| stack.fakes.anthropic.connections() == 0).await;
    assert_eq!(stack.fakes.anthropic.log()[0].did, Did::Left);

    // Before the first content as well.
    stack.fakes.anthropic.set(Behaviour::Silent);
    let asked = tokio::time::timeout(LIMIT / 4, stack.send()).await;
    assert!(asked.is_err());
    until(|| stack.fakes.anthropic.connections() == 0).await;
    assert!(stack.fakes.gemini.log().is_empty());
}

/// Until it is so, at most for 10 s.
async fn until(so: impl Fn() -> bool) {
    for _ in 0..10_000 {
        if so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(so());
}

#[tokio::test]
async fn a_chat_is_read_as_it_comes_and_told_when_it_breaks() {
    let stack = Stack::start(Commit::FirstContent).await;
    let mut pieces = Vec::new();
    let chat = Chat::new("hi");
    let asked = ask_streaming(&stack.pipeline, &chat, |text| pieces.push(text.to_owned())).await;
    assert_eq!(pieces.len(), WORDS);
    assert!(asked.usage().is_some());
    assert_eq!(asked.answer.unwrap().text, pieces.concat());
    assert!(asked.report.first_content.is_some());

    stack.fakes.anthropic.set(Behaviour::CutAfter { words: 40 });
    let mut read = String::new();
    let asked = ask_streaming(&stack.pipeline, &chat, |text| read += text).await;
    assert_eq!(read.split_whitespace().count(), 40);
    let error = asked.answer.unwrap_err();
    assert!(matches!(error, ChatError::Broken { .. }), "{error}");
    assert!(
        error
            .to_string()
            .starts_with("the answer of opus broke off: "),
        "{error}"
    );
}
