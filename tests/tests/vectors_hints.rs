//! `hints.jsonl`: what a response asks for, and what a retrying stack makes of it.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod rows;

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use serde_json::Value;
use spillway_tests::vectors::{self, Verdict};
use tower::{BoxError, Layer, ServiceExt, util::BoxCloneService};
use tower_jitter_backoff::{Jitter, JitterBackoffLayer};
use tower_retry_after::RetryAfterLayer;
use tower_spillway_core::{
    Class, Http, Read, Reading,
    clock::Wall,
    hint::{self, Hint, Source},
    testing::{
        script::{Script, Step},
        wall::ManualWall,
    },
};
use tower_spillway_llm::{Vendor, VendorVerdictLayer};

type Body = UnsyncBoxBody<Bytes, BoxError>;
type Res = Response<Body>;

/// What dispositions assume.
const LONGEST_WAIT: Duration = Duration::from_secs(120);

/// The delay of the schedule: no hint is shorter.
const OWN: Duration = Duration::from_millis(1);

#[test]
fn vector_hints() {
    vectors::run("hints.jsonl", |row| match rows::Answer::of(row) {
        Ok(answer) => check(row, &answer).map_or_else(Verdict::Fail, |()| Verdict::Pass),
        Err(why) => Verdict::Fail(why),
    });
}

fn check(row: &Value, answer: &rows::Answer) -> Result<(), String> {
    let expect = &row["expect"];
    let (reading, sends) = rows::paused(observe(row, answer));

    // Where a retry is forbidden the wait stands in the headers alone.
    let asked = match reading.hint() {
        Some(Hint::Never) => hint::read(answer.status, &answer.headers, || answer.now).asked(),
        other => other,
    };
    let wait = asked.and_then(Hint::after);
    let literal = rows::millis(&expect["delay_ms"])?;
    let accepted = expect["accept_ms"].as_array();
    let ours = wait.map(|w| w.as_millis());
    if ours == literal {
        let want = expect["source"].as_str().ok_or("no source")?;
        let source = asked
            .and_then(Hint::source)
            .map_or_else(|| "none".to_owned(), name);
        if source != want {
            return Err(format!("source {source}, not {want}"));
        }
    } else {
        let fits = |other: &Value| match other.as_str() {
            Some("saturated") => wait == Some(Duration::MAX),
            Some(_) => false,
            None => rows::millis(other).is_ok_and(|other| other == ours),
        };
        if !accepted.is_some_and(|all| all.iter().any(fits)) {
            return Err(format!("asks for {ours:?} ms, not {literal:?}"));
        }
    }

    let disposition = match (sends.as_slice(), reading.class()) {
        ([_], Class::Success) => "success",
        ([_], Class::CallerFault | Class::Cancelled) => "fatal",
        ([_], _) => "no_same_target",
        ([first, second], _) if Some(*second - *first) == wait => "wait",
        ([first, second], _) if *second - *first == OWN => "backoff",
        _ => return Err(format!("sent at {sends:?}")),
    };
    // Another accepted answer that there is no hint leaves the target's own schedule.
    let want = match expect["disposition"].as_str().ok_or("no disposition")? {
        "wait" if ours.is_none() && literal.is_some() => "backoff",
        want => want,
    };
    if disposition != want {
        return Err(format!("{disposition}, not {want}"));
    }
    Ok(())
}

/// The signal as the file calls it.
fn name(source: Source) -> String {
    match source {
        Source::RateLimit => "ratelimit t".to_owned(),
        Source::Body(field) | Source::BodyAside(field) => format!("body {field}"),
        other => other.field().unwrap_or(other.as_str()).to_owned(),
    }
}

/// How the answer is read, and when a stack sends that gets it once and then a success.
async fn observe(row: &Value, answer: &rows::Answer) -> (Reading, Vec<Duration>) {
    let http = Http::new().wall_clock(Wall::new(ManualWall::at(answer.now)));
    let first = Step::answer(answer.response());
    let upstream = Script::new([first.clone(), Step::answer(Response::default())]);

    let read = target(row, Script::new([first]), answer.now)
        .oneshot(rows::get())
        .await;
    let reading = http.read(Ok::<&Res, _>(&read.unwrap()));

    let stack = (
        RetryAfterLayer::new()
            .longest_wait(LONGEST_WAIT)
            .jitter(hint::Jitter::None)
            .adapter(http.clone()),
        JitterBackoffLayer::constant(OWN)
            .unwrap()
            .jitter(Jitter::None)
            .adapter(http),
    )
        .layer(target(row, upstream.clone(), answer.now));
    stack.oneshot(rows::get()).await.unwrap();
    (reading, upstream.times())
}

/// The upstream, and in front of it the table that reads the vendor's bodies.
fn target(
    row: &Value,
    upstream: Script<Request<Full<Bytes>>, Response<Full<Bytes>>>,
    now: SystemTime,
) -> BoxCloneService<Request<Full<Bytes>>, Res, BoxError> {
    let vendor = match row["vendor"].as_str() {
        Some("gemini-code-assist") => Some(Vendor::Gemini),
        Some(name) => name.parse().ok(),
        None => None,
    };
    // A vendor without a table is read as a gateway is, by all of them. Without a body the head
    // says all.
    let read_body = !row["body"].is_null();
    match vendor.or(read_body.then_some(Vendor::Gateway)) {
        Some(vendor) => VendorVerdictLayer::new(vendor)
            .wall_clock(Wall::new(ManualWall::at(now)))
            .layer(upstream)
            .map_response(|response| response.map(|body| Body::new(body.map_err(Into::into))))
            .boxed_clone(),
        None => upstream
            .map_response(|response| response.map(|body| Body::new(body.map_err(Into::into))))
            .boxed_clone(),
    }
}
