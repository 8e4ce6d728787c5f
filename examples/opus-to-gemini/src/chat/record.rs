//! What is told of a call beside its answer.

use serde::Serialize;
use tower_spillway_core::Report;

/// What is told of a call beside its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Record {
    /// The model whose outcome the caller got; `None` if no target was asked.
    pub model: Option<String>,
    /// From the call to its outcome.
    pub latency_ms: u64,
    /// Requests sent, over all targets.
    pub attempts: usize,
    /// The first target that was given up, and why; `None` if the first one served.
    pub fallback_reason: Option<String>,
}

impl From<&Report> for Record {
    fn from(report: &Report) -> Self {
        Self {
            model: report.model.as_deref().map(str::to_owned),
            latency_ms: report.latency_ms(),
            attempts: report.sends(),
            fallback_reason: report.fallback_reason.as_ref().map(ToString::to_string),
        }
    }
}
