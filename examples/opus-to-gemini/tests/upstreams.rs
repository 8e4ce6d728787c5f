//! What a generic upstream is sent, and what of its answers goes on to the next.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may")]

use std::sync::{Arc, Mutex};

use axum::{Router, body::Body, extract::Request, response::Response};
use http::{HeaderMap, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use opus_to_gemini::{
    config::Config,
    pipeline::{Fleet, Pipeline},
};
use tower::ServiceExt;

/// A server that gives one answer to everything, and what it was sent.
struct Upstream {
    url: String,
    seen: Arc<Mutex<Vec<(Uri, HeaderMap)>>>,
}

async fn upstream(
    status: u16,
    header: (&'static str, &'static str),
    body: &'static str,
) -> Upstream {
    let seen = Arc::<Mutex<Vec<_>>>::default();
    let log = Arc::clone(&seen);
    let app = Router::new().fallback(move |request: Request| async move {
        let (head, body_of) = request.into_parts();
        body_of.collect().await.unwrap();
        log.lock().unwrap().push((head.uri, head.headers));
        Response::builder()
            .status(status)
            .header("content-type", "application/json")
            .header(header.0, header.1)
            .body(Body::from(body))
            .unwrap()
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!(
        "http://{}/v1/chat/completions",
        listener.local_addr().unwrap()
    );
    tokio::spawn(async move { axum::serve(listener, app).await });
    Upstream { url, seen }
}

impl Upstream {
    fn calls(&self) -> usize {
        self.seen.lock().unwrap().len()
    }
}

async fn answering(status: u16, body: &'static str) -> Upstream {
    upstream(status, ("x-from", "test"), body).await
}

const ANSWER: &str = r#"{"choices":[{"finish_reason":"stop","message":{"content":"hi"}}]}"#;

/// Targets `a` and `b` at these addresses, with chains `ab` and `ba`.
fn config(a: &Upstream, b: &Upstream, more: &str) -> Config {
    let target = |name: &str, at: &Upstream, context: u32| {
        let url = &at.url;
        format!("[targets.{name}]\nurl = \"{url}\"\nmodel = \"m\"\ncontext = {context}\n")
    };
    let text = format!(
        "{}{}{more}\n[chains]\ndefault = [\"a\", \"b\"]\n[routes]\nab = \"default\"\n\
         ba = [\"b\", \"a\"]\na = [\"a\"]\n",
        target("a", a, 8_000),
        target("b", b, 200_000),
    );
    Config::from_toml(&text).unwrap()
}

async fn call(
    pipeline: Pipeline,
    request: http::Request<Full<bytes::Bytes>>,
) -> (StatusCode, String) {
    let response = pipeline.oneshot(request).await.unwrap();
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

fn chat() -> http::Request<Full<bytes::Bytes>> {
    http::Request::new(Full::from(r#"{"model":"any","messages":[]}"#))
}

async fn ask(config: &Config, model: &str) -> (StatusCode, String) {
    let fleet = Fleet::new(config, |_| None).unwrap();
    call(fleet.route(model).unwrap(), chat()).await
}

#[tokio::test]
async fn what_is_too_long_goes_to_a_later_target_where_more_fits() {
    const TOO_LONG: &str = r#"{"error":{"code":"context_length_exceeded","type":"invalid_request_error","message":"maximum context length is 8000 tokens"}}"#;
    let small = answering(400, TOO_LONG).await;
    let large = answering(200, ANSWER).await;
    let config = config(&small, &large, "");
    let fleet = Fleet::new(&config, |_| None).unwrap();
    let ask = async |model: &str| call(fleet.route(model).unwrap(), chat()).await;
    assert_eq!(ask("ab").await, (StatusCode::OK, ANSWER.to_owned()));
    // The same target, in a chain where nobody takes more.
    assert_eq!(
        ask("a").await,
        (StatusCode::BAD_REQUEST, TOO_LONG.to_owned())
    );
    assert_eq!((small.calls(), large.calls()), (2, 1));
}

#[tokio::test]
async fn refusals_come_back_as_they_are_unless_the_file_says_otherwise() {
    const FILTERED: &str = r#"{"error":{"code":"content_filter","type":"invalid_request_error","message":"The response was filtered"}}"#;
    const EMPTY: &str =
        r#"{"choices":[{"finish_reason":"content_filter","message":{"content":""}}]}"#;
    for (status, refusal) in [(400, FILTERED), (200, EMPTY)] {
        let refusing = answering(status, refusal).await;
        let other = answering(200, ANSWER).await;
        let as_it_is = (StatusCode::from_u16(status).unwrap(), refusal.to_owned());
        let kept = config(&refusing, &other, "");
        assert_eq!(ask(&kept, "ab").await, as_it_is);
        assert_eq!(other.calls(), 0);

        let next = config(&refusing, &other, "[failover]\nrefusals = \"next\"");
        assert_eq!(ask(&next, "ab").await, (StatusCode::OK, ANSWER.to_owned()));
        assert_eq!(other.calls(), 1);
        // Nobody is left to ask.
        assert_eq!(ask(&next, "a").await, as_it_is);
    }
}

#[tokio::test]
async fn a_target_gets_its_own_credentials_and_none_of_the_callers() {
    let azure = answering(200, ANSWER).await;
    let text = format!(
        r#"
        [targets.azure]
        vendor = "azure-openai"
        url = "{}"
        model = "gpt"
        key_env = "AZURE"
        auth_header = "api-key"
        auth_scheme = ""
        query = {{ api-version = "2024-10-21" }}
        headers = {{ x-team = "search", x-pass = {{ env = "PASS" }} }}
        [chains]
        default = ["azure"]
        "#,
        azure.url
    );
    let config = Config::from_toml(&text).unwrap();
    let fleet = Fleet::new(&config, |name| Some(format!("of-{name}").into())).unwrap();
    let pipeline = fleet.route("gpt").unwrap();
    let mut request = chat();
    for name in [
        "authorization",
        "proxy-authorization",
        "cookie",
        "api-key",
        "x-api-key",
        "x-goog-api-key",
        "connection",
        "keep-alive",
        "te",
        "transfer-encoding",
        "upgrade",
        "x-forwarded-for",
        "x-pass",
    ] {
        request
            .headers_mut()
            .insert(name, "the-caller's".parse().unwrap());
    }
    request
        .headers_mut()
        .insert("traceparent", "00-1-2-01".parse().unwrap());
    assert_eq!(call(pipeline.clone(), request).await.0, StatusCode::OK);
    let (uri, headers) = azure.seen.lock().unwrap()[0].clone();
    assert_eq!(
        uri.to_string(),
        "/v1/chat/completions?api-version=2024-10-21"
    );
    assert_eq!(headers["api-key"], "of-AZURE");
    assert_eq!(
        (&headers["x-team"], &headers["x-pass"]),
        (&"search".parse().unwrap(), &"of-PASS".parse().unwrap())
    );
    assert_eq!(headers["traceparent"], "00-1-2-01");
    assert!(
        headers.values().all(|value| value != "the-caller's"),
        "{headers:?}"
    );
    assert_eq!(pipeline.blot("of-AZURE and of-PASS"), "[key] and [key]");
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let moved = upstream(307, ("location", "/elsewhere"), "{}").await;
    let text = format!(
        "[targets.a]\nurl = \"{}\"\nmodel = \"m\"\n[chains]\ndefault = [\"a\"]",
        moved.url
    );
    let (status, _) = ask(&Config::from_toml(&text).unwrap(), "m").await;
    assert_eq!(status, StatusCode::TEMPORARY_REDIRECT);
    assert_eq!(moved.calls(), 1);
}
