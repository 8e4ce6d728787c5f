//! The text of chat streams.

use bytes::Bytes;

use super::Do;

pub const PREAMBLE: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n";
pub const FINISH: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
pub const USAGE: &str =
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":60}}\n\n";
pub const DONE: &str = "data: [DONE]\n\n";
pub const OVERLOADED: &str = "data: {\"error\":{\"message\":\"The server is overloaded\",\
    \"type\":\"service_unavailable_error\",\"code\":\"server_is_overloaded\"}}\n\n";

pub fn token(text: &str) -> String {
    let text = serde_json::Value::from(text);
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":{text}}}}}]}}\n\n")
}

pub fn send(text: impl Into<Bytes>) -> Do {
    Do::Send(text.into())
}

/// Tokens that name who sends them.
pub fn tokens(who: &str, range: std::ops::Range<usize>) -> Vec<Do> {
    range.map(|n| send(token(&format!("{who}{n} ")))).collect()
}

/// A whole answer of 60 tokens.
pub fn whole(who: &str) -> Vec<Do> {
    let mut steps = vec![send(PREAMBLE)];
    steps.extend(tokens(who, 0..60));
    steps.extend([send(FINISH), send(USAGE), send(DONE)]);
    steps
}

/// The text that a stream does.
pub fn text(steps: &[Do]) -> String {
    let mut text = Vec::new();
    for step in steps {
        if let Do::Send(data) = step {
            text.extend_from_slice(data);
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// How many tokens of one sender are in a body.
pub fn count(body: &str, who: &str) -> usize {
    body.matches(&format!("\"content\":\"{who}")).count()
}
