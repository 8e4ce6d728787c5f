//! A stream as written, and a client of it.

use std::{
    collections::VecDeque,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep};
use tower::{ServiceExt, service_fn};
use tower_layer::Layer;
use tower_spillway_core::{BodyEnd, BoxError, Reading, error::find};
use tower_spillway_llm::{
    Break, Commit, GuardedBody, StreamBroken, StreamGuardLayer, StreamLimits, Vendor,
};

pub(crate) const ROLE: &str = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n";
pub(crate) const TOKEN: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n";
pub(crate) const FINISH: &str = "data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\n";
pub(crate) const DONE: &str = "data: [DONE]\n\n";
pub(crate) const PING: &str = ": ping\n\n";

pub(crate) const SECOND: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Data(Bytes),
    Trailers(HeaderMap),
    Fail,
    Wait(Duration),
    /// Gives the same for ever, without a wait.
    Flood(Bytes),
    Hang,
}

pub(crate) fn text(text: impl Into<Bytes>) -> Step {
    Step::Data(text.into())
}

pin_project! {
    /// Plays steps, and counts how many of its like are open and how often it was read. Not
    /// `Unpin`, as a body with a time limit is not.
    pub(crate) struct Played {
        steps: VecDeque<Step>,
        open: Arc<AtomicUsize>,
        reads: Arc<AtomicUsize>,
        #[pin]
        sleep: Option<Sleep>,
    }

    impl PinnedDrop for Played {
        fn drop(this: Pin<&mut Self>) {
            this.open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Body for Played {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let mut this = self.project();
        loop {
            if let Some(sleep) = this.sleep.as_mut().as_pin_mut() {
                ready!(sleep.poll(cx));
                this.sleep.set(None);
            }
            this.reads.fetch_add(1, Ordering::Relaxed);
            return Poll::Ready(match this.steps.pop_front() {
                None => None,
                Some(Step::Data(data)) => Some(Ok(Frame::data(data))),
                Some(Step::Trailers(trailers)) => Some(Ok(Frame::trailers(trailers))),
                Some(Step::Fail) => Some(Err("reset".into())),
                Some(Step::Wait(time)) => {
                    this.sleep.set(Some(sleep(time)));
                    continue;
                }
                Some(Step::Flood(data)) => {
                    this.steps.push_front(Step::Flood(data.clone()));
                    Some(Ok(Frame::data(data)))
                }
                Some(Step::Hang) => {
                    this.steps.push_front(Step::Hang);
                    return Poll::Pending;
                }
            });
        }
    }
}

/// An upstream that gives every request the same stream.
#[derive(Clone)]
pub(crate) struct Upstream {
    pub(crate) headers: Vec<(&'static str, &'static str)>,
    steps: Vec<Step>,
    open: Arc<AtomicUsize>,
    reads: Arc<AtomicUsize>,
}

impl Upstream {
    pub(crate) fn new(steps: impl Into<Vec<Step>>) -> Self {
        Self {
            headers: vec![("content-type", "text/event-stream; charset=utf-8")],
            steps: steps.into(),
            open: Arc::default(),
            reads: Arc::default(),
        }
    }

    pub(crate) fn text(events: &[&str]) -> Self {
        Self::new([text(events.concat())])
    }

    /// Bodies that were not dropped.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    pub(crate) fn reads(&self) -> usize {
        self.reads.load(Ordering::Relaxed)
    }

    pub(crate) fn answer(&self) -> Response<Played> {
        self.open.fetch_add(1, Ordering::Relaxed);
        let mut response = Response::builder();
        for (name, value) in &self.headers {
            response = response.header(*name, *value);
        }
        let body = Played {
            steps: self.steps.clone().into(),
            open: self.open.clone(),
            reads: self.reads.clone(),
            sleep: None,
        };
        response.body(body).unwrap()
    }

    /// The outcome of one request behind the layer.
    pub(crate) async fn ask(&self, layer: &StreamGuardLayer) -> Outcome {
        self.ask_with(layer, Request::new(())).await
    }

    pub(crate) async fn ask_with(&self, layer: &StreamGuardLayer, request: Request<()>) -> Outcome {
        let once = Mutex::new(Some(self.answer()));
        let inner = service_fn(move |_: Request<()>| {
            let response = once.lock().unwrap().take();
            async move { response.ok_or(BoxError::from("asked twice")) }
        });
        layer.layer(inner).oneshot(request).await
    }
}

pub(crate) type Outcome = Result<Response<GuardedBody<Played>>, BoxError>;

pub(crate) fn openai() -> StreamGuardLayer {
    StreamGuardLayer::new(Vendor::OpenAi)
}

pub(crate) fn complete() -> StreamGuardLayer {
    openai().commit(Commit::Complete)
}

pub(crate) fn within(limits: StreamLimits) -> StreamGuardLayer {
    openai().limits(limits).unwrap()
}

/// Why an attempt failed.
pub(crate) fn why(out: &Outcome) -> Break {
    let error = out.as_ref().err().unwrap();
    find::<StreamBroken>(&**error).unwrap().why()
}

/// The body that a caller got, and how it ended.
pub(crate) async fn read(out: Outcome) -> (String, Option<Reading>) {
    let response = out.unwrap();
    let end = response.extensions().get::<BodyEnd>().cloned();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let end = end.and_then(|end| end.get().cloned());
    (String::from_utf8(body.to_vec()).unwrap(), end)
}
