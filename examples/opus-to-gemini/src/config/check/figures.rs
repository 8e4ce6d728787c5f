//! Bounds of figures.

use std::time::Duration;

use tower_spillway_llm::{Price, PriceTable};

use super::{Found, MS};
use crate::config::{Breaker, Config};

impl Config {
    pub(super) fn check_figures(&self, found: &mut Found) {
        for (deadline, key) in [
            (self.call.plain_deadline, "plain_deadline"),
            (self.call.streaming_deadline, "streaming_deadline"),
        ] {
            found.at_least_a_moment(deadline.unwrap_or(MS), &["call", key]);
        }
        found.ensure(
            self.budget.percent <= 1000,
            &["budget", "percent"],
            "be at most 1000",
        );
        let ttl = Duration::from_secs(1)..=Duration::from_secs(60);
        found.ensure(
            ttl.contains(&self.budget.ttl),
            &["budget", "ttl"],
            "be from 1s to 60s",
        );
        let failover = &self.failover;
        for (sends, key) in [
            (failover.sends_while_others, "sends_while_others"),
            (failover.sends, "sends"),
        ] {
            found.at_least_one(sends.into(), &["failover", key]);
        }
        found.at_least_a_moment(self.backoff.base, &["backoff", "base"]);
        found.ensure(
            self.backoff.cap >= self.backoff.base,
            &["backoff", "cap"],
            "be at least backoff.base",
        );
        found.at_least_a_moment(self.retry_after.max_hold, &["retry_after", "max_hold"]);
        breaker(found, &self.breaker, &["breaker"]);
        self.check_streams(found);
        self.check_pool(found);
        let batch = &self.batch;
        found.at_least_one(batch.concurrency.into(), &["batch", "concurrency"]);
        found.at_least_a_moment(batch.requeue_base, &["batch", "requeue_base"]);
        found.ensure(
            batch.requeue_cap >= batch.requeue_base,
            &["batch", "requeue_cap"],
            "be at least batch.requeue_base",
        );
        self.check_prices(found);
    }

    fn check_streams(&self, found: &mut Found) {
        let stream = &self.stream;
        for (time, key) in [(stream.idle, "idle"), (stream.total.unwrap_or(MS), "total")] {
            found.at_least_a_moment(time, &["stream", key]);
        }
        for (bytes, key) in [
            (stream.most_held, "most_held"),
            (stream.most_answer, "most_answer"),
        ] {
            found.ensure(bytes >= 1024, &["stream", key], "be at least 1024");
        }
    }

    fn check_pool(&self, found: &mut Found) {
        let pool = &self.pool;
        found.at_least_one(pool.connections.into(), &["pool", "connections"]);
        for (time, key) in [
            (pool.connect, "connect"),
            (pool.read_idle, "read_idle"),
            (pool.write, "write"),
            (pool.keep_alive, "keep_alive"),
            (pool.keep_alive_timeout, "keep_alive_timeout"),
        ] {
            found.at_least_a_moment(time, &["pool", key]);
        }
    }

    fn check_prices(&self, found: &mut Found) {
        let date = PriceTable::new(self.prices.date.as_str()).is_ok();
        found.ensure(date, &["prices", "date"], "be a day, as \"2026-09-01\"");
        for (model, price) in &self.prices.models {
            let parts = [
                ("input", Some(&price.input)),
                ("cached", price.cached.as_ref()),
                ("output", Some(&price.output)),
            ];
            for (key, dollars) in parts {
                let fine = dollars.is_none_or(|d| Price::per_million(d, "0").is_ok());
                found.ensure(
                    fine,
                    &["prices", "models", model, key],
                    "be dollars for a million tokens in quotes, with at most six decimals",
                );
            }
        }
    }
}

pub(super) fn breaker(found: &mut Found, breaker: &Breaker, path: &[&str]) {
    let at = |key| [path, &[key]].concat();
    found.at_least_one(breaker.failures.into(), &at("failures"));
    found.at_least_a_moment(breaker.open, &at("open"));
    found.ensure(
        breaker.max_open >= breaker.open,
        &at("max_open"),
        "be at least open",
    );
    found.ensure(
        (1..=10_000).contains(&breaker.of_last),
        &at("of_last"),
        "be from 1 to 10000",
    );
    found.ensure(
        (1..=breaker.of_last).contains(&breaker.bad),
        &at("bad"),
        "be from 1 to of_last",
    );
    found.ensure(breaker.within >= 10 * MS, &at("within"), "be at least 10ms");
    found.at_least_a_moment(breaker.probe_every, &at("probe_every"));
    found.at_least_one(breaker.close_after.into(), &at("close_after"));
}
