//! What can be used, and is hardly meant.

use std::{collections::BTreeSet, time::Duration};

use super::{Found, Remark};
use crate::config::{Commit, Config, HeaderFrom, duration::text};

/// What a call waits for.
#[derive(Clone, Copy)]
enum Kind {
    Plain,
    Streaming,
}

impl Config {
    /// What is odd.
    pub(in crate::config) fn odd(&self) -> Vec<Remark> {
        let mut found = Found::default();
        let chains = self.all_chains();
        for (path, chain) in &chains {
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            self.advise_chain(&mut found, &path, chain);
        }
        let asked: BTreeSet<&str> = chains.iter().flat_map(|(_, c)| c.iter().copied()).collect();
        self.advise_targets(&mut found, &asked);
        found.0
    }

    /// Where each chain stands in the file, and its targets.
    fn all_chains(&self) -> Vec<(Vec<String>, Vec<&str>)> {
        let at = |table: &str, name: &String| vec![table.to_owned(), name.clone()];
        let named = self.chains.keys().filter_map(|name| {
            let targets = self.targets_of(name)?;
            Some((at("chains", name), targets))
        });
        let routed = self.routes.iter().filter_map(|(model, route)| {
            let targets = self.targets_of_route(route)?;
            Some((at("routes", model), targets))
        });
        named.chain(routed).collect()
    }

    fn advise_chain(&self, found: &mut Found, path: &[&str], chain: &[&str]) {
        // What is odd about a chain is said of it, not of the routes to it.
        let mut chains = self.chains.keys().filter_map(|name| self.targets_of(name));
        if path.first() == Some(&"routes") && chains.any(|c| c == chain) {
            return;
        }
        let enabled: Vec<&str> = chain
            .iter()
            .copied()
            .filter(|t| self.is_enabled(t))
            .collect();
        let Some(first) = enabled.first() else {
            found.say(
                path,
                "leads to no target that is enabled: calls get no answer",
            );
            return;
        };
        if !self.failover.enabled && enabled.len() > 1 {
            let said =
                format!("has more targets than {first}, which failover.enabled = false leaves out");
            found.say(path, said);
            return;
        }
        for (kind, name, deadline) in self.deadlines() {
            // One that drains comes back.
            let limits = chain.iter().filter_map(|at| {
                let target = self.targets.get(*at)?;
                Some(match kind {
                    Kind::Plain => (*at, target.plain_within),
                    Kind::Streaming => (*at, target.streaming_within),
                })
            });
            let limits: Vec<_> = limits.collect();
            self.advise_deadline(found, path, &limits, (name, deadline));
        }
    }

    /// The deadlines that attempts with limits of their own have.
    fn deadlines(&self) -> Vec<(Kind, &'static str, Duration)> {
        let call = &self.call;
        let plain = (Kind::Plain, "call.plain_deadline", call.plain_deadline);
        let streaming = (
            Kind::Streaming,
            "call.streaming_deadline",
            call.streaming_deadline,
        );
        let limited = self.attempt_timeout.enabled;
        // A stream that is held to its end is waited for like a plain answer.
        let held = self.stream.enabled && self.stream.commit == Commit::Complete;
        let plain = Some(plain).filter(|_| limited);
        let streaming = Some(streaming).filter(|_| limited && !held);
        let in_force = plain.into_iter().chain(streaming);
        in_force
            .filter_map(|(kind, name, deadline)| Some((kind, name, deadline?)))
            .collect()
    }

    /// A target that hangs is asked once where another follows, and again where none does.
    fn advise_deadline(
        &self,
        found: &mut Found,
        path: &[&str],
        targets: &[(&str, Duration)],
        (name, deadline): (&str, Duration),
    ) {
        let attempts = match targets.len() {
            1 => self.failover.sends,
            _ => 1,
        };
        let all = |limit: &Duration| limit.saturating_mul(attempts);
        let total = targets.iter().map(|(_, limit)| all(limit));
        let total = total.fold(Duration::ZERO, Duration::saturating_add);
        if total <= deadline {
            return;
        }
        let attempts = match attempts {
            1 => "1 attempt".to_owned(),
            n => format!("{n} attempts"),
        };
        let terms = targets.iter();
        let terms = terms.map(|(at, limit)| format!("{attempts} x {} at {at}", text(*limit)));
        let (terms, total) = (terms.collect::<Vec<_>>().join(" + "), text(total));
        let deadline = text(deadline);
        found.say(
            path,
            format!("may not get to its end: {terms} = {total}, beyond {name} = {deadline}"),
        );
    }

    fn advise_targets(&self, found: &mut Found, asked: &BTreeSet<&str>) {
        let built_in = Self::of(self.profile).targets;
        for (name, target) in &self.targets {
            let path = ["targets", name.as_str()];
            if !asked.contains(name.as_str()) {
                // Those of the profile are there in any case.
                if built_in.get(name) == Some(target) {
                    continue;
                }
                found.say(&path, "is in no chain and no route: it is never asked");
                continue;
            }
            if !self.prices.models.contains_key(&target.model) {
                let said = format!(
                    "has no price: [prices.models.\"{}\"] would tell what its answers cost",
                    target.model
                );
                found.say(&path, said);
            }
            let secret = target
                .headers
                .values()
                .any(|h| !matches!(h, HeaderFrom::Text(_)));
            let keyless = target.key_env.is_empty() && target.key_file.is_empty() && !secret;
            if keyless && target.url.starts_with("https") {
                found.say(&path, "has no key_env: it is asked without a key");
            }
        }
    }
}
