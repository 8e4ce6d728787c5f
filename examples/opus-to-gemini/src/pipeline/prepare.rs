//! Makes a chat request fit one target: address, key, model, fields, time limits.

use std::{
    mem,
    pin::Pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, Version, header};
use http_body::Body;
use http_body_util::Full;
use tower_spillway_core::{BoxError, attempt_timeout::AttemptLimits};
use tower_spillway_llm::{Fields, StreamLimits, TargetProfile};

use super::{
    address,
    error::{BuildError, NotAChat},
    keyring,
    stack::ChatRequest,
    upstream::Upstream,
};
use crate::config::{Commit, Config, Target};

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
    /// Headers of the target's own, its key among them.
    own: HeaderMap,
    profile: TargetProfile,
    limits: Limits,
}

/// Of an attempt.
#[derive(Clone, Copy)]
struct Limits {
    /// To the last byte of a plain answer, to the head of a stream.
    plain: Option<Duration>,
    head: Option<Duration>,
    stream: StreamLimits,
}

impl Limits {
    fn new(target: &Target, config: &Config) -> Self {
        let limited = config.attempt_timeout.enabled;
        let plain = limited.then_some(target.plain_within);
        let head = limited.then_some(target.streaming_within);
        let total = match config.stream.commit {
            // Held to its end it is waited for like a plain answer.
            Commit::Complete => [plain, config.stream.total].into_iter().flatten().min(),
            _ => config.stream.total,
        };
        let stream = StreamLimits {
            first_content: head,
            idle: Some(config.stream.idle),
            total,
        };
        Self {
            plain,
            head,
            stream,
        }
    }
}

impl Fit {
    /// For an upstream.
    pub(super) fn new(upstream: &Upstream, config: &Config) -> Result<Self, BuildError> {
        Ok(Self {
            uri: address::of(upstream)?,
            own: keyring::headers(upstream)?,
            profile: upstream.takes(),
            limits: Limits::new(&upstream.target, config),
        })
    }

    /// Sets everything in the request.
    pub(super) fn apply(&self, request: &mut ChatRequest) -> Result<(), BoxError> {
        let body = whole(request.body_mut());
        let mut chat = Fields::read(&body).map_err(|_| NotAChat)?;
        self.profile.rewrite(&mut chat).map_err(|_| NotAChat)?;
        let streams = streams(&chat);
        let body = chat.to_bytes();

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
        for (name, value) in &self.own {
            headers.insert(name, value.clone());
        }
        *request.headers_mut() = headers;
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        // The connection decides which version is spoken.
        *request.version_mut() = Version::default();
        *request.body_mut() = Full::new(body);
        let Limits {
            plain,
            head,
            stream,
        } = self.limits;
        request.extensions_mut().insert(AttemptLimits {
            head: if streams { head } else { plain },
            last_byte: None,
        });
        request.extensions_mut().insert(stream);
        Ok(())
    }
}

/// Whether a request asks for a stream.
pub(super) fn wants_stream(request: &mut ChatRequest) -> bool {
    let body = whole(request.body_mut());
    let streams = Fields::read(&body).is_ok_and(|chat| streams(&chat));
    *request.body_mut() = Full::new(body);
    streams
}

fn streams(chat: &Fields<'_>) -> bool {
    chat.get("stream") == Some("true")
}

/// The bytes of a body that has all of them.
pub(super) fn whole(body: &mut Full<Bytes>) -> Bytes {
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
        serde_json::from_slice(&whole(request.body_mut())).unwrap()
    }

    #[test]
    fn address_key_model_and_length_are_the_targets_own() {
        let fit = Fit::new(&Upstream::opus("k-opus"), &Config::default()).unwrap();
        let mut request = request(&json!({"model": "any", "messages": [{"x": 1.5}]}));
        fit.apply(&mut request).unwrap();

        assert_eq!(request.uri().host(), Some("api.anthropic.com"));
        let headers = request.headers();
        assert_eq!(headers["authorization"], "Bearer k-opus");
        assert!(!headers.contains_key("x-internal"));
        assert!(headers.contains_key("traceparent"));
        let length: usize = headers["content-length"].to_str().unwrap().parse().unwrap();
        let body = whole(request.body_mut());
        assert_eq!(body.len(), length);
        assert_eq!(
            std::str::from_utf8(&body).unwrap(),
            r#"{"model":"claude-opus-5","messages":[{"x":1.5}],"max_tokens":8192}"#
        );
        assert!(!format!("{request:?}").contains("k-opus"));
    }

    #[test]
    fn fields_that_a_vendor_rejects_are_left_out() {
        let body = json!({"messages": [], "max_tokens": 99_999, "temperature": 0.2, "seed": 1});
        let mut at_opus = request(&body);
        Fit::new(&Upstream::opus("k"), &Config::default())
            .unwrap()
            .apply(&mut at_opus)
            .unwrap();
        let mut at_gemini = request(&body);
        Fit::new(&Upstream::gemini("k"), &Config::default())
            .unwrap()
            .apply(&mut at_gemini)
            .unwrap();

        // Unknown fields are ignored there.
        let opus =
            json!({"messages": [], "max_tokens": 32_000, "seed": 1, "model": "claude-opus-5"});
        assert_eq!(sent(&mut at_opus), opus);
        let gemini = json!({"messages": [], "max_tokens": 65_536, "temperature": 0.2, "model": "gemini-2.5-pro"});
        assert_eq!(sent(&mut at_gemini), gemini);
    }

    #[test]
    fn streams_have_their_own_limit() {
        let fit = Fit::new(&Upstream::opus("k"), &Config::default()).unwrap();
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
        let fit = Fit::new(&Upstream::opus("k"), &Config::default()).unwrap();
        let mut request = request(&json!("hi"));
        assert!(fit.apply(&mut request).is_err());
    }

    #[test]
    fn a_key_in_the_clear_is_refused() {
        let at =
            |url: &str| Fit::new(&Upstream::opus("k").url(url), &Config::default()).map(|_| ());
        assert!(matches!(
            at("http://example.com/v1"),
            Err(BuildError::Insecure { .. })
        ));
        assert!(matches!(at("example"), Err(BuildError::BadUrl { .. })));
        assert!(at("http://127.0.0.1:8080/v1").is_ok());
        assert!(matches!(
            Fit::new(&Upstream::opus(""), &Config::default()).map(|_| ()),
            Err(BuildError::BadKey { .. })
        ));
    }
}
