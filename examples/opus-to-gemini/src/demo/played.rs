//! What came of an incident: every call, every request, every change.

use serde::{Deserialize, Serialize};

use super::settings::Told;
use crate::config::Prices;

/// An incident that was played. Times are milliseconds of the incident, not as played.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Played {
    pub(super) settings: Told,
    /// What tokens cost.
    pub prices: Prices,
    /// One for each client.
    pub runs: Vec<Run>,
}

/// Which client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Kind {
    /// Asks Opus, and Gemini when that fails.
    TryOther,
    /// The same behind the article's breakers.
    Breaker,
    /// The pipeline of this crate.
    Stack,
}

impl Kind {
    /// As the table names it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TryOther => "try the other",
            Self::Breaker => "its breaker",
            Self::Stack => "the stack",
        }
    }
}

/// What came of the incident for one client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Run {
    /// Which client.
    pub client: Kind,
    /// Its calls, in the order of their start.
    pub calls: Vec<Call>,
    /// What reached Anthropic.
    pub anthropic: Vec<Request>,
    /// What reached Gemini.
    pub gemini: Vec<Request>,
    /// What its breakers did.
    pub changes: Vec<Change>,
}

/// The report of one call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Call {
    /// Its number, from 1.
    pub number: usize,
    /// The phase in which it started.
    pub phase: String,
    /// When it started.
    pub start: u64,
    /// To the last byte, or to the error.
    pub latency: u64,
    /// To the head of the stream; `None` without an answer.
    pub first_content: Option<u64>,
    /// Whether it was answered.
    pub ok: bool,
    /// Who served.
    pub target: Option<String>,
    /// The model that served.
    pub model: Option<String>,
    /// The first target that was given up, and why.
    pub fallback_reason: Option<String>,
    /// What was tried.
    pub attempts: Vec<Attempt>,
}

/// One attempt of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Attempt {
    /// Where it went.
    pub target: String,
    /// From the start of the call.
    pub start: u64,
    /// To its head or error.
    pub elapsed: u64,
    /// What it gave.
    pub class: String,
    /// The status, if there was an answer.
    pub status: Option<u16>,
    /// Whether it was sent; else it was refused here.
    pub sent: bool,
}

/// One line of a vendor's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Request {
    /// When it arrived.
    pub at: u64,
    /// To the end of what was done.
    pub took: Option<u64>,
    /// Which attempt: call, target and number.
    pub id: Option<String>,
    /// The model that it asked for.
    pub model: Option<String>,
    /// What became of it: a status, or `left` where the caller went away first.
    pub did: String,
    /// Tokens of its prompt.
    pub input_tokens: u64,
    /// Tokens of its answer, if a whole one was given.
    pub output_tokens: u64,
}

impl Request {
    /// Whether the vendor worked on it for nobody: taken, but neither answered nor refused.
    pub fn abandoned(&self) -> bool {
        self.did == "left"
    }
}

/// A change of a breaker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Change {
    /// When.
    pub at: u64,
    /// Whose breaker.
    pub target: String,
    /// What it was in.
    pub from: String,
    /// What it is in.
    pub to: String,
    /// What opened it.
    pub reason: Option<String>,
}
