//! One warning says what a person must do. In a process of their own: an event that other tests met
//! first, without a subscriber, may be switched off for good.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may")]

use std::sync::{Arc, Mutex};

use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use tower::{Service, ServiceExt, service_fn};
use tower_layer::Layer;
use tower_spillway_core::BoxError;
use tower_spillway_llm::{StreamGuardLayer, Vendor, VendorVerdictLayer};
use tracing::{Event, Metadata, Subscriber, field::Visit, span};

type Body = Full<bytes::Bytes>;

/// Keeps the text of all events.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<String>>>);

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        self.0.push_str(&format!("{field}={value:?} "));
    }
}

impl Subscriber for Events {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut text = Text(event.metadata().level().to_string() + " ");
        event.record(&mut text);
        self.0.lock().unwrap().push(text.0);
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[tokio::test]
async fn once_until_it_works_again() {
    let events = Events::default();
    let _guard = tracing::subscriber::set_default(events.clone());
    let key = (
        401,
        r#"{"error":{"code":"invalid_api_key","message":"Incorrect API key sk-secret"}}"#,
    );
    let credit = (429, r#"{"error":{"type":"insufficient_quota"}}"#);
    let well = (200, r#"{"choices":[{}]}"#);
    let service = service_fn(|request: Request<(u16, &'static str)>| async move {
        let (status, body) = request.into_body();
        let answer = Response::builder().status(status);
        answer.body(Body::from(body)).map_err(BoxError::from)
    });
    let mut service = VendorVerdictLayer::new(Vendor::OpenAi).layer(service);
    let warned = |wanted: usize| assert_eq!(events.0.lock().unwrap().len(), wanted);

    for (answer, after) in [
        (key, 1),
        (key, 1),
        (credit, 2),
        (key, 2),
        (well, 2),
        (key, 3),
        (key, 3),
    ] {
        let call = service.ready().await.unwrap().call(Request::new(answer));
        call.await.unwrap();
        warned(after);
    }
    let first = events.0.lock().unwrap()[0].clone();
    assert!(first.starts_with("WARN"), "{first}");
    assert!(
        first.contains("check the API key of this target"),
        "{first}"
    );
    assert!(
        first.contains("401") && first.contains("invalid_api_key"),
        "{first}"
    );
    assert!(!first.contains("sk-secret"), "neither body nor key");
    assert!(events.0.lock().unwrap()[1].contains("add credit"));
}

#[tokio::test]
async fn once_of_what_streams_say_until_one_is_whole() {
    let events = Events::default();
    let _guard = tracing::subscriber::set_default(events.clone());
    let broke = "data: {\"error\":{\"code\":\"invalid_api_key\",\"message\":\"sk-secret\"}}\n\n";
    let late = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n\
                data: {\"error\":{\"code\":\"invalid_api_key\",\"message\":\"sk-secret\"}}\n\n";
    let whole = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\n\
                 data: [DONE]\n\n";
    let plain = r#"{"choices":[{}]}"#;
    let service = service_fn(|request: Request<&'static str>| async move {
        let body = request.into_body();
        let kind = match body.starts_with('{') {
            true => "application/json",
            false => "text/event-stream",
        };
        let answer = Response::builder().header("content-type", kind);
        answer.body(Body::from(body)).map_err(BoxError::from)
    });
    let mut service = StreamGuardLayer::new(Vendor::OpenAi).layer(service);
    let warned = || {
        let events = events.0.lock().unwrap();
        let of_a_person = events.iter().filter(|e| e.contains("until somebody acts"));
        of_a_person.count()
    };

    for (answer, after) in [
        (broke, 1),
        (broke, 1),
        // A part of an answer is no proof that it serves.
        (late, 1),
        (broke, 1),
        (whole, 1),
        (late, 2),
        (plain, 2),
        (broke, 3),
    ] {
        let call = service.ready().await.unwrap().call(Request::new(answer));
        call.await.unwrap().into_body().collect().await.unwrap();
        assert_eq!(warned(), after, "{answer}");
    }
    let events = events.0.lock().unwrap();
    assert!(events[0].contains("check the API key of this target"));
    assert!(!events.iter().any(|event| event.contains("sk-secret")));
}
