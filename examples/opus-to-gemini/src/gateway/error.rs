//! Errors in OpenAI's shape.

use std::{borrow::Cow, time::Duration};

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};

use super::headers;

/// An answer that is an error: what an SDK makes its exceptions of.
// In a box: it is the rare half of many results.
#[derive(Clone, Debug)]
pub(super) struct ApiError(Box<Told>);

#[derive(Clone, Debug)]
struct Told {
    status: StatusCode,
    /// `error.type`.
    kind: &'static str,
    /// `error.code`.
    code: &'static str,
    message: Cow<'static, str>,
    param: Option<&'static str>,
    retry_after: Option<Duration>,
    again: bool,
    /// What was tried, if anything was.
    tried: Option<Value>,
}

impl ApiError {
    fn new(
        status: StatusCode,
        kind: &'static str,
        code: &'static str,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self(Box::new(Told {
            status,
            kind,
            code,
            message: message.into(),
            param: None,
            retry_after: None,
            again: false,
            tried: None,
        }))
    }

    pub(super) fn status(&self) -> StatusCode {
        self.0.status
    }

    /// `error.code`.
    pub(super) fn code(&self) -> &'static str {
        self.0.code
    }

    /// 400, or another status that says that the request itself is wrong.
    pub(super) fn invalid(
        status: StatusCode,
        code: &'static str,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::new(status, "invalid_request_error", code, message)
    }

    /// 401.
    pub(super) fn unauthorized() -> Self {
        let message = "This gateway asks for a key: Authorization: Bearer KEY.";
        Self::new(
            StatusCode::UNAUTHORIZED,
            "authentication_error",
            "invalid_api_key",
            message,
        )
    }

    /// 429: more calls than the gateway takes. Nothing was sent anywhere.
    pub(super) fn busy(message: impl Into<Cow<'static, str>>) -> Self {
        let status = StatusCode::TOO_MANY_REQUESTS;
        Self::new(status, "rate_limit_error", "gateway_busy", message)
    }

    /// Nobody could serve.
    pub(super) fn out(
        status: StatusCode,
        code: &'static str,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::new(status, "server_error", code, message)
    }

    /// The field that is wrong.
    pub(super) fn param(mut self, name: &'static str) -> Self {
        self.0.param = Some(name);
        self
    }

    /// When to come back.
    pub(super) fn retry_after(mut self, wait: Duration) -> Self {
        self.0.retry_after = Some(wait);
        self
    }

    /// An SDK may send it again by itself.
    pub(super) fn again(mut self) -> Self {
        self.0.again = true;
        self
    }

    pub(super) fn tried(mut self, attempts: Value) -> Self {
        self.0.tried = Some(attempts);
        self
    }
}

impl Told {
    fn body(&self) -> Vec<u8> {
        let mut error = json!({
            "message": self.message,
            "type": self.kind,
            "param": self.param,
            "code": self.code,
        });
        if let (Some(error), Some(tried)) = (error.as_object_mut(), &self.tried) {
            error.insert("tried".to_owned(), tried.clone());
        }
        json!({ "error": error }).to_string().into_bytes()
    }
}

/// Whole seconds, rounded up: `Retry-After` knows nothing finer.
fn seconds(wait: Duration) -> u64 {
    let part = u64::from(wait.subsec_nanos() > 0);
    wait.as_secs().saturating_add(part).max(1)
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let told = self.0;
        let mut response = Response::new(Body::from(told.body()));
        *response.status_mut() = told.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, headers::JSON);
        headers.insert(headers::SHOULD_RETRY, headers::yes_or_no(told.again));
        if let Some(wait) = told.retry_after {
            headers.insert(header::RETRY_AFTER, seconds(wait).into());
        }
        if told.status == StatusCode::UNAUTHORIZED {
            let bearer = HeaderValue::from_static("Bearer");
            headers.insert(header::WWW_AUTHENTICATE, bearer);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_whole_seconds_rounded_up() {
        for (millis, secs) in [(0, 1), (1, 1), (1000, 1), (1001, 2), (29_999, 30)] {
            assert_eq!(seconds(Duration::from_millis(millis)), secs, "{millis} ms");
        }
        assert_eq!(seconds(Duration::MAX), u64::MAX);
    }
}
