//! `backoff.jsonl`: the delays of other systems' schedules.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::{collections::BTreeSet, time::Duration};

use serde_json::Value;
use spillway_tests::vectors::{self, Verdict};
use tower_jitter_backoff::{
    Constant, Exponential, Jitter, JitterBackoff, Linear, Schedule, Spread,
};
use tower_spillway_core::{Chance, InvalidConfig, hint};

/// As the sources have it and we do not.
fn by_design(config: &Value) -> Option<&'static str> {
    let jitter = &config["jitter"];
    let base = config["base_ms"].as_f64();
    let most = config["max_ms"].as_f64();
    let exponential = config["kind"] == "exponential";
    if config["kind"] == "decorrelated_v2" || jitter["kind"] == "decorrelated_v2" {
        Some("Polly's decorrelated jitter V2 is no schedule of ours")
    } else if jitter["kind"] == "uniform" {
        Some("a uniform range is full or plus-minus jitter here")
    } else if jitter["kind"] == "full_mod" {
        Some("a draw modulo the ceiling, from 0: ours is never nothing")
    } else if base == Some(0.0) {
        Some("a base of nothing is refused")
    } else if exponential && base > most && most.is_some() {
        Some("a base above the cap is refused")
    } else if jitter["after_cap"] == true {
        Some("jitter passes no cap here")
    } else if jitter["kind"] == "plus_minus" && exponential && most.is_some() {
        Some("the source jitters before the cap, ours around the ceiling that the cap gave")
    } else if config.get("max_exponent").is_some() {
        Some("growth ends at the cap, not at an exponent")
    } else {
        None
    }
}

#[test]
fn vector_backoff() {
    vectors::run("backoff.jsonl", |row| match by_design(&row["config"]) {
        Some(why) => Verdict::ByDesign(why.to_owned()),
        None => check(row).map_or_else(Verdict::Fail, |partly| match partly {
            None => Verdict::Pass,
            Some(why) => Verdict::ByDesign(why),
        }),
    });
}

/// `Some` where a case of the row is by design, the others as the row says.
fn check(row: &Value) -> Result<Option<String>, String> {
    let config = &row["config"];
    let delays = Delays::of(config)?;
    let mut by_design = None;
    let cases = row["cases"].as_array().ok_or("no cases")?;
    for case in cases {
        let attempt = case["attempt"].as_u64().ok_or("no attempt")?;
        let step =
            u32::try_from(attempt.checked_sub(1).ok_or("attempt 0")?).map_err(|e| e.to_string())?;
        let last = case.get("prev_ms").map(millis).transpose()?;
        let (min, max) = (millis(&case["min_ms"])?, millis(&case["max_ms"])?);
        if case.get("rand_u64").is_some() {
            by_design = Some("cases with a draw modulo the range: ours is a share of it".into());
        } else if let Some(rand) = case.get("rand") {
            let rand = rand.as_f64().ok_or("rand is no number")?;
            // Sources draw in either direction.
            let ours = [rand, 1.0 - rand].map(|rand| delays.draw(step, last, &fixed(rand)));
            let near = |ours: &Duration| {
                let ms = Duration::from_millis(1);
                *ours + ms >= min && *ours <= max + ms
            };
            if !ours.iter().any(near) {
                return Err(format!(
                    "attempt {attempt}: {ours:?}, not {min:?} to {max:?}"
                ));
            }
        } else {
            delays.fits(step, last, min, max)?;
        }
    }
    match row
        .get("property")
        .map(|p| p.as_str().ok_or("no text"))
        .transpose()?
    {
        None => {}
        Some("at least 100 distinct delays in 2000 draws") => {
            let chance = Chance::seeded(1);
            let distinct: BTreeSet<_> = (0..2000).map(|_| delays.draw(0, None, &chance)).collect();
            if distinct.len() < 100 {
                return Err(format!("{} distinct delays", distinct.len()));
            }
        }
        Some("strictly increasing for attempts 1..11") => {
            let all: Vec<_> = (0..11)
                .map(|step| delays.draw(step, None, &Chance::fixed(0)))
                .collect();
            if !all.is_sorted_by(|a, b| a < b) {
                return Err(format!("not increasing: {all:?}"));
            }
        }
        Some(other) => return Err(format!("unknown property {other:?}")),
    }
    Ok(by_design)
}

/// A schedule with its jitter, or a hint.
enum Delays {
    Schedule(JitterBackoff),
    Hint(Duration),
}

impl Delays {
    fn of(config: &Value) -> Result<Self, String> {
        let base = millis(&config["base_ms"])?;
        let most = match &config["max_ms"] {
            Value::Null => Duration::MAX,
            most => millis(most)?,
        };
        let kind = config["kind"].as_str().ok_or("no kind")?;
        let schedule: Schedule = match kind {
            "hint" => return Ok(Self::Hint(base)),
            "constant" => {
                let constant = Schedule::from(Constant::new(base).map_err(|e| e.to_string())?);
                constant.with_cap(most).map_err(|e| e.to_string())?
            }
            "linear" => Linear::new(base, most).map_err(|e| e.to_string())?.into(),
            // The step does not count in decorrelated jitter, only base and cap do.
            "exponential" | "decorrelated" => exponential(base, most, &config["multiplier"])?,
            other => return Err(format!("unknown kind {other}")),
        };
        let jitter = jitter(&config["jitter"])?;
        Ok(Self::Schedule(JitterBackoff::new(schedule).jitter(jitter)))
    }

    fn draw(&self, step: u32, last: Option<Duration>, chance: &Chance) -> Duration {
        match self {
            Self::Schedule(policy) => {
                let policy = policy.clone().chance(chance.clone());
                policy.delay_after(step, last)
            }
            Self::Hint(asked) => hint::wait(*asked, &hint::Jitter::Additive, chance),
        }
    }

    /// 2000 draws and both ends of the range are from `min` to `max`.
    fn fits(
        &self,
        step: u32,
        last: Option<Duration>,
        min: Duration,
        max: Duration,
    ) -> Result<(), String> {
        let chance = Chance::seeded(u64::from(step));
        let ends = [Chance::fixed(0), Chance::fixed(u64::MAX)];
        let draws = (0..2000).map(|_| &chance).chain(&ends);
        for chance in draws {
            let drawn = self.draw(step, last, chance);
            // Beyond the largest number of the source ours is larger still.
            let saturated = max > Duration::from_secs(900_000_000_000) && drawn == Duration::MAX;
            // Where a source cuts a fraction of a millisecond, ours keeps it.
            let cut = Duration::from_millis(u64::try_from(drawn.as_millis()).unwrap_or(u64::MAX));
            if !saturated && (drawn < min || cut > max) {
                return Err(format!("step {step}: {drawn:?}, not {min:?} to {max:?}"));
            }
        }
        Ok(())
    }
}

fn exponential(base: Duration, most: Duration, multiplier: &Value) -> Result<Schedule, String> {
    let multiplier = multiplier.as_f64().ok_or("no multiplier")?;
    let hundredths = (multiplier * 100.0).round() as u32;
    let schedule = Exponential::new(base, most).and_then(|s| s.multiplier(hundredths, 100));
    Ok(schedule.map_err(|e| e.to_string())?.into())
}

fn jitter(jitter: &Value) -> Result<Jitter, String> {
    let spread = || match (&jitter["factor"], &jitter["amount_ms"]) {
        (Value::Null, amount) => Spread::amount(millis(amount)?).map_err(|e| e.to_string()),
        (factor, _) => {
            let factor = factor.as_f64().ok_or("factor is no number")?;
            Spread::percent((factor * 100.0).round() as u32).map_err(|e| e.to_string())
        }
    };
    Ok(match jitter["kind"].as_str().ok_or("no jitter")? {
        "none" => Jitter::None,
        "full" => Jitter::Full,
        "equal" => Jitter::Equal,
        "decorrelated" => Jitter::Decorrelated,
        "plus_minus" => Jitter::PlusMinus(spread()?),
        "additive" => Jitter::Additive(spread()?),
        other => return Err(format!("unknown jitter {other}")),
    })
}

/// Always this share of a range.
fn fixed(rand: f64) -> Chance {
    Chance::fixed((rand * 2f64.powi(64)) as u64)
}

/// To the nanosecond: rows have fractions of milliseconds.
fn millis(value: &Value) -> Result<Duration, String> {
    let ms = value.as_f64().ok_or("no number of ms")?;
    Duration::try_from_secs_f64(ms / 1000.0).map_err(|e| e.to_string())
}

#[test]
fn what_the_rows_by_design_say_is_so() {
    let ms = Duration::from_millis;
    let refused = |made: Result<Exponential, InvalidConfig>| made.unwrap_err().what();
    assert_eq!(refused(Exponential::new(Duration::ZERO, ms(1000))), "base");
    assert_eq!(refused(Exponential::new(ms(500), ms(100))), "cap");
    let policy = JitterBackoff::new(Exponential::new(ms(100), ms(1000)).unwrap())
        .jitter(Jitter::PlusMinus(Spread::percent(20).unwrap()));
    let highest = policy.clone().chance(Chance::fixed(u64::MAX));
    assert_eq!(highest.delay(999), ms(1000));
    assert_eq!(policy.chance(Chance::fixed(0)).delay(999), ms(800));
}
