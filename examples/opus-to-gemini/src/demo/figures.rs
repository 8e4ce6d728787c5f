//! What a run comes to.

use tower_spillway_core::InvalidConfig;
use tower_spillway_llm::{Cost, PriceTable, Usage};

use super::{Call, Request, Run};

/// What a run comes to, for all its calls or those of a phase.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Figures {
    /// Calls that were made.
    pub calls: usize,
    /// Calls that were answered.
    pub answered: usize,
    /// Of these by Opus.
    pub by_opus: usize,
    /// Of these by Gemini.
    pub by_gemini: usize,
    /// Requests sent, by the reports of the calls.
    pub sent: usize,
    /// Requests that arrived, by the logs of both vendors.
    pub arrived: usize,
    /// Of these the pipeline's own probes, which belong to no call.
    pub probes: usize,
    /// To the last byte or the error, of all calls.
    pub latency: Quantiles,
    /// To the head of the stream, which the stack holds until its first content; of answered calls.
    pub first_content: Quantiles,
    /// At Opus.
    pub opus: Used,
    /// At Gemini.
    pub gemini: Used,
    /// Prompts that a vendor worked on for nobody.
    pub abandoned: Used,
}

/// Tokens and what they cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Used {
    /// Tokens.
    pub tokens: Usage,
    /// What they cost.
    pub cost: Cost,
}

/// By nearest rank, in milliseconds; 0 without calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Quantiles {
    /// The middle.
    pub p50: u64,
    /// Above it is one of twenty.
    pub p95: u64,
    /// Above it is one of a hundred.
    pub p99: u64,
}

impl Quantiles {
    fn of(values: impl Iterator<Item = u64>) -> Self {
        let mut values: Vec<u64> = values.collect();
        values.sort_unstable();
        let at = |percent: usize| {
            let rank = (values.len() * percent).div_ceil(100);
            values.get(rank.saturating_sub(1)).copied().unwrap_or(0)
        };
        Self {
            p50: at(50),
            p95: at(95),
            p99: at(99),
        }
    }
}

impl Run {
    /// What it comes to.
    ///
    /// # Errors
    ///
    /// The prices are none.
    pub fn figures(&self, prices: &crate::config::Prices) -> Result<Figures, InvalidConfig> {
        let prices = prices.table()?;
        let by = |name: &str| {
            let served = |call: &&Call| call.ok && call.target.as_deref() == Some(name);
            self.calls.iter().filter(served).count()
        };
        let sent = |call: &Call| call.attempts.iter().filter(|a| a.sent).count();
        let both = || self.anthropic.iter().chain(&self.gemini);
        Ok(Figures {
            calls: self.calls.len(),
            answered: self.calls.iter().filter(|call| call.ok).count(),
            by_opus: by("opus"),
            by_gemini: by("gemini"),
            sent: self.calls.iter().map(sent).sum(),
            arrived: both().count(),
            probes: both().filter(|r| r.id.is_none()).count(),
            latency: Quantiles::of(self.calls.iter().map(|call| call.latency)),
            first_content: Quantiles::of(self.calls.iter().filter_map(|c| c.first_content)),
            opus: used(self.anthropic.iter().filter(|r| !r.abandoned()), &prices),
            gemini: used(self.gemini.iter().filter(|r| !r.abandoned()), &prices),
            abandoned: used(both().filter(|r| r.abandoned()), &prices),
        })
    }
}

fn used<'r>(requests: impl Iterator<Item = &'r Request>, prices: &PriceTable) -> Used {
    // A request that is refused or fails costs nothing.
    let billed = requests.filter(|r| r.abandoned() || r.output_tokens > 0);
    billed.fold(Used::default(), |sum, request| {
        let tokens = Usage {
            input: request.input_tokens,
            cached: 0,
            output: request.output_tokens,
        };
        let model = request.model.as_deref().unwrap_or("");
        let cost = prices.cost(model, &tokens).unwrap_or_default();
        Used {
            tokens: sum.tokens + tokens,
            cost: sum.cost + cost,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_nearest_ranks() {
        assert_eq!(Quantiles::of([].into_iter()), Quantiles::default());
        let q = Quantiles::of((1..=10).rev());
        assert_eq!((q.p50, q.p95, q.p99), (5, 10, 10));
        let q = Quantiles::of(1..=200);
        assert_eq!((q.p50, q.p95, q.p99), (100, 190, 198));
    }
}
