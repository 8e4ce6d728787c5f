//! The budget of a row of `budget.jsonl`, and whether a step gave what the row says.
#![allow(unreachable_pub, reason = "a module of a test")]
#![allow(clippy::indexing_slicing, reason = "a test may")]

use std::{sync::Arc, time::Duration};

use serde_json::Value;
use tower_jitter_backoff::{Exponential, Jitter, JitterBackoff};
use tower_retry_budget::{
    ConcurrencyBudget, CostBudget, CostConfig, RatioBudget, RatioConfig, ScoreBudget, Weights,
};
use tower_spillway_core::Gate;

/// One of the budgets, as the row configures it.
pub enum Budget {
    Ratio(RatioBudget),
    Cost(CostBudget),
    Score(ScoreBudget),
    Concurrency(ConcurrencyBudget),
    None,
}

impl Budget {
    pub fn of(config: &Value) -> Result<Self, String> {
        let number = |name: &str| config[name].as_f64();
        let need = |name: &str| number(name).ok_or_else(|| format!("no {name}"));
        let whole = |name: &str| need(name).map(|n| n as u32);
        let ttl = || need("ttl_ms").map(|ms| Duration::from_secs_f64(ms / 1000.0));
        Ok(match config["kind"].as_str().unwrap_or_default() {
            "deposit" => {
                let reserve = need("min_per_sec")? * ttl()?.as_secs_f64();
                let ratio = RatioConfig::new().ratio(need("ratio")?).ttl(ttl()?);
                Self::Ratio(
                    ratio
                        .reserve(reserve as u32)
                        .build()
                        .map_err(|e| e.to_string())?,
                )
            }
            "leaky_bucket" => {
                let ratio = RatioConfig::new().ratio(1.0).ttl(ttl()?);
                Self::Ratio(
                    ratio
                        .reserve(whole("reserve")?)
                        .build()
                        .map_err(|e| e.to_string())?,
                )
            }
            "bounded_bucket" | "token_bucket" => {
                let capacity = whole("capacity")?;
                let costs = costs(&config["cost"]);
                let credit = number("first_success_credit").or_else(|| number("success_credit"));
                let cost = CostConfig::new()
                    .capacity(capacity)
                    .start(whole("start")?)
                    .costs(costs)
                    .first_success_credit(credit.unwrap_or(1.0))
                    .refill_per_second(number("refill_per_sec").unwrap_or(0.0));
                Self::Cost(cost.build().map_err(|e| e.to_string())?)
            }
            "score" => {
                let (most, start) = (whole("max_tokens")?, whole("start")?);
                if start != most || need("failure_cost")? != 1.0 {
                    return Err("a score starts full, and a failure costs 1".to_owned());
                }
                let score = ScoreBudget::new(most, need("success_credit")?);
                Self::Score(score.map_err(|e| e.to_string())?)
            }
            "concurrency" => {
                let (percent, least) = (whole("percent")?, whole("min_retry_concurrency")?);
                Self::Concurrency(
                    ConcurrencyBudget::new(percent, least).map_err(|e| e.to_string())?,
                )
            }
            "unlimited" => Self::None,
            other => return Err(format!("unknown kind {other}")),
        })
    }

    pub fn gate(&self) -> Option<Arc<dyn Gate>> {
        match self {
            Self::Ratio(budget) => Some(budget.as_gate()),
            Self::Cost(budget) => Some(budget.as_gate()),
            Self::Score(budget) => Some(budget.as_gate()),
            Self::Concurrency(budget) => Some(budget.as_gate()),
            Self::None => None,
        }
    }

    fn tokens(&self) -> Option<f64> {
        match self {
            Self::Ratio(budget) => Some(budget.balance() as f64),
            Self::Cost(budget) => Some(budget.tokens()),
            Self::Score(budget) => Some(budget.tokens()),
            Self::Concurrency(_) | Self::None => None,
        }
    }
}

/// What a step gave.
#[derive(Debug, Default)]
pub struct Seen {
    pub granted: Option<bool>,
    pub count: Option<u64>,
    pub retry: Option<bool>,
    pub delay: Option<u64>,
    pub limit: Option<u64>,
    pub attempts: Option<u64>,
    pub last_attempt: Option<u64>,
    pub result: Option<Value>,
}

impl Seen {
    pub fn compare(&self, expect: &Value, budget: &Budget) -> Result<(), String> {
        let Some(expect) = expect.as_object() else {
            return Ok(());
        };
        let tokens = budget.tokens();
        for (name, want) in expect {
            let fits = match name.as_str() {
                "granted" => self.granted == want.as_bool(),
                "granted_min" => self.count >= want.as_u64() && self.count.is_some(),
                "granted_max" => self.count <= want.as_u64() && self.count.is_some(),
                "retry" => self.retry == want.as_bool(),
                "retry_allowed" => match budget {
                    Budget::Score(budget) => Some(budget.allows()) == want.as_bool(),
                    _ => return Err("only a score allows retries at large".to_owned()),
                },
                "delay_ms" => self.delay == want.as_u64() || self.delay.is_none(),
                "tokens" => {
                    // Of a cost, whole ones.
                    let ours = match budget {
                        Budget::Cost(_) => tokens.map(f64::floor),
                        _ => tokens,
                    };
                    near(ours, want)
                }
                "fraction" => near(tokens.map(f64::fract), want),
                "limit" => self.limit == want.as_u64(),
                "attempts" => self.attempts == want.as_u64(),
                "last_attempt_index" => self.last_attempt == want.as_u64(),
                "result" => self.result.as_ref() == Some(want),
                // Informative.
                "skipped" | "reason" => true,
                other => return Err(format!("unknown expectation {other}")),
            };
            if !fits {
                return Err(format!("{name} is not {want}: {self:?}, {tokens:?} tokens"));
            }
        }
        Ok(())
    }
}

fn near(ours: Option<f64>, want: &Value) -> bool {
    let difference = ours.zip(want.as_f64()).map(|(a, b)| (a - b).abs());
    difference.is_some_and(|d| d < 1e-9)
}

/// Rows without costs only look: 1 each, which fits any capacity.
fn costs(cost: &Value) -> Weights {
    let of = |name: &str| cost[name].as_f64();
    let retry = of("retry").unwrap_or(1.0);
    Weights::each(retry)
        .timed_out(of("transient").unwrap_or(retry))
        .throttled(of("throttling").unwrap_or(retry))
}

pub fn backoff(backoff: &Value) -> Result<JitterBackoff, String> {
    let ms = |name: &str| {
        let ms = backoff[name].as_u64().ok_or_else(|| format!("no {name}"));
        ms.map(Duration::from_millis)
    };
    let most = ms("max_ms")?;
    let schedule = Exponential::new(ms("base_ms")?, most).map_err(|e| e.to_string())?;
    let throttled = Exponential::new(ms("throttling_base_ms")?, most).map_err(|e| e.to_string())?;
    let policy = JitterBackoff::new(schedule).throttled(throttled);
    Ok(policy.jitter(Jitter::None))
}
