//! `budget.jsonl`: the budgets of other systems, step by step.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may")]

mod budgets;

use std::time::Duration;

use budgets::{Budget, Seen, backoff};
use serde_json::Value;
use spillway_tests::vectors::{self, Verdict};
use tokio::time::Instant;
use tower_jitter_backoff::JitterBackoff;
use tower_spillway_core::{
    Class,
    gate::{Ask, Grant},
};

#[test]
fn vector_budget() {
    vectors::run("budget.jsonl", |row| {
        match row["config"]["kind"].as_str() {
            Some("adaptive_rate" | "adaptive_throttle" | "concurrency_rate") => {
                return Verdict::ByDesign("another crate's: it limits first attempts".to_owned());
            }
            Some(_) => {}
            None => return Verdict::Fail("no kind".to_owned()),
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build();
        let first_difference = runtime.unwrap().block_on(play(row));
        match (first_difference, differs_at(&row["ours"])) {
            (Ok(()), None) => Verdict::Pass,
            (Ok(()), Some(step)) => Verdict::Fail(format!("no difference at step {step}")),
            (Err((step, _)), Some(expected)) if step == expected => {
                Verdict::ByDesign(row["ours"].as_str().unwrap_or_default().to_owned())
            }
            (Err((step, why)), _) => Verdict::Fail(format!("step {step}: {why}")),
        }
    });
}

/// The step of `differs at step 7: ...`, where ours differs on purpose.
fn differs_at(ours: &Value) -> Option<usize> {
    let text = ours.as_str()?.strip_prefix("differs at step ")?;
    text.split(':').next()?.parse().ok()
}

/// `Err` with the step (from 0) that is not as the row says.
async fn play(row: &Value) -> Result<(), (usize, String)> {
    let mut player = Player::of(&row["config"]).map_err(|why| (0, why))?;
    let started = Instant::now();
    let steps = row["steps"].as_array().ok_or((0, "no steps".to_owned()))?;
    for (number, step) in steps.iter().enumerate() {
        let t = step["t_ms"]
            .as_f64()
            .ok_or((number, "no time".to_owned()))?;
        let at = started + Duration::from_secs_f64(t / 1000.0);
        tokio::time::advance(at.saturating_duration_since(Instant::now())).await;
        player.step(step).map_err(|why| (number, why))?;
    }
    Ok(())
}

struct Player {
    budget: Budget,
    config: Value,
    /// Retries under way, the latest last.
    out: Vec<Grant>,
    /// Attempts made so far, over all calls of the row.
    attempts: u64,
    backoff: Option<JitterBackoff>,
}

impl Player {
    fn of(config: &Value) -> Result<Self, String> {
        let budget = Budget::of(config)?;
        let backoff = config.get("backoff").map(backoff).transpose()?;
        Ok(Self {
            budget,
            config: config.clone(),
            out: Vec::new(),
            attempts: 0,
            backoff,
        })
    }

    /// What a driver tells a budget of a call whose first attempt ended so.
    fn first(&self, class: Class) {
        if let Some(gate) = self.budget.gate() {
            gate.first_end(class, Instant::now());
            gate.attempt_end(class, Instant::now());
        }
    }

    fn ended(&self, class: Class) {
        if let Some(gate) = self.budget.gate() {
            gate.attempt_end(class, Instant::now());
        }
    }

    /// `None` from no budget: granted.
    fn withdraw(&self, class: Class, timed_out: bool) -> Option<Option<Grant>> {
        let Some(gate) = self.budget.gate() else {
            return Some(None);
        };
        let mut ask = Ask::retry(class, Instant::now());
        ask.timed_out = timed_out;
        let mut grant = Grant::withdraw(&gate, &ask)?;
        grant.sent();
        Some(Some(grant))
    }

    fn retry(&mut self, class: Class, timed_out: bool) -> bool {
        match self.withdraw(class, timed_out) {
            None => false,
            Some(grant) => {
                self.out.extend(grant);
                true
            }
        }
    }

    /// All or nothing.
    fn take(&mut self, n: u64) -> bool {
        let mut taken = Vec::new();
        for _ in 0..n {
            match self.withdraw(Class::Transient, false) {
                Some(grant) => taken.extend(grant),
                None => {
                    // None of these was sent.
                    for mut grant in taken {
                        grant.unsent();
                    }
                    return false;
                }
            }
        }
        // Spent: they count until they leave the window.
        taken
            .into_iter()
            .for_each(|grant| grant.finish(Class::Transient));
        true
    }

    fn step(&mut self, step: &Value) -> Result<(), String> {
        let expect = &step["expect"];
        let n = step["n"].as_u64().unwrap_or(1);
        let mut seen = Seen::default();
        match step["op"].as_str().ok_or("no op")? {
            "deposit" => (0..n).for_each(|_| self.first(Class::Success)),
            // So many tokens; a retry costs what the row says.
            "withdraw" => {
                let price = self.config["cost"]["retry"].as_u64().unwrap_or(1);
                seen.granted = Some(self.take(n / price));
            }
            "deposit_then_withdraw" => {
                let granted = (0..n).filter(|_| {
                    self.first(Class::Transient);
                    self.take(1)
                });
                seen.count = Some(granted.count() as u64);
            }
            "withdraw_until_denied" => {
                seen.count = Some((0..).take_while(|_| self.take(1)).count() as u64);
            }
            "query" => self.query(),
            "attempt_failed" => self.attempt_failed(step, &mut seen)?,
            "success" => match self.out.pop() {
                // After retries: the last of them succeeded.
                Some(grant) => {
                    self.out.drain(..).for_each(|g| g.finish(Class::Transient));
                    grant.finish(Class::Success);
                    self.ended(Class::Success);
                }
                None => self.first(Class::Success),
            },
            "lose_permit" => self.out.drain(..).for_each(|g| g.finish(Class::Cancelled)),
            "failure" => self.ended(Class::Transient),
            "other_failure" => self.ended(Class::CallerFault),
            "failure_no_retry_pushback" => self.ended(Class::Transient),
            "rpc" => self.rpc(step, &mut seen)?,
            "try_retry" => self.try_retry(step, &mut seen)?,
            other => return Err(format!("unknown op {other}")),
        }
        seen.compare(expect, &self.budget)
    }

    /// Of callers at once, each fills; once is enough.
    fn query(&self) {
        let Some(callers) = self.config["concurrent_callers"].as_u64() else {
            return;
        };
        let Some(gate) = self.budget.gate() else {
            return;
        };
        let now = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..callers {
                // Asks, and gives back what it got.
                scope.spawn(|| {
                    let ask = Ask::retry(Class::Transient, now);
                    drop(Grant::withdraw(&gate, &ask));
                });
            }
        });
    }

    fn attempt_failed(&mut self, step: &Value, seen: &mut Seen) -> Result<(), String> {
        let attempt = step["attempt"].as_u64().ok_or("no attempt")?;
        let (class, timed_out) = match step["kind"].as_str().ok_or("no kind of failure")? {
            "retry" => (Class::Transient, false),
            "transient" => (Class::Transient, true),
            "throttling" => (Class::Throttled, false),
            other => return Err(format!("unknown kind of failure {other}")),
        };
        match attempt {
            1 => self.first(class),
            _ => self.ended(class),
        }
        let most = self.config["max_attempts"].as_u64().unwrap_or(u64::MAX);
        // The budget is asked last.
        seen.retry = Some(attempt < most && self.retry(class, timed_out));
        if let (Some(backoff), None) = (&self.backoff, step.get("hint_ms")) {
            seen.delay = Some(backoff.delay(attempt as u32 - 1).as_millis() as u64);
        }
        Ok(())
    }

    fn rpc(&mut self, step: &Value, seen: &mut Seen) -> Result<(), String> {
        let most = self.config["max_attempts"].as_u64().unwrap_or(u64::MAX);
        let succeeds = self.config["attempt_succeeds_at_index"].as_array();
        let results = step["attempt_results"].as_array();
        let (mut sends, mut grant) = (0u64, None::<Grant>);
        loop {
            let (result, class) = match (results, succeeds) {
                (Some(results), _) => {
                    let status = results.get(sends as usize).and_then(Value::as_u64);
                    let status = status.ok_or("more attempts than results")?;
                    let class = match status {
                        500.. => Class::Transient,
                        _ => Class::Success,
                    };
                    (Value::from(status), class)
                }
                (None, Some(indices)) => match indices.contains(&Value::from(self.attempts)) {
                    true => (Value::from("ok"), Class::Success),
                    false => (Value::from("unavailable"), Class::Transient),
                },
                (None, None) => return Err("nothing says what attempts give".to_owned()),
            };
            seen.last_attempt = Some(self.attempts);
            self.attempts += 1;
            sends += 1;
            match grant.take() {
                Some(grant) => {
                    grant.finish(class);
                    self.ended(class);
                }
                None => self.first(class),
            }
            seen.attempts = Some(sends);
            seen.result = Some(result);
            if class == Class::Success || sends >= most {
                return Ok(());
            }
            match self.withdraw(class, false) {
                Some(granted) => grant = granted,
                None => return Ok(()),
            }
        }
    }

    fn try_retry(&mut self, step: &Value, seen: &mut Seen) -> Result<(), String> {
        let Budget::Concurrency(budget) = &self.budget else {
            return Err("not a concurrency".to_owned());
        };
        let calls = step["active_and_pending"].as_u64().ok_or("no calls")?;
        let outstanding = step["retries_outstanding"].as_u64().ok_or("no retries")?;
        let gate = budget.as_gate();
        let now = Instant::now();
        (0..calls).for_each(|_| gate.enter(now));
        let ask = Ask::retry(Class::Transient, now);
        let out: Vec<_> = (0..outstanding)
            .map_while(|_| Grant::withdraw(&gate, &ask))
            .collect();
        if out.len() as u64 != outstanding {
            return Err(format!("{} out, not {outstanding}", out.len()));
        }
        seen.limit = Some(budget.limit().into());
        seen.granted = Some(Grant::withdraw(&gate, &ask).is_some());
        drop(out);
        (0..calls).for_each(|_| gate.leave(now));
        match (budget.calls(), budget.retries()) {
            (0, 0) => Ok(()),
            left => Err(format!("{left:?} left")),
        }
    }
}
