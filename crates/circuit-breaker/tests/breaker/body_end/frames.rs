//! A body that does as told.

use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use tower_spillway_core::{BodyEnd, BoxError, Class};

#[derive(Clone)]
pub(super) enum Do {
    Data(&'static str),
    /// Says how it ends, and goes on.
    Tell(BodyEnd, Class),
    Trailers(HeaderMap),
    Fail,
    /// Pending once, and wakes.
    Wait,
    Stall,
    Panic,
}

#[derive(Clone)]
pub(super) struct Frames {
    steps: VecDeque<Do>,
    hint: SizeHint,
    knows_its_end: bool,
}

impl Frames {
    pub(super) fn new(steps: impl IntoIterator<Item = Do>) -> Self {
        Self {
            steps: steps.into_iter().collect(),
            hint: SizeHint::new(),
            knows_its_end: false,
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
}

impl Body for Frames {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        loop {
            return Poll::Ready(match self.steps.pop_front() {
                None => None,
                Some(Do::Data(text)) => Some(Ok(Frame::data(Bytes::from_static(text.as_bytes())))),
                Some(Do::Trailers(trailers)) => Some(Ok(Frame::trailers(trailers))),
                Some(Do::Fail) => Some(Err("the connection broke".into())),
                Some(Do::Tell(end, class)) => {
                    end.set(class.into());
                    continue;
                }
                Some(Do::Wait) => {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Some(Do::Stall) => {
                    self.steps.push_front(Do::Stall);
                    return Poll::Pending;
                }
                Some(Do::Panic) => panic!("in the body"),
            });
        }
    }

    fn is_end_stream(&self) -> bool {
        self.knows_its_end && self.steps.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        self.hint
    }
}
