//! One vendor's endpoint.

use std::{borrow::Cow, time::Duration};

use secrecy::SecretString;

/// One vendor's OpenAI-compatible endpoint, with its model, key, fields and time limits.
///
/// The key is shown by no `Debug` and no error.
#[derive(Clone, Debug)]
#[must_use]
pub struct Upstream {
    pub(super) name: String,
    pub(super) url: String,
    pub(super) model: String,
    pub(super) key: SecretString,
    pub(super) fields: Fields,
    pub(super) plain_within: Duration,
    pub(super) head_within: Duration,
}

/// Which fields of a chat request an endpoint gets. A request that is right for one vendor can be
/// an error at another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fields {
    /// All but these.
    AllBut(Vec<Cow<'static, str>>),
    /// None but these.
    Only(Vec<Cow<'static, str>>),
}

impl Fields {
    pub(super) fn keeps(&self, name: &str) -> bool {
        match self {
            Self::AllBut(names) => !names.iter().any(|n| n == name),
            Self::Only(names) => names.iter().any(|n| n == name),
        }
    }
}

/// From Opus 4.7 on, other values than the defaults are rejected. Unknown fields are ignored.
const NOT_FOR_OPUS: [&str; 3] = ["temperature", "top_k", "top_p"];

/// Gemini rejects a request with a field that it does not know.
const FOR_GEMINI: [&str; 15] = [
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "model",
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
];

impl Upstream {
    /// Claude Opus at Anthropic's OpenAI-compatible endpoint: 60 s for a plain answer, 8 s to the
    /// head of a stream.
    pub fn opus(key: impl Into<SecretString>) -> Self {
        Self {
            name: "opus".into(),
            url: "https://api.anthropic.com/v1/chat/completions".into(),
            model: "claude-opus-5".into(),
            key: key.into(),
            fields: Fields::AllBut(NOT_FOR_OPUS.map(Cow::from).into()),
            plain_within: Duration::from_secs(60),
            head_within: Duration::from_secs(8),
        }
    }

    /// Gemini at its OpenAI-compatible endpoint: 90 s for a plain answer, 15 s to the head of a
    /// stream.
    pub fn gemini(key: impl Into<SecretString>) -> Self {
        Self {
            name: "gemini".into(),
            url: "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions".into(),
            model: "gemini-2.5-pro".into(),
            key: key.into(),
            fields: Fields::Only(FOR_GEMINI.map(Cow::from).into()),
            plain_within: Duration::from_secs(90),
            head_within: Duration::from_secs(15),
        }
    }

    /// Another name, for records and the breaker.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Another address of the chat endpoint: `https`, or `http` on the loopback interface.
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.url = url.into();
        self
    }

    /// Another model.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = model.into();
        self
    }

    /// Other fields.
    pub fn fields(mut self, fields: Fields) -> Self {
        self.fields = fields;
        self
    }

    /// The longest time of one attempt: to the last byte of a plain answer, to the head of a
    /// stream.
    pub fn within(mut self, plain: Duration, head: Duration) -> Self {
        self.plain_within = plain;
        self.head_within = head;
        self
    }

    /// Its time limits divided by `speed`. At 0 nothing is divided.
    pub fn at_speed(self, speed: u32) -> Self {
        let by = speed.max(1);
        let (plain, head) = (self.plain_within / by, self.head_within / by);
        self.within(plain, head)
    }
}
