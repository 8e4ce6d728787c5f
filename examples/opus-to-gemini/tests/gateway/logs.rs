//! One line per call.

use std::{
    io,
    sync::{Arc, Mutex, OnceLock},
};

use opus_to_gemini::fake::{Behaviour, FAKE_ANTHROPIC_KEY, FAKE_GEMINI_KEY};
use serde_json::{Value, json};
use tracing_subscriber::fmt::MakeWriter;

use crate::support::{CALLER_KEY, Served, hello, streamed};

/// What is logged in this process, by all tests.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

/// As `serve --log json` writes it.
pub(crate) fn start() -> Log {
    static LOG: OnceLock<Log> = OnceLock::new();
    let log = LOG.get_or_init(|| {
        let log = Log::default();
        let lines = tracing_subscriber::fmt()
            .with_target(false)
            .with_writer(log.clone());
        lines.json().flatten_event(true).init();
        log
    });
    log.clone()
}

impl Log {
    /// The lines with a text in them.
    pub(crate) fn lines(&self, with: &str) -> Vec<Value> {
        let all = self.0.lock().unwrap();
        let all = std::str::from_utf8(&all).unwrap();
        let lines = all.lines().filter(|line| line.contains(with));
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// The one line of a call.
    pub(crate) fn call(&self, id: &str) -> Value {
        let mut lines = self.lines(&format!("\"{id}\""));
        lines.retain(|line| line["message"] == "call");
        assert_eq!(lines.len(), 1, "{lines:?}");
        lines.remove(0)
    }
}

async fn logged(served: &Served, id: &str, chat: &Value) -> Value {
    let mut request = served.chat(chat);
    request
        .headers_mut()
        .insert("x-request-id", id.parse().unwrap());
    request
        .headers_mut()
        .insert("x-secret", "header-value-7".parse().unwrap());
    let log = start();
    served.send(request).await;
    let done = served.calls(1).await;
    assert_eq!(done[0]["id"], id);
    log.call(id)
}

#[tokio::test]
async fn a_plain_call_has_one_line_with_its_figures() {
    let served = Served::start(|_| {}).await;
    let line = logged(&served, "log-plain", &hello()).await;
    let told = json!({
        "method": "POST",
        "path": "/v1/chat/completions",
        "asked": "claude-opus",
        "target": "opus",
        "model": "claude-opus-5",
        "status": 200,
        "outcome": "answered",
        "attempts": 1,
        "stream": false,
    });
    for (name, value) in told.as_object().unwrap() {
        assert_eq!(&line[name], value, "{name} of {line}");
    }
    assert!(line["latency_ms"].is_u64());
    assert!(line["output_tokens"].as_u64().unwrap() > 0);
    assert!(line["cost"].as_f64().unwrap() > 0.0);
}

#[tokio::test]
async fn a_streams_line_comes_with_its_end() {
    let served = Served::start(|_| {}).await;
    served.fakes.anthropic.set(Behaviour::Fail { status: 529 });
    let line = logged(&served, "log-stream", &streamed()).await;
    assert_eq!(
        (&line["target"], &line["stream"]),
        (&"gemini".into(), &true.into())
    );
    assert!(line["first_content_ms"].is_u64(), "{line}");
    assert!(line["output_tokens"].as_u64().unwrap() > 0, "{line}");
    assert!(
        line["fallback_reason"]
            .as_str()
            .unwrap()
            .starts_with("opus: "),
        "{line}"
    );
}

#[tokio::test]
async fn a_call_that_was_refused_has_its_line_too() {
    let served = Served::start(|_| {}).await;
    let mut chat = hello();
    chat["model"] = "no\nsuch\u{1b}[31m model".into();
    let line = logged(&served, "log-unknown", &chat).await;
    assert_eq!(
        (&line["status"], &line["error"]),
        (&404.into(), &"model_not_found".into())
    );
    assert_eq!(line["asked"], "no such [31m model");
}

#[tokio::test]
async fn no_line_holds_a_body_a_key_or_a_header() {
    let served =
        Served::start(|config| config.gateway.inbound_keys_env = "CALLER_KEYS".into()).await;
    let log = start();
    let mut chat = hello();
    chat["messages"][0]["content"] = "prompt-of-a-user".into();
    let mut request = served.chat(&chat);
    let key = format!("Bearer {CALLER_KEY}");
    request
        .headers_mut()
        .insert("authorization", key.parse().unwrap());
    request
        .headers_mut()
        .insert("x-secret", "header-value-7".parse().unwrap());
    assert_eq!(served.send(request).await.status, 200);
    let mut request = served.chat(&chat);
    request
        .headers_mut()
        .insert("authorization", "Bearer tried-key".parse().unwrap());
    assert_eq!(served.send(request).await.status, 401);
    for secret in [
        "prompt-of-a-user",
        "This is a fake",
        "header-value-7",
        "tried-key",
        CALLER_KEY,
        FAKE_ANTHROPIC_KEY,
        FAKE_GEMINI_KEY,
    ] {
        assert!(log.lines(secret).is_empty(), "{secret}");
    }
}
