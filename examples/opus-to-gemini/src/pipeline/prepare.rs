//! Makes a chat request fit one target: address, key, model, fields, time limits.

use std::{
    collections::BTreeMap,
    mem,
    pin::Pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, Version, header};
use http_body::Body;
use http_body_util::Full;
use serde_json::value::{RawValue, to_raw_value};
use tower_spillway_core::{BoxError, attempt_timeout::AttemptLimits};

use super::{
    error::{BuildError, NotAChat},
    secret,
    stack::ChatRequest,
    upstream::{Fields, Upstream},
};

/// Headers of the caller's that a vendor gets. What else a caller sends to a server that holds the
/// pipeline is not meant for a vendor.
const PASSED_ON: [HeaderName; 7] = [
    header::ACCEPT,
    header::CONTENT_TYPE,
    header::USER_AGENT,
    HeaderName::from_static("idempotency-key"),
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
    HeaderName::from_static("x-call-id"),
];

/// What is set for one target.
pub(super) struct Fit {
    uri: Uri,
    bearer: HeaderValue,
    model: Box<RawValue>,
    fields: Fields,
    plain: Duration,
    head: Duration,
}

impl Fit {
    pub(super) fn new(upstream: &Upstream) -> Result<Self, BuildError> {
        let target = upstream.name.clone();
        let bad_url = || BuildError::BadUrl {
            target: upstream.name.clone(),
            url: upstream.url.clone(),
        };
        let uri: Uri = upstream.url.parse().map_err(|_| bad_url())?;
        match (uri.scheme_str(), uri.host()) {
            (Some("https"), Some(_)) => {}
            (Some("http"), Some("127.0.0.1" | "[::1]" | "localhost")) => {}
            (Some("http"), Some(_)) => {
                let url = upstream.url.clone();
                return Err(BuildError::Insecure { target, url });
            }
            _ => return Err(bad_url()),
        }
        Ok(Self {
            uri,
            bearer: secret::bearer(&upstream.key).ok_or(BuildError::BadKey { target })?,
            model: to_raw_value(&upstream.model).map_err(|_| bad_url())?,
            fields: upstream.fields.clone(),
            plain: upstream.plain_within,
            head: upstream.head_within,
        })
    }

    /// Sets everything in the request.
    pub(super) fn apply(&self, request: &mut ChatRequest) -> Result<(), BoxError> {
        let body = take(request.body_mut());
        let mut fields = fields(&body)?;
        let streams = streams(&fields);
        fields.retain(|name, _| self.fields.keeps(name));
        fields.insert("model".into(), &self.model);
        let body = Bytes::from(serde_json::to_vec(&fields)?);

        let mut headers = HeaderMap::new();
        for name in &PASSED_ON {
            if let Some(value) = request.headers_mut().remove(name) {
                headers.insert(name, value);
            }
        }
        headers
            .entry(header::CONTENT_TYPE)
            .or_insert(HeaderValue::from_static("application/json"));
        headers.insert(header::CONTENT_LENGTH, body.len().into());
        headers.insert(header::AUTHORIZATION, self.bearer.clone());
        *request.headers_mut() = headers;
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        // The connection decides which version is spoken.
        *request.version_mut() = Version::default();
        *request.body_mut() = Full::new(body);
        request.extensions_mut().insert(AttemptLimits {
            head: Some(if streams { self.head } else { self.plain }),
            last_byte: None,
        });
        Ok(())
    }
}

/// The top level of a body. What is inside is not read, and goes on as it came.
type Raw<'b> = BTreeMap<String, &'b RawValue>;

fn fields(body: &[u8]) -> Result<Raw<'_>, NotAChat> {
    serde_json::from_slice(body).map_err(|_| NotAChat)
}

fn streams(fields: &Raw<'_>) -> bool {
    fields.get("stream").is_some_and(|v| v.get() == "true")
}

/// Whether a request asks for a stream.
pub(super) fn wants_stream(request: &mut ChatRequest) -> bool {
    let body = take(request.body_mut());
    let streams = fields(&body).is_ok_and(|fields| streams(&fields));
    *request.body_mut() = Full::new(body);
    streams
}

/// The bytes of a body that has all of them.
fn take(body: &mut Full<Bytes>) -> Bytes {
    let mut body = mem::take(body);
    // A whole body never waits, so nobody needs to be woken.
    let mut cx = Context::from_waker(Waker::noop());
    match Pin::new(&mut body).poll_frame(&mut cx) {
        Poll::Ready(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
        _ => Bytes::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;
    use serde_json::{Value, json};

    fn request(body: &Value) -> ChatRequest {
        let mut request = Request::new(Full::from(body.to_string()));
        let headers = request.headers_mut();
        headers.insert("authorization", "Bearer the-caller's".parse().unwrap());
        headers.insert("content-length", "9999".parse().unwrap());
        headers.insert("x-internal", "not for vendors".parse().unwrap());
        headers.insert("traceparent", "00-1-2-01".parse().unwrap());
        request
    }

    fn sent(request: &mut ChatRequest) -> Value {
        serde_json::from_slice(&take(request.body_mut())).unwrap()
    }

    #[test]
    fn address_key_model_and_length_are_the_targets_own() {
        let fit = Fit::new(&Upstream::opus("k-opus")).unwrap();
        let mut request = request(&json!({"model": "any", "messages": [1.50, "x"]}));
        fit.apply(&mut request).unwrap();

        assert_eq!(request.uri().host(), Some("api.anthropic.com"));
        let headers = request.headers();
        assert_eq!(headers["authorization"], "Bearer k-opus");
        assert!(!headers.contains_key("x-internal"));
        assert!(headers.contains_key("traceparent"));
        let length: usize = headers["content-length"].to_str().unwrap().parse().unwrap();
        let body = take(request.body_mut());
        assert_eq!(body.len(), length);
        assert_eq!(
            std::str::from_utf8(&body).unwrap(),
            r#"{"messages":[1.5,"x"],"model":"claude-opus-5"}"#
        );
        assert!(!format!("{request:?}").contains("k-opus"));
    }

    #[test]
    fn fields_that_a_vendor_rejects_are_left_out() {
        let body = json!({"messages": [], "temperature": 0.2, "frequency_penalty": 1});
        let mut at_opus = request(&body);
        Fit::new(&Upstream::opus("k"))
            .unwrap()
            .apply(&mut at_opus)
            .unwrap();
        let mut at_gemini = request(&body);
        Fit::new(&Upstream::gemini("k"))
            .unwrap()
            .apply(&mut at_gemini)
            .unwrap();

        let names = |v: Value| v.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(
            names(sent(&mut at_opus)),
            ["frequency_penalty", "messages", "model"]
        );
        assert_eq!(
            names(sent(&mut at_gemini)),
            ["messages", "model", "temperature"]
        );
    }

    #[test]
    fn streams_have_their_own_limit() {
        let fit = Fit::new(&Upstream::opus("k")).unwrap();
        let limit = |body: &Value| {
            let mut request = request(body);
            fit.apply(&mut request).unwrap();
            request
                .extensions()
                .get::<AttemptLimits>()
                .unwrap()
                .head
                .unwrap()
        };
        assert_eq!(limit(&json!({"stream": true})), Duration::from_secs(8));
        assert_eq!(limit(&json!({"stream": false})), Duration::from_secs(60));
        assert_eq!(limit(&json!({})), Duration::from_secs(60));
    }

    #[test]
    fn a_body_that_is_no_object_is_an_error() {
        let fit = Fit::new(&Upstream::opus("k")).unwrap();
        let mut request = request(&json!("hi"));
        assert!(fit.apply(&mut request).is_err());
    }

    #[test]
    fn a_key_in_the_clear_is_refused() {
        let at = |url: &str| Fit::new(&Upstream::opus("k").url(url)).map(|_| ());
        assert!(matches!(
            at("http://example.com/v1"),
            Err(BuildError::Insecure { .. })
        ));
        assert!(matches!(at("example"), Err(BuildError::BadUrl { .. })));
        assert!(at("http://127.0.0.1:8080/v1").is_ok());
        assert!(matches!(
            Fit::new(&Upstream::opus("")).map(|_| ()),
            Err(BuildError::BadKey { .. })
        ));
    }
}
