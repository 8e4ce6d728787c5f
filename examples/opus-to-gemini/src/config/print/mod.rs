//! The effective file, with comments. It holds no key: only names of variables.

mod page;

use std::fmt::{self, Display};

use self::page::{Page, key, or_none, quoted, time};
use super::{Breaker, Config, Profile, Target};

impl Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let page = &mut Page::new(f);
        page.line(
            "# What is in force. A file needs only what differs from its profile.\n\
             # Figures of the two articles behind the stack stand as \"article: ...\".",
        )?;
        page.set(
            "profile",
            quoted(self.profile.as_str()),
            "interactive, batch",
        )?;
        self.whole_calls(page)?;
        self.retries(page)?;
        page.table("breaker", "a target may have figures of its own")?;
        self.breaker.write(page, "article: 5")?;
        self.attempts(page)?;
        self.trust(page)?;
        self.queue(page)?;
        self.server(page)?;
        self.costs(page)?;
        for (name, target) in &self.targets {
            target.write(page, name)?;
        }
        page.table("chains", "who is asked, in this order")?;
        for (name, chain) in &self.chains {
            page.set(&key(name), quoted(chain), "")?;
        }
        page.table("routes", "a model or a pattern (*, ?) to its chain")?;
        for (model, route) in &self.routes {
            page.set(&key(model), quoted(route), "")?;
        }
        Ok(())
    }
}

impl Config {
    fn whole_calls(&self, page: &mut Page<'_, '_>) -> fmt::Result {
        page.table("call", "over all attempts and waits; \"none\" for no limit")?;
        page.set(
            "plain_deadline",
            or_none(self.call.plain_deadline),
            "to the last byte",
        )?;
        page.set(
            "streaming_deadline",
            or_none(self.call.streaming_deadline),
            "to the first content of a stream",
        )?;
        page.table("idempotency_key", "one per call, the same on every attempt")?;
        let kind = self.idempotency_key.kind.as_str();
        page.head(self.idempotency_key.enabled, kind, "random")?;
        page.table("budget", "what all retries together may add")?;
        page.head(self.budget.enabled, self.budget.kind.as_str(), "ratio")?;
        page.set("percent", self.budget.percent, "retries for 100 calls")?;
        page.set("reserve", self.budget.reserve, "in any case, within ttl")?;
        page.set("ttl", time(self.budget.ttl), "1s to 60s")?;
        page.table("failover", "from one target of the chain to the next")?;
        page.head(
            self.failover.enabled,
            self.failover.kind.as_str(),
            "ordered",
        )?;
        page.set(
            "sends_while_others",
            self.failover.sends_while_others,
            "while another target is usable",
        )?;
        page.set("sends", self.failover.sends, "on the last target")?;
        page.set(
            "patience",
            time(self.failover.patience),
            "waits while another is usable",
        )?;
        page.set(
            "ready_within",
            time(self.failover.ready_within),
            "for room at a target",
        )?;
        let refusals = quoted(self.failover.refusals.as_str());
        page.set("refusals", refusals, "by content policies: return, next")
    }

    fn retries(&self, page: &mut Page<'_, '_>) -> fmt::Result {
        let backoff = &self.backoff;
        page.table("backoff", "each wait is drawn from 0 to its ceiling")?;
        page.head(
            backoff.enabled,
            backoff.kind.as_str(),
            "exponential, constant",
        )?;
        page.set("base", time(backoff.base), "first ceiling; article: 0.25s")?;
        page.set("cap", time(backoff.cap), "highest ceiling")?;
        page.set(
            "max_total_wait",
            or_none(backoff.max_total_wait),
            "of all waits on a target",
        )?;
        page.table("retry_after", "waits that a server asks for")?;
        let kind = self.retry_after.kind.as_str();
        page.head(self.retry_after.enabled, kind, "shared, per_call")?;
        page.set(
            "longest_wait",
            time(self.retry_after.longest_wait),
            "longer ones are not waited out",
        )?;
        page.set(
            "max_hold",
            time(self.retry_after.max_hold),
            "of all calls, after one hint",
        )
    }

    fn attempts(&self, page: &mut Page<'_, '_>) -> fmt::Result {
        self.streams(page)?;
        page.table("verdict", "reading of answers")?;
        page.head(self.verdict.enabled, self.verdict.kind.as_str(), "vendor")?;
        page.table("in_flight", "how far, the targets say")?;
        page.head(self.in_flight.enabled, self.in_flight.kind.as_str(), "wait")?;
        page.table("attempt_timeout", "how long, the targets say")?;
        let kind = self.attempt_timeout.kind.as_str();
        page.head(self.attempt_timeout.enabled, kind, "whole_answer")?;
        let pool = &self.pool;
        page.table("pool", "for each target its own")?;
        page.set("connections", pool.connections, "open at one time")?;
        page.set("idle", pool.idle, "kept while idle")?;
        page.set("idle_timeout", time(pool.idle_timeout), "so long")?;
        page.set("connect", time(pool.connect), "")?;
        page.set(
            "read_idle",
            time(pool.read_idle),
            "between pieces of an answer",
        )?;
        page.set("write", time(pool.write), "")?;
        page.set("keep_alive", time(pool.keep_alive), "HTTP/2 pings")?;
        page.set(
            "keep_alive_timeout",
            time(pool.keep_alive_timeout),
            "of a ping",
        )
    }

    fn streams(&self, page: &mut Page<'_, '_>) -> fmt::Result {
        let stream = &self.stream;
        page.table("stream", "checked to the end")?;
        page.set("enabled", stream.enabled, "")?;
        let commit = quoted(stream.commit.as_str());
        page.set("commit", commit, "first_content; complete: held whole")?;
        page.set("idle", time(stream.idle), "silence, then it is broken")?;
        page.set("total", or_none(stream.total), "an attempt, to the end")?;
        page.set("most_held", stream.most_held, "bytes without content")?;
        page.set("most_answer", stream.most_answer, "bytes, with complete")
    }

    fn trust(&self, page: &mut Page<'_, '_>) -> fmt::Result {
        page.table("tls", "whose certificates targets may show")?;
        page.set("roots", quoted(self.tls.roots.as_str()), "bundled, system")?;
        page.set("ca_file", quoted(&self.tls.ca_file), "and these, in PEM")
    }

    fn server(&self, page: &mut Page<'_, '_>) -> fmt::Result {
        let gateway = &self.gateway;
        page.table("gateway", "the server of `serve`")?;
        page.set("listen", quoted(gateway.listen), "--listen goes before it")?;
        page.set(
            "inbound_keys_env",
            quoted(&gateway.inbound_keys_env),
            "holds callers' keys: \"a,b\"",
        )?;
        page.set(
            "inbound_keys_file",
            quoted(&gateway.inbound_keys_file),
            "or a file, one a line",
        )?;
        page.set(
            "allow_request_fallbacks",
            gateway.allow_request_fallbacks,
            "a request's own chain",
        )?;
        page.set("max_body", gateway.max_body, "bytes of a request")?;
        page.set("in_flight", gateway.in_flight, "calls at one time")?;
        page.set("queue", gateway.queue, "calls that wait for room")?;
        page.set("queue_within", time(gateway.queue_within), "so long")?;
        page.set(
            "read_header_within",
            time(gateway.read_header_within),
            "from a client",
        )?;
        page.set(
            "read_body_within",
            time(gateway.read_body_within),
            "from a client",
        )?;
        page.set(
            "write_within",
            time(gateway.write_within),
            "for a client to take write_least",
        )?;
        page.set("write_least", gateway.write_least, "bytes of its answers")?;
        page.set(
            "shutdown_within",
            time(gateway.shutdown_within),
            "for calls under way",
        )?;
        page.set(
            "min_timeout",
            time(gateway.min_timeout),
            "of x-spillway-timeout-ms",
        )?;
        page.set("max_timeout", time(gateway.max_timeout), "")?;
        page.set("log", quoted(gateway.log.as_str()), "text, json")?;
        page.set("last_calls", gateway.last_calls, "that /status shows")
    }

    fn queue(&self, page: &mut Page<'_, '_>) -> fmt::Result {
        let batch = &self.batch;
        page.table("batch", "the queue of `batch`")?;
        page.set("concurrency", batch.concurrency, "items at one time")?;
        page.set("max_requeues", batch.max_requeues, "of one item")?;
        page.set(
            "requeue_base",
            time(batch.requeue_base),
            "first ceiling of the delay",
        )?;
        page.set("requeue_cap", time(batch.requeue_cap), "highest ceiling")?;
        page.set(
            "give_up_after",
            or_none(batch.give_up_after),
            "instead of max_requeues",
        )
    }

    fn costs(&self, page: &mut Page<'_, '_>) -> fmt::Result {
        page.table("prices", "US dollars for a million tokens")?;
        page.set("date", quoted(&self.prices.date), "are they still right?")?;
        for (model, price) in &self.prices.models {
            page.table(&format!("prices.models.{}", key(model)), "")?;
            page.set("input", quoted(&price.input), "")?;
            if let Some(cached) = &price.cached {
                page.set("cached", quoted(cached), "")?;
            }
            page.set("output", quoted(&price.output), "")?;
        }
        Ok(())
    }
}

impl Breaker {
    fn write(&self, page: &mut Page<'_, '_>, article: &str) -> fmt::Result {
        let kinds = "consecutive, consecutive_or_of_last";
        page.head(self.enabled, self.kind.as_str(), kinds)?;
        page.set("failures", self.failures, &format!("in a row; {article}"))?;
        page.set("bad", self.bad, "or so many, with ..._or_of_last")?;
        page.set("of_last", self.of_last, "of the last calls")?;
        page.set("within", time(self.within), "none of them older")?;
        page.set(
            "open",
            time(self.open),
            "at first; article: 30s, 60s for Gemini",
        )?;
        page.set("max_open", time(self.max_open), "it doubles up to this")?;
        page.set("close_after", self.close_after, "probes of users in a row")?;
        page.set("ramp", time(self.ramp), "then a rising share so long")?;
        page.set("probes", quoted(self.probes.as_str()), "own, users")?;
        page.set("probe_every", time(self.probe_every), "if own")?;
        page.set(
            "abandoned_after",
            time(self.abandoned_after),
            "cut off later than this: a failure",
        )
    }
}

impl Target {
    fn write(&self, page: &mut Page<'_, '_>, name: &str) -> fmt::Result {
        let name = key(name);
        page.table(&format!("targets.{name}"), "")?;
        page.set("vendor", quoted(self.vendor.as_str()), "whose answers")?;
        page.set(
            "takes",
            quoted(self.takes.as_str()),
            "anthropic, gemini, openai",
        )?;
        page.set("url", quoted(&self.url), "")?;
        page.set("model", quoted(&self.model), "")?;
        page.set("key_env", quoted(&self.key_env), "holds the key")?;
        page.set("key_file", quoted(&self.key_file), "or this file does")?;
        page.set("auth_header", quoted(&self.auth_header), "Azure: api-key")?;
        page.set("auth_scheme", quoted(&self.auth_scheme), "Azure: \"\"")?;
        page.set(
            "headers",
            quoted(&self.headers),
            "X = \"text\" or { env = \"NAME\" }",
        )?;
        page.set("query", quoted(&self.query), "Azure: api-version")?;
        page.set(
            "plain_within",
            time(self.plain_within),
            "an attempt, to the last byte",
        )?;
        page.set(
            "streaming_within",
            time(self.streaming_within),
            "to the first content of a stream",
        )?;
        page.set(
            "max_tokens",
            self.max_tokens,
            "if none is asked; 0: the vendor's",
        )?;
        page.set("max_tokens_cap", self.max_tokens_cap, "more becomes this")?;
        page.set("context", self.context, "tokens that fit; 0: as known")?;
        page.set("in_flight", self.in_flight, "calls at one time")?;
        page.set("enabled", self.enabled, "false: it drains")?;
        if let Some(breaker) = &self.breaker {
            page.table(&format!("targets.{name}.breaker"), "")?;
            breaker.write(page, "article: 5, 3 for Gemini")?;
        }
        Ok(())
    }
}

impl Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_reads_back_as_it_was() {
        for config in [Config::interactive(), Config::batch()] {
            let printed = config.to_string();
            assert_eq!(Config::from_toml(&printed).unwrap(), config, "{printed}");
            for line in printed.lines() {
                assert!(line.chars().count() <= 80, "{line}");
            }
        }
    }
}
