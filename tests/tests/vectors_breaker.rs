//! `breaker.jsonl`: how other systems' breakers behave, and ours.
//!
//! A row is played on the public handle: an operation takes a [`Permit`] and says how the call
//! ended, as a service does. Time is tokio's, paused.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may")]

mod rows;

use std::{collections::HashMap, time::Duration};

use serde_json::Value;
use spillway_tests::vectors::{self, Verdict};
use tokio::time::{Instant, advance};
use tower_circuit_breaker::{
    Breaker, BreakerConfig, Control, Permit, Refusal, Refused, Rule, State,
};
use tower_spillway_core::{Class, Reading};

type Result<T> = std::result::Result<T, String>;

/// Longer than any row.
const LONG: Duration = Duration::from_secs(86_400 * 365);

#[test]
fn vector_breaker() {
    vectors::run("breaker.jsonl", |row| {
        rows::paused(check(row)).unwrap_or_else(Verdict::Fail)
    });
}

async fn check(row: &Value) -> Result<Verdict> {
    let Play { differs, .. } = Play::run(row).await?;
    let ours = text(&row["ours"])?;
    if ours == "match" {
        return match differs {
            None => Ok(Verdict::Pass),
            Some((step, what)) => Err(format!("step {step}: {what}")),
        };
    }
    // "differs at step N: FIELD OURS (source THEIRS) — why"
    let by_design = ours
        .strip_prefix("differs at step ")
        .and_then(|rest| rest.split_once(": "))
        .ok_or_else(|| format!("cannot read `ours`: {ours}"))?;
    let wanted: usize = by_design.0.parse().map_err(|e| format!("{ours}: {e}"))?;
    match differs {
        Some((step, what)) if step == wanted && by_design.1.starts_with(&what) => {
            Ok(Verdict::ByDesign(by_design.1.to_owned()))
        }
        Some((step, what)) => Err(format!("differs at step {step}: {what}, not as said")),
        None => Err(format!("matches, but `ours` says: {ours}")),
    }
}

/// One row under way.
struct Play {
    system: String,
    begin: Instant,
    breakers: HashMap<String, Breaker>,
    control: Option<Control>,
    /// What is slow for every rule.
    slow: Duration,
    /// Calls in flight, by name.
    calls: HashMap<String, Permit>,
    /// Permits that were taken and never used.
    taken: Vec<Permit>,
    /// The first step that is not as the row says: `FIELD OURS (source THEIRS)`.
    differs: Option<(usize, String)>,
}

impl Play {
    async fn run(row: &Value) -> Result<Self> {
        let config = &row["config"];
        let control = config["shared_control"].as_bool().unwrap_or(false);
        let control = control.then(Control::new);
        let mut breaker = breaker_of(config)?;
        if let Some(control) = &control {
            breaker = breaker.control(control);
        }
        let names = match config["breakers"].as_array() {
            Some(names) => names.iter().map(text).collect::<Result<Vec<_>>>()?,
            None => vec![""],
        };
        let make = |name: &str| match Breaker::new(name, breaker.clone()) {
            Ok(breaker) => Ok((name.to_owned(), breaker)),
            Err(e) => Err(format!("configuration: {e}")),
        };
        let mut play = Self {
            system: text(&row["system"])?.to_owned(),
            begin: Instant::now(),
            breakers: names.into_iter().map(make).collect::<Result<_>>()?,
            control,
            slow: slowest(config)? + Duration::from_millis(1),
            calls: HashMap::new(),
            taken: Vec::new(),
            differs: None,
        };
        let initial = [&row["initial_state"], &config["initial_state"]];
        if let Some(state) = initial.iter().find_map(|state| state.as_str()) {
            play.begin_in(state)?;
        }
        let steps = row["steps"].as_array().ok_or("no steps")?;
        for (number, step) in steps.iter().enumerate() {
            play.until(&step["t_ms"]).await?;
            let at_step = |e| format!("step {number}: {e}");
            let (breaker, refusal) = play.step(step).map_err(at_step)?;
            let expect = &step["expect"];
            if let Some(what) = compare(expect, &breaker, refusal.as_ref()).map_err(at_step)? {
                play.differs = Some((number, what));
                break;
            }
        }
        Ok(play)
    }

    fn begin_in(&self, state: &str) -> Result<()> {
        let put: fn(&Breaker) = match state {
            "closed" => return Ok(()),
            "open" => Breaker::trip,
            "half_open" => Breaker::half_open,
            "forced_open" => Breaker::force_open,
            "disabled" => Breaker::disable,
            "metrics_only" => Breaker::metrics_only,
            other => return Err(format!("cannot read the state {other}")),
        };
        self.breakers.values().for_each(put);
        Ok(())
    }

    /// To the nanosecond: a row may say 1e-6 ms.
    async fn until(&self, t_ms: &Value) -> Result<()> {
        let t = t_ms.as_f64().ok_or("no t_ms")?;
        let at = Duration::from_nanos((t * 1e6).round() as u64);
        if let Some(ahead) = at.checked_sub(self.begin.elapsed()) {
            advance(ahead).await;
        }
        Ok(())
    }

    /// Does a step; the refusal, where it asked for a permit.
    fn step(&mut self, step: &Value) -> Result<(Breaker, Option<Option<Refused>>)> {
        let breaker = match (step["breaker"].as_str(), self.breakers.values().next()) {
            (Some(name), _) => self.breakers.get(name),
            (None, first) => first,
        };
        let breaker = breaker.ok_or("no such breaker")?.clone();
        let call = || text(&step["call"]).map(str::to_owned);
        let op = text(&step["op"])?;
        let op = op.strip_prefix("record_").unwrap_or(op);
        let took = match &step["duration_ms"] {
            Value::Null if op.starts_with("slow_") => self.slow,
            Value::Null => Duration::ZERO,
            ms => millis(ms)?,
        };
        let mut refusal = None;
        match op {
            "success" | "failure" | "ignored" | "panic" | "rate_limited" | "slow_success"
            | "slow_failure" => {
                refusal = Some(match breaker.permit() {
                    Ok(permit) => {
                        finish(permit, op, took)?;
                        None
                    }
                    Err(refused) => Some(refused),
                });
            }
            "acquire" | "begin" => {
                refusal = Some(match breaker.permit() {
                    Ok(permit) if op == "acquire" => {
                        self.taken.push(permit);
                        None
                    }
                    Ok(permit) => {
                        self.calls.insert(call()?, permit);
                        None
                    }
                    Err(refused) => Some(refused),
                });
            }
            "end_success" | "end_failure" | "end_ignored" => {
                let permit = self.calls.remove(&call()?).ok_or("no such call")?;
                finish(permit, op.trim_start_matches("end_"), took)?;
            }
            "drop" => drop(self.calls.remove(&call()?).ok_or("no such call")?),
            "release" => drop(self.taken.pop().ok_or("nothing to release")?),
            "state" => (),
            "manual_open" => breaker.trip(),
            "open_for" => breaker.force_open_for(took),
            // No effect from closed there.
            "manual_half_open" if self.closed_stays(&breaker) => (),
            "manual_half_open" => breaker.half_open(),
            "isolate" => match &self.control {
                Some(control) => control.force_open(),
                None => breaker.force_open(),
            },
            "manual_close" => match &self.control {
                Some(control) => control.force_close(),
                None => breaker.force_close(),
            },
            "reset" => breaker.reset(),
            "disable" => breaker.disable(),
            "metrics_only" => breaker.metrics_only(),
            other => return Err(format!("cannot read the operation {other}")),
        }
        Ok((breaker, refusal))
    }

    fn closed_stays(&self, breaker: &Breaker) -> bool {
        self.system == "resilience4j" && breaker.state() == State::Closed
    }
}

fn finish(permit: Permit, outcome: &str, took: Duration) -> Result<()> {
    let class = match outcome {
        "success" | "slow_success" => Class::Success,
        "failure" | "slow_failure" | "panic" => Class::Transient,
        "rate_limited" => Class::Throttled,
        "ignored" => Class::Cancelled,
        other => return Err(format!("cannot read the outcome {other}")),
    };
    permit.finish_after(&Reading::new(class), took);
    Ok(())
}

/// What of `expect` is not so.
fn compare(
    expect: &Value,
    breaker: &Breaker,
    refusal: Option<&Option<Refused>>,
) -> Result<Option<String>> {
    let snapshot = breaker.snapshot();
    let refused = refusal.and_then(Option::as_ref);
    let Some(expect) = expect.as_object() else {
        return Ok(None);
    };
    // In one order, whatever that of the row: the first difference is the one that is named.
    for field in [
        "permitted",
        "reject_reason",
        "state",
        "retry_after_ms",
        "remaining_ms",
        "trip_reason",
    ] {
        let Some(theirs) = expect.get(field) else {
            continue;
        };
        let ours = match field {
            "permitted" => Value::Bool(refusal.ok_or("asked for no permit")?.is_none()),
            "reject_reason" => match refused.map(Refused::refusal) {
                Some(Refusal::Open) => "open".into(),
                Some(Refusal::ProbesBusy) => "too_many".into(),
                Some(Refusal::ForcedOpen) => "forced".into(),
                _ => Value::Null,
            },
            "state" => snapshot.state.as_str().into(),
            "retry_after_ms" | "remaining_ms" => {
                let wait = match refused {
                    Some(refused) => refused.wait(),
                    None => snapshot.retry_in,
                };
                wait.map_or(Value::Null, |wait| (wait.as_secs_f64() * 1e3).into())
            }
            _ => snapshot.reason.map_or(Value::Null, |r| r.as_str().into()),
        };
        let near = match (theirs.as_f64(), ours.as_f64()) {
            (Some(theirs), Some(ours)) => (theirs - ours).abs() < 1e-6,
            _ => shown(theirs) == shown(&ours),
        };
        if !near {
            let (ours, theirs) = (shown(&ours), shown(theirs));
            return Ok(Some(format!("{field} {ours} (source {theirs})")));
        }
    }
    Ok(None)
}

/// As `ours` writes it.
fn shown(value: &Value) -> String {
    match value {
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

// -- the configuration of a row, as ours ------------------------------------------------------

fn breaker_of(config: &Value) -> Result<BreakerConfig> {
    let rules = config["trip"].as_array().ok_or("no trip")?;
    let rules = rules
        .iter()
        .map(|rule| rule_of(rule, config))
        .collect::<Result<Vec<_>>>()?;
    let open = &config["open"];
    let base = if open["generator"].is_null() {
        millis(&open["base_ms"])?
    } else {
        Duration::from_secs(1)
    };
    let longest = match &open["max_ms"] {
        Value::Null => LONG,
        ms => millis(ms)?,
    };
    let (close, reopen) = verdict_of(&config["half_open"])?;
    Ok(BreakerConfig::new()
        .rules(rules)
        .open_time(base)
        .max_open_time(longest)
        .growth(number(&open["multiplier"])?)
        .jitter(0.0)
        .probes_at_once(count(&config["half_open"]["permits"])?)
        .close_after(close)
        .reopen_after(reopen))
}

fn rule_of(rule: &Value, config: &Value) -> Result<Rule> {
    let calls = || count(&rule["min_calls"]);
    let window = || millis(&rule["window_ms"]);
    let failures = || count(&rule["failures"]);
    let size = || count(&rule["size"]);
    let rate = || number(&rule["failure_rate"]);
    Ok(match text(&rule["rule"])? {
        "consecutive" => Rule::run(failures()?),
        "count_window" => Rule::number_of_last(failures()?, size()?),
        // It asks for more calls than it looks back on: it never trips.
        "count_window_rate" if calls()? > size()? => Rule::run(u32::MAX),
        "count_window_rate" => Rule::rate_of_last(rate()?, calls()?, size()?),
        "time_window_rate" | "fixed_interval_rate" => Rule::rate(rate()?, calls()?, window()?),
        "time_window_count" => Rule::number(failures()?, window()?),
        // Strictly over: by one in the billionths in which shares are counted.
        "time_window_success_rate_below" => {
            let failed = 1.0 - number(&rule["success_rate"])?;
            Rule::rate(failed + 1e-9, calls()?, window()?)
        }
        // It looks back on the calls that the rule beside it does, unless it says otherwise.
        "slow_rate" => {
            let over = millis(&rule["slow_ms"])?;
            let beside = config["trip"].as_array().into_iter().flatten();
            let beside = std::iter::once(rule)
                .filter(|r| !r["window_ms"].is_null())
                .chain(beside);
            let mut times = beside.filter_map(|rule| millis(&rule["window_ms"]).ok());
            let time = times.next().unwrap_or(LONG);
            Rule::slow(over, number(&rule["rate"])?, calls()?, time)
        }
        other => return Err(format!("cannot read the rule {other}")),
    })
}

/// So many successes close, so many failures reopen.
fn verdict_of(half_open: &Value) -> Result<(u32, u32)> {
    let (close, reopen) = (&half_open["close"], &half_open["reopen"]);
    let permits = count(&half_open["permits"])?;
    let share = |rate: &Value, of: u32| -> Result<u32> {
        Ok((number(rate)? * f64::from(of)).ceil() as u32)
    };
    let failures = match text(&reopen["rule"])? {
        "any_failure" | "any_failure_or_rate_limited" => 1,
        "failures" => count(&reopen["n"])?,
        "failures_over" => count(&reopen["n"])? + 1,
        "rate_over_permits" => share(&reopen["failure_rate"], permits)?,
        "failure_rate" => {
            let rate = match &reopen["rate"] {
                Value::Null => &reopen["failure_rate"],
                rate => rate,
            };
            share(rate, count(&reopen["min_calls"])?)?
        }
        other => return Err(format!("cannot read what reopens: {other}")),
    };
    let successes = match text(&close["rule"])? {
        "consecutive_successes" => count(&close["n"])?,
        "successes_over" => count(&close["n"])? + 1,
        "count_window" => count(&close["successes"])?,
        "rate_over_permits" => permits - failures + 1,
        "success_rate_over" => count(&close["min_calls"])? - failures + 1,
        other => return Err(format!("cannot read what closes: {other}")),
    };
    Ok((successes, failures))
}

/// The longest time that is not slow for some rule.
fn slowest(config: &Value) -> Result<Duration> {
    let rules = config["trip"].as_array().into_iter().flatten();
    let slow = rules
        .map(|rule| &rule["slow_ms"])
        .filter(|ms| !ms.is_null());
    let slow = slow.map(millis).collect::<Result<Vec<_>>>()?;
    Ok(slow.into_iter().max().unwrap_or_default())
}

fn text(value: &Value) -> Result<&str> {
    value.as_str().ok_or_else(|| format!("no text: {value}"))
}

fn number(value: &Value) -> Result<f64> {
    value.as_f64().ok_or_else(|| format!("no number: {value}"))
}

fn count(value: &Value) -> Result<u32> {
    let count = value.as_u64().and_then(|n| u32::try_from(n).ok());
    count.ok_or_else(|| format!("no count: {value}"))
}

fn millis(value: &Value) -> Result<Duration> {
    Ok(Duration::from_secs_f64(number(value)? / 1e3))
}
