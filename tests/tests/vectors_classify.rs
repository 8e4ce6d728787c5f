//! What vendors' answers mean, row by row, through the layer.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may"
)]

use std::{str::FromStr, time::Duration};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use spillway_tests::vectors::{self, Verdict};
use tower::{ServiceExt, service_fn};
use tower_layer::Layer;
use tower_spillway_core::{
    BoxError, Class, Http, Ledger, Read, Reading, Refusal, Refused, TimeLimit, TimedOut,
    call::CallLayer, hint::Hint,
};
use tower_spillway_llm::{PeekedBody, Rules, Vendor, VendorVerdictLayer};

/// The longest wait that the rows assume.
const LONGEST: Duration = Duration::from_secs(120);

/// Whose table reads a row. A vendor without a table of its own is read as a gateway is: by all.
fn vendor(row: &Value) -> Vendor {
    let name = row["vendor"].as_str().unwrap_or_default();
    match name {
        "gemini-code-assist" => Vendor::Gemini,
        "azure" => Vendor::Azure,
        name => Vendor::from_str(name).unwrap_or(Vendor::Gateway),
    }
}

fn response(row: &Value) -> Option<Response<Full<Bytes>>> {
    let body = match &row["body"] {
        Value::Null => Bytes::new(),
        Value::String(raw) => Bytes::from(raw.clone()),
        json => Bytes::from(json.to_string()),
    };
    let mut response = Response::new(Full::new(body));
    let status = u16::try_from(row["status"].as_u64()?).ok()?;
    *response.status_mut() = status.try_into().ok()?;
    for (name, value) in row["headers"].as_object()? {
        let name = HeaderName::from_str(name).ok()?;
        let lines = match value {
            Value::Array(lines) => lines.clone(),
            line => vec![line.clone()],
        };
        for line in lines {
            let value = HeaderValue::from_str(line.as_str()?).ok()?;
            response.headers_mut().append(name.clone(), value);
        }
    }
    Some(response)
}

/// What the layers outside of the verdict read, and the body that they get.
async fn read(answer: Response<Full<Bytes>>, layer: VendorVerdictLayer) -> (Reading, Bytes) {
    let client = layer.layer(service_fn(move |_: Request<()>| {
        let answer = answer.clone();
        async move { Ok::<_, BoxError>(answer) }
    }));
    let response: Response<PeekedBody<_>> = client.oneshot(Request::new(())).await.unwrap();
    let reading = Http::new().read(Ok(&response));
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (reading, body)
}

/// The outcome of a call that got no response at all.
async fn without_response(transport: &str) -> Class {
    let layer = VendorVerdictLayer::new(Vendor::Gateway);
    let fails = |error: fn() -> BoxError| {
        service_fn(move |_: Request<()>| async move { Err::<Response<Full<Bytes>>, _>(error()) })
    };
    let error = match transport {
        "timeout" => layer
            .layer(fails(|| TimedOut::new(TimeLimit::Head, LONGEST).into()))
            .oneshot(Request::new(()))
            .await
            .unwrap_err(),
        "refused" | "connect" => layer
            .layer(fails(|| {
                std::io::Error::from(std::io::ErrorKind::ConnectionRefused).into()
            }))
            .oneshot(Request::new(()))
            .await
            .unwrap_err(),
        "breaker_open" => layer
            .layer(fails(|| Refused::new(Refusal::Open).into()))
            .oneshot(Request::new(()))
            .await
            .unwrap_err(),
        "caller_cancelled" => return cancelled(&layer).await,
        // Resets, broken streams, names that do not resolve, TLS.
        _ => layer
            .layer(fails(|| {
                std::io::Error::from(std::io::ErrorKind::ConnectionReset).into()
            }))
            .oneshot(Request::new(()))
            .await
            .unwrap_err(),
    };
    Read::<Response<Full<Bytes>>>::read(&Http::new(), Err(&*error)).class()
}

async fn cancelled(layer: &VendorVerdictLayer) -> Class {
    let hangs = service_fn(|_: Request<()>| {
        std::future::pending::<Result<Response<Full<Bytes>>, BoxError>>()
    });
    let client = CallLayer::new().layer(layer.layer(hangs));
    let ledger = Ledger::new();
    let mut request = Request::new(());
    request.extensions_mut().insert(ledger.clone());
    let call = client.oneshot(request);
    assert!(tokio::time::timeout(LONGEST, call).await.is_err());
    ledger.report().attempts[0].class
}

fn word(class: Class, hint: Option<Hint>) -> &'static str {
    let here = match hint {
        Some(Hint::Never) => false,
        Some(hint) => hint.after().is_none_or(|wait| wait <= LONGEST),
        None => true,
    };
    match class {
        Class::Success => "success",
        Class::Throttled | Class::Transient if here => "retry",
        Class::Throttled | Class::Transient | Class::TargetDown | Class::NotHere => "failover",
        Class::CallerFault | Class::Cancelled => "fatal",
        other => panic!("no word for {other}"),
    }
}

fn run<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(future)
}

fn classify(row: &Value, vendor: Vendor) -> Verdict {
    let Some(wanted) = row["expect"].as_str() else {
        return Verdict::Fail("no expectation".into());
    };
    let found = if row["status"].is_null() {
        let class = run(without_response(
            row["transport"].as_str().unwrap_or_default(),
        ));
        word(class, None)
    } else {
        let Some(answer) = response(row) else {
            return Verdict::Fail("not a response".into());
        };
        let given = run(answer.clone().into_body().collect())
            .unwrap()
            .to_bytes();
        let rules = Rules::of(vendor).larger_context_elsewhere(true);
        let (reading, body) = run(read(answer, VendorVerdictLayer::with_rules(rules)));
        if body != given {
            return Verdict::Fail("the body changed".into());
        }
        word(reading.class(), reading.hint())
    };
    match found == wanted {
        true => Verdict::Pass,
        false => Verdict::Fail(format!("{wanted} wanted, {found} found")),
    }
}

#[test]
fn vector_classify() {
    vectors::run("classify.jsonl", |row| classify(row, vendor(row)));
}

/// With one table for all vendors, as behind a gateway: where a vendor's own table decides, so does
/// this one.
#[test]
fn vector_classify_through_a_gateway() {
    vectors::run("classify.jsonl", |row| classify(row, Vendor::Gateway));
}
