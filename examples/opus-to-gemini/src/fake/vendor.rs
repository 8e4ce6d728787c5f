//! Which vendor a server plays.

use std::{fmt, time::Duration};

use http::request::Parts;

use super::{anthropic, chat::Chat, gemini, log::KeyLabel, openai, reply::Reply};

/// The vendor that a server plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Vendor {
    /// `POST /v1/chat/completions` as Anthropic's OpenAI-compatible endpoint serves it: unknown
    /// fields are ignored, hints come in headers.
    Anthropic,
    /// `POST /v1beta/openai/chat/completions` as Gemini's serves it: unknown fields are rejected,
    /// hints come in the body.
    Gemini,
    /// `POST /v1/chat/completions` as any other OpenAI-compatible endpoint serves it: every model is
    /// known, unknown fields are ignored, hints come in headers.
    OpenAi,
}

impl Vendor {
    /// A name in lower case.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::OpenAi => "openai",
        }
    }

    /// The path of its chat endpoint.
    pub fn path(self) -> &'static str {
        match self {
            Self::Anthropic | Self::OpenAi => "/v1/chat/completions",
            Self::Gemini => "/v1beta/openai/chat/completions",
        }
    }

    /// The chat that a request asks for, or why the vendor rejects it.
    pub(super) fn check(self, head: &Parts, key: &KeyLabel, body: &[u8]) -> Result<Chat, Reply> {
        match self {
            Self::Anthropic => anthropic::check(head, key, body),
            Self::Gemini => gemini::check(head, key, body),
            Self::OpenAi => openai::check(head, key, body),
        }
    }

    pub(super) fn answer(self, chat: &Chat) -> Reply {
        match self {
            Self::Anthropic => anthropic::answer(chat),
            Self::Gemini => gemini::answer(chat),
            Self::OpenAi => openai::answer(chat),
        }
    }

    pub(super) fn throttled(self, retry_after: Duration) -> Reply {
        match self {
            Self::Anthropic => anthropic::throttled(retry_after),
            Self::Gemini => gemini::throttled(retry_after),
            Self::OpenAi => openai::throttled(retry_after),
        }
    }

    pub(super) fn exhausted(self) -> Reply {
        match self {
            Self::Anthropic => anthropic::exhausted(),
            Self::Gemini => gemini::exhausted(),
            Self::OpenAi => openai::exhausted(),
        }
    }

    pub(super) fn failed(self, status: u16) -> Reply {
        match self {
            Self::Anthropic => anthropic::failed(status),
            Self::Gemini => gemini::failed(status),
            Self::OpenAi => openai::failed(status),
        }
    }
}

impl fmt::Display for Vendor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
