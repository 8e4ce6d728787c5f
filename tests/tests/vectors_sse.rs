//! Streams of vendors, row by row, through the guard over the vendor's verdict.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may"
)]

mod streams;

use std::{str::FromStr, time::Duration};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response};
use serde_json::Value;
use spillway_tests::vectors::{self, Verdict};
use streams::{Do, Got, Told};
use tower::{ServiceBuilder, ServiceExt, service_fn};
use tower_spillway_core::{BoxError, Class, Ledger, call::CallLayer, hint::Hint};
use tower_spillway_llm::{
    Commit, Dialect, Rules, StreamGuardLayer, StreamLimits, Vendor, VendorVerdictLayer,
};

/// The longest wait that the rows assume.
const LONGEST: Duration = Duration::from_secs(120);

fn vendor(row: &Value) -> Vendor {
    let name = row["vendor"].as_str().unwrap_or_default();
    match name {
        "azure" => Vendor::Azure,
        name => Vendor::from_str(name).unwrap_or(Vendor::Gateway),
    }
}

fn millis(value: &Value) -> Option<Duration> {
    value.as_u64().map(Duration::from_millis)
}

/// What the row's stream does, in frames of this size where the row does not say.
fn steps(row: &Value, size: usize) -> Result<Vec<Do>, String> {
    let size = row["frame_bytes"].as_u64().map_or(size, |n| n as usize);
    let cut = |text: &str| {
        let frames = text.as_bytes().chunks(size.max(1));
        frames
            .map(|frame| Do::Send(Bytes::copy_from_slice(frame)))
            .collect::<Vec<_>>()
    };
    let mut steps = Vec::new();
    match row["timeline"].as_array() {
        Some(timeline) => {
            for entry in timeline {
                let at = millis(&entry[0]).ok_or("a time that is none")?;
                let text = entry[1].as_str().ok_or("an entry without text")?;
                steps.push(Do::At(at));
                steps.extend(cut(text));
            }
        }
        None => {
            let raw = row["raw"].as_str().ok_or("no text")?;
            let times = row["repeat"].as_u64().unwrap_or(1) as usize;
            steps.extend(cut(&raw.repeat(times)));
        }
    }
    match row["end"].as_str() {
        Some("eof") => {}
        Some("reset") => steps.push(Do::Reset),
        Some("stall") => steps.push(Do::Stall),
        end => return Err(format!("an end of {end:?}")),
    }
    Ok(steps)
}

fn limits(row: &Value) -> Result<StreamLimits, String> {
    let mut limits = StreamLimits::default();
    for (name, value) in row["limits"].as_object().into_iter().flatten() {
        let value = millis(value).ok_or("a limit that is no time")?;
        match name.as_str() {
            "ttft_ms" | "first_content_ms" => limits.first_content = Some(value),
            "idle_ms" => limits.idle = Some(value),
            "total_ms" => limits.total = Some(value),
            other => return Err(format!("a limit of {other}")),
        }
    }
    Ok(limits)
}

/// What a row comes to, and whether there was content.
async fn run_row(row: &Value, size: usize, commit: Commit) -> Result<(Got, bool), String> {
    let steps = steps(row, size)?;
    let status = row["status"].as_u64().and_then(|s| u16::try_from(s).ok());
    let status = status.ok_or("no status")?;
    let mut headers = Vec::new();
    for (name, value) in row["headers"].as_object().ok_or("no headers")? {
        let name = HeaderName::from_str(name).map_err(|e| e.to_string())?;
        let value = HeaderValue::from_str(value.as_str().ok_or("a header that is no text")?);
        headers.push((name, value.map_err(|e| e.to_string())?));
    }
    let upstream = service_fn(move |_: Request<()>| {
        let mut response = Response::new(Told::new(steps.clone()));
        *response.status_mut() = status.try_into().unwrap();
        response.headers_mut().extend(headers.clone());
        async move { Ok::<_, BoxError>(response) }
    });
    let vendor = vendor(row);
    let rules = || Rules::of(vendor).larger_context_elsewhere(true);
    let guard = StreamGuardLayer::with_rules(rules())
        .dialect(Dialect::of(vendor))
        .commit(commit);
    let client = ServiceBuilder::new()
        .layer(CallLayer::new())
        .layer(guard)
        .layer(VendorVerdictLayer::with_rules(rules()))
        .service(upstream);
    let ledger = Ledger::new();
    let mut request = Request::new(());
    request.extensions_mut().insert(ledger.clone());
    request.extensions_mut().insert(limits(row)?);
    let out = client.oneshot(request).await;
    let got = Got::of(out).await;
    Ok((got, ledger.report().first_content.is_some()))
}

/// The action, and the class of what never began.
fn word(got: &Got) -> (&'static str, &'static str) {
    let here = match got.reading.hint() {
        Some(Hint::Never) => false,
        Some(hint) => hint.after().is_none_or(|wait| wait <= LONGEST),
        None => true,
    };
    match got.reading.class() {
        Class::Success if got.is_whole() => ("pass", "success"),
        Class::Success if got.is_broken_in_sight() => ("surface_error", "success"),
        Class::Throttled | Class::Transient if here => ("failover", "retry"),
        Class::Throttled | Class::Transient | Class::TargetDown | Class::NotHere => {
            ("failover", "failover")
        }
        Class::CallerFault | Class::Cancelled => ("fatal", "fatal"),
        other => panic!("no word for {other}: {got:?}"),
    }
}

fn raw(row: &Value) -> String {
    match row["timeline"].as_array() {
        Some(timeline) => timeline.iter().filter_map(|e| e[1].as_str()).collect(),
        None => row["raw"].as_str().unwrap_or_default().to_owned(),
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(future)
}

/// Whole, byte by byte, and cut oddly.
fn sizes(row: &Value) -> &'static [usize] {
    match row["repeat"].is_null() {
        true => &[usize::MAX, 1, 7],
        false => &[64 * 1024],
    }
}

fn given_with_first_content(row: &Value) -> Verdict {
    let expect = &row["expect"];
    for size in sizes(row) {
        let (got, content) = match block_on(run_row(row, *size, Commit::FirstContent)) {
            Ok(got) => got,
            Err(why) => return Verdict::Fail(why),
        };
        let (action, class) = word(&got);
        if expect["action"] != action {
            let wanted = &expect["action"];
            return Verdict::Fail(format!("{wanted} wanted, {action} found: {got:?}"));
        }
        if expect.get("class").is_some_and(|wanted| wanted != class) {
            return Verdict::Fail(format!("{} wanted, {class} found", expect["class"]));
        }
        if expect
            .get("content_seen")
            .is_some_and(|wanted| wanted != content)
        {
            return Verdict::Fail(format!("content seen: {content}"));
        }
        let raw = raw(row);
        if action == "pass" && got.body != raw {
            return Verdict::Fail(format!("not verbatim: {:?}", got.body));
        }
        if action == "surface_error" {
            let common = got
                .body
                .bytes()
                .zip(raw.bytes())
                .take_while(|(a, b)| a == b);
            let given = &got.body[..common.count()];
            let rest = &got.body[given.len()..];
            if streams::errors(given) == 0 && streams::errors(&got.body) != 1 {
                return Verdict::Fail(format!("not verbatim up to the error: {rest:?}"));
            }
        }
        let first = expect["first_content"].as_str();
        if first.is_some_and(|first| !got.body.contains(first)) {
            return Verdict::Fail(format!("{first:?} is missing"));
        }
    }
    Verdict::Pass
}

/// Nothing is given out before all is there: what would end in an error event is a failure that can
/// still go elsewhere.
fn given_when_complete(row: &Value) -> Verdict {
    let wanted = match row["expect"]["action"].as_str() {
        Some("surface_error") => "failover",
        Some(action) => action,
        None => return Verdict::Fail("no expectation".into()),
    };
    for size in sizes(row) {
        let (got, _) = match block_on(run_row(row, *size, Commit::Complete)) {
            Ok(got) => got,
            Err(why) => return Verdict::Fail(why),
        };
        let (action, _) = word(&got);
        if action != wanted {
            return Verdict::Fail(format!("{wanted} wanted, {action} found: {got:?}"));
        }
        if action == "pass" && got.body != raw(row) {
            return Verdict::Fail(format!("not verbatim: {:?}", got.body));
        }
    }
    Verdict::Pass
}

#[test]
fn vector_sse() {
    vectors::run("sse.jsonl", given_with_first_content);
}

#[test]
fn vector_sse_when_complete() {
    vectors::run("sse.jsonl", given_when_complete);
}
