//! Limits.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use tokio::time::{Instant, advance};
use tower_spillway_core::{Class, Http, Read};
use tower_spillway_llm::{Break, StreamLimits};

use crate::body::{
    DONE, FINISH, PING, ROLE, SECOND, Step, TOKEN, Upstream, complete, openai, read, text, why,
    within,
};

fn every(time: Duration, event: &'static str, times: usize) -> Vec<Step> {
    vec![[Step::Wait(time), text(event)]; times].concat()
}

fn only(set: impl FnOnce(&mut StreamLimits)) -> StreamLimits {
    let mut limits = StreamLimits::NONE;
    set(&mut limits);
    limits
}

#[tokio::test(start_paused = true)]
async fn nothing_but_content_ends_the_first_limit() {
    let layer = within(only(|l| l.first_content = Some(5 * SECOND)));
    for event in [
        PING,
        ROLE,
        "event: ping\ndata: {\"type\":\"ping\"}\n\n",
        "\n",
    ] {
        let start = Instant::now();
        let upstream = Upstream::new(every(SECOND, event, 60));
        let out = upstream.ask(&layer).await;
        assert_eq!(why(&out), Break::NoContent(5 * SECOND));
        assert_eq!(start.elapsed(), 5 * SECOND);
        assert_eq!(upstream.open(), 0);
        let reading = Http::new().read(out.as_ref().map_err(|e| &**e as _));
        assert!(reading.is_timed_out() && reading.class() == Class::Transient);
    }
    let upstream = Upstream::new([
        Step::Wait(5 * SECOND - Duration::from_millis(1)),
        text(TOKEN),
    ]);
    assert!(upstream.ask(&layer).await.is_ok());
    let slow = [
        vec![text(TOKEN)],
        every(9 * SECOND, TOKEN, 3),
        vec![text(FINISH)],
    ]
    .concat();
    let (_, end) = read(Upstream::new(slow).ask(&layer).await).await;
    assert_eq!(end.unwrap().class(), Class::Success, "it is met for good");
}

#[tokio::test(start_paused = true)]
async fn anything_ends_the_idle_limit() {
    let layer = within(only(|l| l.idle = Some(2 * SECOND)));
    let lives = [
        every(SECOND, PING, 60),
        vec![text(TOKEN)],
        every(SECOND, PING, 60),
        vec![text(FINISH)],
    ];
    let (_, end) = read(Upstream::new(lives.concat()).ask(&layer).await).await;
    assert_eq!(end.unwrap().class(), Class::Success);

    let start = Instant::now();
    let upstream = Upstream::new([text(ROLE), Step::Wait(SECOND), text(PING), Step::Hang]);
    assert_eq!(why(&upstream.ask(&layer).await), Break::Idle(2 * SECOND));
    assert_eq!(start.elapsed(), 3 * SECOND);

    let start = Instant::now();
    let upstream = Upstream::new([text(TOKEN), Step::Wait(SECOND), text(PING), Step::Hang]);
    let (body, end) = read(upstream.ask(&layer).await).await;
    assert_eq!(start.elapsed(), 3 * SECOND);
    assert!(body.contains("\"code\":\"stream_idle\""), "{body}");
    let end = end.unwrap();
    assert!(end.is_timed_out() && end.class() == Class::Transient);
    assert_eq!(upstream.open(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_is_slow_to_read_is_no_stall() {
    let layer = within(only(|l| l.idle = Some(2 * SECOND)));
    let upstream = Upstream::new([text(TOKEN), Step::Wait(SECOND), text(FINISH)]);
    let mut body = Box::pin(upstream.ask(&layer).await.unwrap().into_body());
    assert_eq!(
        body.frame().await.unwrap().unwrap().into_data().unwrap(),
        TOKEN
    );
    advance(60 * SECOND).await;
    // The upstream begins to wait only now, as one whose client does not read does.
    assert_eq!(
        body.frame().await.unwrap().unwrap().into_data().unwrap(),
        FINISH
    );
    assert!(body.frame().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn the_total_bounds_what_never_stalls() {
    let limits = only(|l| l.total = Some(10 * SECOND));
    let start = Instant::now();
    let drip = Upstream::new(every(SECOND, TOKEN, 60));
    let (body, end) = read(drip.ask(&within(limits)).await).await;
    assert_eq!(start.elapsed(), 10 * SECOND);
    assert!(body.contains("\"code\":\"stream_total\""), "{body}");
    assert!(end.unwrap().is_timed_out());

    let out = drip.ask(&complete().limits(limits).unwrap()).await;
    assert_eq!(why(&out), Break::Total(10 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn the_total_bounds_what_always_has_more() {
    let limits = only(|l| l.total = Some(10 * SECOND));
    let flood = Upstream::new([Step::Flood(Bytes::from_static(TOKEN.as_bytes()))]);
    let mut body = Box::pin(flood.ask(&within(limits)).await.unwrap().into_body());
    let mut frames = Vec::new();
    while let Some(frame) = body.frame().await {
        frames.push(frame.unwrap().into_data().unwrap());
        assert!(frames.len() < 20, "endless");
        advance(SECOND).await;
    }
    let last = String::from_utf8_lossy(frames.last().unwrap());
    assert!(last.contains("\"code\":\"stream_total\""), "{last}");
}

#[tokio::test(start_paused = true)]
async fn what_follows_the_last_event_does_not_keep_the_stream_open() {
    let layer = within(only(|l| l.idle = Some(2 * SECOND)));
    let start = Instant::now();
    let answer = vec![text(TOKEN), text(FINISH), text(DONE)];
    let upstream = Upstream::new([answer, every(SECOND, PING, 60)].concat());
    let (_, end) = read(upstream.ask(&layer).await).await;
    assert_eq!(start.elapsed(), 2 * SECOND);
    assert_eq!(end.unwrap().class(), Class::Success);
    assert_eq!(upstream.open(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_complete_answer_is_no_stall() {
    let layer = within(only(|l| l.idle = Some(2 * SECOND)));
    for last in [FINISH, DONE] {
        let upstream = Upstream::new([text(TOKEN), text(last), Step::Hang]);
        let (body, end) = read(upstream.ask(&layer).await).await;
        assert_eq!(body, [TOKEN, last].concat());
        assert_eq!(end.unwrap().class(), Class::Success);
    }
}

#[tokio::test(start_paused = true)]
async fn the_limits_by_default() {
    let minute = 60 * SECOND;
    let out = Upstream::new(every(SECOND, PING, 100)).ask(&openai()).await;
    assert_eq!(why(&out), Break::NoContent(minute));
    let start = Instant::now();
    let (_, end) = read(
        Upstream::new([text(TOKEN), Step::Hang])
            .ask(&openai())
            .await,
    )
    .await;
    assert_eq!(end.unwrap().reason(), Some("stream_idle"));
    assert_eq!(start.elapsed(), minute);
    let long = [every(50 * SECOND, TOKEN, 100), vec![text(FINISH)]].concat();
    let (_, end) = read(Upstream::new(long).ask(&openai()).await).await;
    assert_eq!(end.unwrap().class(), Class::Success);
}

#[tokio::test(start_paused = true)]
async fn a_limit_too_far_away_to_be_a_time_is_none() {
    let layer = within(StreamLimits {
        first_content: Some(Duration::MAX),
        idle: Some(Duration::MAX),
        total: Some(Duration::MAX),
    });
    let upstream = Upstream::new([Step::Wait(SECOND), text(TOKEN), text(FINISH)]);
    let (_, end) = read(upstream.ask(&layer).await).await;
    assert_eq!(end.unwrap().class(), Class::Success);
}
