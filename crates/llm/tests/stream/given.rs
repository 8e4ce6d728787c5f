//! From the first content to the end.

use http::{Request, Response};
use http_body_util::BodyExt;
use tower::{ServiceBuilder, ServiceExt, service_fn};
use tower_spillway_core::{
    BodyEnd, BoxError, Class, History, Ledger, Outcome, Reading, RetryLayer, Verdict,
    call::CallLayer,
};
use tower_spillway_llm::{Dialect, StreamGuardLayer, StreamUsage, Usage, Vendor};

use crate::body::{DONE, FINISH, PING, ROLE, SECOND, Step, TOKEN, Upstream, openai, read, text};

const CUT: &str = "the stream ended before the answer was complete";

#[tokio::test]
async fn a_break_is_told_in_the_dialect_of_the_stream() {
    let chat = format!(
        "data: {{\"error\":{{\"message\":\"{CUT}\",\"type\":\"server_error\",\"param\":null,\
         \"code\":\"stream_ended_early\"}}}}\n\n"
    );
    let anthropic = format!(
        "event: error\ndata: {{\"type\":\"error\",\"error\":{{\"type\":\"api_error\",\
         \"message\":\"{CUT}\"}}}}\n\n"
    );
    let gemini = format!(
        "data: {{\"error\":{{\"code\":503,\"message\":\"{CUT}\",\"status\":\"UNAVAILABLE\"}}}}\n\n"
    );
    let responses = format!(
        "event: error\ndata: {{\"type\":\"error\",\"code\":\"stream_ended_early\",\
         \"message\":\"{CUT}\",\"param\":null,\"sequence_number\":5}}\n\n"
    );
    for (event, error) in [
        (TOKEN, chat),
        (
            "data: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"Hi\"}}\n\n",
            anthropic,
        ),
        (
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Hi\"}]}}]}\n\n",
            gemini,
        ),
        (
            "data: {\"type\":\"response.output_text.delta\",\"sequence_number\":4,\
             \"delta\":\"Hi\"}\n\n",
            responses,
        ),
    ] {
        // Whoever the target was said to be.
        for vendor in [Vendor::OpenAi, Vendor::Anthropic, Vendor::Gemini] {
            let layer = StreamGuardLayer::new(vendor);
            let (body, end) = read(Upstream::text(&[event]).ask(&layer).await).await;
            assert_eq!(body, format!("{event}{error}"));
            assert_eq!(end.unwrap().reason(), Some("stream_ended_early"));
        }
    }
}

#[tokio::test]
async fn the_record_of_the_call_says_how_it_ended_whoever_else_listens() {
    let upstream = Upstream::text(&[TOKEN]);
    let ledger = Ledger::new();
    let mut request = Request::new(());
    request.extensions_mut().insert(ledger.clone());
    let stack = ServiceBuilder::new()
        .layer(CallLayer::new())
        .layer(RetryLayer::new(
            |_: &History, _: &Outcome<'_, Response<_>>| Verdict::Pass,
        ))
        .layer(openai())
        .service(service_fn(move |_: Request<()>| {
            let response = upstream.answer();
            async move { Ok::<_, BoxError>(response) }
        }));
    let response = stack.oneshot(request).await.unwrap();
    assert_eq!(ledger.report().attempts[0].class, Class::Success);
    response.into_body().collect().await.unwrap();
    let attempt = &ledger.report().attempts[0];
    assert_eq!(attempt.class, Class::Transient);
    assert_eq!(attempt.reason.as_deref(), Some("stream_ended_early"));
}

#[tokio::test]
async fn a_part_of_an_event_is_not_given_on() {
    let part = "data: {\"choices\":[{\"delta\":{\"cont";
    for end in [vec![], vec![Step::Fail]] {
        let steps = [vec![text(TOKEN), text(part)], end].concat();
        let (body, _) = read(Upstream::new(steps).ask(&openai()).await).await;
        assert!(
            body.starts_with(&format!("{TOKEN}data: {{\"error\"")),
            "{body}"
        );
        assert_eq!(body.matches("error").count(), 2, "{body}");
    }
}

#[tokio::test]
async fn the_vendors_own_error_event_is_given_on_and_nothing_after_it() {
    let overloaded = "event: error\ndata: {\"type\":\"error\",\"error\":\
        {\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let start = "data: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"Hi\"}}\n\n";
    let stop = "data: {\"type\":\"message_stop\"}\n\n";
    let upstream = Upstream::text(&[start, overloaded, stop]);
    let layer = StreamGuardLayer::new(Vendor::Anthropic);
    let response = upstream.ask(&layer).await.unwrap();
    let (body, end) = read(Ok(response)).await;
    assert_eq!(body, format!("{start}{overloaded}"));
    let end = end.unwrap();
    assert_eq!(end.class(), Class::Transient);
    assert!(!end.is_unprocessed());
}

#[tokio::test]
async fn an_error_that_a_caller_would_not_see_is_told_in_one_that_it_does() {
    for error in [
        "{\"error\":{\"code\":503}}\n\n",
        "event: error\ndata: {\"type\":\"api_error\"}\n\n",
        "event: throttlingException\ndata: {}\n\n",
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"error\"}]}\n\n",
        "data: {\"error\":{\"code\":503}}",
    ] {
        let (body, end) = read(Upstream::text(&[TOKEN, error]).ask(&openai()).await).await;
        let event = body.strip_prefix(TOKEN).unwrap();
        assert!(
            event.contains("\"code\":\"stream_error\""),
            "{error}: {body}"
        );
        let class = end.unwrap().class();
        assert!(class.may_pass(), "{error}: {class}");
    }
}

#[tokio::test(start_paused = true)]
async fn events_are_given_on_as_they_come() {
    let steps = [TOKEN, PING, ROLE, FINISH].map(|event| [text(event), Step::Wait(SECOND)]);
    let upstream = Upstream::new(steps.concat());
    let mut body = Box::pin(upstream.ask(&openai()).await.unwrap().into_body());
    let start = tokio::time::Instant::now();
    for (n, event) in [TOKEN, PING, ROLE, FINISH].into_iter().enumerate() {
        let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(frame, event);
        assert_eq!(start.elapsed(), SECOND * n as u32);
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_longer_than_what_is_read_is_given_on_before_its_end() {
    let layer = openai().most_held(1024).unwrap();
    let long = format!(
        "data: {{\"choices\":[{{\"delta\":{{\"image\":\"{}",
        "A".repeat(5000)
    );
    let steps = [
        text(long.clone()),
        Step::Wait(SECOND),
        text("\"}}]}\n\n"),
        text(FINISH),
    ];
    let upstream = Upstream::new(steps);
    let response = upstream.ask(&layer).await.unwrap();
    let start = tokio::time::Instant::now();
    let mut body = Box::pin(response.into_body());
    let mut given = Vec::new();
    while given.len() < long.len() {
        given.extend(body.frame().await.unwrap().unwrap().into_data().unwrap());
    }
    assert!(start.elapsed() < SECOND);
    let rest = body.collect().await.unwrap().to_bytes();
    assert_eq!(rest, format!("\"}}}}]}}\n\n{FINISH}"));

    // Cut inside it, the error event must not become a part of it.
    let (body, _) = read(Upstream::text(&[&long]).ask(&layer).await).await;
    let event = body.strip_prefix(&long).unwrap();
    assert!(event.starts_with("\n\ndata: {\"error\""), "{event}");
}

#[tokio::test]
async fn what_was_counted_is_told() {
    let usage =
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":1}}\n\n";
    let upstream = Upstream::new([text(TOKEN), text(FINISH), text(usage), text(DONE)]);
    let response = upstream.ask(&openai()).await.unwrap();
    let told = response.extensions().get::<StreamUsage>().cloned().unwrap();
    assert_eq!(told.get(), None);
    read(Ok(response)).await;
    let wanted = Usage {
        input: 5,
        cached: 0,
        output: 1,
    };
    assert_eq!(told.get(), Some(wanted));
}

/// Clients leave at the last event: whoever drops the body then must not look like one who left in
/// the middle.
#[tokio::test]
async fn it_has_ended_well_once_the_last_event_was_given() {
    let upstream = Upstream::new([text(TOKEN), text(DONE), Step::Hang]);
    let response = upstream.ask(&openai()).await.unwrap();
    let end = response.extensions().get::<BodyEnd>().cloned().unwrap();
    let mut body = Box::pin(response.into_body());
    body.frame().await.unwrap().unwrap();
    assert_eq!(end.get(), None);
    body.frame().await.unwrap().unwrap();
    assert_eq!(end.get().map(Reading::class), Some(Class::Success));
    drop(body);
    assert_eq!(upstream.open(), 0);
}

#[tokio::test]
async fn a_dialect_may_be_set_for_what_shows_none() {
    let layer = openai().dialect(Dialect::Gemini).most_held(1024).unwrap();
    let long = format!("data: {}", "A".repeat(2000));
    let (body, _) = read(Upstream::text(&[&long]).ask(&layer).await).await;
    assert!(body.contains("\"status\":\"UNAVAILABLE\""), "{body}");
}
