//! One input: any bytes as a stream. `cargo test` replays the corpus through it.

use std::{
    collections::VecDeque,
    future::{Future, Ready, ready},
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use tower_layer::Layer;
use tower_service::Service;
use tower_spillway_core::{BodyEnd, BoxError, Class, Http, Read, Reading};
use tower_spillway_llm::{Commit, StreamGuardLayer, StreamLimits, Vendor, VendorVerdictLayer};

/// How a stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Eof,
    Reset,
    Stall,
}

/// The first byte chooses how the stream ends, when it is given out, and whose it is; the second the
/// size of a frame; the rest is the stream.
pub fn run(input: &[u8]) {
    let knob = input.first().copied().map_or(0, usize::from);
    let size = input.get(1).copied().map_or(1, |n| usize::from(n) + 1);
    let text = input.get(2..).unwrap_or_default();
    let end = [End::Eof, End::Reset, End::Stall][knob % 3];
    let commit = [Commit::FirstContent, Commit::Complete][knob / 3 % 2];
    let vendors: Vec<Vendor> = Vendor::all().collect();
    let vendor = vendors[knob / 6 % vendors.len()];
    check(text, size, end, commit, vendor);
}

/// However the bytes are cut, the caller gets the same; and that is the stream as it came, or as far
/// as it was good, or nothing of it.
pub fn check(text: &[u8], size: usize, end: End, commit: Commit, vendor: Vendor) {
    let got = outcome(text, size, end, commit, vendor);
    let whole = outcome(text, text.len().max(1), end, commit, vendor);
    assert_eq!(got, whole, "in frames of {size}");
    let Some(given) = &got.given else { return };
    match got.end.as_ref().map(Reading::class) {
        Some(Class::Success) if end == End::Eof => assert_eq!(given, text, "verbatim"),
        // Behind the last event there is nothing that a caller waits for.
        Some(Class::Success) => assert!(text.starts_with(given), "verbatim"),
        None => assert!(end == End::Stall && text.starts_with(given), "still open"),
        Some(_) => {
            assert_eq!(commit, Commit::FirstContent, "a partial answer was given");
            let same = given.iter().zip(text).take_while(|(a, b)| a == b).count();
            let event = &given[same..];
            assert!(event.is_empty() || event.ends_with(b"}\n\n"), "{event:?}");
        }
    }
}

#[derive(Debug, PartialEq)]
struct Got {
    /// What it is for the layers outside; `None` while nothing is known.
    reading: Option<Reading>,
    /// What a caller got of a stream.
    given: Option<Vec<u8>>,
    end: Option<Reading>,
}

fn outcome(text: &[u8], size: usize, end: End, commit: Commit, vendor: Vendor) -> Got {
    let frames = text.chunks(size).map(Bytes::copy_from_slice).collect();
    let response = Response::builder()
        .header("content-type", "text/event-stream")
        .body(Frames(frames, end))
        .expect("a response");
    let guard = StreamGuardLayer::new(vendor)
        .commit(commit)
        .most_held(1024)
        .and_then(|guard| guard.most_answer(4096))
        // Outside of a runtime there is no time.
        .and_then(|guard| guard.limits(StreamLimits::NONE))
        .expect("in bounds");
    let verdict = VendorVerdictLayer::new(vendor);
    let mut service = guard.layer(verdict.layer(Once(Some(response))));
    let mut cx = Context::from_waker(Waker::noop());
    let call = pin!(service.call(Request::new(())));
    let Poll::Ready(out) = call.poll(&mut cx) else {
        assert_eq!(end, End::Stall);
        return Got {
            reading: None,
            given: None,
            end: None,
        };
    };
    let reading = Some(Http::new().read(out.as_ref().map_err(|e| &**e as _)));
    let Ok(response) = out else {
        return Got {
            reading,
            given: None,
            end: None,
        };
    };
    let ended = response.extensions().get::<BodyEnd>().cloned();
    let mut given = Vec::new();
    let mut body = pin!(response.into_body());
    while let Poll::Ready(Some(frame)) = body.as_mut().poll_frame(&mut cx) {
        given.extend_from_slice(&frame.expect("no error").into_data().expect("data"));
    }
    Got {
        reading,
        given: ended.is_some().then_some(given),
        end: ended.and_then(|end| end.get().cloned()),
    }
}

struct Frames(VecDeque<Bytes>, End);

impl Body for Frames {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match (self.0.pop_front(), self.1) {
            (Some(data), _) => Poll::Ready(Some(Ok(Frame::data(data)))),
            (None, End::Eof) => Poll::Ready(None),
            (None, End::Reset) => Poll::Ready(Some(Err("reset".into()))),
            (None, End::Stall) => Poll::Pending,
        }
    }
}

struct Once(Option<Response<Frames>>);

impl Service<Request<()>> for Once {
    type Response = Response<Frames>;
    type Error = BoxError;
    type Future = Ready<Result<Response<Frames>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        ready(self.0.take().ok_or_else(|| "asked twice".into()))
    }
}
