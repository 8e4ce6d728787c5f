//! One input: any bytes as a vendor's answer. `cargo test` replays the corpus through it.

use std::{
    collections::VecDeque,
    future::{Future, Ready, ready},
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame};
use tower_layer::Layer;
use tower_service::Service;
use tower_spillway_core::BoxError;
use tower_spillway_llm::{Answer, Rules, TargetProfile, Usage, Vendor, VendorVerdictLayer};

const STATUSES: [u16; 12] = [200, 204, 301, 400, 401, 403, 404, 413, 429, 500, 503, 529];
const KINDS: [Option<&str>; 4] = [
    None,
    Some("application/json"),
    Some("text/html"),
    Some("text/event-stream"),
];

/// The first byte chooses the status, the second the type, the third the size of a frame; the rest
/// is the body.
pub fn run(input: &[u8]) {
    let mut knobs = input.iter().copied().map(usize::from);
    let mut knob = || knobs.next().unwrap_or(0);
    let status = STATUSES[knob() % STATUSES.len()];
    let kind = KINDS[knob() % KINDS.len()];
    let size = knob() + 1;
    let body = input.get(3..).unwrap_or_default();

    for vendor in Vendor::all() {
        let ruling = Rules::of(vendor).judge(&Answer::new(status, body));
        let again = Rules::of(vendor).judge(&Answer::new(status, body));
        assert_eq!(ruling, again, "the same answer means the same");
    }
    let bytes = Bytes::copy_from_slice(body);
    for profile in [
        TargetProfile::anthropic_compat("a"),
        TargetProfile::gemini_compat("g"),
    ] {
        let once = profile.rewrite_bytes(&bytes);
        assert_eq!(profile.rewrite_bytes(&once), once, "once is enough");
    }
    let _ = Usage::of_answer(body);
    give_back(status, kind, size, body);
}

/// The layer gives back the body that it read.
fn give_back(status: u16, kind: Option<&'static str>, size: usize, body: &[u8]) {
    let frames: VecDeque<Bytes> = body.chunks(size).map(Bytes::copy_from_slice).collect();
    let mut answer = Response::new(Frames(frames));
    *answer.status_mut() = StatusCode::from_u16(status).expect("one of the above");
    if let Some(kind) = kind {
        let kind = http::HeaderValue::from_static(kind);
        answer.headers_mut().insert("content-type", kind);
    }
    let mut service = VendorVerdictLayer::new(Vendor::Gateway).layer(Once(Some(answer)));
    let mut cx = Context::from_waker(Waker::noop());
    let call = pin!(service.call(Request::new(())));
    let Poll::Ready(Ok(response)) = call.poll(&mut cx) else {
        panic!("all of it was there");
    };
    let mut given = Vec::new();
    let mut rest = pin!(response.into_body());
    while let Poll::Ready(Some(frame)) = rest.as_mut().poll_frame(&mut cx) {
        given.extend_from_slice(&frame.expect("no error").into_data().expect("data"));
    }
    assert_eq!(given, body);
}

struct Frames(VecDeque<Bytes>);

impl Body for Frames {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Poll::Ready(self.0.pop_front().map(|data| Ok(Frame::data(data))))
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
