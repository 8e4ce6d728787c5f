//! What must hold for any response head.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use tower_spillway_core::{
    Class, Http, Read,
    clock::{Wall, WallClock},
    hint::{self, Hint, Source},
};

/// An autumn day in 2026.
struct Noon;

impl WallClock for Noon {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_510_400)
    }
}

/// Reads `input`, a line with the status and then one field a line, and panics if what is read
/// cannot be.
pub fn check(input: &[u8]) {
    let mut lines = input.split(|b| *b == b'\n');
    let status = lines
        .next()
        .and_then(|line| StatusCode::from_bytes(line).ok())
        .unwrap_or(StatusCode::TOO_MANY_REQUESTS);
    let headers: HeaderMap = lines.filter_map(field).collect();

    let signals = hint::read(status, &headers, || Noon.now());
    assert_eq!(signals, hint::read(status, &headers, || Noon.now()), "pure");
    assert!(!(signals.forbids() && signals.invites()));
    assert_eq!(signals.hint() == Some(Hint::Never), signals.forbids());

    let on_success = hint::on_success(&headers);
    let pushback = hint::grpc_pushback(&headers);
    for hint in [signals.asked(), on_success, pushback]
        .into_iter()
        .flatten()
    {
        whole_millis(hint);
    }
    if let Some(Hint::After { source, .. }) = on_success {
        assert_eq!(source, Source::RateLimit);
    }
    never_early(&headers, signals.asked());

    let mut response = Response::new(String::new());
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    let reading = Http::new().wall_clock(Wall::new(Noon)).read(Ok(&response));
    if reading.class() == Class::Success && status.is_success() {
        assert_eq!(reading.hint(), None, "a success is a success");
    }
    if !status.is_success() {
        assert_eq!(reading.hint(), signals.hint());
    }
}

fn field(line: &[u8]) -> Option<(HeaderName, HeaderValue)> {
    let colon = line.iter().position(|b| *b == b':')?;
    let (name, value) = line.split_at_checked(colon)?;
    let name = HeaderName::from_bytes(name).ok()?;
    Some((name, HeaderValue::from_bytes(value.get(1..)?).ok()?))
}

fn whole_millis(hint: Hint) {
    if let Some(wait) = hint.after() {
        assert!(wait == Duration::MAX || wait.subsec_nanos().is_multiple_of(1_000_000));
    }
}

/// A plain number of seconds in the one field that counts is waited out, read in another way.
fn never_early(headers: &HeaderMap, asked: Option<Hint>) {
    let Some(Hint::After { wait, source }) = asked else {
        return;
    };
    if source != Source::RetryAfterSeconds {
        return;
    }
    let least = headers
        .get_all("retry-after")
        .iter()
        .filter_map(|value| value.to_str().ok()?.trim().parse::<f64>().ok())
        .filter(|seconds| *seconds >= 0.0)
        .fold(f64::INFINITY, f64::min);
    assert!(
        wait == Duration::MAX || wait.as_secs_f64() >= least * (1.0 - 1e-12),
        "{wait:?} is less than {least} s"
    );
}
