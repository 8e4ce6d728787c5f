//! A response body as written, and a client of one answer.

use std::{
    collections::VecDeque,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep};
use tower::{ServiceExt, service_fn};
use tower_layer::Layer;
use tower_spillway_core::BoxError;
use tower_spillway_llm::{PeekedBody, VendorVerdictLayer};

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Data(Bytes),
    Trailers(HeaderMap),
    Fail(&'static str),
    Wait(Duration),
}

impl Step {
    pub(crate) fn text(text: &'static str) -> Self {
        Self::Data(Bytes::from_static(text.as_bytes()))
    }
}

pin_project! {
    /// Plays steps. Not `Unpin`, as a body with a time limit is not.
    pub(crate) struct Played {
        steps: VecDeque<Step>,
        exact: bool,
        #[pin]
        sleep: Option<Sleep>,
    }
}

impl Played {
    pub(crate) fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self {
            steps: steps.into_iter().collect(),
            exact: false,
            sleep: None,
        }
    }

    pub(crate) fn text(text: &'static str) -> Self {
        Self::new([Step::text(text)])
    }

    /// Of a known length.
    pub(crate) fn exact(mut self, yes: bool) -> Self {
        self.exact = yes;
        self
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
                std::task::ready!(sleep.poll(cx));
                this.sleep.set(None);
            }
            return Poll::Ready(match this.steps.pop_front() {
                None => None,
                Some(Step::Data(data)) => Some(Ok(Frame::data(data))),
                Some(Step::Trailers(trailers)) => Some(Ok(Frame::trailers(trailers))),
                Some(Step::Fail(why)) => {
                    this.steps.clear();
                    Some(Err(why.into()))
                }
                Some(Step::Wait(time)) => {
                    this.sleep.set(Some(sleep(time)));
                    continue;
                }
            });
        }
    }

    fn size_hint(&self) -> SizeHint {
        let length = |step: &Step| match step {
            Step::Data(data) => data.len() as u64,
            _ => 0,
        };
        match self.exact {
            true => SizeHint::with_exact(self.steps.iter().map(length).sum()),
            false => SizeHint::new(),
        }
    }
}

/// The answer behind the layer.
pub(crate) async fn answer(
    layer: &VendorVerdictLayer,
    response: Response<Played>,
) -> Response<PeekedBody<Played>> {
    let once = Arc::new(Mutex::new(Some(response)));
    let inner = service_fn(move |_: Request<()>| {
        let response = once.lock().unwrap().take();
        async move { response.ok_or(BoxError::from("asked twice")) }
    });
    layer.layer(inner).oneshot(Request::new(())).await.unwrap()
}

pub(crate) fn response(status: u16, kind: Option<&str>, body: Played) -> Response<Played> {
    let mut builder = Response::builder().status(status);
    if let Some(kind) = kind {
        builder = builder.header("content-type", kind);
    }
    builder.body(body).unwrap()
}
