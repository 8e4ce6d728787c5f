//! What is given on as it is.

use http::HeaderMap;
use http_body::Body;
use http_body_util::BodyExt;
use tower_spillway_core::{BodyEnd, Class, Reading};

use crate::body::{DONE, FINISH, PING, ROLE, Step, TOKEN, Upstream, openai, read, text};

const ERROR: &str = "data: {\"error\":{\"code\":503}}\n\n";

#[tokio::test]
async fn what_is_no_stream_is_left_alone() {
    for headers in [
        vec![("content-type", "application/json")],
        vec![],
        vec![
            ("content-type", "text/event-stream"),
            ("content-encoding", "gzip"),
        ],
    ] {
        let mut upstream = Upstream::text(&[ERROR]);
        upstream.headers.clone_from(&headers);
        let response = upstream.ask(&openai()).await.unwrap();
        assert_eq!(upstream.reads(), 0, "{headers:?}");
        assert!(response.extensions().get::<BodyEnd>().is_none());
        assert_eq!(
            response.into_body().collect().await.unwrap().to_bytes(),
            ERROR
        );
    }
}

#[tokio::test]
async fn what_failed_further_in_is_left_alone() {
    use http::{Request, Response};
    use tower::{ServiceExt, service_fn};
    use tower_layer::Layer;

    let upstream = Upstream::text(&[ERROR]);
    let answer = move |status: u16, reading: Option<Class>| {
        let upstream = upstream.clone();
        openai().layer(service_fn(move |_: Request<()>| {
            let mut response: Response<_> = upstream.answer();
            *response.status_mut() = status.try_into().unwrap();
            response.extensions_mut().extend(
                reading
                    .map(|class| {
                        let mut one = http::Extensions::new();
                        one.insert(Reading::new(class));
                        one
                    })
                    .unwrap_or_default(),
            );
            async move { Ok::<_, tower_spillway_core::BoxError>(response) }
        }))
    };
    for (status, reading) in [(429, None), (200, Some(Class::TargetDown))] {
        let out = answer(status, reading).oneshot(Request::new(())).await;
        let response = out.unwrap();
        assert_eq!(response.status(), status);
        assert!(response.extensions().get::<BodyEnd>().is_none());
        assert_eq!(
            response.into_body().collect().await.unwrap().to_bytes(),
            ERROR
        );
    }
}

#[tokio::test]
async fn a_good_stream_is_given_on_byte_for_byte_with_its_trailers() {
    let mut trailers = HeaderMap::new();
    trailers.insert("x-checksum", "1".parse().unwrap());
    let odd = "event:x\r\ndata: {\"choices\":[]}\r\n\r\n\r\n: c\rid\r\r";
    let events = [
        PING,
        ROLE,
        TOKEN,
        odd,
        TOKEN,
        FINISH,
        DONE,
        ": after\n\n",
        "x",
    ];
    let upstream = Upstream::new([text(events.concat()), Step::Trailers(trailers.clone())]);
    let response = upstream.ask(&openai()).await.unwrap();
    let end = response.extensions().get::<BodyEnd>().cloned().unwrap();
    let body = response.into_body().collect().await.unwrap();
    assert_eq!(body.trailers(), Some(&trailers));
    assert_eq!(body.to_bytes(), events.concat());
    assert_eq!(end.get().map(Reading::class), Some(Class::Success));
}

/// hyper sends no further chunk for what has ended.
#[tokio::test]
async fn a_body_that_was_read_has_ended() {
    let response = Upstream::text(&[TOKEN]).ask(&openai()).await.unwrap();
    let mut body = Box::pin(response.into_body());
    assert!(!body.is_end_stream());
    while body.frame().await.is_some() {}
    assert!(body.is_end_stream());
    assert!(body.frame().await.is_none(), "and stays so");
}

#[tokio::test]
async fn a_length_that_an_error_event_would_exceed_is_not_announced() {
    let mut upstream = Upstream::text(&[TOKEN]);
    upstream.headers.push(("content-length", "50"));
    let response = upstream.ask(&openai()).await.unwrap();
    assert!(!response.headers().contains_key("content-length"));
    assert_eq!(response.body().size_hint().exact(), None);
}

#[tokio::test]
async fn an_answer_that_is_over_without_content_is_one() {
    let filtered = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"content_filter\"}]}\n\n";
    let (body, end) = read(Upstream::text(&[ROLE, filtered, DONE]).ask(&openai()).await).await;
    assert_eq!(body, [ROLE, filtered, DONE].concat());
    assert_eq!(end.unwrap().class(), Class::Success);
}

#[tokio::test]
async fn every_answer_of_several_must_be_finished() {
    let second = TOKEN.replace("{\"delta\"", "{\"index\":1,\"delta\"");
    let finished = FINISH.replace("[{", "[{\"index\":1,");
    let one = Upstream::text(&[TOKEN, &second, FINISH]);
    let (_, end) = read(one.ask(&openai()).await).await;
    assert_eq!(end.unwrap().reason(), Some("stream_ended_early"));
    let both = Upstream::text(&[TOKEN, &second, FINISH, &finished]);
    let (_, end) = read(both.ask(&openai()).await).await;
    assert_eq!(end.unwrap().class(), Class::Success);
}
