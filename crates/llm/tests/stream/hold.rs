//! Until the first content.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt;
use tower::{ServiceExt, service_fn};
use tower_layer::Layer;
use tower_spillway_core::{
    BoxError, Class, Http, Ledger, Read, Reading, call::CallLayer, hint::Hint, testing::drops,
};
use tower_spillway_llm::{Break, StreamGuardLayer, Vendor};

use crate::body::{
    DONE, FINISH, Outcome, PING, ROLE, SECOND, Step, TOKEN, Upstream, complete, openai, read, text,
    why,
};

fn reading(out: &Outcome) -> Reading {
    Http::new().read(out.as_ref().map_err(|e| &**e as _))
}

#[tokio::test]
async fn an_error_inside_is_an_ordinary_answer() {
    let error = "data: {\"error\":{\"code\":429,\"message\":\"Please try again in 7s.\"}}\n\n";
    let mut upstream = Upstream::text(&[PING, ROLE, error, DONE]);
    upstream.headers.push(("x-request-id", "r1"));
    upstream.headers.push(("content-length", "999"));
    for layer in [openai(), complete()] {
        let out = upstream.ask(&layer).await;
        let read = reading(&out);
        assert_eq!((read.class(), read.status()), (Class::Throttled, Some(429)));
        assert_eq!(read.hint().and_then(Hint::after), Some(7 * SECOND));
        assert_eq!(upstream.open(), 0, "the upstream is gone");
        let response = out.unwrap();
        assert_eq!(response.status(), 429);
        assert_eq!(response.headers()["content-type"], "application/json");
        assert_eq!(response.headers()["x-request-id"], "r1");
        assert!(!response.headers().contains_key("content-length"));
        assert!(
            Read::<_>::holdable(&Http::new(), &response),
            "it can be kept while waiting"
        );
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let json = error.trim_start_matches("data: ").trim_end();
        assert_eq!(body, json);
    }
}

#[tokio::test]
async fn what_ends_without_content_is_a_typed_error() {
    for (steps, wanted) in [
        (vec![], Break::EndedEarly),
        (vec![text(ROLE)], Break::EndedEarly),
        (vec![text(PING), text(DONE)], Break::EndedEarly),
        (vec![text(ROLE), Step::Fail], Break::Failed),
        (vec![text("data: {no\n\n"), text(TOKEN)], Break::Unreadable),
        (vec![text("<html>Bad gateway</html>")], Break::EndedEarly),
    ] {
        let upstream = Upstream::new(steps);
        let out = upstream.ask(&openai()).await;
        assert_eq!(why(&out), wanted);
        let reading = reading(&out);
        assert_eq!(reading.class(), Class::Transient);
        assert_eq!(reading.reason(), Some(wanted.as_str()));
        assert!(!reading.is_unprocessed(), "an answer had begun");
        assert_eq!(upstream.open(), 0);
    }
}

#[tokio::test]
async fn the_error_of_the_connection_stays_inside() {
    let out = Upstream::new([Step::Fail]).ask(&openai()).await;
    let error = out.err().unwrap();
    let chain = std::iter::successors(error.source(), |e| e.source());
    let said: Vec<_> = chain.map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "the connection broke before the answer was complete",
            "reset"
        ]
    );
}

#[tokio::test]
async fn no_more_is_held_than_allowed() {
    const MOST: usize = 4096;
    let bounded = |layer: StreamGuardLayer| layer.most_held(MOST).unwrap();
    for (flood, layer) in [
        (PING, openai()),
        (ROLE, openai()),
        (": no end", openai()),
        ("no end", openai()),
        (PING, complete()),
    ] {
        let upstream = Upstream::new([Step::Flood(Bytes::from_static(flood.as_bytes()))]);
        let out = upstream.ask(&bounded(layer)).await;
        assert_eq!(why(&out), Break::Preamble(MOST), "{flood}");
        let read = upstream.reads() * flood.len();
        assert!(read <= MOST + 2 * flood.len(), "{read} of {flood}");
    }
    let nothing = Upstream::new([Step::Flood(Bytes::new())]);
    let out = nothing.ask(&bounded(openai())).await;
    assert_eq!(why(&out), Break::Preamble(MOST), "frames without data");
}

#[tokio::test]
async fn an_answer_that_is_too_long_to_be_held_may_be_briefer_elsewhere() {
    const MOST: usize = 4096;
    let upstream = Upstream::new([Step::Flood(Bytes::from_static(TOKEN.as_bytes()))]);
    let out = upstream.ask(&complete().most_answer(MOST).unwrap()).await;
    assert_eq!(why(&out), Break::TooLong(MOST));
    assert_eq!(
        reading(&out).class(),
        Class::NotHere,
        "not the target's fault"
    );
    assert!(upstream.reads() * TOKEN.len() <= MOST + 2 * TOKEN.len());
}

#[tokio::test]
async fn nothing_partial_is_given_out_when_held_until_complete() {
    for (steps, wanted) in [
        (vec![text(TOKEN)], Break::EndedEarly),
        (vec![text(TOKEN), Step::Fail], Break::Failed),
        (vec![text(TOKEN), text("data: no\n\n")], Break::Unreadable),
    ] {
        assert_eq!(why(&Upstream::new(steps).ask(&complete()).await), wanted);
    }
    let overloaded = "data: {\"error\":{\"code\":\"server_is_overloaded\"}}\n\n";
    let out = Upstream::text(&[TOKEN, overloaded]).ask(&complete()).await;
    let reading = reading(&out);
    assert_eq!(
        (reading.class(), reading.status()),
        (Class::Transient, Some(503))
    );
    assert!(!reading.is_unprocessed(), "it had answered already");
    for end in [vec![], vec![Step::Fail], vec![text(DONE), Step::Hang]] {
        let good = [text(TOKEN), text(FINISH)];
        let upstream = Upstream::new([good.as_slice(), &end].concat());
        let response = upstream.ask(&complete()).await.unwrap();
        let frame = Box::pin(response.into_body())
            .frame()
            .await
            .unwrap()
            .unwrap();
        let given = frame.into_data().unwrap();
        assert!(given.starts_with([TOKEN, FINISH].concat().as_bytes()));
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_of_first_content_is_in_the_report() {
    let upstream = Upstream::new([
        Step::Wait(SECOND),
        text(ROLE),
        Step::Wait(SECOND),
        text(TOKEN),
        Step::Wait(SECOND),
        text(FINISH),
    ]);
    for (layer, first) in [(openai(), 2 * SECOND), (complete(), 3 * SECOND)] {
        let upstream = upstream.clone();
        let ledger = Ledger::new();
        let mut request = Request::new(());
        request.extensions_mut().insert(ledger.clone());
        let guarded = layer.layer(service_fn(move |_: Request<()>| {
            let response = upstream.answer();
            async move { Ok::<_, BoxError>(response) }
        }));
        let out = CallLayer::new().layer(guarded).oneshot(request).await;
        assert_eq!(ledger.report().first_content, Some(first));
        assert_eq!(
            ledger.report().first_content_ms(),
            Some(first.as_millis() as u64)
        );
        assert_eq!(read(out).await.0, [ROLE, TOKEN, FINISH].concat());
    }
    let ledger = Ledger::new();
    let mut request = Request::new(());
    request.extensions_mut().insert(ledger.clone());
    assert!(
        Upstream::text(&[ROLE])
            .ask_with(&openai(), request)
            .await
            .is_err()
    );
    assert_eq!(ledger.report().first_content, None);
}

#[tokio::test(start_paused = true)]
async fn dropped_at_any_await_point_it_takes_the_upstream_with_it() {
    let wait = Step::Wait(SECOND);
    let upstream = Upstream::new([
        wait.clone(),
        text(ROLE),
        wait.clone(),
        text(PING),
        wait.clone(),
        text(TOKEN),
        wait,
        text(FINISH),
    ]);
    let make = || {
        let upstream = upstream.clone();
        async move {
            let out = upstream.ask(&openai()).await;
            read(out).await
        }
    };
    let drops = drops::walk(make, |k| assert_eq!(upstream.open(), 0, "after {k}")).await;
    assert_eq!(drops, 5, "unpolled, three times held, once given");
}

#[test]
fn bounds_are_told() {
    let told = |out: Result<StreamGuardLayer, tower_spillway_core::InvalidConfig>| {
        out.unwrap_err().to_string()
    };
    let layer = || StreamGuardLayer::new(Vendor::OpenAi);
    assert_eq!(
        told(layer().most_held(1023)),
        "most_held must be at least 1024"
    );
    assert_eq!(
        told(layer().most_answer(0)),
        "most_answer must be at least 1024"
    );
    let limits = tower_spillway_llm::StreamLimits {
        idle: Some(Duration::ZERO),
        ..Default::default()
    };
    assert_eq!(told(layer().limits(limits)), "idle must be above zero");
}
