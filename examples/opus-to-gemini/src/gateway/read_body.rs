//! Reads the body of a request: so much, and in so much time.

use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode, header};
use http_body::Body as _;
use http_body_util::BodyExt;
use tokio::time::timeout;

use super::error::ApiError;

/// How long a client that sends too much is listened to.
const LINGER: Duration = Duration::from_secs(2);

/// The limits of a request's body.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) most: u64,
    pub(super) within: Duration,
}

/// The whole body.
pub(super) async fn read(
    headers: &HeaderMap,
    body: Body,
    bounds: Bounds,
) -> Result<Bytes, ApiError> {
    if is_encoded(headers) {
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        let message = "The body is compressed, and this gateway reads plain JSON only.";
        return Err(ApiError::invalid(status, "unsupported_encoding", message));
    }
    if body.size_hint().lower() > bounds.most {
        // It says so before it sends anything; one that asks first is not told to go on.
        if !headers.contains_key(header::EXPECT) {
            timeout(LINGER, discard(body, bounds.most)).await.ok();
        }
        return Err(too_large(bounds.most));
    }
    match timeout(bounds.within, collect(body, bounds.most)).await {
        Ok(read) => read,
        Err(_) => {
            let millis = bounds.within.as_millis();
            let message = format!("The body of the request did not come within {millis} ms.");
            let status = StatusCode::REQUEST_TIMEOUT;
            Err(ApiError::invalid(status, "request_timeout", message))
        }
    }
}

fn is_encoded(headers: &HeaderMap) -> bool {
    let encoding = headers.get(header::CONTENT_ENCODING);
    encoding.is_some_and(|e| !e.is_empty() && !e.as_bytes().eq_ignore_ascii_case(b"identity"))
}

async fn collect(mut body: Body, most: u64) -> Result<Bytes, ApiError> {
    let fits = |length: usize| u64::try_from(length).is_ok_and(|length| length <= most);
    let mut read = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| {
            let message = "The request broke off before its end.";
            ApiError::invalid(StatusCode::BAD_REQUEST, "incomplete_request", message)
        })?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if !fits(read.len().saturating_add(data.len())) {
            drop(read);
            timeout(LINGER, discard(body, most)).await.ok();
            return Err(too_large(most));
        }
        if read.is_empty() && body.is_end_stream() {
            return Ok(data);
        }
        read.extend_from_slice(&data);
    }
    Ok(read.freeze())
}

fn too_large(most: u64) -> ApiError {
    let message = format!("The body of the request is longer than {most} bytes.");
    let status = StatusCode::PAYLOAD_TOO_LARGE;
    ApiError::invalid(status, "request_too_large", message)
}

/// Reads on for a while: a client that is still sending when the connection closes never sees the
/// answer.
async fn discard(mut body: Body, most: u64) {
    let mut left = most.saturating_mul(4).max(1 << 20);
    while let Some(Ok(frame)) = body.frame().await {
        let length = frame.data_ref().map_or(0, Bytes::len);
        left = left.saturating_sub(u64::try_from(length).unwrap_or(u64::MAX));
        if left == 0 {
            return;
        }
    }
}
