//! Bounds of values, beyond what their types say.

use std::{collections::HashSet, fmt, time::Duration};

use http::Uri;
use tower_spillway_llm::{Price, PriceTable};

use super::{Breaker, Config, route::Lost};

/// A value that is wrong.
#[derive(Debug)]
pub(super) struct Wrong {
    /// The keys that lead to it.
    pub(super) path: Vec<String>,
    must: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} must {}", self.path.join("."), self.must)
    }
}

fn ensure(holds: bool, path: &[&str], must: impl Into<String>) -> Result<(), Wrong> {
    match holds {
        true => Ok(()),
        false => Err(Wrong {
            path: path.iter().map(|key| (*key).to_owned()).collect(),
            must: must.into(),
        }),
    }
}

const MS: Duration = Duration::from_millis(1);

impl Config {
    pub(super) fn check(&self) -> Result<(), Wrong> {
        let one = |n: u32, path: &[&str]| ensure(n >= 1, path, "be at least 1");
        let some = |d: Duration, path: &[&str]| ensure(d >= MS, path, "be at least 1ms");
        for (deadline, key) in [
            (self.call.plain_deadline, "plain_deadline"),
            (self.call.streaming_deadline, "streaming_deadline"),
        ] {
            some(deadline.unwrap_or(MS), &["call", key])?;
        }
        ensure(
            self.budget.percent <= 1000,
            &["budget", "percent"],
            "be at most 1000",
        )?;
        let ttl = Duration::from_secs(1)..=Duration::from_secs(60);
        ensure(
            ttl.contains(&self.budget.ttl),
            &["budget", "ttl"],
            "be from 1s to 60s",
        )?;
        one(
            self.failover.sends_while_others,
            &["failover", "sends_while_others"],
        )?;
        one(self.failover.sends, &["failover", "sends"])?;
        some(self.backoff.base, &["backoff", "base"])?;
        ensure(
            self.backoff.cap >= self.backoff.base,
            &["backoff", "cap"],
            "be at least backoff.base",
        )?;
        some(self.retry_after.max_hold, &["retry_after", "max_hold"])?;
        breaker(&self.breaker, &["breaker"])?;
        self.check_streams()?;
        self.check_pool()?;
        self.check_gateway()?;
        one(self.batch.concurrency, &["batch", "concurrency"])?;
        some(self.batch.requeue_base, &["batch", "requeue_base"])?;
        ensure(
            self.batch.requeue_cap >= self.batch.requeue_base,
            &["batch", "requeue_cap"],
            "be at least batch.requeue_base",
        )?;
        self.check_prices()?;
        self.check_targets()?;
        self.check_chains()
    }

    fn check_streams(&self) -> Result<(), Wrong> {
        let stream = &self.stream;
        for (time, key) in [(stream.idle, "idle"), (stream.total.unwrap_or(MS), "total")] {
            ensure(time >= MS, &["stream", key], "be at least 1ms")?;
        }
        for (bytes, key) in [
            (stream.most_held, "most_held"),
            (stream.most_answer, "most_answer"),
        ] {
            ensure(bytes >= 1024, &["stream", key], "be at least 1024")?;
        }
        Ok(())
    }

    fn check_pool(&self) -> Result<(), Wrong> {
        let pool = &self.pool;
        ensure(
            pool.connections >= 1,
            &["pool", "connections"],
            "be at least 1",
        )?;
        for (time, key) in [
            (pool.connect, "connect"),
            (pool.read_idle, "read_idle"),
            (pool.write, "write"),
            (pool.keep_alive, "keep_alive"),
            (pool.keep_alive_timeout, "keep_alive_timeout"),
        ] {
            ensure(time >= MS, &["pool", key], "be at least 1ms")?;
        }
        Ok(())
    }

    fn check_prices(&self) -> Result<(), Wrong> {
        let date = PriceTable::new(self.prices.date.as_str()).is_ok();
        ensure(date, &["prices", "date"], "be a day, as \"2026-09-01\"")?;
        for (model, price) in &self.prices.models {
            let parts = [
                ("input", Some(&price.input)),
                ("cached", price.cached.as_ref()),
                ("output", Some(&price.output)),
            ];
            for (key, dollars) in parts {
                let fine = dollars.is_none_or(|d| Price::per_million(d, "0").is_ok());
                ensure(
                    fine,
                    &["prices", "models", model, key],
                    "be dollars for a million tokens in quotes, with at most six decimals",
                )?;
            }
        }
        Ok(())
    }

    fn check_targets(&self) -> Result<(), Wrong> {
        for (name, target) in &self.targets {
            let path = |key| ["targets", name.as_str(), key];
            for (text, key) in [(&target.url, "url"), (&target.model, "model")] {
                ensure(!text.is_empty(), &path(key), "be set")?;
            }
            ensure(
                is_address(&target.url),
                &path("url"),
                "be an https address, or http on this machine",
            )?;
            ensure(
                !holds_a_secret(&target.url),
                &path("url"),
                "not hold a user, a password or a key: the variable of key_env does",
            )?;
            ensure(
                !target.key_env.contains(['=', '\0', ' ']) && !looks_like_a_key(&target.key_env),
                &path("key_env"),
                "be the name of a variable, not a key",
            )?;
            for (time, key) in [
                (target.plain_within, "plain_within"),
                (target.streaming_within, "streaming_within"),
            ] {
                ensure(time >= MS, &path(key), "be at least 1ms")?;
            }
            ensure(target.in_flight >= 1, &path("in_flight"), "be at least 1")?;
            ensure(
                target.max_tokens_cap == 0 || target.max_tokens <= target.max_tokens_cap,
                &path("max_tokens"),
                "be at most max_tokens_cap",
            )?;
            if let Some(own) = &target.breaker {
                breaker(own, &path("breaker"))?;
            }
        }
        Ok(())
    }

    fn check_chains(&self) -> Result<(), Wrong> {
        ensure(
            self.chains.contains_key("default"),
            &["chains", "default"],
            "be there",
        )?;
        for (name, chain) in &self.chains {
            let path = ["chains", name.as_str()];
            ensure(
                !self.targets.contains_key(name),
                &path,
                "not have the name of a target",
            )?;
            self.check_names(chain, &path)?;
        }
        for (model, route) in &self.routes {
            self.check_names(route.names(), &["routes", model.as_str()])?;
        }
        Ok(())
    }

    fn check_names(&self, names: &[String], path: &[&str]) -> Result<(), Wrong> {
        ensure(!names.is_empty(), path, "name at least one target")?;
        let mut seen = HashSet::new();
        for name in names {
            ensure(seen.insert(name), path, "name each target once")?;
        }
        match self.expand(names) {
            Ok(_) => Ok(()),
            Err(Lost::Unknown(name)) => ensure(
                false,
                path,
                format!(
                    "name targets or chains; there is neither [targets.{name}] nor chains.{name}"
                ),
            ),
            Err(Lost::Cycle(round)) => ensure(
                false,
                path,
                format!("not lead to itself: {}", round.join(" -> ")),
            ),
        }
    }

    fn check_gateway(&self) -> Result<(), Wrong> {
        let gateway = &self.gateway;
        let some = |n: u64, key| ensure(n >= 1, &["gateway", key], "be at least 1");
        some(gateway.max_body, "max_body")?;
        some(gateway.in_flight.into(), "in_flight")?;
        for (time, key) in [
            (gateway.read_header_within, "read_header_within"),
            (gateway.read_body_within, "read_body_within"),
            (gateway.min_timeout, "min_timeout"),
        ] {
            ensure(time >= MS, &["gateway", key], "be at least 1ms")?;
        }
        ensure(
            gateway.max_timeout >= gateway.min_timeout,
            &["gateway", "max_timeout"],
            "be at least gateway.min_timeout",
        )?;
        ensure(
            !looks_like_a_key(&gateway.inbound_keys_env),
            &["gateway", "inbound_keys_env"],
            "be the name of a variable, not a key",
        )
    }
}

fn breaker(breaker: &Breaker, path: &[&str]) -> Result<(), Wrong> {
    let at = |key| [path, &[key]].concat();
    ensure(breaker.failures >= 1, &at("failures"), "be at least 1")?;
    ensure(breaker.open >= MS, &at("open"), "be at least 1ms")?;
    ensure(
        breaker.max_open >= breaker.open,
        &at("max_open"),
        "be at least open",
    )?;
    ensure(
        (1..=10_000).contains(&breaker.of_last),
        &at("of_last"),
        "be from 1 to 10000",
    )?;
    ensure(
        (1..=breaker.of_last).contains(&breaker.bad),
        &at("bad"),
        "be from 1 to of_last",
    )?;
    ensure(breaker.within >= 10 * MS, &at("within"), "be at least 10ms")?;
    ensure(
        breaker.probe_every >= MS,
        &at("probe_every"),
        "be at least 1ms",
    )?;
    ensure(
        breaker.close_after >= 1,
        &at("close_after"),
        "be at least 1",
    )
}

/// A key would travel in the clear over plain http to another machine.
pub(crate) fn is_address(url: &str) -> bool {
    let Ok(uri) = url.parse::<Uri>() else {
        return false;
    };
    matches!(
        (uri.scheme_str(), uri.host()),
        (Some("https"), Some(_)) | (Some("http"), Some("127.0.0.1" | "[::1]" | "localhost"))
    )
}

/// Names of variables are short, in capitals by custom, and without dashes.
fn looks_like_a_key(name: &str) -> bool {
    name.len() > 64 || name.contains('-')
}

/// Whether an address has a user, or a parameter that is named as keys are.
pub(crate) fn holds_a_secret(url: &str) -> bool {
    const NAMES: [&str; 8] = [
        "key",
        "api_key",
        "api-key",
        "apikey",
        "token",
        "access_token",
        "sig",
        "signature",
    ];
    let (address, query) = url.split_once('?').unwrap_or((url, ""));
    let names = query.split('&').filter_map(|pair| pair.split('=').next());
    address.contains('@')
        || names
            .into_iter()
            .any(|n| NAMES.contains(&n.to_lowercase().as_str()))
}
