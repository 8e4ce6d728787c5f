//! Responses written down in rows.
#![allow(dead_code, reason = "each test file uses its part")]

use std::{
    future::Future,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use serde_json::Value;

/// A response and when it came.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) now: SystemTime,
}

impl Answer {
    /// Of `status`, `headers` (an object, or a list of pairs; an array as value is a repeated
    /// field), `body` and `now` or `now_unix_s`.
    pub(crate) fn of(row: &Value) -> Result<Self, String> {
        let status = match &row["status"] {
            Value::Null => 429,
            status => status.as_u64().ok_or("the status is no number")?,
        };
        let mut headers = HeaderMap::new();
        // Below 100 it is a code of gRPC.
        let status = if status < 100 {
            headers.insert("grpc-status", status.into());
            200
        } else {
            status
        };
        let pairs: Vec<(&str, &Value)> = match &row["headers"] {
            Value::Object(fields) => fields.iter().map(|(k, v)| (k.as_str(), v)).collect(),
            Value::Array(pairs) => pairs
                .iter()
                .map(|pair| Some((pair.get(0)?.as_str()?, pair.get(1)?)))
                .collect::<Option<_>>()
                .ok_or("a header is no pair")?,
            _ => return Err("no headers".to_owned()),
        };
        for (name, value) in pairs {
            let lines = match value {
                Value::Array(lines) => lines.iter().collect(),
                one => vec![one],
            };
            for line in lines {
                let line = line.as_str().ok_or("a header value is no text")?;
                let name = HeaderName::from_bytes(name.as_bytes()).map_err(|e| e.to_string())?;
                headers.append(name, value_of(line)?);
            }
        }
        let body = match &row["body"] {
            Value::Null => Bytes::new(),
            Value::String(raw) => Bytes::from(raw.clone()),
            json => Bytes::from(json.to_string()),
        };
        let status = u16::try_from(status).map_err(|e| e.to_string())?;
        Ok(Self {
            status: StatusCode::from_u16(status).map_err(|e| e.to_string())?,
            headers,
            body,
            now: now(row)?,
        })
    }

    pub(crate) fn response(&self) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::new(self.body.clone()));
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers.clone();
        response
    }
}

/// A character of Latin-1 beyond ASCII stands for its byte.
fn value_of(line: &str) -> Result<HeaderValue, String> {
    let bytes: Result<Vec<u8>, _> = line.chars().map(u8::try_from).collect();
    let bytes = bytes.map_err(|e| e.to_string())?;
    HeaderValue::from_bytes(&bytes).map_err(|e| e.to_string())
}

fn now(row: &Value) -> Result<SystemTime, String> {
    if let Some(seconds) = row["now_unix_s"].as_u64() {
        return Ok(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
    }
    let text = row["now"].as_str().ok_or("no time")?;
    date(text).ok_or_else(|| format!("no date: {text}"))
}

/// RFC 3339 or an HTTP date.
pub(crate) fn date(text: &str) -> Option<SystemTime> {
    let rfc3339 = || text.parse::<jiff::Timestamp>().ok();
    let http = || Some(jiff::fmt::rfc2822::parse(text).ok()?.timestamp());
    let since_1970 = rfc3339().or_else(http)?.as_nanosecond();
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_nanos(since_1970.try_into().ok()?))
}

/// A number of milliseconds, or null.
pub(crate) fn millis(value: &Value) -> Result<Option<u128>, String> {
    match value {
        Value::Null => Ok(None),
        value => value
            .as_u64()
            .map(|ms| Some(ms.into()))
            .ok_or_else(|| format!("no milliseconds: {value}")),
    }
}

pub(crate) fn get() -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::default());
    *request.uri_mut() = http::Uri::from_static("/");
    request
}

/// Runs a future under paused time.
pub(crate) fn paused<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(future)
}
