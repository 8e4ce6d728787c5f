//! What is told of a call beside its answer.

use serde::Serialize;
use tower_spillway_core::Report;
use tower_spillway_llm::{Cost, PriceTable, Usage};

/// What is told of a call beside its answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Record {
    /// The model whose outcome the caller got; `None` if no target was asked.
    pub model: Option<String>,
    /// From the call to its outcome.
    pub latency_ms: u64,
    /// From the call to the first content of its answer: of a plain one all of it. Left out where
    /// there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_content_ms: Option<u64>,
    /// Requests sent, over all targets.
    pub attempts: usize,
    /// The first target that was given up, and why; `None` if the first one served.
    pub fallback_reason: Option<String>,
    /// Tokens of the answer, as its vendor counted them; `None` if it told none.
    pub tokens: Option<Tokens>,
    /// What the answer cost, in US dollars; `None` if its tokens or the model's prices are not
    /// known. What abandoned attempts cost no vendor tells.
    pub cost: Option<f64>,
}

/// Tokens of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Tokens {
    /// Of the prompt, cached ones included.
    pub input: u64,
    /// Of the prompt, from a cache.
    pub cached: u64,
    /// Of the answer, thoughts included.
    pub output: u64,
}

impl From<Usage> for Tokens {
    fn from(usage: Usage) -> Self {
        Self {
            input: usage.input,
            cached: usage.cached,
            output: usage.output,
        }
    }
}

impl Record {
    /// Of a call's report, and what its answer used.
    pub fn new(report: &Report, usage: Option<Usage>, prices: &PriceTable) -> Self {
        let model = report.model.as_deref();
        let cost = model.zip(usage);
        let cost = cost.and_then(|(model, usage)| prices.cost(model, &usage));
        Self {
            model: model.map(str::to_owned),
            latency_ms: report.latency_ms(),
            first_content_ms: report.first_content_ms(),
            attempts: report.sends(),
            fallback_reason: report.fallback_reason.as_ref().map(ToString::to_string),
            tokens: usage.map(Tokens::from),
            cost: cost.map(dollars),
        }
    }
}

/// For people and programs that read JSON: sums are made of [`Cost`]s.
#[expect(
    clippy::cast_precision_loss,
    reason = "no call costs so much that it shows"
)]
pub(crate) fn dollars(cost: Cost) -> f64 {
    cost.pico_dollars() as f64 / 1e12
}
