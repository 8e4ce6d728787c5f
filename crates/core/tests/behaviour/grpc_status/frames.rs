//! A body that does as told.

use std::{
    collections::VecDeque,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Sleep, sleep};
use tower_spillway_core::BoxError;

#[derive(Clone, Debug)]
pub(super) enum Do {
    Data(&'static str),
    Trailers(HeaderMap),
    Fail,
    /// Pending once, and wakes.
    Wait,
    /// Waits for so long.
    After(Duration),
    Stall,
}

#[derive(Debug)]
pub(super) struct Frames {
    steps: VecDeque<Do>,
    hint: SizeHint,
    knows_its_end: bool,
    over: bool,
    polls: usize,
    sleep: Option<Pin<Box<Sleep>>>,
    kept: Option<Arc<()>>,
}

impl Frames {
    pub(super) fn new(steps: &[Do]) -> Self {
        Self {
            steps: steps.iter().cloned().collect(),
            hint: SizeHint::new(),
            knows_its_end: false,
            over: false,
            polls: 0,
            sleep: None,
            kept: None,
        }
    }

    pub(super) fn hint(mut self, hint: SizeHint) -> Self {
        self.hint = hint;
        self
    }

    /// `is_end_stream` after the last frame.
    pub(super) fn knows_its_end(mut self) -> Self {
        self.knows_its_end = true;
        self
    }

    pub(super) fn keeping(mut self, kept: Arc<()>) -> Self {
        self.kept = Some(kept);
        self
    }

    /// What it has not done yet.
    pub(super) fn left(&self) -> usize {
        self.steps.len()
    }

    pub(super) fn polls(&self) -> usize {
        self.polls
    }
}

/// A fresh one, that was not polled.
impl Clone for Frames {
    fn clone(&self) -> Self {
        Self {
            steps: self.steps.clone(),
            kept: self.kept.clone(),
            sleep: None,
            ..*self
        }
    }
}

impl Body for Frames {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.polls += 1;
        assert!(!self.over, "polled past its end");
        loop {
            if let Some(sleep) = &mut self.sleep {
                ready!(sleep.as_mut().poll(cx));
                self.sleep = None;
            }
            let Some(step) = self.steps.pop_front() else {
                self.over = true;
                return Poll::Ready(None);
            };
            match step {
                Do::Data(text) => {
                    let data = Bytes::from_static(text.as_bytes());
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Do::Trailers(trailers) => return Poll::Ready(Some(Ok(Frame::trailers(trailers)))),
                Do::Fail => return Poll::Ready(Some(Err("the connection broke".into()))),
                Do::Wait => {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Do::After(delay) => self.sleep = Some(Box::pin(sleep(delay))),
                Do::Stall => {
                    self.steps.push_front(Do::Stall);
                    return Poll::Pending;
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.knows_its_end && self.steps.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        self.hint
    }
}
