//! The last calls, and the line of each in the log.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde::Serialize;
use serde_json::Value;

use super::outcome::Outcome;
use crate::chat::Tokens;

/// A call that is over. Nothing in it comes from a body but the name of the model that was asked
/// for.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Entry {
    pub(super) id: String,
    /// When it came, in milliseconds of Unix time.
    pub(super) at_ms: u64,
    /// The model that was asked for.
    pub(super) asked: Option<String>,
    pub(super) stream: bool,
    /// The target whose outcome the caller got.
    pub(super) target: Option<String>,
    /// Its model.
    pub(super) model: Option<String>,
    /// Of the answer; `None` if the caller left before there was one.
    pub(super) status: Option<u16>,
    pub(super) outcome: Outcome,
    /// `error.code`, or why the stream broke.
    pub(super) error: Option<String>,
    /// Requests sent.
    pub(super) sends: usize,
    /// From the request to the last byte.
    pub(super) latency_ms: u64,
    pub(super) first_content_ms: Option<u64>,
    pub(super) fallback_reason: Option<String>,
    pub(super) tokens: Option<Tokens>,
    /// In US dollars.
    pub(super) cost: Option<f64>,
    /// Every attempt.
    pub(super) attempts: Value,
}

impl Entry {
    /// Whether a vendor's answer was given to the caller.
    pub(super) fn is_answer(&self) -> bool {
        self.outcome == Outcome::Answered
    }

    /// One line in the log.
    pub(super) fn log(&self) {
        let tokens = self.tokens;
        tracing::info!(
            target: "opus_to_gemini::call",
            id = self.id,
            method = "POST",
            path = "/v1/chat/completions",
            asked = self.asked.as_deref(),
            stream = self.stream,
            target = self.target.as_deref(),
            model = self.model.as_deref(),
            status = self.status,
            outcome = self.outcome.as_str(),
            error = self.error.as_deref(),
            attempts = self.sends,
            latency_ms = self.latency_ms,
            first_content_ms = self.first_content_ms,
            fallback_reason = self.fallback_reason.as_deref(),
            input_tokens = tokens.map(|t| t.input),
            cached_tokens = tokens.map(|t| t.cached),
            output_tokens = tokens.map(|t| t.output),
            cost = self.cost,
            "call"
        );
    }
}

/// The last calls, the newest first.
#[derive(Debug)]
pub(super) struct Calls {
    most: usize,
    last: Mutex<VecDeque<Entry>>,
}

impl Calls {
    pub(super) fn new(most: u32) -> Self {
        Self {
            most: usize::try_from(most).unwrap_or(usize::MAX),
            last: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Entry>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, entry: Entry) {
        let mut last = self.lock();
        last.push_front(entry);
        last.truncate(self.most);
    }

    pub(super) fn show(&self) -> Vec<Entry> {
        self.lock().iter().cloned().collect()
    }
}
