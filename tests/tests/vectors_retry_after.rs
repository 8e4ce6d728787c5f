//! `retry_after.jsonl`: how other systems read a server's hint, beside ours.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may")]

mod rows;

use std::time::Duration;

use http::Response;
use serde_json::{Value, json};
use spillway_tests::vectors::{self, Verdict};
use tower::{Layer, ServiceExt};
use tower_jitter_backoff::JitterBackoffLayer;
use tower_retry_after::RetryAfterLayer;
use tower_spillway_core::{
    Chance, Http, Read,
    clock::Wall,
    hint::{self, Hint, Jitter},
    testing::{
        script::{Script, Step},
        wall::ManualWall,
    },
};

const CLAMPED: &str = "it clamps the hint; ours is what was asked, and above the limit no retry";
const EXACT: &str = "a pushback without jitter; ours only adds";
const FORMAT: &str = "a unit or format that we do not read";

const ZERO: &str = "a hint of zero asks for no minimum";

#[test]
fn vector_retry_after() {
    vectors::run("retry_after.jsonl", |row| {
        let (input, expect) = (&row["input"], &row["expect"]);
        match by_design(input, expect) {
            Some(why) => Verdict::ByDesign(why.to_owned()),
            None => check(input, expect).unwrap_or_else(Verdict::Fail),
        }
    });
}

/// What differs on purpose, by its kind.
fn by_design(input: &Value, expect: &Value) -> Option<&'static str> {
    // `Retry-After` as seconds since 1970: ours are from now, as RFC 9110 says.
    if input["format"] == "UNIX_TIMESTAMP" {
        return Some(FORMAT);
    }
    // Set up as whole seconds there; others send decimals, and we read them.
    let decimals = || {
        let value = input["headers"][0][1].as_str()?;
        value.parse::<f64>().ok().filter(|_| value.contains('.'))
    };
    if input["format"] == "SECONDS" && expect["hint_ms"].is_null() && decimals().is_some() {
        return Some(FORMAT);
    }
    // Clamped to a backoff, so that it is sent before what was asked.
    let asked = input["hint_ms"].as_u64();
    let clamp = input["backoff_ms"]
        .as_u64()
        .or(input["max_backoff_ms"].as_u64());
    if clamp.is_some() && asked > expect["delay_ms_max"].as_u64() {
        return Some(CLAMPED);
    }
    None
}

fn check(input: &Value, expect: &Value) -> Result<Verdict, String> {
    if let Some(steps) = input["sequence"].as_array() {
        return sequence(steps, input, expect);
    }
    if let Some(asked) = input["hint_ms"].as_u64() {
        return drawn(asked, expect);
    }
    let answer = rows::Answer::of(input)?;
    let wait = asked(&answer);
    let ours = wait.map(|w| w.as_millis());
    let mut checked = false;
    let mut verdict = Verdict::Pass;

    if let Some(theirs) = expect.get("hint_ms") {
        checked = true;
        let theirs = rows::millis(theirs)?;
        let most = rows::millis(&input["max_ms"])?;
        let zero = |ms: Option<u128>| ms.is_none_or(|ms| ms == 0);
        if ours != theirs && zero(ours) && theirs == Some(0) {
            verdict = Verdict::ByDesign(ZERO.to_owned());
        } else if ours != theirs {
            if !(theirs == most && ours > most) {
                return Err(format!("asks for {ours:?} ms, not {theirs:?}"));
            }
            verdict = Verdict::ByDesign(CLAMPED.to_owned());
        }
    }
    if let Some(least) = expect["hint_ms_min"].as_u64() {
        checked = true;
        if ours < Some(least.into()) {
            return Err(format!("asks for {ours:?} ms, less than {least}"));
        }
    }
    if let Some(never_early) = expect["never_early"].as_bool() {
        checked = true;
        // All of these ask for more than anybody waits.
        if never_early && ours < rows::millis(&input["max_ms"])? {
            return Err(format!("asks for {ours:?} ms only"));
        }
    }
    // That it got here is what it asks.
    checked |= expect["panic"] == json!(false);
    if let Some(retried) = expect["retry"].as_bool() {
        checked = true;
        let sends = rows::paused(sends(&answer, Jitter::None));
        if retried != (sends.len() == 2) {
            return Err(format!("sent at {sends:?}"));
        }
        let delay = sends.last().map(Duration::as_millis);
        let least = rows::millis(&expect["delay_ms_min"])?;
        let most = rows::millis(&expect["delay_ms_max"])?;
        if least.is_some_and(|least| delay < Some(least)) {
            return Err(format!("sent at {sends:?}, too early"));
        }
        if most.is_some_and(|most| delay > Some(most)) {
            return Err(format!("without jitter sent at {sends:?}"));
        }
        if most.is_some() && most == least {
            let jittered = rows::paused(crate::sends(&answer, Jitter::Additive));
            let (exact, jittered) = (sends.last(), jittered.last());
            if jittered < exact {
                return Err(format!("jitter made {exact:?} into {jittered:?}"));
            }
            verdict = Verdict::ByDesign(EXACT.to_owned());
        }
    }
    if checked {
        Ok(verdict)
    } else {
        Err(format!("nothing known in {expect}"))
    }
}

/// What an answer asks for. The field of a pushback beside HTTP's own 200 stands for the trailers
/// of a call, in which gRPC sends it.
fn asked(answer: &rows::Answer) -> Option<Duration> {
    let http = Http::new().wall_clock(Wall::new(ManualWall::at(answer.now)));
    let reading = http.read(Ok(&answer.response()));
    let in_head = reading.hint();
    let trailers = || hint::grpc_pushback(&answer.headers);
    in_head.or_else(trailers).and_then(Hint::after)
}

/// When a layer sends that gets an answer and then a success.
async fn sends(answer: &rows::Answer, jitter: Jitter) -> Vec<Duration> {
    let upstream = Script::new([
        Step::answer(answer.response()),
        Step::answer(Response::default()),
    ]);
    let layer = RetryAfterLayer::new()
        .jitter(jitter)
        .chance(Chance::fixed(u64::MAX))
        .adapter(Http::new().wall_clock(Wall::new(ManualWall::at(answer.now))));
    layer
        .layer(upstream.clone())
        .oneshot(rows::get())
        .await
        .unwrap();
    upstream.times()
}

/// Draws for a hint stay in a range.
fn drawn(asked: u64, expect: &Value) -> Result<Verdict, String> {
    let least = rows::millis(&expect["delay_ms_min"])?.ok_or("no least delay")?;
    let most = rows::millis(&expect["delay_ms_max"])?.ok_or("no longest delay")?;
    let seeded = Chance::seeded(7);
    let extremes = [Chance::fixed(0), Chance::fixed(u64::MAX)];
    for chance in std::iter::repeat_n(&seeded, 2000).chain(&extremes) {
        let wait = hint::wait(Duration::from_millis(asked), &Jitter::Additive, chance);
        if !(least..=most).contains(&wait.as_millis()) {
            return Err(format!("waits {wait:?}"));
        }
    }
    Ok(Verdict::Pass)
}

/// Failures with and without a pushback: the waits are the pushbacks, and the schedule starts
/// again at its base afterwards.
fn sequence(steps: &[Value], input: &Value, expect: &Value) -> Result<Verdict, String> {
    let base = Duration::from_millis(input["initial_backoff_ms"].as_u64().ok_or("no base")?);
    let want: Vec<u128> = expect["delays_base_ms"]
        .as_array()
        .ok_or("no delays")?
        .iter()
        .map(|ms| rows::millis(ms)?.ok_or_else(|| "no delay".to_owned()))
        .collect::<Result<_, _>>()?;
    let pushbacks: Vec<Option<&str>> = steps
        .iter()
        .map(|step| step.as_str()?.strip_prefix("failure+pushback "))
        .collect();

    // The schedule draws (1 - rand) of its ceiling, a hint gets rand of its jitter.
    for (rand, schedule) in [(u64::MAX, Duration::from_millis(1)), (0, base)] {
        let answers = pushbacks.iter().map(|pushback| {
            let mut answer = Response::<http_body_util::Full<bytes::Bytes>>::default();
            answer.headers_mut().insert("grpc-status", 14.into());
            if let Some(ms) = pushback {
                let ms = ms.parse().unwrap();
                answer.headers_mut().insert("grpc-retry-pushback-ms", ms);
            }
            Step::answer(answer)
        });
        let upstream = Script::new(answers.chain([Step::answer(Response::default())]));
        let layers = (
            RetryAfterLayer::new()
                .longest_wait(Duration::from_secs(86_400))
                .chance(Chance::fixed(rand))
                .max_attempts(9)
                .unwrap(),
            JitterBackoffLayer::exponential(base, base * 8)
                .unwrap()
                .chance(Chance::fixed(rand)),
        );
        rows::paused(layers.layer(upstream.clone()).oneshot(rows::get())).unwrap();
        let times = upstream.times();
        let waits: Vec<Duration> = times.windows(2).map(|two| two[1] - two[0]).collect();
        let fits = waits.len() == want.len()
            && waits
                .iter()
                .zip(&want)
                .zip(&pushbacks)
                .all(|((wait, want), pushback)| {
                    let want = Duration::from_millis(u64::try_from(*want).unwrap());
                    match pushback {
                        // A floor under the schedule's own draw, and jitter only adds.
                        Some(_) => {
                            *wait >= want
                                && *wait <= (want + (want / 2).min(5 * SECOND)).max(schedule)
                        }
                        None => want == base && *wait == schedule,
                    }
                });
        if !fits {
            return Err(format!("waits {waits:?}"));
        }
    }
    Ok(Verdict::ByDesign(EXACT.to_owned()))
}

const SECOND: Duration = Duration::from_secs(1);
