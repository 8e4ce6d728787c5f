//! The body comes back as it was given, whatever it is and however it is split.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http_body::Body;
use http_body_util::BodyExt;
use proptest::prelude::*;
use tower_spillway_llm::{Vendor, VendorVerdictLayer};

use crate::body::{Played, Step, answer, response};

/// What came out of a body: data, trailers, the error.
#[derive(Debug, Default, PartialEq)]
struct Out {
    data: Vec<u8>,
    trailers: Vec<HeaderMap>,
    error: Option<String>,
}

async fn drain<B>(body: B) -> Out
where
    B: Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    let mut body = std::pin::pin!(body);
    let mut out = Out::default();
    let mut before = body.size_hint();
    while !body.is_end_stream() {
        let frame = match body.frame().await {
            None => break,
            Some(Err(error)) => {
                out.error = Some(error.to_string());
                assert!(body.frame().await.is_none(), "nothing after an error");
                break;
            }
            Some(Ok(frame)) => frame,
        };
        match frame.into_data() {
            Ok(data) => {
                let length = data.len() as u64;
                assert!(
                    before.upper().is_none_or(|most| length <= most),
                    "the hint was true"
                );
                out.data.extend_from_slice(&data);
            }
            Err(frame) => out.trailers.extend(frame.into_trailers()),
        }
        before = body.size_hint();
    }
    out
}

fn step() -> impl Strategy<Value = Step> {
    let json = prop::sample::select(vec![
        "{\"error\":{\"message\":\"",
        "{\"choices\":[",
        "{\"choices\":[{}]}",
        "<html>",
        "data: {}",
        "\u{feff}",
    ]);
    prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 0..200).prop_map(|d| Step::Data(d.into())),
        2 => json.prop_map(Step::text),
        1 => (40_000usize..100_000).prop_map(|n| Step::Data(vec![b' '; n].into())),
        1 => (0u64..20_000).prop_map(|ms| Step::Wait(Duration::from_millis(ms))),
        1 => Just(Step::Fail("reset")),
        1 => Just(Step::Trailers(HeaderMap::from_iter([(
            http::HeaderName::from_static("grpc-status"),
            http::HeaderValue::from_static("0"),
        )]))),
    ]
}

fn run<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(future)
}

proptest! {
    #[test]
    fn any_body_in_any_split(
        steps in prop::collection::vec(step(), 0..8),
        status in prop::sample::select(vec![200u16, 204, 302, 400, 429, 503, 529]),
        kind in prop::sample::select(vec![
            None, Some("application/json"), Some("text/html"), Some("text/event-stream"),
        ]),
        exact in any::<bool>(),
    ) {
        run(async {
            let steps: Vec<Step> = steps;
            let original = Played::new(steps.clone()).exact(exact);
            let size = original.size_hint();
            let wanted = drain(original).await;

            let layer = VendorVerdictLayer::new(Vendor::Gateway);
            let body = Played::new(steps).exact(exact);
            let response = answer(&layer, response(status, kind, body)).await;
            let (head, body) = response.into_parts();
            prop_assert_eq!(head.status.as_u16(), status);
            prop_assert_eq!(body.size_hint().lower(), size.lower());
            prop_assert_eq!(body.size_hint().exact(), size.exact());
            prop_assert_eq!(drain(body).await, wanted);
            Ok(())
        })?;
    }
}

#[tokio::test]
async fn frames_are_the_same_frames() {
    let parts = ["{\"err", "or\":{\"mess", "age\":\"x\"}}"];
    let body = Played::new(parts.map(Step::text));
    let layer = VendorVerdictLayer::new(Vendor::OpenAi);
    let body = answer(&layer, response(400, None, body)).await.into_body();
    let mut body = std::pin::pin!(body);
    for part in parts {
        let frame = body.frame().await.unwrap().unwrap();
        // Not copied: the very bytes that came.
        assert_eq!(frame.into_data().unwrap().as_ptr(), part.as_ptr());
    }
    assert!(body.is_end_stream());
}

#[tokio::test]
async fn a_long_body_streams_on_and_is_not_read_further() {
    let chunk = Bytes::from(vec![b'x'; 1024]);
    let steps = (0..1024).map(|_| Step::Data(chunk.clone()));
    let layer = VendorVerdictLayer::new(Vendor::OpenAi);
    let response = answer(&layer, response(500, None, Played::new(steps))).await;
    let text = format!("{:?}", response.body());
    assert!(text.contains("frames_read: 64"), "{text}");
    assert_eq!(drain(response.into_body()).await.data.len(), 1024 * 1024);
}

#[tokio::test]
async fn a_whole_small_body_may_be_held_and_keeps_no_length() {
    let layer = VendorVerdictLayer::new(Vendor::OpenAi);
    let response = answer(&layer, response(429, None, Played::text("{}"))).await;
    let size = response.body().size_hint();
    assert_eq!((size.upper(), size.exact()), (Some(2), None));
}
