//! The figures of the two profiles.

use std::{collections::BTreeMap, time::Duration};

use tower_spillway_core::InvalidConfig;
use tower_spillway_llm::{Price, PriceTable, Vendor};

use super::{
    Backoff, BackoffKind, Batch, Breaker, BreakerKind, Budget, BudgetKind, Call, Commit, Config,
    Failover, FailoverKind, Gateway, IdempotencyKey, IdempotencyKeyKind, InFlight, InFlightKind,
    Pool, PriceOf, Prices, Probes, Profile, Refusals, RetryAfter, RetryAfterKind, Route, Stream,
    Takes, Target, Timeout, TimeoutKind, Tls, Verdict, VerdictKind,
};

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

impl Config {
    /// The figures of a profile.
    pub fn of(profile: Profile) -> Self {
        match profile {
            Profile::Interactive => Self::interactive(),
            Profile::Batch => Self::batch(),
        }
    }

    /// For people who wait: chat, servers.
    pub fn interactive() -> Self {
        Self {
            profile: Profile::Interactive,
            call: Call {
                plain_deadline: Some(secs(180)),
                streaming_deadline: Some(secs(60)),
            },
            idempotency_key: IdempotencyKey {
                enabled: true,
                kind: IdempotencyKeyKind::Random,
            },
            budget: Budget {
                enabled: true,
                kind: BudgetKind::Ratio,
                percent: 20,
                reserve: 10,
                ttl: secs(10),
            },
            failover: Failover {
                enabled: true,
                kind: FailoverKind::Ordered,
                sends_while_others: 2,
                sends: 4,
                patience: secs(1),
                ready_within: secs(1),
                refusals: Refusals::Return,
            },
            backoff: Backoff {
                enabled: true,
                kind: BackoffKind::Exponential,
                base: Duration::from_millis(250),
                cap: secs(8),
                max_total_wait: None,
            },
            retry_after: RetryAfter {
                enabled: true,
                kind: RetryAfterKind::Shared,
                longest_wait: secs(60),
                max_hold: secs(300),
            },
            breaker: Breaker {
                kind: BreakerKind::ConsecutiveOrOfLast,
                ramp: secs(10),
                probes: Probes::Own,
                ..breaker(3, 10)
            },
            stream: Stream {
                enabled: true,
                commit: Commit::FirstContent,
                idle: secs(60),
                // One that never ends would keep its place for ever.
                total: Some(secs(900)),
                most_held: 1 << 20,
                most_answer: 8 << 20,
            },
            verdict: Verdict {
                enabled: true,
                kind: VerdictKind::Vendor,
            },
            in_flight: InFlight {
                enabled: true,
                kind: InFlightKind::Wait,
            },
            attempt_timeout: Timeout {
                enabled: true,
                kind: TimeoutKind::Whole,
            },
            pool: Pool {
                connections: 50,
                idle: 20,
                idle_timeout: secs(60),
                connect: secs(5),
                read_idle: secs(60),
                write: secs(10),
                keep_alive: secs(20),
                keep_alive_timeout: secs(10),
            },
            batch: Batch {
                concurrency: 8,
                max_requeues: 5,
                requeue_base: secs(1),
                requeue_cap: secs(60),
                give_up_after: None,
            },
            tls: Tls::default(),
            gateway: Gateway::default(),
            prices: prices(),
            targets: [("opus", opus()), ("gemini", gemini())]
                .map(|(name, target)| (name.to_owned(), target))
                .into(),
            chains: [("default".to_owned(), vec!["opus".into(), "gemini".into()])].into(),
            routes: [("claude-opus".to_owned(), Route::To("default".into()))].into(),
        }
    }

    /// For a queue that must be worked off.
    pub fn batch() -> Self {
        let mut config = Self::interactive();
        config.profile = Profile::Batch;
        config.call = Call::default();
        config.failover.sends = 6;
        config.backoff.base = Duration::from_millis(800);
        config.backoff.cap = secs(30);
        config.backoff.max_total_wait = Some(secs(60));
        config.breaker = breaker(5, 30);
        if let Some(gemini) = config.targets.get_mut("gemini") {
            gemini.breaker = Some(breaker(3, 60));
        }
        config
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::interactive()
    }
}

fn breaker(failures: u32, open: u64) -> Breaker {
    Breaker {
        enabled: true,
        kind: BreakerKind::Consecutive,
        failures,
        bad: 6,
        of_last: 20,
        within: secs(60),
        open: secs(open),
        max_open: secs(60),
        close_after: 2,
        ramp: Duration::ZERO,
        probes: Probes::Users,
        probe_every: secs(2),
        abandoned_after: secs(5),
    }
}

fn opus() -> Target {
    Target {
        vendor: Vendor::AnthropicCompat,
        takes: Takes::Anthropic,
        url: "https://api.anthropic.com/v1/chat/completions".into(),
        model: "claude-opus-5".into(),
        key_env: "ANTHROPIC_API_KEY".into(),
        plain_within: secs(60),
        streaming_within: secs(8),
        max_tokens: 8_192,
        max_tokens_cap: 32_000,
        ..Target::default()
    }
}

fn gemini() -> Target {
    Target {
        vendor: Vendor::GeminiCompat,
        takes: Takes::Gemini,
        url: "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions".into(),
        model: "gemini-2.5-pro".into(),
        key_env: "GEMINI_API_KEY".into(),
        plain_within: secs(90),
        streaming_within: secs(15),
        max_tokens: 8_192,
        max_tokens_cap: 65_536,
        ..Target::default()
    }
}

fn prices() -> Prices {
    let price = |input: &str, cached: &str, output: &str| PriceOf {
        input: input.into(),
        cached: Some(cached.into()),
        output: output.into(),
    };
    Prices {
        date: "2026-09-01".into(),
        models: BTreeMap::from([
            ("claude-opus-5".into(), price("5", "0.50", "25")),
            ("gemini-2.5-pro".into(), price("1.25", "0.125", "10")),
        ]),
    }
}

impl Prices {
    /// As a table to look costs up in.
    ///
    /// # Errors
    ///
    /// The date or a price is none; not in a configuration that was read from a file.
    pub fn table(&self) -> Result<PriceTable, InvalidConfig> {
        let mut table = PriceTable::new(self.date.as_str())?;
        for (model, price) in &self.models {
            let mut of = Price::per_million(&price.input, &price.output)?;
            if let Some(cached) = &price.cached {
                of = of.cached(cached)?;
            }
            table = table.with(model.as_str(), of);
        }
        Ok(table)
    }
}
